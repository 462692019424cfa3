"""Distinct blocks touched in a window of time."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from warmset.reuse.profile import ReuseProfile

Int64s = npt.NDArray[np.int64]

WINDOWS_S = (60, 600, 3600)
"""Windows in which a working set is told: a minute, ten minutes, an hour."""


class WindowBlocks(NamedTuple):
    """Distinct blocks of consecutive windows, cut from the first arrival on; the last one counts too."""

    mean_blocks: float
    max_blocks: int
    num_windows: int


class ResidentBlocks(NamedTuple):
    """Blocks that a sliding time to live keeps, over time."""

    mean_blocks: float
    """Over the time in which a whole window lies inside the trace, or over the trace where none does."""
    max_blocks: int
    window_fits_trace: bool


def window_blocks(profile: ReuseProfile, window_ms: int) -> WindowBlocks:
    """The working set of consecutive windows of one length."""
    trace = profile.trace
    number = (trace.arrival_ms - trace.arrival_ms[0]) // window_ms
    # Windows without a request hold nothing: only the others take memory, however long the trace is.
    _, window = np.unique(number, return_inverse=True)
    distinct = np.zeros(int(window[-1]) + 1, dtype=np.int64)
    np.add.at(distinct, window, profile.new_blocks_per_request())
    first_touch_in_window = window[profile.owner] < window[profile.request]
    np.add.at(distinct, window[profile.request[first_touch_in_window]], profile.length[first_touch_in_window])
    num_windows = int(number[-1]) + 1
    return WindowBlocks(float(distinct.sum() / num_windows), int(distinct.max()), num_windows)


def resident_blocks(profile: ReuseProfile, ttl_ms: int) -> ResidentBlocks:
    """Blocks touched in the trailing window `[now - ttl, now]`: what a sliding time to live must hold.

    Its maximum is the capacity at which that time to live never evicts early.
    """
    trace = profile.trace
    start, end = int(trace.arrival_ms[0]), int(trace.arrival_ms[-1])
    expired = profile.age_ms > ttl_ms
    gone_ms = trace.arrival_ms[profile.owner[expired]] + ttl_ms + 1
    back_ms = trace.arrival_ms[profile.request[expired]]
    lengths = profile.length[expired].astype(np.int64)
    when = np.concatenate([trace.arrival_ms, back_ms, gone_ms, trace.arrival_ms + ttl_ms + 1])
    change = np.concatenate([profile.new_blocks_per_request(), lengths, -lengths, -_owned_at_end(profile)])
    moments, level = step_levels(when, change)
    fits = end - start >= ttl_ms
    return ResidentBlocks(
        time_mean(moments, level, start + ttl_ms if fits else start, end), int(level.max()), fits
    )


def _owned_at_end(profile: ReuseProfile) -> Int64s:
    owned = profile.trace.num_blocks.astype(np.int64)
    np.subtract.at(owned, profile.owner, profile.length)
    return owned


def step_levels(when: Int64s, change: Int64s) -> tuple[Int64s, Int64s]:
    """The distinct moments at which a level changes, and the level from each of them on."""
    moments, position = np.unique(when, return_inverse=True)
    steps = np.zeros(moments.size, dtype=np.int64)
    np.add.at(steps, position, change)
    return moments, np.cumsum(steps)


def time_mean(moments: Int64s, level: Int64s, start_ms: int, end_ms: int) -> float:
    """Time-weighted mean of a level between two moments."""
    if end_ms <= start_ms:
        return float(level[np.searchsorted(moments, end_ms, side="right") - 1])
    inside = (moments > start_ms) & (moments < end_ms)
    edges = np.concatenate([[start_ms], moments[inside], [end_ms]])
    values = level[np.searchsorted(moments, edges[:-1], side="right") - 1]
    return float((values * np.diff(edges)).sum() / (end_ms - start_ms))
