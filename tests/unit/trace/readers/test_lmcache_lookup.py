"""LMCache's lookup-hash log."""

import re

import pytest

from tests.support.row_logs import DATA, findings, is_matched_by, read_log, refusal, write_lines

LOOKUPS = DATA / "lmcache_lookup" / "lookup_hashes_20240401_000000_000000.jsonl"


def lookup(**changes: object) -> dict[str, object]:
    row = {
        "timestamp": 1711929600.0,
        "request_id": "",
        "model_name": "m",
        "chunk_size": 256,
        "seq_len": 512,
        "dtypes": [],
        "shapes": [],
        "chunk_hashes": ["0xa", "0xb"],
    }
    return row | changes


def test_the_fixture():
    """Counted by hand; the third row is of another model, and shares nothing."""
    trace = read_log("lmcache_lookup", LOOKUPS)
    assert trace.block_tokens == 256
    assert trace.provenance.epoch_ms == 1_711_929_600_123
    assert trace.arrival_ms.tolist() == [0, 877, 2377, 2877]
    assert trace.input_tokens.tolist() == [600, 768, 256, 100]
    assert trace.output_tokens.tolist() == [0, 0, 0, 0]
    assert trace.num_blocks.tolist() == [2, 3, 1, 0]
    assert trace.node_parent.tolist() == [-1, 0, 1, -1]
    assert trace.leaf.tolist() == [1, 2, 3, -1]
    assert [trace.model_names[model] for model in trace.model] == ["DeepSeek-V3"] * 2 + [
        "Qwen3-8B",
        "DeepSeek-V3",
    ]
    assert findings(trace) == {
        "unknown_output": (4, "line 1: the length of its answer is unknown, and taken as 0"),
        "repeated_lookups": (1, "line 4: its request_id was there before"),
    }
    assert trace.provenance.assumptions == (
        "The log does not say how long answers are: all of them are taken as empty.",
    )


def test_it_is_told_by_its_rows():
    assert is_matched_by(LOOKUPS) == ["lmcache_lookup"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["0x" + "0" * 15 + "a"], ["0x" + "0" * 15 + "b"]),
        (["0x" + "f" * 16], ["0x" + "f" * 15 + "e"]),
        (["0x" + "f" * 64], ["0x" + "f" * 63 + "e"]),
        (["0xab"], ["0xac"]),
        (["-0x2b992ddfa23249d6"], ["0x2b992ddfa23249d6"]),
        ([0], [1]),
        ([2**64 - 1], [2**64 - 2]),
        ([2**255], [2**255 + 1]),
        ([-(2**63)], [2**63 - 1]),
    ],
    ids=repr,
)
def test_hashes_of_any_writing(tmp_path, one, other):
    """Prefix hashes of blake3 are bytes, those of Python's hash() signed numbers: both in hexadecimal."""
    rows = [lookup(chunk_hashes=hashes, seq_len=256) for hashes in (one, other, one)]
    trace = read_log("lmcache_lookup", write_lines(tmp_path / "t", *rows))
    assert trace.leaf.tolist() == [0, 1, 0]


def test_a_stray_list_of_ids_is_not_taken_for_the_hashes(tmp_path):
    rows = [lookup(chunk_hashes=[0], seq_len=256, hash_ids=[7]), lookup(chunk_hashes=[7], seq_len=256)]
    trace = read_log("lmcache_lookup", write_lines(tmp_path / "t", *rows))
    assert trace.leaf.tolist() == [0, 1]


def test_more_and_fewer_hashes_than_full_chunks(tmp_path):
    rows = [lookup(seq_len=800), lookup(), lookup(seq_len=300)]
    found = findings(read_log("lmcache_lookup", write_lines(tmp_path / "t", *rows)))
    assert found["short_hash_ids"] == (1, "line 1: 2 ids for 800 tokens, expected 3")
    assert found["long_hash_ids"] == (1, "line 3: 2 ids for 300 tokens, expected 1")


def test_the_chunk_size_of_the_log_and_of_the_flag():
    assert read_log("lmcache_lookup", LOOKUPS, block_tokens=256).block_tokens == 256
    says = ":1: chunk_size is 256: leave --block-tokens 16 out, and reblock the trace"
    assert refusal("lmcache_lookup", LOOKUPS, block_tokens=16) == says


def test_two_chunk_sizes_are_two_logs(tmp_path):
    path = write_lines(tmp_path / "t", *[lookup()] * 200, lookup(chunk_size=512, chunk_hashes=["0xa"]))
    says = f"{path}:201: chunk_size is 512, and 256 before: import the rows of each size apart"
    assert findings(read_log("lmcache_lookup", path))["bad_rows"] == (1, says)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"timestamp": None}, "timestamp is None, not a number"),
        ({"timestamp": 1e300}, r"timestamp is 1e\+300: it must lie between 0 and \d+"),
        ({"chunk_size": "256"}, "chunk_size is '256', not a whole number"),
        ({"chunk_size": 0}, "chunk_size is 0: it must be at least 1"),
        ({"seq_len": -1}, r"seq_len is -1: it must lie between 0 and \d+"),
        ({"seq_len": 12.0}, "seq_len is 12.0, not a whole number"),
        ({"chunk_hashes": "0xa"}, "chunk_hashes is not a list"),
        ({"chunk_hashes": [None]}, r"chunk_hashes\[0\] is None, neither a whole number nor text"),
        ({"chunk_hashes": ["0xa", ""]}, r"chunk_hashes\[1\] is empty"),
        ({"chunk_hashes": [2**600]}, r"chunk_hashes\[0\] is \d+\.\.\.\d+: a hash has at most 512 bits"),
    ],
    ids=repr,
)
def test_a_bad_row(tmp_path, changes, why):
    path = write_lines(tmp_path / "t", lookup(), lookup(**changes))
    if changes.get("chunk_size") == 0:  # the first size named is the log's
        path = write_lines(tmp_path / "t", "", lookup(**changes))
    assert re.fullmatch(f":2: {why}", refusal("lmcache_lookup", path))
