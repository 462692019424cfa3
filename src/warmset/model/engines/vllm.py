"""What vLLM 0.33.0 makes of a budget: blocks, "GPU KV cache size" and "Maximum concurrency", to the digit."""

from collections.abc import Sequence
from dataclasses import dataclass

from warmset.errors import Finding, InfeasibleError, InputError
from warmset.model.engines.vllm_budget import (
    available_kv_bytes,
    capability_of,
    default_batched_tokens,
    default_running_requests,
)
from warmset.model.engines.vllm_families import check_served, engine_layout, is_packed
from warmset.model.engines.vllm_groups import (
    Grouping,
    block_bytes,
    group_bytes,
    group_caches,
    group_request_blocks,
)
from warmset.model.engines.vllm_layers import model_caches
from warmset.model.engines.vllm_pages import Cache, Load, request_load
from warmset.model.engines.vllm_states import BlockPlan, plan_blocks
from warmset.model.engines.vllm_steps import Derivation, explain
from warmset.model.engines.vllm_types import PoolGroup, VllmPool, VllmSettings
from warmset.model.layouts import KvLayout
from warmset.model.placement import Placement, stage_ranges
from warmset.model.spec import ModelSpec
from warmset.model.step import Step

__all__ = [
    "PoolGroup",
    "Step",
    "VllmPool",
    "VllmSettings",
    "available_kv_bytes",
    "capability_of",
    "default_batched_tokens",
    "default_running_requests",
    "vllm_pool",
]

ONE_GPU = Placement()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stage:
    """The stage with the least room: bytes of its share of a block, and what it has."""

    index: int
    bytes_per_block: int
    available_bytes: int
    num_blocks: int


def vllm_pool(
    spec: ModelSpec,
    settings: VllmSettings,
    placement: Placement = ONE_GPU,
    layout: KvLayout | None = None,
) -> VllmPool:
    """The pool that vLLM makes on every GPU, and its log line. `layout`: `None` is vLLM's own for the model.

    Raises: UnsupportedModelError when vLLM has no model for it; InputError when it does not divide over the
    GPUs, the layout does not fit, or vLLM refuses the flags; InfeasibleError when not even one request of the
    greatest length fits, with the greatest length that does.
    """
    check_served(spec)
    _check_heads(spec, placement)
    layout = engine_layout(spec, layout, settings)
    plan = plan_blocks(spec, layout, placement, settings)
    caches = model_caches(spec, layout, placement, settings, plan)
    if not caches:
        raise InputError(f"{spec.name}: it keeps no cache, so vLLM has no pool for it")
    grouping = group_caches(
        spec.name, caches, is_packed=is_packed(spec), hybrid_manager=settings.hybrid_manager
    )
    stage = _tightest_stage(spec, settings, placement, grouping)
    load = request_load(settings, placement, _context_tokens(spec, settings), len(spec.mtp_layers))
    _check_fit(spec, settings, placement, grouping, stage, load)
    return _pool(
        Derivation(
            spec=spec,
            layout=layout,
            placement=placement,
            settings=settings,
            plan=plan,
            grouping=grouping,
            groups=_pool_groups(grouping, load),
            load=load,
            bytes_per_block=stage.bytes_per_block,
            available_bytes=stage.available_bytes,
            num_blocks=stage.num_blocks,
        ),
        stage.index,
    )


def _pool(derived: Derivation, stage_index: int) -> VllmPool:
    has_states = any(group.kind == "state" for group in derived.groups)
    return VllmPool(
        available_bytes=derived.available_bytes,
        context_tokens=derived.load.context_tokens,
        block_tokens=derived.plan.block_tokens,
        groups=derived.groups,
        bytes_per_block=derived.bytes_per_block,
        num_blocks=derived.num_blocks,
        in_flight_tokens=derived.load.in_flight_tokens,
        stage_index=stage_index,
        snapshot_tokens=_snapshot_tokens(derived.groups, derived.plan),
        num_state_slots=derived.num_blocks if has_states else None,
        findings=(
            *_length_findings(derived.spec, derived.load.context_tokens),
            *_slot_findings(derived.settings, derived.num_blocks, has_states=has_states),
        ),
        steps=explain(derived),
    )


def _check_heads(spec: ModelSpec, placement: Placement) -> None:
    tensor_parallel = placement.attention_parallel
    for layer in spec.layers:
        for mixer in layer.mixers:
            for attention in mixer.attentions:
                if attention.num_heads % tensor_parallel:
                    raise InputError(
                        f"{spec.name}: {attention.num_heads} heads cannot be split over "
                        f"tensor_parallel={tensor_parallel}: choose a divisor of {attention.num_heads}"
                    )


def _context_tokens(spec: ModelSpec, settings: VllmSettings) -> int:
    tokens = settings.context_tokens or spec.max_context_tokens
    if tokens is None:
        raise InputError(
            f"{spec.name}: the config has no greatest length, give context_tokens (--max-model-len)"
        )
    return tokens


def _tightest_stage(
    spec: ModelSpec, settings: VllmSettings, placement: Placement, grouping: Grouping
) -> _Stage:
    """Every stage has as many blocks as the one with the least room; drafts belong to the last."""
    stages = []
    parts = stage_ranges(spec.num_layers, placement.pipeline_parallel)
    for index, layers in enumerate(parts):
        is_last = index == len(parts) - 1
        groups = tuple(
            tuple(cache for cache in group if _is_on(cache, layers, is_last=is_last))
            for group in grouping.groups
        )
        available = _stage_bytes(settings, placement, index)
        bytes_per_block = block_bytes(Grouping(groups, is_packed=grouping.is_packed))
        if bytes_per_block:
            stages.append(
                _Stage(
                    index=index,
                    bytes_per_block=bytes_per_block,
                    available_bytes=available,
                    num_blocks=max(0, available // bytes_per_block),
                )
            )
    return min(stages, key=lambda stage: stage.num_blocks)


def _is_on(cache: Cache, layers: range, *, is_last: bool) -> bool:
    return cache.layer_index in layers or (is_last and cache.layer_index >= layers.stop)


def _stage_bytes(settings: VllmSettings, placement: Placement, stage_index: int) -> int:
    if isinstance(settings.available_bytes, int):
        return settings.available_bytes
    if len(settings.available_bytes) != placement.pipeline_parallel:
        raise InputError(
            f"available_bytes has {len(settings.available_bytes)} numbers for "
            f"pipeline_parallel={placement.pipeline_parallel}: give one for each stage, or one for all"
        )
    return settings.available_bytes[stage_index]


def _total_blocks(grouping: Grouping, load: Load) -> int:
    return sum(group_request_blocks(group, load) for group in grouping.groups)


def _check_fit(
    spec: ModelSpec,
    settings: VllmSettings,
    placement: Placement,
    grouping: Grouping,
    stage: _Stage,
    load: Load,
) -> None:
    """One block is never handed out (the null block), so a request has to fit the others."""
    needed = _total_blocks(grouping, load)
    if needed < stage.num_blocks:
        return
    num_mtp = len(spec.mtp_layers)
    fitting, excluded = 0, load.context_tokens
    while excluded - fitting > 1:
        middle = (fitting + excluded) // 2
        if _total_blocks(grouping, request_load(settings, placement, middle, num_mtp)) < stage.num_blocks:
            fitting = middle
        else:
            excluded = middle
    advice = f"the greatest length that fits is {fitting} tokens" if fitting else "not even one token fits"
    raise InfeasibleError(
        f"{spec.name}: one request of {load.context_tokens} tokens needs {needed * stage.bytes_per_block} "
        f"bytes of KV on a GPU besides a free block of {stage.bytes_per_block}, "
        f"but {stage.available_bytes} are available; {advice}"
    )


def _pool_groups(grouping: Grouping, load: Load) -> tuple[PoolGroup, ...]:
    whole_block = block_bytes(grouping)
    return tuple(
        PoolGroup(
            kind=group[0].page.kind,
            num_caches=len(group),
            block_tokens=group[0].page.block_tokens,
            page_bytes=group_bytes(grouping, group),
            padding_bytes=whole_block - sum(cache.page.content_bytes for cache in group),
            request_blocks=group_request_blocks(group, load),
        )
        for group in grouping.groups
    )


def _snapshot_tokens(groups: Sequence[PoolGroup], plan: BlockPlan) -> int | None:
    states = [group.block_tokens for group in groups if group.kind == "state"]
    return max(states) if states and plan.caches_prefixes else None


def _length_findings(spec: ModelSpec, context_tokens: int) -> tuple[Finding, ...]:
    most = spec.max_context_tokens
    if most is None or context_tokens <= most:
        return ()
    example = f"vLLM refuses max_model_len={context_tokens} above the model's own {most} tokens"
    return (Finding(code="context_tokens", count=context_tokens - most, first_example=example),)


def _slot_findings(settings: VllmSettings, num_blocks: int, *, has_states: bool) -> tuple[Finding, ...]:
    requests = settings.max_running_requests
    if not has_states or requests is None or requests <= num_blocks:
        return ()
    return (
        Finding(
            code="state_slots",
            count=requests - num_blocks,
            first_example=f"vLLM refuses max_num_seqs={requests} with {num_blocks} blocks for states: "
            f"set it to at most {num_blocks}",
        ),
    )
