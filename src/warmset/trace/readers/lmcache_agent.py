"""LMCache agent logs: `timestamp` (µs since 1970), `session_id`, `input` and `output` as text; not sorted.

Source: LMCache/lmcache-agent-trace.
"""

from collections.abc import Iterator, Sequence

import msgspec

from warmset.trace.builder import TraceBuilder
from warmset.trace.options import ReadOptions
from warmset.trace.prompt import Prompt
from warmset.trace.readers.log_rows import UnusableRowError, rows_of
from warmset.trace.readers.log_times import Clock
from warmset.trace.readers.openai_calls import as_body
from warmset.trace.source import Head, Input
from warmset.trace.tally import Tally
from warmset.trace.text_reading import read_prompts

TITLE = "LMCache agent log"
_FIELDS = {"timestamp", "session_id", "input", "output"}


class _Row(msgspec.Struct):
    timestamp: float | int | str
    session_id: str | int
    input: str | None
    output: str | None = None


def matches(head: Head) -> bool:
    """Rows with exactly a time, a session, and plain text in and out."""
    if not head.rows or not set(head.rows[0]) >= _FIELDS:
        return False
    row = head.rows[0]
    return all(isinstance(row[name], str) for name in ("input", "output")) and as_body(row["input"]) is None


def read(inputs: Sequence[Input], options: ReadOptions, tally: Tally) -> TraceBuilder:
    """All requests of all files."""
    return read_prompts(prompts, inputs, options, tally)


def prompts(source: Input, tally: Tally) -> Iterator[Prompt]:
    """The requests of one file."""
    clock = Clock(tally)
    for place, fields in rows_of(source, tally):
        try:
            row = msgspec.convert(fields, _Row)
            yield_ms = clock.milliseconds(row.timestamp, "timestamp", place)
        except (UnusableRowError, msgspec.ValidationError) as error:
            tally.drop(place, str(error))
            continue
        yield Prompt(
            place=place,
            arrival_ms=yield_ms,
            text=row.input or "",
            answer=row.output or "",
            session=row.session_id,
        )
