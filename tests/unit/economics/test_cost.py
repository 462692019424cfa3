"""Hourly costs by hand, line by line."""

from dataclasses import fields, replace

import pytest

from warmset.economics import NodePrices, TierPrices, hourly_costs, tier_capex
from warmset.economics.cost import TierSizes

NODE = NodePrices(
    accelerators=438_000,
    server=43_800,
    power_kw=10.0,
    pue_ratio=1.5,
    electricity_per_kwh=0.5,
    depreciation_years=5,
)
TIERS = TierPrices(
    dram_per_gb=87.6,
    nvme_per_tb=876,
    remote_per_tb=438,
    dram_kw_per_gb=0.001,
    nvme_kw_per_tb=0.01,
    flash_writes_per_day=1,
    flash_warranty_years=5,
    operations_per_year=8760,
)
SIZES = TierSizes(dram_bytes=1000 * 10**9, nvme_bytes=10 * 10**12, remote_bytes=20 * 10**12)
HOURS = 5 * 8760
"""43,800: prices above are round numbers of it."""


def test_without_tiers():
    costs = hourly_costs(3, NODE, TierSizes(), TIERS, 0.0)
    assert costs == pytest.approx((30, 3, 0, 0, 0, 3 * 10 * 1.5 * 0.5, 0))
    assert costs.total == pytest.approx(55.5)


def test_with_tiers():
    costs = hourly_costs(2, NODE, SIZES, TIERS, 0.0)
    assert (costs.accelerators, costs.servers) == pytest.approx((20, 2))
    assert costs.dram == pytest.approx(2 * 1000 * 87.6 / HOURS)
    assert costs.nvme == pytest.approx(2 * 10 * 876 / HOURS)
    assert costs.remote == pytest.approx(2 * 20 * 438 / HOURS)
    assert costs.power == pytest.approx(2 * (10 + 1 + 0.1) * 1.5 * 0.5)
    assert costs.operations == pytest.approx(1.0)
    assert costs.total == pytest.approx(sum(costs))


def test_staff_is_paid_once_whatever_the_number_of_nodes():
    assert hourly_costs(50, NODE, SIZES, TIERS, 0.0).operations == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("sizes", "staff"),
    [(TierSizes(), 0), (TierSizes(1), 1), (TierSizes(0, 1), 1), (TierSizes(0, 0, 1), 1)],
    ids=["none", "dram", "nvme", "remote"],
)
def test_staff_where_there_is_a_tier_to_run(sizes, staff):
    assert hourly_costs(1, NODE, sizes, TIERS, 0.0).operations == pytest.approx(staff)


def test_flash_that_wears_out_sooner_costs_more():
    # Ten drive writes a day, one rated: five years of warranty are over in half a year.
    written = 10 * 10 * 10**12 / 86_400
    worn, idle = (hourly_costs(1, NODE, SIZES, TIERS, rate).nvme for rate in (written, 0.0))
    assert worn / idle == pytest.approx(10)


def test_half_a_node_costs_half():
    half, whole = (hourly_costs(nodes, NODE, SIZES, TIERS, 0.0) for nodes in (0.5, 1))
    assert half[:-1] == pytest.approx([line / 2 for line in whole[:-1]])


@pytest.mark.parametrize("factor", [2.0, 7.25])
def test_doubling_every_price_doubles_the_cost(factor):
    """In another currency everything is the same multiple."""
    node = replace(
        NODE,
        accelerators=factor * NODE.accelerators,
        server=factor * NODE.server,
        electricity_per_kwh=factor * NODE.electricity_per_kwh,
    )
    money = [field.name for field in fields(TIERS) if "kw" not in field.name and "flash" not in field.name]
    tiers = replace(TIERS, **{name: factor * getattr(TIERS, name) for name in money})
    before, after = hourly_costs(3, NODE, SIZES, TIERS, 1e9), hourly_costs(3, node, SIZES, tiers, 1e9)
    assert after == pytest.approx([factor * line for line in before])
    assert tier_capex(SIZES, tiers) == pytest.approx(factor * tier_capex(SIZES, TIERS))


def test_capex_of_the_tiers():
    assert tier_capex(SIZES, TIERS) == pytest.approx(1000 * 87.6 + 10 * 876 + 20 * 438)
    assert tier_capex(TierSizes(), TIERS) == 0
    assert tier_capex(TierSizes(10**9), replace(TIERS, remote_per_tb=None)) == pytest.approx(87.6)


def test_no_price_of_a_remote_pool_is_none_where_there_is_no_pool():
    sizes = TierSizes(dram_bytes=10**9)
    assert hourly_costs(1, NODE, sizes, replace(TIERS, remote_per_tb=None), 0.0).remote == 0
