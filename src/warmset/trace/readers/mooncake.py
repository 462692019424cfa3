"""Mooncake JSONL: `timestamp` (ms), `input_length`, `output_length` (tokens), `hash_ids` (prefix block ids).

One id covers `block_tokens` input tokens, the last one what is left: `ceil(input_length / block)` ids a row.
Source: kvcache-ai/Mooncake, FAST25-release/traces.
"""

import codecs
import gzip
import io
import reprlib
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from warmset.errors import Finding, InputError, TraceFormatError
from warmset.trace.forest import Provenance, RequestColumns, Trace, build_trace

MOONCAKE_BLOCK_TOKENS = 512
MAX_LINE_BYTES = 64 * 2**20
MAX_TOKENS = 2**40
MAX_ARRIVAL_MS = 2**53
_GZIP_MAGIC = b"\x1f\x8b"
_FIT_SHARE = 0.5
"""Where a smaller share of the rows has as many ids as its length asks for, the block size is in doubt."""
_CLOSE = 0.9
"""A block size at least this near to the one that the rows suggest is not refused."""

_NOT_A_ROW = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_Stream = io.BufferedReader | gzip.GzipFile


class _Row(msgspec.Struct):
    timestamp: int
    input_length: int
    output_length: int
    hash_ids: list[int]
    session_id: int | str | None = None


def read_mooncake(
    path: Path, block_tokens: int = MOONCAKE_BLOCK_TOKENS, provenance: Provenance | None = None
) -> Trace:
    """Read a Mooncake trace, plain or gzipped.

    Raises: InputError when the file cannot be opened; TraceFormatError with file and line when a row cannot
    be used. Rows that can be used but are odd are kept and counted as findings.
    """
    if block_tokens < 1:
        raise InputError(f"--block-tokens {block_tokens}: a block holds at least 1 token")
    reader = _Reader(path, block_tokens)
    try:
        with path.open("rb") as raw:
            reader.read(_unpacked(raw))
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TraceFormatError(f"{path}:{reader.line + 1}: the gzip stream is broken: {error}") from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    return build_trace(
        reader.columns(), block_tokens, provenance or Provenance(name=path.name), tuple(reader.findings())
    )


def _unpacked(raw: io.BufferedReader) -> _Stream:
    return gzip.GzipFile(fileobj=raw) if raw.peek(2)[:2] == _GZIP_MAGIC else raw


class _Reader:
    """Rows into columns, and what was odd about them."""

    def __init__(self, path: Path, block_tokens: int) -> None:
        self.path = path
        self.block_tokens = block_tokens
        self.line = 0
        self.arrival_ms: list[int] = []
        self.input_tokens: list[int] = []
        self.output_tokens: list[int] = []
        self.num_blocks: list[int] = []
        self.ids: list[int] = []
        self.sessions: list[int | str | None] = []
        self._seen: dict[str, tuple[int, str]] = {}

    def read(self, stream: _Stream) -> None:
        """Take every line of the stream."""
        decoder = msgspec.json.Decoder(_Row)
        for text in _lines(stream, self.path):
            self.line += 1
            if not text.strip():
                self._note("blank_lines")
                continue
            try:
                row = decoder.decode(text)
            except _NOT_A_ROW as error:
                raise self._error(explain_row(text, error)) from error
            self._take(row)
        if not self.arrival_ms:
            raise TraceFormatError(f"{self.path}: holds no requests")
        self._check_block_size()

    def _take(self, row: _Row) -> None:
        self._check_range("timestamp", row.timestamp, MAX_ARRIVAL_MS)
        self._check_range("input_length", row.input_length, MAX_TOKENS)
        self._check_range("output_length", row.output_length, MAX_TOKENS)
        if row.hash_ids and not -(2**63) <= min(row.hash_ids) <= max(row.hash_ids) < 2**63:
            raise self._error("hash_ids holds a number that does not fit a signed 64-bit integer")
        self._note_oddities(row)
        self.arrival_ms.append(row.timestamp)
        self.input_tokens.append(row.input_length)
        self.output_tokens.append(row.output_length)
        self.num_blocks.append(len(row.hash_ids))
        self.ids.extend(row.hash_ids)
        self.sessions.append(row.session_id)

    def _note_oddities(self, row: _Row) -> None:
        if self.arrival_ms and row.timestamp < self.arrival_ms[-1]:
            self._note("unsorted_rows", f"timestamp {row.timestamp} after {self.arrival_ms[-1]}")
        if row.input_length == 0:
            self._note("empty_prompts")
        if row.output_length == 0:
            self._note("no_output")
        expected = -(-row.input_length // self.block_tokens)
        if len(row.hash_ids) != expected:
            code = "short_hash_ids" if len(row.hash_ids) < expected else "long_hash_ids"
            self._note(code, f"{len(row.hash_ids)} ids for {row.input_length} tokens, expected {expected}")

    def _check_block_size(self) -> None:
        """Refuse a block size that most rows contradict, if another one suits them no worse."""
        num_ids, input_tokens = np.array(self.num_blocks), np.array(self.input_tokens)
        has_ids = num_ids > 0
        num_ids, input_tokens = num_ids[has_ids], input_tokens[has_ids]
        fitting = _rows_that_fit(self.block_tokens, num_ids, input_tokens)
        if fitting >= _FIT_SHARE * num_ids.size:
            return
        tokens_per_id = max(input_tokens.sum() / num_ids.sum(), 1)
        candidates = (2 ** round(np.log2(tokens_per_id)), round(tokens_per_id))
        nearest = max(candidates, key=lambda size: _rows_that_fit(size, num_ids, input_tokens))
        suits_worse = _rows_that_fit(nearest, num_ids, input_tokens) < fitting
        if suits_worse or _CLOSE < nearest / self.block_tokens < 1 / _CLOSE:
            return
        message = (
            f"{self.path}: {num_ids.size - fitting} of {num_ids.size} rows have another number of hash_ids "
            f"than {self.block_tokens}-token blocks need: try --block-tokens {nearest}"
        )
        raise TraceFormatError(message)

    def _check_range(self, field: str, value: int, most: int) -> None:
        if not 0 <= value <= most:
            raise self._error(f"{field} is {reprlib.repr(value)}: it must lie between 0 and {most}")

    def _error(self, what: str) -> TraceFormatError:
        return TraceFormatError(f"{self.path}:{self.line}: {what}")

    def _note(self, code: str, detail: str = "") -> None:
        count, first = self._seen.get(code, (0, f"line {self.line}" + (f": {detail}" if detail else "")))
        self._seen[code] = (count + 1, first)

    def columns(self) -> RequestColumns:
        """The rows as columns, in file order."""
        return RequestColumns(
            np.array(self.arrival_ms, dtype=np.int64),
            np.array(self.input_tokens, dtype=np.int64),
            np.array(self.output_tokens, dtype=np.int64),
            np.array(self.num_blocks, dtype=np.int32),
            np.array(self.ids, dtype=np.int64),
            self._session_numbers(),
        )

    def _session_numbers(self) -> npt.NDArray[np.int32] | None:
        if None in self.sessions:
            return None
        numbers: dict[int | str | None, int] = {}
        return np.array([numbers.setdefault(name, len(numbers)) for name in self.sessions], dtype=np.int32)

    def findings(self) -> Iterator[Finding]:
        """What was odd, counted."""
        for code, (count, first) in self._seen.items():
            yield Finding(code, count, first)
        unnamed = self.sessions.count(None)
        if 0 < unnamed < len(self.sessions):
            yield Finding("unnamed_sessions", unnamed, "rows without session_id; sessions are left out")


def _rows_that_fit(
    block_tokens: int, num_ids: npt.NDArray[np.int64], input_tokens: npt.NDArray[np.int64]
) -> int:
    """Rows with one id a block; logs differ in whether a partial last block has one too."""
    full_blocks = input_tokens // block_tokens
    return int(np.count_nonzero((num_ids == full_blocks) | (num_ids == -(-input_tokens // block_tokens))))


def _lines(stream: _Stream, path: Path) -> Iterator[bytes]:
    number = 0
    while text := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(text) > MAX_LINE_BYTES:
            raise TraceFormatError(f"{path}:{number}: the line is longer than {MAX_LINE_BYTES} bytes")
        yield text.removeprefix(codecs.BOM_UTF8) if number == 1 else text


def explain_row(text: bytes, error: Exception) -> str:
    """What is wrong with a row, in the words of the format."""
    try:
        row = msgspec.json.decode(text)
    except _NOT_A_ROW as broken:
        return f"not valid JSON: {broken}"
    if not isinstance(row, dict):
        return "not a JSON object"
    for field in ("timestamp", "input_length", "output_length"):
        if field not in row:
            return f"{field} is missing"
        if not isinstance(row[field], int) or isinstance(row[field], bool):
            return f"{field} is {reprlib.repr(row[field])}, not a whole number"
    if "hash_ids" not in row:
        return "hash_ids is missing"
    if not isinstance(row["hash_ids"], list):
        return "hash_ids is not a list"
    for position, identity in enumerate(row["hash_ids"]):
        if not isinstance(identity, int) or isinstance(identity, bool):
            return f"hash_ids[{position}] is {reprlib.repr(identity)}, not a whole number"
    return str(error)
