"""Azure's LLM inference traces of 2023 and later: CSV of times and lengths, and nothing about reuse.

`TIMESTAMP` (`2023-11-16 18:15:46.6805900` or `2024-05-10 00:00:00.009930+00:00`, UTC where it does not say),
`ContextTokens`, `GeneratedTokens`; the multimodal trace has `NumImages` too.
Source: Azure/AzurePublicDataset, AzureLLMInferenceDataset2023.md, …2024.md, AzureLMMInferenceDataset2025.md.
"""

import re
from collections.abc import Sequence
from datetime import date
from functools import lru_cache

from warmset.trace.builder import TraceBuilder
from warmset.trace.options import DEFAULT_TEXT_BLOCK_TOKENS, ReadOptions
from warmset.trace.readers.log_rows import UnusableRowError, rows_of
from warmset.trace.readers.rows import RowTaker, token_count
from warmset.trace.source import Head, Input
from warmset.trace.tally import Tally

TITLE = "Azure LLM inference CSV"
_COLUMNS = {"TIMESTAMP", "ContextTokens", "GeneratedTokens"}
_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))? ?(Z|[+-]\d\d:?\d\d)?", re.ASCII
)
_EPOCH_DAY = date(1970, 1, 1).toordinal()


def matches(head: Head) -> bool:
    """A CSV with these columns."""
    return not head.rows and set(head.columns) >= _COLUMNS


def read(inputs: Sequence[Input], options: ReadOptions, tally: Tally) -> TraceBuilder:
    """All rows of all files: times and lengths."""
    builder = TraceBuilder(options.block_tokens or DEFAULT_TEXT_BLOCK_TOKENS, tally, times_are_epoch=True)
    for source in inputs:
        taker = RowTaker(source, builder)
        for place, row in rows_of(source, tally):
            try:
                arrival_ms = _epoch_ms(row.get("TIMESTAMP"))
                input_tokens = token_count("ContextTokens", row.get("ContextTokens"))
                output_tokens = token_count("GeneratedTokens", row.get("GeneratedTokens"))
            except UnusableRowError as error:
                tally.drop(place, str(error))
                continue
            number = int(place.rpartition(":")[2])
            taker.take(number, arrival_ms=arrival_ms, input_tokens=input_tokens, output_tokens=output_tokens)
    return builder


def _epoch_ms(text: str | None) -> int:
    """Milliseconds since 1970, the nearest to what is written, halves up, in whole numbers."""
    parts = _TIME.fullmatch(text.strip()) if text else None
    if parts is None:
        raise UnusableRowError("TIMESTAMP is missing or no time: it must be as 2023-11-16 18:15:46.6805900")
    day, hours, minutes, seconds, fraction, zone = parts.groups()
    try:
        start_s = _day_s(day)
    except ValueError as error:
        raise UnusableRowError(f"TIMESTAMP is no day of the calendar: {day}") from error
    if int(hours) > 23 or int(minutes) > 59 or int(seconds) > 59:
        raise UnusableRowError(f"TIMESTAMP is no time of day: {hours}:{minutes}:{seconds}")
    whole_s = start_s + 3600 * int(hours) + 60 * int(minutes) + int(seconds) - _offset_s(zone)
    if whole_s < 0:
        raise UnusableRowError(f"TIMESTAMP lies before 1970: {day}")
    return 1000 * whole_s + (int((fraction or "").ljust(9, "0")) + 500_000) // 10**6


@lru_cache(maxsize=64)
def _day_s(day: str) -> int:
    return 86_400 * (date.fromisoformat(day).toordinal() - _EPOCH_DAY)


def _offset_s(zone: str | None) -> int:
    if zone is None or zone == "Z":
        return 0
    offset_s = 3600 * int(zone[1:3]) + 60 * int(zone[-2:])
    return -offset_s if zone[0] == "-" else offset_s
