"""The analytic serving model: formulas for each request, one queueing pass, a fixed point for the batch."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from warmset.serving.latency import EngineTimes, LoadPath
from warmset.serving.outcome import ServingOutcome, arrival_span_s

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]

_ROUNDS = 4
"""Rounds of the fixed point between TPOT and the decode batch, which settles within a percent in three."""


@dataclass(frozen=True, slots=True)
class Workload:
    """Requests to serve, in order of arrival."""

    arrival_s: Floats
    input_tokens: Int64s
    output_tokens: Int64s

    def sped_up(self, load_factor: float) -> "Workload":
        """The same requests, `load_factor` times as fast."""
        return Workload(self.arrival_s / load_factor, self.input_tokens, self.output_tokens)


@dataclass(frozen=True, slots=True)
class RequestHits:
    """Hit tokens of each request: those already in HBM, and those to load from each lower tier.

    Shapes: `hbm_tokens` requests; `lower_tokens` requests x lower tiers, in the order of the fleet's paths.
    """

    hbm_tokens: Int64s
    lower_tokens: Int64s

    @property
    def total_tokens(self) -> Int64s:
        """Hit tokens of each request in all tiers together."""
        return np.asarray(self.hbm_tokens + self.lower_tokens.sum(axis=1))


@dataclass(frozen=True, slots=True)
class Fleet:
    """Engines on nodes, and the paths from each node's lower tiers."""

    engine: EngineTimes
    num_nodes: int
    engines_per_node: int
    pool_tokens_per_engine: int
    """KV tokens that fit in the HBM pool of one engine."""
    paths: tuple[LoadPath, ...]
    recompute_when_faster: bool = False

    @property
    def num_engines(self) -> int:
        """Engines of all nodes."""
        return self.num_nodes * self.engines_per_node


class _Timeline(NamedTuple):
    """When the cached KV of each request was in HBM, and when its prefill started and ended."""

    ready_s: Floats
    start_s: Floats
    end_s: Floats


def serve(workload: Workload, hits: RequestHits, fleet: Fleet) -> ServingOutcome:
    """Serve every request and say what became of it.

    While prefill chunks run, each decode step waits for one chunk; between them, steps cost what their batch
    and contexts cost. The mean batch follows from Little's law, TPOT from the share of time in prefill.
    """
    hits = worth_loading(workload, hits, fleet)
    # The last prompt token is always computed.
    new = np.maximum(workload.input_tokens - hits.total_tokens, 1)
    compute_s = fleet.engine.prefill_compute_s(new, workload.input_tokens - new)
    chunk_s = float(compute_s.sum()) / max(1.0, float(new.sum()) / fleet.engine.rates.prefill_chunk_tokens)
    load_s, fixed_s = _load_times(hits, fleet)
    batch, context = 1.0, float(workload.input_tokens.mean())
    timeline, tpot_s = _pass(workload, fleet, compute_s, load_s, fixed_s, chunk_s, batch, context)
    for _ in range(_ROUNDS - 1):
        batch, context = _batch(workload, fleet, tpot_s)
        timeline, tpot_s = _pass(workload, fleet, compute_s, load_s, fixed_s, chunk_s, batch, context)
    return _outcome(workload, fleet, timeline, tpot_s, compute_s)


def worth_loading(workload: Workload, hits: RequestHits, fleet: Fleet) -> RequestHits:
    """The hits that are loaded: all of them, or those that load sooner than they are computed again."""
    if not fleet.recompute_when_faster or not fleet.paths:
        return hits
    new = np.maximum(workload.input_tokens - hits.total_tokens, 1)
    with_load = fleet.engine.prefill_compute_s(new, workload.input_tokens - new)
    all_new = np.maximum(workload.input_tokens - hits.hbm_tokens, 1)
    without = fleet.engine.prefill_compute_s(all_new, workload.input_tokens - all_new)
    load_s, fixed_s = _load_times(hits, fleet)
    slower = load_s.max(axis=1) + fixed_s > without - with_load
    return RequestHits(hits.hbm_tokens, np.where(slower[:, None], 0, hits.lower_tokens))


def _load_times(hits: RequestHits, fleet: Fleet) -> tuple[Floats, Floats]:
    load_s = np.zeros((hits.hbm_tokens.size, max(len(fleet.paths), 1)))
    fixed_s = np.zeros(hits.hbm_tokens.size)
    for tier, path in enumerate(fleet.paths):
        tokens = hits.lower_tokens[:, tier]
        load_s[:, tier] = tokens * path.bytes_per_token / path.bytes_per_s
        fixed_s = np.maximum(fixed_s, np.where(tokens > 0, path.fixed_s, 0.0))
    return load_s, fixed_s


def _pass(
    workload: Workload,
    fleet: Fleet,
    compute_s: Floats,
    load_s: Floats,
    fixed_s: Floats,
    chunk_s: float,
    batch: float,
    context_tokens: float,
) -> tuple[_Timeline, Floats]:
    """Queue once with the decode batch as it is believed to be."""
    from warmset.serving.queueing import assign_and_load, decode_until, prefill_in_turn

    kv_s = fleet.engine.kv_read_s(batch * context_tokens)
    prefill_s = compute_s * (1 + kv_s / chunk_s)
    engine, ready_s = assign_and_load(
        workload.arrival_s, prefill_s, load_s, fixed_s, fleet.num_engines, fleet.engines_per_node
    )
    order = np.argsort(ready_s, kind="stable")
    start_s = prefill_in_turn(order, engine, ready_s, prefill_s, fleet.num_engines)
    end_s = start_s + prefill_s
    # Whoever decodes is in the batch itself, however idle the engine is on the whole.
    seen = max(batch, 1.0)
    step_s = fleet.engine.decode_step_s(round(seen), seen * context_tokens)
    # A step with a chunk in it also does a step's fixed work; it is never faster than a step without.
    busy_step_s = max(chunk_s + kv_s, step_s)
    steps = workload.output_tokens - 1
    finished_s = decode_until(
        order, engine, start_s, end_s, steps, 1 / step_s, 1 / busy_step_s, fleet.num_engines
    )
    tpot_s = np.where(steps > 0, (finished_s - end_s) / np.maximum(steps, 1), np.nan)
    return _Timeline(ready_s, start_s, end_s), tpot_s


def _batch(workload: Workload, fleet: Fleet, tpot_s: Floats) -> tuple[float, float]:
    """Mean requests in decode on one engine, and their mean context, weighted by time."""
    decode_s = _decode_s(workload, tpot_s)
    total = float(decode_s.sum())
    if total == 0.0:
        return 0.0, float(workload.input_tokens.mean())
    context = workload.input_tokens + workload.output_tokens / 2
    at_once = min(total / arrival_span_s(workload.arrival_s), workload.arrival_s.size)
    return at_once / fleet.num_engines, float((decode_s * context).sum()) / total


def _decode_s(workload: Workload, tpot_s: Floats) -> Floats:
    return np.where(np.isnan(tpot_s), 0.0, tpot_s * np.maximum(workload.output_tokens - 1, 0))


def _outcome(
    workload: Workload, fleet: Fleet, timeline: _Timeline, tpot_s: Floats, compute_s: Floats
) -> ServingOutcome:
    startup_s = fleet.engine.rates.prefill_startup_s
    ttft_s = timeline.end_s - workload.arrival_s + startup_s
    decode_s = _decode_s(workload, tpot_s)
    engine_seconds = arrival_span_s(workload.arrival_s) * fleet.num_engines
    batch, context = _batch(workload, fleet, tpot_s)
    prefilling = float(((timeline.end_s - timeline.start_s) * workload.input_tokens).sum()) / engine_seconds
    return ServingOutcome(
        arrival_s=workload.arrival_s,
        ttft_s=ttft_s,
        tpot_s=tpot_s,
        e2e_s=ttft_s + decode_s,
        load_s=timeline.ready_s - workload.arrival_s,
        wait_s=timeline.start_s - timeline.ready_s,
        input_tokens=workload.input_tokens,
        output_tokens=workload.output_tokens,
        num_engines=fleet.num_engines,
        prefill_busy_ratio=float(compute_s.sum()) / engine_seconds,
        active_decodes_per_engine=batch,
        hbm_demand_ratio=(batch * context + prefilling) / fleet.pool_tokens_per_engine,
    )
