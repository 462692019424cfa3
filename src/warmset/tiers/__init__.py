"""What each tier of a node can hold after its reserves, and what it would hit."""

from warmset.tiers.budget import (
    ChunkFormat,
    HbmReserves,
    TierReserves,
    hbm_budget,
    lower_tier_budget,
)
from warmset.tiers.routing import hit_tokens_by_tier
from warmset.tiers.stack import TierStack, stack_capacities

__all__ = [
    "ChunkFormat",
    "HbmReserves",
    "TierReserves",
    "TierStack",
    "hbm_budget",
    "hit_tokens_by_tier",
    "lower_tier_budget",
    "stack_capacities",
]
