"""Money on fleets whose nodes and prices are round numbers, so that every sum is done by hand."""

from types import SimpleNamespace

import pytest

from warmset.economics import NodePrices, TierPrices
from warmset.evaluate import money as module
from warmset.evaluate.money import EXPECTED_PRICES, Money, PriceEnds, Prices
from warmset.facts import Estimate

YEARS = 5
HOURS = YEARS * 8760
NODE_PER_HOUR = {"low": 5, "mid": 10, "high": 20}
DRAM_PER_HOUR = {"low": 0.5, "mid": 1, "high": 2}
"""For the one GB that a node has; staff is one an hour at every end."""


def prices(end):
    return Prices(
        NodePrices(
            accelerators=NODE_PER_HOUR[end] * HOURS,
            server=0,
            power_kw=0,
            pue_ratio=1,
            electricity_per_kwh=0,
            depreciation_years=YEARS,
        ),
        TierPrices(
            dram_per_gb=DRAM_PER_HOUR[end] * HOURS,
            nvme_per_tb=0,
            remote_per_tb=None,
            dram_kw_per_gb=0,
            nvme_kw_per_tb=0,
            flash_writes_per_day=1,
            flash_warranty_years=YEARS,
            operations_per_year=8760,
        ),
    )


def case(engine, tiered, *, corner="expected", sustained=None):
    """A corner at which the baselines need so many nodes; `sustained` is the load factor by nodes."""
    return SimpleNamespace(
        corner=corner,
        nodes_needed={"none": None, "engine": engine, "tiered": tiered}.get,
        written_bytes_per_s=lambda _baseline, _nodes: 0.0,
        sustainable_factor=lambda _baseline, nodes: (sustained or {}).get(nodes),
    )


@pytest.fixture
def money_of(monkeypatch):
    monkeypatch.setattr(module, "prices_at", lambda _inputs, end: prices(end))

    def of(*cases):
        by_corner = {each.corner: each for each in cases}
        sizes = {"dram": 10**9, "nvme": 0, "remote": 0}
        return Money(
            SimpleNamespace(inputs=None, sizes=sizes, cases=by_corner, expected=by_corner["expected"])
        )

    return of


def test_payback_is_the_purchase_over_what_it_spares_before_its_own_depreciation(money_of):
    four_to_two = case(4, 2)
    money = money_of(four_to_two)
    # 4 x 10 before; 2 x 10, 2 x 1 of memory and 1 of staff after.
    assert money.saving_per_hour(four_to_two, EXPECTED_PRICES) == pytest.approx(40 - 23)
    assert money.added_capex(four_to_two, EXPECTED_PRICES) == pytest.approx(2 * HOURS)
    assert money.payback_years(four_to_two, EXPECTED_PRICES) == pytest.approx(2 * HOURS / ((40 - 21) * 8760))


@pytest.mark.parametrize(("engine", "tiered"), [(2, 2), (2, 3)], ids=["nothing_saved", "more_nodes"])
def test_what_spares_nothing_never_pays_back(money_of, engine, tiered):
    same = case(engine, tiered)
    assert money_of(same).payback_years(same, EXPECTED_PRICES) is None


def test_a_baseline_that_misses_the_slo_has_no_price(money_of):
    missed = case(None, 2)
    money = money_of(missed)
    assert money.costs(missed, "engine", EXPECTED_PRICES) is None
    assert money.saving_per_hour(missed, EXPECTED_PRICES) is None
    assert money.payback_years(missed, EXPECTED_PRICES) is None


def test_a_saving_is_least_where_nodes_are_cheap_and_memory_is_dear(money_of):
    money = money_of(*(case(4, 2, corner=corner) for corner in ("unfavourable", "expected", "favourable")))
    found = money.spread("test", money.saving_per_hour, "missing", "less")
    cheap_nodes, dear_nodes = 2 * 5 - 2 * 2 - 1, 2 * 20 - 2 * 0.5 - 1
    assert found == Estimate(low=cheap_nodes, mid=17.0, high=dear_nodes, unit="test")


def test_a_corner_without_a_price_leaves_the_worse_side_open(money_of):
    money = money_of(case(4, 2), case(4, 2, corner="favourable"))
    saving = money.spread("test", money.saving_per_hour, "missing", "less")
    assert (saving.low, saving.mid, saving.high, saving.note) == (None, 17.0, 38.0, "missing")
    capex = money.spread("test", money.added_capex, "missing", "more")
    assert (capex.low, capex.mid, capex.high) == (HOURS, 2 * HOURS, None)


@pytest.mark.parametrize(
    ("needed", "sustained", "exact"),
    [
        (4, {4: 1.1, 3: 0.9}, 3.5),
        (4, {4: 1.0, 3: 0.5}, 4.0),
        (4, {4: 2.0}, 3.5),
        (1, {1: 4.0}, 0.25),
        (4, {}, None),
        (None, {}, None),
    ],
    ids=["between", "just_enough", "three_never_hold", "one_is_plenty", "no_load_holds", "slo_missed"],
)
def test_nodes_before_rounding_up(money_of, needed, sustained, exact):
    expected = case(needed, needed, sustained=sustained)
    found = money_of(expected).nodes_exact(expected, "tiered")
    assert found == (None if exact is None else pytest.approx(exact))


def test_both_ends_of_prices_are_tried_apart(money_of):
    four_to_two = case(4, 2)
    costs = money_of(four_to_two).costs(four_to_two, "tiered", PriceEnds(node="low", tiers="high"))
    assert (costs.accelerators, costs.dram, costs.operations) == pytest.approx((10, 4, 1))
