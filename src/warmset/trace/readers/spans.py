"""Prompts whose text is gone: runs of tokens with the content they hold, and the ids of the blocks they fill.

A block's id is a hash of the pieces of runs that make it up: which content, from which of its tokens on, how
many. So prompts share ids as far as they hold the same content at the same place, and a run that only grows
keeps its leading blocks.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
UInt64s = npt.NDArray[np.uint64]
ContentHash = int
"""64 bits, without a sign, under the secret of an import."""

_HASH_BYTES = 8
# Source: splitmix64, the finaliser of Java's SplittableRandom.
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
_SECOND_FACTOR = np.uint64(0x94D049BB133111EB)


class ContentHasher:
    """Names content under the secret of an import."""

    def __init__(self, key: bytes) -> None:
        self._secret = hashlib.blake2b(key).digest()

    def hash(self, *parts: bytes | str) -> ContentHash:
        """The same parts give the same number; how a text is split into parts counts."""
        digest = hashlib.blake2b(digest_size=_HASH_BYTES, key=self._secret)
        for part in parts:
            data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
            digest.update(len(data).to_bytes(_HASH_BYTES, "little"))
            digest.update(data)
        return int.from_bytes(digest.digest(), "little")


class Span(NamedTuple):
    """A run of tokens of a prompt."""

    content: ContentHash
    tokens: int


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """A prompt: the first `kept_tokens` of another one, then spans of its own."""

    base: "Layout | None"
    kept_tokens: int
    spans: tuple[Span, ...]

    @property
    def tokens(self) -> int:
        """Tokens of the prompt."""
        return self.kept_tokens + sum(span.tokens for span in self.spans)


def laid_out(spans: Iterable[Span], base: Layout | None = None, kept_tokens: int | None = None) -> Layout:
    """A prompt of these spans, behind all of another one or its first `kept_tokens`."""
    kept = 0 if base is None else base.tokens if kept_tokens is None else kept_tokens
    return Layout(base if kept else None, kept, tuple(span for span in spans if span.tokens))


class BlockCutter:
    """Ids of blocks of `block_tokens` tokens, the last one of what is left.

    It remembers the last prompt, so that one which goes on from it costs only what is new.
    """

    def __init__(self, block_tokens: int) -> None:
        self._block_tokens = block_tokens
        self._last: Layout | None = None
        self._contents = np.empty(0, dtype=np.uint64)
        self._starts = np.empty(0, dtype=np.int64)
        self._ids = np.empty(0, dtype=np.int64)

    def ids(self, layout: Layout) -> Int64s:
        """Content ids, first to last."""
        if layout.base is None or layout.base is not self._last:
            self._forget()
            for layer in _from_root(layout):
                self._append(layer)
        else:
            self._append(layout)
        known = self._ids[: layout.kept_tokens // self._block_tokens]
        new = _folded(self._contents, self._starts, layout.tokens, known.size, self._block_tokens)
        self._last, self._ids = layout, np.concatenate((known, new))
        return self._ids

    def _forget(self) -> None:
        self._contents = self._contents[:0]
        self._starts = self._starts[:0]
        self._ids = self._ids[:0]

    def _append(self, layer: Layout) -> None:
        kept = int(np.searchsorted(self._starts, layer.kept_tokens))
        lengths = [span.tokens for span in layer.spans]
        starts = layer.kept_tokens + np.cumsum([0, *lengths], dtype=np.int64)[:-1]
        contents = np.array([span.content for span in layer.spans], dtype=np.uint64)
        self._contents = np.concatenate((self._contents[:kept], contents))
        self._starts = np.concatenate((self._starts[:kept], starts))


def _from_root(layout: Layout) -> list[Layout]:
    layers = [layout]
    while (base := layers[-1].base) is not None:
        layers.append(base)
    return layers[::-1]


def _folded(contents: UInt64s, starts: Int64s, tokens: int, first_block: int, block_tokens: int) -> Int64s:
    """Ids of the blocks from one on: each folds its pieces, one round for the n-th piece of all blocks."""
    position = np.arange(first_block * block_tokens, tokens, block_tokens, dtype=np.int64)
    end = np.minimum(position + block_tokens, tokens)
    span_end = np.append(starts[1:], tokens)
    folded = np.zeros(position.size, dtype=np.uint64)
    rest = np.arange(position.size)
    while rest.size:
        span = np.searchsorted(starts, position[rest], side="right") - 1
        stop = np.minimum(end[rest], span_end[span])
        for part in (contents[span], position[rest] - starts[span], stop - position[rest]):
            folded[rest] = _mixed(folded[rest] ^ part.astype(np.uint64))
        position[rest] = stop
        rest = rest[stop < end[rest]]
    return folded.view(np.int64)


def _mixed(values: UInt64s) -> UInt64s:
    values = values + _STEP
    values = (values ^ (values >> np.uint64(30))) * _FIRST_FACTOR
    values = (values ^ (values >> np.uint64(27))) * _SECOND_FACTOR
    mixed: UInt64s = values ^ (values >> np.uint64(31))
    return mixed
