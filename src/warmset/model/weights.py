"""Bytes of the weights, whole and on one GPU."""

from fractions import Fraction
from math import ceil
from typing import Literal

from warmset.model.parameters import ParameterCount, count_parameters
from warmset.model.placement import kv_heads_per_gpu
from warmset.model.spec import ModelSpec

WeightFormat = Literal["bf16", "fp16", "fp8", "int8", "int4", "mxfp4", "nvfp4"]

BITS_PER_WEIGHT: dict[WeightFormat, Fraction] = {
    "bf16": Fraction(16),
    "fp16": Fraction(16),
    "fp8": 8 + Fraction(32, 128 * 128),  # one fp32 scale for each block of 128 x 128
    "int8": Fraction(8),  # one scale a channel, negligible
    "int4": 4 + Fraction(16 + 4, 128),  # AWQ and GPTQ: a 16-bit scale and a 4-bit zero for 128 weights
    "mxfp4": 4 + Fraction(8, 32),  # an 8-bit exponent for 32 weights
    "nvfp4": 4 + Fraction(8, 16),  # an fp8 scale for 16 weights
}
"""Bits of one weight with its share of the scales. Formats as OCP MX, NVFP4, AWQ and GPTQ define them."""

UNQUANTIZED_BYTES = 2
"""Embedding, LM head, norms and router stay in bf16."""

VOCAB_ROWS = 64
"""The engines pad the vocabulary to a multiple of 64 rows on each GPU."""


def weight_bytes(spec: ModelSpec, weight_format: WeightFormat) -> int:
    """Bytes of all weights of one replica: linear layers in the format, the rest in bf16."""
    count = count_parameters(spec)
    quantized = sum(count) - count.unquantized
    return ceil(quantized * BITS_PER_WEIGHT[weight_format] / 8) + UNQUANTIZED_BYTES * count.unquantized


def weight_bytes_per_gpu(spec: ModelSpec, weight_format: WeightFormat, tensor_parallel: int) -> int:
    """Bytes of the weights on each GPU of one replica.

    Linear layers and experts are divided over the GPUs, KV projections over no more GPUs than there are
    KV heads; down-projections of latents, router and norms are on every GPU.

    Source: `docs/method.md`, Weights; vLLM 0.33.0 shards and replicates so.
    Raises: InputError when the heads do not divide.
    """
    kv_heads = kv_heads_per_gpu(spec, tensor_parallel)
    count = count_parameters(spec)
    quantized = (
        Fraction(count.always_read + count.num_routed_experts, tensor_parallel)
        + count.num_kv_projection * (Fraction(kv_heads, spec.num_kv_heads) - Fraction(1, tensor_parallel))
        + count.num_latent_projection * (1 - Fraction(1, tensor_parallel))
    )
    rest = _embedding_rows(spec, count, tensor_parallel) * spec.hidden_size
    rest += count.num_positions + count.num_norms + count.num_router
    return ceil(quantized * BITS_PER_WEIGHT[weight_format] / 8) + UNQUANTIZED_BYTES * rest


def _embedding_rows(spec: ModelSpec, count: ParameterCount, tensor_parallel: int) -> int:
    rows = VOCAB_ROWS * ceil(Fraction(spec.vocab_size, VOCAB_ROWS * tensor_parallel))
    return rows * (2 if count.num_lm_head else 1)
