"""Spans of OpenTelemetry in the shapes in which they are written to files."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from warmset.errors import TraceFormatError
from warmset.trace.readers.log_rows import Row, UnusableRowError, decode_row
from warmset.trace.source import Input
from warmset.trace.tally import Tally

_START = ("start_time", "startTimeUnixNano", "start_time_unix_nano", "startTime")
_END = ("end_time", "endTimeUnixNano", "end_time_unix_nano", "endTime")
_ERROR = frozenset({2, "2", "ERROR", "STATUS_CODE_ERROR"})
_SCALARS = ("stringValue", "intValue", "doubleValue", "boolValue")


class Span(NamedTuple):
    """One span, its attributes by name; those of its events fill in what it lacks itself."""

    place: str
    trace: str
    key: str
    """Trace and span; empty where the span has no id."""
    parent_key: str
    start: Any
    end: Any
    has_failed: bool
    attributes: Row


def spans_of(source: Input, tally: Tally) -> Iterator[Span]:
    """All spans of a file, counted; what is none is dropped.

    Raises: TraceFormatError where the file is neither one JSON value nor one a line.
    """
    for place, value in _values(source, tally):
        for number, fields in enumerate(_spans_in(value), start=1):
            tally.rows += 1
            if isinstance(fields, dict) and ("attributes" in fields or _id(fields, "span_id", "spanId")):
                yield _span(fields, f"{place}, span {number}")
            else:
                tally.drop(f"{place}, span {number}", "no span: it has neither attributes nor an id")


def _values(source: Input, tally: Tally) -> Iterator[tuple[str, Any]]:
    """Place and value of each line, or of the whole file where its first line is no value."""
    for number, text in source.lines():
        place = f"{source.label}:{number}"
        if not text.strip():
            continue
        try:
            value = decode_row(text, place, tally)
        except UnusableRowError as error:
            if number > 1:
                tally.rows += 1
                tally.drop(place, str(error))
                continue
            yield source.label, _whole(source, tally)
            return
        yield place, value


def _whole(source: Input, tally: Tally) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return decode_row(source.whole(), source.label, tally)
    except UnusableRowError as error:
        raise TraceFormatError(f"{source.label}: {error}: export the spans again") from error


def _spans_in(value: Any) -> Iterator[Any]:  # noqa: ANN401 - any JSON value
    """Spans of a list, of a collection, of OTLP's resources and scopes, or the value itself."""
    if isinstance(value, list):
        for each in value:
            yield from _spans_in(each)
        return
    if not isinstance(value, dict):
        yield value
        return
    for name in ("resourceSpans", "resource_spans", "scopeSpans", "scope_spans", "spans", "batches"):
        if isinstance(value.get(name), list):
            yield from _spans_in(value[name])
            return
    yield value


def _span(fields: Row, place: str) -> Span:
    context = fields["context"] if isinstance(fields.get("context"), dict) else fields
    trace = _id(context, "trace_id", "traceId")
    span = _id(context, "span_id", "spanId")
    parent = _id(fields, "parent_span_id", "parentSpanId", "parent_id")
    status = fields.get("status")
    code = status.get("code", status.get("status_code")) if isinstance(status, dict) else status
    attributes = attributes_in(fields.get("attributes"))
    for event in _listed(fields, "events"):
        if isinstance(event, dict):
            attributes = attributes_in(event.get("attributes")) | attributes
    return Span(
        place=place,
        trace=trace,
        key=f"{trace}/{span}" if span else "",
        parent_key=f"{trace}/{parent}" if parent else "",
        start=_first(fields, _START),
        end=_first(fields, _END),
        has_failed=isinstance(code, int | str) and code in _ERROR,
        attributes=attributes,
    )


def attributes_in(value: Any) -> Row:  # noqa: ANN401 - any JSON value
    """Attributes as an object, from an object or from OTLP's list of keys and typed values."""
    if isinstance(value, dict):
        return value
    if not isinstance(value, list):
        return {}
    return {
        pair["key"]: _typed(pair.get("value"))
        for pair in value
        if isinstance(pair, dict) and isinstance(pair.get("key"), str)
    }


def _typed(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """A value out of OTLP's typed wrapping; 64-bit integers are text there."""
    if not isinstance(value, dict):
        return value
    for name in _SCALARS:
        if name in value:
            return value[name]
    if "arrayValue" in value:
        return [_typed(each) for each in _listed(value["arrayValue"], "values")]
    if "kvlistValue" in value:
        return attributes_in(_listed(value["kvlistValue"], "values"))
    return value or None


def _listed(fields: Any, name: str) -> list[Any]:  # noqa: ANN401 - any JSON value
    value = fields.get(name) if isinstance(fields, dict) else None
    return value if isinstance(value, list) else []


def _id(fields: Row, *names: str) -> str:
    value = _first(fields, names)
    return value if isinstance(value, str) else ""


def _first(fields: Row, names: tuple[str, ...]) -> Any:  # noqa: ANN401 - any JSON value
    known = (fields.get(name) for name in names)
    return next((value for value in known if value is not None and value != ""), None)
