"""The decision and its reasons; every threshold is a named constant."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np

from warmset.economics import hourly_costs
from warmset.evaluate.case import Case
from warmset.evaluate.fleet import FleetRange
from warmset.evaluate.inputs import Inputs
from warmset.evaluate.money import NO_TIERS, Money, prices_at, sizes_under
from warmset.evaluation import Baseline, Decision, EconomicsSummary, MetricRow, Reason, ReuseSummary, Verdict
from warmset.facts import Estimate, exact
from warmset.model import growth_bytes_per_token, kv_layout, replication_factor

NO_REUSE = 0.05
"""Below this token hit rate of an unlimited cache there is nothing to cache."""
ALREADY_IN_HBM = 0.8
"""From this share of the reuse on, the engine's own prefix cache has it already."""
CLEARLY_FASTER = 0.2
"""TTFT that falls by this share is worth a purchase for its own sake, if the SLO asks for it."""
SLIGHTLY = 0.01
MOSTLY_USED_ONCE = 0.5
"""Above this share of blocks that nobody touches again, a write filter is worth naming."""
SHORT_TRACE_S = 24 * 3600
"""A trace shorter than a day shows nothing of the reuse from one day to the next."""


@dataclass(frozen=True, slots=True)
class Grounds:
    """What the decision looks at."""

    fleet: FleetRange
    money: Money
    reuse: ReuseSummary
    economics: EconomicsSummary
    metrics: dict[str, MetricRow]
    slo_met: dict[Baseline, bool]

    @property
    def depreciation_years(self) -> float:
        """Time in which a purchase must come back."""
        return self.fleet.inputs.book.fact("depreciation_years").value

    def nodes_saved(self, case: Case) -> float | None:
        """Whole nodes that the tiers save at one corner."""
        engine, tiered = self.money.nodes(case, "engine"), self.money.nodes(case, "tiered")
        return None if engine is None or tiered is None else engine - tiered

    def exact_nodes_saved(self, case: Case) -> float | None:
        """Nodes saved before rounding up."""
        engine, tiered = self.money.nodes_exact(case, "engine"), self.money.nodes_exact(case, "tiered")
        return None if engine is None or tiered is None else engine - tiered

    def ttft_p95_s(self, baseline: str) -> Estimate:
        """Time to first token on the reference nodes."""
        values = self.metrics["ttft"].values["p95"]
        return values.engine if baseline == "engine" else values.tiered


def reach_verdict(grounds: Grounds) -> Verdict:
    """Buy, buy for latency alone, marginal, or do not buy; with the reasons in numbers."""
    decision = decide(grounds)
    return Verdict(
        decision=decision,
        reasons=tuple(_reasons(grounds, decision)),
        would_change=tuple(_would_change(grounds, decision)),
    )


def decide(grounds: Grounds) -> Decision:
    """The rule, in one place.

    Buy if the expected saving is positive and its payback shorter than the depreciation, at the expected
    corner and at the low end of the saving. If only the expected one holds it is marginal. Without a saving,
    buy for latency if TTFT falls clearly at every corner and the SLO is kept; otherwise do not buy.
    """
    money = grounds.economics
    saving, payback = money.saving_per_hour, money.payback_years
    if saving.mid is None:
        rescued = money.nodes.engine.mid is None and money.nodes.tiered.mid is not None
        return "buy_for_latency" if rescued else "do_not_buy"
    if not any(grounds.fleet.sizes.values()):
        return "do_not_buy"
    pays = saving.mid > 0 and payback.mid is not None and payback.mid <= grounds.depreciation_years
    if pays and saving.low is not None and saving.low > 0:
        return "buy"
    if pays:
        return "marginal"
    faster = grounds.slo_met["tiered"] and _clearly_faster(grounds)
    return "buy_for_latency" if faster else "do_not_buy"


def _clearly_faster(grounds: Grounds) -> bool:
    """Whether TTFT P95 or the median TTFT of hot requests falls clearly at every corner."""
    hot = grounds.metrics["hot_ttft"].values.get("p50")
    pairs = [(grounds.ttft_p95_s("engine"), grounds.ttft_p95_s("tiered"))]
    if hot is not None:
        pairs.append((hot.engine, hot.tiered))
    for before, after in pairs:
        ends = ((before.low, after.low), (before.mid, after.mid), (before.high, after.high))
        if all(b is not None and a is not None and a <= (1 - CLEARLY_FASTER) * b for b, a in ends):
            return True
    return False


def _reasons(grounds: Grounds, decision: Decision) -> Iterator[Reason]:
    yield from _slo_reasons(grounds)
    yield from _node_reasons(grounds)
    yield from _money_reasons(grounds, decision)
    yield from _latency_reasons(grounds)
    yield from _reuse_reasons(grounds)
    yield from _tier_reasons(grounds)
    yield from _load_reasons(grounds)
    span_s = grounds.fleet.inputs.trace.span_ms / 1000
    if span_s < SHORT_TRACE_S:
        yield Reason(key="trace_too_short", numbers={"span": exact(span_s, "s")})


def _slo_reasons(grounds: Grounds) -> Iterator[Reason]:
    nodes = grounds.economics.nodes
    for baseline, estimate in (("engine", nodes.engine), ("tiered", nodes.tiered)):
        if estimate.mid is None:
            yield Reason(key="slo_not_met", words={"baseline": baseline})


def _node_reasons(grounds: Grounds) -> Iterator[Reason]:
    nodes = grounds.economics.nodes
    if nodes.engine.mid is None or nodes.tiered.mid is None:
        return
    if not any(grounds.fleet.sizes.values()):
        return
    saved = nodes.engine.mid - nodes.tiered.mid
    if saved > 0:
        yield Reason(
            key="saves_nodes",
            numbers={
                "saved": grounds.fleet.estimate("nodes", grounds.nodes_saved),
                "engine_nodes": nodes.engine,
                "tiered_nodes": nodes.tiered,
            },
        )
        return
    if saved < 0:
        yield Reason(
            key="needs_more_nodes", numbers={"engine_nodes": nodes.engine, "tiered_nodes": nodes.tiered}
        )
        return
    spared = grounds.fleet.estimate("nodes", grounds.exact_nodes_saved)
    if spared.mid is not None and spared.mid > 0:
        yield Reason(key="no_nodes_saved", numbers={"engine_nodes": nodes.engine, "exact_saving": spared})
    else:
        yield Reason(key="nothing_spared", numbers={"engine_nodes": nodes.engine})


def _money_reasons(grounds: Grounds, decision: Decision) -> Iterator[Reason]:
    money = grounds.economics
    saving = money.saving_per_hour
    if saving.mid is None:
        return
    if decision in {"buy", "marginal"}:
        yield Reason(key="pays_back", numbers={"years": money.payback_years, "saving": saving})
    elif any(grounds.fleet.sizes.values()):
        added, saved = _added_and_saved(money)
        unit = saving.unit
        numbers = {"added_cost": Estimate(mid=added, unit=unit), "saved_cost": Estimate(mid=saved, unit=unit)}
        yield Reason(key="cost_exceeds_saving" if saved else "cost_without_saving", numbers=numbers)
    if decision == "marginal":
        yield Reason(
            key="payback_uncertain",
            numbers={
                "low": Estimate(mid=saving.low, unit=saving.unit),
                "high": Estimate(mid=saving.high, unit=saving.unit),
            },
        )
    wear = money.wear
    life = None if wear is None else wear.years_of_life
    if life is not None and life.mid is not None and life.mid < grounds.depreciation_years:
        yield Reason(key="wear_limits_life", numbers={"years": life})


def _added_and_saved(money: EconomicsSummary) -> tuple[float, float]:
    """What the tiers add to the hourly cost, and what they take off the rest of it; expected values."""
    added = saved = 0.0
    for line in money.cost_lines:
        change = (line.values.tiered.mid or 0.0) - (line.values.engine.mid or 0.0)
        if change > 0:
            added += change
        else:
            saved -= change
    return added, saved


def _latency_reasons(grounds: Grounds) -> Iterator[Reason]:
    before, after = grounds.ttft_p95_s("engine"), grounds.ttft_p95_s("tiered")
    if before.mid is None or after.mid is None:
        return
    change = 1 - after.mid / before.mid
    if abs(change) >= SLIGHTLY:
        key = "faster_ttft" if change > 0 else "slower_ttft"
        yield Reason(key=key, numbers={"engine_ttft": before, "tiered_ttft": after})


def _reuse_reasons(grounds: Grounds) -> Iterator[Reason]:
    unlimited = grounds.reuse.unlimited_token_hit_ratio
    if unlimited < NO_REUSE:
        yield Reason(key="no_reuse", numbers={"unlimited_hit": exact(unlimited, "ratio")})
        return
    routing = grounds.fleet.inputs.scenario.traffic.routing
    in_hbm = grounds.reuse.token_hit_by_routing[routing]["engine"]
    yield from _routing_reasons(grounds)
    if in_hbm >= ALREADY_IN_HBM * unlimited:
        yield Reason(
            key="reuse_already_in_hbm",
            numbers={
                "engine_hit": exact(in_hbm, "ratio"),
                "unlimited_hit": exact(unlimited, "ratio"),
                "share": exact(in_hbm / unlimited, "ratio"),
            },
        )


def _routing_reasons(grounds: Grounds) -> Iterator[Reason]:
    """What the router is worth: hits of `tiered` with a router that looks at prefixes, and without."""
    by_routing = grounds.reuse.token_hit_by_routing
    routed, unrouted = by_routing["prefix"]["tiered"], by_routing["round_robin"]["tiered"]
    if grounds.fleet.inputs.scenario.traffic.routing == "prefix" and unrouted < (1 - CLEARLY_FASTER) * routed:
        numbers = {"routed_hit": exact(routed, "ratio"), "unrouted_hit": exact(unrouted, "ratio")}
        yield Reason(key="router_matters", numbers=numbers)


def _tier_reasons(grounds: Grounds) -> Iterator[Reason]:
    boundaries = grounds.reuse.boundaries
    budgets = grounds.fleet.expected.budgets
    for above, here, budget in zip(boundaries, boundaries[1:], budgets[1:], strict=False):
        if here.capacity_blocks == above.capacity_blocks:
            nodes = grounds.fleet.reference_nodes
            yield Reason(
                key="tier_adds_nothing",
                words={"tier": here.tier, "above_tier": above.tier},
                numbers={
                    "capacity": exact(budget.usable_blocks * nodes, "blocks"),
                    "above": exact(above.capacity_blocks, "blocks"),
                },
            )


def _load_reasons(grounds: Grounds) -> Iterator[Reason]:
    """Tiers from which a mean hit takes longer to load than its prefill would take."""
    fleet = grounds.fleet
    case, nodes = fleet.expected, fleet.reference_nodes
    hits, paths = case.hits("tiered", nodes), case.load_paths("tiered", nodes)
    for position, (path, budget) in enumerate(zip(paths, case.budgets[1:], strict=True)):
        tokens = hits.lower_tokens[:, position]
        if not tokens.any():
            continue
        mean = np.array([round(tokens[tokens > 0].mean())])
        load_s = path.fixed_s + float(mean[0]) * path.bytes_per_token / path.bytes_per_s
        recompute_s = float(case.engine.prefill_compute_s(mean, np.zeros(1, np.int64))[0])
        if load_s > recompute_s:
            yield Reason(
                key="load_slower_than_recompute",
                words={"tier": budget.tier},
                numbers={
                    "load_s": Estimate(mid=load_s, unit="s"),
                    "recompute_s": Estimate(mid=recompute_s, unit="s"),
                },
            )


def _fp8_halves(inputs: Inputs) -> bool:
    """Whether fp8 takes half of what is stored now; latents with an index keep more than that."""
    spec, now = inputs.spec, kv_layout(inputs.scenario.model.kv)
    return 2 * growth_bytes_per_token(spec, kv_layout("fp8")) == growth_bytes_per_token(spec, now)


def _would_change(grounds: Grounds, decision: Decision) -> Iterator[Reason]:
    """What would turn a refusal into a purchase, or a purchase into more of one."""
    fleet = grounds.fleet
    if grounds.economics.nodes.tiered.mid is None:
        yield Reason(key="relax_slo")
    if decision != "buy" and (nodes := _fleet_that_pays(grounds)) is not None:
        yield Reason(key="bigger_fleet", numbers={"nodes": Estimate(mid=nodes, unit="nodes")})
    inputs = fleet.inputs
    factor = replication_factor(
        inputs.spec, kv_layout(inputs.scenario.model.kv), inputs.scenario.hardware.gpus_per_engine
    )
    if factor > 1 and not inputs.spec.is_latent:
        yield Reason(key="less_replication", numbers={"factor": exact(float(factor), "times")})
    if _fp8_halves(inputs):
        yield Reason(key="fp8_kv")
    if fleet.inputs.scenario.traffic.routing == "round_robin":
        yield Reason(key="route_by_prefix")
    once = grounds.reuse.blocks_used_once_ratio
    wear = grounds.economics.wear
    life = None if wear is None else wear.years_of_life.mid
    if (
        once is not None
        and once > MOSTLY_USED_ONCE
        and life is not None
        and life < grounds.depreciation_years
    ):
        yield Reason(key="write_on_second_touch", numbers={"share": exact(once, "ratio")})
    if grounds.reuse.unlimited_token_hit_ratio < NO_REUSE:
        yield Reason(key="session_traffic")
    span_s = fleet.inputs.trace.span_ms / 1000
    if span_s < SHORT_TRACE_S:
        yield Reason(key="longer_trace", numbers={"span": exact(span_s, "s")})


def _fleet_that_pays(grounds: Grounds) -> int | None:
    """Nodes that `engine` must need before the nodes saved, not rounded, carry the tiers and their staff.

    Every node more brings its share of saved nodes and the cost of its own tiers; staff does not grow.
    """
    exact_nodes = grounds.economics.nodes_exact
    engine, tiered = exact_nodes.engine.mid, exact_nodes.tiered.mid
    if engine is None or tiered is None or not any(grounds.fleet.sizes.values()):
        return None
    fleet, prices = grounds.fleet, prices_at(grounds.fleet.inputs, "mid")
    written = fleet.expected.written_bytes_per_s("tiered", fleet.reference_nodes)
    before = hourly_costs(1.0, prices.node, NO_TIERS, prices.tiers, 0.0).total
    with_tiers = hourly_costs(1.0, prices.node, sizes_under("tiered", fleet.sizes), prices.tiers, written)
    saved_per_node = before - (with_tiers.total - with_tiers.operations) * tiered / engine
    if saved_per_node <= 0:
        return None
    return ceil(with_tiers.operations / saved_per_node)
