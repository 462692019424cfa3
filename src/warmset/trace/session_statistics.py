"""What session numbers and arrival times tell: turns, pauses, context, and how many sessions lie idle."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from warmset.trace.forest import Trace
from warmset.trace.statistics import MS_PER_S, TokenSpread, quantiles, token_spread

Int64s = npt.NDArray[np.int64]
Sessions = npt.NDArray[np.integer]
"""A session number for each request."""

ThinkBasis = Literal["think_ms", "gap_minus_duration", "gap"]
ACTIVE_WINDOW_S = 300.0
NUM_STEPS = 60
"""Parts into which the span of a trace is cut to tell open sessions over time."""


@dataclass(frozen=True, slots=True)
class RequestSpread:
    """Numbers of requests."""

    mean_requests: float
    p50_requests: float
    p90_requests: float
    p99_requests: float
    max_requests: int


@dataclass(frozen=True, slots=True)
class TurnGaps:
    """From the arrival of a turn to the arrival of the next one of its session."""

    num_turns: int
    p50_s: float
    p90_s: float
    p99_s: float


@dataclass(frozen=True, slots=True)
class ThinkTimes:
    """From the end of an answer to the turn that goes on from it."""

    basis: ThinkBasis
    """The log's own column, or gaps less the time that the answer took, or gaps alone: too long then."""
    num_turns: int
    num_overlapping_turns: int
    """Turns that came before the answer ended, and are left out."""
    p50_s: float
    p90_s: float
    p99_s: float


@dataclass(frozen=True, slots=True)
class ContextDepth:
    """Prompt plus answer of a request: what its context holds when it ends."""

    all_requests: TokenSpread
    at_last_request: TokenSpread
    longest_of_session: TokenSpread


@dataclass(frozen=True, slots=True)
class ActivityOverTime:
    """Open sessions at regular moments, in columns."""

    at_s: tuple[float, ...]
    open_sessions: tuple[int, ...]
    active_sessions: tuple[int, ...]
    dormant_sessions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SessionActivity:
    """Sessions open at once: those with a request within the last window are active, the rest dormant.

    A session is open from its first request to its last. Means are over the time of the trace.
    """

    active_window_s: float
    mean_open_sessions: float
    max_open_sessions: int
    mean_active_sessions: float
    max_active_sessions: int
    mean_dormant_sessions: float
    max_dormant_sessions: int
    dormant_time_ratio: float | None
    """Dormant session-time over open session-time; `None` where every session is of one moment."""
    over_time: ActivityOverTime


class _Levels(NamedTuple):
    open_sessions: Int64s
    active_sessions: Int64s

    @property
    def dormant_sessions(self) -> Int64s:
        return self.open_sessions - self.active_sessions


class _Stays(NamedTuple):
    """Each request up to the next one of its session or, for the last, to itself; ends are inside."""

    start_ms: Int64s
    next_ms: Int64s
    active_until_ms: Int64s
    is_first: npt.NDArray[np.bool_]
    is_last: npt.NDArray[np.bool_]


def turns_per_session(session: Sessions) -> RequestSpread:
    """Requests of each session."""
    turns = np.unique(session, return_counts=True)[1]
    p50, p90, p99 = quantiles(turns, (0.5, 0.9, 0.99))
    return RequestSpread(float(turns.mean()), p50, p90, p99, int(turns.max()))


def turn_gaps(trace: Trace, session: Sessions) -> TurnGaps | None:
    """Gaps between consecutive requests of each session; `None` where no session has two."""
    before, after = _consecutive(session)
    if not after.size:
        return None
    gaps_ms = trace.arrival_ms[after] - trace.arrival_ms[before]
    return TurnGaps(int(gaps_ms.size), *_seconds(gaps_ms))


def think_times(trace: Trace, session: Sessions) -> ThinkTimes | None:
    """Pauses before turns, from the best that the log has; `None` where it has no turn that goes on.

    A turn goes on from the request that the log names, or else from the one before in its session. What the
    log gives as the pause before a first request is none.
    """
    before, after = _links(trace) if trace.previous is not None else _consecutive(session)
    if trace.think_ms is not None and (trace.think_ms[after] >= 0).any():
        logged_ms = trace.think_ms[after]
        return _think_times("think_ms", logged_ms[logged_ms >= 0])
    gaps_ms = trace.arrival_ms[after] - trace.arrival_ms[before]
    if trace.duration_ms is None or not (trace.duration_ms[before] >= 0).any():
        return _think_times("gap", gaps_ms)
    took_ms = trace.duration_ms[before]
    return _think_times("gap_minus_duration", (gaps_ms - took_ms)[took_ms >= 0])


def context_depth(trace: Trace, session: Sessions) -> ContextDepth:
    """Prompt plus answer of all requests, of each session's last, and of the longest of each session."""
    context = trace.input_tokens + trace.output_tokens
    _, number = np.unique(session, return_inverse=True)
    last = np.zeros(int(number.max()) + 1, dtype=np.int64)
    last[number] = np.arange(number.size)  # the last one written stays
    longest = np.zeros_like(last)
    np.maximum.at(longest, number, context)
    return ContextDepth(token_spread(context), token_spread(context[last]), token_spread(longest))


def session_activity(
    trace: Trace, session: Sessions, active_window_s: float = ACTIVE_WINDOW_S, num_steps: int = NUM_STEPS
) -> SessionActivity:
    """How many sessions are open, and how many of them had a request within the last `active_window_s`."""
    window_ms = round(MS_PER_S * active_window_s)
    start_ms, end_ms = int(trace.arrival_ms[0]), int(trace.arrival_ms[-1])
    stays = _stays(session, trace.arrival_ms, window_ms)
    pauses_ms = stays.next_ms - stays.start_ms
    open_ms = int(pauses_ms.sum())
    dormant_ms = int(np.maximum(pauses_ms - window_ms, 0).sum())
    changes = np.unique(np.concatenate([trace.arrival_ms, stays.active_until_ms + 1]))
    levels = _levels(stays, changes[changes <= end_ms])
    span_ms = end_ms - start_ms

    def mean(session_ms: int, at_one_moment: Int64s) -> float:
        return session_ms / span_ms if span_ms else float(at_one_moment[0])

    return SessionActivity(
        active_window_s=active_window_s,
        mean_open_sessions=mean(open_ms, levels.open_sessions),
        max_open_sessions=int(levels.open_sessions.max()),
        mean_active_sessions=mean(open_ms - dormant_ms, levels.active_sessions),
        max_active_sessions=int(levels.active_sessions.max()),
        mean_dormant_sessions=mean(dormant_ms, levels.dormant_sessions),
        max_dormant_sessions=int(levels.dormant_sessions.max()),
        dormant_time_ratio=dormant_ms / open_ms if open_ms else None,
        over_time=_over_time(stays, start_ms, span_ms, num_steps),
    )


def _over_time(stays: _Stays, start_ms: int, span_ms: int, num_steps: int) -> ActivityOverTime:
    # Whole numbers and not quotients: the last moment is the last arrival, to the millisecond.
    since_ms = np.arange(num_steps + 1) * span_ms // num_steps
    levels = _levels(stays, start_ms + since_ms)
    return ActivityOverTime(
        at_s=tuple((since_ms / MS_PER_S).tolist()),
        open_sessions=tuple(levels.open_sessions.tolist()),
        active_sessions=tuple(levels.active_sessions.tolist()),
        dormant_sessions=tuple(levels.dormant_sessions.tolist()),
    )


def _consecutive(session: Sessions) -> tuple[Int64s, Int64s]:
    """Pairs of requests, one after the other in one session."""
    order = np.argsort(session, kind="stable")
    follows = session[order[1:]] == session[order[:-1]]
    return order[:-1][follows], order[1:][follows]


def _links(trace: Trace) -> tuple[Int64s, Int64s]:
    """Pairs of a request and the one that goes on from it, as the log has them."""
    assert trace.previous is not None
    after = np.flatnonzero(trace.previous >= 0)
    return trace.previous[after].astype(np.int64), after


def _think_times(basis: ThinkBasis, times_ms: Int64s) -> ThinkTimes | None:
    kept_ms = times_ms[times_ms >= 0]
    if not kept_ms.size:
        return None
    return ThinkTimes(basis, int(kept_ms.size), int(times_ms.size - kept_ms.size), *_seconds(kept_ms))


def _seconds(times_ms: Int64s) -> tuple[float, ...]:
    """P50, P90 and P99."""
    return quantiles(times_ms / MS_PER_S, (0.5, 0.9, 0.99))


def _stays(session: Sessions, arrival_ms: Int64s, window_ms: int) -> _Stays:
    order = np.argsort(session, kind="stable")
    starts_ms, same = arrival_ms[order], session[order[1:]] == session[order[:-1]]
    is_last = np.append(~same, True)
    is_first = np.append(True, ~same)
    next_ms = np.where(is_last, starts_ms, np.append(starts_ms[1:], 0))
    # Up to the last millisecond before the next request: that one begins a stay of its own.
    until_ms = np.where(is_last, starts_ms, np.minimum(next_ms - 1, starts_ms + window_ms))
    return _Stays(starts_ms, next_ms, until_ms, is_first, is_last)


def _levels(stays: _Stays, moments: Int64s) -> _Levels:
    """Open and active sessions at some moments, first and last request included."""
    first_ms, last_ms = np.sort(stays.start_ms[stays.is_first]), np.sort(stays.start_ms[stays.is_last])
    from_ms, until_ms = np.sort(stays.start_ms), np.sort(stays.active_until_ms)

    def inside(begin_ms: Int64s, end_ms: Int64s) -> Int64s:
        begun = np.searchsorted(begin_ms, moments, side="right")
        return begun - np.searchsorted(end_ms, moments, side="left")

    return _Levels(inside(first_ms, last_ms), inside(from_ms, until_ms))
