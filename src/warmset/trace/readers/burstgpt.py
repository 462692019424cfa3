"""BurstGPT: CSV of times and lengths of a campus' calls to ChatGPT and GPT-4.

`Timestamp` (s from the first midnight), `Model`, `Request tokens`, `Response tokens` (0: the call failed),
`Total tokens`, `Log Type`; since version 2 also `Session ID` and `Elapsed time` (s).
Source: HPMLL/BurstGPT, README.
"""

from collections.abc import Mapping, Sequence

from warmset.trace.builder import TraceBuilder
from warmset.trace.forest import UNKNOWN
from warmset.trace.options import DEFAULT_TEXT_BLOCK_TOKENS, ReadOptions
from warmset.trace.readers.log_rows import UnusableRowError, rows_of
from warmset.trace.readers.rows import RowTaker, milliseconds, token_count
from warmset.trace.source import Head, Input
from warmset.trace.tally import Tally

TITLE = "BurstGPT CSV"
_COLUMNS = {"Timestamp", "Request tokens", "Response tokens"}


def matches(head: Head) -> bool:
    """A CSV with these columns."""
    return not head.rows and set(head.columns) >= _COLUMNS


def read(inputs: Sequence[Input], options: ReadOptions, tally: Tally) -> TraceBuilder:
    """All rows of all files: times, lengths, and sessions where rows have them."""
    builder = TraceBuilder(options.block_tokens or DEFAULT_TEXT_BLOCK_TOKENS, tally)
    for source in inputs:
        taker = RowTaker(source, builder)
        for place, row in rows_of(source, tally):
            try:
                _take(int(place.rpartition(":")[2]), row, taker)
            except UnusableRowError as error:
                tally.drop(place, str(error))
    return builder


def _take(number: int, row: Mapping[str, str], taker: RowTaker) -> None:
    arrival_ms = milliseconds("Timestamp", row.get("Timestamp", ""))
    input_tokens = token_count("Request tokens", row.get("Request tokens"))
    output_tokens = token_count("Response tokens", row.get("Response tokens"))
    elapsed = row.get("Elapsed time")
    duration_ms = UNKNOWN if elapsed is None else milliseconds("Elapsed time", elapsed)
    if "Total tokens" in row:
        total = token_count("Total tokens", row["Total tokens"])
        if total != input_tokens + output_tokens:
            taker.note("other_total", number, f"{input_tokens} and {output_tokens} tokens are not {total}")
    taker.take(
        number,
        arrival_ms=arrival_ms,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        session=row.get("Session ID"),
        kind=row.get("Log Type"),
        model=row.get("Model"),
        duration_ms=duration_ms,
    )
