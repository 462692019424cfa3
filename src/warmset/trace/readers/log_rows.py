"""Rows of logs that people export: JSON objects one a line, a JSON array, or CSV with JSON in its cells."""

import codecs
import csv
import json
from collections.abc import Iterator
from typing import Any

import msgspec

from warmset.errors import TraceFormatError
from warmset.trace.source import HEAD_BYTES, MAX_LINE_BYTES, NOT_JSON, Head, Input
from warmset.trace.tally import Tally

Row = dict[str, Any]
_LIST_FIELDS = ("data", "logs", "requests", "rows", "records", "items")
_OWN_FIELDS = frozenset(
    {"messages", "prompt", "input", "body", "request", "response", "timestamp", "startTime"}
)
"""An object with one of these is a record itself, whatever lists it holds."""


class UnusableRowError(Exception):
    """A row cannot be used; its text says why and what would do, and quotes nothing of the row's own text."""


def rows_of(source: Input, tally: Tally) -> Iterator[tuple[str, Row]]:
    """FILE:LINE and fields of every row; all are counted, and what is no row is dropped.

    Raises: TraceFormatError where the file is none of the three.
    """
    head = source.head()
    if head.rows or _first_line_is_object(source):
        yield from _json_lines(source, tally)
    elif head.start.lstrip()[:1] in {b"[", b"{"}:
        yield from _json_document(source, tally)
    else:
        yield from _csv_rows(source, tally)


def first_rows(head: Head) -> tuple[Row, ...]:
    """The first rows that a head holds whole, of any of the three forms."""
    if head.rows:
        return tuple(record for row in head.rows for record in _listed(row)[:5] if isinstance(record, dict))
    if head.document is not None:
        return tuple(row for row in _listed(head.document)[:5] if isinstance(row, dict))
    if len(head.columns) < 2 or b"\0" in head.start:
        return ()
    lines = [line.decode(errors="replace") for line in head.start.splitlines(keepends=True)[1:]]
    _allow_long_cells()
    reader = csv.reader(lines)
    try:
        cells = next(reader, [])
    except csv.Error:
        return ()
    is_whole = reader.line_num < len(lines) or len(head.start) < HEAD_BYTES - len(codecs.BOM_UTF8)
    is_row = is_whole and len(cells) == len(head.columns)
    return (dict(zip(head.columns, cells, strict=True)),) if is_row else ()


def decoded(text: str) -> Any:  # noqa: ANN401 - any JSON value
    """The value of a cell or field that holds JSON; `None` where it does not."""
    if text.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        return msgspec.json.decode(text)
    except NOT_JSON:
        return None


def decode_row(text: bytes, place: str, tally: Tally) -> Any:  # noqa: ANN401 - any JSON value
    """A line of JSON; halves of surrogate pairs, as truncated exports have them, are replaced and counted.

    Raises: UnusableRowError where it is not JSON.
    """
    try:
        return msgspec.json.decode(text)
    except NOT_JSON as error:
        mended = _without_lone_surrogates(text)
        if mended is None:
            raise UnusableRowError(f"not valid JSON: {_reason(error)}") from error
        tally.note("broken_characters", f"{place}: halves of surrogate pairs")
        return mended


def _without_lone_surrogates(text: bytes) -> Any:  # noqa: ANN401 - any JSON value
    if b"\\u" not in text:
        return None
    try:
        plain = json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace")
        return msgspec.json.decode(plain)
    except (ValueError, RecursionError):
        return None


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, msgspec.DecodeError) else "its bytes are not UTF-8"


def _first_line_is_object(source: Input) -> bool:
    """Whether the file has one object a line, though its first is longer than a head."""
    first = next((text for _, text in source.lines() if text.strip()), b"")
    return len(first) > HEAD_BYTES and isinstance(decoded(first.decode(errors="replace")), dict)


def _json_lines(source: Input, tally: Tally) -> Iterator[tuple[str, Row]]:
    for number, text in source.lines():
        place = f"{source.label}:{number}"
        if not text.strip():
            tally.note("blank_lines", place)
            continue
        try:
            records = _listed(decode_row(text, place, tally))
        except UnusableRowError as error:
            tally.rows += 1
            tally.drop(place, str(error))
            continue
        for record in records:
            yield from _object(record, place, tally)


def _json_document(source: Input, tally: Tally) -> Iterator[tuple[str, Row]]:
    try:
        document = decode_row(source.whole(), source.label, tally)
    except UnusableRowError as error:
        raise TraceFormatError(f"{source.label}: {error}: export it again, one request a line") from error
    for number, record in enumerate(_listed(document), start=1):
        yield from _object(record, f"{source.label}, record {number}", tally)


def _object(record: Any, place: str, tally: Tally) -> Iterator[tuple[str, Row]]:  # noqa: ANN401 - any JSON value
    tally.rows += 1
    if isinstance(record, dict):
        yield place, record
    else:
        tally.drop(place, "not a JSON object")


def _listed(document: Any) -> list[Any]:  # noqa: ANN401 - any JSON value
    """The records of a page or document: its own, those of a field with a usual name, or itself."""
    if isinstance(document, list) and document:
        return document
    if isinstance(document, dict) and _OWN_FIELDS.isdisjoint(document):
        for field in _LIST_FIELDS:
            records = document.get(field)
            if isinstance(records, list) and records and isinstance(records[0], dict):
                return records
    return [document]


def _csv_rows(source: Input, tally: Tally) -> Iterator[tuple[str, Row]]:
    """Cells by column; empty ones are left out."""
    _allow_long_cells()
    reader = csv.reader(_text_lines(source, tally))
    columns: list[str] = []
    while True:
        first_line = reader.line_num + 1
        place = f"{source.label}:{first_line}"
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise TraceFormatError(f"{place}: the CSV is broken: {error}: export it again") from error
        if cells is None:
            return
        if not cells:
            tally.note("blank_lines", place)
        elif not columns:
            columns = [name.strip() for name in cells]
        else:
            tally.rows += 1
            if len(cells) == len(columns):
                yield place, {name: cell for name, cell in zip(columns, cells, strict=True) if cell}
            else:
                tally.drop(place, f"has {len(cells)} cells under {len(columns)} columns: is a quote missing?")


def _text_lines(source: Input, tally: Tally) -> Iterator[str]:
    for number, line in source.lines():
        try:
            yield line.decode()
        except UnicodeDecodeError:
            tally.note("broken_characters", f"{source.label}:{number}: bytes that are not UTF-8")
            yield line.decode(errors="replace")


def _allow_long_cells() -> None:
    """The csv module refuses cells of more than 128 KiB unless told otherwise, for the whole process."""
    csv.field_size_limit(MAX_LINE_BYTES)
