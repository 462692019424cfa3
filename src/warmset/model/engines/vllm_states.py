"""States as vLLM keeps them, and the block of attention that is stretched until it holds one.

Source: vLLM 0.33.0 platforms/interface.py _align_hybrid_block_size, model_executor/models/config.py
MambaModelConfig, model_executor/layers/mamba/mamba_utils.py, models/qwen4_exp/nvidia/model.py.
"""

import math
from dataclasses import dataclass

from warmset.errors import InputError
from warmset.model.engines.vllm_families import (
    EXPANDED_LATENTS,
    family,
    hands_out_states,
    has_states,
    kernel_block_tokens,
    own_caches,
    state_alignment_tokens,
)
from warmset.model.engines.vllm_pages import Page, ceil_div, round_up
from warmset.model.engines.vllm_types import VllmSettings
from warmset.model.layouts import PACKINGS, KvLayout, entry_bytes
from warmset.model.placement import Placement
from warmset.model.spec import KvHeads, Latent, Layer, ModelSpec, StatePart

CONV_ROWS = 3
"""Past inputs that a convolution keeps in every family that drafts tokens; a draft adds one."""

PLE_LAYER_INDEX = 2
PLE_ROWS = 9
PLE_STREAMS = 4
"""Of `qwen4_exp`, beside one layer: (`ple_conv_kernel_size` - 1) x `ngram_size` inputs of `hc_count` streams,
3 x 3 and 4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockPlan:
    """Tokens of a block of attention, and what a state page is padded to: `None` as it is, without attention.

    `token_bytes`: of attention in one layer, as the alignment counts it. `state_bytes`: of the largest state.
    """

    block_tokens: int
    kernel_tokens: int
    alignment_tokens: int
    token_bytes: int
    state_bytes: int
    padded_bytes: int | None
    caches_prefixes: bool

    @property
    def is_stretched(self) -> bool:
        """Whether a state made the block larger."""
        return self.block_tokens > self.kernel_tokens


def plan_blocks(spec: ModelSpec, layout: KvLayout, placement: Placement, settings: VllmSettings) -> BlockPlan:
    """The block of attention, so large that a page of it holds a state, and the state padded to that page.

    Raises: InputError when a state cannot be divided over the GPUs, or kernels do not accept the block.
    """
    tensor_parallel = placement.attention_parallel
    kernel_tokens = kernel_block_tokens(spec, layout, settings)
    block_tokens = _asked_block(spec, settings, kernel_tokens) or max(kernel_tokens, 16)
    states = [layer_state_bytes(spec, layer, tensor_parallel, settings) for layer in spec.layers]
    states += [page.entry_bytes for page in ple_pages(spec, settings)]
    token_bytes = _token_bytes(spec, layout, tensor_parallel)
    caches_prefixes = caches_prefixes_of(spec, settings)
    alignment_tokens = max(kernel_tokens, block_tokens)
    padded_bytes = None
    if any(states) and token_bytes:
        if _is_mla(spec):
            alignment_tokens = max(alignment_tokens, 128)
        if caches_prefixes:
            alignment_tokens = math.lcm(alignment_tokens, state_alignment_tokens(spec, settings))
        aligned_tokens = alignment_tokens * ceil_div(max(states), alignment_tokens * token_bytes)
        block_tokens = max(block_tokens, round_up(aligned_tokens, kernel_tokens))
        padded_bytes = block_tokens * token_bytes
    return BlockPlan(
        block_tokens=block_tokens,
        kernel_tokens=kernel_tokens,
        alignment_tokens=alignment_tokens,
        token_bytes=token_bytes,
        state_bytes=max(states, default=0),
        padded_bytes=padded_bytes,
        caches_prefixes=caches_prefixes,
    )


def _asked_block(spec: ModelSpec, settings: VllmSettings, kernel_tokens: int) -> int | None:
    if settings.block_tokens is not None and settings.block_tokens % kernel_tokens:
        raise InputError(
            f"{spec.name}: vLLM has no kernel for block_tokens={settings.block_tokens}: "
            f"choose a multiple of {kernel_tokens}"
        )
    return settings.block_tokens


def caches_prefixes_of(spec: ModelSpec, settings: VllmSettings) -> bool:
    """Whether prefix caching is on: as asked, else on but for models without attention or with an encoder.

    Source: vLLM 0.33.0 config/model.py is_prefix_caching_supported.
    """
    if settings.prefix_caching is not None:
        return settings.prefix_caching
    reaches = {cache.reach for cache in own_caches(spec)}
    return bool(reaches) and "cross" not in reaches


def state_pages(
    spec: ModelSpec, layer: Layer, tensor_parallel: int, settings: VllmSettings, plan: BlockPlan
) -> list[Page]:
    """The state page of a layer, if it has a state.

    Raises: InputError when a state cannot be divided over the GPUs.
    """
    size_bytes = layer_state_bytes(spec, layer, tensor_parallel, settings)
    return [_state_page(spec, size_bytes, settings, plan)] if size_bytes else []


def padded_ple_page(spec: ModelSpec, settings: VllmSettings, plan: BlockPlan) -> list[Page]:
    """The page of the n-gram convolution of `qwen4_exp`, which every GPU keeps whole."""
    return [
        _state_page(spec, page.entry_bytes, settings, plan, role=page.role)
        for page in ple_pages(spec, settings)
    ]


def ple_pages(spec: ModelSpec, settings: VllmSettings) -> list[Page]:
    """The same, not padded."""
    if family(spec) != "qwen4_exp":
        return []
    rows = PLE_ROWS + settings.num_speculative_tokens
    size_bytes = rows * PLE_STREAMS * spec.hidden_size * 2
    return [Page(kind="state", block_tokens=1, entry_bytes=size_bytes, role="copied")]


def _state_page(
    spec: ModelSpec, size_bytes: int, settings: VllmSettings, plan: BlockPlan, role: str = ""
) -> Page:
    """A padded page, and how many a request holds.

    In a prefix cache they are the state it reads, the one it writes and, with kernels that hand out states,
    one more; each draft has a state of its own.
    """
    num_blocks = 1 + settings.num_speculative_tokens
    if plan.caches_prefixes:
        num_blocks += 1 + hands_out_states(spec, settings)
    block_tokens = plan.block_tokens
    if not plan.caches_prefixes:
        block_tokens = settings.context_tokens or spec.max_context_tokens or 1
    if plan.padded_bytes is None:
        block_tokens = settings.state_block_tokens or block_tokens
    return Page(
        kind="state",
        block_tokens=block_tokens,
        entry_bytes=size_bytes,
        padded_bytes=plan.padded_bytes,
        num_state_blocks=num_blocks,
        role=role,
    )


def layer_state_bytes(spec: ModelSpec, layer: Layer, tensor_parallel: int, settings: VllmSettings) -> int:
    """Bytes of the states of one layer on one GPU.

    Raises: InputError when the heads or channels do not divide over the GPUs.
    """
    if not has_states(layer, spec):
        return 0
    parts = (part for part in layer.states if part.role in {"conv", "recurrent"})
    return sum(_part_bytes(spec, part, tensor_parallel, settings.num_speculative_tokens) for part in parts)


def _part_bytes(spec: ModelSpec, part: StatePart, tensor_parallel: int, num_drafts: int) -> int:
    shards = tensor_parallel if part.sharded else 1
    if part.role == "recurrent" and part.num_units % shards:
        raise InputError(
            f"{spec.name}: vLLM cannot split states of {part.num_units} heads over {shards} GPUs: "
            f"choose a divisor of {part.num_units}"
        )
    elements = ceil_div(part.num_units, shards) * part.unit_elements
    if part.role == "conv":
        elements += elements // CONV_ROWS * num_drafts
    return elements * (part.bits or 16) // 8


def _is_mla(spec: ModelSpec) -> bool:
    has_latent = any(isinstance(cache.entry, Latent) for cache in own_caches(spec))
    return has_latent and family(spec) not in EXPANDED_LATENTS


def _token_bytes(spec: ModelSpec, layout: KvLayout, tensor_parallel: int) -> int:
    """Of one token in one attention layer, as the alignment counts it: values as large as keys."""
    for cache in own_caches(spec):
        match cache.entry:
            case KvHeads(num_heads=heads, key_size=size):
                alike = KvHeads(num_heads=max(1, heads // tensor_parallel), key_size=size, value_size=size)
                return entry_bytes(alike, layout)
            case Latent(latent_size=latent, rope_size=rope):
                bits = PACKINGS[layout.keys].bits if layout.keys in PACKINGS else 8
                return (latent + rope) * bits // 8
    return 0
