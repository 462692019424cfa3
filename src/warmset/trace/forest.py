"""The prefix forest: every distinct prefix block once, as a vertex that knows its parent."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from warmset.errors import Finding

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

NO_NODE = -1
"""Parent of a root, and leaf of a request without blocks."""

_SPARSE = 4
"""Ids that span more than so many times their number are sorted instead of looked up in a table."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a trace comes from, for the report."""

    name: str
    source: str = ""
    licence: str = ""
    citation: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    """A prefix forest and the requests that walk it, in order of arrival.

    Shapes: `node_parent`, `node_depth` have one entry a distinct block; a parent precedes its children and
    a root has depth 1. All other columns have one entry a request.
    Ties in arrival keep file order. `leaf` is the node of the last block, `NO_NODE` where a request has none.
    """

    provenance: Provenance
    block_tokens: int
    node_parent: Int32s
    node_depth: Int32s
    arrival_ms: Int64s
    input_tokens: Int64s
    output_tokens: Int64s
    leaf: Int32s
    num_blocks: Int32s
    session: Int32s | None = None
    """Number of the session of each request, where the log names sessions."""
    findings: tuple[Finding, ...] = ()

    @property
    def num_requests(self) -> int:
        """Requests in the trace."""
        return int(self.arrival_ms.size)

    @property
    def num_nodes(self) -> int:
        """Distinct prefix blocks."""
        return int(self.node_parent.size)

    @property
    def block_refs(self) -> int:
        """Blocks of all requests, repeats counted."""
        return int(self.num_blocks.sum(dtype=np.int64))

    @property
    def span_ms(self) -> int:
        """From the first arrival to the last."""
        return int(self.arrival_ms[-1] - self.arrival_ms[0])

    def tokens_to_depth(self, requests: npt.NDArray[np.integer], depth: npt.NDArray[np.integer]) -> Int64s:
        """Tokens of each request that its first `depth` blocks cover: never more than its input."""
        covered: Int64s = np.minimum(depth.astype(np.int64) * self.block_tokens, self.input_tokens[requests])
        return covered

    def only(self, requests: npt.NDArray[np.integer]) -> "Trace":
        """Some of the requests, in the given order of arrival, over the same forest."""
        return replace(
            self,
            arrival_ms=self.arrival_ms[requests],
            input_tokens=self.input_tokens[requests],
            output_tokens=self.output_tokens[requests],
            leaf=self.leaf[requests],
            num_blocks=self.num_blocks[requests],
            session=None if self.session is None else self.session[requests],
        )

    def sped_up(self, load_factor: float) -> "Trace":
        """The same requests, `load_factor` times as fast, in whole milliseconds; reuse ages shrink too."""
        if load_factor == 1:
            return self
        return replace(self, arrival_ms=np.round(self.arrival_ms / load_factor).astype(np.int64))


class RequestColumns(NamedTuple):
    """Rows as a reader found them, in file order; `ids` holds the block ids of all rows end to end."""

    arrival_ms: Int64s
    input_tokens: Int64s
    output_tokens: Int64s
    num_blocks: Int32s
    ids: Int64s
    session: Int32s | None = None


def build_trace(
    columns: RequestColumns,
    block_tokens: int,
    provenance: Provenance,
    findings: tuple[Finding, ...] = (),
) -> Trace:
    """Sort by arrival (stable), chain the ids and build the forest.

    A block's identity includes everything before it. Ids that already say so (one predecessor each) are taken
    as they are; ids of content are chained, (parent node, id) -> node, before anything is counted.
    """
    order = np.argsort(columns.arrival_ms, kind="stable")
    if np.any(order[1:] < order[:-1]):
        columns = _reorder(columns, order)
    starts = _starts(columns.num_blocks)
    first_of_request = starts[columns.num_blocks > 0]
    distinct, node = _number_by_first_use(columns.ids)
    if node.size:
        previous_node = np.empty_like(node)
        previous_node[1:] = node[:-1]
        previous_node[first_of_request] = NO_NODE
        if not _is_prefix_coded(node, previous_node, distinct):
            node, previous_node, distinct = _chain(columns.ids, first_of_request)
            findings = (*findings, _content_ids_finding(columns.ids.size))
    else:
        previous_node = node
    return _assemble(columns, block_tokens, provenance, findings, node, previous_node, distinct, starts)


def _assemble(
    columns: RequestColumns,
    block_tokens: int,
    provenance: Provenance,
    findings: tuple[Finding, ...],
    node: Int64s,
    previous_node: Int64s,
    distinct: int,
    starts: Int64s,
) -> Trace:
    depth_of_ref = np.arange(node.size, dtype=np.int64) - np.repeat(starts, columns.num_blocks) + 1
    parent = np.empty(distinct, dtype=np.int32)
    depth = np.empty(distinct, dtype=np.int32)
    parent[node] = previous_node
    depth[node] = depth_of_ref
    leaf = np.full(columns.num_blocks.size, NO_NODE, dtype=np.int32)
    holds_blocks = columns.num_blocks > 0
    leaf[holds_blocks] = node[(starts + columns.num_blocks - 1)[holds_blocks]]
    return Trace(
        provenance=provenance,
        block_tokens=block_tokens,
        node_parent=parent,
        node_depth=depth,
        arrival_ms=columns.arrival_ms,
        input_tokens=columns.input_tokens,
        output_tokens=columns.output_tokens,
        leaf=leaf,
        num_blocks=columns.num_blocks,
        session=columns.session,
        findings=findings,
    )


def _starts(num_blocks: Int32s) -> Int64s:
    return np.cumsum(num_blocks, dtype=np.int64) - num_blocks


def _reorder(columns: RequestColumns, order: npt.NDArray[np.intp]) -> RequestColumns:
    num_blocks = columns.num_blocks[order]
    moved_from = np.repeat(_starts(columns.num_blocks)[order], num_blocks)
    within = np.arange(columns.ids.size, dtype=np.int64) - np.repeat(_starts(num_blocks), num_blocks)
    return RequestColumns(
        columns.arrival_ms[order],
        columns.input_tokens[order],
        columns.output_tokens[order],
        num_blocks,
        columns.ids[moved_from + within],
        None if columns.session is None else columns.session[order],
    )


class _Numbering(NamedTuple):
    distinct: int
    node: Int64s


def _number_by_first_use(ids: Int64s) -> _Numbering:
    """Number ids by first appearance, so that a parent's node precedes its children's."""
    if not ids.size:
        return _Numbering(0, ids)
    dense = _dense(ids)
    position = np.arange(ids.size, dtype=np.int64)
    first = np.empty(int(dense.max()) + 1, dtype=np.int64)
    first[dense[::-1]] = position[::-1]  # of equal ids, the earliest is written last and stays
    first_of_ref = first[dense]
    rank = np.cumsum(first_of_ref == position) - 1
    return _Numbering(int(rank[-1]) + 1, rank[first_of_ref])


def _dense(ids: Int64s) -> Int64s:
    """Other names for the ids, small enough to index an array with."""
    least, most = int(ids.min()), int(ids.max())
    if most - least < _SPARSE * ids.size:
        return ids - least
    return np.unique(ids, return_inverse=True)[1].astype(np.int64, copy=False)


def _is_prefix_coded(node: Int64s, previous_node: Int64s, distinct: int) -> bool:
    """Whether every id always follows the same id (or always starts a request), and never itself."""
    predecessor = np.empty(distinct, dtype=np.int64)
    predecessor[node] = previous_node
    return bool(np.all(predecessor[node] == previous_node) and np.all(predecessor < np.arange(distinct)))


def _chain(ids: Int64s, first_of_request: Int64s) -> tuple[Int64s, Int64s, int]:
    starts_request = np.zeros(ids.size, dtype=np.bool_)
    starts_request[first_of_request] = True
    nodes: dict[tuple[int, int], int] = {}
    node = np.empty(ids.size, dtype=np.int64)
    parent = np.empty(ids.size, dtype=np.int64)
    current = NO_NODE
    for position, (identity, is_first) in enumerate(zip(ids.tolist(), starts_request.tolist(), strict=True)):
        above = NO_NODE if is_first else current
        current = nodes.setdefault((above, identity), len(nodes))
        node[position] = current
        parent[position] = above
    return node, parent, len(nodes)


def _content_ids_finding(num_ids: int) -> Finding:
    return Finding("content_ids", num_ids, "ids follow different predecessors; chained into prefix ids")
