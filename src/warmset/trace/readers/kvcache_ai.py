"""KVCache.AI's trace JSONL: `block_size`, `hash_ids`, `input_length`, and what else a producer knows.

`block_tokens`: the tokens of each block, where they are not `block_size` each and the rest in the last.
`timestamp`: their simulator does not read it; their SGLang converter writes seconds since 1970, traces in
Mooncake's schema have milliseconds from the start. `output_length`, `id`, `session_id`.
Source: kvcache-simulator 0.1.3 (README, `trace.py`); kvcache-ai/kvcache-blog, scripts.
"""

from collections.abc import Sequence

import msgspec
import numpy as np

from warmset.trace.builder import TraceBuilder
from warmset.trace.options import ReadOptions
from warmset.trace.readers.log_rows import UnusableRowError
from warmset.trace.readers.log_times import SMALLEST_EPOCH
from warmset.trace.readers.rows import (
    EPOCH_MS,
    MAX_MS,
    MAX_TOKENS,
    DeclaredSize,
    Decoded,
    Int64s,
    OneEpoch,
    RowTaker,
    decode_lines,
    id_list,
    in_range,
    milliseconds,
    signed_ids,
    whole_number,
)
from warmset.trace.source import Head, Input
from warmset.trace.tally import Tally

TITLE = "KVCache.AI trace JSONL"
_FIELDS = {"block_size", "hash_ids", "input_length"}
_UNSIZED_BLOCK_TOKENS = 64
"""Until a row names its own: their converter's default."""


class _Row(msgspec.Struct):
    hash_ids: list[int | str]
    input_length: int
    block_size: int | None = None
    block_tokens: list[int] | None = None
    timestamp: float | int | None = None
    output_length: int | None = None
    session_id: int | str | None = None


def matches(head: Head) -> bool:
    """Rows with hash ids that name their block size."""
    return any(row.keys() >= _FIELDS for row in head.rows)


def read(inputs: Sequence[Input], options: ReadOptions, tally: Tally) -> TraceBuilder:
    """All rows, in file order where they have no times.

    Raises: TraceFormatError where `--block-tokens` is not what the log says.
    """
    builder = TraceBuilder(options.block_tokens or _UNSIZED_BLOCK_TOKENS, tally)
    reader = _Reader(builder, options)
    takers = [RowTaker(source, builder) for source in inputs]
    for source, taker in zip(inputs, takers, strict=True):
        for decoded in decode_lines(source, _Row, _CHECKS, tally):
            try:
                reader.take(decoded, taker)
            except UnusableRowError as error:
                taker.drop(decoded.number, str(error))
    for taker in takers:
        taker.fit.note_mismatches(builder.block_tokens, tally)
    if reader.have_times is False:
        builder.assumptions.append(
            "The log has no times: all requests are taken to arrive at once, in file order."
        )
    return builder


class _Reader:
    """Rows into the builder."""

    def __init__(self, builder: TraceBuilder, options: ReadOptions) -> None:
        self.have_times: bool | None = None
        """Whether the log has times, by its first row."""
        self._builder = builder
        self._size = DeclaredSize("block_size", builder, options)
        self._epoch = OneEpoch(builder)

    def take(self, decoded: Decoded[_Row], taker: RowTaker) -> None:
        """One row.

        Raises: UnusableRowError where it cannot be used.
        """
        row = decoded.row
        in_range("input_length", row.input_length, MAX_TOKENS)
        if row.output_length is not None:
            in_range("output_length", row.output_length, MAX_TOKENS)
        self._size.check(row.block_size, taker.place(decoded.number))
        ids = signed_ids(row.hash_ids, decoded.lists)
        arrival_ms = self._arrival_ms(row.timestamp)
        if row.block_tokens is not None:
            self._weigh(row.block_tokens, ids, decoded.number, taker)
        taker.fit.add(decoded.number, ids.size, row.input_length)
        taker.take(
            decoded.number,
            arrival_ms=arrival_ms,
            input_tokens=row.input_length,
            output_tokens=row.output_length,
            ids=ids,
            session=row.session_id,
        )

    def _arrival_ms(self, timestamp: float | None) -> int:
        if self.have_times is None:
            self.have_times = timestamp is not None
        if self.have_times != (timestamp is not None):
            here, before = ("a timestamp", "none") if timestamp is not None else ("no timestamp", "one")
            raise UnusableRowError(f"has {here}, and the first row has {before}: give all rows one")
        if timestamp is None:
            return 0
        in_range("timestamp", timestamp, MAX_MS)
        if SMALLEST_EPOCH <= timestamp < EPOCH_MS:
            arrival_ms = milliseconds("timestamp", timestamp)
        else:
            arrival_ms = milliseconds("timestamp", timestamp / 1000)
        self._epoch.check("timestamp", arrival_ms)
        return arrival_ms

    def _weigh(self, tokens: Sequence[int], ids: Int64s, number: int, taker: RowTaker) -> None:
        """Note blocks that are not full: a trace counts each as one of full size, up to the input's end."""
        if len(tokens) != ids.size:
            raise UnusableRowError(f"block_tokens has {len(tokens)} entries for {ids.size} hash_ids")
        size = self._builder.block_tokens
        if not all(1 <= each <= size for each in tokens):
            raise UnusableRowError(f"block_tokens holds a number outside of 1 to {size}")
        if np.count_nonzero(np.array(tokens[:-1]) != size):
            taker.note("uneven_blocks", number, f"a block before the last has not {size} tokens")


_CHECKS = {"hash_ids": id_list, "input_length": whole_number}
