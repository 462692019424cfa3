"""The Mooncake reader: what it reads, what it counts, what it refuses and where."""

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest

from tests.support.traces import mooncake_row, read_mooncake, write_rows
from warmset.errors import InputError, TraceFormatError

GOOD = json.dumps(mooncake_row()).encode()


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def refusal(path: Path, **options: int) -> str:
    """The one line that says what is wrong with this file."""
    with pytest.raises(InputError) as caught:
        read_mooncake(path, **options)
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 500
    assert text.startswith(str(path))
    assert isinstance(caught.value, TraceFormatError)
    return text.removeprefix(str(path))


def findings(path: Path, **options: int) -> dict[str, tuple[int, str]]:
    return {
        finding.code: (finding.count, finding.first_example)
        for finding in read_mooncake(path, **options).findings
    }


# --- good files ------------------------------------------------------------------------------------


def test_columns(tmp_path):
    path = write_rows(
        tmp_path / "trace.jsonl",
        mooncake_row(timestamp=0, input_length=600, output_length=7, hash_ids=[10, 11]),
        mooncake_row(timestamp=3000, input_length=1100, output_length=8, hash_ids=[10, 12, 13]),
    )
    trace = read_mooncake(path)
    assert trace.block_tokens == 512
    assert trace.arrival_ms.tolist() == [0, 3000]
    assert trace.input_tokens.tolist() == [600, 1100]
    assert trace.output_tokens.tolist() == [7, 8]
    assert trace.num_blocks.tolist() == [2, 3]
    assert trace.node_parent.tolist() == [-1, 0, 0, 2]
    assert trace.node_depth.tolist() == [1, 2, 2, 3]
    assert trace.leaf.tolist() == [1, 3]
    assert trace.session is None
    assert trace.findings == ()
    assert trace.provenance.name == "trace.jsonl"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("plain", GOOD + b"\n" + GOOD + b"\n"),
        ("no_final_newline", GOOD + b"\n" + GOOD),
        ("crlf", GOOD + b"\r\n" + GOOD + b"\r\n"),
        ("byte_order_mark", b"\xef\xbb\xbf" + GOOD + b"\n" + GOOD + b"\n"),
        ("leading_space", b"  " + GOOD + b" \n\t" + GOOD + b"\n"),
    ],
)
def test_ends_of_lines(tmp_path, name, content):
    trace = read_mooncake(write(tmp_path / name, content))
    assert (trace.num_requests, trace.num_nodes, trace.findings) == (2, 2, ())


def test_fields_that_are_not_needed_are_ignored(tmp_path):
    trace = read_mooncake(write_rows(tmp_path / "t", mooncake_row(type="chat", chat_id=3)))
    assert trace.num_requests == 1


@pytest.mark.parametrize("identity", [-1, -(2**63), 2**63 - 1, 2**40])
def test_an_id_is_a_name_and_any_whole_number_of_64_bits_will_do(tmp_path, identity):
    path = write_rows(
        tmp_path / "t", mooncake_row(hash_ids=[identity, 5]), mooncake_row(hash_ids=[identity, 6])
    )
    assert read_mooncake(path).node_parent.tolist() == [-1, 0, 0]


def test_turns_go_on_from_the_turn_before(tmp_path):
    turns = [("a", 1), ("b", 1), ("a", 2), ("b", 3), ("a", None)]
    path = write_rows(
        tmp_path / "t",
        *(mooncake_row(timestamp=n, session_id=name, turn=turn) for n, (name, turn) in enumerate(turns)),
    )
    trace = read_mooncake(path)
    assert trace.previous.tolist() == [-1, -1, 0, -1, -1]
    assert findings(path) == {"lost_previous": (1, "row 4 goes on from \"'b'/2\", which is not there")}


def test_times_since_1970_start_the_trace_at_0(tmp_path):
    times = [1_712_000_000_123, 1_712_000_000_223]
    trace = read_mooncake(write_rows(tmp_path / "t", *(mooncake_row(timestamp=ms) for ms in times)))
    assert trace.arrival_ms.tolist() == [0, 100]
    assert trace.provenance.epoch_ms == 1_712_000_000_123


def test_two_clocks_are_two_logs(tmp_path):
    path = write_rows(tmp_path / "t", mooncake_row(timestamp=1_712_000_000_123), mooncake_row(timestamp=0))
    says = ":2: timestamp counts from the start of the log, and from 1970 before: bring all to one"
    assert refusal(path) == says


def test_sessions_are_numbered_in_order_of_arrival(tmp_path):
    names = ["b", "a", 1, "1", "b"]
    path = write_rows(tmp_path / "t", *(mooncake_row(session_id=name) for name in names))
    assert read_mooncake(path).session.tolist() == [0, 1, 2, 3, 0]


def test_sessions_of_some_rows_only_are_left_out_and_counted(tmp_path):
    path = write_rows(tmp_path / "t", mooncake_row(session_id="a"), mooncake_row(), mooncake_row())
    assert read_mooncake(path).session is None
    assert findings(path) == {"unnamed_sessions": (2, "rows without a session; sessions are left out")}


# --- odd rows are kept and counted -----------------------------------------------------------------


def test_rows_out_of_order_are_sorted_and_ties_keep_file_order(tmp_path):
    times = [5, 3, 5, 3, 9, 1]
    path = write_rows(
        tmp_path / "t",
        *(mooncake_row(timestamp=ms, output_length=n + 1) for n, ms in enumerate(times)),
    )
    trace = read_mooncake(path)
    assert trace.arrival_ms.tolist() == [1, 3, 3, 5, 5, 9]
    assert trace.output_tokens.tolist() == [6, 2, 4, 1, 3, 5]
    assert findings(path) == {"unsorted_rows": (3, "line 2: timestamp 3 after 5")}


@pytest.mark.parametrize(
    ("rows", "code", "count", "example"),
    [
        (
            [{"hash_ids": [0]}, {"hash_ids": []}, {}, {}],
            "short_hash_ids",
            2,
            "line 1: 1 ids for 600 tokens, expected 2",
        ),
        (
            [{}, {"hash_ids": [0, 1, 2]}, {}],
            "long_hash_ids",
            1,
            "line 2: 3 ids for 600 tokens, expected 2",
        ),
        ([{}, {"input_length": 0, "hash_ids": []}], "empty_prompts", 1, "line 2"),
        ([{}, {"output_length": 0}, {"output_length": 0}], "no_output", 2, "line 2"),
    ],
    ids=["short", "long", "empty_prompt", "no_output"],
)
def test_odd_rows(tmp_path, rows, code, count, example):
    path = write_rows(tmp_path / "t", *(mooncake_row(**changes) for changes in rows))
    assert findings(path) == {code: (count, example)}
    assert read_mooncake(path).num_requests == len(rows)


def test_blank_lines_are_skipped_and_counted(tmp_path):
    path = write(tmp_path / "t", b"\n" + GOOD + b"\n \r\n\n" + GOOD + b"\n\n")
    assert findings(path) == {"blank_lines": (4, "line 1")}
    assert read_mooncake(path).num_requests == 2


def test_content_ids_are_chained_and_counted(tmp_path):
    path = write_rows(
        tmp_path / "t",
        mooncake_row(hash_ids=[1, 2]),
        mooncake_row(hash_ids=[3, 2]),
        mooncake_row(hash_ids=[1, 2]),
    )
    trace = read_mooncake(path)
    assert trace.num_nodes == 4
    assert trace.leaf.tolist() == [1, 3, 1]
    assert [(finding.code, finding.count) for finding in trace.findings] == [("content_ids", 6)]


def test_a_block_repeated_in_one_prompt_is_two_blocks(tmp_path):
    trace = read_mooncake(write_rows(tmp_path / "t", mooncake_row(hash_ids=[7, 7])))
    assert trace.node_parent.tolist() == [-1, 0]
    assert trace.node_depth.tolist() == [1, 2]


# --- bad files -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("not JSON", r"not valid JSON: .*"),
        ('{"timestamp": 0', r"not valid JSON: .*"),
        ("[1, 2]", "not a JSON object"),
        ("null", "not a JSON object"),
        ('"text"', "not a JSON object"),
        ("[" * 200_000, r"not valid JSON: .*"),
        ('{"more": ' + "[" * 200_000, r"not valid JSON: .*"),
        ({"timestamp": ...}, "timestamp is missing"),
        ({"input_length": ...}, "input_length is missing"),
        ({"output_length": ...}, "output_length is missing"),
        ({"hash_ids": ...}, "hash_ids is missing"),
        (
            {"timestamp": 1.5},
            "timestamp is 1.5, not a whole number: where it counts milliseconds, --format dynamo reads it",
        ),
        ({"timestamp": 1.0}, "timestamp is 1.0, not a whole number: where .* --format dynamo reads it"),
        ({"timestamp": "0"}, "timestamp is '0', not a whole number"),
        ({"timestamp": None}, "timestamp is None, not a whole number"),
        ({"timestamp": True}, "timestamp is True, not a whole number"),
        ({"timestamp": "long" * 10_000}, r"timestamp is 'long.*', not a whole number"),
        ({"timestamp": "two\nlines"}, r"timestamp is 'two\\nlines', not a whole number"),
        ({"timestamp": -1}, r"timestamp is -1: it must lie between 0 and \d+"),
        ({"timestamp": 2**62}, r"timestamp is 4611686018427387904: it must lie between 0 and \d+"),
        ({"timestamp": 2**200}, r"timestamp is \d+\.\.\.\d+: it must lie between 0 and \d+"),
        ({"input_length": -5}, r"input_length is -5: it must lie between 0 and \d+"),
        ({"input_length": 2**41}, r"input_length is 2199023255552: it must lie between 0 and \d+"),
        ({"input_length": 600.0}, "input_length is 600.0, not a whole number"),
        ({"output_length": -1}, r"output_length is -1: it must lie between 0 and \d+"),
        ({"output_length": 10**30}, r"output_length is 10+: it must lie between 0 and \d+"),
        ({"hash_ids": 5}, "hash_ids is not a list"),
        ({"hash_ids": "0 1"}, "hash_ids is not a list"),
        ({"hash_ids": {"0": 1}}, "hash_ids is not a list"),
        ({"hash_ids": None}, "hash_ids is not a list"),
        ({"hash_ids": [0, 1.5]}, r"hash_ids\[1\] is 1.5, neither a whole number nor text"),
        ({"hash_ids": [False, 1]}, r"hash_ids\[0\] is False, neither a whole number nor text"),
        ({"hash_ids": [0, None]}, r"hash_ids\[1\] is None, neither a whole number nor text"),
        ({"hash_ids": [0, [1]]}, r"hash_ids\[1\] is \[1\], neither a whole number nor text"),
        ({"hash_ids": [0, ""]}, r"hash_ids\[1\] is empty"),
        ({"hash_ids": [0, 2**600]}, r"hash_ids\[1\] is \d+\.\.\.\d+: a hash has at most 512 bits"),
        ({"hash_ids": [-(2**600)]}, r"hash_ids\[0\] is -\d+\.\.\.\d+: a hash has at most 512 bits"),
        ({"session_id": 1.5}, r"Expected .*session_id.*"),
    ],
    ids=lambda value: f"{value!s:.40}",
)
def test_a_bad_row_is_named_by_file_and_line(tmp_path, line, what):
    if isinstance(line, dict):
        row = {field: value for field, value in mooncake_row(**line).items() if value is not ...}
        line = json.dumps(row)
    path = write(tmp_path / "t.jsonl", GOOD + b"\n\n" + line.encode() + b"\n" + GOOD + b"\n")
    assert re.fullmatch(f":3: {what}", refusal(path))


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (
            b'{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [0], "session_id": "\xff"}',
            ":1: ",
        ),
        (b'{"timestamp": NaN, "input_length": 1, "output_length": 1, "hash_ids": [0]}', ":1: not valid JSON"),
        (
            b'{"timestamp": 1e999, "input_length": 1, "output_length": 1, "hash_ids": [0]}',
            ":1: not valid JSON",
        ),
        (GOOD.replace(b"600", b"6" * 5000), ":1: not valid JSON"),
        (GOOD.replace(b"600", b"6" * 4000), ":1: "),
        (GOOD.replace(b"[0", b"[1" + b"0" * 5000), ":1: not valid JSON"),
        (GOOD.replace(b"[0", b"[1" + b"0" * 4000), ":1: "),
        (GOOD.decode().encode("utf-16"), ":1: not valid JSON"),
        (GOOD + GOOD, ":1: not valid JSON"),
        (b"\0" * 100, ":1: not valid JSON"),
        (b"PAR1" + bytes(range(256)), ":1: not valid JSON"),
    ],
    ids=[
        "latin_1",
        "nan",
        "infinity",
        "huge_length",
        "large_length",
        "huge_id",
        "large_id",
        "utf_16",
        "two_rows_in_a_line",
        "zeros",
        "binary",
    ],
)
def test_bytes_that_are_no_row(tmp_path, content, what):
    assert refusal(write(tmp_path / "t", content)).startswith(what)


@pytest.mark.parametrize("content", [b"", b"\n\n \n", gzip.compress(b"", mtime=0), b"\xef\xbb\xbf"])
def test_a_file_without_requests(tmp_path, content):
    assert refusal(write(tmp_path / "t", content)) == ": holds no requests"


@pytest.mark.parametrize("block_tokens", [0, -1])
def test_a_block_holds_a_token(tmp_path, block_tokens):
    with pytest.raises(InputError, match=rf"^--block-tokens {block_tokens}: a block holds at least 1 token$"):
        read_mooncake(write(tmp_path / "t", GOOD), block_tokens)


# --- block size ------------------------------------------------------------------------------------


def write_prompts(path: Path, block_tokens: int, *, partial: bool = True) -> Path:
    """Prompts of 1 to 50,000 tokens, with an id for the partial last block or without."""
    lengths = np.random.default_rng(seed=3).integers(1, 50_000, size=200).tolist()
    rows = [
        mooncake_row(
            timestamp=n,
            input_length=length,
            hash_ids=[
                n * 10**6 + i
                for i in range(-(-length // block_tokens) if partial else length // block_tokens)
            ],
        )
        for n, length in enumerate(lengths)
    ]
    return write_rows(path, *rows)


@pytest.mark.parametrize("true_size", [16, 64, 512, 1024])
@pytest.mark.parametrize("given_size", [1, 16, 64, 512, 1024, 100_000])
def test_a_wrong_block_size_is_refused_with_the_right_one(tmp_path, true_size, given_size):
    path = write_prompts(tmp_path / "t", true_size)
    if given_size == true_size:
        assert findings(path, block_tokens=given_size) == {}
        return
    mismatched = re.fullmatch(
        r": (\d+) of 200 rows have another number of hash_ids "
        rf"than {given_size}-token blocks need: try --block-tokens {true_size}",
        refusal(path, block_tokens=given_size),
    )
    assert int(mismatched.group(1)) > 90


def test_a_size_that_is_no_power_of_two_is_suggested_nearly(tmp_path):
    path = write_prompts(tmp_path / "t", 784)
    text = refusal(path, block_tokens=512)
    suggested = int(text.rpartition(" ")[2])
    assert suggested == pytest.approx(784, rel=0.03)
    assert read_mooncake(path, block_tokens=suggested).num_requests == 200


def test_logs_of_full_blocks_only_are_read_and_counted(tmp_path):
    path = write_prompts(tmp_path / "t", 64, partial=False)
    (code,) = findings(path, block_tokens=64)
    assert code == "short_hash_ids"
    assert "try --block-tokens 64" in refusal(path, block_tokens=16)


def test_short_prompts_in_full_blocks_are_not_taken_for_a_larger_block(tmp_path):
    rows = [mooncake_row(timestamp=n, input_length=65 + n, hash_ids=[n]) for n in range(60)]
    path = write_rows(tmp_path / "t", *rows)
    assert read_mooncake(path, block_tokens=64).num_requests == 60


def test_rows_without_ids_do_not_make_the_block_size_wrong(tmp_path):
    rows = [mooncake_row(hash_ids=[0, 1] if n % 3 == 0 else []) for n in range(90)]
    path = write_rows(tmp_path / "t", *rows)
    assert findings(path) == {"short_hash_ids": (60, "line 2: 0 ids for 600 tokens, expected 2")}
