"""Mooncake's schema as AIPerf and Dynamo use it: closed loops of sessions.

`input_length`, `output_length` (tokens), `hash_ids`, `session_id`; `timestamp` (ms) on first turns or on
none, `delay` (ms after the answer before) on later ones; also as `input_tokens`, `output_tokens`,
`created_time`, `delay_ms`. In Dynamo's files each row holds its whole prompt. In those of AIPerf's generator
a later turn holds new input only, which comes behind the turns and answers before it; `context_mode` says
which it is, or the ids show.
Source: ai-dynamo/dynamo, lib/data-gen/src/mooncake.rs and the mocker's trace formats; ai-dynamo/aiperf,
dataset/agentic_code_gen/README.md and dataset/loader/mooncake_trace.py.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from warmset.trace.builder import Name, TraceBuilder
from warmset.trace.forest import UNKNOWN
from warmset.trace.options import ReadOptions
from warmset.trace.readers.log_rows import UnusableRowError
from warmset.trace.readers.mooncake import MOONCAKE_BLOCK_TOKENS
from warmset.trace.readers.rows import (
    MAX_MS,
    MAX_TOKENS,
    Decoded,
    Int64s,
    OneEpoch,
    RowTaker,
    decode_lines,
    in_range,
    signed_ids,
)
from warmset.trace.source import Head, Input
from warmset.trace.tally import Tally

TITLE = "AIPerf and Dynamo rows with ids"
_LENGTHS = ("input_length", "input_tokens")
_TIMES = ("timestamp", "created_time")
_DELAYS = ("delay", "delay_ms")
_TEXTS = ("text_input", "messages", "payload")
_OTHERS = {"block_size", "chat_id", "chunk_hashes", "requests", "prompt", "input", "body", *_TEXTS}
"""What rows of other formats have beside the same fields."""
_TURNS_LOOKED_AT = 1000
_SESSION_BITS, _TOKEN_BITS = 32, 20


class _Row(msgspec.Struct):
    input_length: int | None = None
    input_tokens: int | None = None
    output_length: int | None = None
    output_tokens: int | None = None
    hash_ids: list[int | str] | None = None
    timestamp: float | int | None = None
    created_time: float | int | None = None
    delay: float | int | None = None
    delay_ms: float | int | None = None
    session_id: int | str | None = None
    context_mode: str | None = None
    text_input: Any = None
    messages: Any = None
    payload: Any = None

    def first_of(self, fields: Sequence[str]) -> Any:  # noqa: ANN401 - a number or nothing
        """The value of the first of some names for the same thing that the row has."""
        return next((value for field in fields if (value := getattr(self, field)) is not None), None)


@dataclass(slots=True)
class _Session:
    """The last turn of a session, for the next one."""

    number: int
    key: int
    arrival_ms: int
    context_tokens: int
    """Of the turns so far and their answers."""
    first_ids: Int64s
    """Ids of the full blocks of the first turn, where later turns are parts."""
    has_ids: bool = False


def matches(head: Head) -> bool:
    """Rows with lengths that lack a time or ids, or have a delay."""
    if not head.rows or not all(map(_OTHERS.isdisjoint, head.rows)):
        return False
    first = head.rows[0]
    has_delay = any(not row.keys().isdisjoint(_DELAYS) for row in head.rows)
    if first.keys() >= {"timestamp", "input_length", "hash_ids"}:
        return has_delay  # or else it is plain Mooncake
    return "input_length" in first or ("input_tokens" in first and (has_delay or "hash_ids" in first))


def read(inputs: Sequence[Input], options: ReadOptions, tally: Tally) -> TraceBuilder:
    """All rows; where none has a time, each session counts from its own start.

    Raises: TraceFormatError where the block size contradicts most rows, and another fits nearly all.
    """
    builder = TraceBuilder(options.block_tokens or MOONCAKE_BLOCK_TOKENS, tally)
    reader = _Reader(builder, are_parts=_later_turns_are_parts(inputs))
    for source in inputs:
        taker = RowTaker(source, builder, is_in_order=False)  # sessions may stand one after another
        for decoded in decode_lines(source, _Row, {}, tally):
            try:
                reader.take(decoded, taker)
            except UnusableRowError as error:
                taker.drop(decoded.number, str(error))
        taker.fit.refuse_implausible(builder.block_tokens)
        doubt = taker.fit.doubt(builder.block_tokens)
        if doubt is not None:
            tally.note("odd_block_size", doubt[1])
        taker.fit.note_mismatches(builder.block_tokens, tally)
    reader.finish(options.session_gap_ms)
    return builder


def _later_turns_are_parts(inputs: Sequence[Input]) -> bool:
    """Whether later turns hold new input only: as a row says, or as the first turns of the log show.

    A whole prompt starts with the id that its session starts with; without ids, it is at least as long as
    the prompt and the answer before it.
    """
    before: dict[Name, tuple[int | None, int]] = {}
    num_turns = num_parts = 0
    for row, ids in _first_turns(inputs):
        if row.context_mode is not None:
            return row.context_mode.startswith("deltas")
        if row.session_id is None:
            continue
        first_id = int(ids[0]) if ids.size else None
        input_tokens = row.first_of(_LENGTHS) or 0
        if row.session_id in before:
            old_id, least_tokens = before[row.session_id]
            is_part = input_tokens < least_tokens if None in {first_id, old_id} else first_id != old_id
            num_turns += 1
            num_parts += is_part
        context_tokens = input_tokens + (row.first_of(("output_length", "output_tokens")) or 0)
        before[row.session_id] = first_id, context_tokens
        if num_turns == _TURNS_LOOKED_AT:
            break
    return 2 * num_parts > num_turns


def _first_turns(inputs: Sequence[Input]) -> Iterator[tuple[_Row, Int64s]]:
    """Rows that can be read; the second reading counts those that cannot."""
    for source in inputs:
        for _, row, lists in decode_lines(source, _Row, {}, Tally()):
            try:
                yield row, signed_ids(row.hash_ids or (), lists)
            except UnusableRowError:
                continue


class _Reader:
    """Rows as turns of their sessions."""

    def __init__(self, builder: TraceBuilder, *, are_parts: bool) -> None:
        self._builder = builder
        self._are_parts = are_parts
        self._epoch = OneEpoch(builder)
        self._sessions: dict[Name, _Session] = {}
        self._have_times: bool | None = None
        self._have_sessions = False
        self._num_delayed = 0
        self._num_turns = 0

    def take(self, decoded: Decoded[_Row], taker: RowTaker) -> None:
        """One row.

        Raises: UnusableRowError where it cannot be used.
        """
        row, number = decoded.row, decoded.number
        input_tokens, output_tokens, delay_ms = _numbers(row)
        ids = signed_ids(row.hash_ids or (), decoded.lists)
        name = row.session_id
        before = None if name is None else self._sessions.get(name)
        arrival_ms = self._arrival_ms(row, before, delay_ms)
        if row.hash_ids is not None:
            taker.fit.add(number, ids.size, input_tokens)
        key = self._num_turns
        self._num_turns += 1
        at = before or _Session(len(self._sessions), key, arrival_ms, 0, ids[:0])
        if before and self._are_parts:
            input_tokens += before.context_tokens
            ids = self._whole_ids(before, input_tokens) if before.has_ids or ids.size else ids
        elif self._are_parts:
            at.first_ids = ids[: input_tokens // self._builder.block_tokens].copy()
        at.has_ids = at.has_ids or ids.size > 0
        if before and row.first_of(_TIMES) is None:
            self._num_delayed += 1
            taker.note("assumed_arrivals", number, "no time: it comes its delay after the turn before")
        taker.take(
            number,
            arrival_ms=arrival_ms,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            ids=ids,
            session=name,
            key=key,
            previous_key=before.key if before else None,
            think_ms=UNKNOWN if before is None or delay_ms is None else delay_ms,
        )
        if name is not None:
            at.key, at.arrival_ms = key, arrival_ms
            at.context_tokens = input_tokens + (output_tokens or 0)
            self._sessions[name] = at

    def finish(self, session_gap_ms: int) -> None:
        """Say what had to be assumed."""
        assumptions = self._builder.assumptions
        if self._num_delayed:
            assumptions.append(
                f"Turns with a delay and no time ({self._num_delayed:,} of them) are taken to arrive that "
                "long after the turn before, as if answers took no time."
            )
        if self._are_parts:
            assumptions.append(
                "Later turns hold new input only: a prompt is taken to be the turns and answers before it "
                "and the new input, and answers to be shared by no two sessions."
            )
        if self._have_times is False and self._have_sessions:
            self._builder.session_gap_ms = session_gap_ms
        elif self._have_times is False:
            assumptions.append(
                "The log has neither times nor sessions: all requests are taken to arrive at once, in file "
                "order."
            )

    def _arrival_ms(self, row: _Row, before: _Session | None, delay_ms: int | None) -> int:
        timestamp: float | None = row.first_of(_TIMES)
        if self._have_times is None:
            self._have_times = timestamp is not None
            self._have_sessions = row.session_id is not None
        if timestamp is not None:
            if not self._have_times:
                raise UnusableRowError("has a timestamp, and the first row has none: give all sessions one")
            in_range("timestamp", timestamp, MAX_MS)
            arrival_ms = round(timestamp)
            self._epoch.check("timestamp", arrival_ms)
            return arrival_ms
        if self._have_times and before is None:
            raise UnusableRowError("has no timestamp, and goes on from no turn that has one: give it one")
        if not self._have_times and self._have_sessions != (row.session_id is not None):
            raise UnusableRowError("session_id must be on all rows or on none where there are no timestamps")
        return (before.arrival_ms if before else 0) + (delay_ms or 0)

    def _whole_ids(self, session: _Session, input_tokens: int) -> Int64s:
        """Ids of a prompt of so many tokens: those that the session starts with, then its own, by position.

        A partial last block has an id of its own: the next turn fills it up, and then it is another block.
        """
        num_full, partial_tokens = divmod(input_tokens, self._builder.block_tokens)
        shared = session.first_ids[:num_full]
        own = np.arange(shared.size, num_full + (partial_tokens > 0), dtype=np.uint64)
        own |= np.uint64((session.number + 1) << _SESSION_BITS)
        own = _mixed(own)
        if partial_tokens and own.size:
            own[-1:] = _mixed(own[-1:] ^ np.uint64(input_tokens << _TOKEN_BITS))
        return np.concatenate((shared, own.view(np.int64)))


def _numbers(row: _Row) -> tuple[int, int | None, int | None]:
    """Input and output tokens and the delay in ms of a row, in range."""
    if row.first_of(_TEXTS) is not None:
        raise UnusableRowError("holds text, among rows of lengths: import the rows with text apart")
    input_tokens = row.first_of(_LENGTHS)
    if input_tokens is None:
        raise UnusableRowError("input_length is missing")
    in_range("input_length", input_tokens, MAX_TOKENS)
    output_tokens = row.first_of(("output_length", "output_tokens"))
    if output_tokens is not None:
        in_range("output_length", output_tokens, MAX_TOKENS)
    delay_ms = row.first_of(_DELAYS)
    if delay_ms is not None:
        in_range("delay", delay_ms, MAX_MS)
        delay_ms = round(delay_ms)
    return input_tokens, output_tokens, delay_ms


def _mixed(numbers: np.ndarray[Any, np.dtype[np.uint64]]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Distinct numbers as distinct numbers that look like hashes: the finalizer of splitmix64."""
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
