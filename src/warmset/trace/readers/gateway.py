"""OpenAI-format gateway logs with text: JSON lines, a JSON array, or CSV with the request as JSON.

The request body lies under `request`, `body`, `request_body`, `input` or any other name, or is the row
itself; the response under `response` or `output`. OpenAI Batch files and the exports of Portkey, Helicone and
OpenPipe are of this form.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from warmset.errors import TraceFormatError
from warmset.trace.builder import TraceBuilder
from warmset.trace.options import ReadOptions
from warmset.trace.prompt import Prompt
from warmset.trace.readers import aiperf_text, litellm, lmcache_agent, otel
from warmset.trace.readers.log_rows import Row, UnusableRowError, first_rows, rows_of
from warmset.trace.readers.log_times import Clock
from warmset.trace.readers.openai_answers import (
    Response,
    answer_of,
    duration_ms,
    has_failed,
    model_of,
    response_of,
    session_of,
    usage_of,
)
from warmset.trace.readers.openai_calls import parsed, request_of, to_prompts
from warmset.trace.source import Head, Input
from warmset.trace.tally import Tally
from warmset.trace.text_reading import read_prompts

TITLE = "OpenAI-format gateway log"
_TIME_FIELDS = (
    *(
        "timestamp",
        "@timestamp",
        "time",
        "ts",
        "datetime",
        "date",
        "timestamp_ms",
        "timestamp_us",
        "timestamp_ns",
    ),
    *("request_created_at", "request_time", "requesttime", "request_timestamp", "request_start_time"),
    *("start_time", "starttime", "started_at", "start", "received_at", "created_at", "createdat", "created"),
    *("event_time", "time_of_generation", "logged_at"),
)
_END_FIELDS = ("end_time", "endtime", "completed_at", "finished_at", "ended_at", "response_created_at")
_TIME_ENDINGS = ("time", "timestamp", "date", "_at", "_ts")
_URL_FIELDS = ("url", "path", "endpoint", "route", "request_path", "call_type", "object")
_OTHER_CALLS = (
    "embedding",
    "moderation",
    "rerank",
    "image",
    "audio",
    "speech",
    "transcription",
    "/files",
    "/models",
)
_FOREIGN = frozenset({"hash_ids", "parentUuid", "stage", "round_index", "traceSchema"})
"""Fields of block ids, and of the agents' own logs, which hold messages too."""
_OTHER_FORMATS = (otel, litellm, aiperf_text, lmcache_agent)


def matches(head: Head) -> bool:
    """Rows that hold the body of a request; and none of the formats that have marks of their own."""
    if any(other.matches(head) for other in _OTHER_FORMATS):
        return False
    rows = first_rows(head)
    if rows:
        return any(_is_call(row) for row in rows)
    if len(head.columns) > 1 and b'""messages""' in head.start:
        return True
    is_long = head.document is None and head.start.lstrip()[:1] in {b"[", b"{"}
    if not is_long or any(f'"{field}"'.encode() in head.start for field in _FOREIGN):
        return False
    return b'"messages"' in head.start or b'"prompt"' in head.start


def _is_call(row: Row) -> bool:
    if not _FOREIGN.isdisjoint(row):
        return False
    is_result = isinstance(row.get("response"), dict) and "custom_id" in row
    return is_result or request_of(row) is not None


def read(inputs: Sequence[Input], options: ReadOptions, tally: Tally) -> TraceBuilder:
    """All requests of all files.

    Raises: TraceFormatError where batch files without times stand among logs with times.
    """
    timeless = [source for source in inputs if _is_timeless(first_rows(source.head()))]
    if timeless and len(timeless) < len(inputs):
        raise TraceFormatError(
            f"{timeless[0].label}: is a batch without times, and other files have times: import them apart"
        )
    builder = read_prompts(prompts, inputs, options, tally)
    if timeless:
        builder.times_are_epoch = False
        builder.assumptions.append(
            "A batch file has no times: all its requests are taken to arrive at once, in file order."
        )
    return builder


def prompts(source: Input, tally: Tally) -> Iterator[Prompt]:
    """The requests of one file; calls that generate nothing, or failed, are counted and left out."""
    clock = Clock(tally)
    is_timeless = _is_timeless(first_rows(source.head()))
    for place, row in rows_of(source, tally):
        try:
            found = list(_prompts_of(row, place, None if is_timeless else clock, tally))
        except UnusableRowError as error:
            tally.drop(place, str(error))
            continue
        yield from found


def _is_timeless(rows: Sequence[Row]) -> bool:
    """Whether the file starts as a batch, whose requests have no time of their own."""
    return bool(rows) and all("custom_id" in row and _time_of(row, response_of(row)) is None for row in rows)


def _prompts_of(row: Row, place: str, clock: Clock | None, tally: Tally) -> Iterator[Prompt]:
    body = request_of(row)
    response = response_of(row)
    if _is_other_call(row, body):
        tally.note("other_calls", place)
        return
    if has_failed(row, response):
        tally.note("failed_calls", place)
        return
    request = parsed(body) if body is not None else None
    usage = usage_of(response.body.get("usage"), row.get("usage"), row)
    arrival_ms, taken_ms = _when(row, response, place, clock, tally)
    base = Prompt(
        place=place,
        arrival_ms=arrival_ms,
        answer=answer_of(response),
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        duration_ms=taken_ms,
        session=session_of(row, body, row.get("request") if isinstance(row.get("request"), dict) else None),
        model=model_of(body, row, response.body),
        key=_key(response),
        previous_key=request.previous_id if request else None,
    )
    yield from to_prompts(base, request, tally) if request else (base,)


def _key(response: Response) -> str | None:
    """What a later call of the Responses API can name; chat completions are never named again."""
    identity = response.body.get("id")
    return identity if isinstance(identity, str) and identity.startswith("resp") else None


def _is_other_call(row: Row, body: Row | None) -> bool:
    """Whether a call generates no text: embeddings, images and so on."""
    request = row.get("request")
    holders = (row, body or {}, request if isinstance(request, dict) else {})
    named = (str(holder[field]).lower() for holder in holders for field in _URL_FIELDS if holder.get(field))
    return any(word in name for name in named for word in _OTHER_CALLS)


def _when(
    row: Row, response: Response, place: str, clock: Clock | None, tally: Tally
) -> tuple[int, int | None]:
    """Arrival, and how long the answer took where that is known, in milliseconds."""
    if clock is None:
        return 0, None
    found = _time_of(row, response)
    if found is None:
        raise UnusableRowError("no time of arrival: give each row a timestamp, ISO 8601 or since 1970")
    arrival_ms = clock.milliseconds(found[1], found[0], place)
    taken_ms = duration_ms(row)
    ended = _named(row, _END_FIELDS)
    if taken_ms is None and ended is not None:
        taken_ms = clock.milliseconds(ended[1], ended[0], place) - arrival_ms
        if taken_ms < 0:
            tally.note("ends_before_start", place)
            taken_ms = None
    return arrival_ms, taken_ms


def _time_of(row: Row, response: Response) -> tuple[str, Any] | None:
    """Name and value of the time of arrival: of the row, of what it holds, or of the answer at last."""
    request = row.get("request")
    timing = row.get("timing")
    holders = [row, *(each for each in (request, timing, row.get("metadata")) if isinstance(each, dict))]
    for holder in holders:
        found = _named(holder, _TIME_FIELDS)
        if found is not None:
            return found
    ends = (*_END_FIELDS, "completion_start_time")
    for name, value in row.items():
        lowered = name.lower()
        if lowered.endswith(_TIME_ENDINGS) and lowered not in ends and _can_be_time(value):
            return name, value
    return _named(response.body, ("created", "created_at"))


def _named(row: Row, fields: Sequence[str]) -> tuple[str, Any] | None:
    by_name = {name.lower().replace(" ", "_"): name for name in row}
    for field in fields:
        name = by_name.get(field)
        if name is not None and _can_be_time(row[name]):
            return name, row[name]
    return None


def _can_be_time(value: Any) -> bool:  # noqa: ANN401 - whatever a log holds
    return isinstance(value, str | int | float) and not isinstance(value, bool) and value != ""
