"""Curves of the report: hit rate over capacity, throughput over load, HBM over hit rate, longest context."""

from itertools import accumulate

import numpy as np

from warmset.evaluate.fleet import FleetRange, hit_tokens
from warmset.evaluate.metrics import mean_request_tokens
from warmset.evaluation import (
    BASELINES,
    Baseline,
    ContextLimit,
    CurvePoint,
    LoadPoint,
    OccupancyPoint,
    ReuseSummary,
    Routing,
    TierBoundary,
    WorkingSet,
)
from warmset.reuse import WINDOWS_S, resident_blocks, window_blocks

LOAD_FACTORS = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0)
NUM_POINTS = 120
ROUTINGS: tuple[Routing, ...] = ("prefix", "round_robin")
RISE_SHARE = 0.1
PLATEAU_SHARE = 0.95
NUM_OCCUPANCY_POINTS = 12


def reuse_summary(fleet: FleetRange) -> ReuseSummary:
    """The exact curve, thinned for drawing, with the tiers of the plan on it."""
    inputs, curve = fleet.inputs, fleet.inputs.curve
    most = max(curve.most_blocks, 1)
    root = curve.at(_shared_root_capacity(fleet)).tokens
    unlimited = inputs.profile.unlimited.tokens
    rise = _capacity_at(fleet, root + RISE_SHARE * (unlimited - root))
    # The flat start needs one point, not fifty.
    drawn = np.geomspace(max(rise / 10, 1), most, NUM_POINTS).round().astype(np.int64)
    capacities = np.unique(np.append(drawn, 1))
    return ReuseSummary(
        unlimited_hit_tokens=unlimited,
        unlimited_token_hit_ratio=unlimited / inputs.profile.measured_tokens,
        points=tuple(_point(fleet, int(capacity)) for capacity in capacities),
        boundaries=_boundaries(fleet),
        rise_start_blocks=rise,
        plateau_start_blocks=_capacity_at(fleet, root + PLATEAU_SHARE * (unlimited - root)),
        working_sets=tuple(_working_set(fleet, window) for window in WINDOWS_S),
        token_hit_by_routing={routing: _hit_under(fleet, routing) for routing in ROUTINGS},
        blocks_used_once_ratio=1 - inputs.profile.blocks_touched_again() / inputs.trace.num_nodes
        if inputs.trace.num_nodes
        else None,
    )


def _hit_under(fleet: FleetRange, routing: Routing) -> dict[Baseline, float]:
    total = int(fleet.inputs.trace.input_tokens.sum())
    ratios: dict[Baseline, float] = {}
    for baseline in BASELINES:
        hits = fleet.expected.routed_hits(baseline, fleet.reference_nodes, routing)
        ratios[baseline] = int(hits.total_tokens.sum()) / total
    return ratios


def load_curve(fleet: FleetRange) -> tuple[LoadPoint, ...]:
    """The reference nodes at loads around the offered one; expected values."""
    slo = fleet.inputs.scenario.slo
    points = []
    for factor in LOAD_FACTORS:
        outcomes = {baseline: fleet.outcome(baseline, factor) for baseline in BASELINES}
        points.append(
            LoadPoint(
                load_factor=factor,
                offered_requests_per_s=outcomes["engine"].offered_requests_per_s,
                goodput_requests_per_s={
                    baseline: outcome.goodput_requests_per_s(slo.ttft_s, slo.tpot_s)
                    for baseline, outcome in outcomes.items()
                },
                throughput_tokens_per_s={
                    baseline: outcome.throughput_tokens_per_s for baseline, outcome in outcomes.items()
                },
                ttft_p95_s={
                    baseline: outcome.ttft_quantile_s(0.95) for baseline, outcome in outcomes.items()
                },
            )
        )
    return tuple(points)


def occupancy_curve(fleet: FleetRange) -> tuple[OccupancyPoint, ...]:
    """HBM that must hold KV for a hit rate: all of it with `engine`, only what is active with tiers."""
    inputs = fleet.inputs
    active = round(_active_bytes(fleet, "engine"))
    active_tiered = round(_active_bytes(fleet, "tiered"))
    reached = int(hit_tokens(fleet.expected, "tiered", fleet.reference_nodes).sum())
    unlimited = inputs.profile.unlimited.tokens
    points = []
    for share in np.linspace(0, 1, NUM_OCCUPANCY_POINTS):
        tokens = int(unlimited * share)
        capacity = inputs.curve.capacity_for_tokens(tokens)
        if capacity is None:
            continue
        points.append(
            OccupancyPoint(
                token_hit_ratio=tokens / inputs.profile.measured_tokens,
                engine_hbm_bytes=active + capacity * inputs.block_bytes,
                tiered_hbm_bytes=active_tiered if tokens <= reached else None,
            )
        )
    return tuple(points)


def context_limits(fleet: FleetRange) -> tuple[ContextLimit, ...]:
    """The longest request: active, it needs its whole KV in the HBM of one engine under every baseline."""
    pool = fleet.expected.pool_tokens_per_engine
    limit = fleet.inputs.max_context_tokens
    return tuple(
        ContextLimit(
            baseline=baseline,
            longest_tokens=min(pool, limit),
            limited_by="model" if limit <= pool else "hbm",
        )
        for baseline in BASELINES
    )


def _active_bytes(fleet: FleetRange, baseline: Baseline) -> float:
    """KV of the requests in service on the reference nodes."""
    pool = fleet.expected.pool_tokens_per_engine * fleet.inputs.engine_bytes_per_token
    outcome = fleet.outcome(baseline)
    one_request = mean_request_tokens(fleet) * fleet.inputs.engine_bytes_per_token
    return max(outcome.hbm_demand_ratio * pool * outcome.num_engines, one_request)


def _point(fleet: FleetRange, capacity: int) -> CurvePoint:
    inputs = fleet.inputs
    return CurvePoint(
        capacity_blocks=capacity,
        capacity_bytes=capacity * inputs.block_bytes,
        hit_tokens=inputs.curve.at(capacity).tokens,
        token_hit_ratio=inputs.curve.token_hit_ratio(capacity),
    )


def _boundaries(fleet: FleetRange) -> tuple[TierBoundary, ...]:
    stack = fleet.expected.stack("tiered", fleet.reference_nodes)
    if stack is None:
        return ()
    held = fleet.expected.held("tiered", fleet.reference_nodes)
    by_tier = [int(held.hbm_tokens.sum()), *held.lower_tokens.sum(axis=0).tolist()]
    return tuple(
        TierBoundary(
            tier=tier,
            capacity_blocks=reach,
            capacity_bytes=reach * fleet.inputs.block_bytes,
            token_hit_ratio=hits / fleet.inputs.profile.measured_tokens,
        )
        for tier, reach, hits in zip(stack.tiers, stack.reach_blocks, accumulate(by_tier), strict=True)
    )


def _shared_root_capacity(fleet: FleetRange) -> int:
    """Blocks at the root that every request after the first knows: hit at any capacity that holds them."""
    hit_blocks = fleet.inputs.profile.hit_blocks_per_request()
    return int(hit_blocks[1:].min()) if hit_blocks.size > 1 else 0


def _capacity_at(fleet: FleetRange, hit_tokens: float) -> int:
    capacity = fleet.inputs.curve.capacity_for_tokens(int(hit_tokens))
    return fleet.inputs.curve.most_blocks if capacity is None else capacity


def _working_set(fleet: FleetRange, window_s: int) -> WorkingSet:
    inputs = fleet.inputs
    window = window_blocks(inputs.profile, window_s * 1000)
    return WorkingSet(
        window_s=window_s,
        mean_blocks=round(window.mean_blocks),
        max_blocks=window.max_blocks,
        mean_bytes=round(window.mean_blocks * inputs.block_bytes),
        max_bytes=window.max_blocks * inputs.block_bytes,
        window_fits_trace=resident_blocks(inputs.profile, window_s * 1000).window_fits_trace,
    )
