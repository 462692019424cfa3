"""Who waits for what, drawn by hand; against the slow queue in `tests/property/test_serving.py`; and against
queueing theory, with several seeds and the interval that they give themselves."""

import numpy as np
import pytest

from tests.oracles.queue import erlang_c, mean_wait_mg1, mean_wait_mmc
from tests.support.engines import FREE, engine, fleet, hits, workload
from warmset.serving import serve
from warmset.serving.queueing import assign_and_load, prefill_in_turn

SEEDS = range(12)


def queue(arrival_s, prefill_s, load_s=None, fixed_s=None, num_engines=1, engines_per_node=1):
    """Engine, ready and start of each request."""
    arrivals, prefills = np.array(arrival_s, float), np.array(prefill_s, float)
    loads = np.zeros((arrivals.size, 1)) if load_s is None else np.array(load_s, float)
    fixed = np.zeros(arrivals.size) if fixed_s is None else np.array(fixed_s, float)
    engines, ready = assign_and_load(arrivals, prefills, loads, fixed, num_engines, engines_per_node)
    order = np.argsort(ready, kind="stable")
    return engines, ready, prefill_in_turn(order, engines, ready, prefills, num_engines)


# --- by hand -----------------------------------------------------------------------------------------


def test_one_engine_takes_turns():
    _, ready, start = queue([0, 1, 2, 10], [3, 3, 3, 3])
    assert ready.tolist() == [0, 1, 2, 10]
    assert start.tolist() == [0, 3, 6, 10]


def test_the_least_work_ahead_wins():
    engines, _, start = queue([0, 0, 1, 2], [9, 2, 2, 1], num_engines=2)
    # The long one keeps engine 0 busy; the others line up on engine 1.
    assert engines.tolist() == [0, 1, 1, 1]
    assert start.tolist() == [0, 0, 2, 4]


def test_loads_of_a_node_share_its_channel_and_another_tier_does_not_wait():
    _, ready, start = queue([0, 0, 0], [1, 1, 1], [[4, 0], [4, 0], [0, 3]])
    assert ready.tolist() == [4, 8, 3]
    assert start.tolist() == [4, 8, 3]


def test_both_tiers_load_at_once_and_the_fixed_part_comes_on_top():
    _, ready, _ = queue([0], [1], [[4, 6]], [0.5])
    assert ready.tolist() == [6.5]


def test_another_node_has_channels_of_its_own():
    engines, ready, _ = queue([0, 0, 0], [1, 1, 1], [[4], [4], [4]], num_engines=4, engines_per_node=2)
    assert engines.tolist() == [0, 1, 2]
    assert ready.tolist() == [4, 8, 4]


def test_who_is_loaded_first_is_prefilled_first():
    _, ready, start = queue([0, 1], [2, 2], [[5], [0]])
    assert ready.tolist() == [5, 1]
    assert start.tolist() == [5, 1]


# --- by theory ---------------------------------------------------------------------------------------


def agrees(waits: list[float], expected: float) -> None:
    """The mean over the seeds lies within four of its standard errors, which are small enough to tell."""
    mean, error = np.mean(waits), np.std(waits, ddof=1) / np.sqrt(len(waits))
    assert error < 0.05 * expected
    assert abs(mean - expected) < 4 * error


def test_the_theory_itself():
    # Eight servers at load 0.9, mean service 1 s: Erlang C gives a mean wait of 0.877.
    assert mean_wait_mmc(8, 7.2, 1.0) == pytest.approx(0.877, abs=5e-4)
    # One server: the share that waits is the load, and Pollaczek-Khinchine with C² = 1 is M/M/1.
    assert erlang_c(1, 0.7) == pytest.approx(0.7)
    assert mean_wait_mmc(1, 0.7, 1.0) == pytest.approx(mean_wait_mg1(0.7, 1.0, 1.0)) == pytest.approx(7 / 3)


@pytest.mark.parametrize("load", [0.4, 0.8])
def test_constant_prefill_waits_as_pollaczek_and_khinchine_say(load):
    """The whole of `serve`: one engine, Poisson arrivals, equal prompts, decode that costs nothing."""
    times = engine(kv_bytes_per_s=FREE)
    prefill_s = 0.1002 + 0.101
    waits = []
    for seed in SEEDS:
        arrivals = np.cumsum(np.random.default_rng(seed).exponential(prefill_s / load, 40_000))
        waits.append(serve(workload(arrivals, 100), hits(40_000), fleet(times)).wait_s.mean())
    agrees(waits, mean_wait_mg1(load / prefill_s, prefill_s, 0.0))


@pytest.mark.parametrize(("num_engines", "load"), [(1, 0.7), (3, 0.8), (8, 0.9)])
def test_exponential_prefill_waits_as_erlang_says(num_engines, load):
    """Least work ahead is what one shared queue does: first come, first served by whoever is free first."""
    waits = []
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        arrivals = np.cumsum(rng.exponential(1 / (load * num_engines), 200_000))
        _, ready, start = queue(arrivals, rng.exponential(1.0, 200_000), num_engines=num_engines)
        waits.append((start - ready)[20_000:].mean())
    agrees(waits, mean_wait_mmc(num_engines, load * num_engines, 1.0))
