"""Transcripts of agents: entries with sizes and counters, and no prompts. From them, what prompts share.

A model call says how long its prompt was; the entries on the path to it say what the prompt held, with an
estimate of how much of it. System prompt and tools are in no transcript: they are the scaffold, what of a
first prompt its entries do not account for. Each entry becomes a run of tokens, so that the runs of each
prompt add up to what usage says.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from warmset.trace.builder import TraceBuilder
from warmset.trace.forest import UNKNOWN
from warmset.trace.readers.spans import BlockCutter, ContentHash, ContentHasher, Layout, Span, laid_out

ASSUMPTIONS = (
    "Messages of a transcript share the tokens that usage counts in proportion to their characters.",
    (
        "A prompt that is shorter than the one before it, without a compaction, is taken to keep what the "
        "provider's cache had of it, or else what stood before the last turn."
    ),
)
"""What every trace rests on that is put together so."""
NO_ENTRY = -1
MAX_TOKENS = 2**40
_SAME_SCAFFOLD = 0.5
"""After a cut, a scaffold of at least this share of the one before is taken as measured anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A model call of a transcript."""

    key: str
    """The same for copies of one call in several files."""
    place: str
    arrival_ms: int
    end_ms: int
    """`UNKNOWN` where the log does not say when the call started; then its arrival is when it ended."""
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    lineage: str
    """Calls of one lineage share a scaffold, and may share history: agent, provider, model."""
    model: str
    session: str
    kind: str | None


@dataclass(slots=True, kw_only=True)
class Entry:
    """A line of a transcript."""

    parent_index: int = NO_ENTRY
    """The entry before it on its path, always an earlier one of the file."""
    content: ContentHash = 0
    estimated_tokens: int = 0
    """What it adds to later prompts; 0 where nothing. For an answer, what usage counts as output."""
    is_turn: bool = False
    """Whether a person or a program speaks, and so a turn starts."""
    is_cut: bool = False
    """Whether history before it is left out of prompts after it, from `kept_index` on excepted."""
    kept_index: int = NO_ENTRY
    time_ms: int = UNKNOWN
    call: Call | None = None


class _Laid(NamedTuple):
    """The prompt of a call."""

    layout: Layout
    scaffold_tokens: int
    turn_tokens: int
    """Tokens before its last turn."""


class _Length(NamedTuple):
    tokens: int
    is_known: bool


@dataclass(slots=True)
class _File:
    """One transcript while it is read."""

    entries: Sequence[Entry]
    report_tokens: int
    laid: dict[int, _Laid] = field(default_factory=dict)
    length: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Tokens that an entry was given in prompts of a lineage."""

    def call_above(self, index: int) -> int:
        """The nearest call before an entry on its path."""
        above = self.entries[index].parent_index
        while above != NO_ENTRY and self.entries[above].call is None:
            above = self.entries[above].parent_index
        return above

    def path_from(self, first_index: int, last_index: int) -> list[int]:
        """Entries of the path that ends at the last, from the first on; none where the first is not on it."""
        path = []
        while last_index >= first_index >= 0:
            path.append(last_index)
            if last_index == first_index:
                return path[::-1]
            last_index = self.entries[last_index].parent_index
        return []


class TranscriptTaker:
    """Calls of transcripts into the builder, each once; forks and copies are counted."""

    def __init__(self, builder: TraceBuilder, hasher: ContentHasher) -> None:
        self.builder = builder
        self.tally = builder.tally
        self._hasher = hasher
        self._cutter = BlockCutter(builder.block_tokens)
        self._seen: set[str] = set()
        self._scaffold_of: dict[str, int] = {}

    def take(self, entries: Sequence[Entry], report_tokens: int = UNKNOWN) -> None:
        """All calls of a file; `report_tokens` is the size of its scaffold, where the agent reported it."""
        file = _File(entries, report_tokens)
        for index, entry in enumerate(entries):
            if entry.call is None:
                continue
            above = file.call_above(index)
            file.laid[index] = laid = self._lay(file, index, above)
            if entry.call.key in self._seen:
                self.tally.note("copied_calls", f"{entry.call.place}: is in a file read before")
                continue
            self._seen.add(entry.call.key)
            self._add(entry.call, laid, None if above == NO_ENTRY else entries[above].call)

    def _add(self, call: Call, laid: _Laid, previous: Call | None) -> None:
        duration_ms = think_ms = UNKNOWN
        if call.end_ms == UNKNOWN:
            self.tally.note("no_start_time", call.place)
        elif call.end_ms < call.arrival_ms:
            self.tally.note("times_going_back", f"{call.place}: the answer ends before it starts")
        else:
            duration_ms = call.end_ms - call.arrival_ms
        if previous is not None:
            end_ms = previous.arrival_ms if previous.end_ms == UNKNOWN else previous.end_ms
            if call.arrival_ms >= end_ms:
                think_ms = call.arrival_ms - end_ms
            else:
                self.tally.note("times_going_back", f"{call.place}: starts before the call above it ends")
        self.builder.add(
            arrival_ms=call.arrival_ms,
            input_tokens=call.input_tokens,
            output_tokens=call.output_tokens,
            ids=self._cutter.ids(laid.layout),
            session=call.session,
            kind=call.kind,
            model=call.model,
            key=call.key,
            previous_key=None if previous is None else previous.key,
            think_ms=think_ms,
            duration_ms=duration_ms,
            cached_tokens=call.cached_tokens,
        )

    # --- what a prompt holds ----------------------------------------------------------------------

    def _lay(self, file: _File, index: int, above: int) -> _Laid:
        """The prompt of a call: the one that it goes on from and what came since, or a new window."""
        call = _call(file.entries[index])
        since: list[int] = []
        walk = file.entries[index].parent_index
        while walk != NO_ENTRY:
            entry = file.entries[walk]
            if entry.is_cut:
                kept = file.path_from(entry.kept_index, entry.parent_index)
                if entry.kept_index != NO_ENTRY and not kept:
                    self.tally.note("lost_kept_entries", f"{call.place}: the entries that a cut keeps")
                return self._window(file, call, [walk, *kept, *since[::-1]], above)
            since.append(walk)
            if entry.call is not None and entry.call.lineage == call.lineage:
                return self._grown(file, call, since[::-1], walk)
            walk = entry.parent_index
        return self._window(file, call, since[::-1], above)

    def _grown(self, file: _File, call: Call, since: list[int], base_index: int) -> _Laid:
        base = file.laid[base_index]
        growth_tokens = call.input_tokens - base.layout.tokens
        if growth_tokens < 0:
            return self._shrunk(file, call, since, base)
        spans = self._spans(file, call, since, growth_tokens)
        turn_tokens = _turn_start(file, since, spans, base.layout.tokens, base.turn_tokens)
        return _Laid(laid_out(spans, base.layout), base.scaffold_tokens, turn_tokens)

    def _shrunk(self, file: _File, call: Call, since: list[int], base: _Laid) -> _Laid:
        """A prompt shorter than the one it goes on from: something in it was rewritten or left out.

        What stays is what the provider's cache had of it, or else what stood before the last turn.
        """
        self.tally.note(
            "shrinking_prompts", f"{call.place}: {call.input_tokens} tokens after {base.layout.tokens}"
        )
        kept = min(call.cached_tokens if call.cached_tokens > 0 else base.turn_tokens, call.input_tokens)
        rest = call.input_tokens - kept
        rewritten = max(0, rest - sum(each.tokens for each in _lengths(file, call, since)))
        spans = [
            Span(self._hasher.hash("rewritten", call.key), rewritten),
            *self._spans(file, call, since, rest - rewritten),
        ]
        return _Laid(laid_out(spans, base.layout, kept), min(base.scaffold_tokens, kept), kept + rewritten)

    def _window(self, file: _File, call: Call, entries: list[int], above: int) -> _Laid:
        """A prompt that shares no more than its scaffold with those before."""
        room = call.input_tokens - sum(each.tokens for each in _lengths(file, call, entries))
        if above == NO_ENTRY:
            scaffold_tokens = (
                room if room > 0 else min(self._scaffold_of.get(call.lineage, 0), call.input_tokens)
            )
        else:
            before = file.laid[above].scaffold_tokens
            is_measured = _SAME_SCAFFOLD * before <= room <= before
            scaffold_tokens = room if is_measured else min(before, call.input_tokens)
        self._scaffold_of[call.lineage] = scaffold_tokens
        shared = (
            scaffold_tokens if file.report_tokens == UNKNOWN else min(file.report_tokens, scaffold_tokens)
        )
        scaffold = (
            Span(self._hasher.hash("scaffold", call.lineage), shared),
            Span(self._hasher.hash("session", call.lineage, call.session), scaffold_tokens - shared),
        )
        spans = self._spans(file, call, entries, call.input_tokens - scaffold_tokens)
        turn_tokens = _turn_start(file, entries, spans, scaffold_tokens, scaffold_tokens)
        return _Laid(laid_out((*scaffold, *spans)), scaffold_tokens, turn_tokens)

    def _spans(self, file: _File, call: Call, indices: Sequence[int], tokens: int) -> list[Span]:
        """One span an entry, so that they come to `tokens`; what none accounts for is hidden at the end."""
        given = fitted(_lengths(file, call, indices), tokens)
        for index, length in zip(indices, given, strict=True):
            if length:
                file.length.setdefault(index, (call.lineage, length))
        spans = [
            Span(file.entries[index].content, length) for index, length in zip(indices, given, strict=True)
        ]
        return [*spans, Span(self._hasher.hash("hidden", call.key), tokens - sum(given))]


def _call(entry: Entry) -> Call:
    assert entry.call is not None
    return entry.call


def _lengths(file: _File, call: Call, indices: Iterable[int]) -> list[_Length]:
    """Tokens of entries: as given before, else an answer's output, else an estimate."""
    lengths = []
    for index in indices:
        entry = file.entries[index]
        lineage, given = file.length.get(index, ("", UNKNOWN))
        if given != UNKNOWN:
            lengths.append(_Length(given, lineage == call.lineage))
        else:
            lengths.append(_Length(entry.estimated_tokens, entry.call is not None))
    return lengths


def fitted(lengths: Sequence[_Length], tokens: int) -> list[int]:
    """Lengths that come to `tokens`: known ones stay, estimates share what is left in proportion.

    Where the known ones alone are too long, all shrink alike; where there is no estimate, a part is left.

    >>> fitted([_Length(148, True), _Length(19, False), _Length(15, False)], 233)
    [148, 47, 38]
    """
    known = sum(length.tokens for length in lengths if length.is_known)
    if known > tokens:
        return _in_proportion([length.tokens for length in lengths], tokens)
    shares = _in_proportion([0 if length.is_known else length.tokens for length in lengths], tokens - known)
    return [
        length.tokens if length.is_known else share for length, share in zip(lengths, shares, strict=True)
    ]


def _in_proportion(weights: Sequence[int], tokens: int) -> list[int]:
    """Whole shares that come to `tokens`; nothing where no weight is."""
    whole = sum(weights)
    if not whole:
        return [0] * len(weights)
    shares, reached, covered = [], 0, 0
    for weight in weights:
        reached += weight
        end = tokens * reached // whole
        shares.append(end - covered)
        covered = end
    return shares


def _turn_start(
    file: _File, indices: Sequence[int], spans: Sequence[Span], start_tokens: int, default_tokens: int
) -> int:
    """Tokens before the last turn that starts among entries laid from `start_tokens` on."""
    found, position, was_turn = default_tokens, start_tokens, False
    for index, span in zip(indices, spans, strict=False):
        is_turn = file.entries[index].is_turn
        if is_turn and not was_turn:
            found = position
        was_turn = is_turn
        position += span.tokens
    return found
