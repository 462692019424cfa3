"""Claude Code logs: a small hand-made project, whose numbers were added up by hand."""

import json
from pathlib import Path

import pytest

from tests.support.text_logs import DATA, counts, read_log
from tests.support.traces import write_rows
from tests.support.transcripts import DEFAULT, Row, blocks_in, shared_tokens
from warmset.errors import TraceFormatError
from warmset.trace import Trace
from warmset.trace.forest import UNKNOWN

PROJECT = DATA / "claude_code" / "project"
SESSION = PROJECT / "session.jsonl"
AGENT = PROJECT / "subagents" / "agent-x.jsonl"


def read(*paths: Path, bad_share: float = 0.01) -> Trace:
    return read_log("claude_code", *paths, options=DEFAULT, bad_share=bad_share)


def rows() -> list[Row]:
    return [json.loads(line) for line in SESSION.read_text(encoding="utf-8").splitlines()]


def test_calls_of_a_project() -> None:
    """Five calls: three, one of the sub-agent between them, and one after the compaction."""
    trace = read(SESSION, AGENT)
    assert trace.input_tokens.tolist() == [15004, 15216, 9008, 15281, 14403]
    assert trace.output_tokens.tolist() == [90, 40, 33, 12, 7]
    assert trace.cached_tokens is not None
    assert trace.cached_tokens.tolist() == [3000, 15000, 0, 15216, 14000]
    assert trace.kind is not None
    assert [trace.kind_names[kind] for kind in trace.kind] == ["main", "main", "sub-agent", "main", "main"]
    assert trace.session is not None
    assert trace.session.tolist() == [0, 0, 1, 0, 0]
    assert counts(trace) == {"failed_calls": 1, "unlogged_summary_calls": 1}


def test_times_of_calls() -> None:
    """From the line before an answer to the last line of it."""
    trace = read(SESSION, AGENT)
    assert trace.provenance.epoch_ms == 1780308000000  # 2026-06-01T10:00:00Z
    assert trace.arrival_ms.tolist() == [0, 3500, 4000, 120_000, 1_860_000]
    assert trace.duration_ms is not None
    assert trace.duration_ms.tolist() == [3000, 1500, 900, 2000, 2000]
    assert trace.think_ms is not None
    assert trace.think_ms.tolist() == [UNKNOWN, 500, UNKNOWN, 115_000, 1_738_000]
    assert trace.previous is not None
    assert trace.previous.tolist() == [-1, 0, -1, 1, 3]


def test_what_prompts_share() -> None:
    """Each goes on from the one before; the compaction leaves all but 28 tokens of summary, 2 of message."""
    shared = shared_tokens(read(SESSION, AGENT))
    assert shared == [0, blocks_in(15004), 0, 15216, blocks_in(14403 - 30)]


def test_a_resumed_session_repeats_calls(tmp_path: Path) -> None:
    repeated = [row | {"sessionId": "s-2"} for row in rows()[1:6]]
    asked = repeated[0] | {"uuid": "n1", "parentUuid": "a3", "timestamp": "2026-06-02T10:00:00.000Z"}
    answered = json.loads(json.dumps(repeated[4])) | {
        "uuid": "n2",
        "parentUuid": "n1",
        "requestId": "req_9",
        "timestamp": "2026-06-02T10:00:04.000Z",
    }
    answered["message"] |= {"id": "msg_9"}
    answered["message"]["usage"] |= {"cache_creation_input_tokens": 300}
    trace = read(SESSION, write_rows(tmp_path / "resumed.jsonl", *repeated, asked, answered))
    assert counts(trace)["copied_calls"] == 2
    assert trace.num_requests == 5
    assert trace.previous is not None
    assert trace.previous[-1] == 1
    assert shared_tokens(trace)[-1] >= 15216


def test_a_torn_line_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(SESSION.read_bytes() + b'{"type":"user","uuid":"u9","par')
    assert counts(read(path))["torn_lines"] == 1


def test_a_parent_that_is_not_there(tmp_path: Path) -> None:
    trace = read(write_rows(tmp_path / "a.jsonl", *(row for row in rows() if row.get("uuid") != "s1")))
    assert counts(trace)["lost_parents"] == 1
    assert trace.input_tokens.tolist() == [15004, 15216, 15281, 14403]


def test_a_number_that_none_can_have(tmp_path: Path) -> None:
    bad = rows()
    bad[5]["message"]["usage"]["input_tokens"] = -1
    with pytest.raises(TraceFormatError, match=r":6: input_tokens is -1: it must lie between 0 and"):
        read(write_rows(tmp_path / "a.jsonl", *bad))


def test_other_files_of_the_folder_are_counted(tmp_path: Path) -> None:
    other = tmp_path / "notes.md"
    other.write_text("# Notes\n")
    assert counts(read(SESSION, other))["other_files"] == 1
