"""Mooncake JSONL: `timestamp` (ms), `input_length`, `output_length` (tokens), `hash_ids` (prefix block ids).

One id covers `block_tokens` input tokens, the last one what is left: `ceil(input_length / block)` ids a row.
Source: kvcache-ai/Mooncake, FAST25-release/traces.
"""

import reprlib
from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from warmset.errors import TraceFormatError
from warmset.trace.builder import TraceBuilder
from warmset.trace.options import ReadOptions
from warmset.trace.source import NOT_JSON, Head, Input
from warmset.trace.tally import Tally

TITLE = "Mooncake JSONL"
MOONCAKE_BLOCK_TOKENS = 512
MAX_TOKENS = 2**40
MAX_ARRIVAL_MS = 2**53
_FIT_SHARE = 0.5
"""Where a smaller share of the rows has as many ids as its length asks for, the block size is in doubt."""
_CLOSE = 0.9
"""A block size at least this near to the one that the rows suggest is not refused."""


class _Row(msgspec.Struct):
    timestamp: int
    input_length: int
    output_length: int
    hash_ids: list[int]
    session_id: int | str | None = None


def matches(head: Head) -> bool:
    """Rows with hash ids and a time in whole milliseconds."""
    return bool(head.rows) and {"timestamp", "input_length", "hash_ids"} <= set(head.rows[0])


def read(inputs: Sequence[Input], options: ReadOptions, tally: Tally) -> TraceBuilder:
    """All rows; odd ones are kept and counted, unusable ones dropped and counted.

    Raises: TraceFormatError where the block size contradicts most rows.
    """
    block_tokens = options.block_tokens or MOONCAKE_BLOCK_TOKENS
    builder = TraceBuilder(block_tokens, tally)
    for source in inputs:
        _Reader(source, builder).read()
    return builder


class _Reader:
    """Rows of one file into the builder, and what was odd about them."""

    def __init__(self, source: Input, builder: TraceBuilder) -> None:
        self.source = source
        self.builder = builder
        self.block_tokens = builder.block_tokens
        self.tally = builder.tally
        self.line = 0
        self.last_ms = -1
        self.lengths: list[tuple[int, int]] = []

    def read(self) -> None:
        """Take every line."""
        decoder = msgspec.json.Decoder(_Row)
        for line, text in self.source.lines():
            self.line = line
            if not text.strip():
                self._note("blank_lines")
                continue
            self.tally.rows += 1
            try:
                row = decoder.decode(text)
            except NOT_JSON as error:
                self._drop(explain_row(text, error))
                continue
            self._take(row)
        self._check_block_size()

    def _take(self, row: _Row) -> None:
        wrong = _out_of_range(row)
        if wrong:
            self._drop(wrong)
            return
        self._note_oddities(row)
        self.last_ms = row.timestamp
        self.lengths.append((len(row.hash_ids), row.input_length))
        self.builder.add(
            arrival_ms=row.timestamp,
            input_tokens=row.input_length,
            output_tokens=row.output_length,
            ids=row.hash_ids,
            session=row.session_id,
        )

    def _note_oddities(self, row: _Row) -> None:
        if row.timestamp < self.last_ms:
            self._note("unsorted_rows", f"timestamp {row.timestamp} after {self.last_ms}")
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
        num_ids, input_tokens = np.array(self.lengths, dtype=np.int64).reshape(-1, 2).T
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
            f"{self.source.label}: {num_ids.size - fitting} of {num_ids.size} rows have another number of "
            f"hash_ids than {self.block_tokens}-token blocks need: try --block-tokens {nearest}"
        )
        raise TraceFormatError(message)

    def _drop(self, why: str) -> None:
        self.tally.drop(f"{self.source.label}:{self.line}", why)

    def _note(self, code: str, detail: str = "") -> None:
        self.tally.note(code, f"line {self.line}" + (f": {detail}" if detail else ""))


def _out_of_range(row: _Row) -> str:
    """What is wrong with the numbers of a row, or nothing."""
    limits = {"timestamp": MAX_ARRIVAL_MS, "input_length": MAX_TOKENS, "output_length": MAX_TOKENS}
    for field, most in limits.items():
        value = getattr(row, field)
        if not 0 <= value <= most:
            return f"{field} is {reprlib.repr(value)}: it must lie between 0 and {most}"
    if row.hash_ids and not -(2**63) <= min(row.hash_ids) <= max(row.hash_ids) < 2**63:
        return "hash_ids holds a number that does not fit a signed 64-bit integer"
    return ""


def _rows_that_fit(
    block_tokens: int, num_ids: npt.NDArray[np.int64], input_tokens: npt.NDArray[np.int64]
) -> int:
    """Rows with one id a block; logs differ in whether a partial last block has one too."""
    full_blocks = input_tokens // block_tokens
    return int(np.count_nonzero((num_ids == full_blocks) | (num_ids == -(-input_tokens // block_tokens))))


def explain_row(text: bytes, error: Exception) -> str:
    """What is wrong with a row, in the words of the format."""
    try:
        row = msgspec.json.decode(text)
    except NOT_JSON as broken:
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
