"""`warmset curve`: the contract of its JSON on a log whose hits are known by hand."""

import json

import pytest

from tests.support.scenarios import row, write_log
from tests.support.traces import mooncake_row, write_rows

KEYS = [
    "requests",
    "block_refs",
    "unique_blocks",
    "input_tokens",
    "measured_tokens",
    "unlimited",
    "points",
    "ttl",
    "working_set",
    "assumptions",
]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The third prompt repeats the first: its blocks come back at distances 4, 5 and after two seconds."""
    rows = [row(0, [1, 2]), row(1000, [3, 4]), row(2000, [1, 2, 5]), row(3000, [6])]
    return write_log(tmp_path_factory.mktemp("small") / "small.jsonl", rows)


def curve(warmset, *words):
    ended = warmset("curve", *words, "--json")
    assert (ended.code, ended.err) == (0, "")
    return json.loads(ended.out)


def test_contract(warmset, small):
    found = curve(warmset, small, "--block-tokens", 512, "--capacity-blocks", "2,3,4", "--ttl", "1,2,3")
    assert list(found) == KEYS
    assert found["requests"] == 4
    assert found["block_refs"] == 8
    assert found["unique_blocks"] == 6
    assert found["input_tokens"] == found["measured_tokens"] == 8 * 512
    assert found["unlimited"] == {"hit_blocks": 2, "hit_tokens": 1024, "token_hit": 0.25}
    assert found["points"] == [
        {"policy": "lru", "capacity_blocks": 2, "hit_blocks": 0, "hit_tokens": 0, "token_hit": 0.0},
        {"policy": "lru", "capacity_blocks": 3, "hit_blocks": 1, "hit_tokens": 512, "token_hit": 0.125},
        {"policy": "lru", "capacity_blocks": 4, "hit_blocks": 2, "hit_tokens": 1024, "token_hit": 0.25},
    ]
    assert found["ttl"] == [
        {"ttl_s": 1, "hit_blocks": 0, "hit_tokens": 0},
        {"ttl_s": 2, "hit_blocks": 2, "hit_tokens": 1024},
        {"ttl_s": 3, "hit_blocks": 2, "hit_tokens": 1024},
    ]
    assert found["working_set"] == [
        {"window_s": window, "mean_blocks": 6.0, "max_blocks": 6} for window in (60, 600, 3600)
    ]


@pytest.mark.parametrize(
    ("measure_from", "tokens", "hits"), [(0, 8, 2), (0.25, 6, 2), (0.5, 4, 2), (0.75, 1, 0), (0.99, 1, 0)]
)
def test_the_first_part_only_warms_the_cache(warmset, small, measure_from, tokens, hits):
    found = curve(warmset, small, "--measure-from", measure_from)
    assert found["input_tokens"] == 8 * 512
    assert found["measured_tokens"] == tokens * 512
    assert found["unlimited"]["hit_tokens"] == hits * 512
    assert found["unlimited"]["token_hit"] == pytest.approx(hits / tokens)


def test_without_capacities_the_range_ends_where_nothing_is_left_to_hit(warmset, log):
    found = curve(warmset, log)
    capacities = [point["capacity_blocks"] for point in found["points"]]
    assert capacities == sorted(set(capacities))
    assert capacities[0] == 1
    assert found["points"][-1]["hit_tokens"] == found["unlimited"]["hit_tokens"] > 0


def test_a_trace_without_tokens_has_no_ratio(warmset, tmp_path):
    path = write_rows(tmp_path / "t.jsonl", mooncake_row(input_length=0, hash_ids=[]))
    ended = warmset("curve", path, "--json")
    assert ended.code == 0
    assert json.loads(ended.out)["unlimited"]["token_hit"] is None


def test_what_was_odd_is_noted_beside_the_result(warmset, tmp_path):
    path = write_rows(tmp_path / "t.jsonl", mooncake_row(timestamp=5), mooncake_row(timestamp=3))
    ended = warmset("curve", path, "--json")
    assert json.loads(ended.out)["requests"] == 2
    assert ended.err.startswith("note: unsorted_rows: 1 (line 2: timestamp 3 after 5)")


def test_table(warmset, small):
    ended = warmset("curve", small, "--capacity-blocks", "3")
    assert (ended.code, ended.err) == (0, "")
    for text in ("small.jsonl: 4 requests", "8 block references", "12.50 %", "unlimited", "25.00 %"):
        assert text in ended.out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--capacity-blocks", "0"], "--capacity-blocks 0: 0 must be at least 1"),
        (["--capacity-blocks", "1,-5"], "--capacity-blocks 1,-5: -5 must be at least 1"),
        (["--capacity-blocks", "1,x"], "'x' is not a whole number"),
        (["--capacity-blocks", "1e3"], "'1e3' is not a whole number"),
        (["--capacity-blocks", ""], "'' is not a whole number"),
        (["--capacity-blocks", "9" * 30], "must be at least 1 and at most"),
        (["--ttl", "0"], "--ttl 0: 0 must be at least 1"),
        (["--ttl", "9" * 30], "must be at least 1 and at most"),
        (["--measure-from", "1"], "--measure-from 1.0: it must be at least 0 and below 1"),
        (["--measure-from", "-0.1"], "--measure-from -0.1"),
        (["--measure-from", "nan"], "--measure-from nan"),
        (["--block-tokens", "0"], "--block-tokens 0: a block holds at least 1 token"),
        (["--block-tokens", "16"], "try --block-tokens 512"),
    ],
)
def test_flags_that_are_refused(warmset, log, words, says):
    ended = warmset("curve", log, *words, "--json")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("warmset: ")
    assert says in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "cannot be read: there is no such file"),
        ("", "holds no requests"),
        ("\n\n", "holds no requests"),
        ('{"timestamp": 0}\n', "rows with the fields 'timestamp' are no request log that is known"),
        (
            '{"timestamp": 0, "input_length": -1, "output_length": 1, "hash_ids": []}\n',
            ":1: input_length is -1",
        ),
        (
            '{"timestamp": -1, "input_length": 1, "output_length": 1, "hash_ids": [1]}\n',
            ":1: timestamp is -1",
        ),
        (
            '{"timestamp": 0, "input_length": 1, "output_length": -1, "hash_ids": [1]}\n',
            ":1: output_length is -1",
        ),
        (
            '{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": 7}\n',
            ":1: hash_ids is not a list",
        ),
        (
            '{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [1.5]}\n',
            ":1: hash_ids[0] is 1.5, neither a whole number nor text",
        ),
        ("not json\n", "is no request log that is known"),
    ],
    ids=[
        "missing",
        "empty",
        "blank",
        "no_field",
        "length",
        "time",
        "output",
        "no_list",
        "no_number",
        "no_json",
    ],
)
@pytest.mark.parametrize("verb", ["curve", "evaluate --trace"])
def test_logs_that_are_refused(warmset, tmp_path, verb, text, says):
    path = tmp_path / "trace.jsonl"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    ended = warmset(*verb.split(), path, "--json")
    assert (ended.code, ended.out) == (2, "")
    last = ended.err.splitlines()[-1]
    assert last.startswith(f"warmset: {path}")
    assert says in last
    assert "Traceback" not in ended.err


def test_a_folder_is_no_log(warmset, tmp_path):
    ended = warmset("curve", tmp_path)
    assert ended.code == 2
    assert "cannot be read" in ended.err
