"""`ServingOutcome`: per-request columns and totals, made by a simulation as well as by a measurement."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warmset.stats import quantile

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]


def arrival_span_s(arrival_s: Floats) -> float:
    """The time that arrivals cover: to the last one, and one mean gap more."""
    requests = arrival_s.size
    last = float(arrival_s[-1] - arrival_s[0])
    return last * requests / (requests - 1) if requests > 1 and last > 0 else 1.0


@dataclass(frozen=True, slots=True)
class ServingOutcome:
    """What became of every request, in order of arrival.

    TTFT runs from the send of a request to its first token. TPOT is (E2E - TTFT) / (output tokens - 1), NaN
    for answers of at most one token. `load_s` is the time to load cached KV, waiting included.
    """

    arrival_s: Floats
    ttft_s: Floats
    tpot_s: Floats
    e2e_s: Floats
    load_s: Floats
    wait_s: Floats
    input_tokens: Int64s
    output_tokens: Int64s
    num_engines: int
    prefill_busy_ratio: float
    """Time spent on prefill, over all engines and the span of the arrivals. Above 1: overloaded."""
    active_decodes_per_engine: float
    hbm_demand_ratio: float
    """Mean KV of active requests over the HBM pool of the engines. Above 1: they do not fit."""

    @property
    def span_s(self) -> float:
        """The time that the arrivals cover."""
        return arrival_span_s(self.arrival_s)

    @property
    def offered_requests_per_s(self) -> float:
        """Requests over the span of their arrivals."""
        return self.arrival_s.size / self.span_s

    @property
    def in_system(self) -> float:
        """Mean requests in the system, waiting ones included (Little's law)."""
        return float(self.e2e_s.sum()) / self.span_s

    def meets(self, ttft_limit_s: float, tpot_limit_s: float) -> npt.NDArray[np.bool_]:
        """Which requests met both limits; an answer without a second token has no TPOT to miss."""
        return (self.ttft_s <= ttft_limit_s) & ~(self.tpot_s > tpot_limit_s)

    def goodput_requests_per_s(self, ttft_limit_s: float, tpot_limit_s: float) -> float:
        """Requests that met both limits, per second of the span of their arrivals."""
        return float(self.meets(ttft_limit_s, tpot_limit_s).sum()) / self.span_s

    @property
    def throughput_tokens_per_s(self) -> float:
        """Input and output tokens over the time from the first arrival until the last request is done.

        Under overload the queue drains long after the last arrival, so this settles at what engines can do.
        """
        done_s = float((self.arrival_s + self.e2e_s).max() - self.arrival_s[0])
        return float((self.input_tokens + self.output_tokens).sum()) / max(done_s, self.span_s)

    def ttft_quantile_s(self, share: float, requests: npt.NDArray[np.bool_] | None = None) -> float:
        """Quantile of TTFT over all or some requests."""
        return quantile(self.ttft_s if requests is None else self.ttft_s[requests], share)

    def tpot_quantile_s(self, share: float) -> float | None:
        """Quantile of TPOT over answers of two tokens and more; `None` where there are none."""
        known = self.tpot_s[~np.isnan(self.tpot_s)]
        return quantile(known, share) if known.size else None
