"""Lines of logs that a running program appends to: the last one may break off."""

from collections.abc import Iterable, Iterator
from typing import Any

from warmset.trace.readers.log_rows import UnusableRowError, decode_row
from warmset.trace.source import Input
from warmset.trace.tally import Tally

Row = dict[str, Any]


def lines_of(source: Input) -> Iterator[tuple[str, bytes]]:
    """FILE:LINE and text of each line."""
    return ((f"{source.label}:{number}", line) for number, line in source.lines())


def rows_of_lines(lines: Iterable[tuple[str, bytes]], tally: Tally) -> Iterator[tuple[str, Row]]:
    """Place and fields of each line; one that is no row is dropped, or only counted where it is the last."""
    torn: tuple[str, str] | None = None
    for place, line in lines:
        if not line.strip():
            continue
        if torn is not None:
            tally.drop(*torn)
            torn = None
        tally.rows += 1
        try:
            row = decode_row(line, place, tally)
        except UnusableRowError as error:
            torn = (place, str(error))
            continue
        if isinstance(row, dict):
            yield place, row
        else:
            tally.drop(place, "not a JSON object")
    if torn is not None:
        tally.note("torn_lines", f"{torn[0]}: the last line breaks off")
