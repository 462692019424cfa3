"""Request logs become a `Trace`: a prefix forest and a request table, in columns."""

from warmset.trace.forest import Provenance, Trace, build_trace
from warmset.trace.readers import read_mooncake
from warmset.trace.sample import open_trace, sample_trace

__all__ = ["Provenance", "Trace", "build_trace", "open_trace", "read_mooncake", "sample_trace"]
