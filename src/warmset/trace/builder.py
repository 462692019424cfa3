"""`TraceBuilder`: requests in, in any order, one at a time; a `Trace` out.

Memory grows with distinct blocks and with requests, not with block references: each prompt is walked down the
forest as it comes, and only the vertex where it ends is kept.
"""

import hashlib
import reprlib
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from warmset.errors import Finding, TraceFormatError
from warmset.trace import kernel
from warmset.trace.forest import NO_NODE, OPTIONAL_COLUMNS, UNKNOWN, Provenance, Trace
from warmset.trace.tally import Tally

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Name = int | str
_Kind = TypeVar("_Kind", bound=np.generic)

_REQUIRED = ("arrival_ms", "input_tokens", "output_tokens", "leaf", "num_blocks")
_FIRST_ROOM = 1024
_NO_IDS = np.empty(0, dtype=np.int64)


class Added(NamedTuple):
    """Where a request ended up."""

    row: int
    known_blocks: int
    """Leading blocks of the prompt that an earlier request of the builder had."""


@dataclass(slots=True)
class TraceBuilder:
    """Collects requests of one trace.

    `block_tokens` is what one id covers. `ids_are_content` says that ids name what a block holds and not what
    stands before it as well; every id is chained either way, so this only silences the finding about it.
    """

    block_tokens: int
    tally: Tally = field(default_factory=Tally)
    ids_are_content: bool = False
    times_are_epoch: bool = False
    """Whether arrivals count from 1970: then the trace starts at 0, and its provenance says when that was."""
    session_gap_ms: int | None = None
    """For sessions without a common clock: arrivals count from a session's start; starts lie so far apart."""
    assumptions: list[str] = field(default_factory=list)
    """What the reader had to assume, one sentence each; they join the provenance."""
    _forest: "_Forest" = field(default_factory=lambda: _Forest())  # noqa: PLW0108 - defined below
    _columns: dict[str, "array[int]"] = field(
        default_factory=lambda: {name: array("q") for name in (*_REQUIRED, *OPTIONAL_COLUMNS)}
    )
    _names: dict[str, dict[Name, int]] = field(
        default_factory=lambda: {name: {} for name in ("session", "kind", "model")}
    )
    _row_of_key: dict[Name, int] = field(default_factory=dict)
    _previous_key: dict[int, Name] = field(default_factory=dict)

    @property
    def num_requests(self) -> int:
        """Requests taken so far."""
        return len(self._columns["leaf"])

    def add(
        self,
        *,
        arrival_ms: int,
        input_tokens: int,
        output_tokens: int,
        ids: Int64s | Sequence[int] | None = None,
        scope: int = 0,
        session: Name | None = None,
        kind: str | None = None,
        model: str | None = None,
        key: Name | None = None,
        previous_key: Name | None = None,
        think_ms: int = UNKNOWN,
        duration_ms: int = UNKNOWN,
        cached_tokens: int = UNKNOWN,
    ) -> Added:
        """Take one request.

        `ids` name its blocks, first to last, as signed 64-bit integers; none where the log has lengths only.
        Ids of different `scope` never match (WEKA: one per session). `key` names the request and
        `previous_key` the one whose conversation it goes on; both may come in any order. `think_ms` is the
        wait between that one's answer and this request, `duration_ms` the time the answer took,
        `cached_tokens` what a provider's cache says it had. What is unknown is `UNKNOWN`.
        """
        taken = _NO_IDS if ids is None else np.ascontiguousarray(ids, dtype=np.int64)
        leaf, known = self._forest.add(taken, scope)
        row = self.num_requests
        values = {
            "arrival_ms": arrival_ms,
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
            "leaf": leaf,
            "num_blocks": taken.size,
            "session": self._number("session", session),
            "previous": UNKNOWN,
            "kind": self._number("kind", kind),
            "model": self._number("model", model),
            "think_ms": think_ms,
            "duration_ms": duration_ms,
            "cached_tokens": cached_tokens,
        }
        for name, value in values.items():
            self._columns[name].append(value)
        if key is not None:
            self._row_of_key[key] = row
        if previous_key is not None:
            self._previous_key[row] = previous_key
        return Added(row, known)

    def absorb(self, part: "TraceBuilder") -> None:
        """All requests of another builder, after the ones that are here; ids of scope 0 match across both.

        Raises: TraceFormatError where the block sizes differ.
        """
        if part.block_tokens != self.block_tokens:
            raise TraceFormatError(
                f"blocks of {part.block_tokens} tokens among blocks of {self.block_tokens}: "
                "import the logs of each block size apart"
            )
        rows = self.num_requests
        column = {name: np.array(values, dtype=np.int64) for name, values in part._columns.items()}
        column["leaf"] = self._forest.absorb(part._forest, column["leaf"])
        for name, numbers in part._names.items():
            own = np.array([self._number(name, each) for each in numbers] or [UNKNOWN], dtype=np.int64)
            column[name] = np.where(column[name] == UNKNOWN, UNKNOWN, own[column[name]])
        for name, values in column.items():
            self._columns[name].frombytes(values.tobytes())
        self._row_of_key.update((key, rows + row) for key, row in part._row_of_key.items())
        self._previous_key.update((rows + row, key) for row, key in part._previous_key.items())
        self.assumptions += [each for each in part.assumptions if each not in self.assumptions]
        self.tally.absorb(part.tally)

    def build(self, provenance: Provenance) -> Trace:
        """Sort by arrival (ties keep the order of adding) and number blocks by first use in that order.

        Raises: TraceFormatError where too many rows were bad, `ValueError` where no request was taken.
        """
        self.tally.check()
        if not self.num_requests:
            raise ValueError("a trace of no requests")
        column = {name: np.array(values, dtype=np.int64) for name, values in self._columns.items()}
        column["previous"] = self._previous_rows()
        provenance = replace(provenance, assumptions=(*provenance.assumptions, *self.assumptions))
        provenance = self._on_one_clock(column["arrival_ms"], column["session"], provenance)
        findings = (*self.tally.findings(), *self._own_findings(column))
        return arranged(
            column,
            self._forest.parents(),
            block_tokens=self.block_tokens,
            provenance=provenance,
            kind_names=tuple(str(name) for name in self._names["kind"]),
            model_names=tuple(str(name) for name in self._names["model"]),
            findings=findings,
        )

    def _on_one_clock(self, arrival_ms: Int64s, session: Int64s, provenance: Provenance) -> Provenance:
        """Arrivals from the start of the trace, in place."""
        if self.session_gap_ms is not None:
            arrival_ms += session * self.session_gap_ms
            assumed = (
                "The log has no common clock: sessions are taken to start "
                f"{self.session_gap_ms / 1000:g} s apart, in file order."
            )
            return replace(provenance, assumptions=(*provenance.assumptions, assumed))
        if self.times_are_epoch:
            start_ms = int(arrival_ms.min())
            arrival_ms -= start_ms
            return replace(provenance, epoch_ms=start_ms)
        return provenance

    def _number(self, column: str, name: Name | None) -> int:
        if name is None:
            return UNKNOWN
        numbers = self._names[column]
        return numbers.setdefault(name, len(numbers))

    def _previous_rows(self) -> Int64s:
        previous = np.full(self.num_requests, UNKNOWN, dtype=np.int64)
        for row, key in self._previous_key.items():
            above = self._row_of_key.get(key, UNKNOWN)
            if above in {UNKNOWN, row}:
                self.tally.note(
                    "lost_previous", f"row {row + 1} goes on from {reprlib.repr(key)}, which is not there"
                )
            else:
                previous[row] = above
        return previous

    def _own_findings(self, column: dict[str, Int64s]) -> tuple[Finding, ...]:
        findings = []
        unnamed = int(np.count_nonzero(column["session"] == UNKNOWN))
        if 0 < unnamed < self.num_requests:
            findings.append(
                Finding("unnamed_sessions", unnamed, "rows without a session; sessions are left out")
            )
        refs = int(column["num_blocks"].sum())
        if not self.ids_are_content and self._forest.repeats_ids():
            example = "ids follow different predecessors; chained into prefix ids"
            findings.append(Finding("content_ids", refs, example))
        return tuple(findings)


def arranged(
    columns: Mapping[str, npt.NDArray[Any]],
    node_parent: Int32s,
    *,
    block_tokens: int,
    provenance: Provenance,
    kind_names: tuple[str, ...] = (),
    model_names: tuple[str, ...] = (),
    findings: tuple[Finding, ...] = (),
) -> Trace:
    """The trace of rows in any order: sorted by arrival (stable), blocks and sessions numbered by first use.

    `columns` has the columns of `Trace` with one entry a row; those that it lacks are unknown, and `previous`
    holds rows in the order given. Parents precede their children in `node_parent`; blocks that no row reaches
    are dropped.
    """
    order = np.argsort(columns["arrival_ms"], kind="stable")
    column = {name: values[order] for name, values in columns.items()}
    if "previous" in column:
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        has_previous = column["previous"] >= 0
        column["previous"][has_previous] = place[column["previous"][has_previous]]
    if "session" in column:
        column["session"] = by_first_use(column["session"])
    parent, leaf = renumbered(node_parent, column["leaf"].astype(np.int32))
    return Trace(
        provenance=provenance,
        block_tokens=block_tokens,
        node_parent=parent,
        node_depth=kernel.depths(parent),
        arrival_ms=column["arrival_ms"],
        input_tokens=column["input_tokens"],
        output_tokens=column["output_tokens"],
        leaf=leaf,
        num_blocks=column["num_blocks"].astype(np.int32),
        kind_names=kind_names,
        model_names=model_names,
        findings=findings,
        **_known_columns(column),
    )


def under_model(ids: Int64s, model: str | None) -> Int64s:
    """The ids as the model's own, which no other model's ids match: none can use the KV of another."""
    if model is None or not ids.size:
        return ids
    digest = hashlib.blake2b(model.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return ids ^ int.from_bytes(digest, "little", signed=True)


def by_first_use(numbers: npt.NDArray[np.integer]) -> Int64s:
    """The same groups, numbered in the order in which they come; `UNKNOWN` stays."""
    _, first, group = np.unique(numbers, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int64)
    rank[np.argsort(first)] = np.arange(first.size)
    if numbers.min() == UNKNOWN:  # its group sorts first, and takes no number
        rank = np.where(rank > rank[0], rank - 1, rank)
        rank[0] = UNKNOWN
    return rank[group]


def _known_columns(column: Mapping[str, npt.NDArray[np.integer]]) -> dict[str, Any]:
    """The optional columns that some row knows; sessions only where every row has one."""
    known: dict[str, Any] = {}
    for name, dtype in OPTIONAL_COLUMNS.items():
        values = column.get(name)
        if values is None:
            known[name] = None
            continue
        is_known = (values != UNKNOWN).all() if name == "session" else (values != UNKNOWN).any()
        known[name] = values.astype(dtype) if is_known else None
    return known


class _Forest:
    """Distinct blocks, grown by walking prompts down from the roots."""

    def __init__(self) -> None:
        self.num_nodes = 0
        self._num_scopes = 0
        self._parent = np.empty(_FIRST_ROOM, dtype=np.int32)
        self._id = np.empty(_FIRST_ROOM, dtype=np.int64)
        self._last_child = np.empty(_FIRST_ROOM, dtype=np.int32)
        self._slots = np.full(2 * _FIRST_ROOM, kernel.EMPTY, dtype=np.int32)

    def add(self, ids: Int64s, scope: int) -> tuple[int, int]:
        """The vertex where these ids end, and how many leading ids were there before."""
        if not ids.size:
            return NO_NODE, 0
        self._num_scopes = max(self._num_scopes, scope)
        above, taken, known = -1 - scope, 0, 0
        while taken < ids.size:
            if self.num_nodes == self._parent.size:
                self._grow()
            above, steps, self.num_nodes, old = kernel.walk(
                ids, taken, above, self.num_nodes, self._parent, self._id, self._last_child, self._slots
            )
            taken += steps
            known += old
        return above, known

    def absorb(self, part: "_Forest", leaf: Int64s) -> Int64s:
        """Enter another forest; where its leaves are in this one. Its own scopes stay its own."""
        parent, identity = part._parent[: part.num_nodes], part._id[: part.num_nodes]
        renamed = np.empty(part.num_nodes, dtype=np.int32)
        entered = 0
        while entered < part.num_nodes:
            if self.num_nodes == self._parent.size:
                self._grow()
            entered, self.num_nodes = kernel.graft(
                parent,
                identity,
                self._num_scopes,
                entered,
                renamed,
                self.num_nodes,
                self._parent,
                self._id,
                self._last_child,
                self._slots,
            )
        self._num_scopes += part._num_scopes
        moved = leaf.copy()
        moved[leaf >= 0] = renamed[leaf[leaf >= 0]]
        return moved

    def __getstate__(self) -> tuple[int, Int32s, Int64s]:
        """What another process needs of it."""
        return self._num_scopes, self._parent[: self.num_nodes], self._id[: self.num_nodes]

    def __setstate__(self, state: tuple[int, Int32s, Int64s]) -> None:
        """Columns of its own: those that come from a store of objects can only be read."""
        self._num_scopes, parent, identity = state
        self.num_nodes = parent.size
        room = max(_FIRST_ROOM, 1 << parent.size.bit_length())
        self._parent, self._id = _grown(parent, room), _grown(identity, room)
        self._last_child = np.full(room, kernel.EMPTY, dtype=np.int32)
        self._slots = np.full(2 * room, kernel.EMPTY, dtype=np.int32)
        kernel.fill_slots(self._slots, self._parent, self._id, self.num_nodes)

    def _grow(self) -> None:
        room = 2 * self._parent.size
        self._parent = _grown(self._parent, room)
        self._id = _grown(self._id, room)
        self._last_child = _grown(self._last_child, room)
        self._slots = np.full(2 * room, kernel.EMPTY, dtype=np.int32)
        kernel.fill_slots(self._slots, self._parent, self._id, self.num_nodes)

    def parents(self) -> Int32s:
        """The vertex above each, or `NO_NODE`."""
        return np.maximum(self._parent[: self.num_nodes], NO_NODE)

    def repeats_ids(self) -> bool:
        """Whether some id stands at two places of the forest: then it names content and not a prefix."""
        ids = self._id[: self.num_nodes]
        scope = kernel.scopes(self._parent[: self.num_nodes])
        if not scope.any():
            ids = np.sort(ids)
            return bool(np.any(ids[1:] == ids[:-1]))
        order = np.lexsort((ids, scope))
        ids, scope = ids[order], scope[order]
        return bool(np.any((ids[1:] == ids[:-1]) & (scope[1:] == scope[:-1])))


def _grown(column: npt.NDArray[_Kind], room: int) -> npt.NDArray[_Kind]:
    bigger = np.empty(room, dtype=column.dtype)
    bigger[: column.size] = column
    return bigger


def renumbered(node_parent: Int32s, leaf: Int32s) -> tuple[Int32s, Int32s]:
    """The forest that these leaves reach, its vertices numbered by first use; and the leaves in it."""
    number = kernel.number_by_first_use(node_parent, leaf)
    is_used = number >= 0
    parent = np.empty(int(is_used.sum()), dtype=np.int32)
    above = node_parent[is_used]
    parent[number[is_used]] = np.where(above >= 0, number[above], NO_NODE)
    renamed = leaf.copy()  # NO_NODE stays as it is
    renamed[leaf >= 0] = number[leaf[leaf >= 0]]
    return parent, renamed
