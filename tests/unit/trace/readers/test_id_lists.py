"""Lists of ids cut out of a line before it is decoded: what is left and what was taken are the line."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmset.trace.readers.id_lists import cut_out


def put_back(value: Any, lists: list[list[int]], *, is_ids: bool = False) -> Any:
    """The line as it was: each list of one number under the key is a place, unless it was left as it was."""
    if isinstance(value, dict):
        return {field: put_back(inner, lists, is_ids=field == "hash_ids") for field, inner in value.items()}
    if isinstance(value, list):
        if is_ids and len(value) == 1 and type(value[0]) is int and 0 <= value[0] < len(lists):
            return lists[value[0]]
        return [put_back(inner, lists) for inner in value]
    return value


def whole(line: bytes) -> Any:
    """The line decoded from its parts."""
    cut = cut_out(line)
    return put_back(msgspec.json.decode(cut.text), [ids.tolist() for ids in cut.lists])


# --- any JSON --------------------------------------------------------------------------------------

# Texts that hold the key, with the marks around it that JSON has to escape.
TEXTS = st.one_of(
    st.sampled_from(
        ["hash_ids", '"hash_ids"', '"hash_ids": [1, 2]', 'x"hash_ids', '\\"hash_ids', "\\", "hash_ids\\", '"']
    ),
    st.text(max_size=5),
)
FITTING = st.one_of(
    st.integers(-3, 300),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([-(2**63), 2**63 - 1, -(2**63) + 1, 10**18, 922337203685477580, -922337203685477581]),
)
TOO_LARGE = st.sampled_from([2**63, -(2**63) - 1, 2**64, 10**40, 9223372036854775810, -9223372036854775810])
SCALARS = st.one_of(
    st.none(), st.booleans(), FITTING, TEXTS, st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(st.one_of(st.just("hash_ids"), TEXTS), inner, max_size=4),
        st.fixed_dictionaries({"hash_ids": st.lists(FITTING, max_size=6)}),
        st.fixed_dictionaries({"hash_ids": st.lists(st.one_of(FITTING, TOO_LARGE, SCALARS), max_size=4)}),
        st.fixed_dictionaries({"hash_ids": inner, "requests": st.lists(inner, max_size=3)}),
    ),
    max_leaves=20,
)


@st.composite
def lines(draw: st.DrawFn, value: Any = None) -> bytes:
    """A value as JSON, with blanks where JSON allows them."""
    value = draw(VALUES)
    indent = draw(st.sampled_from([None, 0, 1, "\t"]))
    comma = draw(st.sampled_from([",", ", ", " ,\t", "\n,\r\n"]))
    colon = draw(st.sampled_from([":", ": ", " :\n", "\t:\r "]))
    text = json.dumps(value, indent=indent, separators=(comma, colon), ensure_ascii=draw(st.booleans()))
    blanks = draw(st.sampled_from(["", " ", "\n", "\t\r\n"]))
    return f"{blanks}{text}{blanks}".encode("utf-8", "replace")


@given(lines())
def test_the_parts_are_the_line(line):
    assert whole(line) == msgspec.json.decode(line)


def lists_in(value: Any) -> list[list[int]]:
    """Lists under the key that are of whole numbers of 64 bits, in order of the text."""
    found = []
    if isinstance(value, dict):
        for field, inner in value.items():
            numbers = isinstance(inner, list) and all(type(each) is int for each in inner)
            if field == "hash_ids" and numbers and all(-(2**63) <= each < 2**63 for each in inner):
                found.append(inner)
            else:
                found += lists_in(inner)
    elif isinstance(value, list):
        for inner in value:
            found += lists_in(inner)
    return found


@given(VALUES)
def test_what_is_cut_out_is_every_list_of_ids_and_no_other(value):
    line = json.dumps(value).encode()
    assert [ids.tolist() for ids in cut_out(line).lists] == lists_in(json.loads(line))


@given(
    st.binary(max_size=60)
    | st.lists(st.sampled_from([b'"hash_ids"', *map(bytes, zip(b'[]{}:,- 019".e\\'))])).map(b"".join)
)
def test_bytes_that_are_no_json_stay_what_they_were(line):
    """Nothing is read past the end, and a line that cannot be decoded cannot be decoded afterwards either."""
    cut = cut_out(line)
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
            msgspec.json.decode(cut.text)
    else:
        assert put_back(msgspec.json.decode(cut.text), [ids.tolist() for ids in cut.lists]) == value


# --- by hand ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "text", "lists"),
    [
        (b'{"hash_ids": [1, 2, 3]}', b'{"hash_ids": [0]}', [[1, 2, 3]]),
        (b'{"hash_ids":[]}', b'{"hash_ids":[0]}', [[]]),
        (b'{"hash_ids":[ ]}', b'{"hash_ids":[0]}', [[]]),
        (b'{"hash_ids" : [ 7 ] , "a": [1]}', b'{"hash_ids" : [0] , "a": [1]}', [[7]]),
        (b'{"hash_ids":[\n1,\r\n\t2\n]}', b'{"hash_ids":[0]}', [[1, 2]]),
        (b'[{"hash_ids":[5]},{"hash_ids":[6,7]}]', b'[{"hash_ids":[0]},{"hash_ids":[1]}]', [[5], [6, 7]]),
        (b'{"hash_ids":[-1,0,-0]}', b'{"hash_ids":[0]}', [[-1, 0, 0]]),
        (b'{"hash_ids":[9223372036854775807]}', b'{"hash_ids":[0]}', [[2**63 - 1]]),
        (b'{"hash_ids":[-9223372036854775808]}', b'{"hash_ids":[0]}', [[-(2**63)]]),
    ],
)
def test_lists_of_ids(line, text, lists):
    cut = cut_out(line)
    assert cut.text == text
    assert [ids.tolist() for ids in cut.lists] == lists
    assert all(ids.dtype.str == "<i8" for ids in cut.lists)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b'{"hash_ids": null}',
        b'{"hash_ids": 5}',
        b'{"hash_ids": {"0": 1}}',
        b'{"hash_ids": "[1, 2]"}',
        b'{"hash_ids": [1.0]}',
        b'{"hash_ids": [1, 2.5]}',
        b'{"hash_ids": [1e3]}',
        b'{"hash_ids": ["1"]}',
        b'{"hash_ids": [true]}',
        b'{"hash_ids": [null]}',
        b'{"hash_ids": [1, [2]]}',
        b'{"hash_ids": [[1]]}',
        b'{"hash_ids": [9223372036854775808]}',
        b'{"hash_ids": [-9223372036854775809]}',
        b'{"hash_ids": [1, 18446744073709551616]}',
        b'{"hash_ids": [1, 99999999999999999999999999999999999999]}',
        b'{"hash_ids": [01]}',
        b'{"hash_ids": [-]}',
        b'{"hash_ids": [1,]}',
        b'{"hash_ids": [,1]}',
        b'{"hash_ids": [1 2]}',
        b'{"hash_ids": [1',
        b'{"hash_ids": [1,',
        b'{"hash_ids": [',
        b'{"hash_ids":',
        b'{"hash_ids"',
        b'{"hash_ids" [1]}',
        b'["hash_ids", [1]]',
        b'{"a": "\\"hash_ids\\": [1, 2]"}',
        b'{"x\\"hash_ids": [1, 2]}',
        b'{"hash_idss": [1]}',
        b'{"Hash_ids": [1]}',
    ],
)
def test_anything_else_stays(line):
    assert cut_out(line) == (line, [])


def test_numbers_do_not_wrap():
    """Digits past 64 bits, from the largest that fits upwards."""
    for number in (*range(2**63 - 12, 2**63 + 12), *range(2**64 - 3, 2**64 + 3), 10**19, 10**20):
        for signed in (number, -number):
            cut = cut_out(b'{"hash_ids":[%d]}' % signed)
            fits = -(2**63) <= signed < 2**63
            assert [ids.tolist() for ids in cut.lists] == ([[signed]] if fits else [])


def test_a_long_list():
    ids = list(range(0, 2**40, 2**40 // 200_000))
    cut = cut_out(json.dumps({"a": 1, "hash_ids": ids, "b": 2}).encode())
    assert msgspec.json.decode(cut.text) == {"a": 1, "hash_ids": [0], "b": 2}
    assert cut.lists[0].tolist() == ids
