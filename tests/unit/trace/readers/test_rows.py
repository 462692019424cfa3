"""Ids of any writing as signed 64-bit numbers, and numbers as logs write them."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmset.trace.readers.id_lists import cut_out
from warmset.trace.readers.log_rows import UnusableRowError
from warmset.trace.readers.rows import milliseconds, signed_ids, token_count


def one(identity: int | str) -> int:
    (signed,) = signed_ids([identity], ())
    return int(signed)


@pytest.mark.parametrize(
    ("written", "signed"),
    [
        (0, 0),
        (-5, -5),
        (2**63 - 1, 2**63 - 1),
        (2**63, -(2**63)),
        (2**64 - 1, -1),
        (-(2**63), -(2**63)),
        ("0000000000000000", 0),
        ("00000000000000ff", 255),
        ("00000000000000FF", 255),
        ("0x00000000000000ff", 255),
        ("7fffffffffffffff", 2**63 - 1),
        ("8000000000000000", -(2**63)),
        ("ffffffffffffffff", -1),
        ("12", 12),
        ("0", 0),
        ("999999999999999999", 999_999_999_999_999_999),
    ],
    ids=repr,
)
def test_what_fits_64_bits_is_kept(written, signed):
    assert one(written) == signed


def test_what_is_longer_is_hashed_and_stays_the_same():
    """blake2b of 8 bytes, little-endian, as `b2sum -l 64` of coreutils has it."""
    assert one("a" * 64) == int.from_bytes(bytes.fromhex("6c0d1add0fa4b6e4"), "little", signed=True)


texts = st.text(min_size=1, max_size=70) | st.from_regex(r"(0x)?[0-9a-f]{1,64}", fullmatch=True)
numbers = st.integers(-(2**300), 2**300)


@given(st.lists(texts, min_size=2, max_size=40, unique=True))
def test_texts_that_differ_have_different_ids(written):
    values = {text.removeprefix("0x").lower() if len(text) in {16, 18} else text for text in written}
    assert len({one(text) for text in written}) >= len(values)


@given(st.lists(numbers, min_size=2, max_size=40, unique=True))
def test_numbers_that_differ_have_different_ids(written):
    apart = {number % 2**64 if -(2**63) <= number < 2**64 else str(number) for number in written}
    assert len({one(number) for number in written}) == len(apart)


@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.from_regex(r"[0-9a-f]{16}", fullmatch=True)))
def test_ids_come_out_as_they_stand_in_the_row(ids):
    class Row(msgspec.Struct):
        hash_ids: list[int | str]

    cut = cut_out(msgspec.json.encode({"hash_ids": ids}))
    row = msgspec.json.decode(cut.text, type=Row)
    signed = signed_ids(row.hash_ids, cut.lists)
    assert signed.dtype == np.int64
    assert signed.tolist() == [one(identity) for identity in ids]


def test_a_list_of_one_large_number_is_not_taken_for_a_place():
    lists = [np.array([7], dtype=np.int64)]
    assert signed_ids([0], lists).tolist() == [7]
    assert signed_ids([2**63], lists).tolist() == [-(2**63)]
    assert signed_ids(["0"], lists).tolist() == [0]
    assert signed_ids([0, 0], lists).tolist() == [0, 0]


@pytest.mark.parametrize("written", ["", 2**513, -(2**513)])
def test_what_is_no_hash(written):
    with pytest.raises(UnusableRowError, match=r"^hash_ids\[0\] is "):
        one(written)


@pytest.mark.parametrize(
    ("seconds", "expected_ms"),
    [
        ("0", 0),
        ("61.114", 61_114),
        (61.114, 61_114),
        (0.0005, 1),
        ("0.00049999", 0),
        (1_711_929_600.123, 1_711_929_600_123),
        ("19440110.0", 19_440_110_000),
        ("1e3", 1_000_000),
        (4.35, 4350),
        (1.005, 1005),
    ],
    ids=repr,
)
def test_seconds_in_milliseconds(seconds, expected_ms):
    assert milliseconds("t", seconds) == expected_ms


@pytest.mark.parametrize(
    "seconds", ["", "now", "NaN", float("nan"), float("inf"), "-Infinity", -1, 10**12, "sNaN"]
)
def test_what_is_no_time(seconds):
    with pytest.raises(UnusableRowError, match=r"^t is "):
        milliseconds("t", seconds)


@pytest.mark.parametrize("cell", ["1.0", "1e3", "", "-", "--1", "1_000", "0x1", "²", "9" * 41, "-5", None])
def test_what_is_no_number_of_tokens(cell):
    with pytest.raises(UnusableRowError, match=r"^n is "):
        token_count("n", cell)


@pytest.mark.parametrize(("cell", "tokens"), [("0", 0), (" 12 ", 12), ("007", 7), ("-0", 0)])
def test_numbers_of_tokens(cell, tokens):
    assert token_count("n", cell) == tokens
