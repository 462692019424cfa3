"""The trace that ships with Warmset, and opening whatever a person names."""

from importlib import resources
from pathlib import Path

from warmset.errors import InputError
from warmset.trace.forest import Provenance, Trace
from warmset.trace.options import ReadOptions
from warmset.trace.reading import read_trace
from warmset.trace.source import STDIN
from warmset.trace.wst import read_wst, starts_like_wst

SAMPLE_NAME = "mooncake-conversation"
_FILE = "mooncake/conversation_trace.jsonl.gz"
_PROVENANCE = Provenance(
    name="Mooncake conversation trace",
    source="kvcache-ai/Mooncake, FAST25-release/traces/conversation_trace.jsonl, commit 3b5a594",
    licence="Apache-2.0",
    citation="Qin et al., “Mooncake: Trading More Storage for Less Computation”, FAST 2025",
)


def sample_trace() -> Trace:
    """12,031 requests of a production chat service over 59 minutes."""
    with resources.as_file(resources.files("warmset.trace") / "data" / _FILE) as path:
        return read_trace([path], "mooncake", provenance=_PROVENANCE)


def open_trace(name: str, block_tokens: int | None = None) -> Trace:
    """The shipped trace by its name, a `.wst` file, or any log that can be read as it is.

    Raises: InputError or TraceFormatError in one line for a file that cannot be used, or where `block_tokens`
    is not what a trace has that fixes it.
    """
    if name != SAMPLE_NAME and not (name != STDIN and starts_like_wst(Path(name))):
        return read_trace([name], options=ReadOptions(block_tokens=block_tokens))
    trace = sample_trace() if name == SAMPLE_NAME else read_wst(Path(name))
    if block_tokens not in {None, trace.block_tokens}:
        raise InputError(
            f"{name}: its ids cover {trace.block_tokens} tokens each, not {block_tokens}: "
            "warmset trace reblock changes that"
        )
    return trace
