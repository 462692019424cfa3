"""One cache of one layer as vLLM sees it: what a block of it weighs and how many blocks a request takes.

Source: vLLM 0.33.0 v1/kv_cache_interface.py, the classes of KVCacheSpec.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from warmset.errors import InputError
from warmset.model.engines.vllm_types import CacheKind, VllmSettings
from warmset.model.placement import Placement

LATENT_KINDS = ("latent", "sliding_latent")
SLIDING_KINDS = ("sliding", "sliding_latent")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A block of one cache on one GPU: `entry_bytes` for every `tokens_per_entry` tokens, or one state.

    `span_tokens`: the window or the chunk. `role` keeps apart what never shares a group (index keys, states
    that every GPU copies). `alignment_bytes` the page is rounded up to, `stride_bytes` the whole block; the
    page is `padded_bytes` where it has to match others. `num_state_blocks`: states of a request.
    """

    kind: CacheKind
    block_tokens: int
    entry_bytes: int
    num_heads: int = 1
    tokens_per_entry: int = 1
    span_tokens: int = 0
    role: str = ""
    alignment_bytes: int = 1
    stride_bytes: int = 1
    padded_bytes: int | None = None
    num_state_blocks: int = 1
    is_dcp_sharded: bool = False

    @property
    def content_bytes(self) -> int:
        """Without padding."""
        if self.kind == "state":
            return self.entry_bytes
        return self.block_tokens // self.tokens_per_entry * self.entry_bytes

    @property
    def page_bytes(self) -> int:
        """With padding."""
        return self.padded_bytes or round_up(self.content_bytes, self.alignment_bytes)


@dataclass(frozen=True, slots=True)
class Cache:
    """A page and the layer that owns it; layers of drafts come last."""

    layer_index: int
    page: Page


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What decides how many blocks a request takes, besides the page.

    `extra_tokens`: kept below a window for drafts of several MTP modules.
    """

    context_tokens: int
    in_flight_tokens: int
    batched_tokens: int
    decode_context_parallel: int = 1
    extra_tokens: int = 0


def request_load(settings: VllmSettings, placement: Placement, context_tokens: int, num_mtp: int) -> Load:
    """The load of one request at its greatest length.

    Tokens in flight: every concurrent batch may hold `batched_tokens`; there are as many batches as pipeline
    stages, and one more with async scheduling. `num_mtp`: draft layers that exist.

    Source: vLLM 0.33.0 config/vllm.py max_in_flight_tokens, num_prefill_lookahead_tokens.
    """
    num_batches = placement.pipeline_parallel + settings.async_scheduling
    num_modules = min(num_mtp, settings.num_speculative_tokens)
    return Load(
        context_tokens=context_tokens,
        in_flight_tokens=num_batches * settings.batched_tokens,
        batched_tokens=settings.batched_tokens,
        decode_context_parallel=placement.decode_context_parallel,
        extra_tokens=settings.num_speculative_tokens - 1 if num_modules > 1 else 0,
    )


def request_blocks(page: Page, load: Load) -> int:
    """Blocks that one request of the greatest length takes of one cache.

    Raises: InputError when decode context parallel meets a window.
    """
    match page.kind:
        case "full" | "latent":
            shards = load.decode_context_parallel if page.is_dcp_sharded else 1
            return ceil_div(ceil_div(load.context_tokens, shards), page.block_tokens)
        case "sliding" | "sliding_latent":
            if load.decode_context_parallel > 1:
                raise InputError(
                    "vLLM has no decode context parallel for sliding windows: set decode_context_parallel=1"
                )
            kept_tokens = page.span_tokens - 1 + load.extra_tokens + load.in_flight_tokens
            return ceil_div(min(kept_tokens, load.context_tokens), page.block_tokens) + 1
        case "chunked":
            kept_tokens = page.span_tokens + load.in_flight_tokens
            return ceil_div(min(kept_tokens, load.context_tokens), page.block_tokens)
        case "cross":
            return ceil_div(load.batched_tokens, page.block_tokens)
        case _:
            return page.num_state_blocks


def is_mergeable(first: Page, second: Page) -> bool:
    """Whether vLLM takes two pages for the same, so that their caches form one run of equal pages.

    Full caches that come from windows may differ in the window from those without.
    """
    if first.kind == second.kind == "full":
        windows = {page.span_tokens for page in (first, second)} - {0}
        return len(windows) <= 1 and replace(first, span_tokens=second.span_tokens) == second
    return first == second


def is_uniform(pages: Sequence[Page]) -> bool:
    """Whether the caches always need the same number of blocks, so that they can form one group."""
    first = pages[0]
    if any((p.block_tokens, p.is_dcp_sharded) != (first.block_tokens, first.is_dcp_sharded) for p in pages):
        return False
    match first.kind:
        case "full" | "latent":
            return all(page.kind in {"full", "latent"} for page in pages)
        case "sliding":
            return all(page.kind in SLIDING_KINDS and page.span_tokens == first.span_tokens for page in pages)
        case "state":
            return all(_state_key(page) == _state_key(first) for page in pages)
        case _:
            return all((page.kind, page.span_tokens) == (first.kind, first.span_tokens) for page in pages)


def _state_key(page: Page) -> tuple[str, int, int, str]:
    return page.kind, page.num_state_blocks, page.page_bytes, page.role


def ceil_div(numerator_size: int, divisor_size: int) -> int:
    """The quotient, rounded up."""
    return -(-numerator_size // divisor_size)


def round_up(number_size: int, multiple_size: int) -> int:
    """The next multiple."""
    return ceil_div(number_size, multiple_size) * multiple_size


def block_stride_bytes(pages: Sequence[Page]) -> int:
    """What a block that holds pages side by side is rounded up to."""
    return math.lcm(*(page.stride_bytes for page in pages))
