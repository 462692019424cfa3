"""What is written in a unit is read back exactly, and what is printed is read back to its digits."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from warmset.units import (
    BYTE_UNITS,
    SECOND_UNITS,
    format_bytes,
    format_bytes_binary,
    format_seconds,
    parse_bytes,
    parse_seconds,
)

spaces = st.sampled_from(["", " ", "  "])
HALF_A_DIGIT = Fraction(1, 199)  # of three digits: 9.95 may stand for 10, 1.00 for 1.005


@given(st.integers(0, 10**9), st.sampled_from(sorted(BYTE_UNITS)), spaces)
def test_every_byte_unit(number, unit, space):
    assert parse_bytes(f"{number}{space}{unit}") == number * BYTE_UNITS[unit]


@given(st.integers(0, 10**6), st.integers(0, 999), st.sampled_from(["KB", "MB", "GB", "TB", "PB"]))
def test_decimals_are_exact(whole, thousandths, unit):
    exactly = (whole * 1000 + thousandths) * BYTE_UNITS[unit] // 1000
    assert parse_bytes(f"{whole}.{thousandths:03}{unit}") == exactly


@given(st.integers(0, 10**6), st.sampled_from(sorted(SECOND_UNITS)), spaces)
def test_every_time_unit(number, unit, space):
    duration_s = parse_seconds(f"{number}{space}{unit}")
    assert duration_s == float(number * Fraction(str(SECOND_UNITS[unit])))


@given(st.integers(0, 10**18 - 1))
def test_printed_sizes_are_read_back(size):
    for text in (format_bytes(size), format_bytes_binary(size)):
        number, unit = text.replace(",", "").split()
        back = Fraction(number) * BYTE_UNITS[unit]
        assert abs(back - size) <= HALF_A_DIGIT * size
        if back == int(back):
            assert parse_bytes(f"{number} {unit}") == back


@given(st.integers(1, 10**15).map(lambda nanoseconds: nanoseconds * 1e-6))
def test_printed_durations_are_read_back(duration_s):
    back = parse_seconds(format_seconds(duration_s).replace(",", ""))
    assert abs(back - duration_s) <= float(HALF_A_DIGIT) * duration_s
