"""Which files the readers of transcripts take for their own: each by one reader."""

import json
from pathlib import Path

import pytest

from tests.support.text_logs import DATA, TEXT_FORMATS, format_module
from tests.support.traces import mooncake_row, write_rows
from tests.support.transcripts import HEADERS, write_database
from warmset.trace.readers.openclaw_files import SessionFacts, traffic_kind
from warmset.trace.source import Input

FORMATS = ("weka", "mooncake", "tracelab", "claude_code", "openclaw", *TEXT_FORMATS)


def takers(path: Path) -> list[str]:
    head = Input(path).head()
    return [name for name in FORMATS if format_module(name).matches(head)]


@pytest.mark.parametrize(("version", "header"), HEADERS.items())
def test_headers_of_all_versions(version: str, header: dict[str, object], tmp_path: Path) -> None:
    assert takers(write_rows(tmp_path / f"{version}.jsonl", header)) == ["openclaw"]


def test_transcripts_without_a_header(tmp_path: Path) -> None:
    row = {"type": "model_change", "id": "a", "parentId": None, "timestamp": "2026-05-04T09:00:00.000Z"}
    assert takers(write_rows(tmp_path / "a.jsonl", row)) == ["openclaw"]


def test_the_index_and_a_database(tmp_path: Path) -> None:
    index = tmp_path / "sessions.json"
    index.write_text(json.dumps({"agent:main:main": {"sessionId": "s", "updatedAt": 1}}))
    assert takers(index) == ["openclaw"]
    assert takers(write_database(tmp_path / "openclaw-agent.sqlite", [])) == ["openclaw"]


def test_exact_prompts(tmp_path: Path) -> None:
    row = {"ts": "2026-05-04T09:00:00.100Z", "seq": 1, "stage": "session:loaded", "sessionId": "s"}
    assert takers(write_rows(tmp_path / "cache-trace.jsonl", row)) == ["openclaw"]
    event = {"traceSchema": "openclaw-trajectory", "type": "session.started", "sessionId": "s"}
    assert takers(write_rows(tmp_path / "s.trajectory.jsonl", event)) == ["openclaw"]


def test_first_rows_longer_than_a_head(tmp_path: Path) -> None:
    text = "x" * 2**20
    row = {"ts": "2026-05-04T09:00:00.100Z", "seq": 1, "stage": "session:loaded", "prompt": text}
    line = {"parentUuid": None, "sessionId": "s", "type": "user", "uuid": "u", "message": {"content": text}}
    for name, first, taker in (("cache-trace", row, "openclaw"), ("log", line, "claude_code")):
        path = tmp_path / f"{name}.jsonl"
        path.write_text(json.dumps(first, separators=(",", ":")) + "\n")
        assert takers(path) == [taker]


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("agent:main:main", "main"),
        ("agent:main:telegram:group:-100", "group"),
        ("agent:main:slack:channel:C1", "channel"),
        ("agent:main:telegram:direct:owner", "direct"),
        ("agent:main:subagent:0f", "sub-agent"),
        ("agent:ops:cron:nightly:run:1", "cron"),
        ("cron:nightly", "cron"),
        ("hook:0f", "hook"),
        ("agent:main:dashboard:0f", "dashboard"),
        ("agent:main:main:heartbeat", "heartbeat"),
        ("agent:main:explicit:x", "other"),
        ("", None),
    ],
)
def test_session_keys_name_traffic(key: str, kind: str | None) -> None:
    """The forms of openclaw.md, section 1."""
    assert traffic_kind(SessionFacts(key), has_parent=False) == kind


def test_anything_in_their_folders(tmp_path: Path) -> None:
    folders = {
        ".openclaw": "openclaw",
        "copy/agents/main/sessions": "openclaw",
        ".claude/projects": "claude_code",
    }
    for folder, taker in folders.items():
        note = tmp_path / folder / "notes.md"
        note.parent.mkdir(parents=True)
        note.write_text("# Notes\n")
        assert takers(note) == [taker]


def test_samples(shared: Path) -> None:
    samples = shared / "traces" / "samples"
    assert takers(samples / "openclaw_example_1.jsonl") == ["openclaw"]
    assert takers(samples / "openclaw_example_2.jsonl") == ["openclaw"]
    assert takers(samples / "tracelab_round_trace_sample.jsonl") == ["tracelab"]
    for path in (
        samples / "lmcache_agent_text_miniswe.jsonl.gz",
        samples / "otel_genai_prefix_sharing_example.json",
    ):
        assert len(takers(path)) == 1


def test_files_of_others(tmp_path: Path) -> None:
    assert takers(write_rows(tmp_path / "a.jsonl", mooncake_row())) == ["mooncake"]
    for path in sorted((DATA / "claude_code").rglob("*.jsonl")):
        assert takers(path) == ["claude_code"]


def test_another_database_is_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    path.write_bytes(b"SQLite format 3\0" + b"\0" * 4080)
    assert takers(path) == []
