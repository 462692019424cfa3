"""What an engine makes of the memory that weights leave: blocks, tokens in the pool, concurrency."""

from fractions import Fraction
from typing import Literal

import msgspec

from warmset.errors import InfeasibleError, InputError
from warmset.facts import Fact
from warmset.model.engines.sglang import SglangSettings, sglang_budget_bytes, sglang_pools
from warmset.model.engines.vllm import (
    VllmSettings,
    available_kv_bytes,
    capability_of,
    default_batched_tokens,
    vllm_pool,
)
from warmset.model.engines.vllm_families import engine_layout
from warmset.model.engines.vllm_types import Capability, Release
from warmset.model.layouts import KvLayout, kv_layout
from warmset.model.placement import Placement, sequence_bytes_per_gpu
from warmset.model.spec import ModelSpec
from warmset.model.step import Step
from warmset.units import format_bytes_binary

GIB = 2**30
LARGE_CARD_BYTES = 80 * GIB
"""Where no card is named."""

OVERHEAD_BYTES = 2 * GIB
LEAST_OVERHEAD_BYTES, MOST_OVERHEAD_BYTES = 1 * GIB, 3 * GIB
"""Activations, graphs and libraries of one GPU: measured at start, 1 to 3 GiB are normal; assumed."""

ENDS: tuple[Literal["low", "high"], ...] = ("low", "high")
BF16 = kv_layout("bf16")

DEFAULT_SHARE = {"physics": Fraction(1), "vllm": Fraction(92, 100), "sglang": Fraction(88, 100)}
"""`--gpu-memory-utilization` of vLLM 0.33.0; `--mem-fraction-static` of SGLang follows the card, 0.88 is
assumed."""


class EngineQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """One engine on one kind of GPU.

    `kv_memory_bytes` is what is left for KV on each GPU, where it is known from a log; else it follows from
    `memory`, the share that the engine may use, the weights and an overhead, 1 to 3 GiB where none is given.
    """

    name: Literal["physics", "vllm", "sglang"]
    gpu_name: str = ""
    memory: Fact | None = None
    memory_share: Fraction | None = None
    overhead_bytes: int | None = None
    kv_memory_bytes: int | None = None
    context_tokens: int | None = None
    batched_tokens: int | None = None
    prefix_caching: bool | None = None
    hybrid_manager: bool = True
    max_running_requests: int | None = None
    vllm_release: Release = "0.33.0"
    num_speculative_tokens: int = 0

    @property
    def share(self) -> Fraction:
        """Of the memory that the engine may use."""
        return self.memory_share if self.memory_share is not None else DEFAULT_SHARE[self.name]

    @property
    def capability(self) -> Capability:
        """The kind of the card, which decides kernels and so pages; Hopper where no card is named."""
        return capability_of(self.gpu_name) if self.gpu_name else "sm90"

    @property
    def usable_bytes(self) -> int:
        """Of one GPU: the share of its memory."""
        return 0 if self.memory is None else int(int(self.memory.value) * self.share)

    @property
    def expected_overhead_bytes(self) -> int:
        """As given, or the middle of what is normal."""
        return OVERHEAD_BYTES if self.overhead_bytes is None else self.overhead_bytes

    def available_bytes(self, weight_bytes: int, end: Literal["low", "middle", "high"]) -> int:
        """Memory for KV on a GPU as the engine counts it, at one end of what is not known or in the middle.

        Raises: InfeasibleError when nothing is left.
        """
        if self.kv_memory_bytes is not None or self.memory is None:
            return self.kv_memory_bytes or 0
        memory = {"low": self.memory.least, "middle": self.memory.value, "high": self.memory.most}[end]
        overhead = {"low": MOST_OVERHEAD_BYTES, "middle": OVERHEAD_BYTES, "high": LEAST_OVERHEAD_BYTES}[end]
        if self.overhead_bytes is not None:
            overhead = self.overhead_bytes
        if self.name == "sglang":
            return sglang_budget_bytes(int(memory), self.share, weight_bytes, overhead)
        return available_kv_bytes(int(memory), weight_bytes, overhead, self.share)

    @property
    def basis(self) -> str:
        """What the memory for KV rests on, in words."""
        if self.kv_memory_bytes is not None or self.memory is None:
            kernels = "" if self.gpu_name else "; no GPU is named: kernels of Hopper are assumed"
            return f"memory for KV: given{kernels}"
        overhead = format_bytes_binary(self.expected_overhead_bytes)
        certainty = "1 to 3 GiB, assumed" if self.overhead_bytes is None else "given"
        return (
            f"memory of {self.gpu_name}: {format_bytes_binary(self.memory.value)} ({self.memory.origin}), "
            f"of it {float(self.share):g}, less weights and an overhead of {overhead} ({certainty})"
        )


class EngineSize(msgspec.Struct, frozen=True, kw_only=True):
    """The pool on every GPU. The range comes from the overhead and from what is known of the card's memory.

    `request_blocks` are what a request of `context_tokens` reserves, tokens in flight included, and
    `padding_bytes` what of them can hold nothing; `num_state_slots` caps the requests of models with states.
    `max_concurrency`: requests of `context_tokens` at once; SGLang logs a limit of its own. `log_lines`: as
    the engine prints them.
    """

    name: str
    kv_layout: str
    available_bytes: int
    block_tokens: int
    num_blocks: int
    pool_tokens: int
    least_pool_tokens: int
    most_pool_tokens: int
    max_concurrency: float
    context_tokens: int
    bytes_per_block: int | float
    snapshot_tokens: int | None
    request_blocks: int | None = None
    in_flight_tokens: int | None = None
    padding_bytes: int | None = None
    num_state_slots: int | None = None
    log_lines: tuple[str, ...]
    notes: tuple[str, ...]
    steps: tuple[Step, ...]


def size_engine(
    spec: ModelSpec,
    layout: KvLayout | None,
    placement: Placement,
    weight_bytes: int,
    question: EngineQuestion,
) -> EngineSize:
    """The pool of one engine. Where no layout is given it is bf16, or vLLM's own for the model.

    Raises: UnsupportedModelError when the engine does not serve the model; InputError when it refuses the
        layout or the placement; InfeasibleError when not one request fits.
    """
    if question.memory is None and question.kv_memory_bytes is None:
        raise InputError(f"--engine {question.name}: name the GPU (--gpu H200) or give --kv-cache-memory")
    if not 0 < question.share <= 1:
        raise InputError(
            f"--gpu-memory-utilization {float(question.share)}: it must be above 0 and at most 1"
        )
    pool = {"physics": _physics, "vllm": _vllm, "sglang": _sglang}[question.name]
    size = pool(spec, layout, placement, question, question.available_bytes(weight_bytes, "middle"))
    tokens = [size.pool_tokens]
    for end in ENDS if question.kv_memory_bytes is None else ():
        try:
            other = pool(spec, layout, placement, question, question.available_bytes(weight_bytes, end))
        except InfeasibleError:
            tokens.append(0)
        else:
            tokens.append(other.pool_tokens)
    return msgspec.structs.replace(
        size,
        least_pool_tokens=min(tokens),
        most_pool_tokens=max(tokens),
        notes=(question.basis, *size.notes),
    )


def _physics(
    spec: ModelSpec,
    layout: KvLayout | None,
    placement: Placement,
    question: EngineQuestion,
    available_bytes: int,
) -> EngineSize:
    """As many whole sequences as fit, with no rounding, padding or reservation: no engine reaches it."""
    layout = layout or BF16
    context = spec.max_context_tokens if question.context_tokens is None else question.context_tokens
    if context is not None and context < 1:
        raise InputError(f"context_tokens={context}: it must be at least 1")
    if context is None:
        raise InputError(f"{spec.name}: the config names no context length: give --max-model-len")
    each = sequence_bytes_per_gpu(spec, context, layout, placement)
    if each > available_bytes:
        raise InfeasibleError(
            f"{spec.name}: a sequence of {context:,} tokens takes {each:,} bytes of each GPU, available are "
            f"{available_bytes:,}: use a smaller --max-model-len, more GPUs or a smaller KV layout"
        )
    concurrency = available_bytes / each if each else 0.0
    tokens = available_bytes * context // each if each else 0
    return EngineSize(
        name="physics",
        kv_layout=layout.name,
        available_bytes=available_bytes,
        block_tokens=1,
        num_blocks=tokens,
        pool_tokens=tokens,
        least_pool_tokens=tokens,
        most_pool_tokens=tokens,
        max_concurrency=concurrency,
        context_tokens=context,
        bytes_per_block=each / context,
        snapshot_tokens=None,
        log_lines=(),
        notes=(),
        steps=(
            Step("sequences", f"{available_bytes:,} / {each:,} bytes", f"{concurrency:.4f}", "arithmetic"),
        ),
    )


def _vllm(
    spec: ModelSpec,
    layout: KvLayout | None,
    placement: Placement,
    question: EngineQuestion,
    available_bytes: int,
) -> EngineSize:
    batched = question.batched_tokens
    if batched is None:
        memory_bytes = int(question.memory.value) if question.memory else LARGE_CARD_BYTES
        batched = default_batched_tokens(memory_bytes, question.gpu_name)
    settings = VllmSettings(
        available_bytes=available_bytes,
        context_tokens=question.context_tokens,
        batched_tokens=batched,
        prefix_caching=question.prefix_caching,
        hybrid_manager=question.hybrid_manager,
        max_running_requests=question.max_running_requests,
        capability=question.capability,
        release=question.vllm_release,
        num_speculative_tokens=question.num_speculative_tokens,
    )
    layout = engine_layout(spec, layout, settings)
    pool = vllm_pool(spec, settings, placement, layout)
    return EngineSize(
        name=f"vLLM {question.vllm_release}",
        kv_layout=layout.name,
        available_bytes=available_bytes,
        block_tokens=pool.block_tokens,
        num_blocks=pool.num_blocks,
        pool_tokens=pool.pool_tokens,
        least_pool_tokens=pool.pool_tokens,
        most_pool_tokens=pool.pool_tokens,
        max_concurrency=float(pool.max_concurrency_ratio),
        context_tokens=pool.context_tokens,
        bytes_per_block=pool.bytes_per_block,
        snapshot_tokens=pool.snapshot_tokens,
        request_blocks=pool.blocks_per_request,
        in_flight_tokens=pool.in_flight_tokens,
        padding_bytes=pool.padding_bytes,
        num_state_slots=pool.num_state_slots,
        log_lines=(pool.log_line,),
        notes=tuple(finding.first_example for finding in pool.findings),
        steps=pool.steps,
    )


def _sglang(
    spec: ModelSpec,
    layout: KvLayout | None,
    placement: Placement,
    question: EngineQuestion,
    available_bytes: int,
) -> EngineSize:
    layout = layout or BF16
    settings = SglangSettings(
        available_bytes=available_bytes,
        context_tokens=question.context_tokens,
        max_running_requests=question.max_running_requests,
        num_draft_tokens=question.num_speculative_tokens,
        num_draft_layers=len(spec.mtp_layers) if question.num_speculative_tokens else 0,
        is_blackwell=question.capability in {"sm100", "sm120"},
    )
    pools = sglang_pools(spec, layout, placement, settings)
    context = question.context_tokens or spec.max_context_tokens or pools.max_total_num_tokens
    return EngineSize(
        name="SGLang 0.5.23",
        kv_layout=layout.name if pools.kv_cache_dtype == "auto" else pools.kv_cache_dtype,
        available_bytes=available_bytes,
        block_tokens=pools.page_tokens,
        num_blocks=pools.max_total_num_tokens // pools.page_tokens,
        pool_tokens=pools.max_total_num_tokens,
        least_pool_tokens=pools.max_total_num_tokens,
        most_pool_tokens=pools.max_total_num_tokens,
        max_concurrency=min(pools.request_tokens / context, float(pools.max_running_requests)),
        context_tokens=context,
        bytes_per_block=float(pools.cell_bytes * pools.page_tokens),
        snapshot_tokens=None,
        num_state_slots=None if pools.state_pool is None else pools.state_pool.num_slots,
        log_lines=pools.log_lines,
        notes=(f"max_running_requests={pools.max_running_requests}",),
        steps=pools.steps,
    )
