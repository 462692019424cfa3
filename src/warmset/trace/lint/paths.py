"""Walks over the paths of requests in a prefix forest, compiled."""

import numba
import numpy as np
import numpy.typing as npt

from warmset.trace import kernel
from warmset.trace.forest import Trace

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

UNSEEN = -1


def known_blocks(trace: Trace) -> Int64s:
    """Leading blocks of each request that an earlier one had: its path is new from some block on."""
    number = kernel.number_by_first_use(trace.node_parent, trace.leaf)
    last = np.where(trace.leaf >= 0, number[trace.leaf], UNSEEN) if number.size else trace.leaf
    reached = np.maximum.accumulate(np.concatenate(([UNSEEN], last)))
    known: Int64s = trace.num_blocks.astype(np.int64) - np.diff(reached)
    return known


def shared_blocks(trace: Trace, first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]) -> Int64s:
    """Leading blocks that two requests have in common, for many pairs of requests."""
    common: Int64s = _shared(
        np.ascontiguousarray(trace.leaf[first]),
        np.ascontiguousarray(trace.leaf[second]),
        np.asarray(trace.node_parent),
        np.asarray(trace.node_depth),
    )
    return common


def reuse_ages_ms(trace: Trace, known: Int64s) -> Int64s:
    """Time since the last known block of each request was used before; `UNSEEN` where it has none."""
    ages: Int64s = _ages(
        np.asarray(trace.leaf),
        known,
        np.asarray(trace.num_blocks),
        np.asarray(trace.arrival_ms),
        np.asarray(trace.node_parent),
    )
    return ages


@numba.njit(cache=True)
def _shared(first: Int32s, second: Int32s, node_parent: Int32s, node_depth: Int32s) -> Int64s:
    common = np.zeros(first.size, dtype=np.int64)
    for pair in range(first.size):
        one, other = first[pair], second[pair]
        while one >= 0 and other >= 0 and one != other:
            depth, other_depth = node_depth[one], node_depth[other]
            if depth >= other_depth:
                one = node_parent[one]
            if other_depth >= depth:
                other = node_parent[other]
        if one >= 0 and other >= 0:
            common[pair] = node_depth[one]
    return common


@numba.njit(cache=True)
def _ages(leaf: Int32s, known: Int64s, num_blocks: Int32s, arrival_ms: Int64s, node_parent: Int32s) -> Int64s:
    ages = np.full(leaf.size, UNSEEN, dtype=np.int64)
    used_ms = np.full(node_parent.size, UNSEEN, dtype=np.int64)
    for request in range(leaf.size):
        node = leaf[request]
        steps = num_blocks[request] - known[request]
        while node >= 0:
            if steps == 0:
                ages[request] = arrival_ms[request] - used_ms[node]
            steps -= 1
            used_ms[node] = arrival_ms[request]
            node = node_parent[node]
    return ages
