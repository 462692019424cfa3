"""How many keys queries attend to: closed forms for each reach, for integers and for NumPy columns.

Queries of a prompt are at positions P + 1 to P + T, and each sees its own key. Sums over them are twice the
number of pairs, so that they stay whole. Each is a difference of sums from the start of the sequence:
S(P + T) - S(P).
"""

from typing import TYPE_CHECKING, TypeVar

from warmset.model.spec import Attention, Indexer

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    FloatColumn = npt.NDArray[np.float64]

Amount = TypeVar("Amount", int, "FloatColumn")


def twice_the_pairs(part: Attention, new: Amount, cached: Amount) -> Amount:
    """Twice the pairs of query and key that an attention of one layer computes for `new` on `cached` tokens.

    An index limits each query to its `top_k` entries.
    """
    if part.reach == "cross":
        return 2 * part.span_tokens * new
    if part.reach == "sliding":
        return _up_to(cached + new, part.span_tokens) - _up_to(cached, part.span_tokens)
    if part.reach == "chunked":
        return _in_chunks(cached + new, part.span_tokens) - _in_chunks(cached, part.span_tokens)
    top_k = None if part.indexer is None else part.indexer.top_k
    size = max(part.tokens_per_entry, 1)
    return _entries(cached + new, size, top_k) - _entries(cached, size, top_k)


def twice_the_index_pairs(indexer: Indexer, new: Amount, cached: Amount) -> Amount:
    """Twice the pairs of query and index key that are scored: all of the past."""
    return _entries(cached + new, indexer.tokens_per_key, None) - _entries(
        cached, indexer.tokens_per_key, None
    )


def decode_keys(part: Attention, context_tokens: int) -> int:
    """Entries that the next token of a sequence of that many tokens attends to."""
    if context_tokens < 1:
        return 0
    if part.reach == "cross":
        return part.span_tokens
    if part.reach == "sliding":
        return min(context_tokens, part.span_tokens)
    if part.reach == "chunked":
        return (context_tokens - 1) % part.span_tokens + 1
    entries = context_tokens // max(part.tokens_per_entry, 1)
    return entries if part.indexer is None else min(entries, part.indexer.top_k)


def index_keys(indexer: Indexer, context_tokens: int) -> int:
    """Index keys that the next token of a sequence of that many tokens is scored against."""
    return context_tokens // indexer.tokens_per_key


def _up_to(end: Amount, span: int) -> Amount:
    """Twice the sum of min(i, span) for i from 1 to `end`."""
    rising = _least(end, span)
    return rising * (rising + 1) + 2 * span * (end - rising)


def _in_chunks(end: Amount, size: int) -> Amount:
    """Twice the sum of (i - 1) mod size + 1 for i from 1 to `end`."""
    chunks = end // size
    rest = end - chunks * size
    return chunks * size * (size + 1) + rest * (rest + 1)


def _entries(end: Amount, size: int, top_k: int | None) -> Amount:
    """Twice the sum of min(i // size, top_k) for i from 1 to `end`."""
    rising = end if top_k is None else _least(end, size * top_k)
    full = rising // size
    twice = size * full * (full - 1) + 2 * full * (rising - full * size + 1)
    return twice if top_k is None else twice + 2 * top_k * (end - rising)


def _least(amount: Amount, bound: int) -> Amount:
    """The smaller one, for integers and for columns alike."""
    return (amount + bound - abs(amount - bound)) // 2
