"""Ticks at round numbers."""

import math
from collections.abc import Callable, Iterable

from warmset.report.charts import Axis, Tick

Format = Callable[[float], str]


def linear_axis(title: str, values: Iterable[float], text: Format, high: float | None = None) -> Axis:
    """An axis from zero to the first round number that holds all values.

    >>> [tick.value for tick in linear_axis("", [7.2], str).ticks]
    [0.0, 2.0, 4.0, 6.0, 8.0]
    """
    top = max((value for value in values if math.isfinite(value)), default=1.0) or 1.0
    step = _round_step(top / 5)
    count = math.ceil(top / step - 1e-9)
    places = [step * index for index in range(count + 1)]
    high = None if high is None or high >= places[-1] else high
    if high is not None:
        places = [place for place in places if place <= high + 1e-9]
    return Axis(title, tuple(Tick(place, text(place) if place else "0") for place in places), high=high)


def time_axis(title: str, values: Iterable[float], text: Format) -> Axis:
    """A logarithmic axis of seconds with ticks at times that people use.

    >>> [tick.value for tick in time_axis("", [3.0, 900.0], str).ticks]
    [2.0, 5.0, 10.0, 20.0, 60.0, 120.0, 300.0, 600.0, 1800.0]
    """
    positive = [value for value in values if value > 0 and math.isfinite(value)] or [1.0, 10.0]
    low = max((place for place in _TIMES_S if place <= min(positive)), default=None)
    high = min((place for place in _TIMES_S if place >= max(positive)), default=None)
    if low is None or high is None or low == high:
        return log_axis(title, positive, text)
    places = [place for place in _TIMES_S if low <= place <= high]
    return Axis(title, tuple(Tick(place, text(place)) for place in places), scale="log", low=low, high=high)


_TIMES_S = (
    *(base * 10.0**power for power in (-4, -3, -2, -1, 0) for base in (1.0, 2.0, 5.0)),
    *(10.0, 20.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0, 18000.0, 36000.0, 86400.0),
)


def log_axis(title: str, values: Iterable[float], text: Format) -> Axis:
    """An axis over all values, with ticks at powers of ten, or closer where it spans less than three.

    >>> [tick.value for tick in log_axis("", [3.0, 2e3], str).ticks]
    [2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0]
    >>> [tick.value for tick in log_axis("", [3.0, 2e4], str).ticks]
    [10.0, 100.0, 1000.0, 10000.0]
    """
    positive = [value for value in values if value > 0 and math.isfinite(value)] or [1.0, 10.0]
    low, high = min(positive), max(positive)
    if low == high:
        low, high = low / 2, high * 2
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    if high / low >= 1e3:
        places = [10.0**power for power in powers if low <= 10.0**power <= high]
    else:
        places = [base * 10.0**power for power in powers for base in (1.0, 2.0, 5.0)]
        low = max(place for place in places if place <= low)
        high = min((place for place in places if place >= high), default=places[-1])
        places = [place for place in places if low <= place <= high]
    return Axis(title, tuple(Tick(place, text(place)) for place in places), scale="log", low=low, high=high)


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(base * power for base in (1, 2, 2.5, 5, 10) if base * power >= least * (1 - 1e-9))
