"""Turns, pauses, context and activity of sessions, by hand and at every millisecond."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.description import sessions_at
from tests.oracles.list_lru import Request
from tests.support.traces import make_trace
from warmset.trace import Trace
from warmset.trace.session_statistics import (
    ContextDepth,
    ThinkTimes,
    TurnGaps,
    context_depth,
    session_activity,
    think_times,
    turn_gaps,
    turns_per_session,
)
from warmset.trace.statistics import token_spread


def trace_at(*times_ms: int, **columns: list[int]) -> Trace:
    trace = make_trace([Request(ms, (row,), 10 * (row + 1)) for row, ms in enumerate(times_ms)])
    return replace(trace, **{name: np.array(column) for name, column in columns.items()})


def test_turns_by_hand():
    found = turns_per_session(np.array([4, 9, 4, 4]))
    assert (found.mean_requests, found.p50_requests, found.max_requests) == (2.0, 2.0, 3)
    assert found.p90_requests == pytest.approx(2.8)


def test_gaps_are_within_sessions():
    session = np.array([0, 1, 0, 1, 0])
    found = turn_gaps(trace_at(0, 1000, 5000, 5000, 6000), session)
    assert found == TurnGaps(3, 4.0, pytest.approx(4.8), pytest.approx(4.98))  # 5, 4 and 1 s


def test_sessions_of_one_request_have_no_gaps():
    assert turn_gaps(trace_at(0, 1000), np.array([0, 1])) is None
    assert think_times(trace_at(0, 1000), np.array([0, 1])) is None


# --- think times -------------------------------------------------------------------------------------

SESSION = np.array([0, 0, 0])


def test_logged_think_times_count_only_before_turns_that_go_on():
    trace = trace_at(0, 5000, 9000, think_ms=[7000, 1000, -1])
    assert think_times(trace, SESSION) == ThinkTimes("think_ms", 1, 0, 1.0, 1.0, 1.0)


def test_gaps_less_durations_leave_out_what_overlaps_and_what_is_unknown():
    trace = trace_at(0, 5000, 9000, 9500, duration_ms=[2000, 5000, -1, 3])
    found = think_times(trace, np.array([0, 0, 0, 0]))
    assert found == ThinkTimes("gap_minus_duration", 1, 1, 3.0, 3.0, 3.0)


def test_gaps_alone_say_so():
    assert think_times(trace_at(0, 5000, 9000), SESSION) == ThinkTimes(
        "gap", 2, 0, 4.5, pytest.approx(4.9), pytest.approx(4.99)
    )


def test_links_go_before_order_in_the_session():
    """The third goes on from the first, past a helper's request."""
    trace = trace_at(0, 5000, 9000, previous=[-1, -1, 0])
    assert think_times(trace, SESSION) == ThinkTimes("gap", 1, 0, 9.0, 9.0, 9.0)


def test_turns_that_all_overlap_have_no_think_time():
    assert think_times(trace_at(0, 10, duration_ms=[60, 60]), np.array([0, 0])) is None


# --- context -----------------------------------------------------------------------------------------


def test_context_is_prompt_plus_answer():
    """Prompts of 10, 20, 30, 40 tokens; the session of the second is longest at its first."""
    trace = trace_at(0, 1, 2, 3, output_tokens=[5, 500, 5, 5])
    found = context_depth(trace, np.array([3, 8, 3, 8]))
    assert found == ContextDepth(
        all_requests=token_spread(np.array([15, 520, 35, 45])),
        at_last_request=token_spread(np.array([35, 45])),
        longest_of_session=token_spread(np.array([35, 520])),
    )


# --- activity ----------------------------------------------------------------------------------------


def test_activity_by_hand():
    """Session 0 at 0, 4 and 20 s, session 1 at 10 s alone; active for 5 s after a request."""
    found = session_activity(trace_at(0, 4000, 10000, 20000), np.array([0, 0, 1, 0]), 5.0, num_steps=4)
    assert (found.mean_open_sessions, found.max_open_sessions) == (1.0, 2)
    assert (found.mean_active_sessions, found.max_active_sessions) == (9 / 20, 1)
    assert (found.mean_dormant_sessions, found.max_dormant_sessions) == (11 / 20, 1)
    assert found.dormant_time_ratio == 11 / 20
    assert found.over_time.at_s == (0.0, 5.0, 10.0, 15.0, 20.0)
    assert found.over_time.open_sessions == (1, 1, 2, 1, 1)
    assert found.over_time.active_sessions == (1, 1, 1, 0, 1)
    assert found.over_time.dormant_sessions == (0, 0, 1, 1, 0)


def test_a_moment_has_no_session_time():
    found = session_activity(trace_at(3, 3, 3), np.array([0, 0, 1]), 5.0)
    assert found.dormant_time_ratio is None
    assert (found.mean_open_sessions, found.mean_active_sessions, found.max_open_sessions) == (2.0, 2.0, 2)
    assert set(found.over_time.open_sessions) == {2}


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 40)), min_size=1, max_size=25), st.integers(0, 50)
)
def test_activity_at_every_millisecond(visits, window_ms):
    visits.sort(key=lambda visit: visit[1])
    start_ms, end_ms = visits[0][1], visits[-1][1]
    span_ms = end_ms - start_ms
    number = np.array([session for session, _ in visits])
    found = session_activity(
        trace_at(*(ms for _, ms in visits)), number, window_ms / 1000, num_steps=max(span_ms, 1)
    )
    levels = [sessions_at(visits, now, window_ms) for now in range(start_ms, end_ms + 1)]
    told = list(zip(found.over_time.open_sessions, found.over_time.active_sessions, strict=True))
    assert told == (levels if span_ms else 2 * levels)
    assert found.max_open_sessions == max(opened for opened, _ in levels)
    assert found.max_active_sessions == max(active for _, active in levels)
    assert found.max_dormant_sessions == max(opened - active for opened, active in levels)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), min_size=2, max_size=15), st.integers(0, 20)
)
def test_mean_activity_is_that_of_every_half_millisecond(visits, window_ms):
    """Between whole milliseconds nothing arrives and, but for windows that end there, nothing changes."""
    visits.sort(key=lambda visit: visit[1])
    start_ms, end_ms = visits[0][1], visits[-1][1]
    number = np.array([session for session, _ in visits])
    found = session_activity(trace_at(*(ms for _, ms in visits)), number, window_ms / 1000)
    between = [sessions_at(visits, now + 0.5, window_ms) for now in range(start_ms, end_ms)]
    if between:
        opened, active = np.mean(between, axis=0)
        assert found.mean_open_sessions == pytest.approx(opened)
        assert found.mean_active_sessions == pytest.approx(active)
        assert found.mean_dormant_sessions == pytest.approx(opened - active)
