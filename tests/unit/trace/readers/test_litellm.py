import csv
import json
from pathlib import Path

import pytest

from tests.support.text_logs import (
    DATA,
    FIRST,
    NUM_BLOCKS,
    NUM_NODES,
    counts,
    detected,
    prompts_in,
    read_log,
    write_lines,
)
from warmset.errors import TraceFormatError

SPEND_LOGS = DATA / "litellm" / "spend_logs.jsonl"
ROW = {"call_type": "acompletion", "startTime": 1772107200.5, "endTime": 1772107201.0, "messages": FIRST}


def test_spend_logs():
    assert detected(SPEND_LOGS) == ["litellm"]
    trace = read_log("litellm", SPEND_LOGS)
    assert trace.arrival_ms.tolist() == [0, 1500, 5000]
    assert trace.duration_ms.tolist() == [900, 400, 1000]
    # The last one was logged without its text: the default of LiteLLM.
    assert trace.num_blocks.tolist() == [*NUM_BLOCKS, 0]
    assert trace.num_nodes == NUM_NODES
    assert trace.input_tokens.tolist() == [27, 50, 99]
    assert trace.output_tokens.tolist() == [2, 3, 7]
    assert trace.cached_tokens.tolist() == [0, 24, -1]
    assert trace.session.tolist() == [0, 0, 1]
    assert trace.model_names == ("m-1",)
    assert counts(trace) == {"other_calls": 1, "gateway_cache_hits": 1, "failed_calls": 1, "no_text": 1}


def test_standard_logging_payloads():
    log = DATA / "litellm" / "payloads.jsonl"
    assert detected(log) == ["litellm"]
    trace = read_log("litellm", log)
    assert trace.provenance.epoch_ms == 1_772_107_200_000
    assert trace.arrival_ms.tolist() == [0, 1500]
    assert trace.duration_ms.tolist() == [900, 400]
    assert (trace.num_blocks.tolist(), trace.num_nodes) == (NUM_BLOCKS, NUM_NODES)
    assert trace.cached_tokens.tolist() == [0, 24]
    assert trace.session.tolist() == [0, 0]
    assert counts(trace) == {}


def test_spend_logs_as_csv(tmp_path: Path):
    rows = [json.loads(line) for line in SPEND_LOGS.read_text().splitlines()]
    log = tmp_path / "spend.csv"
    with log.open("w", newline="") as file:
        writer = csv.DictWriter(file, sorted({name for row in rows for name in row}))
        writer.writeheader()
        for row in rows:
            cells = {
                name: value if isinstance(value, str) else json.dumps(value) for name, value in row.items()
            }
            writer.writerow(cells)
    assert detected(log) == ["litellm"]
    trace = read_log("litellm", log)
    assert trace.num_blocks.tolist() == [*NUM_BLOCKS, 0]
    assert trace.cached_tokens.tolist() == [0, 24, -1]


def test_a_page_of_the_api(tmp_path: Path):
    rows = [json.loads(line) for line in SPEND_LOGS.read_text().splitlines()]
    log = tmp_path / "page.json"
    log.write_text(json.dumps({"data": rows, "total": 6, "page": 1}))
    assert detected(log) == ["litellm"]
    assert read_log("litellm", log).num_requests == 3


@pytest.mark.parametrize(
    ("row", "text", "num_messages", "num_tools"),
    [
        ({"messages": "once upon"}, "once upon", 0, 0),
        ({"messages": {"messages": FIRST}}, None, 2, 0),
        ({"messages": FIRST, "model_parameters": {"tools": [{"type": "function"}]}}, None, 2, 1),
        ({"messages": {}, "proxy_server_request": {"body": {"messages": FIRST, "tools": [{}]}}}, None, 2, 1),
        ({"messages": FIRST, "proxy_server_request": '{"body": {"tools": [{}]}}'}, None, 2, 1),
    ],
)
def test_where_the_request_lies(tmp_path: Path, row, text, num_messages, num_tools):
    (prompt,), _ = prompts_in("litellm", write_lines(tmp_path / "log.jsonl", ROW | row))
    assert (prompt.text, len(prompt.messages), len(prompt.tools)) == (text, num_messages, num_tools)
    assert (prompt.arrival_ms, prompt.duration_ms) == (1_772_107_200_500, 500)


@pytest.mark.parametrize(
    ("row", "session"),
    [
        ({"session_id": "s", "trace_id": "t"}, "s"),
        ({"trace_id": "t"}, "t"),
        ({"metadata": {"litellm_session_id": "s"}, "trace_id": "t"}, "s"),
        ({}, None),
    ],
)
def test_sessions(tmp_path: Path, row, session):
    (prompt,), _ = prompts_in("litellm", write_lines(tmp_path / "log.jsonl", ROW | row))
    assert prompt.session == session


def test_a_stream_without_usage_counts_by_its_text(tmp_path: Path):
    log = write_lines(tmp_path / "log.jsonl", ROW | {"prompt_tokens": 0, "completion_tokens": 0})
    assert read_log("litellm", log).input_tokens.tolist() == [27]


def test_a_row_without_a_time_is_unusable(tmp_path: Path):
    log = write_lines(tmp_path / "log.jsonl", {name: ROW[name] for name in ("call_type", "messages")})
    with pytest.raises(TraceFormatError, match=r"log\.jsonl:1: startTime is missing"):
        read_log("litellm", log)
