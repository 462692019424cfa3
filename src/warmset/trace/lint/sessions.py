"""Sessions that are copies of others, or start as others do."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from warmset.trace.forest import Trace
from warmset.trace.lint.advice import MEND
from warmset.trace.lint.findings import LintFinding

Int64s = npt.NDArray[np.int64]

FORK_TURNS = 5
_LEAST_TURNS = 3
"""Shorter sessions may look alike by chance."""
_LEAST_SESSIONS = 5
_LOCAL_SHARE = 0.9


def session_rows(trace: Trace) -> list[Int64s]:
    """The requests of each session in order of arrival."""
    assert trace.session is not None
    order = np.argsort(trace.session, kind="stable")
    starts = np.flatnonzero(np.diff(trace.session[order])) + 1
    return np.split(order, starts)


def copied_sessions(trace: Trace, known: Int64s) -> list[list[int]]:
    """Groups of sessions with the same paths and lengths, turn by turn."""
    rows = session_rows(trace)
    return _alike(
        trace, known, [(number, each) for number, each in enumerate(rows) if len(each) >= _LEAST_TURNS]
    )


def forked_sessions(trace: Trace, known: Int64s) -> list[list[int]]:
    """Groups of sessions whose first five turns have the same paths and lengths; copies too."""
    rows = session_rows(trace)
    starts = [(number, each[:FORK_TURNS]) for number, each in enumerate(rows) if len(each) >= FORK_TURNS]
    return _alike(trace, known, starts)


def _alike(trace: Trace, known: Int64s, sessions: list[tuple[int, Int64s]]) -> list[list[int]]:
    """Sessions by what their turns look like.

    Where ids are shared by sessions, that is where paths end; where each session has its own ids, how long
    they are and how much of each was there before.
    """
    place = (trace.num_blocks, known) if has_own_ids(trace, known) else (trace.leaf,)
    columns = np.stack([*place, trace.input_tokens, trace.output_tokens]).astype(np.int64)
    groups: dict[bytes, list[int]] = defaultdict(list)
    for number, rows in sessions:
        groups[columns[:, rows].tobytes()].append(number)
    return [group for group in groups.values() if len(group) > 1]


def has_own_ids(trace: Trace, known: Int64s) -> bool:
    """Whether no session shares a block with another."""
    firsts = np.array([rows[0] for rows in session_rows(trace)])
    return not known[firsts].any()


def session_findings(trace: Trace, known: Int64s) -> Iterator[LintFinding]:
    """What is odd about sessions; nothing where the log names none."""
    if trace.session is None or not trace.has_blocks:
        return
    num_sessions = len(session_rows(trace))
    copies = copied_sessions(trace, known)
    if copies:
        redundant = sum(map(len, copies)) - len(copies)
        yield LintFinding(
            code="duplicate_sessions",
            count=redundant,
            num_total=num_sessions,
            counted="sessions",
            example=f"{len(copies)} groups; session {copies[0][1] + 1} repeats session {copies[0][0] + 1}",
            mend=MEND["duplicate_sessions"],
            confidence="likely" if has_own_ids(trace, known) else "certain",
        )
    forks = forked_sessions(trace, known)
    if forks:
        yield LintFinding(
            code="forks",
            count=sum(map(len, forks)),
            num_total=num_sessions,
            counted="sessions",
            example=f"{len(forks)} groups share their first {FORK_TURNS} turns, copies included",
            mend=MEND["forks"],
            confidence="likely" if has_own_ids(trace, known) else "certain",
        )
    yield from _local_ids(trace, known)


def _local_ids(trace: Trace, known: Int64s) -> Iterator[LintFinding]:
    """Ids 1, 2, 3, … of each session taken for the same blocks: all first prompts lie on one path."""
    firsts = np.sort(np.array([rows[0] for rows in session_rows(trace)]))
    lengths = trace.num_blocks[firsts]
    if firsts.size < _LEAST_SESSIONS or np.unique(lengths).size < _LEAST_SESSIONS - 1:
        return
    longest = np.maximum.accumulate(lengths)[:-1]
    on_path = int(np.count_nonzero(known[firsts[1:]] >= np.minimum(lengths[1:], longest)))
    if on_path >= _LOCAL_SHARE * (firsts.size - 1):
        yield LintFinding(
            code="local_ids",
            count=on_path,
            num_total=int(firsts.size),
            counted="sessions",
            example="first prompts of different lengths are all starts of one another",
            mend=MEND["local_ids"],
        )
