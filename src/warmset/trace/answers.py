"""Answers come back inside the next prompt, and the server that wrote them holds their KV already.

Ids name prompts only, so a hit count by blocks misses two parts of a turn that goes on: the last block of the
prompt before, which was not full, and the answer to it. Both were in the cache when the answer ended.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from warmset.trace.forest import UNKNOWN, Trace
from warmset.trace.kernel import known_blocks

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

Basis = Literal["previous", "session", "inferred"]
"""How turns that go on are known: the log names the request before, or the session, or neither."""


@dataclass(frozen=True, slots=True)
class Answers:
    """What of each prompt the request that it goes on from left in the cache, one entry a request.

    `parent` is the request it goes on from: all full blocks of that prompt start this one; `UNKNOWN` where
    there is none. `prompt_tokens` are the leading tokens that the parent's prompt covers, `decoded_tokens`
    those that its prompt and answer cover, up to the end of this prompt; 0 without a parent, and where this
    prompt is shorter than the parent's. Both count from the start of the prompt: a cache that holds the
    parent hits so many tokens, or what its blocks cover where that is more.
    An answer that is changed before it comes back (thinking left out) is marked all the same.
    """

    basis: Basis
    parent: Int32s
    prompt_tokens: Int64s
    decoded_tokens: Int64s

    @property
    def num_continuations(self) -> int:
        """Requests that start with all full blocks of an earlier one."""
        return int(np.count_nonzero(self.parent >= 0))


class AnswerHits(NamedTuple):
    """Hit tokens of a cache that never evicts, with more and more of what generation leaves in it."""

    input_tokens: int
    blocks_tokens: int
    """Tokens that known blocks cover."""
    with_partial_block_tokens: int
    """And those that the last, partial block of the parent's prompt covers."""
    with_answer_tokens: int
    """And those that the parent's answer covers."""


def find_answers(trace: Trace) -> Answers:
    """Which request each goes on from, and what that one left in the cache.

    The log's own link counts; else the request before in the session; else the latest request whose last full
    block is the deepest on the path. Blocks that all requests share tell nothing.
    """
    full = np.minimum(trace.input_tokens // trace.block_tokens, trace.num_blocks).astype(np.int32)
    basis: Basis
    if trace.previous is not None:
        basis, parent = "previous", _extended(trace, trace.previous, full, least_blocks=0)
    else:
        shared = _shared_by_all(trace)
        found = _latest_ender(trace.node_parent, trace.node_depth, trace.leaf, full, shared)
        if trace.session is not None:
            before = _extended(trace, _before_in_session(trace.session), full, least_blocks=1)
            in_session = np.where(trace.session[found] == trace.session, found, UNKNOWN)
            basis, parent = "session", np.where(before >= 0, before, in_session)
        else:
            basis, parent = "inferred", found
    return _marked(trace, basis, parent.astype(np.int32))


def answer_hits(trace: Trace, answers: Answers, hit_tokens: Int64s | None = None) -> AnswerHits:
    """Totals; `hit_tokens` of each request are counted here unless given."""
    if hit_tokens is None:
        known = known_blocks(trace.node_parent, trace.leaf, trace.num_blocks)
        hit_tokens = trace.tokens_to_depth(np.arange(trace.num_requests), known)
    return AnswerHits(
        input_tokens=int(trace.input_tokens.sum()),
        blocks_tokens=int(hit_tokens.sum()),
        with_partial_block_tokens=int(np.maximum(hit_tokens, answers.prompt_tokens).sum()),
        with_answer_tokens=int(np.maximum(hit_tokens, answers.decoded_tokens).sum()),
    )


def _marked(trace: Trace, basis: Basis, parent: Int32s) -> Answers:
    goes_on = (parent >= 0) & (trace.input_tokens >= trace.input_tokens[parent])
    prompt = np.where(goes_on, trace.input_tokens[parent], 0)
    with_answer = prompt + np.where(goes_on, trace.output_tokens[parent], 0)
    return Answers(basis, parent, prompt, np.minimum(with_answer, trace.input_tokens))


def _extended(trace: Trace, before: Int32s, full: Int32s, least_blocks: int) -> Int32s:
    """The request before, where it came earlier and all its full blocks, at least so many, start this one."""
    row = np.arange(trace.num_requests)
    earlier = (before >= 0) & (before < row) & (full[before] >= least_blocks)
    starts = np.zeros(row.size, dtype=np.bool_)
    starts[earlier] = _starts_with(
        trace.node_parent, trace.leaf, trace.num_blocks, row[earlier], before[earlier], full[before[earlier]]
    )
    return np.where(starts, before, UNKNOWN).astype(np.int32)


def _before_in_session(session: Int32s) -> Int32s:
    order = np.argsort(session, kind="stable")
    before = np.full(session.size, UNKNOWN, dtype=np.int32)
    follows = session[order[1:]] == session[order[:-1]]
    before[order[1:][follows]] = order[:-1][follows]
    return before


def _shared_by_all(trace: Trace) -> int:
    """Leading blocks that every request after the first finds known: a system prompt, most likely."""
    known = known_blocks(trace.node_parent, trace.leaf, trace.num_blocks)
    return int(known[1:].min()) if known.size > 1 else 0


@numba.njit(cache=True)
def _starts_with(
    node_parent: Int32s, leaf: Int32s, num_blocks: Int32s, row: Int64s, before: Int32s, full: Int32s
) -> Bools:
    """Whether both requests of each pair have the same first `full` blocks."""
    same = np.empty(row.size, dtype=np.bool_)
    for pair in range(row.size):
        depth = full[pair]
        if num_blocks[row[pair]] < depth:
            same[pair] = False
            continue
        node, other = leaf[row[pair]], leaf[before[pair]]
        for _ in range(num_blocks[row[pair]] - depth):
            node = node_parent[node]
        for _ in range(num_blocks[before[pair]] - depth):
            other = node_parent[other]
        same[pair] = node == other
    return same


@numba.njit(cache=True)
def _latest_ender(
    node_parent: Int32s, node_depth: Int32s, leaf: Int32s, full: Int32s, shared_blocks: int
) -> Int32s:
    """The latest request whose last full block is the deepest such block on each path, or -1."""
    ender = np.full(node_parent.size, -1, dtype=np.int32)
    found = np.full(leaf.size, -1, dtype=np.int32)
    for request in range(leaf.size):
        node = leaf[request]
        while node >= 0 and node_depth[node] > full[request]:
            if found[request] < 0 and node_depth[node] > shared_blocks:
                found[request] = ender[node]
            node = node_parent[node]
        last_full = node
        while node >= 0 and found[request] < 0 and node_depth[node] > shared_blocks:
            found[request] = ender[node]
            node = node_parent[node]
        if last_full >= 0:
            ender[last_full] = request
    return found
