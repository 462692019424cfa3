"""Part of a trace: by time, by session, by kind of traffic, by model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from warmset.errors import Finding, InputError
from warmset.trace import kernel
from warmset.trace.builder import by_first_use, renumbered
from warmset.trace.forest import Provenance, Trace

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """What to keep; each condition that is given must hold."""

    from_ms: int = 0
    """Since the first arrival of the trace."""
    to_ms: int | None = None
    """The first moment that is left out."""
    num_sessions: int | None = None
    """So many sessions, drawn at random."""
    first_sessions: int | None = None
    """So many sessions, in order of their first request."""
    sessions: tuple[int, ...] = ()
    """Sessions by number."""
    kinds: tuple[str, ...] = ()
    models: tuple[str, ...] = ()


def slice_trace(trace: Trace, wanted: Slice, generator: np.random.Generator) -> Trace:
    """The requests that meet all conditions, over the blocks that they touch; it starts at time 0 again.

    A request whose previous one is left out has none. `generator` draws the sessions.

    Raises: InputError where a condition asks for what the trace does not know, or nothing is left.
    """
    since = trace.arrival_ms - trace.arrival_ms[0]
    kept = since >= wanted.from_ms
    if wanted.to_ms is not None:
        kept &= since < wanted.to_ms
    if wanted.kinds:
        kept &= _named(trace.kind, trace.kind_names, wanted.kinds, "kind")
    if wanted.models:
        kept &= _named(trace.model, trace.model_names, wanted.models, "model")
    if wanted.sessions or wanted.num_sessions is not None or wanted.first_sessions is not None:
        kept &= _of_sessions(trace, kept, wanted, generator)
    if not kept.any():
        raise InputError("no request meets all conditions: widen the slice")
    part = trimmed(trace.only(np.flatnonzero(kept)))
    findings = trace.findings
    num_out = trace.num_requests - part.num_requests
    if num_out:
        example = f"requests that the slice leaves out, of {trace.num_requests:,}"
        findings = (*findings, Finding("sliced", num_out, example))
    return replace(
        part,
        arrival_ms=part.arrival_ms - part.arrival_ms[0],
        provenance=_moved(trace, part),
        findings=findings,
    )


def _moved(trace: Trace, part: Trace) -> Provenance:
    epoch_ms = trace.provenance.epoch_ms
    if epoch_ms is not None:
        epoch_ms += int(part.arrival_ms[0])
    return replace(trace.provenance, epoch_ms=epoch_ms)


def trimmed(trace: Trace) -> Trace:
    """The same requests over only the blocks that they touch, blocks and sessions numbered by first use."""
    node_parent, leaf = renumbered(trace.node_parent, trace.leaf)
    return replace(
        trace,
        node_parent=node_parent,
        node_depth=kernel.depths(node_parent),
        leaf=leaf,
        session=None if trace.session is None else by_first_use(trace.session).astype(np.int32),
    )


def _named(
    column: npt.NDArray[np.int32] | None, names: tuple[str, ...], wanted: Sequence[str], what: str
) -> Bools:
    if column is None:
        raise InputError(f"--{what}: the trace does not tell its requests apart by {what}")
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise InputError(f"--{what} {unknown[0]}: the trace has {', '.join(names)}")
    return np.isin(column, [names.index(name) for name in wanted])


def _of_sessions(trace: Trace, kept: Bools, wanted: Slice, generator: np.random.Generator) -> Bools:
    if trace.session is None:
        raise InputError("--sessions, --first-sessions, --session: the trace does not name its sessions")
    present, first = np.unique(trace.session[kept], return_index=True)
    chosen = present[np.argsort(first)]
    if wanted.sessions:
        absent = np.setdiff1d(wanted.sessions, trace.session)
        if absent.size:
            raise InputError(f"--session {absent[0]}: sessions are numbered 0 to {int(trace.session.max())}")
        chosen = chosen[np.isin(chosen, wanted.sessions)]
    if wanted.first_sessions is not None:
        _check_count("--first-sessions", wanted.first_sessions, chosen.size)
        chosen = chosen[: wanted.first_sessions]
    if wanted.num_sessions is not None:
        _check_count("--sessions", wanted.num_sessions, chosen.size)
        chosen = generator.choice(chosen, wanted.num_sessions, replace=False)
    return np.isin(trace.session, chosen)


def _check_count(flag: str, num_wanted: int, num_present: int) -> None:
    if not 1 <= num_wanted <= num_present:
        raise InputError(f"{flag} {num_wanted}: the other conditions leave {num_present} sessions")
