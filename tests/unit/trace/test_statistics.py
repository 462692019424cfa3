"""Lengths, arrivals and provider counters, by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.list_lru import Request
from tests.support.traces import make_trace
from warmset.trace import Trace
from warmset.trace.statistics import (
    CachedShare,
    TokenSpread,
    arrival_statistics,
    quantiles,
    reported_cache,
    token_spread,
    weighted_quantiles,
)


def trace_at(*times_ms: int) -> Trace:
    return make_trace([Request(ms, (1,), 4) for ms in times_ms])


# --- quantiles ---------------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 5)), min_size=1).filter(
        lambda pairs: any(weight for _, weight in pairs)
    ),
    st.floats(0, 1),
)
def test_weighted_quantiles_are_those_of_the_repeated_values(pairs, share):
    values, weights = (np.array(column) for column in zip(*pairs, strict=True))
    repeated = np.repeat(values, weights)
    (found,) = weighted_quantiles(values, weights, (share,))
    assert found == pytest.approx(np.quantile(repeated, share), abs=1e-6)


def test_a_quantile_at_a_rank_is_the_value_there():
    # 0.29 * 100 is 28.999999999999996 in binary.
    assert quantiles(np.arange(101), (0.29, 0.5, 1)) == (29.0, 50.0, 100.0)


def test_a_quantile_of_nothing_is_refused():
    with pytest.raises(ValueError, match="no values"):
        weighted_quantiles(np.array([3]), np.array([0]), (0.5,))


def test_token_spread_by_hand():
    # 0 to 10: ranks 5, 9 and 9.9.
    assert token_spread(np.arange(11)) == TokenSpread(5.0, 5.0, 9.0, pytest.approx(9.9), 10)


# --- arrivals ----------------------------------------------------------------------------------------


def test_arrivals_by_hand():
    """Three in the first second, none in the second, one in the third; gaps of 0, 500 and 1500 ms."""
    found = arrival_statistics(trace_at(7000, 7000, 7500, 9000))
    assert found.span_s == 2.0
    assert found.requests_per_s == 2.0
    assert found.max_requests_per_s == 3
    assert found.p99_requests_per_s == pytest.approx(1 + 0.98 * 2)  # of 0, 1, 3: rank 1.98
    # Mean 2000/3, squared deviations (2000/3)^2, (500/3)^2, (2500/3)^2 over 3.
    assert found.inter_arrival_cv_ratio == pytest.approx(
        ((2000**2 + 500**2 + 2500**2) / 27) ** 0.5 / (2000 / 3)
    )
    assert found.clock_step_ms == 1000


@pytest.mark.parametrize("times", [(5,), (5, 5, 5)], ids=["one", "at_once"])
def test_requests_at_once_have_no_rate(times):
    found = arrival_statistics(trace_at(*times))
    assert (found.requests_per_s, found.inter_arrival_cv_ratio) == (None, None)
    assert (found.span_s, found.max_requests_per_s, found.p99_requests_per_s) == (0.0, len(times), len(times))


def test_two_requests_have_a_rate_and_no_variation():
    found = arrival_statistics(trace_at(0, 4000))
    assert (found.requests_per_s, found.inter_arrival_cv_ratio) == (0.5, None)


def test_a_span_of_centuries_takes_no_memory():
    found = arrival_statistics(trace_at(0, 1, 2**52))
    assert (found.max_requests_per_s, found.p99_requests_per_s) == (2, 0.0)


# --- provider's cache --------------------------------------------------------------------------------


def cached(tokens: list[int], kinds: list[int] | None = None) -> Trace:
    trace = make_trace([Request(row, (row,), 10) for row in range(len(tokens))])
    kind = None if kinds is None else np.array(kinds, np.int32)
    names = ("main", "cron", "unused")
    return replace(trace, cached_tokens=np.array(tokens), kind=kind, kind_names=names)


def test_reported_cache_counts_the_requests_that_have_the_counter():
    found = reported_cache(cached([4, -1, 0, 8], [0, 0, 1, -1]))
    assert found is not None
    assert found.of_all == CachedShare(3, 30, 12, 0.4)
    assert found.of_kind == {"main": CachedShare(1, 10, 4, 0.4), "cron": CachedShare(1, 10, 0, 0.0)}


def test_reported_cache_without_kinds_and_without_counter():
    found = reported_cache(cached([5, 5]))
    assert found is not None
    assert (found.of_all.token_hit_ratio, found.of_kind) == (0.5, {})
    assert reported_cache(trace_at(0)) is None


def test_reported_cache_of_empty_prompts_has_no_share():
    trace = replace(make_trace([Request(0, (), 0)]), cached_tokens=np.array([0]))
    assert reported_cache(trace).of_all == CachedShare(1, 0, 0, None)
