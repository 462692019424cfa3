"""Bytes of caches and states that a decode step reads and writes."""

from collections.abc import Iterator
from typing import NamedTuple

from warmset.model.flops import equal_lengths
from warmset.model.kv_bytes import state_bytes
from warmset.model.layouts import KvLayout, entry_bytes
from warmset.model.pairs import decode_keys, index_keys
from warmset.model.spec import Attention, Cache, IndexKey, Layer, ModelSpec


class _Read(NamedTuple):
    """What an attention reads: its entries, and the index keys that it scores itself."""

    attention: Attention
    cache: Cache
    keys: Cache | None


def decode_kv_bytes_read(spec: ModelSpec, layout: KvLayout, context_tokens: int, batch_size: int = 1) -> int:
    """Bytes that one decode step moves for a batch of equally long sequences of `context_tokens` together.

    Of a model with full attention alone that is linear in `context_tokens` whatever the batch.
    """
    lengths = equal_lengths(batch_size, context_tokens)
    return sum(number * decode_kv_bytes_per_sequence(spec, layout, tokens) for tokens, number in lengths)


def decode_kv_bytes_per_sequence(spec: ModelSpec, layout: KvLayout, context_tokens: int) -> int:
    """Bytes that one decode step moves for one sequence of that many tokens: caches read, states both ways.

    A latent is read once for all heads; each GPU of a replica reads what it keeps. An index is read in full,
    and of what it chooses from no more than `top_k` entries. A layer without a cache of its own reads that
    of the nearest layer before it that keeps the same. The one token that is written is left out.

    Source: `docs/method.md`, Decode bytes.
    Raises: InputError when the layout is not defined for an entry.
    """
    if context_tokens < 1:
        return 0
    read = sum(_read_bytes(read, layout, context_tokens) for read in _reads(spec))
    return read + 2 * state_bytes(part for layer in spec.layers for part in layer.states)


def _read_bytes(read: _Read, layout: KvLayout, context_tokens: int) -> int:
    size = decode_keys(read.attention, context_tokens) * entry_bytes(read.cache.entry, layout)
    indexer = read.attention.indexer
    if read.keys is None or indexer is None or indexer.shared:
        return size
    return size + index_keys(indexer, context_tokens) * entry_bytes(read.keys.entry, layout)


def _reads(spec: ModelSpec) -> Iterator[_Read]:
    newest: dict[object, Cache] = {}
    for layer in spec.layers:
        newest |= {_key(cache): cache for cache in layer.caches}
        yield from _layer_reads(layer, newest)


def _layer_reads(layer: Layer, newest: dict[object, Cache]) -> Iterator[_Read]:
    for mixer in layer.mixers:
        for part in mixer.attentions:
            cache = newest.get((part.reach, part.span_tokens, max(part.tokens_per_entry, 1)))
            if cache is not None:
                yield _Read(part, cache, newest.get("index"))


def _key(cache: Cache) -> object:
    if isinstance(cache.entry, IndexKey):
        return "index"
    return cache.reach, cache.span_tokens, cache.tokens_per_entry
