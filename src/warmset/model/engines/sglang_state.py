"""The pool of recurrent states in SGLang: its share of the budget, its slots, and the requests they allow.

Source: SGLang 0.5.23 srt/mem_cache/kv_cache_configurator.py, _handle_max_mamba_cache, _calculate_mamba_ratio;
srt/mem_cache/allocation_sizing.py, get_mamba_tracking_slots.
"""

from fractions import Fraction
from typing import NamedTuple

from warmset.errors import InfeasibleError
from warmset.model.engines.sglang_layers import EXTRA_BUFFER, served_family, stages, state_bytes, state_layers
from warmset.model.engines.sglang_types import SglangSettings, StatePool
from warmset.model.placement import Placement
from warmset.model.spec import ModelSpec
from warmset.model.step import Step

MAMBA_FULL_MEMORY_RATIO = Fraction(9, 10)
INKLING_MEMORY_RATIO = Fraction(1, 10)
SPECULATIVE_RUNNING_REQUESTS = 48
SLOTS_PER_REQUEST = 3
"""Of a running request with the radix cache on, before the slots that a strategy adds."""

SOURCE = "SGLang 0.5.23 mem_cache/kv_cache_configurator.py, _handle_max_mamba_cache"


class StatePlan(NamedTuple):
    """The state pool, if the model has one, and the bytes that are left for tokens."""

    pool: StatePool | None
    remaining_bytes: int
    steps: tuple[Step, ...]


def plan_states(spec: ModelSpec, placement: Placement, settings: SglangSettings) -> StatePlan:
    """Cuts the state pool out of the budget.

    Formula: slots = (budget·r/(1 + r) - slot) // slot, r = mamba_full_memory_ratio; with D draft tokens
    (budget·r/(1 + r) - slot·(1 + D)) // (slot·(1 + D/S)), S slots a request; what is left: budget - (slots
    + 1)·slot - slot·(min(requests, slots // S) + 1)·D. With `max_mamba_cache_size`, or without the radix
    cache and with `max_running_requests`, the slots are given.

    Raises: InfeasibleError when not one slot fits, or the states leave nothing for tokens.
    """
    layers = state_layers(spec)
    if not layers:
        return StatePlan(None, settings.available_bytes, ())
    slot = _slot_bytes(spec, layers, placement, settings)
    per_request = slots_per_request(spec, settings)
    num_slots, formula = _num_slots(spec, placement, settings, slot, per_request)
    if num_slots < 1:
        raise InfeasibleError(
            f"{spec.name}: state slots need {2 * slot:,} bytes of one GPU and its share of the "
            f"{settings.available_bytes:,} available is less: give more memory, raise "
            "mamba_full_memory_ratio, or split the attention over more GPUs"
        )
    pool = StatePool(
        num_slots, slot, per_request, _draft_bytes(placement, settings, slot, num_slots, per_request)
    )
    remaining = settings.available_bytes - pool.total_bytes
    if remaining <= 0:
        raise InfeasibleError(
            f"{spec.name}: {num_slots} state slots need {pool.total_bytes:,} bytes of one GPU, available "
            f"{settings.available_bytes:,}: ask for fewer slots or running requests"
        )
    steps = (
        Step("state slot", *_slot_words(spec, placement, settings, slot)),
        Step("state slots", formula, f"{num_slots:,}", SOURCE),
        Step(
            "left for tokens",
            f"{settings.available_bytes:,} - {pool.total_bytes:,}",
            f"{remaining:,} B",
            SOURCE,
        ),
    )
    return StatePlan(pool, remaining, steps)


def slots_per_request(spec: ModelSpec, settings: SglangSettings) -> int:
    """State slots that a running request may hold: 1 without the radix cache, else 3 to 5 by its strategy.

    Source: srt/mem_cache/kv_cache_configurator.py, _calculate_mamba_ratio.
    """
    strategy = settings.radix_strategy
    if strategy == "off":
        return 1
    if strategy == "auto":
        has_buffer = settings.overlap_schedule or (settings.page_tokens or 1) > 1
        strategy = "extra_buffer" if has_buffer and served_family(spec) in EXTRA_BUFFER else "no_buffer"
    if strategy == "no_buffer":
        return SLOTS_PER_REQUEST
    if strategy == "extra_buffer_lazy" or not settings.overlap_schedule:
        return SLOTS_PER_REQUEST + 1
    return SLOTS_PER_REQUEST + 2


def requests_per_rank(placement: Placement, settings: SglangSettings) -> int | None:
    """Running requests asked for, on each DP rank; with drafts and none asked, 48 for the server."""
    total = settings.max_running_requests
    if total is None and settings.is_speculative:
        total = SPECULATIVE_RUNNING_REQUESTS
    return None if total is None else max(1, total // placement.dp_attention)


def _slot_bytes(spec: ModelSpec, layers: list[int], placement: Placement, settings: SglangSettings) -> int:
    """Of the pipeline stage that has most of it."""
    sizes = {
        index: state_bytes(spec, spec.layers[index], placement.attention_parallel, settings.recurrent_bits)
        for index in layers
    }
    return max(
        sum(sizes.get(index, 0) for index in stage)
        for stage in stages(len(spec.layers), placement.pipeline_parallel)
    )


def _num_slots(
    spec: ModelSpec, placement: Placement, settings: SglangSettings, slot: int, per_request: int
) -> tuple[int, str]:
    if settings.max_mamba_cache_size is not None:
        size = settings.max_mamba_cache_size
        return size // placement.dp_attention, f"{size:,} / {placement.dp_attention} DP ranks"
    requests = requests_per_rank(placement, settings)
    if settings.radix_strategy == "off" and requests is not None:
        return requests, "max_running_requests of a DP rank, as there is no radix cache"
    ratio = settings.mamba_full_memory_ratio or (
        INKLING_MEMORY_RATIO if served_family(spec).startswith("inkling") else MAMBA_FULL_MEMORY_RATIO
    )
    budget = settings.available_bytes * ratio / (1 + ratio)
    num_drafts = settings.num_draft_tokens
    each = slot * (1 + Fraction(num_drafts, per_request))
    words = f"({settings.available_bytes:,} × {ratio} / {1 + ratio} - {slot * (1 + num_drafts):,}) // {each}"
    return int((budget - slot * (1 + num_drafts)) // each), words


def _draft_bytes(
    placement: Placement, settings: SglangSettings, slot: int, num_slots: int, per_request: int
) -> int:
    if not settings.num_draft_tokens:
        return 0
    requests = min(requests_per_rank(placement, settings) or 1, num_slots // per_request)
    return slot * (requests + 1) * settings.num_draft_tokens


def _slot_words(
    spec: ModelSpec, placement: Placement, settings: SglangSettings, slot: int
) -> tuple[str, str, str]:
    bits = settings.recurrent_bits or next(
        (part.bits or 32 for layer in spec.layers for part in layer.states if part.role == "recurrent"), 16
    )
    words = (
        f"{len(state_layers(spec))} layers, heads / {placement.attention_parallel}, convolutions 16 bits, "
        f"recurrences {bits} bits (fp32 unless the config or --mamba-ssm-dtype says otherwise)"
    )
    return words, f"{slot:,} B", "SGLang 0.5.23 configs/mamba_utils.py, mamba_cache_per_req"
