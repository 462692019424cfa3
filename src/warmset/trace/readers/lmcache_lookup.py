"""LMCache's lookup-hash log, `lookup_hashes_*.jsonl`: what each request looked up in the cache.

`timestamp` (s since 1970), `request_id`, `model_name`, `chunk_size`, `seq_len` (input tokens), `chunk_hashes`
of full chunks only, as `0x…` (a prefix hash each); `dtypes` and `shapes` say what a chunk holds. There is
nothing about answers. Hashes do not cover the model: those of different models are kept apart.
Source: LMCache/LMCache, mp_observability/subscribers/logging/lookup_hash.py and tools/cache_simulator.
"""

from collections.abc import Sequence

import msgspec

from warmset.trace.builder import TraceBuilder, under_model
from warmset.trace.options import ReadOptions
from warmset.trace.readers.log_rows import UnusableRowError
from warmset.trace.readers.rows import (
    MAX_TOKENS,
    DeclaredSize,
    Decoded,
    RowTaker,
    decode_lines,
    id_list,
    in_range,
    milliseconds,
    number,
    signed_ids,
    whole_number,
)
from warmset.trace.source import Head, Input
from warmset.trace.tally import Tally

TITLE = "LMCache lookup-hash log"
LMCACHE_CHUNK_TOKENS = 256
_FIELDS = {"chunk_hashes", "chunk_size", "seq_len"}


class _Row(msgspec.Struct):
    timestamp: float | int
    chunk_size: int
    seq_len: int
    chunk_hashes: list[int | str]
    request_id: int | str | None = None
    model_name: str | None = None


def matches(head: Head) -> bool:
    """Rows with chunk hashes."""
    return bool(head.rows) and head.rows[0].keys() >= _FIELDS


def read(inputs: Sequence[Input], options: ReadOptions, tally: Tally) -> TraceBuilder:
    """All lookups of all files.

    Raises: TraceFormatError where `--block-tokens` is not the log's chunk size.
    """
    builder = TraceBuilder(options.block_tokens or LMCACHE_CHUNK_TOKENS, tally, times_are_epoch=True)
    reader = _Reader(builder, options)
    takers = [RowTaker(source, builder) for source in inputs]
    for source, taker in zip(inputs, takers, strict=True):
        for decoded in decode_lines(source, _Row, _CHECKS, tally):
            try:
                reader.take(decoded, taker)
            except UnusableRowError as error:
                taker.drop(decoded.number, str(error))
    for taker in takers:
        taker.fit.note_mismatches(builder.block_tokens, tally, full_blocks_only=True)
    builder.assumptions.append("The log does not say how long answers are: all of them are taken as empty.")
    return builder


class _Reader:
    """Rows into the builder."""

    def __init__(self, builder: TraceBuilder, options: ReadOptions) -> None:
        self._size = DeclaredSize("chunk_size", builder, options)
        self._requests: set[int | str] = set()

    def take(self, decoded: Decoded[_Row], taker: RowTaker) -> None:
        """One row.

        Raises: UnusableRowError where it cannot be used.
        """
        row = decoded.row
        in_range("seq_len", row.seq_len, MAX_TOKENS)
        arrival_ms = milliseconds("timestamp", row.timestamp)
        self._size.check(row.chunk_size, taker.place(decoded.number))
        ids = signed_ids(row.chunk_hashes, (), "chunk_hashes")
        request = row.request_id or None
        if request is not None:
            if request in self._requests:
                taker.note("repeated_lookups", decoded.number, "its request_id was there before")
            self._requests.add(request)
        taker.fit.add(decoded.number, ids.size, row.seq_len)
        taker.take(
            decoded.number,
            arrival_ms=arrival_ms,
            input_tokens=row.seq_len,
            output_tokens=None,
            ids=under_model(ids, row.model_name or None),
            model=row.model_name or None,
        )


_CHECKS = {
    "timestamp": number,
    "chunk_size": whole_number,
    "seq_len": whole_number,
    "chunk_hashes": id_list,
}
