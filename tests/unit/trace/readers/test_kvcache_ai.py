"""KVCache.AI's JSONL: the block size in each row, times in some logs only."""

import re

import pytest

from tests.support.row_logs import DATA, findings, is_matched_by, read_log, refusal, write_lines

NO_TIMES = DATA / "kvcache_ai" / "no_times.jsonl"
SGLANG = DATA / "kvcache_ai" / "sglang.jsonl"


def row(**changes: object) -> dict[str, object]:
    return {"block_size": 64, "hash_ids": [1, 2], "input_length": 100, "output_length": 1} | changes


def test_a_log_without_times():
    """Counted by hand; `"2001"` is the 2001 of the other rows, as it is to kvcache-simulator."""
    trace = read_log("kvcache_ai", NO_TIMES)
    assert trace.block_tokens == 64
    assert trace.arrival_ms.tolist() == [0, 0, 0]
    assert trace.input_tokens.tolist() == [128, 150, 140]
    assert trace.output_tokens.tolist() == [0, 12, 0]
    assert trace.node_parent.tolist() == [-1, 0, 0, 2, 1]
    assert trace.leaf.tolist() == [1, 3, 4]
    assert findings(trace) == {
        "unknown_output": (2, "line 1: the length of its answer is unknown, and taken as 0"),
        "uneven_blocks": (1, "line 3: a block before the last has not 64 tokens"),
    }
    assert trace.provenance.assumptions == (
        "The log has no times: all requests are taken to arrive at once, in file order.",
    )


def test_a_log_of_sglang():
    """Counted by hand: seconds since 1970, unsigned ids of 64 bits."""
    trace = read_log("kvcache_ai", SGLANG)
    assert trace.provenance.epoch_ms == 1_780_000_000_250
    assert trace.arrival_ms.tolist() == [0, 750, 1250]
    assert trace.output_tokens.tolist() == [7, 3, 0]
    assert trace.node_parent.tolist() == [-1, 0, 0]
    assert trace.leaf.tolist() == [1, 0, 2]
    assert findings(trace) == {
        "no_output": (1, "line 2"),
        "unsorted_rows": (1, "line 3: timestamp 1780000001000 after 1780000001500"),
    }


@pytest.mark.parametrize("path", [NO_TIMES, SGLANG], ids=["no_times", "sglang"])
def test_it_is_told_by_its_rows(path):
    assert is_matched_by(path) == ["kvcache_ai"]


@pytest.mark.parametrize(
    ("timestamps", "arrivals", "epoch_ms"),
    [
        ([0, 3000, 4500.6], [0, 3000, 4501], None),
        ([1_780_000_000, 1_780_000_001.0005], [0, 1001], 1_780_000_000_000),
        ([1_780_000_000_123, 1_780_000_000_124], [0, 1], 1_780_000_000_123),
    ],
    ids=["milliseconds", "epoch_s", "epoch_ms"],
)
def test_times(tmp_path, timestamps, arrivals, epoch_ms):
    path = write_lines(tmp_path / "t", *(row(timestamp=timestamp) for timestamp in timestamps))
    trace = read_log("kvcache_ai", path)
    assert trace.arrival_ms.tolist() == arrivals
    assert trace.provenance.epoch_ms == epoch_ms


def test_the_size_of_the_log_and_of_the_flag():
    assert read_log("kvcache_ai", NO_TIMES, block_tokens=64).block_tokens == 64
    says = ":1: block_size is 64: leave --block-tokens 16 out, and reblock the trace"
    assert refusal("kvcache_ai", NO_TIMES, block_tokens=16) == says


def test_rows_without_a_size(tmp_path):
    path = write_lines(tmp_path / "t", row(block_size=None), row(block_size=64))
    assert read_log("kvcache_ai", path, block_tokens=64).num_requests == 2
    says = ":1: block_size is missing: add it, or give --block-tokens"
    assert refusal("kvcache_ai", path) == says


def test_two_sizes_are_two_logs(tmp_path):
    one, other = row(), row(block_size=16, hash_ids=[1])
    path = write_lines(tmp_path / "t", *[one] * 300, other)
    trace = read_log("kvcache_ai", path)
    says = f"{path}:301: block_size is 16, and 64 before: import the rows of each size apart"
    assert findings(trace) == {"bad_rows": (1, says)}
    second = write_lines(tmp_path / "2", *[other] * 300)
    assert refusal("kvcache_ai", path, second).startswith(":301: block_size is 16, and 64 before: ")


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"block_size": 0}, "block_size is 0: it must be at least 1"),
        ({"block_size": -64}, "block_size is -64: it must be at least 1"),
        ({"block_size": 2**70}, r"block_size is \d+.*: it must be at least 1"),
        ({"input_length": -1}, r"input_length is -1: it must lie between 0 and \d+"),
        ({"output_length": 2**50}, r"output_length is \d+: it must lie between 0 and \d+"),
        ({"hash_ids": [True]}, r"hash_ids\[0\] is True, neither a whole number nor text"),
        ({"hash_ids": [""]}, r"hash_ids\[0\] is empty"),
        ({"block_tokens": [64]}, "block_tokens has 1 entries for 2 hash_ids"),
        ({"block_tokens": [64, 0]}, "block_tokens holds a number outside of 1 to 64"),
        ({"block_tokens": [65, 1]}, "block_tokens holds a number outside of 1 to 64"),
        ({"timestamp": -1}, r"timestamp is -1: it must lie between 0 and \d+"),
        ({"timestamp": 10**400}, r"timestamp is \d+\.\.\.\d+: it must lie between 0 and \d+"),
        ({"timestamp": 1_780_000_000_000_000_000}, r"timestamp is \d+: it must lie between 0 and \d+"),
        ({"timestamp": "1"}, "Expected .*timestamp.*"),
    ],
    ids=repr,
)
def test_a_bad_row(tmp_path, changes, why):
    assert re.fullmatch(f":1: {why}", refusal("kvcache_ai", write_lines(tmp_path / "t", row(**changes))))


def test_times_on_some_rows_only(tmp_path):
    with_time, without = row(timestamp=5), row()
    says = ":2: has no timestamp, and the first row has one: give all rows one"
    assert refusal("kvcache_ai", write_lines(tmp_path / "1", with_time, without)) == says
    says = ":2: has a timestamp, and the first row has none: give all rows one"
    assert refusal("kvcache_ai", write_lines(tmp_path / "2", without, with_time)) == says


def test_two_clocks_are_two_logs(tmp_path):
    path = write_lines(tmp_path / "t", row(timestamp=5), row(timestamp=1_780_000_000))
    says = ":2: timestamp counts from 1970, and from the start of the log before: bring all to one"
    assert refusal("kvcache_ai", path) == says
