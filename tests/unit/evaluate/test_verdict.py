"""The decision rule on bare numbers, and what it says of traffic made for each answer."""

from types import SimpleNamespace

import pytest

from warmset.evaluate.verdict import CLEARLY_FASTER, decide
from warmset.evaluation import ByBaseline, MetricRow
from warmset.facts import Estimate, unknown

DEPRECIATION_YEARS = 5.0


def number(mid, low=None, high=None):
    return Estimate(mid=mid, low=low, high=high, unit="test")


def about(mid, spread=0.1):
    return number(mid, mid * (1 - spread), mid * (1 + spread))


def times(engine, tiered):
    return ByBaseline(none=about(9.0), engine=engine, tiered=tiered)


AS_FAST = (about(3.0), about(3.0))
FASTER = (about(3.0), about(3.0 * (1 - CLEARLY_FASTER) * 0.98))
BARELY = (about(3.0), about(3.0 * (1 - CLEARLY_FASTER) * 1.02))


def grounds(
    saving=None,
    payback=None,
    nodes=(6, 5),
    ttft=AS_FAST,
    hot=AS_FAST,
    sizes=(1, 1, 0),
    slo_met=True,
):
    """As much of `Grounds` as the rule looks at."""
    engine_nodes, tiered_nodes = (unknown("nodes", "slo_not_met") if n is None else number(n) for n in nodes)
    metrics = {
        "ttft": MetricRow(key="ttft", values={"p95": times(*ttft)}, gain=(), holds_for=()),
        "hot_ttft": MetricRow(
            key="hot_ttft", values={} if hot is None else {"p50": times(*hot)}, gain=(), holds_for=()
        ),
    }
    return SimpleNamespace(
        economics=SimpleNamespace(
            saving_per_hour=saving or unknown("CNY_per_hour", "slo_not_met"),
            payback_years=payback or unknown("years", "nothing_comes_back"),
            nodes=ByBaseline(none=number(9), engine=engine_nodes, tiered=tiered_nodes),
        ),
        fleet=SimpleNamespace(sizes=dict(zip(("dram", "nvme", "remote"), sizes, strict=True))),
        metrics=metrics,
        slo_met={"none": False, "engine": slo_met, "tiered": slo_met},
        depreciation_years=DEPRECIATION_YEARS,
        ttft_p95_s=lambda baseline: getattr(metrics["ttft"].values["p95"], baseline),
    )


@pytest.mark.parametrize(
    ("changes", "decision"),
    [
        ({"saving": number(10, 2, 20), "payback": number(1)}, "buy"),
        ({"saving": number(10, 2, 20), "payback": number(5)}, "buy"),
        ({"saving": number(10, 2, 20), "payback": number(5.01)}, "do_not_buy"),
        ({"saving": number(10, -2, 20), "payback": number(1)}, "marginal"),
        ({"saving": number(10, 0, 20), "payback": number(1)}, "marginal"),
        ({"saving": number(10, None, 20), "payback": number(1)}, "marginal"),
        ({"saving": number(10, 2, 20)}, "do_not_buy"),
        ({"saving": number(0, -1, 1), "payback": number(1)}, "do_not_buy"),
        ({"saving": number(-10, -20, 20), "payback": number(1)}, "do_not_buy"),
        ({"saving": number(-10), "ttft": FASTER}, "buy_for_latency"),
        ({"saving": number(-10), "hot": FASTER}, "buy_for_latency"),
        ({"saving": number(-10), "ttft": FASTER, "slo_met": False}, "do_not_buy"),
        ({"saving": number(-10), "ttft": BARELY, "hot": BARELY}, "do_not_buy"),
        ({"saving": number(-10), "ttft": BARELY, "hot": None}, "do_not_buy"),
        ({"saving": number(-10), "ttft": (about(3.0), number(1.0))}, "do_not_buy"),
        ({"saving": number(-10), "ttft": (about(3.0), number(1.0, 0.5, 3.3))}, "do_not_buy"),
        ({"saving": number(10, 2, 20), "payback": number(1), "sizes": (0, 0, 0)}, "do_not_buy"),
        ({"saving": number(10, 2, 20), "payback": number(1), "sizes": (0, 0, 1)}, "buy"),
        ({"nodes": (None, 5)}, "buy_for_latency"),
        ({"nodes": (None, None)}, "do_not_buy"),
        ({"nodes": (6, None)}, "do_not_buy"),
    ],
    ids=[
        "pays",
        "pays_just_in_time",
        "pays_too_late",
        "may_not_pay",
        "may_break_even",
        "may_miss_the_slo",
        "nothing_comes_back",
        "breaks_even",
        "costs_more",
        "costs_more_but_faster",
        "costs_more_but_hot_faster",
        "faster_but_still_too_slow",
        "costs_more_and_barely_faster",
        "no_hot_requests",
        "unknown_ends",
        "not_faster_at_every_end",
        "no_tiers",
        "remote_alone",
        "only_the_tiers_meet_the_slo",
        "nobody_meets_the_slo",
        "the_tiers_miss_the_slo",
    ],
)
def test_rule(changes, decision):
    assert decide(grounds(**changes)) == decision


# --- whole evaluations -------------------------------------------------------------------------------


def keys(reasons):
    return {reason.key for reason in reasons}


def reason(evaluation, key):
    return next(found for found in evaluation.verdict.reasons if found.key == key)


def test_no_reuse_is_not_worth_it(evaluated):
    found = evaluated("no_reuse")
    assert found.verdict.decision == "do_not_buy"
    assert {"no_reuse", "nothing_spared", "cost_without_saving"} <= keys(found.verdict.reasons)
    assert "session_traffic" in keys(found.verdict.would_change)
    assert reason(found, "no_reuse").numbers["unlimited_hit"].mid == 0
    assert found.economics.saving_per_hour.mid < 0


def test_much_reuse_beyond_hbm_on_cheap_tiers_is_bought(evaluated):
    found = evaluated("cheap_tiers")
    assert found.verdict.decision == "buy"
    assert {"saves_nodes", "pays_back", "faster_ttft"} <= keys(found.verdict.reasons)
    saves = reason(found, "saves_nodes").numbers
    assert saves["saved"].mid == found.economics.nodes.engine.mid - found.economics.nodes.tiered.mid > 0
    assert found.economics.payback_years.mid < 1
    hbm, dram, *_ = found.reuse.boundaries
    assert hbm.token_hit_ratio < 0.01
    # Every block but the new one of each later turn is known, wherever it was kept.
    reused = sum(60 * (39 + turn) for turn in range(1, 5))
    assert dram.token_hit_ratio == pytest.approx(reused / sum(60 * (40 + turn) for turn in range(5)))


def test_the_same_tiers_at_todays_prices_do_not_pay(evaluated):
    found = evaluated("chat")
    assert found.economics.nodes == evaluated("cheap_tiers").economics.nodes
    assert found.verdict.decision != "buy"
    assert "cost_exceeds_saving" in keys(found.verdict.reasons)


def test_a_slow_medium_makes_it_worse(evaluated):
    found = evaluated("slow_nvme")
    assert found.verdict.decision == "do_not_buy"
    assert {"slower_ttft", "load_slower_than_recompute"} <= keys(found.verdict.reasons)
    load = reason(found, "load_slower_than_recompute")
    assert load.words == {"tier": "nvme"}
    assert load.numbers["load_s"].mid > load.numbers["recompute_s"].mid
    assert found.economics.nodes.tiered.mid > found.economics.nodes.engine.mid


def test_recomputing_what_would_load_slowly_repairs_it(evaluated):
    found = evaluated("slow_nvme_recomputed")
    ttft = next(row for row in found.metrics if row.key == "ttft").values["p95"]
    assert ttft.tiered.mid == pytest.approx(ttft.engine.mid)
    assert "slower_ttft" not in keys(found.verdict.reasons)
    assert found.economics.nodes.tiered == found.economics.nodes.engine


def test_reuse_that_hbm_already_has_is_a_reason_against_tiers(evaluated):
    """One prompt for all lies in HBM from the second request on; sixty long chats do not fit there."""
    found = evaluated("same_at_once")
    assert reason(found, "reuse_already_in_hbm").numbers["share"].mid == 1
    assert "reuse_already_in_hbm" not in keys(evaluated("cheap_tiers").verdict.reasons)


def test_an_slo_that_nothing_meets(evaluated):
    found = evaluated("impossible_slo")
    assert found.verdict.decision == "do_not_buy"
    assert [r.words for r in found.verdict.reasons if r.key == "slo_not_met"] == [
        {"baseline": "engine"},
        {"baseline": "tiered"},
    ]
    assert "relax_slo" in keys(found.verdict.would_change)
    assert not any(found.slo_met.values())
    money = found.economics
    for values in (money.nodes, money.nodes_exact, money.cost_per_hour, money.cost_per_million_tokens):
        assert {values.none.mid, values.engine.mid, values.tiered.mid} == {None}
    assert money.payback_years.mid is None
    assert (found.reference_nodes, found.reference_nodes_source) == (16, "cap")
    assert {row.reason for row in found.capacity.recommended} == {"slo_not_met"}


def test_without_tiers_there_is_nothing_to_buy(evaluated):
    found = evaluated("no_tiers")
    assert found.verdict.decision == "do_not_buy"
    assert [budget.tier for budget in found.tier_budgets] == ["hbm"]
    for row in found.metrics:
        for values in row.values.values():
            assert values.tiered == values.engine, row.key
    assert (found.economics.saving_per_hour.mid, found.economics.wear) == (0, None)
    assert found.capacity.recommended == ()
    assert found.complexity["tiered"] == found.complexity["engine"]


def test_a_dram_smaller_than_hbm_adds_nothing(evaluated):
    found = evaluated("two_engines_a_node")
    assert reason(found, "tier_adds_nothing").words == {"tier": "dram", "above_tier": "hbm"}
    assert found.hardware.tensor_parallel == 4
    hbm, dram, *_ = found.reuse.boundaries
    assert dram.capacity_blocks == hbm.capacity_blocks


def test_exclusive_tiers_add_up(evaluated):
    inclusive, exclusive = evaluated("chat").reuse.boundaries, evaluated("exclusive").reuse.boundaries
    assert exclusive[0] == inclusive[0]
    assert exclusive[1].capacity_blocks == inclusive[0].capacity_blocks + inclusive[1].capacity_blocks
    assert inclusive[2].capacity_blocks == max(b.capacity_blocks for b in inclusive)


def test_a_latent_is_stored_once_and_kept_on_every_gpu(evaluated):
    found = evaluated("mla")
    assert found.model.cache_class == "MLA"
    # 61 layers x (512 + 64) elements x 2 bytes; 8 GPUs each keep it.
    assert found.model.growth_bytes_per_token == 61 * 576 * 2
    assert found.model.node_bytes_per_token == 8 * 61 * 576 * 2
    hbm, dram, *_ = found.tier_budgets
    assert hbm.bytes_per_block == 8 * dram.bytes_per_block


def test_dollars_are_yuan_at_the_rate(evaluated):
    yuan, dollars = evaluated("chat").economics, evaluated("usd").economics
    rate = next(a.fact.value for a in evaluated("usd").assumptions if a.key == "cny_per_usd")
    by_key = {line.key: line.values.tiered.mid for line in yuan.cost_lines}
    for line in dollars.cost_lines:
        if line.key != "operations":  # another country, another salary
            assert line.values.tiered.mid == pytest.approx(by_key[line.key] / rate)


def test_given_nodes_are_compared_on(evaluated):
    found = evaluated("given_nodes")
    assert (found.reference_nodes, found.reference_nodes_source) == (7, "given")
    assert found.economics.nodes == evaluated("chat").economics.nodes


def test_a_blind_router_is_named(evaluated):
    found = evaluated("round_robin")
    by_routing = found.reuse.token_hit_by_routing
    assert by_routing["round_robin"]["tiered"] < by_routing["prefix"]["tiered"]
    assert "route_by_prefix" in keys(found.verdict.would_change)


def test_a_remote_pool_behind_enough_nvme_adds_nothing(evaluated):
    found = evaluated("remote")
    assert reason(found, "tier_adds_nothing").words == {"tier": "remote", "above_tier": "nvme"}
    assert any(line.key == "remote" for line in found.economics.cost_lines)
    assert not any(line.key == "remote" for line in evaluated("chat").economics.cost_lines)


# --- odd traffic -------------------------------------------------------------------------------------


def test_one_request(evaluated):
    found = evaluated("one_request")
    assert (found.traffic.num_requests, found.traffic.span_s, found.traffic.requests_per_s) == (1, 0, None)
    assert [kind.kind for kind in found.traffic.kinds] == ["first"]
    assert found.capacity.num_sessions == 1


def test_all_at_once_with_one_prompt(evaluated):
    found = evaluated("same_at_once")
    assert found.reuse.unlimited_token_hit_ratio == pytest.approx(49 / 50)


def test_answers_of_at_most_one_token_have_no_tpot(evaluated):
    for name in ("short_answers", "no_answers"):
        tpot = next(row for row in evaluated(name).metrics if row.key == "tpot").values["p95"]
        assert (tpot.engine.mid, tpot.engine.note) == (None, "no_second_token")


def test_empty_prompts_are_counted_and_said(evaluated):
    found = evaluated("empty_prompts")
    assert {(row.code, row.count) for row in found.findings} == {("empty_prompts", 20)}
    assert found.traffic.input_tokens == 50 * 512
    assert found.traffic.num_requests == 70


def test_the_built_in_scenario(evaluated):
    found = evaluated("built_in")
    # shared/traces/ground_truth.json, mooncake_conversation: counts, and the hits of an unlimited cache.
    assert (found.traffic.num_requests, found.traffic.block_refs) == (12_031, 288_500)
    assert (found.traffic.unique_blocks, found.traffic.input_tokens) == (182_790, 144_793_823)
    assert found.reuse.unlimited_token_hit_ratio == pytest.approx(0.373624, abs=5e-7)
    assert found.model.growth_bytes_per_token == 192_512  # 2 x 94 layers x 4 KV heads x 128 x 2 bytes
    assert (found.hardware.num_gpus, found.hardware.tensor_parallel) == (8, 8)
    assert {row.code for row in found.findings} == {"clock_step"}
    assert "trace_too_short" in keys(found.verdict.reasons)
