"""Prices become cost per hour, and the cost of flash that is written to death."""

from warmset.economics.cost import HourlyCosts, NodePrices, TierPrices, hourly_costs, tier_capex
from warmset.economics.wear import flash_hours, wear_of

__all__ = [
    "HourlyCosts",
    "NodePrices",
    "TierPrices",
    "flash_hours",
    "hourly_costs",
    "tier_capex",
    "wear_of",
]
