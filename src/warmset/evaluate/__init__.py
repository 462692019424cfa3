"""The main job: a scenario becomes an evaluation. Composes the packages below and nothing else."""

from collections.abc import Callable

import warmset
from warmset.errors import Finding
from warmset.evaluate.capacity import capacity_plan
from warmset.evaluate.case import Case
from warmset.evaluate.complexity import complexity
from warmset.evaluate.curves import context_limits, load_curve, occupancy_curve, reuse_summary
from warmset.evaluate.facts_used import Corner, given_assumptions
from warmset.evaluate.fleet import build_cases, build_fleet
from warmset.evaluate.inputs import gather_inputs
from warmset.evaluate.metrics import concurrency_rows, metric_rows, traffic_kinds
from warmset.evaluate.money import Money, economics, prices_at
from warmset.evaluate.summaries import hardware_summary, model_summary, tier_traffic, traffic_summary
from warmset.evaluate.verdict import Grounds, reach_verdict
from warmset.evaluation import BASELINES, SCHEMA, Evaluation, FindingRow, Slo
from warmset.scenario import Scenario
from warmset.units import format_bytes

Progress = Callable[[str], None]


def evaluate(scenario: Scenario, progress: Progress = lambda _: None) -> Evaluation:
    """Is a tiered KV cache worth it here, how big should it be, and what would it do.

    `progress` is told which stage begins: traffic, fleet, metrics, economics, capacity, verdict.
    Raises: InputError for what cannot be used, InfeasibleError when the model does not fit the hardware.
    """
    progress("traffic")
    inputs = gather_inputs(scenario)
    cases = build_cases(inputs)
    prices_at(inputs, "mid")  # a price that is missing is refused before the work
    progress("fleet")
    fleet = build_fleet(inputs, cases)
    progress("metrics")
    kinds = traffic_kinds(fleet)
    metrics = metric_rows(fleet, kinds)
    reuse = reuse_summary(fleet)
    progress("economics")
    money = Money(fleet)
    cost = economics(fleet, money)
    progress("capacity")
    capacity = capacity_plan(fleet)
    slo_met = {b: fleet.expected.promise.holds(fleet.outcome(b)) for b in BASELINES}
    progress("verdict")
    grounds = Grounds(fleet, money, reuse, cost, {row.key: row for row in metrics}, slo_met)
    verdict = reach_verdict(grounds)
    return Evaluation(
        schema=SCHEMA,
        warmset_version=warmset.__version__,
        scenario_name=scenario.name,
        model=model_summary(inputs),
        hardware=hardware_summary(inputs),
        traffic=traffic_summary(inputs, kinds),
        slo=Slo(ttft_s=scenario.slo.ttft_s, tpot_s=scenario.slo.tpot_s, percentile=scenario.slo.percentile),
        slo_met=slo_met,
        reference_nodes=fleet.reference_nodes,
        reference_nodes_source=fleet.reference_source,
        serving_method="analytic",
        reuse=reuse,
        tier_budgets=fleet.expected.budgets,
        tier_traffic=tier_traffic(fleet),
        utilization=fleet.at_reference("ratio", lambda outcome: outcome.prefill_busy_ratio),
        metrics=metrics,
        complexity=complexity(fleet),
        concurrency=concurrency_rows(fleet),
        load_curve=load_curve(fleet),
        occupancy_curve=occupancy_curve(fleet),
        context_limits=context_limits(fleet),
        capacity=capacity,
        economics=cost,
        verdict=verdict,
        assumptions=(*given_assumptions(scenario), *inputs.book.assumptions()),
        findings=tuple(
            FindingRow(code=finding.code, count=finding.count, first_example=finding.first_example)
            for finding in (*inputs.findings, *_tight(cases))
        ),
    )


def _tight(cases: dict[Corner, Case]) -> tuple[Finding, ...]:
    """The model fits what is expected of the hardware, but not its unfavourable end."""
    if "unfavourable" in cases:
        return ()
    usable = format_bytes(cases["expected"].budgets[0].usable_bytes)
    return (Finding("tight_fit", 1, f"{usable} for KV on a node as expected, none at the unfavourable end"),)
