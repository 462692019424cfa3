"""The hit curve at every capacity at once."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warmset.reuse.profile import Hits, ReuseProfile

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CapacityCurve:
    """Hits of one LRU pool at every capacity from 0 blocks to the one past which nothing is evicted.

    Shapes: `hit_blocks[c]` and `hit_tokens[c]` for capacity `c`; the last entry is the unlimited cache.
    """

    hit_blocks: Int64s
    hit_tokens: Int64s
    measured_tokens: int

    @property
    def most_blocks(self) -> int:
        """The smallest capacity that already hits all there is to hit."""
        return int(self.hit_blocks.size - 1)

    def at(self, capacity_blocks: int) -> Hits:
        """Hits at one capacity: none below one block, and beyond the last one they stay as they are."""
        position = min(max(capacity_blocks, 0), self.most_blocks)
        return Hits(int(self.hit_blocks[position]), int(self.hit_tokens[position]))

    def token_hit_ratio(self, capacity_blocks: int) -> float:
        """Hit tokens over input tokens of the measured requests."""
        return self.at(capacity_blocks).tokens / self.measured_tokens if self.measured_tokens else 0.0

    def capacity_for_tokens(self, hit_tokens: int) -> int | None:
        """The smallest capacity that hits at least so many tokens; `None` where no capacity does."""
        position = int(np.searchsorted(self.hit_tokens, hit_tokens, side="left"))
        return position if position <= self.most_blocks else None


def capacity_curve(profile: ReuseProfile) -> CapacityCurve:
    """Add every measured run's range of distances to a histogram, and sum it up."""
    from warmset.reuse.kernel import sum_runs

    trace = profile.trace
    measured = slice(int(np.searchsorted(profile.request, profile.first_measured)), None)
    hit_blocks, hit_tokens = sum_runs(
        profile.depth[measured],
        profile.length[measured],
        profile.distance[measured],
        trace.input_tokens[profile.request[measured]],
        trace.block_tokens,
    )
    return CapacityCurve(hit_blocks, hit_tokens, profile.measured_tokens)
