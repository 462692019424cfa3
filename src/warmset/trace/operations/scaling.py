"""More load from the same traffic: faster, or by more sessions of the same kind."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from warmset.errors import InputError
from warmset.trace import kernel
from warmset.trace.builder import arranged
from warmset.trace.forest import OPTIONAL_COLUMNS, Trace

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

MAX_NODES = 2**31 - 1
_FASTEST = 1_000_000
_SLOWEST = 1e-6
_LATEST_MS = 2**53
"""Times beyond are not exact in floating point."""

REQUEST_COLUMNS = (
    "arrival_ms",
    "input_tokens",
    "output_tokens",
    "leaf",
    "num_blocks",
    *OPTIONAL_COLUMNS,
)


def speed_up(trace: Trace, factor: float, *, starts_only: bool = False) -> Trace:
    """The same requests `factor` times as fast: all gaps shrink, think times too.

    With `starts_only`, sessions start closer together but keep their own gaps and think times: people are not
    faster because there are more of them.

    Raises: InputError for a factor out of range, and for `starts_only` without sessions.
    """
    _check_factor("--rate", factor, _SLOWEST)
    if factor == 1:
        return trace
    if int(trace.arrival_ms[-1]) / factor > _LATEST_MS:
        raise InputError(f"--rate {factor:g}: the trace would last for over 250,000 years")
    columns = columns_of(trace)
    if starts_only:
        if trace.session is None:
            raise InputError("--keep-gaps: the trace does not name its sessions")
        start_ms = session_starts(trace.arrival_ms, trace.session)[trace.session]
        columns["arrival_ms"] = trace.arrival_ms - start_ms + _divided(start_ms, factor)
        done = f"Sessions start {factor:g} times as fast as in the log, and keep their own gaps."
    else:
        columns["arrival_ms"] = _divided(trace.arrival_ms, factor)
        if trace.think_ms is not None:
            is_known = trace.think_ms >= 0
            columns["think_ms"] = np.where(is_known, _divided(trace.think_ms, factor), trace.think_ms)
        done = (
            f"All requests come {factor:g} times as fast as in the log: pauses within a session, in which "
            "people think and tools work, shrink too."
        )
    return _arranged_like(trace, columns, trace.node_parent, done)


def clone_sessions(
    trace: Trace, session: Int32s, factor: float, generator: np.random.Generator, *, share: bool = True
) -> Trace:
    """`factor` times as many sessions over the same time: copies of what is there, with fresh blocks.

    Blocks that more than one session touches (a system prompt, tools) stay shared by copies too, as they do
    when a service grows; with `share` off, copies share nothing. A copy keeps the gaps of its session and
    starts at a moment drawn evenly from those at which it still ends within the trace. A fraction of `factor`
    copies that share of the sessions, drawn at random; below 1, that share of the sessions is kept.

    Shapes: `session` has a number from 0 for each request.

    Raises: InputError for a factor out of range, or more blocks than a trace can have.
    """
    _check_factor("--sessions", factor, 0)
    num_sessions = int(session.max()) + 1
    columns = columns_of(trace) | {"session": session.astype(np.int64)}
    if factor < 1:
        return _sampled(trace, columns, factor, generator)
    owner = kernel.node_owner(trace.node_parent, trace.leaf, session) if share else None
    cloning = _Cloning(trace, columns, owner)
    for copy in range(1, int(np.ceil(factor))):
        num_chosen = round(min(factor - copy, 1.0) * num_sessions)
        chosen = np.sort(generator.choice(num_sessions, num_chosen, replace=False))
        new_start_ms = generator.integers(trace.arrival_ms[0], cloning.latest_start_ms + 1)
        if chosen.size:
            cloning.add(chosen, new_start_ms, copy * num_sessions)
    blocks = (
        "share the blocks that several sessions of the log share, and have all others to themselves"
        if share
        else "have all their blocks to themselves"
    )
    done = (
        f"There are {factor:g} times as many sessions as in the log: "
        f"copies start at random moments, and {blocks}."
    )
    return _arranged_like(trace, cloning.columns(), cloning.node_parent(), done)


def _sampled(trace: Trace, columns: dict[str, Any], factor: float, generator: np.random.Generator) -> Trace:
    num_sessions = int(columns["session"].max()) + 1
    num_kept = max(round(factor * num_sessions), 1)
    chosen = generator.choice(num_sessions, num_kept, replace=False)
    rows = np.flatnonzero(np.isin(columns["session"], chosen))
    kept = {name: values[rows] for name, values in columns.items()}
    if "previous" in kept:
        kept["previous"] = _moved_rows(kept["previous"], rows, trace.num_requests, 0)
    done = f"{num_kept:,} of the {num_sessions:,} sessions of the log are kept, drawn at random."
    return _arranged_like(trace, kept, trace.node_parent, done)


class _Cloning:
    """The rows and blocks of a trace, and of the copies of its sessions so far."""

    def __init__(self, trace: Trace, columns: dict[str, Any], owner: Int32s | None) -> None:
        self._trace = trace
        self._original = columns
        self._owner = owner
        self._session = columns["session"]
        self._start_ms = session_starts(trace.arrival_ms, self._session)
        self._parts = [columns]
        self._parents = [trace.node_parent]
        self._num_nodes = trace.num_nodes
        self._num_rows = trace.num_requests

    @property
    def latest_start_ms(self) -> Int64s:
        """When each session must start at the latest to end within the trace."""
        end_ms = np.zeros(self._start_ms.size, dtype=np.int64)
        np.maximum.at(end_ms, self._session, self._trace.arrival_ms)
        latest_ms: Int64s = self._trace.arrival_ms[-1] - (end_ms - self._start_ms)
        return latest_ms

    def add(self, chosen: Int64s, new_start_ms: Int64s, first_session: int) -> None:
        """A copy of these sessions, each from its new start on, numbered from `first_session` on.

        Raises: InputError where a trace cannot have so many blocks.
        """
        trace = self._trace
        rows = np.flatnonzero(np.isin(self._session, chosen))
        nodes = _own_nodes(trace, rows, self._owner, chosen)
        if self._num_nodes + nodes.size > MAX_NODES:
            raise InputError(f"--sessions: the copies would have over {MAX_NODES:,} distinct blocks")
        renamed = np.arange(trace.num_nodes + 1, dtype=np.int64)
        renamed[-1] = -1  # the parent of a root, and the leaf of an empty prompt
        renamed[nodes] = self._num_nodes + np.arange(nodes.size)
        part = {name: values[rows] for name, values in self._original.items()}
        part["arrival_ms"] = part["arrival_ms"] + (new_start_ms - self._start_ms)[self._session[rows]]
        part["leaf"] = renamed[part["leaf"]]
        part["session"] = part["session"] + first_session
        if "previous" in part:
            part["previous"] = _moved_rows(part["previous"], rows, trace.num_requests, self._num_rows)
        self._parts.append(part)
        self._parents.append(renamed[trace.node_parent[nodes]].astype(np.int32))
        self._num_nodes += nodes.size
        self._num_rows += rows.size

    def columns(self) -> dict[str, Any]:
        """Columns of all rows, the original ones first."""
        return {name: np.concatenate([part[name] for part in self._parts]) for name in self._original}

    def node_parent(self) -> Int32s:
        """Parents of all blocks."""
        return np.concatenate(self._parents)


def session_starts(arrival_ms: Int64s, session: npt.NDArray[np.integer]) -> Int64s:
    """The first arrival of each session."""
    start_ms = np.full(int(session.max()) + 1, np.iinfo(np.int64).max, dtype=np.int64)
    np.minimum.at(start_ms, session, arrival_ms)
    return start_ms


def columns_of(trace: Trace) -> dict[str, Any]:
    """The columns of requests that the trace has, by name."""
    return {name: getattr(trace, name) for name in REQUEST_COLUMNS if getattr(trace, name) is not None}


def _own_nodes(trace: Trace, rows: Int64s, owner: Int32s | None, chosen: Int64s) -> Int64s:
    """The blocks that copies of these sessions get anew."""
    if owner is not None:
        return np.flatnonzero(np.isin(owner, chosen))
    return np.flatnonzero(kernel.number_by_first_use(trace.node_parent, trace.leaf[rows]) >= 0)


def _moved_rows(previous: Int64s, rows: Int64s, num_requests: int, first_row: int) -> Int64s:
    place = np.full(num_requests + 1, -1, dtype=np.int64)
    place[rows] = first_row + np.arange(rows.size)
    return place[previous]


def _divided(times_ms: Int64s, factor: float) -> Int64s:
    return np.round(times_ms / factor).astype(np.int64)


def _arranged_like(trace: Trace, columns: dict[str, Any], node_parent: Int32s, done: str) -> Trace:
    provenance = replace(trace.provenance, assumptions=(*trace.provenance.assumptions, done))
    return arranged(
        columns,
        node_parent,
        block_tokens=trace.block_tokens,
        provenance=provenance,
        kind_names=trace.kind_names,
        model_names=trace.model_names,
        findings=trace.findings,
    )


def _check_factor(flag: str, factor: float, least: float) -> None:
    if not (0 < factor <= _FASTEST and factor >= least):
        raise InputError(f"{flag} {factor:g}: it must be {_between(least)} and at most {_FASTEST:,}")


def _between(least: float) -> str:
    return f"at least {least:g}" if least else "above 0"
