"""Hourly cost of a fleet, line by line."""

from dataclasses import dataclass
from typing import NamedTuple

from warmset.economics.wear import flash_hours
from warmset.units import HOURS_PER_YEAR

GB = 10**9
TB = 10**12


@dataclass(frozen=True, slots=True)
class NodePrices:
    """Prices of a node without its lower tiers, in the currency of the report; power of the whole node."""

    accelerators: float
    server: float
    power_kw: float
    pue_ratio: float
    electricity_per_kwh: float
    depreciation_years: float


@dataclass(frozen=True, slots=True)
class TierPrices:
    """Prices of the lower tiers, in the currency of the report."""

    dram_per_gb: float
    nvme_per_tb: float
    remote_per_tb: float | None
    dram_kw_per_gb: float
    nvme_kw_per_tb: float
    flash_writes_per_day: float
    flash_warranty_years: float
    operations_per_year: float


class TierSizes(NamedTuple):
    """Lower tiers of one node."""

    dram_bytes: int = 0
    nvme_bytes: int = 0
    remote_bytes: int = 0

    @property
    def present(self) -> bool:
        """Whether there is any tier below HBM."""
        return any(self)


class HourlyCosts(NamedTuple):
    """Cost per hour of a fleet."""

    accelerators: float
    servers: float
    dram: float
    nvme: float
    remote: float
    power: float
    operations: float

    @property
    def total(self) -> float:
        """All lines together."""
        return sum(self)


def tier_capex(sizes: TierSizes, prices: TierPrices) -> float:
    """Purchase price of the lower tiers of one node."""
    remote = 0.0 if prices.remote_per_tb is None else sizes.remote_bytes / TB * prices.remote_per_tb
    return sizes.dram_bytes / GB * prices.dram_per_gb + sizes.nvme_bytes / TB * prices.nvme_per_tb + remote


def hourly_costs(
    num_nodes: float, node: NodePrices, sizes: TierSizes, tiers: TierPrices, written_bytes_per_s: float
) -> HourlyCosts:
    """Straight-line depreciation, power, wear of the flash, and staff where there is a tier to run.

    `written_bytes_per_s` is what one node writes to its NVMe. Nodes may be a fraction, for large fleets.
    Hours count around the clock, 8,760 a year.
    """
    hours = node.depreciation_years * HOURS_PER_YEAR
    dram_gb, nvme_tb = sizes.dram_bytes / GB, sizes.nvme_bytes / TB
    nvme_hours = (
        flash_hours(
            sizes.nvme_bytes,
            written_bytes_per_s,
            tiers.flash_writes_per_day,
            tiers.flash_warranty_years,
            node.depreciation_years,
        )
        if sizes.nvme_bytes
        else hours
    )
    remote_per_tb = tiers.remote_per_tb or 0.0
    kilowatts = node.power_kw + dram_gb * tiers.dram_kw_per_gb + nvme_tb * tiers.nvme_kw_per_tb
    return HourlyCosts(
        accelerators=num_nodes * node.accelerators / hours,
        servers=num_nodes * node.server / hours,
        dram=num_nodes * dram_gb * tiers.dram_per_gb / hours,
        nvme=num_nodes * nvme_tb * tiers.nvme_per_tb / nvme_hours,
        remote=num_nodes * sizes.remote_bytes / TB * remote_per_tb / hours,
        power=num_nodes * kilowatts * node.pue_ratio * node.electricity_per_kwh,
        operations=tiers.operations_per_year / HOURS_PER_YEAR if sizes.present else 0.0,
    )
