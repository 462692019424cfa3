"""What a fleet can promise: the SLO, and the highest load at which it still holds."""

from collections.abc import Callable
from typing import NamedTuple

from warmset.serving.outcome import ServingOutcome

_LEAST_FACTOR, _MOST_FACTOR = 1 / 64, 64.0
_SEARCH_PRECISION = 1.01


class Promise(NamedTuple):
    """An SLO: `share` of all requests within both limits, each limit on its own quantile."""

    ttft_s: float
    tpot_s: float
    share: float

    def holds(self, outcome: ServingOutcome) -> bool:
        """Whether both quantiles lie within their limits and the active requests fit in HBM."""
        tpot_s = outcome.tpot_quantile_s(self.share)
        return (
            outcome.hbm_demand_ratio <= 1
            and outcome.ttft_quantile_s(self.share) <= self.ttft_s
            and (tpot_s is None or tpot_s <= self.tpot_s)
        )


def sustainable_load_factor(promise: Promise, outcome_at: Callable[[float], ServingOutcome]) -> float | None:
    """The highest load factor at which the promise holds, within one percent, by bisection.

    `None` where even a sixty-fourth of the load breaks it: the promise is not to be had on this hardware.
    """
    low, high = 1.0, 1.0
    if promise.holds(outcome_at(1.0)):
        while high < _MOST_FACTOR and promise.holds(outcome_at(high * 2)):
            high *= 2
        low, high = high, high * 2
    else:
        while not promise.holds(outcome_at(low / 2)):
            low /= 2
            if low <= _LEAST_FACTOR:
                return None
        low, high = low / 2, low
    while high / low > _SEARCH_PRECISION:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if promise.holds(outcome_at(middle)) else (low, middle)
    return low
