"""Lists of block ids cut out of a line of JSON before it is decoded.

Nearly all of a log with ids is ids. Parsed here they become numbers of 8 bytes, at the speed of a scan; as
Python integers they would cost four times the memory and most of the time.
"""

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

Int64s = npt.NDArray[np.int64]
_BLANK = (32, 9, 10, 13)
_COLON, _OPEN, _CLOSE, _COMMA, _MINUS, _ZERO, _NINE = (ord(sign) for sign in ":[],-09")
_MOST_TENTH = 2**63 // 10


class IdLists(NamedTuple):
    """A line without its lists of ids: in `text`, each is a list of one number, its place in `lists`."""

    text: bytes
    lists: list[Int64s]


def cut_out(line: bytes, field: str = "hash_ids") -> IdLists:
    """Every `"FIELD": [...]` of whole numbers of 64 bits; any other value stays where it is."""
    mark = f'"{field}"'.encode()
    codes = np.frombuffer(line, dtype=np.uint8)
    scratch = np.empty(len(line) // 2 + 1, dtype=np.int64)
    kept: list[bytes] = []
    lists: list[Int64s] = []
    copied = 0
    filled = 0
    position = line.find(mark)
    while position >= 0:
        start, end, count = _parse(codes, position + len(mark), scratch, filled)
        if end < 0 or line[position - 1 : position] == b"\\":  # no list of ids, or the end of another key
            position = line.find(mark, position + len(mark))
            continue
        kept += (line[copied:start], b"[%d]" % len(lists))
        lists.append(scratch[filled : filled + count])
        filled += count
        copied = end
        position = line.find(mark, end)
    kept.append(line[copied:])
    return IdLists(b"".join(kept), lists)


@numba.njit(cache=True)
def _parse(codes: npt.NDArray[np.uint8], after_key: int, out: Int64s, filled: int) -> tuple[int, int, int]:
    """Where the list after a key opens, the place behind it, and how many numbers were written to `out`.

    The second is -1 where what follows is not a list of whole numbers that fit.
    """
    position = _past_blanks(codes, after_key)
    if position >= codes.size or codes[position] != _COLON:
        return 0, -1, 0
    start = _past_blanks(codes, position + 1)
    if start >= codes.size or codes[start] != _OPEN:
        return 0, -1, 0
    position = _past_blanks(codes, start + 1)
    if position < codes.size and codes[position] == _CLOSE:
        return start, position + 1, 0
    count = 0
    while position < codes.size:
        is_negative = codes[position] == _MINUS
        position += is_negative
        first = position
        number = np.int64(0)
        while position < codes.size and _ZERO <= codes[position] <= _NINE:
            digit = np.int64(codes[position]) - _ZERO
            if number < 0 or number > _MOST_TENTH or (number == _MOST_TENTH and digit > 7 + is_negative):
                return 0, -1, 0
            number = number * 10 + digit  # -2**63 comes about by wrapping, and is its own negative
            position += 1
        if position == first or (codes[first] == _ZERO and position > first + 1):
            return 0, -1, 0
        out[filled + count] = -number if is_negative else number
        count += 1
        position = _past_blanks(codes, position)
        if position < codes.size and codes[position] == _CLOSE:
            return start, position + 1, count
        if position >= codes.size or codes[position] != _COMMA:
            return 0, -1, 0
        position = _past_blanks(codes, position + 1)
    return 0, -1, 0


@numba.njit(cache=True, inline="always")
def _past_blanks(codes: npt.NDArray[np.uint8], position: int) -> int:
    while position < codes.size and codes[position] in _BLANK:
        position += 1
    return position
