"""One file per format of request logs."""

from warmset.trace.readers.mooncake import read_mooncake

__all__ = ["read_mooncake"]
