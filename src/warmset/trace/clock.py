"""Arrival times whose clock ticks too coarsely to queue by."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from warmset.errors import Finding
from warmset.trace.forest import Trace

COARSE_STEP_MS = 1000
"""A clock that ticks slower than this turns even arrivals into bursts."""


class Arrivals(NamedTuple):
    """Arrival times to queue by, and what was done to them."""

    arrival_ms: npt.NDArray[np.int64]
    clock_step_ms: int
    finding: Finding | None


def spread_arrivals(trace: Trace) -> Arrivals:
    """Spread requests that share one tick of a coarse clock evenly over that tick.

    The step is the median distance between distinct times. Below one second, or where most times are distinct
    anyway, the times stay as they are. Reuse ages are never taken from the spread times.
    """
    times, first, count = np.unique(trace.arrival_ms, return_index=True, return_counts=True)
    step_ms = int(np.median(np.diff(times))) if times.size > 1 else 0
    if step_ms < COARSE_STEP_MS or 2 * times.size > trace.num_requests:
        return Arrivals(trace.arrival_ms, step_ms, None)
    until_next = np.append(np.diff(times), step_ms)
    place = np.arange(trace.num_requests) - np.repeat(first, count)
    spread = trace.arrival_ms + place * np.repeat(until_next, count) // np.repeat(count, count)
    shared = int(count[count > 1].sum())
    example = f"the clock steps by {step_ms} ms, up to {int(count.max())} requests in one step"
    return Arrivals(spread, step_ms, Finding("clock_step", shared, example))
