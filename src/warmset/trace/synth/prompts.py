"""Prompts laid out of spans of text end to end, and the block ids that follow.

Every token that a generator makes up has a number of its own; text is a run of consecutive numbers. A block
of one run is named by its first number, a block that straddles runs by a hash of them: blocks of equal tokens
have equal ids, and blocks of different ones differ.
Only full blocks have an id, as an engine caches only those: the open block at the end of a prompt has none.
"""

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]

_MIX = np.uint64(0x9E3779B97F4A7C15)
_FOLD = np.uint64(0xBF58476D1CE4E5B9)
_TOP = np.uint64(1 << 63)
_FIRST_ROOM = 256
_FEW = 4
"""Spans up to which laying them one by one is faster than packing them into an array."""


class Span(NamedTuple):
    """A piece of text: so many tokens from a number on."""

    first: int
    tokens: int

    def upto(self, tokens: int) -> "Span":
        """Its first tokens."""
        return Span(self.first, min(tokens, self.tokens))

    def after(self, tokens: int) -> "Span":
        """What is left without its first tokens."""
        return Span(self.first + tokens, self.tokens - tokens)


class Texts:
    """Hands out text that nobody else has."""

    def __init__(self) -> None:
        self._next = 0

    def new(self, tokens: int) -> Span:
        """Fresh text of so many tokens."""
        span = Span(self._next, tokens)
        self._next += tokens
        return span


class Mark(NamedTuple):
    """A place in a prompt to which it can be cut back."""

    tokens: int
    num_spans: int
    open_id: int
    next_token: int


class Prompt:
    """A prompt that grows at its end, and can be cut back to a mark."""

    __slots__ = ("_ids", "_next", "_open", "block_tokens", "kept_tokens", "spans", "tokens")

    def __init__(self, block_tokens: int) -> None:
        self.block_tokens = block_tokens
        self.tokens = 0
        self.kept_tokens = 0
        """Leading tokens that have not changed since `keep` was last called."""
        self.spans: list[Span] = []
        self._ids = np.empty(_FIRST_ROOM, dtype=np.int64)
        self._open = 0
        self._next = -1

    @property
    def ids(self) -> Int64s:
        """Ids of the full blocks; the memory is reused when the prompt changes."""
        return self._ids[: self.tokens // self.block_tokens]

    def lay(self, span: Span) -> None:
        """Put text at the end."""
        self._make_room(span.tokens)
        self.tokens, self._open, self._next = _lay(
            span.first, span.tokens, self._ids, self.tokens, self._open, self._next, self.block_tokens
        )
        self.spans.append(span)

    def lay_all(self, spans: list[Span]) -> None:
        """Put several texts at the end."""
        if len(spans) <= _FEW:
            for span in spans:
                self.lay(span)
            return
        packed = np.array(spans, dtype=np.int64)
        self._make_room(int(packed[:, 1].sum()))
        self.tokens, self._open, self._next = _lay_all(
            packed, self._ids, self.tokens, self._open, self._next, self.block_tokens
        )
        self.spans += spans

    def mark(self) -> Mark:
        """The place where the prompt ends now."""
        return Mark(self.tokens, len(self.spans), self._open, self._next)

    def rewind(self, mark: Mark) -> list[Span]:
        """Cut back to a mark of this prompt; what stood after it."""
        removed = self.spans[mark.num_spans :]
        del self.spans[mark.num_spans :]
        self.tokens, self._open, self._next = mark.tokens, mark.open_id, mark.next_token
        self.kept_tokens = min(self.kept_tokens, self.tokens)
        return removed

    def clear(self) -> None:
        """Cut back to nothing."""
        self.rewind(Mark(0, 0, 0, -1))

    def keep(self) -> None:
        """From here on, count what changes."""
        self.kept_tokens = self.tokens

    def fork(self) -> "Prompt":
        """A prompt of its own that starts as this one is."""
        twin = Prompt(self.block_tokens)
        twin.tokens, twin._open, twin._next = self.tokens, self._open, self._next
        twin.spans = self.spans.copy()
        twin.kept_tokens = self.kept_tokens
        twin._ids = self._ids.copy()
        return twin

    def _make_room(self, tokens: int) -> None:
        needed = (self.tokens + tokens) // self.block_tokens
        if needed > self._ids.size:
            bigger = np.empty(max(needed, 2 * self._ids.size), dtype=np.int64)
            bigger[: self._ids.size] = self._ids
            self._ids = bigger


@numba.njit(cache=True)
def _mixed(identity: int, first: int, filled: int) -> int:
    mixed = (np.uint64(identity) * _MIX) ^ (np.uint64(first) * _FOLD) ^ np.uint64(filled)
    mixed ^= mixed >> np.uint64(29)
    mixed *= _FOLD
    mixed ^= mixed >> np.uint64(32)
    return np.int64(mixed | _TOP)  # type: ignore[return-value]


@numba.njit(cache=True)
def _lay(
    first: int, tokens: int, ids: Int64s, end: int, open_id: int, next_token: int, block_tokens: int
) -> tuple[int, int, int]:
    """Lay one span after `end` tokens; the new end, id of the open block, and number that would go on."""
    while tokens > 0:
        filled = end % block_tokens
        if filled == 0:
            open_id = first
        elif first != next_token:
            open_id = _mixed(open_id, first, filled)
        step = min(block_tokens - filled, tokens)
        if filled + step == block_tokens:
            ids[end // block_tokens] = open_id
        end += step
        first += step
        tokens -= step
        next_token = first
    return end, open_id, next_token


@numba.njit(cache=True)
def _lay_all(
    spans: Int64s, ids: Int64s, end: int, open_id: int, next_token: int, block_tokens: int
) -> tuple[int, int, int]:
    for index in range(spans.shape[0]):
        end, open_id, next_token = _lay(
            spans[index, 0], spans[index, 1], ids, end, open_id, next_token, block_tokens
        )
    return end, open_id, next_token
