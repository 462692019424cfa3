"""Which blocks are used how often and how long, against plain counting."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.description import use_of_blocks
from tests.support.traces import make_trace, prompts, workloads
from warmset.reuse.popularity import BlockUse, LifeSpan, TopBlocks, block_use, popularity
from warmset.stats import quantile
from warmset.trace import Trace


def use_of(*refs: int) -> BlockUse:
    """Blocks with so many references each."""
    times = np.zeros(len(refs), np.int64)
    return BlockUse(np.array(refs), times, times)


@given(workloads())
def test_use_of_every_block_is_that_of_plain_lists(requests):
    trace = make_trace(requests)
    found = zip(*(column.tolist() for column in block_use(trace)), strict=True)
    assert Counter(found) == Counter(map(tuple, use_of_blocks(requests).values()))


@given(workloads(), st.data())
def test_blocks_that_no_request_touches_have_no_use(requests, data):
    """A part of a trace keeps the whole forest."""
    trace = make_trace(requests)
    rows = data.draw(st.lists(st.integers(0, trace.num_requests - 1), min_size=1, unique=True).map(sorted))
    part: Trace = trace.only(np.array(rows))
    use = block_use(part)
    assert use.refs.size == trace.num_nodes
    assert use.refs.sum() == part.block_refs
    ordered = sorted(requests, key=lambda request: request.arrival_ms)
    kept = use_of_blocks([ordered[row] for row in rows])
    assert sorted(use.refs[use.refs > 0].tolist()) == sorted(each.refs for each in kept.values())


def test_shares_by_hand():
    """Twenty blocks: one of 21 references, one of 11, two of 2, and sixteen of 1."""
    found = popularity(use_of(*[1] * 16, 2, 2, 11, 21))
    assert found.used_once_ratio == 0.8
    assert found.top == (
        TopBlocks(1, 0, 0.0, 0.0),
        TopBlocks(10, 2, 32 / 52, 30 / 32),
    )


def test_blocks_used_once_are_never_reused():
    found = popularity(use_of(*[1] * 10, 0))
    assert found.used_once_ratio == 1.0
    assert found.top[1] == TopBlocks(10, 1, 0.1, None)
    assert found.life_span is None
    assert (found.zipf.alpha, found.zipf.r_squared_ratio, found.zipf.num_ranks) == (0.0, None, 10)
    assert found.zipf_body is None


@pytest.mark.parametrize("alpha", [0.3, 1.0, 1.7])
def test_an_exact_power_law_is_found_again(alpha):
    ranks = np.arange(1, 5001)
    found = popularity(use_of(*np.round(1e12 * ranks**-alpha).astype(np.int64).tolist()))
    for fit in (found.zipf, found.zipf_body):
        assert fit.alpha == pytest.approx(alpha, rel=1e-4)
        assert fit.r_squared_ratio == pytest.approx(1)
    assert (found.zipf.num_ranks, found.zipf_body.num_ranks) == (5000, 4901)


def test_the_second_fit_leaves_out_hot_ranks_and_blocks_used_once():
    refs = [10**9] * 99 + [60, 30, 20] + [1] * 500
    found = popularity(use_of(*refs)).zipf_body
    assert found.num_ranks == 3
    slopes = np.polyfit(np.log([100, 101, 102]), np.log([60, 30, 20]), 1)
    assert found.alpha == pytest.approx(-slopes[0])


@pytest.mark.parametrize(("num_blocks", "is_fitted"), [(2, False), (3, True)])
def test_two_ranks_are_no_line(num_blocks, is_fitted):
    assert (popularity(use_of(*range(1, num_blocks + 1))).zipf is not None) == is_fitted


def test_life_span_by_hand():
    """Block 1 lives for 40 s, block 2 for 10 s; block 3 and 4 are used once."""
    found = popularity(block_use(make_trace(prompts([1, 2], [1, 2, 3], [1, 4], [5], [1], gap_ms=10_000))))
    assert found.life_span == LifeSpan(25.0, pytest.approx(37.0))


@given(workloads())
def test_a_top_percent_holds_no_fewer_references_than_any_other_blocks(requests):
    use = block_use(make_trace(requests))
    if not use.refs.size:
        return
    found = popularity(use)
    counts = sorted(use.refs.tolist())
    for top in found.top:
        rest = counts[: len(counts) - top.num_blocks]
        assert top.refs_ratio == pytest.approx(1 - sum(rest) / sum(counts))
    assert all(first.refs_ratio <= second.refs_ratio for first, second in pairwise(found.top))
    assert found.used_once_ratio == pytest.approx(counts.count(1) / len(counts))
    lives = [each.last_ms - each.first_ms for each in use_of_blocks(requests).values() if each.refs > 1]
    assert (found.life_span is None) == (not lives)
    if lives:
        assert quantile(np.array(lives), 0.1) / 1000 <= found.life_span.p50_s <= max(lives) / 1000
