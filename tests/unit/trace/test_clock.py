"""Coarse clocks: requests of one tick are spread over it, and nothing else moves."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.list_lru import Request
from tests.support.traces import make_trace
from warmset.trace import sample_trace
from warmset.trace.clock import spread_arrivals


def trace_at(*times: int):
    return make_trace([Request(ms, (1,), 4) for ms in times])


def test_requests_of_a_tick_are_spread_up_to_the_next_one():
    arrivals = spread_arrivals(trace_at(0, 0, 0, 3000, 3000, 9000))
    assert arrivals.arrival_ms.tolist() == [0, 1000, 2000, 3000, 6000, 9000]
    assert arrivals.clock_step_ms == 4500
    assert (arrivals.finding.code, arrivals.finding.count) == ("clock_step", 5)
    assert arrivals.finding.first_example == "the clock steps by 4500 ms, up to 3 requests in one step"


def test_the_last_tick_is_as_long_as_the_step():
    assert spread_arrivals(trace_at(0, 0, 2000, 2000)).arrival_ms.tolist() == [0, 1000, 2000, 3000]


@pytest.mark.parametrize(
    "times",
    [(0, 0, 999, 999), (0, 3000, 6000), (0, 3000, 6000, 6000), (5, 5, 5), (7,)],
    ids=["fine_clock", "distinct", "mostly_distinct", "one_time", "one_request"],
)
def test_other_times_stay(times):
    arrivals = spread_arrivals(trace_at(*times))
    assert arrivals.arrival_ms.tolist() == list(times)
    assert arrivals.finding is None


def test_the_sample_ticks_every_three_seconds():
    trace = sample_trace()
    arrivals = spread_arrivals(trace)
    assert arrivals.clock_step_ms == 3000
    assert arrivals.finding.count > trace.num_requests / 2
    moved_ms = arrivals.arrival_ms - trace.arrival_ms
    assert moved_ms.min() == 0
    assert moved_ms.max() < 2 * 3000


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40).map(sorted), st.sampled_from([1, 1000, 3000]))
def test_order_and_ticks_are_kept(ticks, step_ms):
    """Spread or not, nobody overtakes, and nobody leaves the tick that the log put it in."""
    times = [tick * step_ms for tick in ticks]
    arrivals = spread_arrivals(trace_at(*times))
    assert (np.diff(arrivals.arrival_ms) >= 0).all()
    later = {time: following for time, following in itertools.pairwise(times) if following > time}
    for time, moved in zip(times, arrivals.arrival_ms.tolist(), strict=True):
        assert time <= moved
        assert moved < later.get(time, float("inf")) or moved == time
