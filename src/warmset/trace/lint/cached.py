"""What cache counters of a log say about breaks, without text and without ids.

Source: openclaw.md section 4, "Signatures for a doctor" (derived there from reports of broken caching).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warmset.trace.forest import UNKNOWN, Trace
from warmset.trace.lint.advice import MEND
from warmset.trace.lint.findings import CACHED_DEFINITION, HitRate, LintFinding

Int64s = npt.NDArray[np.int64]

_LEAST_RUN = 3
_LEAST_SHARE_RUN = 4
_GROWN_FACTOR = 1.1
_HEALTHY_SHARE = 0.9
_SHARE_WIDTH = 0.02
_EXPIRED_SHARE = 0.1
_SHORTEST_TTL_MS = 300_000
"""Providers keep a prefix for 5 minutes at least; an engine keeps it until it needs the room."""
_LEAST_INPUT_TOKENS = 1024
"""Providers cache no shorter prompts."""
_FIX = "each of these requests finds the whole prompt before it in the cache"


@dataclass(frozen=True, slots=True)
class _Conversation:
    """Requests of one conversation with known counters, in order."""

    cached: list[int]
    input_tokens: list[int]
    arrival_ms: list[int]


Signature = Callable[[_Conversation], set[int]]
"""Which requests of a conversation bear it."""


def cached_findings(trace: Trace, lane: Int64s) -> Iterator[LintFinding]:
    """Signatures of breaks in cached tokens; a request bears one at most, the most particular."""
    if trace.cached_tokens is None:
        return
    known = trace.cached_tokens != UNKNOWN
    rate = HitRate(int(trace.input_tokens[known].sum()), int(trace.cached_tokens[known].sum()))
    borne: dict[str, list[int]] = {code: [] for code in _SIGNATURES}
    lost = dict.fromkeys(_SIGNATURES, 0)
    rows = np.flatnonzero(known)
    order = rows[np.argsort(lane[rows], kind="stable")]
    for members in np.split(order, np.flatnonzero(np.diff(lane[order])) + 1):
        conversation = _Conversation(
            trace.cached_tokens[members].tolist(),
            trace.input_tokens[members].tolist(),
            trace.arrival_ms[members].tolist(),
        )
        taken: set[int] = set()
        for code, signature in _SIGNATURES.items():
            found = signature(conversation) - taken
            taken |= found
            borne[code] += members[sorted(found)].tolist()
            lost[code] += sum(_lost_tokens(conversation, place) for place in found)
    for code, requests in borne.items():
        if requests:
            yield _finding(trace, code, requests, lost[code], rate)


def _finding(trace: Trace, code: str, requests: list[int], lost_tokens: int, rate: HitRate) -> LintFinding:
    assert trace.cached_tokens is not None
    depth = trace.cached_tokens[requests]
    first = requests[0]
    return LintFinding(
        code=code,
        count=len(requests),
        num_total=trace.num_requests,
        example=f"request {first + 1}: {int(trace.cached_tokens[first]):,} of "
        f"{int(trace.input_tokens[first]):,} tokens cached",
        mend=MEND[code],
        depth_tokens=int(np.median(depth)),
        depth_share=float(np.median(depth / np.maximum(trace.input_tokens[requests], 1))),
        lost_tokens=lost_tokens,
        fix=_FIX,
        baseline=CACHED_DEFINITION,
        before=rate,
        after=HitRate(rate.input_tokens, rate.hit_tokens + lost_tokens),
    )


def _lost_tokens(turns: _Conversation, place: int) -> int:
    could_be = min(turns.input_tokens[place - 1], turns.input_tokens[place])
    return max(could_be - turns.cached[place], 0)


def _never(turns: _Conversation) -> set[int]:
    """Nothing cached in any request of a conversation of several long ones."""
    if len(turns.cached) < _LEAST_RUN or any(turns.cached) or turns.input_tokens[0] < _LEAST_INPUT_TOKENS:
        return set()
    return set(range(1, len(turns.cached)))


def _expired(turns: _Conversation) -> set[int]:
    """Nearly nothing cached after a pause, where there was something before it."""
    return {
        place
        for place in range(1, len(turns.cached))
        if turns.arrival_ms[place] - turns.arrival_ms[place - 1] > _SHORTEST_TTL_MS
        and turns.cached[place] <= _EXPIRED_SHARE * turns.input_tokens[place - 1]
        and any(turns.cached[:place])
    }


def _constant(turns: _Conversation) -> set[int]:
    """The same number cached while the prompt grows."""
    return _runs(
        turns,
        _LEAST_RUN,
        lambda start, place: (
            turns.cached[place] == turns.cached[start] > 0
            and turns.input_tokens[place] > turns.input_tokens[place - 1]
        ),
        lambda start, last: turns.input_tokens[last] >= _GROWN_FACTOR * turns.input_tokens[start],
    )


def _alternates(turns: _Conversation) -> set[int]:
    """Two numbers in turn."""
    cached = turns.cached
    return _runs(
        turns,
        _LEAST_SHARE_RUN,
        lambda start, place: (
            cached[place] > 0
            and cached[place] != cached[place - 1]
            and (place - 2 < start or cached[place] == cached[place - 2])
        ),
        lambda start, _: cached[start] > 0,
    )


def _falls(turns: _Conversation) -> set[int]:
    """Less and less cached while the prompt does not shrink."""
    return _runs(
        turns,
        _LEAST_RUN,
        lambda _, place: (
            0 < turns.cached[place] < turns.cached[place - 1]
            and turns.input_tokens[place] >= turns.input_tokens[place - 1]
        ),
        lambda *_: True,
    )


def _share(turns: _Conversation) -> set[int]:
    """The same share cached while the prompt grows, and far from all of it."""

    def share(place: int) -> float:
        return turns.cached[place] / max(turns.input_tokens[place], 1)

    return _runs(
        turns,
        _LEAST_SHARE_RUN,
        lambda start, place: (
            0 < share(place) < _HEALTHY_SHARE
            and abs(share(place) - share(start)) <= _SHARE_WIDTH
            and turns.input_tokens[place] > turns.input_tokens[place - 1]
        ),
        lambda start, last: turns.input_tokens[last] >= _GROWN_FACTOR * turns.input_tokens[start],
    )


def _runs(
    turns: _Conversation, least: int, goes_on: Callable[[int, int], bool], counts: Callable[[int, int], bool]
) -> set[int]:
    """Requests in runs of at least so many, the first of each left out, where too little was cached."""
    found: set[int] = set()
    start = 0
    for place in range(1, len(turns.cached) + 1):
        if place < len(turns.cached) and goes_on(start, place):
            continue
        if place - start >= least and counts(start, place - 1):
            found |= {
                inner
                for inner in range(start + 1, place)
                if turns.cached[inner] < _HEALTHY_SHARE * turns.input_tokens[inner - 1]
            }
        start = place
    return found


_SIGNATURES: dict[str, Signature] = {
    "cached_never": _never,
    "cached_expired": _expired,
    "cached_constant": _constant,
    "cached_alternates": _alternates,
    "cached_falls": _falls,
    "cached_share": _share,
}
