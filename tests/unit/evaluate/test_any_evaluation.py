"""What holds of every evaluation, the built-in one and the odd ones: `evaluation` is each in turn."""

import json
import math
from collections.abc import Iterator
from itertools import pairwise
from typing import get_args

import msgspec
import pytest

from tests.support.cases import SMALL
from warmset.evaluation import (
    BASELINES,
    SCHEMA,
    ConcurrencyKey,
    Evaluation,
    MetricKey,
    from_json,
    to_json,
)
from warmset.facts import Estimate, Fact, Origin


def parts_of(tree: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Every value of the tree with its path."""
    yield path, tree
    if isinstance(tree, msgspec.Struct):
        for field in msgspec.structs.fields(tree):
            yield from parts_of(getattr(tree, field.name), f"{path}.{field.name}")
    elif isinstance(tree, dict):
        for key, value in tree.items():
            yield from parts_of(value, f"{path}.{key}")
    elif isinstance(tree, tuple):
        for index, value in enumerate(tree):
            yield from parts_of(value, f"{path}[{index}]")


def all_but(*names: str) -> list[str]:
    return [name for name in ("built_in", *SMALL) if name not in names]


def mid(values, baseline):
    return values.of(baseline).mid


def metric(evaluation: Evaluation, key: str):
    return next(row for row in evaluation.metrics if row.key == key)


# --- the tree ----------------------------------------------------------------------------------------


def test_json_there_and_back(evaluation):
    assert from_json(to_json(evaluation)) == evaluation
    assert evaluation.schema == SCHEMA


def test_json_is_strict_and_every_number_is_one(evaluation):
    def refuse(constant):
        raise AssertionError(constant)

    json.loads(to_json(evaluation), parse_constant=refuse)
    bad = [
        path for path, value in parts_of(evaluation) if isinstance(value, float) and not math.isfinite(value)
    ]
    assert bad == []


def test_every_interval_holds_its_middle(evaluation):
    estimates = [(path, value) for path, value in parts_of(evaluation) if isinstance(value, Estimate)]
    assert len(estimates) > 100
    for path, estimate in estimates:
        if estimate.mid is None:
            assert (estimate.low, estimate.high) == (None, None), path
            assert estimate.note, path
        else:
            assert estimate.low is None or estimate.low <= estimate.mid, path
            assert estimate.high is None or estimate.mid <= estimate.high, path
        assert estimate.unit, path


def test_the_thirteen_rows_and_the_five(evaluation):
    assert [row.key for row in evaluation.metrics] == list(get_args(MetricKey))
    assert len(evaluation.metrics) == 13
    assert [row.key for row in evaluation.concurrency] == list(get_args(ConcurrencyKey))
    assert len(evaluation.concurrency) == 5


def test_every_assumption_says_where_it_comes_from(evaluation):
    keys = [assumption.key for assumption in evaluation.assumptions]
    assert len(keys) == len(set(keys)) > 30
    for assumption in evaluation.assumptions:
        assert assumption.fact.source.strip(), assumption.key
        assert assumption.fact.origin in get_args(Origin), assumption.key
        assert assumption.fact.unit, assumption.key


def test_budget_lines_say_what_they_rest_on(evaluation):
    facts = [value for path, value in parts_of(evaluation.tier_budgets) if isinstance(value, Fact)]
    assert facts
    assert all(fact.source for fact in facts)


# --- tokens ------------------------------------------------------------------------------------------


def test_hits_of_the_tiers_and_what_is_computed_are_the_input(evaluation):
    total = evaluation.traffic.input_tokens
    for baseline in BASELINES:
        by_tier = [tier.hit_tokens[baseline] for tier in evaluation.tier_traffic]
        assert all(tokens >= 0 for tokens in by_tier)
        by_kind = sum(
            kind.hit_tokens[baseline] for kind in evaluation.traffic.kinds if kind.kind != "beyond_32k"
        )
        assert sum(by_tier) == by_kind <= total
        routings = evaluation.reuse.token_hit_by_routing.values()
        # A hit that loads too slowly is held and not loaded.
        assert any(ratios[baseline] * total >= by_kind * (1 - 1e-9) for ratios in routings)
    of_none = [tier.hit_tokens["none"] for tier in evaluation.tier_traffic]
    of_engine = [tier.hit_tokens["engine"] for tier in evaluation.tier_traffic]
    assert not any(of_none)
    assert not any(of_engine[1:])


def test_kinds_share_the_requests_and_the_tokens(evaluation):
    kinds = [kind for kind in evaluation.traffic.kinds if kind.kind != "beyond_32k"]
    assert sum(kind.num_requests for kind in kinds) == evaluation.traffic.num_requests
    assert sum(kind.input_tokens for kind in kinds) == evaluation.traffic.input_tokens


@pytest.mark.parametrize("name", all_but("round_robin", "slow_nvme_recomputed"))
def test_boundaries_are_the_hits_on_the_curve(evaluated, name):
    """All nodes are one pool where the router sends a prompt to the node that holds its prefix."""
    evaluation = evaluated(name)
    reached = 0
    for boundary, tier in zip(evaluation.reuse.boundaries, evaluation.tier_traffic, strict=True):
        assert boundary.tier == tier.tier
        reached += tier.hit_tokens["tiered"]
        assert boundary.token_hit_ratio * evaluation.traffic.input_tokens == pytest.approx(reached)
        between = [p for p in evaluation.reuse.points if p.capacity_blocks <= boundary.capacity_blocks]
        assert not between or between[-1].hit_tokens <= reached


def test_the_curve_rises_to_what_there_is(evaluation):
    points = evaluation.reuse.points
    for before, after in pairwise(points):
        assert before.capacity_blocks < after.capacity_blocks
        assert before.hit_tokens <= after.hit_tokens
    assert points[-1].hit_tokens == evaluation.reuse.unlimited_hit_tokens
    assert evaluation.reuse.rise_start_blocks <= evaluation.reuse.plateau_start_blocks


def test_budgets_add_up(evaluation):
    for budget in evaluation.tier_budgets:
        assert sum(line.size_bytes for line in budget.lines) == budget.usable_bytes >= 0
        assert budget.usable_blocks >= 0


def lines_by_tier(evaluation: Evaluation) -> dict[str, dict[str, int]]:
    return {
        budget.tier: {line.key: line.size_bytes for line in budget.lines}
        for budget in evaluation.tier_budgets
    }


def test_the_index_of_all_lower_tiers_lies_in_dram(evaluated):
    """A chunk of 256 tokens: 8 ranks of 48,128 bytes a token, which needs no padding; 1,024 + 8 x 200 bytes
    of metadata and index for each (`catalog/defaults.toml`)."""
    lines = lines_by_tier(evaluated("built_in"))
    chunks = (2**40 + 14 * 10**12) / (256 * 8 * 48_128)
    assert lines["dram"]["metadata"] == pytest.approx(-chunks * 2624, abs=1)
    assert "metadata" not in lines["nvme"]


def test_dram_is_a_staging_buffer_only_for_what_lies_below_it(evaluated):
    assert lines_by_tier(evaluated("chat"))["dram"]["staging"] < 0
    assert "staging" not in lines_by_tier(evaluated("dram_alone"))["dram"]


def test_only_computed_tokens_are_written(evaluation):
    total = evaluation.traffic.input_tokens
    computed = total - sum(tier.hit_tokens["tiered"] for tier in evaluation.tier_traffic)
    for tier in evaluation.tier_traffic:
        assert tier.written_bytes["none"] == tier.written_bytes["engine"] == tier.loaded_bytes["engine"] == 0
        if tier.tier == "hbm":
            assert tier.written_bytes["tiered"] == tier.loaded_bytes["tiered"] == 0
        else:
            # Whole chunks of 256 tokens: a tail stays out, and a chunk that is hit in part is written.
            tails = 256 * evaluation.traffic.num_requests
            most = (computed + tails) * evaluation.model.node_bytes_per_token * 1.01
            assert tier.written_bytes["tiered"] <= most
            assert computed <= tails or tier.written_bytes["tiered"] > 0
            assert (tier.loaded_bytes["tiered"] > 0) == (tier.hit_tokens["tiered"] > 0)


# --- serving -----------------------------------------------------------------------------------------


def test_goodput_is_no_more_than_what_is_offered(evaluation):
    for point in evaluation.load_curve:
        for baseline in BASELINES:
            assert 0 <= point.goodput_requests_per_s[baseline] <= point.offered_requests_per_s * (1 + 1e-9)


def test_the_slo_is_met_if_the_quantiles_and_the_pool_say_so(evaluation):
    if evaluation.slo.percentile != 95:
        return
    for baseline in BASELINES:
        ttft = mid(metric(evaluation, "ttft").values["p95"], baseline)
        tpot = mid(metric(evaluation, "tpot").values["p95"], baseline)
        if evaluation.slo_met[baseline]:
            assert ttft <= evaluation.slo.ttft_s
            assert tpot is None or tpot <= evaluation.slo.tpot_s
        nodes = mid(evaluation.economics.nodes, baseline)
        if nodes is not None and nodes == evaluation.reference_nodes:
            assert evaluation.slo_met[baseline]


@pytest.mark.parametrize("name", all_but("slow_nvme"))
def test_no_more_nodes_with_a_cache_than_without(evaluated, name):
    """Unless its tier is slower than computing again, and is loaded from all the same."""
    evaluation = evaluated(name)
    nodes = [mid(evaluation.economics.nodes, baseline) for baseline in ("tiered", "engine", "none")]
    known = [count for count in nodes if count is not None]
    assert known == sorted(known)
    assert nodes == known + [None] * (3 - len(known))


def test_prefill_flops_fall_with_hits(evaluation):
    flops = metric(evaluation, "prefill_flops").values["mean"]
    assert mid(flops, "tiered") <= mid(flops, "engine") <= mid(flops, "none")
    assert mid(flops, "tiered") > 0


def test_hbm_bounds_the_active_requests_alike_under_every_baseline(evaluation):
    values = metric(evaluation, "max_concurrency").values["per_node"]
    assert values.none == values.engine == values.tiered
    limits = {limit.baseline: limit for limit in evaluation.context_limits}
    assert limits.keys() == set(BASELINES)
    assert len({limit.longest_tokens for limit in limits.values()}) == 1
    assert limits["none"].longest_tokens <= evaluation.model.max_context_tokens


def test_dormant_sessions_are_open_ones_that_are_not_served(evaluation):
    for row in evaluation.capacity.session_counts:
        fits = row.window_s <= evaluation.traffic.span_s
        assert (row.mean_sessions is not None) == (row.mean_dormant is not None) == fits
        if fits:
            assert row.mean_active + row.mean_dormant == pytest.approx(row.mean_sessions)
            assert row.mean_dormant >= 0
            assert row.mean_sessions <= row.max_sessions + 1e-9


def test_blocks_kept_once_are_no_more_than_prompts_on_their_own(evaluation):
    for row in evaluation.capacity.dedup:
        assert row.physical_bytes <= row.logical_bytes + 1


# --- money -------------------------------------------------------------------------------------------


def test_cost_lines_add_up(evaluation):
    money = evaluation.economics
    for baseline in BASELINES:
        lines = [mid(line.values, baseline) for line in money.cost_lines]
        total = mid(money.cost_per_hour, baseline)
        if total is None:
            assert set(lines) == {None}
        else:
            assert sum(lines) == pytest.approx(total)


def test_no_reuse_and_engine_pay_for_no_tier(evaluation):
    lines = {line.key: line.values for line in evaluation.economics.cost_lines}
    for key in {"dram", "nvme", "remote", "operations"} & lines.keys():
        assert mid(lines[key], "none") in {0, None}
        assert mid(lines[key], "engine") in {0, None}


def test_saving_is_the_difference_of_the_totals(evaluation):
    money = evaluation.economics
    engine, tiered = (mid(money.cost_per_hour, baseline) for baseline in ("engine", "tiered"))
    if engine is None or tiered is None:
        assert money.saving_per_hour.mid is None
    else:
        assert money.saving_per_hour.mid == pytest.approx(engine - tiered)


def test_money_is_in_one_currency(evaluation):
    other = {"CNY": "USD", "USD": "CNY"}[evaluation.economics.currency]
    units = [value.unit for _, value in parts_of(evaluation.economics) if isinstance(value, Estimate)]
    assert not any(other in unit for unit in units)
    assert any(evaluation.economics.currency in unit for unit in units)


# --- verdict -----------------------------------------------------------------------------------------


def falls_clearly(before: Estimate, after: Estimate) -> bool:
    ends = [(before.low, after.low), (before.mid, after.mid), (before.high, after.high)]
    return all(b is not None and a is not None and a <= 0.8 * b for b, a in ends)


def rule(evaluation: Evaluation) -> str:
    """The decision as `decide` states it in words, from nothing but the printed numbers."""
    money = evaluation.economics
    saving, payback = money.saving_per_hour, money.payback_years
    years = next(a.fact.value for a in evaluation.assumptions if a.key == "depreciation_years")
    if saving.mid is None:
        rescued = money.nodes.engine.mid is None and money.nodes.tiered.mid is not None
        return "buy_for_latency" if rescued else "do_not_buy"
    if len(evaluation.tier_budgets) == 1:
        return "do_not_buy"
    if saving.mid > 0 and payback.mid is not None and payback.mid <= years:
        return "buy" if saving.low is not None and saving.low > 0 else "marginal"
    ttft, hot = (metric(evaluation, key).values for key in ("ttft", "hot_ttft"))
    pairs = [ttft["p95"], *([hot["p50"]] if hot else [])]
    clearly = any(falls_clearly(values.engine, values.tiered) for values in pairs)
    return "buy_for_latency" if clearly else "do_not_buy"


def test_the_verdict_follows_its_rule(evaluation):
    assert evaluation.verdict.decision == rule(evaluation)
    assert evaluation.verdict.reasons


def test_reasons_are_given_once(evaluation):
    keys = [(reason.key, tuple(reason.words.items())) for reason in evaluation.verdict.reasons]
    assert len(keys) == len(set(keys))
