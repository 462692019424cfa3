"""Reading a log again with its breaks mended: what each fix is worth alone, and all together."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from warmset.trace.builder import TraceBuilder
from warmset.trace.forest import UNKNOWN, Provenance, Trace
from warmset.trace.lint.findings import HitRate
from warmset.trace.lint.kept import kept_history
from warmset.trace.lint.lineage import Lineages, Pair, Tracker, Turn
from warmset.trace.lint.paths import known_blocks
from warmset.trace.lint.remedy import Remedy, apply
from warmset.trace.lint.view import View
from warmset.trace.prompt import Prompt

Int64s = npt.NDArray[np.int64]
Ids = Sequence[int] | Int64s
Encode = Callable[[Prompt], tuple[Ids, int]]
"""Block ids of a prompt, first to last, and its tokens."""
Read = Callable[[], Iterable[Prompt]]
"""A fresh pass over the prompts of a log: each pass the same prompts in the same order."""
_ALL = "all"


@dataclass(frozen=True, slots=True)
class Change:
    """What is done to every prompt."""

    remedies: tuple[Remedy, ...] = ()
    kept_codes: frozenset[str] = frozenset()
    """Breaks of the history that do not happen."""
    one_model: bool = False
    """Whether all requests go to one model, and so share one cache."""


class Rates(NamedTuple):
    """Token hits with fixes."""

    alone: dict[Hashable, HitRate]
    together: HitRate


def measure(
    lineages: Lineages, read: Read, encode: Encode, block_tokens: int, changes: Mapping[Hashable, Change]
) -> Rates:
    """One more pass over the log; memory grows with the distinct blocks of each change."""
    together = _together(list(changes.values()))
    by_name: dict[Hashable, Change] = dict(changes)
    if len(changes) > 1:
        by_name[_ALL] = together
    runs = {name: _Run(name, change, block_tokens) for name, change in by_name.items()}
    for turn, pair, view in _pairs(lineages, read, needs_pairs=bool(together.kept_codes)):
        as_sent = encode(turn.prompt)
        for run in runs.values():
            run.take(pair, view, encode, as_sent)
    rates = {name: run.rate() for name, run in runs.items()}
    last = rates.pop(_ALL) if _ALL in rates else next(iter(rates.values()))
    return Rates(rates, last)


def _together(changes: list[Change]) -> Change:
    """All changes, in an order in which none undoes what another has learnt."""
    return Change(
        tuple(
            sorted(
                (each for change in changes for each in change.remedies), key=lambda each: each.order_index
            )
        ),
        frozenset().union(*(change.kept_codes for change in changes)),
        any(change.one_model for change in changes),
    )


def _pairs(lineages: Lineages, read: Read, *, needs_pairs: bool) -> Iterator[tuple[Turn, Pair | None, View]]:
    tracker = Tracker()
    for turn in lineages.in_order(read()):
        view = View(turn.prompt)
        yield turn, tracker.pair(turn.lineage, view) if needs_pairs else None, view


class _Run:
    """The log with one change."""

    def __init__(self, name: Hashable, change: Change, block_tokens: int) -> None:
        self._name = name
        self._change = change
        self._models: dict[str | None, int] = {}
        self._builder = TraceBuilder(block_tokens, ids_are_content=True)

    def take(self, pair: Pair | None, view: View, encode: Encode, as_sent: tuple[Ids, int]) -> None:
        """Add one prompt, changed."""
        prompt = view.prompt
        for remedy in self._change.remedies:
            prompt = apply(remedy, prompt)
        if self._change.kept_codes:
            before = None if pair is None or pair.between_sessions else pair.before.kept.get(self._name)
            prompt, view.kept[self._name] = kept_history(before, prompt, self._change.kept_codes)
        ids, tokens = as_sent if prompt is view.prompt else self._encoded(prompt, view, encode, as_sent[1])
        scope = 0 if self._change.one_model else self._models.setdefault(prompt.model, len(self._models))
        self._builder.add(
            arrival_ms=prompt.arrival_ms, input_tokens=tokens, output_tokens=UNKNOWN, ids=ids, scope=scope
        )

    @staticmethod
    def _encoded(prompt: Prompt, view: View, encode: Encode, sent_tokens: int) -> tuple[Ids, int]:
        """Ids of a changed prompt; where the server counted tokens, more or fewer as its text is longer."""
        ids, tokens = encode(prompt)
        if prompt.input_tokens is None or not view.num_characters:
            return ids, tokens
        grown_factor = View(prompt).num_characters / view.num_characters
        return ids, round(sent_tokens * grown_factor)

    def rate(self) -> HitRate:
        """Token hits of all prompts."""
        return rate_of(self._builder.build(Provenance(name=str(self._name))))


def rate_of(trace: Trace) -> HitRate:
    """Token hits of a trace at unlimited capacity."""
    hits = trace.tokens_to_depth(np.arange(trace.num_requests), known_blocks(trace))
    return HitRate(int(trace.input_tokens.sum()), int(hits.sum()))
