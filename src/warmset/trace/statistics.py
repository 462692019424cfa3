"""What lengths and arrival times tell about a trace, whatever its prompts share.

Quantiles interpolate between the two values next in rank, as NumPy does by default: those of the published
tables do. (`warmset.stats.quantile`, by which plans are sized, takes a value that occurred.)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warmset.trace.clock import spread_arrivals
from warmset.trace.forest import Trace

Int64s = npt.NDArray[np.int64]
Values = npt.NDArray[np.integer] | npt.NDArray[np.floating]

MS_PER_S = 1000


@dataclass(frozen=True, slots=True)
class TokenSpread:
    """Lengths in tokens."""

    mean_tokens: float
    p50_tokens: float
    p90_tokens: float
    p99_tokens: float
    max_tokens: int


@dataclass(frozen=True, slots=True)
class ArrivalStatistics:
    """When requests come."""

    span_s: float
    requests_per_s: float | None
    p99_requests_per_s: float
    max_requests_per_s: int
    inter_arrival_cv_ratio: float | None
    clock_step_ms: int


@dataclass(frozen=True, slots=True)
class CachedShare:
    """What a provider's cache served of the requests of which the log tells it."""

    num_requests: int
    input_tokens: int
    cached_tokens: int
    token_hit_ratio: float | None


@dataclass(frozen=True, slots=True)
class ReportedCache:
    """The provider's cache with its time to live and its breaks: not what could be reused."""

    of_all: CachedShare
    of_kind: dict[str, CachedShare]
    """By kind of traffic, where the log has kinds."""


def quantiles(values: Values, shares: Sequence[float]) -> tuple[float, ...]:
    """Quantiles of some values; there must be one at least."""
    return weighted_quantiles(values, np.ones(values.size, dtype=np.int64), shares)


def weighted_quantiles(values: Values, weights: Int64s, shares: Sequence[float]) -> tuple[float, ...]:
    """Quantiles of values of which each stands there `weights` times.

    Formula: between the values at the ranks next to `share * (n - 1)`, counted from 0.
    Raises: `ValueError` where there is no value.
    """
    total = int(weights.sum())
    if total == 0:
        raise ValueError("a quantile of no values")
    order = np.argsort(values, kind="stable")
    ordered, ends = values[order], np.cumsum(weights[order])

    def at(rank: int) -> float:
        return float(ordered[np.searchsorted(ends, rank, side="right")])

    def interpolated(position: float) -> float:
        rank = int(position)
        return at(rank) + (position - rank) * (at(min(rank + 1, total - 1)) - at(rank))

    # 0.29 * 100 is a little below 29: without rounding it would not be the value of a rank.
    return tuple(interpolated(round(share * (total - 1), 9)) for share in shares)


def token_spread(tokens: Int64s) -> TokenSpread:
    """The spread of some lengths; the mean is total over total."""
    p50, p90, p99 = quantiles(tokens, (0.5, 0.9, 0.99))
    return TokenSpread(float(tokens.mean()), p50, p90, p99, int(tokens.max()))


def arrival_statistics(trace: Trace) -> ArrivalStatistics:
    """Rate and burstiness; a rate is unknown where all requests arrive at once."""
    since_start_ms = trace.arrival_ms - trace.arrival_ms[0]
    per_second = np.unique(since_start_ms // MS_PER_S, return_counts=True)[1]
    num_seconds = int(since_start_ms[-1]) // MS_PER_S + 1
    counts = np.append(per_second, 0)
    times = np.append(np.ones(per_second.size, dtype=np.int64), num_seconds - per_second.size)
    gaps = np.diff(trace.arrival_ms)
    varies = gaps.size > 1 and trace.span_ms > 0
    return ArrivalStatistics(
        span_s=trace.span_ms / MS_PER_S,
        requests_per_s=MS_PER_S * trace.num_requests / trace.span_ms if trace.span_ms else None,
        p99_requests_per_s=weighted_quantiles(counts, times, (0.99,))[0],
        max_requests_per_s=int(per_second.max()),
        inter_arrival_cv_ratio=float(gaps.std() / gaps.mean()) if varies else None,
        clock_step_ms=spread_arrivals(trace).clock_step_ms,
    )


def reported_cache(trace: Trace) -> ReportedCache | None:
    """Cached tokens over input tokens of the requests that have the counter; `None` where none has it."""
    if trace.cached_tokens is None:
        return None
    told = trace.cached_tokens >= 0
    of_kind: dict[str, CachedShare] = {}
    if trace.kind is not None:
        for number, name in enumerate(trace.kind_names):
            chosen = told & (trace.kind == number)
            if chosen.any():
                of_kind[name] = _cached_share(trace, trace.cached_tokens, chosen)
    return ReportedCache(_cached_share(trace, trace.cached_tokens, told), of_kind)


def _cached_share(trace: Trace, cached_tokens: Int64s, chosen: npt.NDArray[np.bool_]) -> CachedShare:
    tokens, cached = int(trace.input_tokens[chosen].sum()), int(cached_tokens[chosen].sum())
    return CachedShare(int(chosen.sum()), tokens, cached, cached / tokens if tokens else None)
