"""Hand-made evaluations for the tests of the report: plausible numbers, and the odd cases.

The hit counts are those of the Mooncake conversation trace; times and money are invented but consistent.
"""

from msgspec.structs import replace

from tests.support.evaluation_inputs import GROWTH, about, budgets, by, counted, reuse, tier_traffic, traffic
from tests.support.evaluation_results import (
    assumptions,
    capacity,
    complexity,
    concurrency,
    economics,
    load_curve,
    metrics,
    occupancy,
)
from warmset.evaluation import (
    SCHEMA,
    Assumption,
    ByBaseline,
    ContextLimit,
    Evaluation,
    FindingRow,
    HardwareSummary,
    ModelSummary,
    Reason,
    Slo,
    Verdict,
)
from warmset.facts import Estimate, Fact, exact, unknown

BUY = Verdict(
    decision="buy",
    reasons=(
        Reason(
            key="saves_nodes",
            numbers={
                "saved": exact(1, "nodes"),
                "engine_nodes": exact(4, "nodes"),
                "tiered_nodes": exact(3, "nodes"),
            },
        ),
        Reason(
            key="pays_back", numbers={"years": about(2.1, "years"), "saving": about(27.9, "CNY_per_hour")}
        ),
        Reason(key="faster_ttft", numbers={"engine_ttft": about(6.8, "s"), "tiered_ttft": about(3.2, "s")}),
        Reason(key="wear_limits_life", numbers={"years": about(1.1, "years")}),
        Reason(
            key="tier_adds_nothing",
            numbers={"capacity": exact(1.0e12, "bytes"), "above": exact(1.2e12, "bytes")},
            words={"tier": "nvme"},
        ),
    ),
    would_change=(
        Reason(key="fp8_kv"),
        Reason(key="longer_trace", numbers={"span": exact(3537, "s")}),
        Reason(key="fp8_kv"),
    ),
)
DO_NOT_BUY = Verdict(
    decision="do_not_buy",
    reasons=(
        Reason(
            key="no_nodes_saved",
            numbers={"engine_nodes": exact(4, "nodes"), "exact_saving": about(0.3, "nodes")},
        ),
        Reason(
            key="cost_exceeds_saving",
            numbers={"added_cost": about(50.6, "CNY_per_hour"), "saved_cost": about(12.0, "CNY_per_hour")},
        ),
        Reason(
            key="reuse_already_in_hbm",
            numbers={
                "engine_hit": exact(0.33, "ratio"),
                "unlimited_hit": exact(0.373624, "ratio"),
                "share": exact(0.883, "ratio"),
            },
        ),
        Reason(key="slo_not_met", words={"baseline": "none"}),
    ),
    would_change=(
        Reason(key="bigger_fleet", numbers={"nodes": about(14, "nodes")}),
        Reason(key="session_traffic"),
    ),
)


def evaluation(**changes):
    """The plain case: buy, with every part filled in."""
    plain = Evaluation(
        schema=SCHEMA,
        warmset_version="0.1.0",
        scenario_name="Agent and chat platform",
        model=ModelSummary(
            name="Qwen3-235B-A22B",
            cache_class="gqa",
            num_layers=94,
            kv_layout="bf16",
            weight_format="fp8",
            growth_bytes_per_token=GROWTH,
            node_bytes_per_token=2 * GROWTH,
            num_parameters=235_093_634_560,
            num_active_parameters=22_190_000_000,
            weight_bytes=236_600_000_000,
            max_context_tokens=131_072,
        ),
        hardware=HardwareSummary(
            accelerator="H20-141G (H20-3e)", num_gpus=8, tensor_parallel=8, hbm_bytes_per_gpu=149_938_000_000
        ),
        traffic=traffic(),
        slo=Slo(ttft_s=5.0, tpot_s=0.06, percentile=95),
        slo_met={"none": False, "engine": False, "tiered": True},
        reference_nodes=4,
        reference_nodes_source="engine",
        serving_method="analytic",
        reuse=reuse(),
        tier_budgets=budgets(),
        tier_traffic=tier_traffic(),
        utilization=by(1.32, 0.93, 0.71, "ratio"),
        metrics=metrics(),
        complexity=complexity(),
        concurrency=concurrency(),
        load_curve=load_curve(),
        occupancy_curve=occupancy(),
        context_limits=(
            ContextLimit(baseline="none", longest_tokens=131_072, limited_by="model"),
            ContextLimit(baseline="engine", longest_tokens=131_072, limited_by="model"),
            ContextLimit(baseline="tiered", longest_tokens=131_072, limited_by="model"),
        ),
        capacity=capacity(),
        economics=economics(),
        verdict=BUY,
        assumptions=assumptions(),
        findings=(
            FindingRow(code="clock_step", count=12_031, first_example="timestamps are multiples of 3000 ms"),
            FindingRow(code="no_output", count=72, first_example="line 17"),
        ),
    )
    return replace(plain, **changes)


def not_worth_it():
    """No: both need the same nodes, and the reuse is in HBM already."""
    plain = evaluation()
    money = replace(
        plain.economics,
        nodes=counted(6, 4, 4, "nodes"),
        saving_per_hour=Estimate(mid=-38.6, low=-55.0, high=-21.0, unit="CNY_per_hour"),
        payback_years=unknown("years", "nothing_comes_back"),
        wear=None,
    )
    return replace(plain, verdict=DO_NOT_BUY, economics=money)


def with_decision(decision):
    plain = evaluation()
    return replace(plain, verdict=replace(plain.verdict, decision=decision))


def unmet():
    """No: the SLO is met by no number of nodes, whatever the cache."""
    plain = not_worth_it()
    gone = unknown("nodes", "slo_not_met_in_limit")
    nodes = ByBaseline(none=gone, engine=gone, tiered=gone)
    return replace(plain, economics=replace(plain.economics, nodes=nodes))


def without_tiers():
    """No: there is nothing below HBM."""
    return replace(not_worth_it(), tier_budgets=budgets()[:1])


def rescued():
    """Only with the lower tiers is the SLO met at all."""
    plain = with_decision("buy_for_latency")
    gone = unknown("nodes", "slo_not_met_in_limit")
    nodes = ByBaseline(none=gone, engine=gone, tiered=exact(3, "nodes"))
    return replace(plain, economics=replace(plain.economics, nodes=nodes))


def with_unknowns():
    """The SLO is met by no number of nodes, so nothing that follows from it is known."""
    plain = evaluation()
    gone = unknown("s", "saturated")
    nodes = unknown("nodes", "the SLO is not met at up to 64 nodes")
    times = ByBaseline(none=gone, engine=gone, tiered=about(3.2, "s"))
    rows = tuple(
        replace(row, values={"p50": times, "p95": times}) if row.key == "ttft" else row
        for row in plain.metrics
    )
    money = replace(
        plain.economics,
        nodes=ByBaseline(none=nodes, engine=nodes, tiered=exact(3, "nodes")),
        payback_years=unknown("years", "nothing_comes_back"),
    )
    return replace(plain, metrics=rows, economics=money)


def saturated():
    """Every load is too much for two of the baselines."""
    return evaluation(load_curve=load_curve((0.1, 0.2, 4.1)))


HOSTILE = "<script>alert(1)</script>'\"&{{7*7}}</style>| `x` [a](javascript:alert(1))"


def hostile():
    """Names that try to become markup."""
    plain = evaluation(scenario_name=HOSTILE)
    return replace(
        plain,
        model=replace(plain.model, name=HOSTILE),
        hardware=replace(plain.hardware, accelerator=HOSTILE),
        traffic=replace(plain.traffic, name=HOSTILE, source=HOSTILE, citation=HOSTILE),
        findings=(FindingRow(code=HOSTILE, count=1, first_example=HOSTILE),),
        assumptions=(
            Assumption(
                key=HOSTILE,
                group="prices",
                fact=Fact(value=1.0, unit=HOSTILE, origin="given", source=HOSTILE, note=HOSTILE),
            ),
        ),
        verdict=Verdict(
            decision="buy", reasons=(Reason(key="slo_not_met", words={"baseline": HOSTILE}),), would_change=()
        ),
    )
