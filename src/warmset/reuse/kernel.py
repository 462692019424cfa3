"""The one pass over a trace, and the sum over what it finds, compiled.

Read it beside `tests/oracles/list_lru.py`, which is slow and obvious.

Every node is owned by the last request that touched it. Along a path from the root the owner never gets
younger, because whoever touched a node touched its ancestors too. So a path falls into a few runs of nodes
with one owner q, and under LRU with tails evicted before heads the node at depth d of such a run has

    distance = (nodes owned by requests younger than q) + d - (nodes that q lost to younger requests)

all as of the lookup. It counts the node itself: the node is a hit if and only if distance <= capacity.
The nodes that q lost are the first of its path. The first term is one query of a Fenwick tree over requests.
"""

from typing import Any

import numba
import numpy as np
import numpy.typing as npt

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


@numba.njit(cache=True, inline="always")
def _add(tree: Int32s, request: int, amount: int) -> None:
    position = request + 1
    while position < tree.size:
        tree[position] += amount
        position += position & -position


@numba.njit(cache=True, inline="always")
def _sum_to(tree: Int32s, request: int) -> int:
    """Nodes owned by requests up to and including `request`."""
    position = request + 1
    total = 0
    while position > 0:
        total += tree[position]
        position -= position & -position
    return total


@numba.njit(cache=True)
def find_runs(
    node_parent: Int32s, leaf: Int32s, num_blocks: Int32s
) -> tuple[Int32s, Int32s, Int32s, Int32s, Int64s]:
    """Runs of reused nodes of all requests, in order of request, each request's from the tail to the head.

    Returns columns: request, owner (the request that touched the run last), first depth, length, and the
    reuse distance of the run's first node; the next nodes of the run have the next distances.
    """
    num_requests = leaf.size
    owner = np.full(node_parent.size, -1, dtype=np.int32)
    owned = np.zeros(num_requests, dtype=np.int32)
    tree = np.zeros(num_requests + 1, dtype=np.int32)
    known = 0
    room = 4 * num_requests + 16
    run_request = np.empty(room, dtype=np.int32)
    run_owner = np.empty(room, dtype=np.int32)
    run_depth = np.empty(room, dtype=np.int32)
    run_length = np.empty(room, dtype=np.int32)
    run_distance = np.empty(room, dtype=np.int64)
    count = 0
    for request in range(num_requests):
        node = leaf[request]
        depth = num_blocks[request]
        while node >= 0 and owner[node] < 0:
            owner[node] = request
            node = node_parent[node]
            depth -= 1
        fresh = num_blocks[request] - depth
        first_run = count
        while node >= 0:
            last = owner[node]
            bottom = depth
            while node >= 0 and owner[node] == last:
                owner[node] = request
                node = node_parent[node]
                depth -= 1
            if count == room:
                room *= 2
                run_request = _grown(run_request, room)
                run_owner = _grown(run_owner, room)
                run_depth = _grown(run_depth, room)
                run_length = _grown(run_length, room)
                run_distance = _grown(run_distance, room)
            run_request[count] = request
            run_owner[count] = last
            run_depth[count] = depth + 1
            run_length[count] = bottom - depth
            count += 1
        for run in range(first_run, count):
            last = run_owner[run]
            younger = known - _sum_to(tree, last)
            lost = num_blocks[last] - owned[last]
            run_distance[run] = younger + run_depth[run] - lost
        for run in range(first_run, count):
            _add(tree, run_owner[run], -run_length[run])
            owned[run_owner[run]] -= run_length[run]
        owned[request] = num_blocks[request]
        _add(tree, request, num_blocks[request])
        known += fresh
    return (
        run_request[:count].copy(),
        run_owner[:count].copy(),
        run_depth[:count].copy(),
        run_length[:count].copy(),
        run_distance[:count].copy(),
    )


@numba.njit(cache=True)
def _grown(column: npt.NDArray[Any], room: int) -> npt.NDArray[Any]:
    bigger = np.empty(room, dtype=column.dtype)
    bigger[: column.size] = column
    return bigger


@numba.njit(cache=True)
def sum_runs(
    depth: Int32s, length: Int32s, distance: Int64s, input_tokens: Int64s, block_tokens: int
) -> tuple[Int64s, Int64s]:
    """Hit blocks and hit tokens at every capacity from 0 to the one that hits all there is to hit.

    Shapes: one entry a run in the arguments, `input_tokens` being those of the run's request.
    Block i of a run becomes a hit at capacity `distance + i` and brings `block_tokens`; the one in which the
    input ends brings what is left, and those past the end nothing. So a run adds a range to a histogram,
    which is kept as the steps between its neighbours until all runs are in.
    """
    most = 0
    for run in range(distance.size):
        most = max(most, distance[run] + length[run] - 1)
    blocks = np.zeros(most + 3, dtype=np.int64)
    tokens = np.zeros(most + 3, dtype=np.int64)
    for run in range(distance.size):
        start, end = distance[run], distance[run] + length[run]
        blocks[start] += 1
        blocks[end] -= 1
        left = max(input_tokens[run] - np.int64(depth[run] - 1) * block_tokens, 0)
        full_end = min(start + left // block_tokens, end)
        tokens[start] += block_tokens
        tokens[full_end] -= block_tokens
        if full_end < end:
            tokens[full_end] += left % block_tokens
            tokens[full_end + 1] -= left % block_tokens
    _sum_twice(blocks)
    _sum_twice(tokens)
    return blocks[: most + 1], tokens[: most + 1]


@numba.njit(cache=True, inline="always")
def _sum_twice(steps: Int64s) -> None:
    """Steps to levels to sums, in place."""
    level = 0
    total = 0
    for position in range(steps.size):
        level += steps[position]
        total += level
        steps[position] = total
