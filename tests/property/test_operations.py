"""Operations on traces, against what they mean for tuples of ids."""

import io
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.traces import BLOCK_TOKENS, make_trace, requests_of, workloads
from warmset.trace import Trace, read_trace
from warmset.trace.operations import (
    Slice,
    clone_sessions,
    merge_traces,
    reblock,
    slice_trace,
    speed_up,
    trimmed,
)
from warmset.trace.options import ReadOptions
from warmset.trace.writers import TARGETS, export_trace

COLUMNS = ("node_parent", "node_depth", "leaf", "num_blocks", "arrival_ms", "input_tokens", "output_tokens")
READ_BACK_AS = {
    "mooncake": "mooncake",
    "bailian": "bailian",
    "aiperf": "dynamo",
    "kvcache-simulator": "kvcache_ai",
}


def same(one: Trace, other: Trace) -> bool:
    return all(getattr(one, name).tolist() == getattr(other, name).tolist() for name in COLUMNS)


def shared_blocks(one: tuple, other: tuple) -> int:
    return next(
        (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def hit_tokens_of(paths: list[tuple], input_tokens: list[int], block_tokens: int) -> int:
    """Leading blocks that an earlier prompt had, in tokens of the input: every prompt against all before."""
    total = 0
    for position, path in enumerate(paths):
        known = max((shared_blocks(path, earlier) for earlier in paths[:position]), default=0)
        total += min(known * block_tokens, input_tokens[position])
    return total


@given(workloads(), st.integers(0, 30), st.integers(0, 30))
def test_a_slice_of_time_keeps_just_its_requests(requests, start_ms, length_ms):
    trace = make_trace(requests)
    since = trace.arrival_ms - trace.arrival_ms[0]
    kept = (since >= start_ms) & (since < start_ms + length_ms)
    wanted = Slice(from_ms=start_ms, to_ms=start_ms + length_ms)
    if not kept.any():
        with pytest.raises(Exception, match="no request"):
            slice_trace(trace, wanted, np.random.default_rng(0))
        return
    part = slice_trace(trace, wanted, np.random.default_rng(0))
    assert part.input_tokens.tolist() == trace.input_tokens[kept].tolist()
    assert (part.arrival_ms - part.arrival_ms[0]).tolist() == (since[kept] - since[kept][0]).tolist()
    before, after = requests_of(trace), requests_of(part)
    kept_before = [request for request, keep in zip(before, kept.tolist(), strict=True) if keep]
    # Ids are numbered anew: equal prefixes stay equal, and no others become so.
    for one, other in zip(kept_before, after, strict=True):
        assert len(one.ids) == len(other.ids)
    for (a, b), (c, d) in zip(
        [(a, b) for a in kept_before for b in kept_before],
        [(c, d) for c in after for d in after],
        strict=True,
    ):
        assert shared_blocks(a.ids, b.ids) == shared_blocks(c.ids, d.ids)
    assert part.num_nodes == len(
        {request.ids[: n + 1] for request in kept_before for n in range(len(request.ids))}
    )


@given(workloads())
def test_trimming_a_whole_trace_changes_nothing(requests):
    trace = make_trace(requests)
    assert same(trimmed(trace), trace)


@given(workloads(), st.integers(1, 4))
def test_larger_blocks_are_runs_of_small_ones(requests, times):
    trace = make_trace(requests)
    result = reblock(trace, times * BLOCK_TOKENS)
    small = requests_of(trace)
    coarse = requests_of(result.trace)
    paths = []
    for request in small:
        whole = len(request.ids) // times
        path = [("full", request.ids[: (n + 1) * times]) for n in range(whole)]
        rest = request.ids[whole * times :]
        big = len(coarse[len(paths)].ids)
        assert big in {whole, whole + bool(rest)}
        paths.append(tuple(path) + ((("rest", request.ids),) if big > whole else ()))
    # Two prompts share as many large blocks as their runs of small ones are equal.
    for one, path in zip(coarse, paths, strict=True):
        for other, other_path in zip(coarse, paths, strict=True):
            assert shared_blocks(one.ids, other.ids) == shared_blocks(path, other_path)
    tokens = [request.input_tokens for request in small]
    assert result.before.hit_tokens == hit_tokens_of([each.ids for each in small], tokens, BLOCK_TOKENS)
    assert result.after.hit_tokens == hit_tokens_of(paths, tokens, times * BLOCK_TOKENS)


@given(workloads(), st.sampled_from([0.5, 1.0, 2.0, 3.0]))
def test_a_faster_trace_shrinks_every_gap(requests, factor):
    trace = make_trace(requests)
    faster = speed_up(trace, factor)
    assert faster.arrival_ms.tolist() == [round(ms / factor) for ms in trace.arrival_ms.tolist()] or all(
        abs(a - b / factor) <= 0.5
        for a, b in zip(faster.arrival_ms.tolist(), trace.arrival_ms.tolist(), strict=True)
    )
    assert faster.leaf.tolist() == trace.leaf.tolist()


@given(workloads(), st.integers(1, 3), st.booleans())
def test_copies_of_sessions_share_what_sessions_share(requests, factor, share):
    trace = make_trace(requests)
    session = (np.arange(trace.num_requests) % 3).astype(np.int32)
    session = np.unique(session, return_inverse=True)[1].astype(np.int32)
    trace = replace(trace, session=session)
    scaled = clone_sessions(trace, session, factor, np.random.default_rng(1), share=share)
    assert scaled.num_requests == factor * trace.num_requests
    assert scaled.arrival_ms.min() >= trace.arrival_ms[0]
    assert scaled.arrival_ms.max() <= trace.arrival_ms[-1]
    assert sorted(scaled.input_tokens.tolist()) == sorted(factor * trace.input_tokens.tolist())
    paths = [request.ids for request in requests_of(trace)]
    users: dict[tuple, set[int]] = {}
    for path, name in zip(paths, session.tolist(), strict=True):
        for depth in range(len(path)):
            users.setdefault(path[: depth + 1], set()).add(name)
    private = sum(1 for names in users.values() if len(names) == 1)
    copied = private if share else sum(len(names) for names in users.values())
    if factor == 1:
        assert same(scaled, trace)
    elif share:
        assert scaled.num_nodes == trace.num_nodes + (factor - 1) * copied
    else:
        assert scaled.num_nodes == factor * trace.num_nodes


@given(workloads(), workloads())
def test_merged_traces_keep_their_own_blocks(one, other):
    first, second = make_trace(one), make_trace(other)
    merged = merge_traces([first, second], [0, 7])
    assert merged.num_nodes == first.num_nodes + second.num_nodes
    assert merged.num_requests == first.num_requests + second.num_requests
    starts = ((first, 0), (second, 7))
    expected = sorted(
        ms - int(each.arrival_ms[0]) + at for each, at in starts for ms in each.arrival_ms.tolist()
    )
    assert merged.arrival_ms.tolist() == expected
    assert merged.block_refs == first.block_refs + second.block_refs


@pytest.mark.parametrize("target", TARGETS)
@given(requests=workloads())
def test_what_is_exported_and_read_again_is_the_same(target, requests):
    # Lengths that fit the blocks: a file whose rows do not is refused, with the size that would fit.
    whole = [request._replace(input_tokens=len(request.ids) * BLOCK_TOKENS) for request in requests]
    trace = make_trace(whole)
    if not trace.has_blocks or (target == "kvcache-simulator" and not trace.input_tokens.all()):
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.jsonl.gz"
        written = export_trace(trace, target, path, io.BytesIO())
        assert written.num_rows == trace.num_requests
        back = read_trace([path], READ_BACK_AS[target], ReadOptions(block_tokens=BLOCK_TOKENS))
    assert same(back, trace)
