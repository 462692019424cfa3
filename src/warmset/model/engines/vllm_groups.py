"""How vLLM sorts caches into groups that share a block table, so that blocks of all groups weigh the same.

Source: vLLM 0.33.0 v1/core/kv_cache_planning.py get_kv_cache_groups and what it calls.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import lcm

from warmset.errors import InputError
from warmset.model.engines.vllm_packing import packed_groups
from warmset.model.engines.vllm_pages import (
    SLIDING_KINDS,
    Cache,
    Load,
    Page,
    block_stride_bytes,
    ceil_div,
    is_mergeable,
    is_uniform,
    request_blocks,
    round_up,
)

BALANCED_FACTOR = 1.5
"""Kinds that differ by less than this in their number of layers form groups of the larger number."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """Groups of caches; with `is_packed`, pages of unequal size lie side by side within a block.

    `num_padding_caches`: caches that do not exist but take room, so that groups are alike.
    """

    groups: tuple[tuple[Cache, ...], ...]
    is_packed: bool
    num_padding_caches: int = 0


def group_caches(
    model_name: str, caches: Sequence[Cache], *, is_packed: bool, hybrid_manager: bool
) -> Grouping:
    """The groups of a model.

    Raises: InputError when the hybrid manager is off and the caches do not become of one kind without it.
    """
    if not hybrid_manager:
        caches = _without_manager(model_name, caches)
    pages = [cache.page for cache in caches]
    if not caches:
        return Grouping((), is_packed=is_packed)
    if all(is_mergeable(pages[0], page) for page in pages) or is_uniform(pages):
        return Grouping((tuple(caches),), is_packed=is_packed)
    if is_packed and len({page.page_bytes for page in pages}) > 1:
        return Grouping(packed_groups(caches), is_packed=True)
    return _equal_groups(_with_equal_pages(model_name, caches), is_packed=is_packed)


def group_bytes(grouping: Grouping, group: Sequence[Cache]) -> int:
    """Bytes of a block that a group fills, with the padding of its own pages."""
    if grouping.is_packed:
        return sum(cache.page.page_bytes for cache in group)
    return sum(round_up(cache.page.page_bytes, cache.page.stride_bytes) for cache in group)


def block_bytes(grouping: Grouping) -> int:
    """Bytes of one block of the pool: of the widest group."""
    widest = max((group_bytes(grouping, group) for group in grouping.groups), default=0)
    if not grouping.is_packed:
        return widest
    strides = [block_stride_bytes([cache.page for cache in group]) for group in grouping.groups if group]
    return round_up(widest, lcm(*strides))


def group_request_blocks(group: Sequence[Cache], load: Load) -> int:
    """Blocks that a request of the greatest length takes in a group: as its neediest cache."""
    return max(request_blocks(cache.page, load) for cache in group)


def _without_manager(model_name: str, caches: Sequence[Cache]) -> list[Cache]:
    """Windows and chunks become full caches."""
    full = {cache.page.block_tokens for cache in caches if cache.page.kind in {"full", "latent"}}
    has_local = any(cache.page.kind in {*SLIDING_KINDS, "chunked"} for cache in caches)
    promoted = list(caches)
    if full and has_local and not is_uniform([cache.page for cache in caches]):
        block_tokens = next(iter(full)) if len(full) == 1 else None
        promoted = [replace(cache, page=_promoted(cache.page, block_tokens)) for cache in caches]
    pages = [cache.page for cache in promoted]
    if pages and not is_uniform(pages):
        kinds = ", ".join(sorted({page.kind for page in pages}))
        raise InputError(
            f"{model_name}: vLLM cannot serve it with the hybrid KV cache manager off (caches of kinds "
            f"{kinds}): leave the manager on, or use a KV connector that supports it"
        )
    return promoted


def _promoted(page: Page, block_tokens: int | None) -> Page:
    kinds: dict[str, Page] = {
        "sliding": replace(page, kind="full"),
        "sliding_latent": replace(page, kind="latent"),
        "chunked": replace(page, kind="full"),
    }
    changed = kinds.get(page.kind)
    if changed is None:
        return page
    return replace(changed, block_tokens=block_tokens or page.block_tokens)


def _with_equal_pages(model_name: str, caches: Sequence[Cache]) -> list[Cache]:
    """Pages of one size: blocks of more tokens where the sizes divide, else padding.

    Raises: InputError when neither is possible, as for latents.
    """
    largest = max(cache.page.page_bytes for cache in caches)
    return [replace(cache, page=_widened(model_name, cache.page, largest)) for cache in caches]


def _widened(model_name: str, page: Page, largest_bytes: int) -> Page:
    if page.page_bytes == largest_bytes:
        return page
    if page.kind == "state":
        return replace(page, padded_bytes=largest_bytes)
    if largest_bytes % page.page_bytes == 0:
        factor = largest_bytes // page.page_bytes
        return replace(page, block_tokens=page.block_tokens * factor)
    if page.kind == "latent":
        raise InputError(
            f"{model_name}: vLLM cannot make pages of {page.page_bytes} and {largest_bytes} bytes alike, "
            "because pages of latents cannot be padded: choose another block_tokens or KV layout"
        )
    return replace(page, padded_bytes=largest_bytes)


def _equal_groups(caches: Sequence[Cache], *, is_packed: bool) -> Grouping:
    """Groups of as many caches as the rarest kind has; the last of a kind is padded."""
    buckets: list[list[Cache]] = []
    for cache in caches:
        bucket = next(
            (bucket for bucket in buckets if all(is_mergeable(other.page, cache.page) for other in bucket)),
            None,
        )
        if bucket is None:
            buckets.append([cache])
        else:
            bucket.append(cache)
    sizes = [len(bucket) for bucket in buckets]
    group_size = max(sizes) if max(sizes) < min(sizes) * BALANCED_FACTOR else min(sizes)
    counts = [ceil_div(size, group_size) for size in sizes]
    groups = tuple(
        tuple(bucket[start::count])
        for bucket, count in zip(buckets, counts, strict=True)
        for start in range(count)
    )
    num_padding = sum(counts) * group_size - sum(sizes)
    return Grouping(groups, is_packed=is_packed, num_padding_caches=num_padding)
