"""What is promised, and the load up to which it holds."""

from dataclasses import replace

import numpy as np
import pytest

from tests.support.engines import engine, fleet, hits, workload
from warmset.serving import Promise, serve, sustainable_load_factor

SLO = Promise(ttft_s=1.0, tpot_s=0.1, share=0.95)
PLAIN = serve(workload(np.arange(20.0), 10, 3), hits(20), fleet(engine()))


def outcome(ttft_s=0.9, tpot_s=0.05, demand=0.5):
    return replace(PLAIN, ttft_s=np.full(20, ttft_s), tpot_s=np.full(20, tpot_s), hbm_demand_ratio=demand)


@pytest.mark.parametrize(
    ("changes", "holds"),
    [
        ({}, True),
        ({"ttft_s": 1.0, "tpot_s": 0.1, "demand": 1.0}, True),
        ({"ttft_s": 1.01}, False),
        ({"tpot_s": 0.11}, False),
        ({"demand": 1.01}, False),
        ({"tpot_s": float("nan")}, True),
    ],
    ids=["within", "at_the_limits", "late", "slow", "does_not_fit", "no_second_token"],
)
def test_holds(changes, holds):
    assert SLO.holds(outcome(**changes)) is holds


def test_a_twentieth_of_the_requests_may_miss_it():
    late = np.full(20, 0.5)
    late[:1] = 9.0
    assert SLO.holds(replace(PLAIN, ttft_s=late))
    late[:2] = 9.0
    assert not SLO.holds(replace(PLAIN, ttft_s=late))


@pytest.mark.parametrize("limit", [0.02, 0.3, 0.999, 1.0, 1.7, 31.0, 63.9])
def test_brackets_where_the_promise_breaks(limit):
    asked = []

    def at(factor):
        asked.append(factor)
        return outcome(ttft_s=1.0 if factor <= limit else 1.1)

    found = sustainable_load_factor(SLO, at)
    assert found <= limit < found * 1.01
    assert found in asked
    assert len(asked) < 30


def test_not_to_be_had():
    assert sustainable_load_factor(SLO, lambda _: outcome(ttft_s=2.0)) is None
    assert sustainable_load_factor(SLO, lambda factor: outcome(ttft_s=1.0 + (factor > 1 / 64))) == 1 / 64


def test_what_never_breaks_ends_somewhere():
    assert 64 <= sustainable_load_factor(SLO, lambda _: outcome()) <= 128


@pytest.mark.parametrize("num_nodes", [1, 3])
def test_real_outcomes_hold_at_the_factor_and_fail_beyond_it(num_nodes):
    arrivals = np.cumsum(np.random.default_rng(5).exponential(0.5, 2000))
    work, some = workload(arrivals, 100, 20), fleet(engine(), num_nodes)

    def at(factor):
        return serve(work.sped_up(factor), hits(2000), some)

    factor = sustainable_load_factor(SLO, at)
    assert SLO.holds(at(factor))
    assert not SLO.holds(at(factor * 1.01))
