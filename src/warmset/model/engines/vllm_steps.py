"""The derivation of a vLLM pool for people: every formula with its numbers, and where vLLM has it."""

from collections.abc import Iterator
from dataclasses import dataclass

from warmset.model.engines.vllm_families import (
    EXPANDED_LATENTS,
    family,
    hands_out_states,
    is_inkling,
    is_packed,
    own_caches,
)
from warmset.model.engines.vllm_groups import Grouping
from warmset.model.engines.vllm_pages import Load
from warmset.model.engines.vllm_states import BlockPlan
from warmset.model.engines.vllm_types import PoolGroup, VllmSettings
from warmset.model.layouts import KvLayout
from warmset.model.placement import Placement
from warmset.model.spec import ModelSpec
from warmset.model.step import Step

PLANNING = "vLLM 0.33.0 v1/core/kv_cache_planning.py"
INTERFACE = "vLLM 0.33.0 v1/kv_cache_interface.py"
ALIGNMENT = "vLLM 0.33.0 platforms/interface.py"
CONFIG = "vLLM 0.33.0 config/vllm.py"
CAPACITY = "vLLM 0.33.0 v1/core/kv_cache_utils.py"
MODELS = "vLLM 0.33.0 models/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivation:
    """All that a pool was computed from."""

    spec: ModelSpec
    layout: KvLayout
    placement: Placement
    settings: VllmSettings
    plan: BlockPlan
    grouping: Grouping
    groups: tuple[PoolGroup, ...]
    load: Load
    bytes_per_block: int
    available_bytes: int
    num_blocks: int


def explain(pool: Derivation) -> tuple[Step, ...]:
    """All lines, in the order in which vLLM computes."""
    return (
        Step(
            "KV layout",
            "as given, or vLLM's own for the model",
            pool.layout.name,
            "vLLM 0.33.0 config/cache.py",
        ),
        *_deviations(pool.spec, pool.settings),
        _block_step(pool.plan),
        _in_flight_step(pool),
        *_group_steps(pool),
        *_padding_step(pool),
        *_total_steps(pool),
    )


def _block_step(plan: BlockPlan) -> Step:
    if plan.padded_bytes is None:
        formula = "the least that the kernels accept, or --block-size"
        return Step("block", formula, f"{plan.block_tokens} tokens", ALIGNMENT)
    unit = plan.alignment_tokens
    return Step(
        "block",
        f"{unit} x ceil({plan.state_bytes:,} / ({unit} x {plan.token_bytes:,})), so that a page of attention "
        f"holds a state of {plan.state_bytes:,} bytes",
        f"{plan.block_tokens} tokens, states padded to {plan.padded_bytes:,} bytes",
        ALIGNMENT,
    )


def _in_flight_step(pool: Derivation) -> Step:
    is_async = pool.settings.async_scheduling
    reason = "stages + 1 for async scheduling" if is_async else "stages"
    return Step(
        "tokens in flight",
        f"{pool.placement.pipeline_parallel + is_async} batches ({reason}) "
        f"x {pool.settings.batched_tokens:,}",
        f"{pool.load.in_flight_tokens:,} tokens, which windows keep besides themselves",
        CONFIG,
    )


def _group_steps(pool: Derivation) -> Iterator[Step]:
    for index, group in enumerate(pool.groups):
        yield Step(
            f"group {index + 1}: {group.kind}",
            f"{group.num_caches} caches, {group.block_tokens} tokens to a block, {group.page_bytes:,} bytes",
            f"{group.request_blocks:,} blocks for {pool.load.context_tokens:,} tokens",
            PLANNING,
        )


def _padding_step(pool: Derivation) -> Iterator[Step]:
    wasted = sum(group.request_blocks * group.padding_bytes for group in pool.groups)
    if wasted:
        yield Step(
            "padding",
            f"pages smaller than their room, and {pool.grouping.num_padding_caches} caches that do not exist",
            f"{wasted:,} bytes of a request",
            PLANNING,
        )


def _total_steps(pool: Derivation) -> tuple[Step, ...]:
    needed = sum(group.request_blocks for group in pool.groups)
    size_bytes, num_blocks, context_tokens = pool.bytes_per_block, pool.num_blocks, pool.load.context_tokens
    rounding = ", rounded up to whole rows" if pool.grouping.is_packed else ""
    return (
        Step("bytes per block", f"of the widest group{rounding}", f"{size_bytes:,} bytes", PLANNING),
        Step("blocks", f"{pool.available_bytes:,} // {size_bytes:,}", f"{num_blocks:,}", PLANNING),
        Step(
            "blocks per request",
            " + ".join(str(group.request_blocks) for group in pool.groups),
            f"{needed:,}",
            INTERFACE,
        ),
        Step(
            "GPU KV cache size",
            f"{num_blocks:,} / {needed:,} x {context_tokens:,}",
            f"{int(num_blocks / needed * context_tokens):,} tokens, {num_blocks / needed:.2f}x",
            CAPACITY,
        ),
    )


def _deviations(spec: ModelSpec, settings: VllmSettings) -> Iterator[Step]:
    """Where vLLM keeps other than what the model needs."""
    if family(spec) in EXPANDED_LATENTS:
        formula = "not as MLA: expanded keys and values of all heads"
        yield Step("attention", formula, spec.model_type, "vLLM 0.33.0 model_executor/models/minicpm3.py")
    if is_inkling(spec):
        formula = "kept as windows, their width rounded up to a power of 2"
        yield Step("convolutions", formula, spec.model_type, f"{MODELS}inkling/nvidia/sconv_swa_attn.py")
    if family(spec) == "qwen4_exp":
        formula = "one more state, whole on every GPU"
        yield Step("n-gram convolution", formula, spec.model_type, f"{MODELS}qwen4_exp/nvidia/ple_layer.py")
    if any(cache.reach == "cross" for cache in own_caches(spec)):
        formula = "--max-num-batched-tokens are reserved, not the length of an input"
        yield Step("encoder", formula, f"{settings.batched_tokens:,} tokens", INTERFACE)
    if is_packed(spec):
        formula = "pages of unequal size lie side by side in a block"
        yield Step("packing", formula, spec.model_type, PLANNING)
    if hands_out_states(spec, settings):
        formula = "kernels hand out states inside a prompt: one more state in a prefix cache"
        result = f"{settings.capability}, {settings.release}"
        yield Step("checkpoints", formula, result, "vLLM 0.33.0 model_executor/layers/mamba/checkpoint.py")
