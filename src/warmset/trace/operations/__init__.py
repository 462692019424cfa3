"""What can be done with a trace: cut it, load it more, join it with others, and give it other blocks."""

from warmset.trace.operations.merging import merge_traces
from warmset.trace.operations.reblocking import Coverage, Reblocked, coverage, reblock
from warmset.trace.operations.scaling import clone_sessions, speed_up
from warmset.trace.operations.slicing import Slice, slice_trace, trimmed

__all__ = [
    "Coverage",
    "Reblocked",
    "Slice",
    "clone_sessions",
    "coverage",
    "merge_traces",
    "reblock",
    "slice_trace",
    "speed_up",
    "trimmed",
]
