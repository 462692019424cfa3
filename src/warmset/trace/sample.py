"""The trace that ships with Warmset."""

from importlib import resources
from pathlib import Path

from warmset.errors import InputError
from warmset.trace.forest import Provenance, Trace
from warmset.trace.readers.mooncake import MOONCAKE_BLOCK_TOKENS, read_mooncake

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
        return read_mooncake(Path(path), provenance=_PROVENANCE)


def open_trace(name: str, block_tokens: int) -> Trace:
    """The shipped trace by its name, or a Mooncake JSONL file.

    Raises: InputError or TraceFormatError in one line for a file that cannot be used.
    """
    if name != SAMPLE_NAME:
        return read_mooncake(Path(name), block_tokens)
    if block_tokens != MOONCAKE_BLOCK_TOKENS:
        raise InputError(
            f"{SAMPLE_NAME}: its ids cover {MOONCAKE_BLOCK_TOKENS} tokens each, not {block_tokens}"
        )
    return sample_trace()
