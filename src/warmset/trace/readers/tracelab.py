"""TraceLab rounds: one JSON object a model call of a coding agent, with lengths and the provider's counters.

A round goes on from the prompt of the round before it in its session and from its answer, unless its prompt
is shorter: then it keeps what the provider's cache had (`prefix_tokens`). That counter says what a provider
held at that time, with its time to live, and otherwise decides nothing.
Source: uw-syfi/TraceLab, `round_trace.jsonl`.
"""

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from warmset.trace.builder import TraceBuilder
from warmset.trace.forest import UNKNOWN
from warmset.trace.options import DEFAULT_TEXT_BLOCK_TOKENS, ReadOptions
from warmset.trace.readers.log_rows import UnusableRowError
from warmset.trace.readers.log_times import Clock
from warmset.trace.readers.spans import BlockCutter, ContentHasher, Layout, Span, laid_out
from warmset.trace.readers.transcript import MAX_TOKENS
from warmset.trace.source import NOT_JSON, Head, Input
from warmset.trace.tally import Tally

TITLE = "TraceLab rounds"
_FIELDS = {"session_id", "round_index", "input_tokens_total", "newly_append_tokens"}
_INPUTS = {"user_message", "tool_result"}
_OUTPUTS = {"reasoning", "text", "tool_call"}


class _Event(msgspec.Struct):
    event_type: str
    timestamp: str | None = None


class _Round(msgspec.Struct):
    session_id: str
    round_index: int
    input_tokens_total: int
    output_tokens: int
    timing_events: list[_Event]
    prefix_tokens: int | None = None
    model: str | None = None


@dataclass(slots=True)
class _Session:
    """Where a session stands."""

    layout: Layout
    output_tokens: int
    round_index: int
    key: str
    end_ms: int
    model: str | None


class _Times(NamedTuple):
    start_ms: int
    end_ms: int
    is_whole: bool
    """Whether both are known; else one stands for the other."""


def matches(head: Head) -> bool:
    """Rows with a round of a session and what it appended."""
    return bool(head.rows) and set(head.rows[0]) >= _FIELDS


def read(inputs: Sequence[Input], options: ReadOptions, tally: Tally) -> TraceBuilder:
    """All rounds of all files."""
    builder = TraceBuilder(
        options.block_tokens or DEFAULT_TEXT_BLOCK_TOKENS, tally, ids_are_content=True, times_are_epoch=True
    )
    builder.assumptions += [
        (
            "Rounds have lengths only: each is taken to hold the prompt before it in its session, its "
            "answer, and what is new; one that is shorter keeps what the provider's cache had."
        ),
        "Nothing is taken to be shared between sessions.",
        "A round starts at its last input before the answer, and ends with the last part of the answer.",
    ]
    reader = _Reader(builder, ContentHasher(options.hash_key))
    for source in inputs:
        reader.read(source)
    return builder


class _Reader:
    """Rounds into the builder."""

    def __init__(self, builder: TraceBuilder, hasher: ContentHasher) -> None:
        self._builder = builder
        self._tally = builder.tally
        self._hasher = hasher
        self._cutter = BlockCutter(builder.block_tokens)
        self._sessions: dict[str, _Session] = {}

    def read(self, source: Input) -> None:
        """Take every line of a file."""
        decoder = msgspec.json.Decoder(_Round)
        clock = Clock(self._tally)
        for number, line in source.lines():
            place = f"{source.label}:{number}"
            if not line.strip():
                self._tally.note("blank_lines", place)
                continue
            self._tally.rows += 1
            try:
                self._take(_checked(decoder.decode(line)), clock, place)
            except (*NOT_JSON, UnusableRowError) as error:
                self._tally.drop(place, str(error))

    def _take(self, each: _Round, clock: Clock, place: str) -> None:
        times = self._times(each, clock, place)
        session = self._sessions.get(each.session_id)
        if session is not None and each.round_index == session.round_index:
            self._tally.note("copied_calls", f"{place}: round {each.round_index} is there twice")
            return
        if session is not None and each.round_index != session.round_index + 1:
            self._tally.note(
                "missing_rounds", f"{place}: round {each.round_index} after {session.round_index}"
            )
        key = f"{each.session_id}/{each.round_index}"
        layout = self._layout(each, session, key, place)
        cached = UNKNOWN if each.prefix_tokens is None else each.prefix_tokens
        think_ms = UNKNOWN
        if session is not None and times.start_ms >= session.end_ms:
            think_ms = times.start_ms - session.end_ms
        elif session is not None:
            self._tally.note("times_going_back", f"{place}: starts before the round before it ends")
        self._builder.add(
            arrival_ms=times.start_ms,
            input_tokens=each.input_tokens_total,
            output_tokens=each.output_tokens,
            ids=self._cutter.ids(layout),
            session=each.session_id,
            model=each.model,
            key=key,
            previous_key=None if session is None else session.key,
            think_ms=think_ms,
            duration_ms=times.end_ms - times.start_ms if times.is_whole else UNKNOWN,
            cached_tokens=cached,
        )
        self._sessions[each.session_id] = _Session(
            layout, each.output_tokens, each.round_index, key, times.end_ms, each.model
        )

    def _layout(self, each: _Round, session: _Session | None, key: str, place: str) -> Layout:
        new = self._hasher.hash("new", key)
        if session is None or session.model != each.model:
            return laid_out([Span(new, each.input_tokens_total)])
        growth_tokens = each.input_tokens_total - session.layout.tokens
        if growth_tokens >= 0:
            answer_tokens = min(session.output_tokens, growth_tokens)
            answer = Span(self._hasher.hash("answer", session.key), answer_tokens)
            return laid_out([answer, Span(new, growth_tokens - answer_tokens)], session.layout)
        self._tally.note(
            "shrinking_prompts", f"{place}: {each.input_tokens_total} tokens after {session.layout.tokens}"
        )
        kept_tokens = min(each.prefix_tokens or 0, each.input_tokens_total)
        return laid_out([Span(new, each.input_tokens_total - kept_tokens)], session.layout, kept_tokens)

    def _times(self, each: _Round, clock: Clock, place: str) -> _Times:
        """When the last input came before the first output, and when the last output did."""
        events = [
            (event.event_type, clock.milliseconds(event.timestamp, "timestamp", place))
            for event in each.timing_events
            if event.timestamp is not None
        ]
        outputs = [time_ms for kind, time_ms in events if kind in _OUTPUTS]
        first_output_ms = min(outputs, default=None)
        inputs = [
            time_ms
            for kind, time_ms in events
            if kind in _INPUTS and (first_output_ms is None or time_ms <= first_output_ms)
        ]
        if not inputs and not outputs:
            raise UnusableRowError("timing_events has neither an input nor an output with a timestamp")
        if not inputs:
            self._tally.note("no_start_time", f"{place}: its first output is taken for its start")
        if not outputs:
            self._tally.note("no_end_time", f"{place}: its last input is taken for its end")
        start_ms = max(inputs) if first_output_ms is None or inputs else first_output_ms
        return _Times(start_ms, max(outputs or inputs), is_whole=bool(inputs and outputs))


def _checked(each: _Round) -> _Round:
    """The round.

    Raises: UnusableRowError for a number that none can have.
    """
    for field in ("round_index", "input_tokens_total", "output_tokens", "prefix_tokens"):
        value = getattr(each, field)
        if value is not None and not 0 <= value <= MAX_TOKENS:
            raise UnusableRowError(
                f"{field} is {reprlib.repr(value)}: it must lie between 0 and {MAX_TOKENS}"
            )
    return each
