"""What people hand in that is no such log: the file, the line and what would do, or a counted finding."""

import gzip
import json
import re

import pytest

from tests.support.row_logs import findings, is_matched_by, read_log, refusal, write_lines
from tests.support.traces import mooncake_row
from warmset.trace import source

JSON_ROWS: dict[str, tuple[dict[str, object], str]] = {
    "mooncake": (mooncake_row(), "input_length"),
    "bailian": (mooncake_row(chat_id=1, parent_chat_id=-1, input_length=30), "input_length"),
    "kvcache_ai": (
        {"block_size": 64, "hash_ids": [1, 2], "input_length": 90, "output_length": 1},
        "input_length",
    ),
    "dynamo": ({"session_id": "s", **mooncake_row(delay=1)}, "input_length"),
    "lmcache_lookup": (
        {"timestamp": 5.5, "chunk_size": 256, "seq_len": 300, "chunk_hashes": ["0xa"]},
        "seq_len",
    ),
}
CSV_ROWS = {
    "azure": ("TIMESTAMP,ContextTokens,GeneratedTokens", "2024-04-01 19:33:20.0000000,10,1"),
    "burstgpt": (
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type",
        "5,m,10,1,11,API log",
    ),
}
NAMES = [*JSON_ROWS, *CSV_ROWS]


def good_lines(name: str, count: int) -> list[str]:
    if name in CSV_ROWS:
        header, row = CSV_ROWS[name]
        return [header, *[row] * (count - 1)]
    return [json.dumps(JSON_ROWS[name][0])] * count


def with_value(name: str, value: str) -> str:
    """A line in which the input's length is this text of JSON, or of a cell."""
    if name in CSV_ROWS:
        return CSV_ROWS[name][1].replace(",10,", f",{value},")
    row, field = JSON_ROWS[name]
    return json.dumps(row | {field: "VALUE"}).replace('"VALUE"', value)


@pytest.fixture(params=NAMES)
def name(request) -> str:
    return request.param


def test_good_rows_are_read_and_told(tmp_path, name):
    path = write_lines(tmp_path / "t", *good_lines(name, 5))
    assert read_log(name, path).num_requests == 5 - (name in CSV_ROWS)
    assert is_matched_by(path) == [name]


@pytest.mark.parametrize("value", ["NaN", "-1", "-9223372036854775809", "1e400", "1.5", "2e9", str(2**45)])
def test_a_length_that_is_none(tmp_path, name, value):
    path = write_lines(tmp_path / "t", *good_lines(name, 3), with_value(name, value))
    assert re.match(r":4: (not valid JSON|\w[\w ]* (is|holds)|Expected )", refusal(name, path))


def test_one_bad_row_in_many_is_left_out_and_counted(tmp_path, name):
    lines = good_lines(name, 202)
    lines[150] = with_value(name, "-1")
    trace = read_log(name, write_lines(tmp_path / "t", *lines))
    count, first = findings(trace)["bad_rows"]
    assert count == 1
    assert first.startswith(f"{tmp_path / 't'}:151: ")
    assert trace.num_requests == 201 - (name in CSV_ROWS)


def test_too_many_bad_rows(tmp_path, name):
    lines = good_lines(name, 102)
    lines[50] = lines[51] = with_value(name, "-1")
    path = write_lines(tmp_path / "t", *lines)
    assert re.search(r"^:51: .* \(2 of 10[12] rows cannot be used\)$", refusal(name, path))
    assert read_log(name, path, bad_share=0.05).num_requests == 100 - (name in CSV_ROWS)


def test_rows_of_another_format_in_the_same_file(tmp_path, name):
    other = "azure" if name != "azure" else "burstgpt"
    foreign = [line for each in (other, "lmcache_lookup") if each != name for line in good_lines(each, 150)]
    path = write_lines(tmp_path / "t", *good_lines(name, 100), *foreign)
    assert re.match(r":101: .* \(\d+ of \d+ rows cannot be used\)$", refusal(name, path))


def test_an_empty_prompt_is_kept_and_counted(tmp_path, name):
    path = write_lines(tmp_path / "t", *good_lines(name, 3), with_value(name, "0"))
    assert findings(read_log(name, path))["empty_prompts"][0] == 1


@pytest.mark.parametrize(
    "content",
    [bytes(range(256)) * 40, b"\0" * 5000, b"\x89PNG\r\n\x1a\n" + bytes(range(255, -1, -1)) * 9],
    ids=["bytes", "zeros", "png"],
)
def test_a_binary_file(tmp_path, name, content):
    path = tmp_path / "t"
    path.write_bytes(content)
    assert is_matched_by(path) == []
    assert re.match(r": holds no requests$|:\d+: [^\n]+$", refusal(name, path))


def test_a_cut_gzip(tmp_path, name):
    varied = "\n".join(good_lines(name, 2) + [with_value(name, str(n)) for n in range(3000)])
    whole = gzip.compress(varied.encode())
    path = tmp_path / "t.gz"
    path.write_bytes(whole[: len(whole) // 2])
    assert re.match(r":\d+: the gzip stream is broken: ", refusal(name, path))


def test_a_line_that_is_too_long(tmp_path, name, monkeypatch):
    monkeypatch.setattr(source, "MAX_LINE_BYTES", 2**16)
    path = write_lines(tmp_path / "t", *good_lines(name, 2), "x" * 2**17)
    assert refusal(name, path).startswith(":3: the line is longer than ")


@pytest.mark.parametrize("name", JSON_ROWS)
@pytest.mark.parametrize("depth", [10, 100_000])
def test_text_that_is_deep_or_no_object(tmp_path, name, depth):
    path = write_lines(tmp_path / "t", *good_lines(name, 2), "[" * depth + "]" * depth)
    assert re.match(r":3: (not a JSON object|not valid JSON)", refusal(name, path))


@pytest.mark.parametrize("name", JSON_ROWS)
def test_a_length_that_is_text(tmp_path, name):
    path = write_lines(tmp_path / "t", *good_lines(name, 3), with_value(name, '"12"'))
    assert re.match(r":4: (\w+ is '12', not a whole number|Expected )", refusal(name, path))


@pytest.mark.parametrize("name", JSON_ROWS)
def test_a_message_stays_short(tmp_path, name):
    path = write_lines(tmp_path / "t", *good_lines(name, 1), with_value(name, json.dumps("secret " * 50_000)))
    assert refusal(name, path).count("secret") < 5
