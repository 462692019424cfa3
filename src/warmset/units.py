"""Parse and print bytes, seconds, counts, rates and money. The only place that rounds for people.

`GB` is 10^9 bytes and `GiB` is 2^30, in input and in output. A size without a unit is refused.
"""

import re
from decimal import Decimal, InvalidOperation

from warmset.errors import InputError

BYTE_UNITS = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "PB": 10**15,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
    "PiB": 2**50,
}
HOURS_PER_YEAR = 8760
SECOND_UNITS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}

ROUNDS_UP = 0.9995
"""From this share of a unit on, three digits round up to a whole one."""

_QUANTITY = re.compile(r"\s*([0-9][0-9_]*(?:\.[0-9]+)?|\.[0-9]+)\s*([A-Za-zµ]*)\s*")
_BYTES_BY_FOLDED_UNIT = {unit.lower(): size for unit, size in BYTE_UNITS.items()}


def parse_bytes(text: str) -> int:
    """Bytes of a size such as `1TiB`, `14 TB` or `512MiB`.

    Raises: InputError when the unit is missing or unknown, or the size is not a whole number of bytes.

    >>> parse_bytes("1TiB")
    1099511627776
    >>> parse_bytes("1.5 GB")
    1500000000
    """
    number, unit = _split(text, "size", "1TiB")
    if not unit:
        raise InputError(
            f"size {text!r} has no unit: write {text.strip()}B (bytes), {text.strip()}GB (10^9) or "
            f"{text.strip()}GiB (2^30)"
        )
    factor = _BYTES_BY_FOLDED_UNIT.get(unit.lower())
    if factor is None:
        raise InputError(f"size {text!r}: unit {unit!r} is not one of {', '.join(BYTE_UNITS)}")
    size = number * factor
    if size != size.to_integral_value():
        raise InputError(f"size {text!r} is not a whole number of bytes")
    return int(size)


def parse_logged_bytes(text: str) -> int:
    """Bytes of a size as logs print it, with more decimals than whole bytes have; rounded down.

    Raises: InputError when the unit is missing or unknown.

    >>> parse_logged_bytes("80.53 GiB")
    86468429086
    """
    number, unit = _split(text, "size", "1TiB")
    return int(number * parse_bytes(f"1{unit}")) if unit else parse_bytes(text)


def parse_seconds(text: str) -> float:
    """Seconds of a duration such as `5s`, `60ms` or `1h`.

    >>> parse_seconds("60ms")
    0.06
    """
    number, unit = _split(text, "duration", "60ms")
    factor = SECOND_UNITS.get(unit)
    if factor is None:
        raise InputError(f"duration {text!r}: unit {unit!r} is not one of {', '.join(SECOND_UNITS)}")
    return float(number * Decimal(str(factor)))


def _split(text: str, what: str, example: str) -> tuple[Decimal, str]:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise InputError(f"{what} {text!r} cannot be read: write a number and a unit, such as {example}")
    try:
        return Decimal(match[1].replace("_", "")), match[2]
    except InvalidOperation as error:
        raise InputError(
            f"{what} {text!r} cannot be read: write a number and a unit, such as {example}"
        ) from error


def format_bytes(size_bytes: float) -> str:
    """A size in the largest decimal unit that leaves at least one whole.

    >>> format_bytes(192512)
    '193 kB'
    """
    return _scaled(size_bytes, ("PB", "TB", "GB", "MB", "kB")) or f"{size_bytes:,.0f} B"


def format_bytes_binary(size_bytes: float) -> str:
    """A size in the largest binary unit that leaves at least one whole.

    >>> format_bytes_binary(131072)
    '128 KiB'
    """
    return _scaled(size_bytes, ("PiB", "TiB", "GiB", "MiB", "KiB")) or f"{size_bytes:,.0f} B"


def format_seconds(duration_s: float) -> str:
    """A duration in the unit a person would use.

    >>> format_seconds(0.0423)
    '42.3 ms'
    """
    if duration_s != 0 and abs(duration_s) < 1e-3:
        return f"{_three_digits(duration_s * 1e6)} µs"
    if abs(duration_s) < 1:
        return f"{_three_digits(duration_s * 1e3)} ms"
    if abs(duration_s) < 120:
        return f"{_three_digits(duration_s)} s"
    if abs(duration_s) < 7200:
        return f"{_three_digits(duration_s / 60)} min"
    if abs(duration_s) < 2 * 86400:
        return f"{_three_digits(duration_s / 3600)} h"
    return f"{_three_digits(duration_s / 86400)} d"


def format_count(count: float) -> str:
    """A count with thousands separated, or in millions and billions where it is long.

    >>> format_count(12031)
    '12,031'
    >>> format_count(999_885_952)
    '1.00 B'
    """
    for suffix, factor, least_count in (
        ("T", 1e12, ROUNDS_UP * 1e12),
        ("B", 1e9, ROUNDS_UP * 1e9),
        ("M", 1e6, 1e6),
    ):
        if abs(count) >= least_count:
            return f"{_three_digits(count / factor)} {suffix}"
    return f"{count:,.0f}" if abs(count) >= 100 or count == int(count) else _three_digits(count)


def format_flops(flops: float) -> str:
    """Floating-point operations with an SI prefix."""
    for prefix, factor in (("E", 1e18), ("P", 1e15), ("T", 1e12), ("G", 1e9)):
        if abs(flops) >= factor:
            return f"{_three_digits(flops / factor)} {prefix}FLOP"
    return f"{flops:,.0f} FLOP"


def format_percent(share: float) -> str:
    """A share as percent with one decimal.

    >>> format_percent(0.373624)
    '37.4 %'
    """
    return f"{100 * share:.1f} %"


def format_money(amount: float, currency: str) -> str:
    """An amount in one named currency."""
    if abs(amount) >= 100:
        return f"{amount:,.0f} {currency}"
    return f"{amount:,.2f} {currency}"


def _scaled(size_bytes: float, units: tuple[str, ...]) -> str:
    """In the first of the units, from the largest down, that leaves a whole one; empty where none does."""
    for unit in units:
        if abs(size_bytes) >= BYTE_UNITS[unit]:
            return f"{_three_digits(size_bytes / BYTE_UNITS[unit])} {unit}"
    return ""


def _three_digits(number: float) -> str:
    if number == int(number) and abs(number) < 1e6:
        return f"{number:,.0f}"
    if abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{number:.1f}" if abs(number) >= 10 else f"{number:.2f}"
