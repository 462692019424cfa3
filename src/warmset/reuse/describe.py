"""`describe`: everything that `warmset trace describe` says of a trace, as one tree of numbers.

Field by field, `definitions.py` says what each is. What a trace does not tell is `None`, never 0, and
`unknown` says why.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from warmset.errors import Finding
from warmset.reuse.definitions import DEFINITIONS
from warmset.reuse.kinds import sessions
from warmset.reuse.popularity import Popularity, block_use, popularity
from warmset.reuse.profile import Hits, ReuseProfile, profile_reuse
from warmset.reuse.working_set import WINDOWS_S, window_blocks
from warmset.trace import Trace
from warmset.trace.answers import Basis, answer_hits, find_answers
from warmset.trace.lint.sessions import copied_sessions
from warmset.trace.lint.turns import lanes
from warmset.trace.session_statistics import (
    ACTIVE_WINDOW_S,
    ContextDepth,
    RequestSpread,
    SessionActivity,
    ThinkTimes,
    TurnGaps,
    context_depth,
    session_activity,
    think_times,
    turn_gaps,
    turns_per_session,
)
from warmset.trace.statistics import (
    MS_PER_S,
    ArrivalStatistics,
    ReportedCache,
    TokenSpread,
    arrival_statistics,
    reported_cache,
    token_spread,
    weighted_quantiles,
)

SCHEMA = "warmset.trace-description/1"

_LENGTHS_ONLY = "the log has lengths only: what prompts share is not in it"
_NO_REUSE = "no block is used twice"
_ONE_TURN = "no session has a second request"
_NO_INPUT = "no input tokens to divide by"
REASONS: Mapping[str, str] = {
    "arrivals.requests_per_s": "all requests arrive at once",
    "arrivals.inter_arrival_cv_ratio": "fewer than two gaps between arrivals, or all requests arrive at once",
    "reuse": _LENGTHS_ONLY,
    "reuse.token_hit_ratio": _NO_INPUT,
    "reuse.reuse_times": _NO_REUSE,
    "popularity": _LENGTHS_ONLY,
    "popularity.top.reuse_ratio": _NO_REUSE,
    "popularity.zipf": "fewer than three distinct blocks",
    "popularity.zipf.r_squared_ratio": "all blocks have the same number of references",
    "popularity.zipf_body": "fewer than 102 blocks with two references",
    "popularity.zipf_body.r_squared_ratio": "all these blocks have the same number of references",
    "popularity.life_span": _NO_REUSE,
    "working_sets": _LENGTHS_ONLY,
    "sessions": "the log names no sessions, and without block ids none can be inferred",
    "sessions.duplicate_sessions": "only sessions that the log names, with block ids, are compared",
    "sessions.turn_gaps": _ONE_TURN,
    "sessions.think_times": "no request goes on after an earlier answer",
    "sessions.activity.dormant_time_ratio": "no session is open for any time",
    "reported_cache": "the log has no counter of cached tokens",
    "reported_cache.of_all.token_hit_ratio": _NO_INPUT,
    "reported_cache.of_kind.token_hit_ratio": _NO_INPUT,
    "generated_tokens": _LENGTHS_ONLY,
    "generated_tokens.token_hit_ratio": _NO_INPUT,
    "generated_tokens.with_partial_block_token_hit_ratio": _NO_INPUT,
    "generated_tokens.with_answer_token_hit_ratio": _NO_INPUT,
}
"""Why a field is `None` where it is, by its path."""

SessionBasis = Literal["named", "linked", "inferred"]
"""By the log's name of the session, by its link to the request before, or by prompts that go on."""


@dataclass(frozen=True, slots=True)
class ReuseTimes:
    """From a reference to a block back to the one before: quantiles over all references that reuse."""

    p50_s: float
    p80_s: float
    p90_s: float
    p99_s: float


@dataclass(frozen=True, slots=True)
class Reuse:
    """Hits of a cache that never evicts."""

    block_refs: int
    unique_blocks: int
    hit_blocks: int
    hit_tokens: int
    block_hit_ratio: float
    token_hit_ratio: float | None
    mean_of_request_block_hit_ratio: float
    """A mean of ratios: long and short prompts count alike. The other two are totals over totals."""
    requests_over_one_block_ratio: float
    reuse_times: ReuseTimes | None


@dataclass(frozen=True, slots=True)
class WorkingSet:
    """Distinct blocks in consecutive windows of one length."""

    window_s: int
    mean_blocks: float
    max_blocks: int
    num_windows: int


@dataclass(frozen=True, slots=True)
class SessionDescription:
    """Sessions that the log names, or that the forest tells."""

    basis: SessionBasis
    num_sessions: int
    duplicate_sessions: int | None
    turns: RequestSpread
    turn_gaps: TurnGaps | None
    think_times: ThinkTimes | None
    context: ContextDepth
    activity: SessionActivity


@dataclass(frozen=True, slots=True)
class GeneratedTokens:
    """Hits of a cache that never evicts, without and with what generation leaves in it."""

    basis: Basis
    num_continuations: int
    hit_tokens: int
    with_partial_block_tokens: int
    with_answer_tokens: int
    token_hit_ratio: float | None
    with_partial_block_token_hit_ratio: float | None
    with_answer_token_hit_ratio: float | None


@dataclass(frozen=True, slots=True)
class Description:
    """Everything, as it is printed and as it is written to JSON."""

    schema: str
    name: str
    source: str
    licence: str
    citation: str
    block_tokens: int
    num_requests: int
    input_tokens: int
    output_tokens: int
    arrivals: ArrivalStatistics
    input: TokenSpread
    output: TokenSpread
    reuse: Reuse | None
    popularity: Popularity | None
    working_sets: tuple[WorkingSet, ...] | None
    sessions: SessionDescription | None
    reported_cache: ReportedCache | None
    generated_tokens: GeneratedTokens | None
    assumptions: tuple[str, ...]
    findings: tuple[Finding, ...]
    unknown: dict[str, str] = field(default_factory=dict)
    """Why a field is `None`, by its path; entries of a list or a mapping share one."""
    definitions: dict[str, str] = field(default_factory=lambda: dict(DEFINITIONS))
    """What each field is, by its path."""


def describe(trace: Trace, active_window_s: float = ACTIVE_WINDOW_S) -> Description:
    """Lengths, arrivals, reuse, popularity, working sets and sessions of a trace.

    A session with a request within the last `active_window_s` is active.
    """
    profile = profile_reuse(trace) if trace.has_blocks else None
    provenance = trace.provenance
    described = Description(
        schema=SCHEMA,
        name=provenance.name,
        source=provenance.source,
        licence=provenance.licence,
        citation=provenance.citation,
        block_tokens=trace.block_tokens,
        num_requests=trace.num_requests,
        input_tokens=int(trace.input_tokens.sum()),
        output_tokens=int(trace.output_tokens.sum()),
        arrivals=arrival_statistics(trace),
        input=token_spread(trace.input_tokens),
        output=token_spread(trace.output_tokens),
        reuse=None if profile is None else _reuse(profile),
        popularity=None if profile is None else popularity(block_use(trace)),
        working_sets=None if profile is None else _working_sets(profile),
        sessions=_session_description(trace, profile, active_window_s),
        reported_cache=reported_cache(trace),
        generated_tokens=None if profile is None else _generated_tokens(profile),
        assumptions=provenance.assumptions,
        findings=trace.findings,
    )
    return replace(described, unknown={path: REASONS[path] for path in _unknown_paths(described)})


def _reuse(profile: ReuseProfile) -> Reuse:
    trace = profile.trace
    hit_blocks = profile.hit_blocks_per_request()
    has_blocks = trace.num_blocks > 0
    hits = Hits(int(hit_blocks.sum()), int(profile.hit_tokens_per_request().sum()))
    return Reuse(
        block_refs=trace.block_refs,
        unique_blocks=trace.block_refs - hits.blocks,
        hit_blocks=hits.blocks,
        hit_tokens=hits.tokens,
        block_hit_ratio=hits.blocks / trace.block_refs,
        token_hit_ratio=_share(hits.tokens, int(trace.input_tokens.sum())),
        mean_of_request_block_hit_ratio=float(
            (hit_blocks[has_blocks] / trace.num_blocks[has_blocks]).mean(),
        ),
        requests_over_one_block_ratio=float(np.count_nonzero(hit_blocks > 1) / trace.num_requests),
        reuse_times=_reuse_times(profile),
    )


def _reuse_times(profile: ReuseProfile) -> ReuseTimes | None:
    if not profile.age_ms.size:
        return None
    weights = profile.length.astype(np.int64)
    return ReuseTimes(*weighted_quantiles(profile.age_ms / MS_PER_S, weights, (0.5, 0.8, 0.9, 0.99)))


def _working_sets(profile: ReuseProfile) -> tuple[WorkingSet, ...]:
    return tuple(WorkingSet(window_s, *window_blocks(profile, MS_PER_S * window_s)) for window_s in WINDOWS_S)


def _session_description(
    trace: Trace, profile: ReuseProfile | None, active_window_s: float
) -> SessionDescription | None:
    found = _session_numbers(trace, profile)
    if found is None:
        return None
    basis, session = found
    duplicates = None
    if trace.session is not None and profile is not None:
        copies = copied_sessions(trace, profile.hit_blocks_per_request())
        duplicates = sum(map(len, copies)) - len(copies)
    return SessionDescription(
        basis=basis,
        num_sessions=int(np.unique(session).size),
        duplicate_sessions=duplicates,
        turns=turns_per_session(session),
        turn_gaps=turn_gaps(trace, session),
        think_times=think_times(trace, session),
        context=context_depth(trace, session),
        activity=session_activity(trace, session, active_window_s),
    )


def _session_numbers(
    trace: Trace, profile: ReuseProfile | None
) -> tuple[SessionBasis, npt.NDArray[np.integer]] | None:
    if trace.session is not None:
        return "named", trace.session
    linked = lanes(trace)
    if linked is not None:
        return "linked", linked
    return None if profile is None else ("inferred", sessions(profile).number)


def _generated_tokens(profile: ReuseProfile) -> GeneratedTokens:
    answers = find_answers(profile.trace)
    hits = answer_hits(profile.trace, answers, profile.hit_tokens_per_request())
    return GeneratedTokens(
        basis=answers.basis,
        num_continuations=answers.num_continuations,
        hit_tokens=hits.blocks_tokens,
        with_partial_block_tokens=hits.with_partial_block_tokens,
        with_answer_tokens=hits.with_answer_tokens,
        token_hit_ratio=_share(hits.blocks_tokens, hits.input_tokens),
        with_partial_block_token_hit_ratio=_share(hits.with_partial_block_tokens, hits.input_tokens),
        with_answer_token_hit_ratio=_share(hits.with_answer_tokens, hits.input_tokens),
    )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _unknown_paths(value: object, path: str = "") -> Iterator[str]:
    """Paths of what is `None` in a tree of dataclasses; once for all entries of a list or a mapping."""
    if value is None:
        yield path
    elif is_dataclass(value):
        for each in fields(value):
            yield from _unknown_paths(getattr(value, each.name), f"{path}.{each.name}".lstrip("."))
    elif isinstance(value, tuple | dict):
        entries = value.values() if isinstance(value, dict) else value
        yield from dict.fromkeys(inner for entry in entries for inner in _unknown_paths(entry, path))
