"""OpenTelemetry GenAI spans: a collection with `spans`, OTLP JSON with `resourceSpans`, or one a line.

Only calls that make a model generate are requests: a span of an agent, a tool or anything else is counted as
`other_spans`. A span without its messages, as they are by default, gives lengths only.
Source: open-telemetry/semantic-conventions-genai, docs/gen-ai (2026), and the names of 1.36 and before.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from warmset.trace.builder import TraceBuilder
from warmset.trace.options import ReadOptions
from warmset.trace.prompt import Prompt
from warmset.trace.readers.log_rows import Row, UnusableRowError
from warmset.trace.readers.log_times import Clock
from warmset.trace.readers.openai_answers import Usage, token_count
from warmset.trace.readers.openai_calls import Request, to_prompts
from warmset.trace.readers.otel_messages import answer_in, messages_in, tools_in
from warmset.trace.readers.otel_spans import Span, spans_of
from warmset.trace.source import Head, Input
from warmset.trace.tally import Tally
from warmset.trace.text_reading import read_prompts

TITLE = "OpenTelemetry GenAI spans"
_MARKS = ("resourceSpans", "spans", "span_id", "spanId", "context")
_GENERATING = frozenset(
    {"chat", "completion", "text_completion", "generate_content", "generate", "responses"}
)
_INPUT = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.usage.prompt_tokens")
_OUTPUT = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.usage.completion_tokens")
_CACHED = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.input_tokens.cached",
    "gen_ai.usage.details.cache_read_input_tokens",
)
_SESSION = ("gen_ai.conversation.id", "session.id")
_MODEL = ("gen_ai.response.model", "gen_ai.request.model")


def matches(head: Head) -> bool:
    """GenAI attributes among the fields of spans."""
    if b'"gen_ai.' not in head.start:
        return False
    if head.rows:
        return any(mark in row for row in head.rows for mark in _MARKS)
    return any(f'"{mark}"'.encode() in head.start for mark in _MARKS[:4])


def read(inputs: Sequence[Input], options: ReadOptions, tally: Tally) -> TraceBuilder:
    """All model calls of all files."""
    return read_prompts(prompts, inputs, options, tally)


def prompts(source: Input, tally: Tally) -> Iterator[Prompt]:
    """The model calls among the spans of one file, which is read twice: parents come after their children."""
    calls = {span.key for span in spans_of(source, Tally()) if span.key and _is_call(span)}
    clock = Clock(tally)
    for span in spans_of(source, tally):
        if not _is_call(span):
            tally.note("other_spans", span.place)
            continue
        try:
            found = list(_prompts_of(span, calls, clock, tally))
        except UnusableRowError as error:
            tally.drop(span.place, str(error))
            continue
        yield from found


def _is_call(span: Span) -> bool:
    """Whether a span is a call that generates: by its operation, else by its usage or messages."""
    operation = span.attributes.get("gen_ai.operation.name")
    if operation is not None:
        return isinstance(operation, str) and operation in _GENERATING
    names = span.attributes
    return any(name in names for name in (*_INPUT, "gen_ai.input.messages", "gen_ai.prompt.0.content"))


def _prompts_of(span: Span, calls: set[str], clock: Clock, tally: Tally) -> Iterator[Prompt]:
    attributes = span.attributes
    usage = Usage(*(_count(attributes, names) for names in (_INPUT, _OUTPUT, _CACHED)))
    answer = answer_in(attributes)
    if span.has_failed and not answer and not usage.output_tokens:
        tally.note("failed_calls", span.place)
        return
    if span.start is None:
        raise UnusableRowError("the span has no start time")
    arrival_ms = clock.milliseconds(span.start, "start time", span.place)
    ended_ms = None if span.end is None else clock.milliseconds(span.end, "end time", span.place)
    base = Prompt(
        place=span.place,
        arrival_ms=arrival_ms,
        answer=answer,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=usage.cached_tokens,
        duration_ms=None if ended_ms is None or ended_ms < arrival_ms else ended_ms - arrival_ms,
        session=_text(attributes, _SESSION) or span.trace or None,
        kind=_text(attributes, ("gen_ai.agent.name",)),
        model=_text(attributes, _MODEL),
        key=span.key or None,
        previous_key=span.parent_key if span.parent_key in calls else None,
    )
    messages = messages_in(attributes)
    if messages:
        yield from to_prompts(base, Request(messages=messages, tools=tools_in(attributes)), tally)
    else:
        yield base


def _count(attributes: Row, names: Sequence[str]) -> int | None:
    known = (token_count(attributes.get(name), name) for name in names)
    return next((count for count in known if count is not None), None)


def _text(attributes: Row, names: Sequence[str]) -> str | None:
    values: Iterator[Any] = (attributes.get(name) for name in names)
    return next((value for value in values if isinstance(value, str) and value), None)
