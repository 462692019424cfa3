"""Where the KV cache of one model replica lies: tensor, pipeline and context parallelism, DP attention."""

from fractions import Fraction
from itertools import accumulate
from math import ceil
from typing import NamedTuple

import msgspec

from warmset.errors import InputError
from warmset.model.kv_bytes import growth_bytes_per_token, kv_bytes, sequence_bytes
from warmset.model.layouts import KvLayout, kv_layout
from warmset.model.spec import Cache, KvHeads, Layer, Mixer, ModelSpec, StatePart

BF16 = kv_layout("bf16")


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """How a replica is spread over `tensor_parallel` times `pipeline_parallel` GPUs.

    DP attention splits a tensor-parallel group into that many groups, each with requests of its own. Decode
    context parallelism stripes the tokens of a sequence over GPUs of one group.

    Raises: InputError when a size is below 1, or does not divide what it splits.
    """

    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    dp_attention: int = 1
    decode_context_parallel: int = 1

    def __post_init__(self) -> None:
        """Refuses what every engine refuses, whatever the model."""
        for name in self.__struct_fields__:
            if getattr(self, name) < 1:
                raise InputError(f"{name}={getattr(self, name)}: it must be at least 1")
        if self.tensor_parallel % self.dp_attention:
            raise InputError(
                f"dp_attention={self.dp_attention} does not divide tensor_parallel={self.tensor_parallel}: "
                f"choose a divisor of {self.tensor_parallel}"
            )
        if self.attention_parallel % self.decode_context_parallel:
            raise InputError(
                f"decode_context_parallel={self.decode_context_parallel} does not divide the "
                f"{self.attention_parallel} GPUs that share attention: choose a divisor of it"
            )

    @property
    def num_gpus(self) -> int:
        """GPUs of one replica."""
        return self.tensor_parallel * self.pipeline_parallel

    @property
    def attention_parallel(self) -> int:
        """GPUs that share the heads of one request."""
        return self.tensor_parallel // self.dp_attention


class GpuBytes(NamedTuple):
    """The most that any GPU keeps of each part, and the KV of all that share a request."""

    growth_bytes_per_token: Fraction
    window_bytes_per_token: int
    state_bytes_per_sequence: int
    cross_bytes_per_input: int
    replication: Fraction
    """Growth on all GPUs together over the growth of the model; 1 where nothing is kept twice."""


def check_placement(spec: ModelSpec, placement: Placement) -> None:
    """Refuse what the model cannot take.

    Source: vLLM 0.33.0 and SGLang 0.5.23 refuse the same splits.
    Raises: InputError with what does divide.
    """
    if placement.pipeline_parallel > spec.num_layers:
        raise InputError(
            f"{spec.name}: pipeline_parallel={placement.pipeline_parallel} is more than its layers"
        )
    size = placement.attention_parallel
    for mixer in {mixer for layer in spec.layers for mixer in layer.mixers}:
        _check_mixer(spec, mixer, size, placement.decode_context_parallel)


def stage_ranges(num_layers: int, pipeline_parallel: int) -> list[range]:
    """Layers of each pipeline stage: equal shares, the rest to the stages just before the last.

    Source: vLLM 0.33.0 distributed/utils.py get_pp_indices.
    Raises: InputError when there are more stages than layers.

    >>> [len(stage) for stage in stage_ranges(61, 4)]
    [15, 15, 16, 15]
    """
    if pipeline_parallel > num_layers:
        raise InputError(f"pipeline_parallel={pipeline_parallel}: there are only {num_layers} layers")
    share, rest = divmod(num_layers, pipeline_parallel)
    counts = [share] * pipeline_parallel
    for position in range(2, rest + 2):
        counts[-position] += 1
    ends = list(accumulate(counts))
    return [range(end - count, end) for end, count in zip(ends, counts, strict=True)]


def stage_layers(spec: ModelSpec, pipeline_parallel: int) -> list[tuple[Layer, ...]]:
    """The layers of each pipeline stage.

    Raises: InputError when there are more stages than layers.
    """
    stages = stage_ranges(spec.num_layers, pipeline_parallel)
    return [spec.layers[stage.start : stage.stop] for stage in stages]


def stage_specs(spec: ModelSpec, placement: Placement) -> list[ModelSpec]:
    """The model as a GPU of each pipeline stage sees it: its stage's layers, its share of heads and states.

    Sizes of these models are sizes on that GPU, tokens striped by context parallelism left aside.

    Raises: InputError when the model cannot be placed so.
    """
    check_placement(spec, placement)
    size = placement.attention_parallel
    drafts = tuple(_layer_on_rank(layer, size) for layer in spec.mtp_layers)
    return [
        msgspec.structs.replace(
            spec, layers=tuple(_layer_on_rank(layer, size) for layer in stage), mtp_layers=drafts
        )
        for stage in stage_layers(spec, placement.pipeline_parallel)
    ]


def gpu_bytes(spec: ModelSpec, layout: KvLayout, placement: Placement) -> GpuBytes:
    """The most that any GPU of a replica keeps of each part of the KV.

    Latents, compressed entries and index keys are on every GPU of a stage.

    Raises: InputError when the model cannot be placed so.
    """
    stages = [kv_bytes(stage, layout) for stage in stage_specs(spec, placement)]
    dcp = placement.decode_context_parallel
    whole = growth_bytes_per_token(spec, layout)
    everywhere = sum(kv.growth_bytes_per_token for kv in stages) * placement.attention_parallel / dcp
    return GpuBytes(
        growth_bytes_per_token=max(kv.growth_bytes_per_token for kv in stages) / dcp,
        window_bytes_per_token=max(kv.window_bytes_per_token for kv in stages),
        state_bytes_per_sequence=max(kv.state_bytes_per_sequence for kv in stages),
        cross_bytes_per_input=max(kv.cross_bytes_per_input for kv in stages),
        replication=Fraction(everywhere) / whole if whole else Fraction(1),
    )


def sequence_bytes_per_gpu(spec: ModelSpec, tokens: int, layout: KvLayout, placement: Placement) -> int:
    """Bytes of a running sequence on the GPU that keeps the most of it; of a striped one, with most tokens.

    Raises: InputError when the model cannot be placed so.
    """
    dcp = placement.decode_context_parallel
    return max(_striped_bytes(stage, tokens, layout, dcp) for stage in stage_specs(spec, placement))


def growth_bytes_per_token_per_gpu(spec: ModelSpec, layout: KvLayout, tensor_parallel: int) -> int:
    """Bytes that one more token adds on each GPU under tensor parallelism alone, rounded up.

    Raises: InputError when the heads do not divide.
    """
    return ceil(gpu_bytes(spec, layout, Placement(tensor_parallel=tensor_parallel)).growth_bytes_per_token)


def replication_factor(spec: ModelSpec, layout: KvLayout, tensor_parallel: int) -> Fraction:
    """KV bytes on all GPUs together over the bytes of the model: 1 until there are more GPUs than KV heads.

    Raises: InputError when the heads do not divide.
    """
    return gpu_bytes(spec, layout, Placement(tensor_parallel=tensor_parallel)).replication


def heads_on_rank(num_heads: int, size: int) -> int:
    """KV heads that each of `size` GPUs keeps: its share, or a copy of one where there are more GPUs."""
    return max(1, num_heads // size)


def part_on_rank(part: StatePart, size: int) -> StatePart:
    """A state as each of `size` GPUs keeps it: its share of the units, at least one."""
    if not part.sharded:
        return part
    return msgspec.structs.replace(part, num_units=-(-part.num_units // size))


def cache_on_rank(cache: Cache, size: int) -> Cache:
    """A cache as each of `size` GPUs keeps it."""
    if not isinstance(cache.entry, KvHeads):
        return cache
    heads = heads_on_rank(cache.entry.num_heads, size)
    return msgspec.structs.replace(cache, entry=msgspec.structs.replace(cache.entry, num_heads=heads))


def _check_mixer(spec: ModelSpec, mixer: Mixer, size: int, dcp: int) -> None:
    for attention in mixer.attentions:
        if attention.num_heads % size:
            raise InputError(
                f"{spec.name}: {attention.num_heads} heads cannot be split over tensor_parallel={size}: "
                f"choose a divisor of {attention.num_heads}"
            )
    for part in mixer.states:
        more, fewer = max(part.num_units, size), min(part.num_units, size)
        if part.sharded and more % fewer:
            raise InputError(
                f"{spec.name}: {part.num_units:,} units of its {part.role} state cannot be split over "
                f"tensor_parallel={size}: choose a divisor of {part.num_units:,}"
            )
    for cache in mixer.caches:
        heads = cache.entry.num_heads if isinstance(cache.entry, KvHeads) else 1
        if max(heads, size) % min(heads, size):
            raise InputError(
                f"{spec.name}: {heads} KV heads cannot be split over tensor_parallel={size}: "
                "choose a divisor or a multiple of the KV heads"
            )
        copies = max(1, size // heads)
        if cache.reach == "full" and (size % dcp or copies % dcp):
            raise InputError(
                f"{spec.name}: decode_context_parallel={dcp} stripes tokens over copies of a KV head, and "
                f"tensor_parallel={size} makes {copies} of each of {heads}: choose a divisor of {copies}, or "
                "a larger tensor_parallel"
            )


def _layer_on_rank(layer: Layer, size: int) -> Layer:
    return msgspec.structs.replace(layer, mixers=tuple(_mixer_on_rank(mixer, size) for mixer in layer.mixers))


def _mixer_on_rank(mixer: Mixer, size: int) -> Mixer:
    return msgspec.structs.replace(
        mixer,
        caches=tuple(cache_on_rank(cache, size) for cache in mixer.caches),
        states=tuple(part_on_rank(part, size) for part in mixer.states),
    )


def _striped_bytes(spec: ModelSpec, tokens: int, layout: KvLayout, dcp: int) -> int:
    if dcp == 1:
        return sequence_bytes(spec, tokens, layout)
    fixed = sequence_bytes(spec, tokens, layout) - _growing_bytes(spec, tokens, layout)
    return fixed + _growing_bytes(spec, -(-tokens // dcp), layout)


def _growing_bytes(spec: ModelSpec, tokens: int, layout: KvLayout) -> int:
    kv = kv_bytes(spec, layout)
    fixed = kv.state_bytes_per_sequence + sum(min(tokens, span) * size for span, size in kv.windows.items())
    return sequence_bytes(spec, tokens, layout) - fixed - kv.cross_bytes_per_input
