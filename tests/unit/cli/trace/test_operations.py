"""slice, scale, merge, reblock and export on the command line: results, summaries and refusals."""

import gzip
import json

import pytest

from tests.support.traces import mooncake_row, write_rows
from warmset.trace import read_trace, read_wst, sample_trace


@pytest.fixture
def log(tmp_path):
    """Two sessions of two turns that share their first block; seconds 0, 10, 20, 30."""
    rows = [
        mooncake_row(timestamp=0, input_length=1024, hash_ids=[1, 2], session_id="a"),
        mooncake_row(timestamp=10_000, input_length=1024, hash_ids=[1, 3], session_id="b"),
        mooncake_row(timestamp=20_000, input_length=1536, hash_ids=[1, 2, 4], session_id="a"),
        mooncake_row(timestamp=30_000, input_length=1536, hash_ids=[1, 3, 5], session_id="b"),
    ]
    return write_rows(tmp_path / "log.jsonl", *rows)


def run(warmset, *words):
    ended = warmset("trace", *words)
    assert ended.code == 0, ended.err
    return ended


def test_slice_by_time(warmset, log, tmp_path):
    run(warmset, "slice", log, "--from", "10s", "--to", "30s", "--out", tmp_path / "t.wst")
    part = read_wst(tmp_path / "t.wst")
    assert part.arrival_ms.tolist() == [0, 10_000]
    assert part.num_nodes == 4  # 1, 3, 2, 4


def test_slice_by_session(warmset, log, tmp_path):
    run(warmset, "slice", log, "--session", "1", "--out", tmp_path / "t.wst")
    part = read_wst(tmp_path / "t.wst")
    assert part.input_tokens.tolist() == [1024, 1536]
    assert part.session.tolist() == [0, 0]
    run(warmset, "slice", log, "--sessions", "1", "--out", tmp_path / "u.wst")
    assert read_wst(tmp_path / "u.wst").num_requests == 2


def test_scale(warmset, log, tmp_path):
    run(warmset, "scale", log, "--rate", "2", "--shrink-gaps", "--out", tmp_path / "t.wst")
    assert read_wst(tmp_path / "t.wst").arrival_ms.tolist() == [0, 5_000, 10_000, 15_000]
    run(warmset, "scale", log, "--sessions", "3", "--out", tmp_path / "u.wst")
    scaled = read_wst(tmp_path / "u.wst")
    # Block 1 stays shared; 2 4 and 3 5 are each session's own, three times.
    assert (scaled.num_requests, scaled.num_nodes, scaled.session.max()) == (12, 1 + 3 * 4, 5)
    run(warmset, "scale", log, "--sessions", "3", "--clone-shared", "none", "--out", tmp_path / "v.wst")
    assert read_wst(tmp_path / "v.wst").num_nodes >= 3 * 5


def test_merge(warmset, log, tmp_path):
    ended = run(warmset, "merge", log, log, "--offset", "0s", "--offset", "5s", "--out", tmp_path / "t.wst")
    merged = read_wst(tmp_path / "t.wst")
    assert merged.arrival_ms.tolist() == [0, 5_000, 10_000, 15_000, 20_000, 25_000, 30_000, 35_000]
    assert (merged.num_nodes, int(merged.session.max())) == (10, 3)
    assert "separate_forests" in ended.err


def test_reblock_says_what_is_lost(warmset, log, tmp_path):
    ended = run(warmset, "reblock", log, "--block-tokens", "1024", "--json", "--out", tmp_path / "t.wst")
    found = json.loads(ended.out)
    # In blocks of 512, turns two and the second session's first hit 512, 1024 and 1024 tokens; in blocks of
    # 1024 the first block of a session is one block, and the two sessions share none.
    assert '"hit_tokens":2560' in ended.out
    assert '"hit_tokens":2048' in ended.out
    assert found["block_tokens"] == 1024
    assert read_wst(tmp_path / "t.wst").num_blocks.tolist() == [1, 1, 2, 2]


@pytest.mark.parametrize("target", ["mooncake", "bailian", "aiperf", "kvcache-simulator"])
def test_export_to_stdout_and_to_a_file_is_the_same(warmset, log, tmp_path, target):
    ended = run(warmset, "export", log, "--to", target, "--out", tmp_path / "t.jsonl.gz")
    text = gzip.decompress((tmp_path / "t.jsonl.gz").read_bytes()).decode()
    assert len(text.splitlines()) == 4
    assert ended.code == 0


def test_the_shipped_trace_comes_back_as_it_was(warmset, tmp_path):
    run(warmset, "export", "mooncake-conversation", "--to", "mooncake", "--out", tmp_path / "t.jsonl.zst")
    shipped, back = sample_trace(), read_trace([tmp_path / "t.jsonl.zst"])
    for name in ("node_parent", "leaf", "num_blocks", "arrival_ms", "input_tokens", "output_tokens"):
        assert (getattr(back, name) == getattr(shipped, name)).all(), name


def test_kvcache_simulator_reads_the_export(warmset, tmp_path):
    parse = pytest.importorskip("kvcache_sim.trace", reason="kvcache-simulator is not installed")
    run(
        warmset, "export", "mooncake-conversation", "--to", "kvcache-simulator", "--out", tmp_path / "t.jsonl"
    )
    theirs, ours = parse.parse_trace_file(tmp_path / "t.jsonl"), sample_trace()
    assert (theirs.parse_errors, theirs.skipped_records) == (0, 0)
    assert (theirs.request_count, theirs.block_size) == (ours.num_requests, 512)
    assert (len(theirs.ids), theirs.unique_raw_blocks) == (ours.block_refs, ours.num_nodes)
    assert theirs.total_input_tokens == ours.input_tokens.sum()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["slice", "LOG", "--from", "1h"], "no request"),
        (["slice", "LOG", "--from", "soon"], "soon"),
        (["slice", "LOG", "--kind", "cron"], "--kind"),
        (["slice", "LOG", "--session", "9"], "--session 9"),
        (["slice", "LOG", "--sessions", "3"], "--sessions 3"),
        (["scale", "LOG"], "--rate"),
        (["scale", "LOG", "--rate", "0"], "--rate"),
        (["scale", "LOG", "--rate", "nan"], "--rate"),
        (["scale", "LOG", "--sessions", "-1"], "--sessions"),
        (["merge", "LOG"], "two"),
        (["merge", "LOG", "LOG", "--offset", "1s"], "--offset"),
        (["reblock", "LOG", "--block-tokens", "600"], "multiple of the trace's 512"),
        (["reblock", "LOG", "--block-tokens", "0"], "--block-tokens 0"),
        (["slice", "nowhere.wst"], "there is no such file"),
    ],
)
def test_refusals_are_one_line_and_write_nothing(warmset, log, tmp_path, words, says):
    filled = [str(log) if word == "LOG" else word for word in words]
    ended = warmset("trace", *filled, "--out", tmp_path / "t.wst")
    assert ended.code == 2
    assert says in ended.err
    assert ended.err.strip().count("\n") == 0
    assert not (tmp_path / "t.wst").exists()


def test_an_unknown_target_of_export(warmset, log):
    ended = warmset("trace", "export", log, "--to", "excel")
    assert ended.code == 2
    assert "mooncake" in ended.err


def test_a_file_that_is_there_is_kept_unless_forced(warmset, log, tmp_path):
    target = tmp_path / "t.wst"
    run(warmset, "slice", log, "--session", "0", "--out", target)
    before = target.read_bytes()
    ended = warmset("trace", "slice", log, "--session", "1", "--out", target)
    assert (ended.code, target.read_bytes()) == (2, before)
    run(warmset, "slice", log, "--to", "25s", "--out", target, "--force")
    assert target.read_bytes() != before
