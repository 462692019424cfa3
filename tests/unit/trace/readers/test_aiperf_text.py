from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.text_logs import (
    BY_CHARACTER,
    DATA,
    FIRST,
    NUM_BLOCKS,
    NUM_NODES,
    SECOND,
    counts,
    detected,
    read_log,
    write_lines,
)
from warmset.errors import TraceFormatError


def test_sessions_with_times_and_delays():
    log = DATA / "aiperf_text" / "sessions.jsonl"
    assert detected(log) == ["aiperf_text"]
    trace = read_log("aiperf_text", log)
    assert trace.arrival_ms.tolist() == [0, 700, 1500]
    assert trace.input_tokens.tolist() == [27, 5, 50]
    assert trace.output_tokens.tolist() == [2, 9, 3]
    assert trace.num_blocks.tolist() == [NUM_BLOCKS[0], 1, NUM_BLOCKS[1]]
    assert trace.num_nodes == NUM_NODES + 1
    assert trace.session.tolist() == [0, 1, 0]
    assert trace.previous.tolist() == [-1, -1, 0]
    assert trace.provenance.epoch_ms is None
    assert trace.provenance.assumptions[-1].startswith("1 turns have a delay and no time")
    assert counts(trace) == {}


def test_sessions_without_times_start_one_after_the_other(tmp_path: Path):
    rows = [
        {"session_id": "a", "messages": FIRST, "output_length": 2},
        {"session_id": "a", "messages": SECOND, "output_length": 2, "delay": 300},
        {"session_id": "b", "messages": FIRST, "output_length": 2},
    ]
    options = replace(BY_CHARACTER, session_gap_ms=1000)
    trace = read_log("aiperf_text", write_lines(tmp_path / "log.jsonl", *rows), options=options)
    assert trace.arrival_ms.tolist() == [0, 300, 1000]
    assert any("no common clock" in each for each in trace.provenance.assumptions)


def test_rows_without_times_or_sessions_arrive_at_once(tmp_path: Path):
    log = write_lines(tmp_path / "log.jsonl", {"text_input": "a b"}, {"text_input": "a c"})
    assert detected(log) == ["aiperf_text"]
    trace = read_log("aiperf_text", log)
    assert trace.arrival_ms.tolist() == [0, 0]
    assert any("neither times nor sessions" in each for each in trace.provenance.assumptions)


def test_times_since_1970_are_told_from_others(tmp_path: Path):
    rows = [{"text_input": "a", "timestamp": 1772107200000 + each, "output_length": 1} for each in (0, 5)]
    trace = read_log("aiperf_text", write_lines(tmp_path / "log.jsonl", *rows))
    assert (trace.provenance.epoch_ms, trace.arrival_ms.tolist()) == (1_772_107_200_000, [0, 5])


@pytest.mark.parametrize(
    ("row", "name"),
    [
        ({"messages": FIRST, "timestamp": 2000}, "aiperf_text"),
        ({"messages": FIRST, "delay": 2000}, "aiperf_text"),
        ({"messages": FIRST, "timestamp": 1772107200}, "gateway"),
        ({"messages": FIRST, "timestamp": "2026-02-26T12:00:00Z"}, "gateway"),
    ],
)
def test_messages_alone_are_told_by_their_times(tmp_path: Path, row, name):
    assert detected(write_lines(tmp_path / "log.jsonl", row)) == [name]


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (
            [{"text_input": "a", "timestamp": 0}, {"text_input": "b"}],
            "has no timestamp, and goes on from no turn",
        ),
        (
            [{"text_input": "a"}, {"text_input": "b", "timestamp": 0}],
            "has a timestamp, and the first row has none",
        ),
        (
            [{"text_input": "a"}, {"text_input": "b", "session_id": "s"}],
            "session_id must be on all rows or on none",
        ),
        ([{"text_input": "a", "timestamp": 0}, {"text_input": "b", "timestamp": -1}], "timestamp is -1"),
        ([{"text_input": "a"}, {"text_input": 4}], r"at `\$\.text_input`"),
        ([{"text_input": "a"}, {"messages": FIRST, "message_mode": "delta"}], "message_mode is delta"),
        (
            [{"text_input": "a"}, {"text_input": "b", "output_length": -4}],
            "output_length is not a number of tokens",
        ),
    ],
)
def test_unusable_rows_say_where_and_why(tmp_path: Path, rows, why):
    with pytest.raises(TraceFormatError, match=rf"log\.jsonl:2: .*{why}"):
        read_log("aiperf_text", write_lines(tmp_path / "log.jsonl", *rows))
