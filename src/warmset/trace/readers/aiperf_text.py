"""AIPerf and Dynamo rows with text instead of ids: `text_input` or `messages`, with `output_length`.

`timestamp` (ms, mostly from the start of the trace) or `delay` (ms after the turn before), `session_id`,
`tools`.
Source: ai-dynamo/aiperf, docs/benchmark-modes/trace-replay.md and its dataset models.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from warmset.trace.builder import TraceBuilder
from warmset.trace.options import ReadOptions
from warmset.trace.prompt import Prompt
from warmset.trace.readers.log_rows import Row, UnusableRowError, rows_of
from warmset.trace.readers.log_times import SMALLEST_EPOCH
from warmset.trace.readers.openai_answers import token_count
from warmset.trace.readers.openai_calls import check_roles
from warmset.trace.source import Head, Input
from warmset.trace.tally import Tally
from warmset.trace.text_reading import read_prompts

TITLE = "AIPerf rows with text"
_MARKS = {"output_length", "delay", "message_mode"}
_MAX_MS = 2**53
_EPOCH_MS = 10**11


class _Row(msgspec.Struct):
    session_id: str | int | None = None
    text_input: str | None = None
    messages: list[dict[str, Any]] | None = None
    tools: list[dict[str, Any]] | None = None
    message_mode: str | None = None
    timestamp: float | int | None = None
    delay: float | int | None = None


def matches(head: Head) -> bool:
    """Rows with `text_input`, or with messages beside a field or a small time that only a replay has."""
    return any(_is_row(row) for row in head.rows)


def _is_row(row: Row) -> bool:
    if "hash_ids" in row:
        return False
    if isinstance(row.get("text_input"), str):
        return True
    time = row.get("timestamp")
    is_relative = isinstance(time, int | float) and not isinstance(time, bool) and time < SMALLEST_EPOCH
    return isinstance(row.get("messages"), list) and (is_relative or not _MARKS.isdisjoint(row))


def read(inputs: Sequence[Input], options: ReadOptions, tally: Tally) -> TraceBuilder:
    """All requests of all files; where no row has a time, each session counts from its own start."""
    turns = _Turns()
    builder = read_prompts(turns.prompts, inputs, options, tally)
    builder.times_are_epoch = turns.first_ms >= _EPOCH_MS
    if turns.num_delayed:
        builder.assumptions.append(
            f"{turns.num_delayed:,} turns have a delay and no time: they are taken to arrive that long after "
            "the turn before, as if answers took no time."
        )
    if turns.have_times is False and turns.have_sessions:
        builder.session_gap_ms = options.session_gap_ms
    elif turns.have_times is False:
        builder.assumptions.append(
            "The log has neither times nor sessions: all requests are taken to arrive at once, in file order."
        )
    return builder


def prompts(source: Input, tally: Tally) -> Iterator[Prompt]:
    """The requests of one file."""
    yield from _Turns().prompts(source, tally)


class _Turn(NamedTuple):
    key: int
    arrival_ms: int


class _Turns:
    """Rows as turns of their sessions: what they go on from, and when they arrive."""

    def __init__(self) -> None:
        self.first_ms = 0
        self.have_times: bool | None = None
        """Whether the log has times, by its first row."""
        self.have_sessions = False
        self.num_delayed = 0
        self._num_turns = 0
        self._last: dict[str | int, _Turn] = {}

    def prompts(self, source: Input, tally: Tally) -> Iterator[Prompt]:
        for place, fields in rows_of(source, tally):
            try:
                prompt = self._prompt(msgspec.convert(fields, _Row), fields, place)
            except (UnusableRowError, msgspec.ValidationError) as error:
                tally.drop(place, str(error))
                continue
            yield prompt

    def _prompt(self, row: _Row, fields: Row, place: str) -> Prompt:
        if row.message_mode == "delta":
            raise UnusableRowError(
                "message_mode is delta: prompts hold answers that are not here; import the log of the replay"
            )
        check_roles(row.messages or ())
        before = None if row.session_id is None else self._last.get(row.session_id)
        arrival_ms = self._arrival_ms(row, before)
        self._num_turns += 1
        if row.session_id is not None:
            self._last[row.session_id] = _Turn(self._num_turns, arrival_ms)
        return Prompt(
            place=place,
            arrival_ms=arrival_ms,
            text=row.text_input,
            messages=tuple(row.messages or ()),
            tools=tuple(row.tools or ()),
            output_tokens=token_count(fields.get("output_length"), "output_length"),
            input_tokens=token_count(fields.get("input_length"), "input_length"),
            session=row.session_id,
            think_ms=round(row.delay) if row.delay is not None and before else None,
            key=self._num_turns,
            previous_key=before.key if before else None,
        )

    def _arrival_ms(self, row: _Row, before: _Turn | None) -> int:
        if self.have_times is None:
            self.have_times = row.timestamp is not None
            self.have_sessions = row.session_id is not None
            self.first_ms = round(row.timestamp or 0)
        if row.timestamp is not None:
            if not self.have_times:
                raise UnusableRowError("has a timestamp, and the first row has none: give all of them one")
            return _whole_ms(row.timestamp, "timestamp")
        if self.have_times and before is None:
            raise UnusableRowError("has no timestamp, and goes on from no turn that has one: give it one")
        if not self.have_times and self.have_sessions != (row.session_id is not None):
            raise UnusableRowError(
                "a session_id must be on all rows or on none where there are no timestamps"
            )
        self.num_delayed += row.delay is not None
        return (before.arrival_ms if before else 0) + _whole_ms(row.delay or 0, "delay")


def _whole_ms(value: float, field: str) -> int:
    if not 0 <= value <= _MAX_MS:
        raise UnusableRowError(f"{field} is {value}: it must lie between 0 and {_MAX_MS} ms")
    return round(value)
