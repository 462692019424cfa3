"""Mooncake JSONL: `timestamp` (ms), `input_length`, `output_length` (tokens), `hash_ids` (prefix block ids).

One id covers `block_tokens` input tokens, the last one what is left: `ceil(input_length / block)` ids a row.
Copies in the wild have a `session_id` and a `turn` (from 1), ids as hexadecimal or 64-bit hashes, ids of
content that lengths do not match, and a timestamp in nanoseconds since 1970 as text of 19 digits.
Source: kvcache-ai/Mooncake, FAST25-release/traces.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from warmset.trace.builder import TraceBuilder
from warmset.trace.options import ReadOptions
from warmset.trace.readers.block_fit import settle_block_size
from warmset.trace.readers.log_rows import UnusableRowError
from warmset.trace.readers.rows import (
    MAX_TOKENS,
    Decoded,
    OneEpoch,
    RowTaker,
    decode_lines,
    id_list,
    in_range,
    signed_ids,
    whole_number,
)
from warmset.trace.source import Head, Input
from warmset.trace.tally import Tally

TITLE = "Mooncake JSONL"
MOONCAKE_BLOCK_TOKENS = 512
_FIELDS = {"timestamp", "input_length", "hash_ids"}
_OTHERS = {"block_size", "chat_id", "chunk_hashes", "delay", "delay_ms", "text_input", "messages"}
"""What rows of other formats have beside the same fields."""
_NS_DIGITS = 19


class _Row(msgspec.Struct):
    timestamp: int | str
    input_length: int
    output_length: int
    hash_ids: list[int | str]
    session_id: int | str | None = None
    turn: Any = None


def matches(head: Head) -> bool:
    """Rows with hash ids and a time."""
    return bool(head.rows) and head.rows[0].keys() >= _FIELDS and all(map(_OTHERS.isdisjoint, head.rows))


def read(inputs: Sequence[Input], options: ReadOptions, tally: Tally) -> TraceBuilder:
    """All rows; odd ones are kept and counted, unusable ones dropped and counted.

    Raises: TraceFormatError where the block size contradicts most rows, and another fits nearly all.
    """
    builder = TraceBuilder(options.block_tokens or MOONCAKE_BLOCK_TOKENS, tally)
    epoch = OneEpoch(builder)
    takers = [RowTaker(source, builder) for source in inputs]
    for source, taker in zip(inputs, takers, strict=True):
        for decoded in decode_lines(source, _Row, _CHECKS, tally):
            try:
                _take(decoded, taker, epoch)
            except UnusableRowError as error:
                taker.drop(decoded.number, str(error))
    settle_block_size([taker.fit for taker in takers], builder, options.block_tokens)
    return builder


def _take(decoded: Decoded[_Row], taker: RowTaker, epoch: OneEpoch) -> None:
    row = decoded.row
    arrival_ms = _milliseconds(row.timestamp)
    for field in ("input_length", "output_length"):
        in_range(field, getattr(row, field), MAX_TOKENS)
    ids = signed_ids(row.hash_ids, decoded.lists)
    epoch.check("timestamp", arrival_ms)
    taker.fit.add(decoded.number, ids.size, row.input_length)
    has_turn = row.session_id is not None and isinstance(row.turn, int)
    taker.take(
        decoded.number,
        arrival_ms=arrival_ms,
        input_tokens=row.input_length,
        output_tokens=row.output_length,
        ids=ids,
        session=row.session_id,
        key=f"{row.session_id!r}/{row.turn}" if has_turn else None,
        previous_key=f"{row.session_id!r}/{row.turn - 1}" if has_turn and row.turn > 1 else None,
    )


def _milliseconds(timestamp: int | str) -> int:
    if isinstance(timestamp, int):
        return timestamp
    if len(timestamp) == _NS_DIGITS and timestamp.isascii() and timestamp.isdigit():
        return (int(timestamp) + 500_000) // 10**6
    raise UnusableRowError(f"timestamp{whole_number(timestamp)}")


def _time(timestamp: Any) -> str:  # noqa: ANN401 - any JSON value
    wrong = whole_number(timestamp)
    if isinstance(timestamp, float):
        wrong += ": where it counts milliseconds, --format dynamo reads it"
    return wrong


_CHECKS = {
    "timestamp": _time,
    "input_length": whole_number,
    "output_length": whole_number,
    "hash_ids": id_list,
}
