"""Distributions that generators draw from: each a value with `draw`, and endless streams of draws.

Streams draw in batches, so that a simulation that needs one number at a time pays for a list and no more.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log, sqrt
from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Random = np.random.Generator

P90_NORMAL_FACTOR = 1.2815515655446004
"""Standard deviations from the median of a normal distribution to its 90th percentile."""
_BATCH = 1024


class Distribution(Protocol):
    """Whatever can be drawn from."""

    def draw(self, rng: Random, size: int) -> Floats:
        """So many independent values."""


@dataclass(frozen=True, slots=True)
class Lognormal:
    """A median, and the standard deviation of the logarithm; what lies beyond a limit is moved to it."""

    p50: float
    sigma: float
    least: float = 0.0
    most: float = float("inf")

    @classmethod
    def from_p90(cls, p50: float, p90: float, least: float = 0.0, most: float = float("inf")) -> "Lognormal":
        """The one with this median and this 90th percentile."""
        return cls(p50, log(p90 / p50) / P90_NORMAL_FACTOR, least, most)

    @classmethod
    def from_mean(
        cls, p50: float, mean: float, least: float = 0.0, most: float = float("inf")
    ) -> "Lognormal":
        """The one with this median and this mean: mean / median = exp(sigma² / 2)."""
        return cls(p50, sqrt(2 * log(mean / p50)), least, most)

    def draw(self, rng: Random, size: int) -> Floats:
        """So many independent values."""
        return np.clip(self.p50 * np.exp(self.sigma * rng.standard_normal(size)), self.least, self.most)


@dataclass(frozen=True, slots=True)
class InverseGaussian:
    """Mean and shape; values below `least` are moved to it."""

    mean: float
    shape: float
    least: float = 0.0

    def draw(self, rng: Random, size: int) -> Floats:
        """So many independent values."""
        return np.maximum(rng.wald(self.mean, self.shape, size), self.least)


@dataclass(frozen=True, slots=True)
class Uniform:
    """Between two values."""

    least: float
    most: float

    def draw(self, rng: Random, size: int) -> Floats:
        """So many independent values."""
        return rng.uniform(self.least, self.most, size)


@dataclass(frozen=True, slots=True)
class Pareto:
    """From `least` on with a power-law tail: P(X > x) = (least / x) ^ tail; cut at `most`."""

    least: float
    tail: float
    most: float

    def draw(self, rng: Random, size: int) -> Floats:
        """So many independent values."""
        return np.minimum(self.least * (1.0 + rng.pareto(self.tail, size)), self.most)


@dataclass(frozen=True, slots=True)
class Geometric:
    """Whole numbers from 1 on with this mean."""

    mean: float

    def draw(self, rng: Random, size: int) -> Floats:
        """So many independent values."""
        return rng.geometric(1.0 / self.mean, size).astype(np.float64)


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Known quantiles, with straight lines between their logarithms.

    Shapes: `percents` ascend from 0 to 100, `values` never descend; a value of 0 counts as 0.5.
    """

    percents: tuple[float, ...]
    values: tuple[float, ...]

    def draw(self, rng: Random, size: int) -> Floats:
        """So many independent values."""
        logs = np.log(np.maximum(self.values, 0.5))
        return np.exp(np.interp(100 * rng.random(size), self.percents, logs))


@dataclass(frozen=True, slots=True)
class Mixture:
    """One of several distributions, each with its share; the last takes what the shares leave."""

    shares: tuple[float, ...]
    parts: tuple[Distribution, ...]

    def draw(self, rng: Random, size: int) -> Floats:
        """So many independent values."""
        bounds = np.cumsum(self.shares[: len(self.parts) - 1])
        which = np.searchsorted(bounds, rng.random(size), side="right")
        drawn = [part.draw(rng, size) for part in self.parts]
        chosen: Floats = np.choose(which, drawn)
        return chosen


class Zipf:
    """Positions 0 to n - 1; position k has weight 1 / (k + 1) ^ skew."""

    def __init__(self, num_places: int, skew_factor: float) -> None:
        weights = np.arange(1, num_places + 1, dtype=np.float64) ** -skew_factor
        self._up_to = np.cumsum(weights) / weights.sum()

    def draw(self, rng: Random, size: int) -> Floats:
        """So many independent positions."""
        place = np.searchsorted(self._up_to, rng.random(size), side="right")
        drawn: Floats = np.minimum(place, self._up_to.size - 1).astype(np.float64)
        return drawn


def stream(rng: Random, source: Distribution, scale_factor: float = 1.0) -> Iterator[float]:
    """Endless draws, one at a time."""
    while True:
        yield from (scale_factor * source.draw(rng, _BATCH)).tolist()


def whole_stream(rng: Random, source: Distribution, scale_factor: float = 1.0) -> Iterator[int]:
    """Endless draws, rounded to whole numbers, one at a time."""
    while True:
        yield from np.rint(scale_factor * source.draw(rng, _BATCH)).astype(np.int64).tolist()


def arrival_stream(rng: Random, requests_per_s: float, cv_factor: float = 1.0) -> Iterator[int]:
    """Endless arrival times in ms, from 0 on: gaps are Gamma of this mean and coefficient of variation.

    A factor of 1 is a Poisson process; above, arrivals come in bursts.
    """
    shape = cv_factor**-2
    scale_ms = 1000 / requests_per_s / shape
    last_ms = 0.0
    while True:
        times = last_ms + np.cumsum(rng.gamma(shape, scale_ms, _BATCH))
        last_ms = float(times[-1])
        yield from times.astype(np.int64).tolist()
