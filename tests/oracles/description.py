"""What a trace holds, counted the slow way, on plain lists and sets: the reference for `describe`.

A block is the tuple of ids from the start of the prompt up to it. Nothing here knows of forests or runs.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from tests.oracles.list_lru import Block, Request, blocks_of, in_order


class Use(NamedTuple):
    refs: int
    first_ms: int
    last_ms: int


def use_of_blocks(requests: Sequence[Request]) -> dict[Block, Use]:
    """References and first and last touch of each distinct block."""
    touches: dict[Block, list[int]] = defaultdict(list)
    for request in requests:
        for block in blocks_of(request):
            touches[block].append(request.arrival_ms)
    return {block: Use(len(times), min(times), max(times)) for block, times in touches.items()}


def reuse_times_ms(requests: Sequence[Request]) -> list[int]:
    """Time since the reference before, of every reference to a block that has one."""
    last_ms: dict[Block, int] = {}
    ages = []
    for request in in_order(requests):
        for block in blocks_of(request):
            if block in last_ms:
                ages.append(request.arrival_ms - last_ms[block])
            last_ms[block] = request.arrival_ms
    return ages


def unlimited_hits(requests: Sequence[Request]) -> list[int]:
    """Leading blocks of each request, in order of arrival, that an earlier one had."""
    seen: set[Block] = set()
    hits = []
    for request in in_order(requests):
        blocks = blocks_of(request)
        hits.append(sum(block in seen for block in blocks))  # no block is known without the ones before it
        seen.update(blocks)
    return hits


def sessions_at(visits: Sequence[tuple[int, int]], now_ms: int, window_ms: int) -> tuple[int, int]:
    """Open and active sessions at a moment, from pairs of session and arrival."""
    times: dict[int, list[int]] = defaultdict(list)
    for session, arrival_ms in visits:
        times[session].append(arrival_ms)
    opened = [each for each in times.values() if min(each) <= now_ms <= max(each)]
    active = [each for each in opened if any(now_ms - window_ms <= ms <= now_ms for ms in each)]
    return len(opened), len(active)


def latest_starts(requests: Sequence[Request], block_tokens: int, shared_blocks: int) -> list[int | None]:
    """For each request, the earlier one whose full blocks, more than the shared ones, start it.

    Of several, the one with most full blocks, and of those the latest.
    """
    ordered = in_order(requests)
    full = [request.ids[: request.input_tokens // block_tokens] for request in ordered]
    found: list[int | None] = []
    for row, request in enumerate(ordered):
        starts = [
            (len(full[before]), before)
            for before in range(row)
            if len(full[before]) > shared_blocks and request.ids[: len(full[before])] == full[before]
        ]
        found.append(max(starts)[1] if starts else None)
    return found
