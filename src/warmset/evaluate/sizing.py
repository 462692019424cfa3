"""The size that pays for each tier: the lowest hourly cost over a grid of sizes."""

from dataclasses import replace
from itertools import product
from math import ceil
from typing import NamedTuple

from warmset.economics import hourly_costs
from warmset.evaluate.case import LOWER_TIERS, Case, LowerTier
from warmset.evaluate.fleet import FleetRange, hit_tokens
from warmset.evaluate.money import Prices, prices_at, sizes_under
from warmset.evaluation import Baseline, RecommendedSize

SIZE_FACTORS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
"""Sizes tried for each tier, as multiples of the given one, in every combination."""
WORTH_CHANGING = 0.01
"""Other sizes are recommended over the given ones if they lower the hourly cost by at least this share."""


class _Choice(NamedTuple):
    """One combination of sizes, with the tokens it hits and what a large fleet of it costs an hour."""

    sizes: dict[LowerTier, int]
    token_hit_ratio: float
    cost_per_hour: float


def recommended_sizes(fleet: FleetRange) -> tuple[RecommendedSize, ...]:
    """For each tier of the plan the size in the tried combination with the lowest hourly cost.

    The cost is that of a large fleet: the offered load over what the reference nodes sustain, not rounded to
    whole nodes, and without staff, which does not grow with the fleet and is left to the verdict. The
    least cost of a grid decides, not a knee, because the curve of real traffic is S-shaped.
    """
    tiers = [tier for tier in LOWER_TIERS if fleet.sizes[tier] > 0]
    prices = _without_staff(prices_at(fleet.inputs, "mid"))
    given = _choice(fleet, fleet.expected, prices)
    engine_cost = _cost_per_hour(fleet, fleet.expected, "engine", prices)
    if given is None or engine_cost is None:
        return tuple(_row(fleet, tier, None, "slo_not_met", None, None) for tier in tiers)
    choices = [given]
    for factors in product(SIZE_FACTORS, repeat=len(tiers)):
        sizes = {**fleet.sizes, **{t: ceil(fleet.sizes[t] * f) for t, f in zip(tiers, factors, strict=True)}}
        if sizes == fleet.sizes:
            continue
        choice = _choice(fleet, Case(fleet.inputs, "expected", sizes), prices)
        if choice is not None:
            choices.append(choice)
    best = min(choices, key=lambda choice: (choice.cost_per_hour, sum(choice.sizes.values())))
    if best.cost_per_hour > (1 - WORTH_CHANGING) * given.cost_per_hour:
        best = given
    return tuple(
        _row(
            fleet,
            tier,
            best.sizes[tier],
            _reason(fleet, tier, best.sizes[tier]),
            best,
            engine_cost - best.cost_per_hour,
        )
        for tier in tiers
    )


def _reason(fleet: FleetRange, tier: LowerTier, size: int) -> str:
    given = fleet.sizes[tier]
    stack = fleet.expected.stack("tiered", fleet.reference_nodes)
    if size == 0 and stack is not None:
        position = stack.tiers.index(tier)
        adds_nothing = stack.reach_blocks[position] == stack.reach_blocks[position - 1]
        return "adds_nothing_below_hbm" if adds_nothing else "not_worth"
    if size == given:
        return "given_is_enough"
    return "grow" if size > given else "sweet_spot"


def _row(
    fleet: FleetRange,
    tier: LowerTier,
    size: int | None,
    reason: str,
    choice: _Choice | None,
    net_value: float | None,
) -> RecommendedSize:
    return RecommendedSize(
        tier=tier,
        given_bytes=fleet.sizes[tier],
        recommended_bytes=size,
        reason=reason,
        token_hit_ratio=None if choice is None else choice.token_hit_ratio,
        net_value_per_hour=net_value,
    )


def _choice(fleet: FleetRange, case: Case, prices: Prices) -> _Choice | None:
    cost = _cost_per_hour(fleet, case, "tiered", prices)
    hit = int(hit_tokens(case, "tiered", fleet.reference_nodes).sum())
    ratio = hit / fleet.inputs.profile.measured_tokens
    return None if cost is None else _Choice(case.sizes, ratio, cost)


def _cost_per_hour(fleet: FleetRange, case: Case, baseline: Baseline, prices: Prices) -> float | None:
    """Cost of as many nodes, not rounded, as the offered load needs; `None` where no load keeps the SLO."""
    nodes = fleet.reference_nodes
    factor = case.sustainable_factor(baseline, nodes)
    if factor is None:
        return None
    sizes = sizes_under(baseline, case.sizes)
    written = case.written_bytes_per_s(baseline, nodes) * factor
    return hourly_costs(nodes / factor, prices.node, sizes, prices.tiers, written).total


def _without_staff(prices: Prices) -> Prices:
    return Prices(prices.node, replace(prices.tiers, operations_per_year=0.0))
