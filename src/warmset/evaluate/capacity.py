"""How big: sessions, sharing, time windows, reserves, and the size that pays for each tier."""

import numpy as np

from warmset.evaluate.fleet import FleetRange
from warmset.evaluate.sizing import recommended_sizes
from warmset.evaluation import (
    CapacityPlan,
    DedupRow,
    OverheadRow,
    SessionCount,
    SessionSize,
    TierName,
    TtlRow,
)
from warmset.facts import Estimate
from warmset.reuse import WINDOWS_S, resident_blocks, window_blocks
from warmset.reuse.kinds import open_sessions
from warmset.stats import quantile

TTL_WINDOWS_S = (60, 300, 600, 1800, 3600, 6 * 3600, 86400)


def capacity_plan(fleet: FleetRange) -> CapacityPlan:
    """The whole plan on the reference nodes."""
    sessions = fleet.inputs.sessions
    return CapacityPlan(
        session_sizes=_session_sizes(fleet),
        session_source="trace" if sessions.named_in_log else "inferred",
        num_sessions=sessions.total,
        mean_turns=fleet.inputs.trace.num_requests / sessions.total,
        session_counts=tuple(_session_count(fleet, window) for window in WINDOWS_S),
        dedup=tuple(_dedup(fleet, window) for window in WINDOWS_S),
        ttl_windows=tuple(_ttl(fleet, ttl) for ttl in TTL_WINDOWS_S),
        overheads=_overheads(fleet),
        recommended=recommended_sizes(fleet),
    )


def _session_sizes(fleet: FleetRange) -> tuple[SessionSize, ...]:
    """Quantiles of the longest prompt plus answer of each session."""
    inputs = fleet.inputs
    length = np.zeros(inputs.sessions.number.max() + 1, dtype=np.int64)
    np.maximum.at(length, inputs.sessions.number, inputs.trace.input_tokens + inputs.trace.output_tokens)
    lengths = length[np.unique(inputs.sessions.number)]
    sizes = []
    for percentile in (50, 90, 99):
        tokens = int(quantile(lengths, percentile / 100))
        sizes.append(
            SessionSize(
                percentile=percentile,
                tokens=tokens,
                logical_bytes=tokens * inputs.logical_bytes_per_token,
                hbm_bytes=tokens * inputs.engine_bytes_per_token,
            )
        )
    return tuple(sizes)


def _session_count(fleet: FleetRange, window_s: int) -> SessionCount:
    inputs = fleet.inputs
    opened = open_sessions(inputs.sessions.number, inputs.trace.arrival_ms, window_s * 1000)
    active = min(fleet.outcome("engine").in_system, opened.mean)
    fits = window_s * 1000 <= inputs.trace.span_ms
    return SessionCount(
        window_s=window_s,
        mean_sessions=opened.mean if fits else None,
        max_sessions=opened.most,
        mean_active=active,
        mean_dormant=opened.mean - active if fits else None,
    )


def _dedup(fleet: FleetRange, window_s: int) -> DedupRow:
    """Means over consecutive windows of one length."""
    trace = fleet.inputs.trace
    physical = window_blocks(fleet.inputs.profile, window_s * 1000)
    block = fleet.inputs.logical_bytes_per_token * trace.block_tokens
    return DedupRow(
        window_s=window_s,
        logical_bytes=trace.block_refs * block // physical.num_windows,
        physical_bytes=round(physical.mean_blocks * block),
    )


def _ttl(fleet: FleetRange, ttl_s: int) -> TtlRow:
    inputs = fleet.inputs
    resident = resident_blocks(inputs.profile, ttl_s * 1000)
    block = inputs.block_bytes
    most = _most_bytes(fleet, ttl_s, resident.max_blocks * block, fits=resident.window_fits_trace)
    fits: tuple[TierName, ...] = tuple(
        budget.tier
        for budget in fleet.expected.budgets
        if most.mid is not None and budget.usable_blocks * fleet.reference_nodes * block >= most.mid
    )
    return TtlRow(
        ttl_s=ttl_s,
        token_hit_ratio=inputs.profile.hits(ttl_ms=ttl_s * 1000).tokens / inputs.profile.measured_tokens,
        mean_bytes=round(resident.mean_blocks * block) if resident.window_fits_trace else None,
        max_bytes=most,
        fits=fits,
        window_fits_trace=resident.window_fits_trace,
    )


def _most_bytes(fleet: FleetRange, ttl_s: int, seen_bytes: int, *, fits: bool) -> Estimate:
    """The peak seen, or past the end of the trace what its newest half would grow to in such a window."""
    if fits:
        return Estimate(low=seen_bytes, mid=seen_bytes, high=seen_bytes, unit="bytes", basis="exact")
    trace = fleet.inputs.trace
    half = trace.num_requests // 2
    span_s = max((int(trace.arrival_ms[-1]) - int(trace.arrival_ms[half])) / 1000, 1.0)
    new = fleet.inputs.profile.new_blocks_per_request()
    block = fleet.inputs.block_bytes
    grown = float(new[half:].sum()) / span_s * ttl_s * block
    undivided = float(trace.num_blocks[half:].sum()) / span_s * ttl_s * block
    return Estimate(
        low=seen_bytes,
        mid=max(grown, seen_bytes),
        high=max(undivided, grown, seen_bytes),
        unit="bytes",
        note="beyond_trace",
    )


def _overheads(fleet: FleetRange) -> tuple[OverheadRow, ...]:
    """Every reserve of the budgets as a share of its tier, and the prompt tails that are never stored."""
    rows: list[OverheadRow] = []
    for budget in fleet.expected.budgets:
        total = budget.lines[0].size_bytes
        rows.extend(
            OverheadRow(
                tier=budget.tier,
                key=line.key,
                size_bytes=-line.size_bytes,
                share_ratio=-line.size_bytes / total,
            )
            for line in budget.lines[1:]
            if line.key != "weights"
        )
        if budget.tier != "hbm":
            rows.append(_chunk_tail(fleet, budget.tier))
    return tuple(rows)


def _chunk_tail(fleet: FleetRange, tier: TierName) -> OverheadRow:
    """Lower tiers store whole chunks: the tail of each prompt stays out. Share of all prompt tokens."""
    tokens = fleet.inputs.trace.input_tokens
    tail = tokens % fleet.expected.chunks.chunk_tokens
    return OverheadRow(
        tier=tier, key="chunk_tail", size_bytes=None, share_ratio=float(tail.sum() / tokens.sum())
    )
