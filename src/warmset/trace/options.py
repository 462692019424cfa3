"""What a person can decide about an import."""

from dataclasses import dataclass
from pathlib import Path

from warmset.errors import InputError
from warmset.trace.forest import MAX_BLOCK_TOKENS
from warmset.trace.tally import DEFAULT_BAD_SHARE

DEFAULT_TEXT_BLOCK_TOKENS = 16
"""vLLM's default block: what text is cut into unless told otherwise."""
DEFAULT_SESSION_GAP_MS = 60_000
MAX_SESSION_GAP_MS = 366 * 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """Choices of an import; `None` leaves the choice to the format."""

    block_tokens: int | None = None
    """Tokens that one id covers, or that text is cut into."""
    chars_per_token: float | None = None
    """For text without a tokenizer; `None` measures it on rows with usage, or else assumes 4."""
    tokenizer: Path | None = None
    """A `tokenizer.json`, or a model folder with one and maybe a chat template."""
    hash_key: bytes = b""
    """Secret of this import, under which blocks of text are hashed; never written anywhere."""
    session_gap_ms: int = DEFAULT_SESSION_GAP_MS
    """Sessions without a common clock start so far apart, in file order."""
    bad_share: float = DEFAULT_BAD_SHARE
    """Rows that may be left out before reading fails."""

    def __post_init__(self) -> None:
        """Refuse what no format could use."""
        if self.block_tokens is not None and self.block_tokens < 1:
            raise InputError(f"--block-tokens {self.block_tokens}: a block holds at least 1 token")
        if self.block_tokens is not None and self.block_tokens > MAX_BLOCK_TOKENS:
            raise InputError(f"--block-tokens {self.block_tokens}: it must be at most {MAX_BLOCK_TOKENS}")
        if self.chars_per_token is not None and not 0 < self.chars_per_token < float("inf"):
            raise InputError(f"--chars-per-token {self.chars_per_token}: it must be above 0")
        if not 0 <= self.bad_share < 1:
            raise InputError(f"--max-bad-rows {self.bad_share}: it must be at least 0 and below 1")
        if not 0 <= self.session_gap_ms <= MAX_SESSION_GAP_MS:
            raise InputError(
                f"--session-gap {self.session_gap_ms / 1000:g}: "
                f"it must be at least 0 and at most {MAX_SESSION_GAP_MS // 1000} seconds, a year"
            )
