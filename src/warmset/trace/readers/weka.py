"""Sessions of WEKA's kv-cache-tester: one JSON object a session, one a line or one a file.

A session has `id, block_size, hash_id_scope, requests`; a request `t` (s from the start of the session),
`in`, `out` (tokens) and `hash_ids`: prefix ids of full blocks, valid inside the session alone. A request of
type `subagent` is a marker that holds requests of its own. Their `t` counts from the marker's in the
published traces, and from the session's start in other exports of the format: a session in which the first
inner request of any marker would come before it counts from the marker.
Source: callanjfox/kv-cache-tester, `traces/`; AIPerf's reader for the second reading of `t`.
"""

import reprlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from warmset.errors import TraceFormatError
from warmset.trace.builder import TraceBuilder
from warmset.trace.forest import MAX_BLOCK_TOKENS, MAX_TOKENS, UNKNOWN
from warmset.trace.options import ReadOptions
from warmset.trace.readers.id_lists import IdLists, cut_out
from warmset.trace.source import NOT_JSON, Head, Input
from warmset.trace.tally import Tally

TITLE = "WEKA kv-cache-tester sessions"
_LOOK_AT_BYTES = 2**16
_MAX_SECONDS = 2**43
_MAIN, _SUBAGENT = "main", "sub-agent"
_MARKER = "subagent"


class _Request(msgspec.Struct):
    t: float
    type: str = ""
    model: str | None = None
    input_tokens: int = msgspec.field(default=UNKNOWN, name="in")
    output_tokens: int = msgspec.field(default=UNKNOWN, name="out")
    hash_ids: list[int] | None = None
    """After `cut_out`: the place of the ids, or nothing."""
    api_time: float | None = None
    think_time: float | None = None
    requests: list["_Request"] = []


class _Session(msgspec.Struct):
    id: str
    block_size: int
    requests: list[_Request]


class _Turn(NamedTuple):
    request: _Request
    seconds: float
    """From the start of the session."""
    lane: int
    """0 for the session itself, and a number for each sub-agent."""


def matches(head: Head) -> bool:
    """Sessions say that their ids are local, or hold requests with `t` and `in` beside a block size."""
    start = head.start[:_LOOK_AT_BYTES]
    keys = (b'"block_size"', b'"requests"', b'"hash_ids"', b'"t"', b'"in"')
    return b'"hash_id_scope"' in start or all(key in start for key in keys)


def read(inputs: Sequence[Input], options: ReadOptions, tally: Tally) -> TraceBuilder:
    """All sessions of all files, each starting `options.session_gap_ms` after the one before.

    Raises: TraceFormatError for a session that cannot be read, or whose block size is not that of the first.
    """
    reader: _Reader | None = None
    for source in inputs:
        for place, text in _sessions(source):
            cut = cut_out(text)
            session = _decoded(cut, place)
            if reader is None:
                _check_block_size(session, options, place)
                builder = TraceBuilder(session.block_size, tally, session_gap_ms=options.session_gap_ms)
                reader = _Reader(builder)
            reader.take(session, cut.lists, place)
    return reader.builder if reader else TraceBuilder(options.block_tokens or 1, tally)


def _sessions(source: Input) -> Iterator[tuple[str, bytes]]:
    """Place and text of each session: one a line, or the whole file where the first line is a start only."""
    is_first = True
    for number, text in source.lines():
        stripped = text.strip()
        if not stripped:
            continue
        if is_first and not stripped.endswith(b"}"):
            yield source.label, source.whole()
            return
        is_first = False
        yield f"{source.label}:{number}", stripped


def _decoded(cut: IdLists, place: str) -> _Session:
    try:
        return _SESSIONS.decode(cut.text)
    except NOT_JSON as error:
        raise TraceFormatError(
            f"{place}: the session cannot be read: {error}: take it out, or mend it"
        ) from error


_SESSIONS = msgspec.json.Decoder(_Session)


def _check_block_size(session: _Session, options: ReadOptions, place: str) -> None:
    if not 1 <= session.block_size <= MAX_BLOCK_TOKENS:
        raise TraceFormatError(
            f"{place}: block_size is {reprlib.repr(session.block_size)}: "
            f"it must be at least 1 and at most {MAX_BLOCK_TOKENS}"
        )
    if options.block_tokens not in {None, session.block_size}:
        raise TraceFormatError(
            f"{place}: block_size is {session.block_size}: leave --block-tokens {options.block_tokens} out, "
            "and reblock the trace"
        )


class _Reader:
    """Sessions into the builder."""

    def __init__(self, builder: TraceBuilder) -> None:
        self.builder = builder
        self.tally = builder.tally
        self._num_sessions = 0

    def take(self, session: _Session, lists: list[npt.NDArray[np.int64]], place: str) -> None:
        """All requests of one session."""
        if session.block_size != self.builder.block_tokens:
            raise TraceFormatError(
                f"{place}: block_size is {session.block_size}, and {self.builder.block_tokens} before: "
                "import the sessions of each block size apart"
            )
        number = self._num_sessions
        self._num_sessions += 1
        if not session.requests:
            self.tally.note("empty_sessions", place)
            return
        start = session.requests[0].t
        last_key: dict[int, str] = {}
        for count, turn in enumerate(self._turns(session)):
            self.tally.rows += 1
            wrong = _what_is_wrong(turn, start, len(lists))
            if wrong:
                self.tally.drop(f"{place}, request {count + 1}", wrong)
                continue
            request = turn.request
            key = f"{place}/{count}"
            ids = lists[request.hash_ids[0]] if request.hash_ids else None
            self._note_oddities(request, ids, place)
            self.builder.add(
                arrival_ms=round(1000 * (turn.seconds - start)),
                input_tokens=request.input_tokens,
                output_tokens=request.output_tokens,
                ids=ids,
                scope=number + 1,
                session=place,
                kind=_SUBAGENT if turn.lane else _MAIN,
                model=request.model,
                key=key,
                previous_key=last_key.get(turn.lane),
                think_ms=_milliseconds(request.think_time),
                duration_ms=_milliseconds(request.api_time),
            )
            last_key[turn.lane] = key

    def _turns(self, session: _Session) -> Iterator[_Turn]:
        """The requests of a session, of its sub-agents and of theirs, in file order."""
        markers = [request for request in session.requests if request.type == _MARKER]
        from_marker = _counts_from_marker(markers)
        if not from_marker:
            self.tally.note("absolute_subagent_times", f"session {session.id[:40]!r}")
        lanes = 0
        opened = [(iter(session.requests), 0.0, 0)]
        while opened:
            requests, offset, lane = opened[-1]
            request = next(requests, None)
            if request is None:
                opened.pop()
            elif request.type == _MARKER:
                lanes += 1
                opened.append((iter(request.requests), offset + request.t if from_marker else 0.0, lanes))
            else:
                yield _Turn(request, offset + request.t, lane)

    def _note_oddities(self, request: _Request, ids: npt.NDArray[np.int64] | None, place: str) -> None:
        if request.input_tokens == 0:
            self.tally.note("empty_prompts", place)
        if request.output_tokens == 0:
            self.tally.note("no_output", place)
        for field, seconds in (("api_time", request.api_time), ("think_time", request.think_time)):
            if seconds is not None and _milliseconds(seconds) == UNKNOWN:
                self.tally.note("odd_durations", f"{place}: {field} is {seconds:g} s: taken for unknown")
        expected = request.input_tokens // self.builder.block_tokens
        num_ids = 0 if ids is None else ids.size
        if num_ids != expected:
            code = "short_hash_ids" if num_ids < expected else "long_hash_ids"
            self.tally.note(code, f"{place}: {num_ids} ids for {request.input_tokens} tokens, not {expected}")


def _counts_from_marker(markers: list[_Request]) -> bool:
    """Whether inner times count from the marker: some first one comes before it, or none could tell."""
    told = [marker for marker in markers if marker.requests and marker.t > 0]
    return not told or any(marker.requests[0].t < marker.t for marker in told)


def _what_is_wrong(turn: _Turn, start: float, num_lists: int) -> str:
    request = turn.request
    if not start <= turn.seconds < _MAX_SECONDS:
        return f"t is {turn.seconds:g} s: it must not lie before the session's first request"
    for field, value in (("in", request.input_tokens), ("out", request.output_tokens)):
        if not 0 <= value <= MAX_TOKENS:
            return f"{field} is missing or {reprlib.repr(value)}: it must be a number of tokens"
    if request.hash_ids and not (len(request.hash_ids) == 1 and 0 <= request.hash_ids[0] < num_lists):
        return "hash_ids holds a number that does not fit a signed 64-bit integer"
    return ""


def _milliseconds(seconds: float | None) -> int:
    return UNKNOWN if seconds is None or not 0 <= seconds < _MAX_SECONDS else round(1000 * seconds)
