"""Baseten completion traces, Parquet or an Arrow file: one row a request, one hash a block.

`timestamp_start_unix_ms`, `input_tokens`, `output_tokens`, `total_hashes`, `block_size`,
`provided_session_id` or else `poor_man_session_id`, `duration_e2e_ms`, `cached_tokens_reference`,
`model_name`, `request_canceled`.
`prompt` and `output_text` hold text and are never read. Hashes of different models are kept apart.
Source: ai-dynamo/aiperf, dataset/loader/baseten_trace_models.py.
"""

import gzip
import io
import reprlib
from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np

from warmset.errors import InputError, TraceFormatError
from warmset.trace.builder import TraceBuilder, under_model
from warmset.trace.forest import UNKNOWN
from warmset.trace.options import DEFAULT_TEXT_BLOCK_TOKENS, ReadOptions
from warmset.trace.readers.log_rows import UnusableRowError
from warmset.trace.readers.rows import (
    MAX_MS,
    MAX_TOKENS,
    DeclaredSize,
    Int64s,
    RowTaker,
    in_range,
    signed_ids,
    whole_number,
)
from warmset.trace.source import Head, Input
from warmset.trace.tally import Tally

TITLE = "Baseten trace (Parquet or Arrow)"
_PARQUET, _ARROW = b"PAR1", b"ARROW1"
_REQUIRED = ("timestamp_start_unix_ms", "input_tokens", "output_tokens")
_OPTIONAL = (
    "block_size",
    "provided_session_id",
    "poor_man_session_id",
    "duration_e2e_ms",
    "cached_tokens_reference",
    "model_name",
    "request_canceled",
)
_HASHES = "total_hashes"
_BATCH_ROWS = 512


def matches(head: Head) -> bool:
    """A Parquet or Arrow file: its columns stand at its end, and are looked at when it is read."""
    return head.start.startswith((_PARQUET, _ARROW))


def read(inputs: Sequence[Input], options: ReadOptions, tally: Tally) -> TraceBuilder:
    """All rows of all files, a few hundred at a time.

    Raises: InputError where pyarrow is not installed; TraceFormatError for a file that is damaged or has
    other columns, and where `--block-tokens` is not its block size.
    """
    builder = TraceBuilder(options.block_tokens or DEFAULT_TEXT_BLOCK_TOKENS, tally, times_are_epoch=True)
    reader = _Reader(builder, options)
    for source in inputs:
        taker = RowTaker(source, builder, "row")
        number = 0
        for batch in _batches(source):
            hashes = _Hashes(batch)
            for place, row in enumerate(_rows(batch)):
                number += 1
                tally.rows += 1
                try:
                    reader.take(number, row, hashes.of(place), taker)
                except UnusableRowError as error:
                    taker.drop(number, str(error))
        taker.fit.note_mismatches(builder.block_tokens, tally, full_blocks_only=True)
    return builder


class _Reader:
    """Rows into the builder."""

    def __init__(self, builder: TraceBuilder, options: ReadOptions) -> None:
        self._size = DeclaredSize("block_size", builder, options)

    def take(self, number: int, row: dict[str, Any], ids: Int64s | None, taker: RowTaker) -> None:
        """One row.

        Raises: UnusableRowError where it cannot be used.
        """
        values = {field: _whole(row, field) for field in _REQUIRED}
        in_range("timestamp_start_unix_ms", values["timestamp_start_unix_ms"], MAX_MS)
        for field in ("input_tokens", "output_tokens"):
            in_range(field, values[field], MAX_TOKENS)
        if ids is not None and ids.size:
            self._size.check(row.get("block_size"), taker.place(number))
            taker.fit.add(number, ids.size, values["input_tokens"])
        else:
            taker.note("no_hashes", number, "only its length is known")
        if row.get("request_canceled"):
            taker.note("canceled_requests", number)
        model = str(row["model_name"]) if row.get("model_name") else None
        taker.take(
            number,
            arrival_ms=values["timestamp_start_unix_ms"],
            input_tokens=values["input_tokens"],
            output_tokens=values["output_tokens"],
            ids=None if ids is None else under_model(ids, model),
            session=_session(row),
            model=model,
            duration_ms=_known(row, "duration_e2e_ms", MAX_MS),
            cached_tokens=_known(row, "cached_tokens_reference", MAX_TOKENS),
        )


def _whole(row: dict[str, Any], field: str) -> int:
    value = row[field]
    if isinstance(value, float) and value.is_integer():  # a column with gaps becomes one of floats in pandas
        value = int(value)
    if whole_number(value):
        raise UnusableRowError(f"{field}{whole_number(value)}")
    whole: int = value
    return whole


def _known(row: dict[str, Any], field: str, most: int) -> int:
    if row.get(field) is None:
        return UNKNOWN
    value = _whole(row, field)
    in_range(field, value, most)
    return value


def _session(row: dict[str, Any]) -> str | None:
    for field in ("provided_session_id", "poor_man_session_id"):
        if row.get(field) is not None:
            return f"{field} {row[field]}"
    return None


class _Hashes:
    """The hashes of the rows of a batch, as signed 64-bit integers."""

    def __init__(self, batch: Any) -> None:  # noqa: ANN401 - pyarrow has no types
        self._column = batch.column(_HASHES) if _HASHES in batch.schema.names else None

    def of(self, place: int) -> Int64s | None:
        """Those of one row; nothing where the log has none.

        Raises: UnusableRowError for what is no hash.
        """
        if self._column is None or not self._column[place].is_valid:
            return None
        values = self._column[place].values
        if values.null_count:
            raise UnusableRowError(f"{_HASHES} has a gap")
        if values.type in _word_types():
            return np.asarray(values.to_numpy(zero_copy_only=False)).view(np.int64)
        return signed_ids(values.to_pylist(), (), _HASHES)


def _is_hash(kind: Any) -> bool:  # noqa: ANN401 - pyarrow has no types
    import pyarrow as pa

    checks = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string, pa.types.is_null)
    return any(check(kind) for check in checks)


def _word_types() -> tuple[Any, Any]:
    import pyarrow as pa

    return pa.int64(), pa.uint64()


def _rows(batch: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - pyarrow has no types
    names = [name for name in batch.schema.names if name != _HASHES]
    rows: list[dict[str, Any]] = batch.select(names).to_pylist()
    return rows


def _batches(source: Input) -> Iterator[Any]:
    """Record batches of the columns that are used; a packed file is unpacked whole: its end comes first."""
    with source.opened() as stream:
        is_packed = isinstance(stream, gzip.GzipFile) or not stream.seekable()
        if not is_packed:
            yield from _batches_of(stream, source.label)
    if is_packed:
        yield from _batches_of(io.BytesIO(source.whole()), source.label)


def _batches_of(stream: IO[bytes], label: str) -> Iterator[Any]:
    try:
        import pyarrow as pa
        from pyarrow import ipc, parquet
    except ImportError as error:
        raise InputError(
            f"{label}: reading Parquet and Arrow needs pyarrow: pip install 'warmset[parquet]'"
        ) from error
    is_arrow = stream.read(len(_ARROW)) == _ARROW
    stream.seek(0)
    try:
        if is_arrow:
            file = ipc.open_file(stream)
            columns = _columns(label, file.schema)
            for place in range(file.num_record_batches):
                yield from _slices(file.get_batch(place).select(columns))
        else:
            table = parquet.ParquetFile(stream)
            columns = _columns(label, table.schema_arrow)
            yield from table.iter_batches(batch_size=_BATCH_ROWS, columns=columns)
    except (pa.ArrowException, OSError) as error:
        first = str(error).partition("\n")[0][:200]
        raise TraceFormatError(
            f"{label}: the Parquet or Arrow file is broken: {first}: copy it again"
        ) from error


def _slices(batch: Any) -> Iterator[Any]:  # noqa: ANN401 - pyarrow has no types
    for start in range(0, batch.num_rows, _BATCH_ROWS):
        yield batch.slice(start, _BATCH_ROWS)


def _columns(label: str, schema: Any) -> list[str]:  # noqa: ANN401 - pyarrow has no types
    import pyarrow as pa

    missing = [field for field in _REQUIRED if field not in schema.names]
    if missing:
        held = ", ".join(schema.names)
        raise TraceFormatError(
            f"{label}: is no Baseten trace: it has no column {missing[0]}, but {reprlib.repr(held)}"
        )
    if _HASHES in schema.names:
        hashes = schema.field(_HASHES).type
        is_list = pa.types.is_list(hashes) or pa.types.is_large_list(hashes)
        if not is_list or not _is_hash(hashes.value_type):
            raise TraceFormatError(f"{label}: {_HASHES} is a column of {hashes}, not of lists of hashes")
    return [field for field in (*_REQUIRED, _HASHES, *_OPTIONAL) if field in schema.names]
