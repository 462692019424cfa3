"""LiteLLM: rows of its spend logs (database, API or CSV) and its standard logging payloads.

Source: BerriAI/litellm, schema.prisma (LiteLLM_SpendLogs) and types/utils.py (StandardLoggingPayload).
"""

from collections.abc import Iterator, Sequence

from warmset.trace.builder import TraceBuilder
from warmset.trace.options import ReadOptions
from warmset.trace.prompt import Prompt
from warmset.trace.readers.log_rows import Row, UnusableRowError, decoded, first_rows, rows_of
from warmset.trace.readers.log_times import Clock
from warmset.trace.readers.openai_answers import (
    answer_of,
    has_failed,
    model_of,
    response_of,
    session_of,
    usage_of,
)
from warmset.trace.readers.openai_calls import Request, as_body, parsed, to_prompts
from warmset.trace.source import Head, Input
from warmset.trace.tally import Tally
from warmset.trace.text_reading import read_prompts

TITLE = "LiteLLM log"
_PAYLOADS = ("standard_logging_object", "standard_logging_payload")
_MARKS = {"startTime", "endTime", "call_type"}
_GENERATING = frozenset(
    {
        *("completion", "acompletion", "text_completion", "atext_completion", "responses", "aresponses"),
        *("anthropic_messages", "aanthropic_messages", "generate_content", "agenerate_content"),
        *("pass_through_endpoint", "allm_passthrough_route", "llm_passthrough_route"),
    }
)


def matches(head: Head) -> bool:
    """Rows or columns with the fields that every LiteLLM log has."""
    return set(head.columns) >= _MARKS or any(set(_payload(row)) >= _MARKS for row in first_rows(head))


def read(inputs: Sequence[Input], options: ReadOptions, tally: Tally) -> TraceBuilder:
    """All requests of all files."""
    return read_prompts(prompts, inputs, options, tally)


def prompts(source: Input, tally: Tally) -> Iterator[Prompt]:
    """The requests of one file that reached a model and generated text; the others are counted."""
    clock = Clock(tally)
    for place, row in rows_of(source, tally):
        try:
            found = list(_prompts_of(_payload(row), place, clock, tally))
        except UnusableRowError as error:
            tally.drop(place, str(error))
            continue
        yield from found


def _payload(row: Row) -> Row:
    """A logging payload out of what callbacks wrap it in."""
    for holder in (row, row.get("kwargs")):
        for name in _PAYLOADS:
            inner = holder.get(name) if isinstance(holder, dict) else None
            inner = decoded(inner) if isinstance(inner, str) else inner
            if isinstance(inner, dict):
                return inner
    return row


def _prompts_of(row: Row, place: str, clock: Clock, tally: Tally) -> Iterator[Prompt]:
    response = response_of(row)
    skipped = _why_skipped(row)
    if skipped or has_failed(row, response):
        tally.note(skipped or "failed_calls", place)
        return
    metadata = _object(row.get("metadata"))
    hidden = _object(row.get("hidden_params"))
    usage = usage_of(
        *(metadata.get("usage_object"), hidden.get("usage_object"), response.body.get("usage")),
        *(row.get("usage"), row, metadata.get("additional_usage_values")),
    )
    if "startTime" not in row:
        raise UnusableRowError("startTime is missing")
    arrival_ms = clock.milliseconds(row["startTime"], "startTime", place)
    ended_ms = clock.milliseconds(row["endTime"], "endTime", place) if row.get("endTime") else None
    base = Prompt(
        place=place,
        arrival_ms=arrival_ms,
        answer=answer_of(response),
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        duration_ms=None if ended_ms is None or ended_ms < arrival_ms else ended_ms - arrival_ms,
        session=session_of(row) or _text(row, "trace_id"),
        model=_text(row, "model_group") or model_of(row, response.body),
    )
    body = _body(row)
    yield from (base,) if body is None else to_prompts(base, _request(body, row), tally)


def _why_skipped(row: Row) -> str:
    """Why a call did not make a model generate, as the code of a finding; or nothing."""
    kind = row.get("call_type")
    if isinstance(kind, str) and kind and kind not in _GENERATING:
        return "other_calls"
    if str(row.get("cache_hit")).lower() == "true":
        return "gateway_cache_hits"
    return ""


def _body(row: Row) -> Row | None:
    """The request, where LiteLLM was told to keep it: as messages, or as the body that its proxy got."""
    messages = row.get("messages")
    if isinstance(messages, str) and messages and decoded(messages) is None:
        return {"prompt": messages}
    return as_body(messages) or as_body(row.get("proxy_server_request"))


def _request(body: Row, row: Row) -> Request:
    """What was asked; tools of a payload stand among its parameters."""
    for holder in (_object(row.get("model_parameters")), _object(row.get("proxy_server_request"))):
        for fields in (holder, _object(holder.get("body"))):
            if fields.get("tools") and not body.get("tools"):
                body = {**body, "tools": fields["tools"]}
    return parsed(body)


def _text(row: Row, field: str) -> str | None:
    value = row.get(field)
    return value if isinstance(value, str) and value else None


def _object(value: object) -> Row:
    value = decoded(value) if isinstance(value, str) else value
    return value if isinstance(value, dict) else {}
