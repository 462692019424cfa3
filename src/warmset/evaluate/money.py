"""Nodes become money: what each baseline costs, what the tiers add, and whether that pays back."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from warmset.economics import HourlyCosts, NodePrices, TierPrices, hourly_costs, tier_capex, wear_of
from warmset.economics.cost import TierSizes
from warmset.evaluate.case import Case, LowerTier
from warmset.evaluate.facts_used import CORNERS, Corner, in_currency
from warmset.evaluate.fleet import FleetRange, under_each
from warmset.evaluate.inputs import Inputs
from warmset.evaluation import BASELINES, Baseline, ByBaseline, CostLine, EconomicsSummary, TierWear
from warmset.facts import Estimate, Fact
from warmset.units import HOURS_PER_YEAR

PriceEnd = Literal["low", "mid", "high"]
PRICE_ENDS: tuple[PriceEnd, ...] = ("low", "mid", "high")


class PriceEnds(NamedTuple):
    """Ends of node and of tier prices, apart: a saving is least where nodes are cheap and memory dear."""

    node: PriceEnd
    tiers: PriceEnd


EXPECTED_PRICES = PriceEnds("mid", "mid")
ALL_PRICES = tuple(PriceEnds(node, tiers) for node in PRICE_ENDS for tiers in PRICE_ENDS)
NO_TIERS = TierSizes()


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices at one end of their ranges."""

    node: NodePrices
    tiers: TierPrices


def prices_at(inputs: Inputs, end: PriceEnd) -> Prices:
    """All prices in the currency of the report, all at the low end, the middle or the high end at once.

    Depreciation and drive endurance stay at their middle: they are decisions and ratings, not quotes.
    """
    book, currency = inputs.book, inputs.scenario.currency
    gpus = inputs.scenario.hardware.gpus_per_node

    def price(key: str) -> float:
        return _end(in_currency(book, key, currency), end)

    staff = "staff_cost_cn" if currency == "CNY" else "staff_cost_us"
    gpu_watts = _end(book.fact("gpu_power_w"), end)
    drives_tb = book.fact("nvme_drives").value * book.fact("nvme_drive_bytes").value / 1e12
    drive_watts = book.fact("nvme_drives").value * _end(book.fact("nvme_power_w_per_drive"), end)
    remote = price("remote_price_per_tb") if inputs.scenario.tiers.capacity_bytes("remote") else None
    return Prices(
        NodePrices(
            accelerators=price("accelerators_price_per_node"),
            server=price("base_server_price"),
            power_kw=(gpus * gpu_watts + _end(book.fact("server_power_w"), end)) / 1000,
            pue_ratio=_end(book.fact("pue"), end),
            electricity_per_kwh=price("electricity_price"),
            depreciation_years=book.fact("depreciation_years").value,
        ),
        TierPrices(
            dram_per_gb=price("dram_price"),
            nvme_per_tb=price("nvme_price"),
            remote_per_tb=remote,
            dram_kw_per_gb=_end(book.fact("dram_power_w_per_gb"), end) / 1000,
            nvme_kw_per_tb=drive_watts / 1000 / drives_tb,
            flash_writes_per_day=book.fact("nvme_dwpd").value,
            flash_warranty_years=book.fact("nvme_warranty_years").value,
            operations_per_year=price(staff) * _end(book.fact("staff_fte"), end),
        ),
    )


def _end(fact: Fact, end: PriceEnd) -> float:
    return {"low": fact.least, "mid": fact.value, "high": fact.most}[end]


def sizes_under(baseline: Baseline, sizes: dict[LowerTier, int]) -> TierSizes:
    """The lower tiers that a baseline has."""
    return TierSizes(sizes["dram"], sizes["nvme"], sizes["remote"]) if baseline == "tiered" else NO_TIERS


class Money:
    """Costs at every corner of the serving model and every end of the prices."""

    def __init__(self, fleet: FleetRange) -> None:
        self._fleet = fleet
        self._prices = {end: prices_at(fleet.inputs, end) for end in PRICE_ENDS}
        self._nodes: dict[tuple[Corner, Baseline], int | None] = {
            (corner, baseline): case.nodes_needed(baseline)
            for corner, case in fleet.cases.items()
            for baseline in BASELINES
        }
        self._costs: dict[tuple[Corner, Baseline, PriceEnds], HourlyCosts | None] = {}

    def nodes(self, case: Case, baseline: Baseline) -> int | None:
        """Whole nodes that keep the SLO."""
        return self._nodes[case.corner, baseline]

    def nodes_exact(self, case: Case, baseline: Baseline) -> float | None:
        """Nodes before rounding up: where, between whole ones, they would sustain just the offered load."""
        nodes = self.nodes(case, baseline)
        enough = None if nodes is None else case.sustainable_factor(baseline, nodes)
        if nodes is None or enough is None:
            return None
        if nodes == 1:
            return 1 / enough
        short = case.sustainable_factor(baseline, nodes - 1) or 0.0
        return nodes - 1 + (1 - short) / (enough - short)

    def costs(self, case: Case, baseline: Baseline, ends: PriceEnds) -> HourlyCosts | None:
        """Hourly costs of the whole nodes that a baseline needs."""
        key = (case.corner, baseline, ends)
        if key not in self._costs:
            self._costs[key] = self._hourly(case, baseline, ends)
        return self._costs[key]

    def _hourly(self, case: Case, baseline: Baseline, ends: PriceEnds) -> HourlyCosts | None:
        nodes = self.nodes(case, baseline)
        if nodes is None:
            return None
        written = case.written_bytes_per_s(baseline, nodes)
        sizes = sizes_under(baseline, self._fleet.sizes)
        node, tiers = self._prices[ends.node].node, self._prices[ends.tiers].tiers
        return hourly_costs(nodes, node, sizes, tiers, written)

    def saving_per_hour(self, case: Case, ends: PriceEnds) -> float | None:
        """What `tiered` costs less than `engine`, an hour; negative where it costs more."""
        engine, tiered = self.costs(case, "engine", ends), self.costs(case, "tiered", ends)
        return None if engine is None or tiered is None else engine.total - tiered.total

    def added_capex(self, case: Case, ends: PriceEnds) -> float | None:
        """Purchase price of the lower tiers of all nodes that `tiered` needs."""
        nodes = self.nodes(case, "tiered")
        if nodes is None:
            return None
        return nodes * tier_capex(sizes_under("tiered", self._fleet.sizes), self._prices[ends.tiers].tiers)

    def payback_years(self, case: Case, ends: PriceEnds) -> float | None:
        """Added purchase over the yearly saving before its depreciation; `None` where nothing comes back.

        Flash that wears out sooner than it is depreciated is bought again out of the saving.
        """
        capex, saving = self.added_capex(case, ends), self.saving_per_hour(case, ends)
        if capex is None or saving is None:
            return None
        years = self._prices["mid"].node.depreciation_years
        yearly = saving * HOURS_PER_YEAR + capex / years
        return capex / yearly if capex > 0 and yearly > 0 else None

    def spread(
        self,
        unit: str,
        of: Callable[[Case, PriceEnds], float | None],
        missing: str,
        worse: Literal["more", "less"],
    ) -> Estimate:
        """An interval over all corners and all ends of the prices around the expected middle.

        Where one of them has no value the interval is open on the worse side.
        """
        middle = of(self._fleet.expected, EXPECTED_PRICES)
        if middle is None:
            return Estimate(mid=None, unit=unit, note=missing)
        all_ends = [
            of(self._fleet.cases[corner], ends) if corner in self._fleet.cases else None
            for corner in CORNERS
            for ends in ALL_PRICES
        ]
        known = [value for value in all_ends if value is not None]
        complete = len(known) == len(all_ends)
        return Estimate(
            low=min(known) if complete or worse == "more" else None,
            mid=middle,
            high=max(known) if complete or worse == "less" else None,
            unit=unit,
            note="" if complete else missing,
        )


def economics(fleet: FleetRange, money: Money) -> EconomicsSummary:
    """Nodes, cost lines, cost per token and payback, with their intervals."""
    currency = fleet.inputs.scenario.currency
    not_met = "slo_not_met_in_limit"

    def by_baseline(unit: str, of: Callable[[Case, Baseline, PriceEnds], float | None]) -> ByBaseline:
        return under_each(
            lambda baseline: money.spread(unit, lambda case, ends: of(case, baseline, ends), not_met, "more")
        )

    def line(field: str) -> CostLine:
        def of(case: Case, baseline: Baseline, ends: PriceEnds) -> float | None:
            costs = money.costs(case, baseline, ends)
            return None if costs is None else float(getattr(costs, field))

        return CostLine(key=field, values=by_baseline(f"{currency}_per_hour", of))

    def total(case: Case, baseline: Baseline, ends: PriceEnds) -> float | None:
        costs = money.costs(case, baseline, ends)
        return None if costs is None else costs.total

    workload = fleet.inputs.workload
    tokens_per_hour = float((workload.input_tokens + workload.output_tokens).sum())
    tokens_per_hour *= 3600 / fleet.expected.outcome_span_s

    def per_million(case: Case, baseline: Baseline, ends: PriceEnds) -> float | None:
        cost = total(case, baseline, ends)
        return None if cost is None else cost / tokens_per_hour * 1e6

    lines = tuple(line(field) for field in HourlyCosts._fields if field != "remote" or fleet.sizes["remote"])
    return EconomicsSummary(
        currency=currency,
        nodes=fleet.by_baseline("nodes", money.nodes, missing="slo_not_met_in_limit"),
        nodes_exact=fleet.by_baseline("nodes", money.nodes_exact),
        cost_lines=lines,
        cost_per_hour=by_baseline(f"{currency}_per_hour", total),
        cost_per_million_tokens=by_baseline(f"{currency}_per_million_tokens", per_million),
        added_capex=money.spread(currency, money.added_capex, not_met, "more"),
        saving_per_hour=money.spread(f"{currency}_per_hour", money.saving_per_hour, not_met, "less"),
        payback_years=_payback(fleet, money),
        wear=_wear(fleet, money),
    )


def _payback(fleet: FleetRange, money: Money) -> Estimate:
    met = money.nodes(fleet.expected, "engine") and money.nodes(fleet.expected, "tiered")
    missing = "nothing_comes_back" if met else "slo_not_met_in_limit"
    return money.spread("years", money.payback_years, missing, "more")


def _wear(fleet: FleetRange, money: Money) -> TierWear | None:
    """Wear of the NVMe of one node at the nodes that `tiered` needs."""
    if not fleet.sizes["nvme"] or money.nodes(fleet.expected, "tiered") is None:
        return None

    def written(case: Case) -> float | None:
        nodes = money.nodes(case, "tiered")
        return None if nodes is None else case.written_bytes_per_s("tiered", nodes)

    rate = fleet.estimate("bytes_per_s", written)
    rated = fleet.inputs.book.fact("nvme_dwpd")
    middle = rate.mid or 0.0
    return wear_of(
        fleet.sizes["nvme"],
        (middle if rate.low is None else rate.low, middle, middle if rate.high is None else rate.high),
        (rated.least, rated.value, rated.most),
        fleet.inputs.book.fact("nvme_warranty_years").value,
    )
