"""Everything about the size of a model at once: KV, weights, arithmetic, one GPU, one engine."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import msgspec

from warmset.errors import InfeasibleError, InputError
from warmset.model.checkpoints import stated_formats
from warmset.model.engine_pools import BF16, EngineQuestion, EngineSize, size_engine
from warmset.model.flops import decode_flops_per_step, decode_weight_bytes_read, prefill_flops
from warmset.model.kv_bytes import KvBytes, cached_prefix_bytes, kv_bytes, sequence_bytes
from warmset.model.kv_reads import decode_kv_bytes_read
from warmset.model.layouts import KvLayout
from warmset.model.parameters import active_parameters, num_parameters
from warmset.model.placement import Placement, gpu_bytes, sequence_bytes_per_gpu
from warmset.model.spec import ModelSpec
from warmset.model.step import Step
from warmset.model.steps import field_steps, kv_steps, prefill_step, prefix_step, sequence_step, weight_steps
from warmset.model.weights import (
    WeightFormat,
    WeightFormats,
    weight_bytes,
    weight_bytes_per_gpu,
    weight_formats,
)
from warmset.units import format_bytes_binary

LARGEST_TENSOR_PARALLEL = 64
ONE_GPU = Placement()
UNSTATED = "the config does not say which format its weights are in: give --weights"


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeQuestion:
    """What is asked about a model.

    `layout`: `None` is bf16, and vLLM's own for the model in its pool. `cached_layout` is that of a cached
    prefix where it differs from the engine's. `weights`: `None` takes the checkpoint's own formats.
    """

    lengths: tuple[int, ...]
    layout: KvLayout | None = None
    cached_layout: KvLayout | None = None
    snapshot_tokens: int | None = None
    weights: WeightFormat | None = None
    batch_size: int = 1
    placement: Placement = ONE_GPU
    engine: EngineQuestion | None = None

    @property
    def kv_layout(self) -> KvLayout:
        """Of what a sequence holds."""
        return BF16 if self.layout is None else self.layout

    @property
    def prefix_layout(self) -> KvLayout:
        """Of a cached prefix."""
        return self.kv_layout if self.cached_layout is None else self.cached_layout


class KvSize(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a sequence's KV. A growth that is not whole is exact in binary."""

    growth_bytes_per_token: int | float
    window_bytes_per_token: int
    window_tokens: int
    state_bytes_per_sequence: int
    cross_bytes_per_input: int
    mtp_bytes_per_token: int | float


class DecodeSize(msgspec.Struct, frozen=True, kw_only=True):
    """One decode step of a batch, on all GPUs together."""

    flops: int
    weight_bytes: int | None
    kv_bytes: int


class GpuSize(msgspec.Struct, frozen=True, kw_only=True):
    """The fullest GPU. `replication_factor`: KV on all GPUs over the KV of the model."""

    num_gpus: int
    weight_bytes: int | None
    growth_bytes_per_token: int | float
    window_bytes_per_token: int
    state_bytes_per_sequence: int
    cross_bytes_per_input: int
    replication_factor: float
    sequence_bytes: dict[str, int]


RENAMED = {"num_parameters": "parameters", "num_active_parameters": "active_parameters"}


class ModelSize(msgspec.Struct, frozen=True, kw_only=True, rename=RENAMED):
    """The whole answer; lengths are keys of the dictionaries."""

    model: str
    cache_class: str
    num_layers: int
    kv_layout: str
    kv: KvSize
    sequence_bytes: dict[str, int]
    cached_prefix_bytes: dict[str, int]
    num_parameters: int
    num_active_parameters: int
    weight_format: str | None
    weight_bytes: int | None
    prefill_flops: dict[str, int]
    decode_step: dict[str, DecodeSize]
    per_gpu: GpuSize
    engine: EngineSize | None
    notes: tuple[str, ...]
    steps: tuple[Step, ...]


def size_model(spec: ModelSpec, question: SizeQuestion) -> ModelSize:
    """All sizes of a model for one question.

    Raises: InputError when the layout, the weights or the placement do not suit the model;
        UnsupportedModelError when the engine does not serve it; InfeasibleError when it does not fit the GPU.
    """
    formats = stated_formats(spec) if question.weights is None else weight_formats(question.weights)
    kv = kv_bytes(spec, question.kv_layout)
    gpu = _gpu_size(spec, question, formats)
    engine = None
    snapshot_tokens = question.snapshot_tokens
    if question.engine is not None:
        engine = _engine_size(spec, question, formats, question.engine)
        snapshot_tokens = engine.snapshot_tokens if snapshot_tokens is None else snapshot_tokens
    sequences = _by_length(question, lambda n: sequence_bytes(spec, n, question.kv_layout))
    prefixes = _by_length(
        question, lambda n: cached_prefix_bytes(spec, n, question.prefix_layout, snapshot_tokens)
    )
    return ModelSize(
        model=spec.name,
        cache_class=spec.cache_class,
        num_layers=spec.num_layers,
        kv_layout=question.kv_layout.name,
        kv=_kv_size(kv),
        sequence_bytes=sequences,
        cached_prefix_bytes=prefixes,
        num_parameters=num_parameters(spec),
        num_active_parameters=active_parameters(spec),
        weight_format=None if formats is None else format_words(formats),
        weight_bytes=None if formats is None else weight_bytes(spec, formats),
        prefill_flops=_by_length(question, lambda n: prefill_flops(spec, n, 0).total),
        decode_step={str(n): _decode_size(spec, question, formats, n) for n in question.lengths},
        per_gpu=gpu,
        engine=engine,
        notes=tuple(_notes(spec, question, kv, snapshot_tokens)),
        steps=_steps(spec, question, kv, snapshot_tokens, sequences, prefixes),
    )


def format_words(formats: WeightFormats) -> str:
    """The format of most linear layers, then the groups that have another."""
    usual = max(formats, key=formats.count)
    others = (
        f"{name} {group.replace('_', ' ')}" for group, name in formats._asdict().items() if name != usual
    )
    return ", ".join((usual, *others))


def exact_number(value: Fraction) -> int | float:
    """An integer where it is one; the denominators are powers of two, so a float holds the rest exactly."""
    return value.numerator if value.denominator == 1 else float(value)


def _by_length(question: SizeQuestion, size: Callable[[int], int]) -> dict[str, int]:
    return {str(length): size(length) for length in question.lengths}


def _steps(
    spec: ModelSpec,
    question: SizeQuestion,
    kv: KvBytes,
    snapshot_tokens: int | None,
    sequences: dict[str, int],
    prefixes: dict[str, int],
) -> tuple[Step, ...]:
    stored = kv_bytes(spec, question.prefix_layout)
    steps = [*field_steps(spec), *kv_steps(spec, question.kv_layout), *weight_steps(spec)]
    for tokens in question.lengths:
        steps += [
            sequence_step(kv, tokens, sequences[str(tokens)], question.kv_layout),
            prefix_step(stored, tokens, prefixes[str(tokens)], snapshot_tokens),
            prefill_step(spec, tokens),
        ]
    return tuple(steps)


def _kv_size(kv: KvBytes) -> KvSize:
    return KvSize(
        growth_bytes_per_token=exact_number(kv.growth_bytes_per_token),
        window_bytes_per_token=kv.window_bytes_per_token,
        window_tokens=kv.window_tokens,
        state_bytes_per_sequence=kv.state_bytes_per_sequence,
        cross_bytes_per_input=kv.cross_bytes_per_input,
        mtp_bytes_per_token=exact_number(kv.mtp_bytes_per_token),
    )


def _decode_size(
    spec: ModelSpec, question: SizeQuestion, formats: WeightFormats | None, length: int
) -> DecodeSize:
    batch = question.batch_size
    return DecodeSize(
        flops=decode_flops_per_step(spec, batch, batch * length).total,
        weight_bytes=None if formats is None else round(decode_weight_bytes_read(spec, formats, batch)),
        kv_bytes=decode_kv_bytes_read(spec, question.kv_layout, batch * length, batch),
    )


def _gpu_size(spec: ModelSpec, question: SizeQuestion, formats: WeightFormats | None) -> GpuSize:
    placement = question.placement
    kv = gpu_bytes(spec, question.kv_layout, placement)
    return GpuSize(
        num_gpus=placement.num_gpus,
        weight_bytes=None if formats is None else weight_bytes_per_gpu(spec, formats, placement),
        growth_bytes_per_token=exact_number(kv.growth_bytes_per_token),
        window_bytes_per_token=kv.window_bytes_per_token,
        state_bytes_per_sequence=kv.state_bytes_per_sequence,
        cross_bytes_per_input=kv.cross_bytes_per_input,
        replication_factor=float(kv.replication),
        sequence_bytes=_by_length(
            question, lambda n: sequence_bytes_per_gpu(spec, n, question.kv_layout, placement)
        ),
    )


def _engine_size(
    spec: ModelSpec, question: SizeQuestion, formats: WeightFormats | None, engine: EngineQuestion
) -> EngineSize:
    """The engine's pool, once the weights are known to leave a GPU some room."""
    placement = question.placement
    if engine.kv_memory_bytes is not None or engine.memory is None:
        return size_engine(spec, question.layout, placement, 0, engine)
    if formats is None:
        raise InputError(f"{spec.name}: {UNSTATED}")
    needed = weight_bytes_per_gpu(spec, formats, placement)
    usable = engine.usable_bytes - engine.expected_overhead_bytes
    if needed >= usable:
        raise InfeasibleError(
            f"{spec.name}: weights take {format_bytes_binary(needed)} of each GPU at "
            f"tensor_parallel={placement.tensor_parallel}, and {format_bytes_binary(max(usable, 0))} are "
            f"there: {_what_fits(spec, formats, placement, usable)}"
        )
    return size_engine(spec, question.layout, placement, needed, engine)


def _what_fits(spec: ModelSpec, formats: WeightFormats, placement: Placement, usable_bytes: int) -> str:
    size = 2 * placement.tensor_parallel
    heads = [a.num_heads for layer in spec.layers for mixer in layer.mixers for a in mixer.attentions]
    while size <= LARGEST_TENSOR_PARALLEL:
        if all(number % (size // placement.dp_attention) == 0 for number in heads):
            wider = msgspec.structs.replace(placement, tensor_parallel=size)
            if weight_bytes_per_gpu(spec, formats, wider) < usable_bytes:
                return f"tensor_parallel={size} fits, or smaller weights, or a larger GPU"
        size *= 2
    return "use smaller weights, pipeline parallelism or a larger GPU"


def _notes(spec: ModelSpec, question: SizeQuestion, kv: KvBytes, snapshot_tokens: int | None) -> list[str]:
    notes = []
    if question.weights is None and stated_formats(spec) is None:
        notes.append(UNSTATED)
    stored_bits = spec.quantization.kv_cache_bits if spec.quantization is not None else None
    if stored_bits == 8 and question.layout is None:
        notes.append(
            "the checkpoint asks for an fp8 KV cache, which engines take by default: --kv-layout fp8"
        )
    if kv.state_bytes_per_sequence and snapshot_tokens is None:
        notes.append(
            "cached prefix: with one state at its end; engines keep one every few hundred tokens, see "
            "--snapshot-tokens"
        )
    if kv.state_bytes_per_sequence and snapshot_tokens is not None:
        short = [length for length in question.lengths if 0 < length < snapshot_tokens]
        if short:
            notes.append(
                f"cached prefix: {short[0]:,} tokens are fewer than the {snapshot_tokens:,} between reuse "
                "points, so nothing of them can be taken up again"
            )
    if len(kv.windows) > 1:
        spans = ", ".join(f"{size:,} B/token up to {span:,} tokens" for span, size in kv.windows.items())
        notes.append(f"windows: {spans}")
    if spec.max_context_tokens is not None:
        beyond = [length for length in question.lengths if length > spec.max_context_tokens]
        if beyond:
            notes.append(
                f"{beyond[0]:,} tokens are beyond the model's context of {spec.max_context_tokens:,}"
            )
    return notes
