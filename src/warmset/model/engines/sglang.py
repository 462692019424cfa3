"""What SGLang would allocate and log for a model on given GPUs.

It does what SGLang 0.5.23 does on NVIDIA GPUs where that differs from the physics of the model, and says so
in the steps. Not covered: HiSparse, the unified memory pool, DFlash and DSpark drafts, prefill-decode
disaggregation, AMD and Ascend pools, the 100 MiB that SGLang sets apart for multimodal models.
Source: SGLang 0.5.23 srt/mem_cache/kv_cache_configurator.py, srt/model_executor/pool_configurator.py.
"""

from fractions import Fraction

from warmset.errors import InfeasibleError, InputError
from warmset.model.engines import sglang_v4_plan
from warmset.model.engines.sglang_layers import (
    WINDOWED,
    Ranks,
    check_layout,
    layer_rows,
    served_family,
    stages,
    state_layers,
)
from warmset.model.engines.sglang_plan import Question, TokenPlan
from warmset.model.engines.sglang_pools import stage_plan
from warmset.model.engines.sglang_state import plan_states, requests_per_rank
from warmset.model.engines.sglang_types import SglangPools, SglangSettings, StatePool
from warmset.model.layouts import KvLayout
from warmset.model.placement import Placement
from warmset.model.spec import IndexKey, KvHeads, Latent, ModelSpec
from warmset.model.step import Step

DSA_PAGE_TOKENS = 64
MINIMAX_M3_PAGE_TOKENS = 128
QSA_PAGE_TOKENS = 64
REQUESTS_PER_CONTEXT = 512
LEAST_REQUESTS, MOST_REQUESTS = 2048, 4096

__all__ = ["SglangPools", "SglangSettings", "sglang_budget_bytes", "sglang_pools"]

V4_FAMILIES = {"deepseek_v4", "deepseek_v41"}


def sglang_budget_bytes(
    gpu_memory_bytes: int, mem_fraction_static: Fraction, weight_bytes: int, reserve_bytes: int = 0
) -> int:
    """Bytes of one GPU for KV and states: the static share of the memory, less weights and reserves.

    Raises: InputError when the share is not above 0 and at most 1; InfeasibleError when the weights leave
    nothing.
    """
    if not 0 < mem_fraction_static <= 1:
        raise InputError(f"mem_fraction_static={mem_fraction_static}: it must be above 0 and at most 1")
    static_bytes = int(gpu_memory_bytes * mem_fraction_static)
    available = static_bytes - weight_bytes - reserve_bytes
    if available <= 0:
        least = Fraction(weight_bytes + reserve_bytes, gpu_memory_bytes)
        change = f"raise it above {float(least):.3f}" if least < 1 else "split the model over more GPUs"
        raise InfeasibleError(
            f"SGLang needs {weight_bytes + reserve_bytes:,} bytes of one GPU for weights and reserves, "
            f"available {static_bytes:,} at mem_fraction_static={float(mem_fraction_static):g}: {change}"
        )
    return available


def sglang_pools(
    spec: ModelSpec, layout: KvLayout, placement: Placement, settings: SglangSettings
) -> SglangPools:
    """The pools of every rank and the limits that follow.

    Formula: tokens = available // cell, whole pages; before it the state pool is cut out. With PP the stage
    with the least room decides. Under DP attention each DP rank has pools of its own.

    Raises: UnsupportedModelError when SGLang does not serve the model; InputError when the layout or the
    placement is not possible; InfeasibleError when not a page, a state slot or a request fits.
    """
    family = served_family(spec)
    kv_cache_dtype = check_layout(spec, layout)
    if placement.pipeline_parallel > len(spec.layers):
        raise InputError(
            f"{spec.name}: pipeline_parallel={placement.pipeline_parallel} is more than its "
            f"{len(spec.layers)} layers"
        )
    states = plan_states(spec, placement, settings)
    question = Question(
        spec=spec,
        layout=layout,
        placement=placement,
        settings=settings,
        budget_bytes=states.remaining_bytes,
        page_tokens=settings.page_tokens or _default_page_tokens(spec, family),
    )
    _check_heads(spec, question.ranks)
    stage_index, plan = _plan_tokens(question, family)
    requests, request_step = _max_running_requests(question, plan.tokens, states.pool)
    window_apart = any(pool.name != "full" for pool in plan.pools)
    request_tokens = plan.tokens if window_apart else plan.tokens * placement.decode_context_parallel
    return SglangPools(
        available_bytes=settings.available_bytes,
        page_tokens=question.page_tokens,
        kv_cache_dtype="fp8_e4m3" if family in V4_FAMILIES else kv_cache_dtype,
        cell_bytes=plan.cell_bytes,
        max_total_num_tokens=plan.tokens,
        pools=plan.pools,
        state_pool=states.pool,
        fixed_bytes=plan.fixed_bytes,
        stage_index=stage_index,
        max_running_requests=requests,
        request_tokens=request_tokens,
        cluster_tokens=request_tokens * placement.dp_attention,
        steps=(*_notes(question, family), *states.steps, *plan.steps, *_log_steps(plan), request_step),
    )


def _plan_tokens(question: Question, family: str) -> tuple[int, TokenPlan]:
    spec = question.spec
    parts = stages(len(spec.layers), question.placement.pipeline_parallel)
    if family in V4_FAMILIES:
        plans = [sglang_v4_plan.stage_plan(question, stage) for stage in parts]
    else:
        rows = layer_rows(spec, question.layout, question.ranks, raw_latents=question.raw_fp8_latents)
        plans = [
            stage_plan(question, [row for row in rows[stage.start : stage.stop] if row]) for stage in parts
        ]
    keeping = [index for index, plan in enumerate(plans) if plan.pools] or [0]
    index = min(keeping, key=lambda rank: plans[rank].tokens)
    return index, plans[index]


def _check_heads(spec: ModelSpec, ranks: Ranks) -> None:
    groups = ranks.attention_parallel // ranks.decode_context_parallel
    entries = [cache.entry for layer in spec.layers for cache in layer.caches]
    heads = {entry.num_heads for entry in entries if isinstance(entry, KvHeads)}
    for num_heads in sorted(heads):
        if max(num_heads, groups) % min(num_heads, groups):
            raise InputError(
                f"{spec.name}: {num_heads} KV heads cannot be split over {groups} groups of GPUs "
                "(tensor_parallel / dp_attention / decode_context_parallel): choose a divisor or a "
                "multiple of the KV heads"
            )


def _default_page_tokens(spec: ModelSpec, family: str) -> int:
    """Source: SGLang 0.5.23 srt/arg_groups/model_overrides/, overrides.py _page_size_default."""
    if family in V4_FAMILIES:
        return sglang_v4_plan.PAGE_TOKENS
    if family.startswith("minimax_m3"):
        return MINIMAX_M3_PAGE_TOKENS
    caches = [cache for layer in spec.layers for cache in layer.caches]
    pooled = [cache.tokens_per_entry for cache in caches if isinstance(cache.entry, IndexKey)]
    if pooled and any(isinstance(cache.entry, Latent) for cache in caches):
        return DSA_PAGE_TOKENS * pooled[0]
    return QSA_PAGE_TOKENS if pooled else 1


def _max_running_requests(question: Question, tokens: int, state_pool: StatePool | None) -> tuple[int, Step]:
    """Requests that one DP rank runs at most.

    Formula: min(asked / DP ranks, or 512·tokens/context held in 2048…4096; tokens // 2; state slots // S)
    Source: srt/mem_cache/kv_cache_configurator.py, resolve_max_num_reqs.
    """
    asked = requests_per_rank(question.placement, question.settings)
    if asked is None and served_family(question.spec) in V4_FAMILIES:
        asked = max(1, sglang_v4_plan.MAX_RUNNING_REQUESTS // question.placement.dp_attention)
    if asked is None:
        context = question.settings.context_tokens or question.spec.max_context_tokens
        if context is None:
            raise InputError(f"{question.spec.name}: its context length is not known: give context_tokens")
        estimate = tokens * REQUESTS_PER_CONTEXT // context
        asked = max(min(estimate, MOST_REQUESTS), LEAST_REQUESTS)
    requests = min(asked, tokens // 2)
    words = f"min({asked:,}, {tokens:,} // 2"
    if state_pool is not None:
        by_states = state_pool.num_slots // state_pool.num_slots_per_request
        requests = min(requests, by_states)
        words += f", {state_pool.num_slots:,} slots // {state_pool.num_slots_per_request}"
        if requests < 1:
            raise InfeasibleError(
                f"{question.spec.name}: a request needs {state_pool.num_slots_per_request} state "
                f"slots, available {state_pool.num_slots}: raise mamba_full_memory_ratio or take "
                "radix_strategy 'off'"
            )
    source = "SGLang 0.5.23 mem_cache/kv_cache_configurator.py, resolve_max_num_reqs"
    return requests, Step("max_running_requests of a DP rank", f"{words})", f"{requests:,}", source)


def _log_steps(plan: TokenPlan) -> tuple[Step, ...]:
    source = "SGLang 0.5.23 mem_cache/memory_pool.py, _finalize_allocation_log"
    return tuple(
        Step(f"log of the {pool.name} pool", "with the spare page; its GB are GiB", pool.log_text, source)
        for pool in plan.pools
    )


def _notes(question: Question, family: str) -> tuple[Step, ...]:
    """Where SGLang departs from the physics of the model."""
    spec, placement = question.spec, question.placement
    notes = []
    if (
        not state_layers(spec)
        and any(not layer.caches for layer in spec.layers)
        and family not in V4_FAMILIES
    ):
        idle = sum(not layer.caches for layer in spec.layers)
        notes.append(
            ("layers without KV", f"{idle} layers own no KV; SGLang allocates rows for all", f"{idle}")
        )
    full_price = [
        cache for layer in spec.layers for cache in layer.caches if cache.reach in {"sliding", "chunked"}
    ]
    if full_price and family not in V4_FAMILIES | WINDOWED:
        notes.append(
            ("windows", "SGLang has no window pool for this family: every layer is full", "full price")
        )
    if placement.attention_parallel > 1 and spec.is_latent and placement.decode_context_parallel == 1:
        notes.append(
            ("latents", f"each of {placement.attention_parallel} attention TP ranks keeps a copy", "copies")
        )
    if family in V4_FAMILIES:
        notes.append(
            ("KV layout", "SGLang stores V4 entries in fp8, whatever the layout asked for", "fp8_e4m3")
        )
    if question.layout.keys == "fp8" and _is_sparse_latent(spec):
        words = "fp8 latents without scales, as trtllm and tilelang kernels read them"
        if not question.raw_fp8_latents:
            words = "fp8 latents with scales and a bf16 rotated part; raw ones with raw_fp8_latents"
        notes.append(("latent layout", words, "576 B" if question.raw_fp8_latents else "656 B"))
    source = "SGLang 0.5.23 configs/model_config.py, model_executor/pool_configurator.py"
    return tuple(Step(label, words, result, source) for label, words, result in notes)


def _is_sparse_latent(spec: ModelSpec) -> bool:
    entries = [cache.entry for layer in spec.layers for cache in layer.caches]
    return any(isinstance(entry, Latent) and entry.sparse for entry in entries)
