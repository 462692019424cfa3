"""The three corners side by side, and the estimates that come out of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from warmset.errors import InfeasibleError
from warmset.evaluate.case import LOWER_TIERS, Case, LowerTier
from warmset.evaluate.facts_used import CORNERS, Corner
from warmset.evaluate.inputs import Inputs
from warmset.evaluation import BASELINES, Baseline, ByBaseline
from warmset.facts import Estimate, exact
from warmset.serving import ServingOutcome

ReferenceSource = Literal["engine", "given", "cap"]
SLO_NOT_MET = "slo_not_met"


@dataclass(frozen=True, slots=True)
class FleetRange:
    """One fleet at the unfavourable, the expected and the favourable corner of what is not known."""

    inputs: Inputs
    sizes: dict[LowerTier, int]
    cases: dict[Corner, Case]
    reference_nodes: int
    reference_source: ReferenceSource

    @property
    def expected(self) -> Case:
        """The middle of every interval."""
        return self.cases["expected"]

    def outcome(self, baseline: Baseline, load_factor: float = 1.0) -> ServingOutcome:
        """The expected outcome on the reference nodes."""
        return self.expected.outcome(baseline, self.reference_nodes, load_factor)

    def estimate(
        self, unit: str, of: Callable[[Case], float | None], note: str = "", missing: str = SLO_NOT_MET
    ) -> Estimate:
        """One number at every corner, as an interval."""
        return interval(self.at_corners(of), unit, note, missing)

    def at_corners(self, of: Callable[[Case], float | None]) -> dict[Corner, float | None]:
        """One number at every corner; `None` at one where the model does not fit the hardware."""
        return {corner: of(self.cases[corner]) if corner in self.cases else None for corner in CORNERS}

    def by_baseline(
        self,
        unit: str,
        of: Callable[[Case, Baseline], float | None],
        note: str = "",
        missing: str = SLO_NOT_MET,
    ) -> ByBaseline:
        """One number under every baseline at every corner."""
        return under_each(
            lambda baseline: self.estimate(unit, lambda case: of(case, baseline), note, missing)
        )

    def at_reference(
        self, unit: str, of: Callable[[ServingOutcome], float | None], missing: str = SLO_NOT_MET
    ) -> ByBaseline:
        """One number of the outcome on the reference nodes at the offered load."""
        return self.by_baseline(
            unit, lambda case, baseline: of(case.outcome(baseline, self.reference_nodes)), missing=missing
        )

    def at_sustainable(self, unit: str, of: Callable[[ServingOutcome], float | None]) -> ByBaseline:
        """One number of the outcome on the reference nodes at the highest load each baseline sustains."""

        def at(case: Case, baseline: Baseline) -> float | None:
            factor = case.sustainable_factor(baseline, self.reference_nodes)
            return None if factor is None else of(case.outcome(baseline, self.reference_nodes, factor))

        return self.by_baseline(unit, at)


def interval(
    values: dict[Corner, float | None], unit: str, note: str = "", missing: str = SLO_NOT_MET
) -> Estimate:
    """The expected value with the least and the most of the corners.

    A corner without a value (the SLO cannot be met there) leaves the interval open on its side: beyond the
    expected value, away from the favourable one. `missing` says so where it happens.
    """
    middle, best = values["expected"], values["favourable"]
    if middle is None:
        return Estimate(mid=None, unit=unit, note=missing)
    known = [value for value in values.values() if value is not None]
    low, high = min(known), max(known)
    if len(known) == len(values):
        return Estimate(low=low, mid=middle, high=high, unit=unit, note=note)
    worse_is_more = best is not None and best < middle
    worse_is_less = best is not None and best > middle
    return Estimate(
        low=low if worse_is_more else None,
        mid=middle,
        high=high if worse_is_less else None,
        unit=unit,
        note=missing,
    )


def exact_by_baseline(unit: str, values: dict[Baseline, float]) -> ByBaseline:
    """One counted number under every baseline."""
    return under_each(lambda baseline: exact(values[baseline], unit))


def under_each(of: Callable[[Baseline], Estimate]) -> ByBaseline:
    """One estimate under every baseline."""
    return ByBaseline(none=of("none"), engine=of("engine"), tiered=of("tiered"))


def build_cases(inputs: Inputs) -> dict[Corner, Case]:
    """The three corners, without the unfavourable one if only there the model does not fit.

    Raises: InfeasibleError when the model does not fit at the expected corner.
    """
    sizes: dict[LowerTier, int] = {tier: inputs.scenario.tiers.capacity_bytes(tier) for tier in LOWER_TIERS}
    cases: dict[Corner, Case] = {
        "expected": Case(inputs, "expected", sizes),
        "favourable": Case(inputs, "favourable", sizes),
    }
    try:
        return {"unfavourable": Case(inputs, "unfavourable", sizes), **cases}
    except InfeasibleError:
        return cases


def build_fleet(inputs: Inputs, cases: dict[Corner, Case]) -> FleetRange:
    """The corners, and the number of nodes to compare the baselines on.

    It is the number that `engine` needs: prefix caching in HBM is on by default, so that is what runs today.
    """
    sizes = cases["expected"].sizes
    given = inputs.scenario.hardware.nodes
    if given is not None:
        return FleetRange(inputs, sizes, cases, given, "given")
    needed = cases["expected"].nodes_needed("engine")
    if needed is None:
        return FleetRange(inputs, sizes, cases, inputs.scenario.hardware.max_nodes, "cap")
    return FleetRange(inputs, sizes, cases, needed, "engine")


def hit_tokens(case: Case, baseline: Baseline, num_nodes: int) -> npt.NDArray[np.int64]:
    """Hit tokens of every request in all tiers together."""
    return case.hits(baseline, num_nodes).total_tokens


def total_hit_tokens(fleet: FleetRange) -> dict[Baseline, int]:
    """Expected hit tokens over the trace on the reference nodes."""
    return {
        baseline: int(hit_tokens(fleet.expected, baseline, fleet.reference_nodes).sum())
        for baseline in BASELINES
    }
