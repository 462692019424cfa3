"""Kinds of requests and the sessions they form, read off the prefix forest."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from warmset.reuse.profile import ReuseProfile
from warmset.reuse.working_set import step_levels, time_mean

Bools = npt.NDArray[np.bool_]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

LONG_PROMPT_TOKENS = 32_768


class RequestKinds(NamedTuple):
    """Masks over the requests. The first four exclude one another and cover all; the last overlaps."""

    first: Bools
    multi_turn: Bools
    shared_prefix: Bools
    repeated: Bools
    beyond_32k: Bools


class Sessions(NamedTuple):
    """A session number for each request, and whether the log named it or the forest told it."""

    number: Int32s
    named_in_log: bool

    @property
    def total(self) -> int:
        """Distinct sessions."""
        return int(np.unique(self.number).size)


class OpenSessions(NamedTuple):
    """Sessions with a request in the trailing window."""

    mean: float
    most: int


def request_kinds(profile: ReuseProfile) -> RequestKinds:
    """What each request does with prompts that came before it, whatever the capacity.

    A request continues the request that touched its deepest known block last if it knows all full blocks of
    that prompt. Blocks that every request after the first knows (a system prompt) tell nothing.
    """
    trace = profile.trace
    hit_blocks = profile.hit_blocks_per_request()
    telling = hit_blocks > _shared_root_blocks(hit_blocks)
    previous = _deepest_owner(profile)
    previous_full = np.where(previous >= 0, trace.input_tokens[previous] // trace.block_tokens, 0)
    repeated = telling & (hit_blocks == trace.num_blocks)
    multi_turn = telling & ~repeated & (hit_blocks >= previous_full)
    return RequestKinds(
        first=~telling,
        multi_turn=multi_turn,
        shared_prefix=telling & ~repeated & ~multi_turn,
        repeated=repeated,
        beyond_32k=trace.input_tokens > LONG_PROMPT_TOKENS,
    )


def sessions(profile: ReuseProfile) -> Sessions:
    """The sessions that the log names, or else the chains of prompts that continue one another."""
    trace = profile.trace
    if trace.session is not None:
        return Sessions(trace.session, named_in_log=True)
    kinds = request_kinds(profile)
    continues = (kinds.multi_turn | kinds.repeated).tolist()
    previous = _deepest_owner(profile).tolist()
    number: list[int] = []
    opened = 0
    for request, goes_on in enumerate(continues):
        if goes_on:
            number.append(number[previous[request]])
        else:
            number.append(opened)
            opened += 1
    return Sessions(np.array(number, dtype=np.int32), named_in_log=False)


def open_sessions(number: Int32s, arrival_ms: Int64s, window_ms: int) -> OpenSessions:
    """Sessions that had a request within the trailing window, over the time of the trace."""
    order = np.lexsort((arrival_ms, number))
    session, when = number[order], arrival_ms[order]
    same = session[1:] == session[:-1]
    gone = np.append(~same | (np.diff(when) > window_ms), True)
    back = np.append(True, gone[:-1])
    moments, level = step_levels(
        np.concatenate([when[back], when[gone] + window_ms + 1]),
        np.concatenate([np.ones(int(back.sum()), np.int64), -np.ones(int(gone.sum()), np.int64)]),
    )
    start, end = int(arrival_ms.min()), int(arrival_ms.max())
    settled = start + window_ms if end - start >= window_ms else start
    return OpenSessions(time_mean(moments, level, settled, end), int(level.max()))


def _shared_root_blocks(hit_blocks: Int64s) -> int:
    return int(hit_blocks[1:].min()) if hit_blocks.size > 1 else 0


def _deepest_owner(profile: ReuseProfile) -> Int64s:
    """The request that last touched the deepest known block of each request; -1 where nothing is known."""
    owner = np.full(profile.trace.num_requests, -1, dtype=np.int64)
    # Runs of one request go from the tail to the head, so the first one written last wins.
    owner[profile.request[::-1]] = profile.owner[::-1]
    return owner
