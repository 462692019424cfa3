"""Several traces as one, on one clock."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from warmset.errors import Finding, InputError
from warmset.trace.builder import arranged
from warmset.trace.forest import NO_NODE, OPTIONAL_COLUMNS, UNKNOWN, Provenance, Trace
from warmset.trace.operations.scaling import MAX_NODES, REQUEST_COLUMNS

_NAMED = {"kind": "kind_names", "model": "model_names"}


def merge_traces(traces: Sequence[Trace], offsets_ms: Sequence[int] | None = None) -> Trace:
    """All requests of all traces, each over its own forest: blocks of different traces never match.

    Times follow the wall clock where every trace knows it; otherwise all first arrivals are at 0.
    `offsets_ms`, the first arrival of each trace, overrides both.

    Raises: InputError for fewer than two traces, block sizes that differ, a wrong number of offsets, or more
    blocks than a trace can have.
    """
    if len(traces) < 2:
        raise InputError("merge takes at least two traces")
    sizes = sorted({trace.block_tokens for trace in traces if trace.has_blocks})
    if len(sizes) > 1:
        raise InputError(
            f"blocks of {' and '.join(map(str, sizes))} tokens do not merge: "
            f"warmset trace reblock --block-tokens {np.lcm.reduce(sizes)} first"
        )
    if sum(trace.num_nodes for trace in traces) > MAX_NODES:
        raise InputError(f"the traces have over {MAX_NODES:,} distinct blocks together: slice them first")
    moves_ms, epoch_ms = _moves(traces, offsets_ms)
    names = {
        field: tuple(dict.fromkeys(name for trace in traces for name in getattr(trace, field)))
        for field in _NAMED.values()
    }
    columns = {
        name: np.concatenate(values)
        for name in REQUEST_COLUMNS
        if (values := _parts(traces, name, moves_ms, names))
    }
    return arranged(
        columns,
        np.concatenate(_parts(traces, "node_parent", moves_ms, names)).astype(np.int32),
        block_tokens=sizes[0] if sizes else traces[0].block_tokens,
        provenance=_provenance(traces, epoch_ms),
        kind_names=names["kind_names"],
        model_names=names["model_names"],
        findings=_findings(traces),
    )


def _moves(traces: Sequence[Trace], offsets_ms: Sequence[int] | None) -> tuple[list[int], int | None]:
    """What to add to the times of each trace for the common clock, and when that clock was 0."""
    if offsets_ms is not None:
        if len(offsets_ms) != len(traces):
            raise InputError(f"--offset: {len(offsets_ms)} given for {len(traces)} traces: give one for each")
        if min(offsets_ms) < 0:
            raise InputError("--offset: a trace cannot start before 0")
    known = [trace.provenance.epoch_ms for trace in traces if trace.provenance.epoch_ms is not None]
    if offsets_ms is not None or len(known) < len(traces):
        wanted = [0] * len(traces) if offsets_ms is None else offsets_ms
        return [at - int(trace.arrival_ms[0]) for at, trace in zip(wanted, traces, strict=True)], None
    first = min(known)
    return [epoch - first for epoch in known], first


def _parts(
    traces: Sequence[Trace], name: str, moves_ms: Sequence[int], names: dict[str, tuple[str, ...]]
) -> list[np.ndarray]:
    """One column of all traces, its numbers those of the merged one; nothing where no trace has it."""
    if name in OPTIONAL_COLUMNS and all(getattr(trace, name) is None for trace in traces):
        return []
    if name == "session" and any(trace.session is None for trace in traces):
        return []
    parts, before = [], 0
    for trace, move_ms in zip(traces, moves_ms, strict=True):
        values = getattr(trace, name)
        if values is None:
            values = np.full(trace.num_requests, UNKNOWN, dtype=np.int64)
        elif name == "arrival_ms":
            values = values + move_ms
        elif name in {"leaf", "node_parent", "previous", "session"}:
            values = np.where(values >= 0, values.astype(np.int64) + before, NO_NODE)
        elif name in _NAMED:
            own = getattr(trace, _NAMED[name])
            renamed = np.array([*map(names[_NAMED[name]].index, own), UNKNOWN], dtype=np.int64)
            values = renamed[values]
        parts.append(values)
        before += _numbered(trace, name)
    return parts


def _numbered(trace: Trace, name: str) -> int:
    """How many numbers a trace takes up in a column that counts something."""
    if name in {"leaf", "node_parent"}:
        return trace.num_nodes
    if name == "session":
        return int(trace.session.max()) + 1 if trace.session is not None else 0
    return trace.num_requests


def _provenance(traces: Sequence[Trace], epoch_ms: int | None) -> Provenance:
    def joined(field: str) -> str:
        return "; ".join(dict.fromkeys(filter(None, (getattr(trace.provenance, field) for trace in traces))))

    assumptions = dict.fromkeys(
        f"{trace.provenance.name}: {assumption}"
        for trace in traces
        for assumption in trace.provenance.assumptions
    )
    if epoch_ms is None:
        assumptions["The merged traces share no clock: when each starts was chosen, not measured."] = None
    return Provenance(
        name=" + ".join(trace.provenance.name for trace in traces),
        source=joined("source"),
        licence=joined("licence"),
        citation=joined("citation"),
        epoch_ms=epoch_ms,
        assumptions=tuple(assumptions),
    )


def _findings(traces: Sequence[Trace]) -> tuple[Finding, ...]:
    own = [
        replace(finding, first_example=f"{trace.provenance.name}: {finding.first_example}")
        for trace in traces
        for finding in trace.findings
    ]
    unnamed = sum(trace.num_requests for trace in traces if trace.session is None)
    if unnamed and any(trace.session is not None for trace in traces):
        own.append(Finding("unnamed_sessions", unnamed, "rows without a session; sessions are left out"))
    apart = "prefixes that traces have in common are not matched: import their logs together for that"
    return (*own, Finding("separate_forests", len(traces), apart))
