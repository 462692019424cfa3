"""Floating-point operations of prefill and decode, and the bytes that a decode step reads.

A multiply-add counts as two operations. Formulas: `docs/method.md`, FLOPs and Decode bytes.
"""

from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar, overload

from warmset.model.kv_bytes import sequence_bytes
from warmset.model.layouts import KvLayout
from warmset.model.parameters import (
    active_linear_parameters,
    count_parameters,
    expert_parameters,
    latent_expansion,
)
from warmset.model.spec import ModelSpec
from warmset.model.weights import BITS_PER_WEIGHT, UNQUANTIZED_BYTES, WeightFormat

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    FloatColumn = npt.NDArray[np.float64]
    TokenColumn = npt.NDArray[np.integer] | npt.NDArray[np.floating]

Amount = TypeVar("Amount", int, "FloatColumn")

BF16_BYTES = 2


class Flops(NamedTuple, Generic[Amount]):
    """Operations of weight multiplications and of attention, apart because they use a GPU differently."""

    gemm: Amount
    attention: Amount

    @property
    def total(self) -> Amount:
        """Both together."""
        return self.gemm + self.attention


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

    Formula: gemm = 2·T·N_act + 2·V·h + MLA: n·2·P·c·H·(d_nope + d_v);  attention = n·2·H·(d_k + d_v)·U
        with U = T·P + T·(T + 1)/2 pairs of query and key. Logits of one position; latent attention is
        un-absorbed, so keys and values of the cached tokens are expanded again.
    Source: `docs/method.md`, FLOPs.
    """
    if isinstance(new_tokens, int) and isinstance(cached_tokens, int):
        return Flops(*_prefill(spec, new_tokens, cached_tokens))
    return Flops(*_prefill(spec, _as_float(new_tokens), _as_float(cached_tokens)))


def _prefill(spec: ModelSpec, new: Amount, cached: Amount) -> tuple[Amount, Amount]:
    computes = new > 0
    logits = 2 * spec.vocab_size * spec.hidden_size
    expansion = 2 * spec.num_layers * latent_expansion(spec)
    gemm = 2 * active_linear_parameters(spec) * new + (logits + expansion * cached) * computes
    twice_the_pairs = 2 * new * cached + new * (new + 1)
    heads = spec.num_layers * spec.num_heads * (spec.key_head_size + spec.value_head_size)
    return gemm, heads * twice_the_pairs


def _as_float(tokens: "int | TokenColumn") -> "FloatColumn":
    import numpy as np

    return np.asarray(tokens, dtype=np.float64)


def decode_flops_per_step(spec: ModelSpec, batch_size: int, context_tokens: int) -> Flops[int]:
    """Operations of one decode step of `batch_size` sequences that hold `context_tokens` together.

    Formula: gemm = 2·b·(N_act + V·h);  attention = n·2·H·(d_k + d_v)·ΣL, MLA absorbed: n·2·H·(2c + r)·ΣL
    Source: `docs/method.md`, FLOPs.
    """
    gemm = 2 * batch_size * (active_linear_parameters(spec) + spec.vocab_size * spec.hidden_size)
    if spec.latent is None:
        width = spec.key_head_size + spec.value_head_size
    else:
        width = 2 * spec.latent.latent_size + spec.latent.rope_head_size
    return Flops(gemm, 2 * spec.num_layers * spec.num_heads * width * context_tokens)


def decode_weight_bytes_read(spec: ModelSpec, weight_format: WeightFormat, batch_size: int) -> float:
    """Bytes of weights that one decode step reads, on all GPUs of a replica together.

    All but the embedding table; of the routed experts those that at least one token is expected to choose.

    Formula: experts touched in a layer = E·(1 - (1 - k/E)^b), routing taken as uniform
    Source: `docs/method.md`, Decode bytes.
    """
    ffn, count = spec.feed_forward, count_parameters(spec)
    lm_head = spec.vocab_size * spec.hidden_size
    unquantized = UNQUANTIZED_BYTES * (lm_head + count.num_norms + count.num_router)
    touched = 0.0
    if ffn.num_experts:
        touched = ffn.num_experts * (1 - (1 - ffn.experts_per_token / ffn.num_experts) ** batch_size)
    linear = count.always_read + ffn.num_moe_layers * touched * expert_parameters(spec)
    return unquantized + linear * float(BITS_PER_WEIGHT[weight_format]) / 8


def decode_kv_bytes_read(spec: ModelSpec, layout: KvLayout, context_tokens: int) -> int:
    """Bytes of KV cache that one decode step reads for `context_tokens` of all its sequences together.

    A latent is read once for all heads; each GPU of a replica reads what it keeps (`replication_factor`).
    """
    return sequence_bytes(spec, context_tokens, layout)


def all_reduce_bytes(spec: ModelSpec, new_tokens: int) -> int:
    """Bytes that tensor parallelism sums over the GPUs: twice a layer, the hidden state of every new token.

    The traffic on the links is this times 2·(n - 1)/n for a ring of n GPUs.
    """
    return 2 * spec.num_layers * new_tokens * spec.hidden_size * BF16_BYTES
