"""TraceLab rounds: the published sample of two sessions, and quirk 19 of trace-facts."""

import json
from pathlib import Path

import pytest

from tests.support.text_logs import counts, read_log
from tests.support.traces import write_rows
from tests.support.transcripts import DEFAULT, Row, blocks_in, shared_tokens
from warmset.errors import TraceFormatError
from warmset.trace import Trace

NUM_CODEX = 9


def read(*paths: Path, bad_share: float = 0.01) -> Trace:
    return read_log("tracelab", *paths, options=DEFAULT, bad_share=bad_share)


@pytest.fixture
def sample(shared: Path) -> Path:
    return shared / "traces" / "samples" / "tracelab_round_trace_sample.jsonl"


def test_the_sample(sample: Path) -> None:
    """19 rounds in 2 sessions (README of the traces); totals as in the file, its later session first."""
    trace = read(sample)
    rows = [json.loads(line) for line in sample.read_text(encoding="utf-8").splitlines()]
    in_time = [*rows[10:], *rows[:10]]
    assert trace.num_requests == 19
    assert trace.session is not None
    assert trace.session.tolist() == [0] * NUM_CODEX + [1] * 10
    assert trace.input_tokens.tolist() == [row["input_tokens_total"] for row in in_time]
    assert trace.output_tokens.tolist() == [row["output_tokens"] for row in in_time]
    assert trace.cached_tokens is not None
    assert trace.cached_tokens.tolist() == [row["prefix_tokens"] for row in in_time]
    assert trace.model_names == ("claude-opus-4-8", "gpt-5.4")


def test_times_of_the_sample(sample: Path) -> None:
    """The first Claude round: 05:40:20.151 to 05:40:31.647; the next waits for a tool until 05:40:50.938."""
    trace = read(sample)
    assert trace.duration_ms is not None
    assert trace.think_ms is not None
    assert trace.duration_ms[NUM_CODEX] == 11_496
    assert trace.think_ms[NUM_CODEX + 1] == 19_291
    assert trace.arrival_ms[NUM_CODEX + 1] - trace.arrival_ms[NUM_CODEX] == 30_787
    # the first Codex round: 10:05:59.328 to 10:06:05.528, then its usage report
    assert trace.duration_ms[0] == 6200


def test_rounds_go_on_from_one_another(sample: Path) -> None:
    """All but one share the prompt before; 10,152 tokens with 3,456 cached (quirk 19) are no exception."""
    trace = read(sample)
    shared = shared_tokens(trace)
    tokens = trace.input_tokens.tolist()
    for round_index in range(1, 19):
        if round_index == NUM_CODEX:
            assert shared[round_index] == 0
        elif tokens[round_index] < tokens[round_index - 1]:
            # 10,436 after 10,472: what the provider read
            assert (tokens[round_index], shared[round_index]) == (10436, 9216)
        else:
            assert shared[round_index] == blocks_in(tokens[round_index - 1])
    assert counts(trace) == {"shrinking_prompts": 1}


def round_row(number: int, total: int, prefix: int, **changes: object) -> Row:
    return {
        "session_id": "codex:1",
        "round_index": number,
        "input_tokens_total": total,
        "prefix_tokens": prefix,
        "newly_append_tokens": total - prefix,
        "output_tokens": 10,
        "timing_events": [
            {"event_type": "user_message", "timestamp": f"2026-06-01T00:{number:02}:00.000Z"},
            {"event_type": "text", "timestamp": f"2026-06-01T00:{number:02}:02.000Z"},
        ],
    } | changes


def test_an_input_during_the_answer_does_not_start_it(tmp_path: Path) -> None:
    row = round_row(0, 100, 0)
    row["timing_events"].insert(1, {"event_type": "user_message", "timestamp": "2026-06-01T00:00:05.000Z"})
    trace = read(write_rows(tmp_path / "a.jsonl", row))
    assert trace.duration_ms is not None
    assert trace.duration_ms.tolist() == [2000]


@pytest.mark.parametrize(("left", "code"), [(0, "no_end_time"), (1, "no_start_time")])
def test_a_round_with_one_time_has_no_duration(left: int, code: str, tmp_path: Path) -> None:
    row = round_row(0, 100, 0)
    row["timing_events"] = [row["timing_events"][left]]
    trace = read(write_rows(tmp_path / "a.jsonl", row))
    assert trace.duration_ms is None
    assert counts(trace) == {code: 1}


def test_rounds_that_are_missing_or_twice(tmp_path: Path) -> None:
    rows = [round_row(0, 100, 0), round_row(0, 100, 0), round_row(2, 160, 96)]
    trace = read(write_rows(tmp_path / "a.jsonl", *rows))
    assert counts(trace) == {"copied_calls": 1, "missing_rounds": 1}
    assert trace.num_requests == 2


def test_another_model_shares_nothing(tmp_path: Path) -> None:
    rows = [round_row(0, 100, 0, model="a"), round_row(1, 160, 96, model="b")]
    assert shared_tokens(read(write_rows(tmp_path / "a.jsonl", *rows))) == [0, 0]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"input_tokens_total": -1}, r":1: input_tokens_total is -1: it must lie between 0 and"),
        ({"output_tokens": None}, r":1: Expected `int`, got `null`"),
        ({"timing_events": []}, r":1: timing_events has neither an input nor an output"),
        (
            {"timing_events": [{"event_type": "text", "timestamp": "yesterday"}]},
            r":1: timestamp is no time: it must be ISO 8601",
        ),
    ],
)
def test_rounds_that_cannot_be_used(changes: Row, message: str, tmp_path: Path) -> None:
    with pytest.raises(TraceFormatError, match=message):
        read(write_rows(tmp_path / "a.jsonl", round_row(0, 100, 0, **changes)))
