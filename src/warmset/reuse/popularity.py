"""How uneven references to blocks are, and how long blocks stay in use.

Counts come from where requests end: whoever touches a vertex of the forest touches those above it too.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from warmset.trace import Trace
from warmset.trace.statistics import MS_PER_S, quantiles

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

TOP_PERCENTS = (1, 10)
BODY_RANK = 100
BODY_REFS = 2
"""The second fit leaves out the hottest ranks and the blocks used once."""
_FITTED_RANKS = 200
_LEAST_RANKS = 3


class BlockUse(NamedTuple):
    """References, first and last touch of each vertex; one that no request touches has 0 references."""

    refs: Int64s
    first_ms: Int64s
    last_ms: Int64s


@dataclass(frozen=True, slots=True)
class TopBlocks:
    """The most referenced blocks."""

    top_percent: int
    """Of the distinct blocks."""
    num_blocks: int
    refs_ratio: float
    reuse_ratio: float | None
    """`None` where no block is used twice."""


@dataclass(frozen=True, slots=True)
class ZipfFit:
    """References of the block at rank r taken as proportional to r ** -alpha."""

    alpha: float
    r_squared_ratio: float | None
    """Share of the variance of the logarithms that the fit explains; `None` where all counts are equal."""
    num_ranks: int
    """Blocks that the fit spans; it takes 200 of their ranks, evenly spaced in the logarithm."""


@dataclass(frozen=True, slots=True)
class LifeSpan:
    """From the first touch of a block to the last, of blocks used more than once."""

    p50_s: float
    p90_s: float


@dataclass(frozen=True, slots=True)
class Popularity:
    """How references spread over distinct blocks."""

    used_once_ratio: float
    top: tuple[TopBlocks, ...]
    zipf: ZipfFit | None
    zipf_body: ZipfFit | None
    life_span: LifeSpan | None


def block_use(trace: Trace) -> BlockUse:
    """What each vertex of the forest goes through."""
    return BlockUse(*_block_use(trace.node_parent, trace.leaf, trace.arrival_ms))


def popularity(use: BlockUse) -> Popularity:
    """Of the blocks that are used at all: there must be one."""
    is_used = use.refs > 0
    refs = np.sort(use.refs[is_used])[::-1]
    return Popularity(
        used_once_ratio=float(np.count_nonzero(refs == 1) / refs.size),
        top=tuple(_top_blocks(refs, percent) for percent in TOP_PERCENTS),
        zipf=_zipf_fit(refs, 1),
        zipf_body=_zipf_fit(refs[refs >= BODY_REFS], BODY_RANK),
        life_span=_life_span(use),
    )


def _top_blocks(refs: Int64s, percent: int) -> TopBlocks:
    num_blocks = round(refs.size * percent / 100)
    reuses = int(refs.sum()) - refs.size
    top_refs = int(refs[:num_blocks].sum())
    return TopBlocks(
        top_percent=percent,
        num_blocks=num_blocks,
        refs_ratio=top_refs / int(refs.sum()),
        reuse_ratio=(top_refs - num_blocks) / reuses if reuses else None,
    )


def _zipf_fit(refs: Int64s, first_rank: int) -> ZipfFit | None:
    """Least squares on the logarithms of rank and references; `None` with fewer than three ranks."""
    if refs.size < first_rank + _LEAST_RANKS - 1:
        return None
    ranks = np.unique(np.geomspace(first_rank, refs.size, _FITTED_RANKS).round().astype(np.int64))
    across, up = np.log(ranks), np.log(refs[ranks - 1])
    across_mean, up_mean = across.mean(), up.mean()
    num_ranks = int(refs.size) - first_rank + 1
    if up[0] == up[-1]:
        return ZipfFit(0.0, None, num_ranks)
    slope = ((across - across_mean) * (up - up_mean)).sum() / ((across - across_mean) ** 2).sum()
    misses = up - up_mean - slope * (across - across_mean)
    explained = 1 - (misses**2).sum() / ((up - up_mean) ** 2).sum()
    return ZipfFit(float(-slope), float(explained), num_ranks)


def _life_span(use: BlockUse) -> LifeSpan | None:
    reused = use.refs > 1
    if not reused.any():
        return None
    return LifeSpan(*quantiles((use.last_ms - use.first_ms)[reused] / MS_PER_S, (0.5, 0.9)))


@numba.njit(cache=True)
def _block_use(node_parent: Int32s, leaf: Int32s, arrival_ms: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Leaves first, then every vertex into its parent: a parent precedes its children in number."""
    refs = np.zeros(node_parent.size, dtype=np.int64)
    first_ms = np.full(node_parent.size, np.iinfo(np.int64).max, dtype=np.int64)
    last_ms = np.full(node_parent.size, np.iinfo(np.int64).min, dtype=np.int64)
    for request in range(leaf.size):
        node = leaf[request]
        if node >= 0:
            refs[node] += 1
            first_ms[node] = min(first_ms[node], arrival_ms[request])
            last_ms[node] = max(last_ms[node], arrival_ms[request])
    for node in range(node_parent.size - 1, -1, -1):
        above = node_parent[node]
        if above >= 0:
            refs[above] += refs[node]
            first_ms[above] = min(first_ms[above], first_ms[node])
            last_ms[above] = max(last_ms[above], last_ms[node])
    return refs, first_ms, last_ms
