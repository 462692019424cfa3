"""Bytes of the weights, whole and on one GPU, in one format or as a checkpoint mixes them."""

from fractions import Fraction
from math import ceil
from typing import Literal, NamedTuple

from warmset.errors import InputError
from warmset.model.parameters import count_parameters
from warmset.model.placement import Placement, check_placement, heads_on_rank, stage_layers
from warmset.model.spec import FeedForward, KvHeads, Layer, Mixer, ModelSpec

WeightFormat = Literal["bf16", "fp16", "fp32", "fp8", "int8", "int4", "int4_g32", "mxfp4", "nvfp4"]

BITS_PER_WEIGHT: dict[WeightFormat, Fraction] = {
    "bf16": Fraction(16),
    "fp16": Fraction(16),
    "fp32": Fraction(32),
    "fp8": 8 + Fraction(32, 128 * 128),  # one fp32 scale for each block of 128 x 128
    "int8": Fraction(8),  # one scale a channel, negligible
    "int4": 4 + Fraction(16 + 4, 128),  # AWQ and GPTQ: a 16-bit scale and a 4-bit zero for 128 weights
    "int4_g32": 4 + Fraction(16, 32),  # compressed-tensors as Kimi has it: a 16-bit scale for 32 weights
    "mxfp4": 4 + Fraction(8, 32),  # an 8-bit exponent for 32 weights
    "nvfp4": 4 + Fraction(8, 16),  # an fp8 scale for 16 weights
}
"""Bits of one weight with its share of the scales. Formats as OCP MX, NVFP4, AWQ and GPTQ define them."""

UNQUANTIZED_BYTES = 2
"""Embedding, LM head, norms and router stay in bf16 unless all is in fp32."""

VOCAB_ROWS = 64
"""The engines pad the vocabulary to a multiple of 64 rows on each GPU."""


class WeightFormats(NamedTuple):
    """The format of each group of linear layers; embedding, LM head, norms and router are in 16 bits."""

    attention: WeightFormat
    dense: WeightFormat
    shared_experts: WeightFormat
    routed_experts: WeightFormat


def weight_formats(weight_format: WeightFormat | WeightFormats) -> WeightFormats:
    """One format for all linear layers, or the formats as they are."""
    return weight_format if isinstance(weight_format, WeightFormats) else WeightFormats(*[weight_format] * 4)


def unquantized_bytes(formats: WeightFormats) -> int:
    """Bytes of a weight outside the linear layers."""
    return 4 if set(formats) == {"fp32"} else UNQUANTIZED_BYTES


class _Split(NamedTuple):
    """How many GPUs divide what, and the KV heads of mixers that keep no cache of their own."""

    tensor_parallel: int
    attention_ranks: int
    expert_parallel: int
    num_kv_heads: int


def weight_bytes(spec: ModelSpec, weight_format: WeightFormat | WeightFormats) -> int:
    """Bytes of all weights of one replica: linear layers in the format, the rest in bf16. No MTP layers."""
    formats, count = weight_formats(weight_format), count_parameters(spec)
    attention = count.num_attention + count.num_kv_projection + count.num_replicated
    bits = (
        attention * BITS_PER_WEIGHT[formats.attention]
        + count.num_dense_ffn * BITS_PER_WEIGHT[formats.dense]
        + count.num_shared_experts * BITS_PER_WEIGHT[formats.shared_experts]
        + count.num_routed_experts * BITS_PER_WEIGHT[formats.routed_experts]
    )
    return ceil(bits / 8) + unquantized_bytes(formats) * count.unquantized


def weight_bytes_per_gpu(
    spec: ModelSpec,
    weight_format: WeightFormat | WeightFormats,
    placement: Placement,
    *,
    expert_parallel: int = 1,
) -> int:
    """Bytes of the weights on the fullest GPU of a replica.

    Linear layers are divided over the GPUs, KV projections over no more of them than there are KV heads;
    down-projections of latents, indexers, router and norms are on every GPU. With `dp_attention` that many
    groups of GPUs have attention and embedding each for itself. With `expert_parallel` a GPU has whole
    experts, or parts of whole ones. A stage of the pipeline has its layers, the first the embedding too and
    the last the LM head.

    Source: `docs/method.md`, Weights; vLLM 0.33.0 and SGLang 0.5.23 shard and replicate so.
    Raises: InputError when heads, layers or the parallel sizes do not divide as they must.
    """
    check_placement(spec, placement)
    tensor_parallel = placement.tensor_parallel
    if expert_parallel < 1 or tensor_parallel % expert_parallel:
        raise InputError(
            f"{spec.name}: expert_parallel={expert_parallel} does not divide "
            f"tensor_parallel={tensor_parallel}: choose a divisor of it"
        )
    split = _Split(tensor_parallel, placement.attention_parallel, expert_parallel, _most_kv_heads(spec))
    formats, stages = weight_formats(weight_format), stage_layers(spec, placement.pipeline_parallel)
    own = [sum((_layer_bytes(layer, formats, split) for layer in stage), Fraction(0)) for stage in stages]
    own[0] += unquantized_bytes(formats) * _first_parameters(spec, split)
    is_shared_table = spec.tied_embeddings and placement.pipeline_parallel == 1
    own[-1] += unquantized_bytes(formats) * _last_parameters(spec, split, is_shared_table=is_shared_table)
    return max(map(ceil, own))


def _layer_bytes(layer: Layer, formats: WeightFormats, split: _Split) -> Fraction:
    ffn = layer.feed_forward or FeedForward()
    ranks_per_expert = split.tensor_parallel // split.expert_parallel
    experts = Fraction(-(-ffn.num_experts // split.expert_parallel), ranks_per_expert)
    attention = sum((_mixer_share(mixer, split) for mixer in layer.mixers), Fraction(0))
    small = layer.norm_parameters + sum(mixer.small_parameters for mixer in layer.mixers)
    bits = (
        attention * BITS_PER_WEIGHT[formats.attention]
        + Fraction(ffn.dense_parameters, split.tensor_parallel) * BITS_PER_WEIGHT[formats.dense]
        + Fraction(ffn.shared_parameters, split.tensor_parallel) * BITS_PER_WEIGHT[formats.shared_experts]
        + experts * ffn.expert_parameters * BITS_PER_WEIGHT[formats.routed_experts]
    )
    return bits / 8 + unquantized_bytes(formats) * (small + ffn.router_parameters)


def _mixer_share(mixer: Mixer, split: _Split) -> Fraction:
    """Weights of a mixer's linear layers on one GPU."""
    num_heads = _kv_heads(mixer) or split.num_kv_heads
    kept = Fraction(heads_on_rank(num_heads, split.attention_ranks), num_heads)
    own = Fraction(mixer.split_parameters, split.attention_ranks) + mixer.kv_parameters * kept
    return own + mixer.replicated_parameters


def _first_parameters(spec: ModelSpec, split: _Split) -> Fraction:
    embedding = _padded_rows(spec.vocab_size, split.attention_ranks) + spec.num_position_embeddings
    return embedding * spec.hidden_size + Fraction(spec.table_parameters, split.tensor_parallel)


def _last_parameters(spec: ModelSpec, split: _Split, *, is_shared_table: bool) -> int:
    rows = 0 if is_shared_table else _padded_rows(spec.vocab_size, split.tensor_parallel)
    return (rows + 1) * spec.hidden_size  # and the last norm


def _padded_rows(num_rows: int, num_ranks: int) -> int:
    return VOCAB_ROWS * -(-num_rows // (VOCAB_ROWS * num_ranks))


def _kv_heads(mixer: Mixer) -> int:
    heads = (part.entry.num_heads for part in mixer.caches if isinstance(part.entry, KvHeads))
    return max(heads, default=0)


def _most_kv_heads(spec: ModelSpec) -> int:
    return max((_kv_heads(mixer) for layer in spec.layers for mixer in layer.mixers), default=0) or 1
