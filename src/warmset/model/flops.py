"""Floating-point operations of prefill and decode, and the bytes that a decode step reads.

A multiply-add counts as two operations. Formulas: `docs/method.md`, FLOPs and Decode bytes.
"""

from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar, overload

from warmset.model.pairs import decode_keys, index_keys, twice_the_index_pairs, twice_the_pairs
from warmset.model.parameters import (
    active_linear_parameters,
    count_parameters,
    cross_parameters,
    expert_groups,
)
from warmset.model.spec import Attention, Layer, ModelSpec
from warmset.model.weights import (
    BITS_PER_WEIGHT,
    WeightFormat,
    WeightFormats,
    unquantized_bytes,
    weight_formats,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    FloatColumn = npt.NDArray[np.float64]
    TokenColumn = npt.NDArray[np.integer] | npt.NDArray[np.floating]

Amount = TypeVar("Amount", int, "FloatColumn")

BF16_BYTES = 2


class Flops(NamedTuple, Generic[Amount]):
    """Operations of weight multiplications and of attention, apart because they use a GPU differently.

    Recurrences and the scoring of index keys count as attention.
    """

    gemm: Amount
    attention: Amount

    @property
    def total(self) -> Amount:
        """Both together."""
        return self.gemm + self.attention


class _Work(NamedTuple):
    """What the FLOPs of a model hang on."""

    linear_parameters: int
    logits_flops: int
    """Of one position."""
    expansion_flops: int
    """Of one cached token whose latents are turned into keys and values again."""
    cross_flops: int
    """Of the keys and values of one encoder input."""
    scan_flops: int
    """Of one token."""
    attentions: tuple[tuple[Attention, int], ...]
    """Each with the number of layers that have it."""


@overload
def prefill_flops(spec: ModelSpec, new_tokens: int, cached_tokens: int) -> Flops[int]: ...
@overload
def prefill_flops(
    spec: ModelSpec, new_tokens: "TokenColumn", cached_tokens: "TokenColumn"
) -> "Flops[FloatColumn]": ...
def prefill_flops(
    spec: ModelSpec, new_tokens: "int | TokenColumn", cached_tokens: "int | TokenColumn"
) -> "Flops[int] | Flops[FloatColumn]":
    """Operations to compute the last `new_tokens` of a prompt whose first `cached_tokens` are in the cache.

    Exact integers for integers; float64 columns for NumPy columns, one row a request.

    Formula: gemm = 2·T·N_act + 2·V·h + MLA: 2·P·c·H·(d_nope + d_v) a layer;
        attention = 2·H·(d_k + d_v)·U a layer, with U pairs of query and key: T·P + T·(T + 1)/2 with full
        attention, fewer with a window, a chunk, compressed entries or an index that chooses; the index adds
        2·H_i·d_i for each pair that it scores. Logits of one position. Latent attention is un-absorbed, so
        keys and values of the cached tokens are expanded again; where an index chooses it is absorbed,
        2·H·(2c + r) a pair. The keys of an encoder input are computed where nothing is cached.
    Source: `docs/method.md`, FLOPs.
    """
    work = _work(spec)
    if isinstance(new_tokens, int) and isinstance(cached_tokens, int):
        return Flops(*_prefill(work, new_tokens, cached_tokens))
    return Flops(*_prefill(work, _as_float(new_tokens), _as_float(cached_tokens)))


def _prefill(work: _Work, new: Amount, cached: Amount) -> tuple[Amount, Amount]:
    once = work.logits_flops + work.expansion_flops * cached + work.cross_flops * (cached == 0)
    gemm = 2 * work.linear_parameters * new + once * (new > 0)
    attention = work.scan_flops * new
    for part, num_layers in work.attentions:
        attention = attention + num_layers * _pair_flops(part) * twice_the_pairs(part, new, cached)
        if part.indexer is not None and not part.indexer.shared:
            scores = part.indexer.num_heads * part.indexer.key_size
            attention = attention + num_layers * scores * twice_the_index_pairs(part.indexer, new, cached)
    return gemm, attention


def _as_float(tokens: "int | TokenColumn") -> "FloatColumn":
    import numpy as np

    return np.asarray(tokens, dtype=np.float64)


@lru_cache(maxsize=64)
def _work(spec: ModelSpec) -> _Work:
    parts = Counter(part for layer in spec.layers for mixer in layer.mixers for part in mixer.attentions)
    spans = {part.span_tokens for part in parts if part.reach == "cross"}
    return _Work(
        linear_parameters=active_linear_parameters(spec),
        logits_flops=2 * spec.vocab_size * spec.hidden_size,
        expansion_flops=sum(number * _expansion_flops(part) for part, number in parts.items()),
        cross_flops=2 * cross_parameters(spec) * max(spans, default=0),
        scan_flops=sum(mixer.scan_flops_per_token for layer in spec.layers for mixer in layer.mixers),
        attentions=tuple(parts.items()),
    )


def _expansion_flops(part: Attention) -> int:
    """Of one cached latent of one layer: the weights of `kv_b`, c·H·(d_nope + d_v), twice."""
    if part.latent is None or part.indexer is not None:
        return 0
    width = part.key_size - part.latent.rope_size + part.value_size
    return 2 * part.latent.latent_size * part.num_heads * width


def _pair_flops(part: Attention, *, is_absorbed: bool = False) -> int:
    """Half the operations of one pair of query and key, over all heads of one layer."""
    if part.latent is not None and (is_absorbed or part.indexer is not None):
        return part.num_heads * (2 * part.latent.latent_size + part.latent.rope_size)
    return part.num_heads * (part.key_size + part.value_size)


def decode_flops_per_step(spec: ModelSpec, batch_size: int, context_tokens: int) -> Flops[int]:
    """Operations of one decode step of `batch_size` equally long sequences of `context_tokens` together.

    Formula: gemm = 2·b·(N_act + V·h);  attention = 2·H·(d_k + d_v) for each key that a layer attends to,
        MLA absorbed: 2·H·(2c + r); an index that chooses: 2·H_i·d_i for each of its keys.
    Source: `docs/method.md`, FLOPs.
    """
    work = _work(spec)
    gemm = batch_size * (2 * work.linear_parameters + work.logits_flops)
    lengths = equal_lengths(batch_size, context_tokens)
    attention = sum(number * _attention_flops(work, tokens) for tokens, number in lengths)
    return Flops(gemm, attention + batch_size * work.scan_flops)


def _attention_flops(work: _Work, context_tokens: int) -> int:
    flops = 0
    for part, num_layers in work.attentions:
        flops += num_layers * 2 * _pair_flops(part, is_absorbed=True) * decode_keys(part, context_tokens)
        if part.indexer is not None and not part.indexer.shared:
            scores = 2 * part.indexer.num_heads * part.indexer.key_size
            flops += num_layers * scores * index_keys(part.indexer, context_tokens)
    return flops


def equal_lengths(batch_size: int, context_tokens: int) -> tuple[tuple[int, int], ...]:
    """Tokens and number of the sequences of a batch that are as equally long as can be."""
    if batch_size < 1:
        return ()
    length, longer = divmod(context_tokens, batch_size)
    return (length, batch_size - longer), (length + 1, longer)


def decode_weight_bytes_read(
    spec: ModelSpec, weight_format: WeightFormat | WeightFormats, batch_size: int
) -> float:
    """Bytes of weights that one decode step reads, on all GPUs of a replica together.

    All but the embedding and other tables; of the routed experts those that at least one token is expected
    to choose.

    Formula: experts touched in a layer = E·(1 - (1 - k/E)^b), routing taken as uniform
    Source: `docs/method.md`, Decode bytes.
    """
    formats, count = weight_formats(weight_format), count_parameters(spec)
    attention = count.num_attention + count.num_kv_projection + count.num_replicated
    attention -= cross_parameters(spec)
    bits = (
        attention * BITS_PER_WEIGHT[formats.attention]
        + count.num_dense_ffn * BITS_PER_WEIGHT[formats.dense]
        + count.num_shared_experts * BITS_PER_WEIGHT[formats.shared_experts]
    )
    lm_head = spec.vocab_size * spec.hidden_size
    rest = unquantized_bytes(formats) * (lm_head + count.num_small + count.num_router)
    experts = 0.0
    for group in expert_groups(spec):
        touched = group.num_experts * (1 - (1 - group.experts_per_token / group.num_experts) ** batch_size)
        experts += group.num_layers * touched * group.num_parameters
    return rest + float(bits) / 8 + experts * float(BITS_PER_WEIGHT[formats.routed_experts]) / 8


def all_reduce_bytes(spec: ModelSpec, new_tokens: int) -> int:
    """Bytes that tensor parallelism sums over the GPUs: the hidden state of every new token, for each part.

    A layer has two such parts, its mixers and its feed-forward part, or one of them. The traffic on the
    links is this times 2·(n - 1)/n for a ring of n GPUs.
    """
    return sum(_num_sums(layer) for layer in spec.layers) * new_tokens * spec.hidden_size * BF16_BYTES


def _num_sums(layer: Layer) -> int:
    return bool(layer.mixers) + (layer.feed_forward is not None)
