"""The serving model as a whole, on engines whose times are known by hand."""

from dataclasses import replace

import numpy as np
import pytest

from tests.oracles.queue import area_in_system
from tests.support.engines import engine, fleet, hits, workload
from warmset.serving import LoadPath, serve

COLD_100_S = 0.1002 + 0.101
"""Prefill of 100 new tokens."""
STARTUP_S = 0.5
FAST_TIER = LoadPath(bytes_per_token=20, bytes_per_s=20e3, fixed_s=0.013)
"""A millisecond a token: faster than computing it, which takes two."""
SLOW_TIER = LoadPath(bytes_per_token=20, bytes_per_s=2e3, fixed_s=0.013)
"""Ten milliseconds a token."""


def poisson(requests, gap_s, seed=1):
    return np.cumsum(np.random.default_rng(seed).exponential(gap_s, requests))


# --- one request -------------------------------------------------------------------------------------


def test_a_request_on_its_own():
    found = serve(workload([0.0], 100, 3), hits(1), fleet(engine()))
    assert found.wait_s.tolist() == [0.0]
    assert found.ttft_s[0] == pytest.approx(COLD_100_S + STARTUP_S, rel=0.01)
    # Alone in its batch, with its prompt and half of its answer for context.
    assert found.tpot_s[0] == pytest.approx(0.004 + 0.001 + 0.002 + (100 + 3 / 2) * 20 / 2e6)
    assert found.e2e_s[0] == pytest.approx(found.ttft_s[0] + 2 * found.tpot_s[0])


def test_a_long_answer_on_its_own_is_still_a_batch_of_one():
    """However short the span of the arrivals: no more can decode than there are requests."""
    found = serve(workload([0.0], 100, 1001), hits(1), fleet(engine()))
    assert found.active_decodes_per_engine == 1.0
    assert found.tpot_s[0] == pytest.approx(0.007 + (100 + 1001 / 2) * 20 / 2e6)


@pytest.mark.parametrize("output", [0, 1])
def test_no_second_token_no_tpot(output):
    found = serve(workload([0.0, 1.0], 100, output), hits(2), fleet(engine()))
    assert np.isnan(found.tpot_s).all()
    assert found.e2e_s.tolist() == found.ttft_s.tolist()
    assert found.active_decodes_per_engine == 0.0
    assert found.tpot_quantile_s(0.95) is None


def test_idle_engines_decode_at_the_free_step_time():
    """Requests so far apart that nothing else runs: all see the same step, at the load they make."""
    found = serve(workload(np.arange(50) * 100.0, 100, 11), hits(50), fleet(engine()))
    assert found.tpot_s.tolist() == pytest.approx([0.007 + (100 + 11 / 2) * 20 / 2e6] * 50)


def test_a_step_beside_a_prefill_is_never_faster_than_one_alone():
    """Prompts of a token take a millisecond, a decode step alone seven; one request in a hundred decodes."""
    outputs = np.where(np.arange(400) % 100 == 0, 50, 1)
    found = serve(
        workload(np.arange(400) * 0.003, 1, outputs), hits(400), fleet(engine(prefill_chunk_tokens=1))
    )
    assert found.prefill_busy_ratio > 0.3
    assert np.nanmin(found.tpot_s) >= 0.007


def test_the_last_prompt_token_is_always_computed():
    everything, all_but_one = (
        serve(workload([0.0], 100), hits(1, hbm=cached), fleet(engine())) for cached in (100, 99)
    )
    assert everything.ttft_s.tolist() == all_but_one.ttft_s.tolist()
    assert everything.ttft_s[0] == pytest.approx(0.0012 + 0.002 + 99e-4 + STARTUP_S, rel=0.02)


def test_hits_save_prefill():
    cold, hot = (serve(workload([0.0], 100), hits(1, hbm=cached), fleet(engine())) for cached in (0, 90))
    saved = (100_200 + 101_000 - 10_200 - 19_100) / 1e6 - 90e-4
    assert cold.prefill_busy_ratio - hot.prefill_busy_ratio == pytest.approx(saved)
    assert cold.ttft_s[0] - hot.ttft_s[0] == pytest.approx(saved, rel=0.01)


# --- loading -----------------------------------------------------------------------------------------


def test_load_time_is_fixed_plus_bytes_over_rate():
    found = serve(workload([0.0], 100), hits(1, 0, 90), fleet(engine(), 1, 1, FAST_TIER))
    assert found.load_s.tolist() == pytest.approx([90 * 20 / 20e3 + 0.013])


def test_what_is_not_loaded_costs_no_fixed_part():
    found = serve(workload([0.0, 9.0], 100), hits(2, 0, [0, 90]), fleet(engine(), 1, 1, FAST_TIER))
    assert found.load_s.tolist() == pytest.approx([0.0, 0.103])


def test_tiers_load_side_by_side_and_the_slower_start_counts():
    deep = replace(FAST_TIER, fixed_s=0.1)
    found = serve(workload([0.0], 100), hits(1, 0, 30, 60), fleet(engine(), 1, 1, FAST_TIER, deep))
    assert found.load_s.tolist() == pytest.approx([60e-3 + 0.1])


def test_a_slow_tier_makes_it_worse():
    work = workload(poisson(500, 0.5), 100, 5)
    without = serve(work, hits(500), fleet(engine()))
    slow = serve(work, hits(500, 0, 90), fleet(engine(), 1, 1, SLOW_TIER))
    fast = serve(work, hits(500, 0, 90), fleet(engine(), 1, 1, FAST_TIER))
    for share in (0.5, 0.95):
        assert slow.ttft_quantile_s(share) > 1.2 * without.ttft_quantile_s(share)
        assert fast.ttft_quantile_s(share) < without.ttft_quantile_s(share)


def test_recomputing_when_it_is_faster_repairs_it():
    work = workload(poisson(500, 0.5), 100, 5)
    without = serve(work, hits(500), fleet(engine()))
    repaired = serve(work, hits(500, 0, 90), fleet(engine(), 1, 1, SLOW_TIER, recompute_when_faster=True))
    assert repaired.ttft_s.tolist() == pytest.approx(without.ttft_s.tolist())
    assert not repaired.load_s.any()


def test_recomputing_leaves_loads_that_are_worth_it():
    work, found = workload(poisson(500, 0.5), 100, 5), hits(500, 0, 90)
    always = serve(work, found, fleet(engine(), 1, 1, FAST_TIER))
    when_faster = serve(work, found, fleet(engine(), 1, 1, FAST_TIER, recompute_when_faster=True))
    assert when_faster.ttft_s.tolist() == always.ttft_s.tolist()


def test_recomputing_decides_for_each_request():
    work = workload([0.0, 100.0], [1000, 100])
    path = replace(FAST_TIER, fixed_s=0.2)  # worth it for 900 tokens, not for 90
    found = serve(work, hits(2, 0, [900, 90]), fleet(engine(), 1, 1, path, recompute_when_faster=True))
    assert found.load_s.tolist() == pytest.approx([0.9 + 0.2, 0.0])


def test_hbm_hits_stay_where_a_load_is_dropped():
    work = workload([0.0], 100)
    found = serve(work, hits(1, 50, 40), fleet(engine(), 1, 1, SLOW_TIER, recompute_when_faster=True))
    only_hbm = serve(work, hits(1, 50), fleet(engine()))
    assert found.ttft_s.tolist() == only_hbm.ttft_s.tolist()


# --- many requests -----------------------------------------------------------------------------------


def test_no_hits_are_the_same_with_and_without_tiers():
    work = workload(poisson(300, 0.3), 100, 20)
    bare = serve(work, hits(300), fleet(engine()))
    tiered = serve(work, hits(300, 0, 0, 0), fleet(engine(), 1, 1, FAST_TIER, SLOW_TIER))
    for column in ("ttft_s", "tpot_s", "e2e_s", "wait_s", "load_s"):
        assert getattr(tiered, column).tolist() == getattr(bare, column).tolist()


def test_prefill_busy_is_prefill_time_over_engine_time():
    found = serve(workload(np.arange(100.0), 100), hits(100), fleet(engine(), 2, 2))
    assert found.num_engines == 4
    assert found.prefill_busy_ratio == pytest.approx(100 * COLD_100_S / (100.0 * 4))


@pytest.mark.parametrize("engines", [(1, 1), (3, 1), (2, 4)])
def test_littles_law(engines):
    arrivals = poisson(400, 0.15)
    found = serve(workload(arrivals, 100, 30), hits(400), fleet(engine(), *engines))
    area = area_in_system(arrivals.tolist(), (arrivals + found.e2e_s).tolist())
    assert found.in_system == pytest.approx(area / found.span_s)


def test_littles_law_of_the_decode_batch():
    arrivals = poisson(400, 0.3)
    found = serve(workload(arrivals, 100, 30), hits(400), fleet(engine(), 2))
    first_token = arrivals + found.ttft_s
    area = area_in_system(first_token.tolist(), (arrivals + found.e2e_s).tolist())
    assert found.active_decodes_per_engine == pytest.approx(area / found.span_s / 2)


def test_more_load_never_makes_it_faster():
    work = workload(poisson(2000, 0.5), 100, 20)
    found = [
        serve(work.sped_up(factor), hits(2000), fleet(engine())) for factor in (0.25, 0.5, 1.0, 2.0, 4.0)
    ]
    p95 = [outcome.ttft_quantile_s(0.95) for outcome in found]
    tpot = [outcome.tpot_quantile_s(0.95) for outcome in found]
    assert p95 == sorted(p95)
    assert tpot == sorted(tpot)


def test_speeding_up_changes_arrivals_only():
    work = workload([0.0, 4.0], [100, 200], [1, 2])
    assert work.sped_up(2.0).arrival_s.tolist() == [0.0, 2.0]
    assert work.sped_up(2.0).input_tokens.tolist() == [100, 200]


def test_overload_is_busy_above_one_and_throughput_settles():
    work = workload(poisson(2000, COLD_100_S / 2), 100, 1)
    once, twice = (serve(work.sped_up(factor), hits(2000), fleet(engine())) for factor in (1.0, 2.0))
    assert once.prefill_busy_ratio == pytest.approx(2.0, rel=0.1)
    assert twice.throughput_tokens_per_s == pytest.approx(once.throughput_tokens_per_s, rel=0.02)
    assert once.throughput_tokens_per_s == pytest.approx(101 / COLD_100_S, rel=0.02)


def test_hbm_demand_is_the_kv_of_who_is_in_service():
    """One decode after the other: its mean context, for its share of the time, and the prompt while it is
    prefilled."""
    work = workload(np.arange(40) * 10.0, 100, 101)
    found = serve(work, hits(40), fleet(engine(), pool_tokens_per_engine=1000))
    decode_s = 100 * found.tpot_s[0]
    prefill_s = found.ttft_s[0] - STARTUP_S
    tokens = (decode_s * (100 + 101 / 2) + prefill_s * 100) / 10.0
    assert found.hbm_demand_ratio == pytest.approx(tokens / 1000)


def test_a_small_pool_breaks_the_promise_whatever_the_times():
    from warmset.serving import Promise

    work, promise = workload(np.arange(40) * 10.0, 100, 101), Promise(60.0, 60.0, 0.95)
    assert promise.holds(serve(work, hits(40), fleet(engine(), pool_tokens_per_engine=1000)))
    assert not promise.holds(serve(work, hits(40), fleet(engine(), pool_tokens_per_engine=10)))


def test_decodes_slow_down_while_prompts_are_prefilled():
    alone = serve(workload([0.0, 5000.0], 100, 101), hits(2), fleet(engine()))
    crowded = serve(workload(np.arange(200) * 0.4, 100, 101), hits(200), fleet(engine()))
    assert crowded.tpot_s[50] > 1.5 * alone.tpot_s[0]
