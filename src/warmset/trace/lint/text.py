"""What breaks prefixes in a log with text, and what mending it is worth."""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from warmset.trace.builder import TraceBuilder
from warmset.trace.forest import UNKNOWN, Provenance, Trace
from warmset.trace.lint.advice import MEND
from warmset.trace.lint.cases import MODEL_CHANGE, Case, Cases, Sizes
from warmset.trace.lint.causes import UNKNOWN_CAUSE
from warmset.trace.lint.findings import (
    TEXT_DEFINITION,
    HitRate,
    LintFinding,
    LintReport,
    MissShare,
    by_worth,
)
from warmset.trace.lint.kept import KEPT_TITLE
from warmset.trace.lint.lineage import Lineages, Tracker
from warmset.trace.lint.paths import known_blocks
from warmset.trace.lint.view import View
from warmset.trace.lint.worth import Change, Encode, Int64s, Read, measure
from warmset.trace.prompt import Prompt

_ONE_MODEL_TITLE = "all requests sent to one model"


@dataclass(frozen=True, slots=True)
class _Baseline:
    trace: Trace
    lineages: Lineages
    known_tokens: Int64s
    """Of each prompt, in the order of the log: tokens in leading blocks that another had before."""
    input_tokens: Int64s

    @property
    def rate(self) -> HitRate:
        return HitRate(int(self.input_tokens.sum()), int(self.known_tokens.sum()))


def lint_text(
    read: Read,
    encode: Encode,
    block_tokens: int,
    name: str = "log",
    assumptions: tuple[str, ...] = (),
    extra: Callable[[Trace], Iterable[LintFinding]] = lambda _: (),
) -> LintReport:
    """Find what breaks prefixes, and read the log again with each cause mended, and with all.

    The log is read three times and never held: of each open conversation the last prompts are, and of the
    rest only numbers. `extra` looks at the trace that the prompts make, for what needs no text.

    Raises: `ValueError` where the log has no prompts.
    """
    base = _baseline(read(), encode, block_tokens, name)
    cases = _cases(base, read, block_tokens)
    found = cases.found()
    changes: dict[Hashable, Change] = {
        case.key: change for case in found if (change := _change(case)) is not None
    }
    rates = measure(base.lineages, read, encode, block_tokens, changes) if changes else None
    findings = [
        _finding(case, base, rates.alone.get(case.key) if rates else None)
        for case in found
        if case.key.code != UNKNOWN_CAUSE
    ]
    return LintReport(
        name=name,
        num_requests=base.trace.num_requests,
        baseline=TEXT_DEFINITION,
        before=base.rate,
        after_all=rates.together if rates else None,
        findings=by_worth([*findings, *extra(base.trace)]),
        misses=_misses(base.rate, rates.together if rates else None, cases),
        assumptions=assumptions,
        reads_text=True,
    )


def _baseline(prompts: Iterable[Prompt], encode: Encode, block_tokens: int, name: str) -> _Baseline:
    """Every prompt as it is, each model apart."""
    builder = TraceBuilder(block_tokens, ids_are_content=True)
    lineages = Lineages()
    scopes: dict[str | None, int] = {}
    for prompt in prompts:
        lineages.take(prompt)
        ids, tokens = encode(prompt)
        builder.add(
            arrival_ms=prompt.arrival_ms,
            input_tokens=tokens,
            output_tokens=_known(prompt.output_tokens),
            ids=ids,
            scope=scopes.setdefault(prompt.model, len(scopes)),
            session=prompt.session,
            kind=prompt.kind,
            model=prompt.model,
            key=prompt.key,
            previous_key=prompt.previous_key,
            duration_ms=_known(prompt.duration_ms),
            cached_tokens=_known(prompt.cached_tokens),
        )
    trace = builder.build(Provenance(name=name))
    rows = np.empty(trace.num_requests, dtype=np.int64)
    rows[np.argsort(lineages.arrivals_ms(), kind="stable")] = np.arange(trace.num_requests)
    known = trace.tokens_to_depth(np.arange(trace.num_requests), known_blocks(trace))
    return _Baseline(trace, lineages, known[rows], trace.input_tokens[rows])


def _known(value: int | None) -> int:
    return UNKNOWN if value is None else value


def _cases(base: _Baseline, read: Read, block_tokens: int) -> Cases:
    """Every prompt against the one that it goes on from."""
    cases = Cases(block_tokens)
    tracker = Tracker()
    for turn in base.lineages.in_order(read()):
        view = View(turn.prompt)
        pair = tracker.pair(turn.lineage, view)
        if pair is not None:
            tokens = int(base.input_tokens[turn.log_index])
            known = int(base.known_tokens[turn.log_index])
            cases.look_at(turn.log_index, pair, view, Sizes(tokens, known))
    return cases


def _change(case: Case) -> Change | None:
    if case.key.code == MODEL_CHANGE:
        return Change(one_model=True)
    if case.is_kept:
        return Change(kept_codes=frozenset({case.key.code}))
    return None if case.remedy is None else Change((case.remedy,))


def _finding(case: Case, base: _Baseline, after: HitRate | None) -> LintFinding:
    fix = None
    if after is not None:
        fix = _ONE_MODEL_TITLE if case.key.code == MODEL_CHANGE else KEPT_TITLE
        fix = fix if case.remedy is None else case.remedy.title
    return LintFinding(
        code=case.key.code,
        count=len(case.depths_tokens),
        num_total=base.trace.num_requests,
        example=case.example,
        mend=MEND[case.key.code],
        role=case.roles.most_common(1)[0][0],
        depth_tokens=case.depth_tokens,
        depth_share=case.depth_share,
        lost_tokens=case.lost_tokens,
        behind_requests=case.num_behind,
        between_sessions_requests=case.num_between,
        confidence="certain" if after is not None and not case.num_unsolved else "likely",
        fix=fix,
        before=None if after is None else base.rate,
        after=after,
    )


def _misses(before: HitRate, after_all: HitRate | None, cases: Cases) -> tuple[MissShare, ...]:
    """Misses by whether a fix saves them; what is behind breaks and not saved; and the rest, which is new."""
    missed = before.input_tokens - before.hit_tokens
    mended = 0
    if after_all is not None:
        mended = max(missed - (after_all.input_tokens - after_all.hit_tokens), 0)
    remaining = max(cases.lost_tokens - mended, 0)
    without_cause = min(remaining, cases.lost_without_cause_tokens)
    shares = {
        "new_text": missed - mended - remaining,
        "mended": mended,
        "unmended": remaining - without_cause,
        "no_cause": without_cause,
    }
    return tuple(MissShare(code, tokens) for code, tokens in shares.items() if tokens)
