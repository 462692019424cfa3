"""Which request of a trace each goes on from, and what it keeps of it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warmset.trace.forest import UNKNOWN, Trace
from warmset.trace.lint.paths import shared_blocks

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_SHRUNK_SHARE = 0.9


@dataclass(frozen=True, slots=True)
class Turns:
    """Pairs of requests, one after the other in one conversation. Shape: one entry a pair."""

    before: Int64s
    after: Int64s
    kept_blocks: Int64s
    """Leading blocks that both have."""


def lanes(trace: Trace) -> Int64s | None:
    """A number for each request that those of one conversation share; `None` where the log names none.

    A conversation is what `previous` ties together, or else the requests of one kind in a session.
    """
    if trace.previous is not None:
        lane = np.arange(trace.num_requests, dtype=np.int64)
        for row, previous in enumerate(trace.previous.tolist()):
            if 0 <= previous < row:
                lane[row] = lane[previous]
        return lane
    if trace.session is None:
        return None
    session = trace.session.astype(np.int64)
    return session if trace.kind is None else session * (len(trace.kind_names) + 1) + trace.kind


def turns_of(trace: Trace, groups: Int64s) -> Turns:
    """Consecutive requests with the same number, in order of arrival."""
    order = np.argsort(groups, kind="stable")
    follows = (groups[order[1:]] == groups[order[:-1]]) & (groups[order[1:]] != UNKNOWN)
    before, after = order[:-1][follows], order[1:][follows]
    return Turns(before, after, shared_blocks(trace, before, after))


def shrinks(trace: Trace, turns: Turns) -> Bools:
    """Whether a prompt is more than 10 % shorter than the one before: a compaction, most likely."""
    shorter: Bools = trace.input_tokens[turns.after] < _SHRUNK_SHARE * trace.input_tokens[turns.before]
    return shorter


def drops(trace: Trace, turns: Turns) -> Bools:
    """Whether a prompt keeps less than 90 % of the blocks of the one before."""
    dropped: Bools = turns.kept_blocks < _SHRUNK_SHARE * trace.num_blocks[turns.before]
    return dropped
