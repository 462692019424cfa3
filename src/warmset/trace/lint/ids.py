"""What a trace shows without its text."""

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median_low

import numpy as np

from warmset.trace.forest import Trace
from warmset.trace.lint.advice import MEND
from warmset.trace.lint.cached import cached_findings
from warmset.trace.lint.clocks import block_size_findings, clock_findings
from warmset.trace.lint.findings import (
    IDS_DEFINITION,
    HitRate,
    LintFinding,
    LintReport,
    MissShare,
    by_worth,
)
from warmset.trace.lint.paths import known_blocks
from warmset.trace.lint.sessions import session_findings
from warmset.trace.lint.turns import Bools, Int64s, Turns, drops, lanes, shrinks, turns_of

_LEAST_LOST_TOKENS = 128
"""A prompt whose very end changes is no break."""
_KEPT_PATH = "each of these turns keeps the path of the turn before, as far as it is as long"
_CONTENT_IDS = "content_ids"


@dataclass(frozen=True, slots=True)
class _Breaks:
    """Turns that part from the one before, apart from compactions. Shape: one entry a pair."""

    turns: Turns
    is_compaction: Bools
    is_break: Bools
    lost_tokens: Int64s
    """Tokens of the turn before behind the place, that no other request had put into the cache."""


def lint_ids(trace: Trace) -> LintReport:
    """Everything that ids, lengths and times show."""
    known = known_blocks(trace)
    rows = np.arange(trace.num_requests)
    hits = trace.tokens_to_depth(rows, known)
    rate = HitRate(int(trace.input_tokens.sum()), int(hits.sum()))
    lane = lanes(trace)
    breaks = None if lane is None or not trace.has_blocks else _breaks(trace, lane, hits)
    findings = [*structure_findings(trace), *_shrinking(trace)]
    after_all = None
    if breaks is not None:
        findings += _break_findings(trace, breaks, rate)
        lost = int(breaks.lost_tokens[breaks.is_break].sum())
        after_all = HitRate(rate.input_tokens, rate.hit_tokens + lost) if lost else None
    if trace.has_blocks:
        findings += _no_reuse(trace, known, lane)
    return LintReport(
        name=trace.provenance.name,
        num_requests=trace.num_requests,
        baseline=IDS_DEFINITION,
        before=rate,
        after_all=after_all,
        findings=by_worth(findings),
        misses=_misses(trace, hits, breaks) if trace.has_blocks else (),
        assumptions=trace.provenance.assumptions,
        sees_turns=lane is not None,
    )


def structure_findings(trace: Trace) -> Iterator[LintFinding]:
    """What is said of sessions, times, sizes and cache counters, and needs no text."""
    known = known_blocks(trace)
    yield from session_findings(trace, known)
    yield from block_size_findings(trace)
    yield from (
        LintFinding(
            code=_CONTENT_IDS,
            count=finding.count,
            num_total=trace.num_requests,
            counted="ids",
            example=finding.first_example,
            mend=MEND[_CONTENT_IDS],
            confidence="certain",
        )
        for finding in trace.findings
        if finding.code == _CONTENT_IDS
    )
    yield from clock_findings(trace, known)
    lane = lanes(trace)
    if lane is not None:
        yield from cached_findings(trace, lane)


def _breaks(trace: Trace, lane: Int64s, hits: Int64s) -> _Breaks:
    turns = turns_of(trace, lane)
    before, after = turns.before, turns.after
    full_blocks = np.minimum(trace.input_tokens[before] // trace.block_tokens, trace.num_blocks[before])
    could_keep = trace.tokens_to_depth(after, np.minimum(full_blocks, trace.num_blocks[after]))
    lost = np.maximum(could_keep - hits[after], 0)
    is_compaction = shrinks(trace, turns)
    is_break = ~is_compaction & (lost >= max(_LEAST_LOST_TOKENS, trace.block_tokens))
    return _Breaks(turns, is_compaction, is_break, lost)


def _break_findings(trace: Trace, breaks: _Breaks, rate: HitRate) -> Iterator[LintFinding]:
    for code, chosen in (("prefix_break", breaks.is_break), ("compaction", breaks.is_compaction)):
        if not chosen.any():
            continue
        after = breaks.turns.after[chosen]
        depth = trace.tokens_to_depth(after, breaks.turns.kept_blocks[chosen])
        share = depth / np.maximum(trace.input_tokens[after], 1)
        lost = int(breaks.lost_tokens[chosen].sum()) if code == "prefix_break" else 0
        yield LintFinding(
            code=code,
            count=int(chosen.sum()),
            num_total=int(chosen.size),
            example=_first_place(trace, breaks.turns, chosen),
            mend=MEND[code],
            depth_tokens=median_low(depth.tolist()),
            depth_share=median_low(share.tolist()),
            lost_tokens=lost,
            fix=_KEPT_PATH if lost else None,
            before=rate if lost else None,
            after=HitRate(rate.input_tokens, rate.hit_tokens + lost) if lost else None,
        )


def _first_place(trace: Trace, turns: Turns, chosen: Bools) -> str:
    pair = int(np.flatnonzero(chosen)[0])
    before, after = int(turns.before[pair]), int(turns.after[pair])
    return (
        f"request {after + 1} keeps {int(turns.kept_blocks[pair]):,} of the "
        f"{int(trace.num_blocks[before]):,} blocks of request {before + 1}, and has "
        f"{int(trace.num_blocks[after]):,}"
    )


def _shrinking(trace: Trace) -> Iterator[LintFinding]:
    """Prompts shorter than the one before, and turns that drop what the one before had."""
    lane = lanes(trace)
    if lane is None:
        return
    turns = turns_of(trace, lane)
    shorter = trace.input_tokens[turns.after] < trace.input_tokens[turns.before]
    if shorter.any():
        most = float(
            (1 - trace.input_tokens[turns.after] / np.maximum(trace.input_tokens[turns.before], 1)).max()
        )
        yield LintFinding(
            code="shrinking_prompts",
            count=int(shorter.sum()),
            num_total=int(shorter.size),
            example=f"the largest step leaves out {100 * most:.0f} % of the prompt before",
            mend=MEND["shrinking_prompts"],
            confidence="certain",
        )
    if trace.session is None or not trace.has_blocks:
        return
    neighbours = turns_of(trace, trace.session.astype(np.int64))
    dropped = drops(trace, neighbours)
    if dropped.any():
        own = int(drops(trace, turns).sum())
        yield LintFinding(
            code="dropped_prefix",
            count=int(dropped.sum()),
            num_total=int(dropped.size),
            example=f"consecutive requests of a session; {own:,} where helpers are held against themselves",
            mend=MEND["dropped_prefix"],
            confidence="certain",
        )


def _no_reuse(trace: Trace, known: Int64s, lane: Int64s | None) -> Iterator[LintFinding]:
    """Requests that share at most their first block, where nothing says that they start a conversation."""
    alone = (known <= 1) & (trace.num_blocks > 1)
    if lane is not None:
        alone[np.unique(lane, return_index=True)[1]] = False
    if alone.any():
        tokens = int(trace.input_tokens[alone].sum())
        yield LintFinding(
            code="no_reuse",
            count=int(alone.sum()),
            num_total=trace.num_requests,
            example=f"{tokens:,} input tokens; one block at most is shared with an earlier request",
            mend=MEND["no_reuse"],
            confidence="certain",
        )


def _misses(trace: Trace, hits: Int64s, breaks: _Breaks | None) -> tuple[MissShare, ...]:
    """Misses of each request, by what kind of turn it is."""
    covered = trace.tokens_to_depth(np.arange(trace.num_requests), trace.num_blocks)
    missed = covered - hits
    shares = {"uncovered": int((trace.input_tokens - covered).sum())}
    if breaks is None:
        shares["new_text"] = int(missed.sum())
    else:
        after = breaks.turns.after
        lost = np.where(breaks.is_break, breaks.lost_tokens, 0)
        shares["dropped"] = int(missed[after[breaks.is_compaction]].sum())
        shares["prefix_break"] = int(lost.sum())
        shares["appended"] = int(missed[after[~breaks.is_compaction]].sum()) - shares["prefix_break"]
        shares["session_start"] = int(missed.sum()) - int(missed[after].sum())
    return tuple(MissShare(code, tokens) for code, tokens in shares.items() if tokens)
