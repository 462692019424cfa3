"""Tiers on top of one another, on the one curve of the traffic."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warmset.evaluation import TierBudget, TierName
from warmset.reuse import ReuseProfile

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TierStack:
    """Tiers from the top, each with the capacity down to which it serves hits.

    `reach_blocks[i]` is the reuse distance up to which tier `i` or one above it still holds a block. An
    inclusive tier holds what the tiers above hold too, so its reach is its own size or theirs, whichever is
    larger; an exclusive tier adds its size to theirs. A touch refreshes a block in all tiers that have it.
    """

    tiers: tuple[TierName, ...]
    reach_blocks: tuple[int, ...]

    def hit_tokens_per_request(self, profile: ReuseProfile) -> Int64s:
        """Hit tokens by request and tier. Shapes: requests x tiers."""
        upto = [profile.hit_tokens_per_request(reach) for reach in self.reach_blocks]
        return np.diff(np.stack([np.zeros_like(upto[0]), *upto], axis=1), axis=1)


def stack_capacities(budgets: Sequence[TierBudget], num_nodes: int) -> TierStack:
    """The stack that all nodes form together, when a router sends each prefix to the node that holds it."""
    reach: list[int] = []
    for budget in budgets:
        above = reach[-1] if reach else 0
        own = budget.usable_blocks * num_nodes
        reach.append(max(above, own) if budget.inclusive else above + own)
    return TierStack(tuple(budget.tier for budget in budgets), tuple(reach))
