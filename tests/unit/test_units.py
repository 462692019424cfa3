"""Sizes, durations and numbers as people write and read them."""

import pytest

from warmset.errors import InputError
from warmset.units import (
    format_bytes,
    format_bytes_binary,
    format_count,
    format_flops,
    format_money,
    format_percent,
    format_seconds,
    parse_bytes,
    parse_seconds,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("1GB", 1_000_000_000),
        ("1GiB", 1_073_741_824),
        ("14TB", 14_000_000_000_000),
        ("1TiB", 1_099_511_627_776),
        ("1PB", 10**15),
        ("1PiB", 2**50),
        ("7B", 7),
        ("1kB", 1000),
        ("1KB", 1000),
        ("1KiB", 1024),
        ("1.5 GB", 1_500_000_000),
        ("0.5KiB", 512),
        (".5KiB", 512),
        ("  3 MB  ", 3_000_000),
        ("1_000MB", 10**9),
        ("2gib", 2 * 2**30),
        ("0GB", 0),
        ("1.1TB", 1_100_000_000_000),
    ],
)
def test_sizes(text, size):
    assert parse_bytes(text) == size


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("512", "has no unit: write 512B (bytes), 512GB (10^9) or 512GiB (2^30)"),
        ("1 parsec", "unit 'parsec' is not one of B, kB"),
        ("0.5B", "not a whole number of bytes"),
        ("1.0001KiB", "not a whole number of bytes"),
        ("-1GB", "cannot be read"),
        ("", "cannot be read"),
        ("GB", "cannot be read"),
        ("1e3GB", "cannot be read"),
        ("1,000GB", "cannot be read"),
        ("nan GB", "cannot be read"),
        ("1GB 2GB", "cannot be read"),
        ("１TB", "cannot be read"),
    ],
    ids=[
        "no_unit",
        "unknown_unit",
        "half_a_byte",
        "fraction",
        "negative",
        "empty",
        "no_number",
        "exponent",
        "comma",
        "nan",
        "two",
        "full_width_digit",
    ],
)
def test_sizes_that_are_refused(text, says):
    with pytest.raises(InputError) as error:
        parse_bytes(text)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "duration_s"),
    [
        ("60ms", 0.06),
        ("5s", 5.0),
        ("2 min", 120.0),
        ("1h", 3600.0),
        ("1.5d", 129_600.0),
        ("7us", 7e-6),
        ("7 µs", 7e-6),
        ("0s", 0.0),
        ("0.1s", 0.1),
    ],
)
def test_durations(text, duration_s):
    assert parse_seconds(text) == duration_s


@pytest.mark.parametrize("text", ["5", "-1s", "5 sec", "5S", "s", "", "5e3s", "1m"])
def test_durations_that_are_refused(text):
    with pytest.raises(InputError, match=r"duration '.*'"):
        parse_seconds(text)


@pytest.mark.parametrize(
    ("size", "decimal", "binary"),
    [
        (0, "0 B", "0 B"),
        (999, "999 B", "999 B"),
        (192_512, "193 kB", "188 KiB"),
        (70_272, "70.3 kB", "68.6 KiB"),
        (2**30, "1.07 GB", "1 GiB"),
        (10**9, "1 GB", "954 MiB"),
        (2**40, "1.10 TB", "1 TiB"),
        (-1500, "-1.50 kB", "-1.46 KiB"),
        (12_345e15, "12,345 PB", "10,965 PiB"),
    ],
)
def test_sizes_for_people(size, decimal, binary):
    assert format_bytes(size) == decimal
    assert format_bytes_binary(size) == binary


@pytest.mark.parametrize(
    ("duration_s", "text"),
    [
        (0, "0 ms"),
        (42.3e-6, "42.3 µs"),
        (0.0423, "42.3 ms"),
        (-0.5, "-500 ms"),
        (1, "1 s"),
        (59.5, "59.5 s"),
        (120, "2 min"),
        (5400, "90 min"),
        (7200, "2 h"),
        (2 * 86400, "2 d"),
        (1e9, "11,574 d"),
    ],
)
def test_durations_for_people(duration_s, text):
    assert format_seconds(duration_s) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0"),
        (0.5, "0.50"),
        (99.5, "99.5"),
        (123.4, "123"),
        (12031, "12,031"),
        (-12031, "-12,031"),
        (85.4e6, "85.4 M"),
        (1.5e9, "1.50 B"),
        (2e12, "2 T"),
    ],
)
def test_counts_for_people(count, text):
    assert format_count(count) == text


@pytest.mark.parametrize(
    ("flops", "text"),
    [(0, "0 FLOP"), (123, "123 FLOP"), (1.5e12, "1.50 TFLOP"), (-4e12, "-4 TFLOP"), (3e18, "3 EFLOP")],
)
def test_operations_for_people(flops, text):
    assert format_flops(flops) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0.0 %"), (0.373624, "37.4 %"), (1, "100.0 %"), (-0.05, "-5.0 %"), (2.5, "250.0 %")],
)
def test_shares_for_people(share, text):
    assert format_percent(share) == text


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "0.00 CNY"), (1.5, "1.50 CNY"), (-20.25, "-20.25 CNY"), (1_234_567.8, "1,234,568 CNY")],
)
def test_money_names_its_currency(amount, text):
    assert format_money(amount, "CNY") == text
