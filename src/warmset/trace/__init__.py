"""Request logs become a `Trace`: a prefix forest and a request table, in columns."""

from warmset.trace.builder import TraceBuilder
from warmset.trace.forest import Provenance, Trace
from warmset.trace.options import ReadOptions
from warmset.trace.reading import read_trace
from warmset.trace.sample import open_trace, sample_trace
from warmset.trace.wst import read_wst, write_wst

__all__ = [
    "Provenance",
    "ReadOptions",
    "Trace",
    "TraceBuilder",
    "open_trace",
    "read_trace",
    "read_wst",
    "sample_trace",
    "write_wst",
]
