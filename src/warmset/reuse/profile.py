"""`ReuseProfile`: every reuse of a trace as runs of blocks, and the hits at any capacity and time to live."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from warmset.trace import Trace

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


class Hits(NamedTuple):
    """Totals over the measured requests."""

    blocks: int
    tokens: int


@dataclass(frozen=True, slots=True)
class ReuseProfile:
    """Runs of reused blocks: consecutive blocks of one request that one earlier request touched last.

    Shapes: one entry a run in `request`, `owner`, `depth` (of the first block, from 1), `length`, `distance`
    (of the first block; block i of the run has `distance + i`) and `age_ms`. Distance counts the block
    itself: under LRU with tails evicted first, it is the smallest capacity at which the block is a hit. Age
    is the time since the last touch: the smallest sliding time to live at which it is a hit.
    Hits count requests from `first_measured` on; the ones before warm the cache.
    """

    trace: Trace
    request: Int32s
    owner: Int32s
    depth: Int32s
    length: Int32s
    distance: Int64s
    age_ms: Int64s
    first_measured: int = 0

    @property
    def measured_tokens(self) -> int:
        """Input tokens of the measured requests: what a token hit ratio divides by."""
        return int(self.trace.input_tokens[self.first_measured :].sum())

    @property
    def unlimited(self) -> Hits:
        """Hits of a cache that never evicts."""
        return self._totals(self._blocks_hit(None, None))

    def hits(self, capacity_blocks: int | None = None, ttl_ms: int | None = None) -> Hits:
        """Hits under LRU of this capacity and this sliding time to live; `None` lifts a limit.

        A hit is a block present at lookup with all its ancestors; its tokens are those of the input that it
        covers. With both limits, a block needs a distance and an age within them. That is the cache that has
        both: expired blocks are the oldest, so they never keep a fresh one out, dropped at once or not.
        """
        return self._totals(self._blocks_hit(capacity_blocks, ttl_ms))

    def hit_tokens_per_request(self, capacity_blocks: int | None = None) -> Int64s:
        """Hit tokens of every request, the ones that only warm the cache included."""
        tokens = self._tokens_hit(self._blocks_hit(capacity_blocks, None))
        per_request = np.zeros(self.trace.num_requests, dtype=np.int64)
        np.add.at(per_request, self.request, tokens)
        return per_request

    def hit_blocks_per_request(self, capacity_blocks: int | None = None) -> Int64s:
        """Hit blocks of every request, the ones that only warm the cache included."""
        per_request = np.zeros(self.trace.num_requests, dtype=np.int64)
        np.add.at(per_request, self.request, self._blocks_hit(capacity_blocks, None))
        return per_request

    def new_blocks_per_request(self) -> Int64s:
        """Blocks of every request that no earlier one had."""
        return self.trace.num_blocks - self.hit_blocks_per_request()

    def blocks_touched_again(self) -> int:
        """Distinct blocks that any later request touched; the others were stored for nothing.

        A block's second touch is the one whose run is still owned by the request that brought the block.
        """
        first_new = np.maximum(self.depth - 1, self.hit_blocks_per_request()[self.owner])
        return int(np.maximum(self.depth - 1 + self.length - first_new, 0).sum())

    def measured_runs(self) -> npt.NDArray[np.bool_]:
        """Which runs belong to measured requests."""
        return self.request >= self.first_measured

    def _blocks_hit(self, capacity_blocks: int | None, ttl_ms: int | None) -> Int64s:
        blocks = self.length.astype(np.int64)
        if capacity_blocks is not None:
            blocks = np.clip(capacity_blocks - self.distance + 1, 0, blocks)
        if ttl_ms is not None:
            blocks = np.where(self.age_ms <= ttl_ms, blocks, 0)
        return blocks

    def _tokens_hit(self, blocks: Int64s) -> Int64s:
        above = self.trace.tokens_to_depth(self.request, self.depth - 1)
        return self.trace.tokens_to_depth(self.request, self.depth - 1 + blocks) - above

    def _totals(self, blocks: Int64s) -> Hits:
        measured = self.measured_runs()
        return Hits(int(blocks[measured].sum()), int(self._tokens_hit(blocks)[measured].sum()))


def profile_reuse(trace: Trace, measure_from: float = 0.0) -> ReuseProfile:
    """One pass over a trace: the reuse distance and age of every block reference.

    `measure_from` is the share of the requests, in order of arrival, that only warm the cache.
    Source: exact for LRU with tails evicted before heads (vLLM's reverse free order, SGLang's leaf-first
    eviction); method in `docs/design.md`, kernel in `reuse/kernel.py`.
    """
    from warmset.reuse.kernel import find_runs

    request, owner, depth, length, distance = find_runs(trace.node_parent, trace.leaf, trace.num_blocks)
    return ReuseProfile(
        trace=trace,
        request=request,
        owner=owner,
        depth=depth,
        length=length,
        distance=distance,
        age_ms=trace.arrival_ms[request] - trace.arrival_ms[owner],
        first_measured=int(trace.num_requests * measure_from),
    )
