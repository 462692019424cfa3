"""Slow and obvious caches of prefix blocks, on plain lists: the reference for `warmset.reuse`.

A block is the tuple of ids from the start of the prompt up to it, so it includes everything before it.
Nothing here knows of forests, distances or histograms.
"""

from collections.abc import Sequence
from typing import NamedTuple

Block = tuple[int, ...]


class Request(NamedTuple):
    arrival_ms: int
    ids: tuple[int, ...]
    input_tokens: int = 0


def in_order(requests: Sequence[Request]) -> list[Request]:
    """By arrival; ties keep their order."""
    return sorted(requests, key=lambda request: request.arrival_ms)


def blocks_of(request: Request) -> list[Block]:
    return [request.ids[: depth + 1] for depth in range(len(request.ids))]


def leading_run(blocks: list[Block], cache: list[Block]) -> int:
    """Blocks present from the start of the prompt up to the first absent one."""
    for count, block in enumerate(blocks):
        if block not in cache:
            return count
    return len(blocks)


def hit_blocks(
    requests: Sequence[Request], capacity: int | None = None, ttl_ms: int | None = None
) -> list[int]:
    """Hit blocks of each request, in order of arrival; `None` lifts a limit.

    Lookup first, then every block is touched from the last to the first, so that a tail is evicted before its
    head. A touch renews the time to live; expired blocks leave before the lookup.
    """
    cache: list[Block] = []  # the most recently used one first
    touched_ms: dict[Block, int] = {}
    hits = []
    for request in in_order(requests):
        if ttl_ms is not None:
            cache = [block for block in cache if request.arrival_ms - touched_ms[block] <= ttl_ms]
        blocks = blocks_of(request)
        hits.append(leading_run(blocks, cache))
        for block in reversed(blocks):
            if block in cache:
                cache.remove(block)
            elif capacity is not None and len(cache) == capacity > 0:
                cache.pop()
            if capacity != 0:
                cache.insert(0, block)
            touched_ms[block] = request.arrival_ms
    return hits


def present_blocks(requests: Sequence[Request], capacity: int) -> list[list[bool]]:
    """Whether each block of each request is present at lookup, whatever its ancestors."""
    cache: list[Block] = []
    present = []
    for request in in_order(requests):
        blocks = blocks_of(request)
        present.append([block in cache for block in blocks])
        for block in reversed(blocks):
            cache = [block, *(other for other in cache if other != block)][:capacity]
    return present


def kvcache_simulator_hit_blocks(requests: Sequence[Request], capacity: int) -> list[int]:
    """Tails-first LRU as kvcache-simulator 0.1.3 counts it.

    It does not protect the blocks that it is just adding: of a prompt longer than the cache, and not held up
    to its capacity before, it keeps one block fewer than there is room for.
    """
    cache: list[Block] = []
    hits = []
    for request in in_order(requests):
        blocks = blocks_of(request)
        hits.append(leading_run(blocks, cache))
        if len(blocks) > capacity > hits[-1]:
            cache = blocks[: capacity - 1]
        else:
            cache = [*blocks, *(block for block in cache if block not in blocks)][:capacity]
    return hits


def hit_tokens(requests: Sequence[Request], hits: list[int], block_tokens: int) -> list[int]:
    """Input tokens that the hit blocks cover."""
    ordered = in_order(requests)
    return [min(hit * block_tokens, request.input_tokens) for request, hit in zip(ordered, hits, strict=True)]


def blocks_touched(requests: Sequence[Request], first_ms: int, last_ms: int) -> set[Block]:
    """Distinct blocks of the requests that arrive in `[first, last]`."""
    inside = (request for request in requests if first_ms <= request.arrival_ms <= last_ms)
    return {block for request in inside for block in blocks_of(request)}


def window_counts(requests: Sequence[Request], window_ms: int) -> list[int]:
    """Distinct blocks of consecutive windows, from the first arrival on."""
    start, end = in_order(requests)[0].arrival_ms, in_order(requests)[-1].arrival_ms
    return [
        len(blocks_touched(requests, first, first + window_ms - 1))
        for first in range(start, end + 1, window_ms)
    ]


def resident_counts(requests: Sequence[Request], ttl_ms: int) -> dict[int, int]:
    """Blocks that a sliding time to live keeps, at every millisecond from the first arrival to the last."""
    start, end = in_order(requests)[0].arrival_ms, in_order(requests)[-1].arrival_ms
    return {now: len(blocks_touched(requests, now - ttl_ms, now)) for now in range(start, end + 1)}
