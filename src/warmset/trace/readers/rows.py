"""What logs of a row a request share: decoding, numbers in range, ids of any writing."""

import hashlib
import reprlib
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from warmset.errors import TraceFormatError
from warmset.trace.builder import Name, TraceBuilder
from warmset.trace.forest import UNKNOWN
from warmset.trace.options import ReadOptions
from warmset.trace.readers.block_fit import BlockFit
from warmset.trace.readers.id_lists import cut_out
from warmset.trace.readers.log_rows import UnusableRowError
from warmset.trace.source import NOT_JSON, Input
from warmset.trace.tally import Tally

Int64s = npt.NDArray[np.int64]
Row = TypeVar("Row", bound=msgspec.Struct)
Check = Callable[[Any], str]
"""What is wrong with the value of a field, after its name; nothing if nothing is."""

MAX_TOKENS = 2**40
MAX_MS = 10**14
"""As milliseconds since 1970 the year 5138; what is above counts in a smaller unit."""
EPOCH_MS = 10**11
"""Times from here on count from 1970: as a time from the start of a log it would be three years."""
_LONGEST_ID = 2**512
_HEX_DIGITS = frozenset(string.hexdigits)


# --- decoding --------------------------------------------------------------------------------------


class Decoded(NamedTuple, Generic[Row]):
    """A row, and its lists of ids where they are numbers of 64 bits."""

    number: int
    row: Row
    lists: Sequence[Int64s]


def decode_lines(
    source: Input, kind: type[Row], checks: Mapping[str, Check], tally: Tally
) -> Iterator[Decoded[Row]]:
    """The rows of a file with one a line; blank lines are noted, and what is no such row is dropped.

    `checks` say what its required fields must be, for the message about a row that cannot be used.
    """
    decoder = msgspec.json.Decoder(kind)
    for number, text in source.lines():
        if not text.strip():
            tally.note("blank_lines", f"line {number}")
            continue
        tally.rows += 1
        cut = cut_out(text)
        try:
            row = decoder.decode(cut.text)
        except NOT_JSON as error:
            tally.drop(f"{source.label}:{number}", explain_row(text, error, checks))
            continue
        yield Decoded(number, row, cut.lists)


def explain_row(text: bytes, error: Exception, checks: Mapping[str, Check]) -> str:
    """What is wrong with a row, in the words of its format."""
    try:
        row = msgspec.json.decode(text)
    except NOT_JSON as broken:
        return f"not valid JSON: {broken}"
    if not isinstance(row, dict):
        return "not a JSON object"
    for field, check in checks.items():
        if field not in row:
            return f"{field} is missing"
        wrong = check(row[field])
        if wrong:
            return f"{field}{wrong}"
    return str(error)


def whole_number(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """A check for `explain_row`."""
    is_one = isinstance(value, int) and not isinstance(value, bool)
    return "" if is_one else f" is {reprlib.repr(value)}, not a whole number"


def number(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """A check for `explain_row`."""
    is_one = isinstance(value, int | float) and not isinstance(value, bool)
    return "" if is_one else f" is {reprlib.repr(value)}, not a number"


def name(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """A check for `explain_row`."""
    is_one = isinstance(value, int | str) and not isinstance(value, bool)
    return "" if is_one else f" is {reprlib.repr(value)}, neither a whole number nor text"


def id_list(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """A check for `explain_row`."""
    if not isinstance(value, list):
        return " is not a list"
    for position, identity in enumerate(value):
        if not isinstance(identity, int | str) or isinstance(identity, bool):
            return f"[{position}] is {reprlib.repr(identity)}, neither a whole number nor text"
    return ""


# --- numbers and ids -------------------------------------------------------------------------------


def in_range(field: str, value: float, most: int) -> None:
    """Refuse a number that a log cannot hold.

    Raises: UnusableRowError for one below 0 or above `most`, and for NaN.
    """
    if not 0 <= value <= most:
        raise UnusableRowError(f"{field} is {reprlib.repr(value)}: it must lie between 0 and {most}")


def token_count(field: str, text: str | None) -> int:
    """A number of tokens in a cell of CSV.

    Raises: UnusableRowError where it is none.
    """
    if text is None:
        raise UnusableRowError(f"{field} is missing")
    digits = text.strip()
    if not digits.isascii() or not digits.removeprefix("-").isdigit() or len(digits) > 40:
        raise UnusableRowError(f"{field} is {reprlib.repr(text)}, not a whole number")
    value = int(digits)
    in_range(field, value, MAX_TOKENS)
    return value


def milliseconds(field: str, seconds: float | str) -> int:
    """Seconds as whole milliseconds, exactly from what is written, halves up.

    Raises: UnusableRowError where they are none.
    """
    try:
        decimal = Decimal(str(seconds))
    except ArithmeticError:
        decimal = Decimal("NaN")
    if not decimal.is_finite():
        raise UnusableRowError(f"{field} is {reprlib.repr(seconds)}, not a number of seconds")
    in_range(field, float(decimal), MAX_MS // 1000)
    return int((decimal * 1000).to_integral_value(ROUND_HALF_UP))


def signed_ids(ids: Sequence[int | str], lists: Sequence[Int64s], field: str = "hash_ids") -> Int64s:
    """Ids of a decoded row as signed 64-bit integers: equal where they were equal.

    Raises: UnusableRowError for one that is no hash.
    """
    if len(ids) == 1 and isinstance(ids[0], int) and 0 <= ids[0] < len(lists):
        return lists[ids[0]]  # what `cut_out` left of the list
    return np.array(
        [_signed(identity, f"{field}[{place}]") for place, identity in enumerate(ids)], dtype=np.int64
    )


def _signed(identity: int | str, field: str) -> int:
    """A 64-bit number wrapped; what is longer, hashed."""
    if isinstance(identity, str):
        return _signed_text(identity, field)
    if -(2**63) <= identity < 2**64:
        return _wrapped(identity)
    if abs(identity) > _LONGEST_ID:
        raise UnusableRowError(f"{field} is {reprlib.repr(identity)}: a hash has at most 512 bits")
    return _hashed(str(identity), field)


def _signed_text(identity: str, field: str) -> int:
    digits = identity.removeprefix("0x")
    if len(digits) == 16 and _HEX_DIGITS.issuperset(digits):
        return _wrapped(int(digits, 16))
    if identity.isascii() and identity.isdigit() and len(identity) < 19 and str(int(identity)) == identity:
        return int(identity)
    return _hashed(identity, field)


def _wrapped(unsigned: int) -> int:
    return unsigned - 2**64 if unsigned >= 2**63 else unsigned


def _hashed(text: str, field: str) -> int:
    if not text:
        raise UnusableRowError(f"{field} is empty")
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


# --- rows into the builder -------------------------------------------------------------------------


class OneEpoch:
    """Holds all times of an import to one start: 1970, or that of the log."""

    def __init__(self, builder: TraceBuilder) -> None:
        self._builder = builder
        self._is_known = False

    def check(self, field: str, arrival_ms: int) -> None:
        """The first time decides.

        Raises: UnusableRowError for one out of range, or that counts from the other start.
        """
        in_range(field, arrival_ms, MAX_MS)
        is_epoch = arrival_ms >= EPOCH_MS
        if not self._is_known:
            self._is_known = True
            self._builder.times_are_epoch = is_epoch
        elif is_epoch != self._builder.times_are_epoch:
            here, before = ("1970", "the start of the log") if is_epoch else ("the start of the log", "1970")
            raise UnusableRowError(f"{field} counts from {here}, and from {before} before: bring all to one")


class DeclaredSize:
    """The block size that rows name themselves: one for the whole import."""

    def __init__(self, field: str, builder: TraceBuilder, options: ReadOptions) -> None:
        self._field = field
        self._builder = builder
        self._given_tokens = options.block_tokens
        self._declared_tokens: int | None = None

    def check(self, size: int | None, place: str) -> None:
        """The first size named is the trace's; rows without one have that, or what was given.

        Raises: TraceFormatError where it is not what was given; UnusableRowError where it is not that of
        the rows before, or is unknown.
        """
        if size is None:
            if self._declared_tokens is None and self._given_tokens is None:
                raise UnusableRowError(f"{self._field} is missing: add it, or give --block-tokens")
        elif self._declared_tokens is None:
            if not 1 <= size <= MAX_TOKENS:
                raise UnusableRowError(f"{self._field} is {reprlib.repr(size)}: it must be at least 1")
            if self._given_tokens not in {None, size}:
                raise TraceFormatError(
                    f"{place}: {self._field} is {size}: leave --block-tokens {self._given_tokens} out, "
                    "and reblock the trace"
                )
            self._declared_tokens = self._builder.block_tokens = size
        elif size != self._declared_tokens:
            raise UnusableRowError(
                f"{self._field} is {reprlib.repr(size)}, and {self._declared_tokens} before: "
                "import the rows of each size apart"
            )


class RowTaker:
    """Rows of one file into the builder, and what is odd about rows of any format."""

    def __init__(
        self, source: Input, builder: TraceBuilder, noun: str = "line", *, is_in_order: bool = True
    ) -> None:
        self.fit = BlockFit(source.label, noun)
        self.builder = builder
        self._is_in_order = is_in_order
        self._noun = noun
        self._source = source
        self._last_ms = -1

    def place(self, number: int) -> str:
        """FILE:LINE."""
        return f"{self._source.label}:{number}"

    def drop(self, number: int, why: str) -> None:
        """Count a row that cannot be used."""
        self.builder.tally.drop(self.place(number), why)

    def note(self, code: str, number: int, detail: str = "") -> None:
        """Count something odd."""
        self.builder.tally.note(code, f"{self._noun} {number}" + (f": {detail}" if detail else ""))

    def take(
        self,
        number: int,
        *,
        arrival_ms: int,
        input_tokens: int,
        output_tokens: int | None,
        ids: Int64s | None = None,
        session: Name | None = None,
        kind: str | None = None,
        model: str | None = None,
        key: Name | None = None,
        previous_key: Name | None = None,
        think_ms: int = UNKNOWN,
        duration_ms: int = UNKNOWN,
        cached_tokens: int = UNKNOWN,
    ) -> None:
        """One row; as `TraceBuilder.add`, and an answer of unknown length is noted."""
        if self._is_in_order and arrival_ms < self._last_ms:
            self.note("unsorted_rows", number, f"timestamp {arrival_ms} after {self._last_ms}")
        if input_tokens == 0:
            self.note("empty_prompts", number)
        if output_tokens is None:
            self.note("unknown_output", number, "the length of its answer is unknown, and taken as 0")
        elif output_tokens == 0:
            self.note("no_output", number)
        self._last_ms = arrival_ms
        self.builder.add(
            arrival_ms=arrival_ms,
            input_tokens=input_tokens,
            output_tokens=output_tokens or 0,
            ids=ids,
            session=session,
            kind=kind,
            model=model,
            key=key,
            previous_key=previous_key,
            think_ms=think_ms,
            duration_ms=duration_ms,
            cached_tokens=cached_tokens,
        )
