"""OpenClaw's database: the same events as the transcripts give the same trace, and nothing is written."""

import hashlib
import json
import sqlite3
from pathlib import Path

import pytest
import zstandard

from tests.support.text_logs import counts
from tests.support.traces import write_rows
from tests.support.transcripts import (
    TABLES,
    insert_events,
    read,
    rows_in,
    same_requests,
    sample,
    write_database,
)
from warmset.errors import TraceFormatError


def digest(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


@pytest.mark.parametrize("packed_from_bytes", [0, 300, 10**9])
def test_rows_give_the_trace_of_the_lines(shared: Path, tmp_path: Path, packed_from_bytes: int) -> None:
    sessions = [rows_in(sample(shared, number)) for number in (1, 2)]
    database = write_database(tmp_path / "openclaw-agent.sqlite", sessions, packed_from_bytes)
    before = digest(tmp_path)
    lines = [write_rows(tmp_path / f"{number}.jsonl", *rows) for number, rows in enumerate(sessions)]
    same_requests(read(database), read(*lines))
    assert {name: value for name, value in digest(tmp_path).items() if name in before} == before


def test_a_database_in_use_is_read_from_a_copy(shared: Path, tmp_path: Path) -> None:
    """What was committed last is in its write-ahead log only; neither file changes."""
    path = tmp_path / "openclaw-agent.sqlite"
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.executescript(TABLES)
    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    insert_events(writer, rows_in(sample(shared, 1)))
    writer.commit()
    before = digest(tmp_path)
    assert path.with_name(f"{path.name}-wal").stat().st_size > 0
    trace = read(path)
    assert trace.input_tokens.sum() == 112_411
    assert digest(tmp_path) == before
    writer.close()


def test_parts_of_a_database_are_no_files_of_their_own(shared: Path, tmp_path: Path) -> None:
    path = write_database(tmp_path / "openclaw-agent.sqlite", [rows_in(sample(shared, 1))])
    part = tmp_path / "openclaw-agent.sqlite-shm"
    part.write_bytes(b"\1" * 64)
    assert counts(read(path, part)) == counts(read(path))


def test_a_packed_database_is_read(shared: Path, tmp_path: Path) -> None:
    path = write_database(tmp_path / "openclaw-agent.sqlite", [rows_in(sample(shared, 1))])
    packed = tmp_path / "openclaw-agent.sqlite.zst"
    packed.write_bytes(zstandard.compress(path.read_bytes()))
    same_requests(read(packed), read(path))


def test_tables_of_sessions_name_traffic(shared: Path, tmp_path: Path) -> None:
    rows = rows_in(sample(shared, 1))
    path = write_database(tmp_path / "openclaw-agent.sqlite", [rows])
    report = {"systemPrompt": {"chars": 8000}, "tools": {"schemaChars": 4000}}
    with sqlite3.connect(path) as connection:
        key = "agent:main:cron:nightly:run:1"
        connection.execute("INSERT INTO session_windows VALUES (?, ?, NULL)", (rows[0]["id"], key))
        connection.execute(
            "INSERT INTO session_nodes VALUES (?, ?, ?)",
            (key, rows[0]["id"], json.dumps({"systemPromptReport": report})),
        )
    connection.close()
    trace = read(path)
    assert trace.kind_names == ("cron",)
    assert "1 of 1 sessions" in " ".join(trace.provenance.assumptions)


def test_a_report_may_have_a_table_of_its_own(shared: Path, tmp_path: Path) -> None:
    rows = rows_in(sample(shared, 1))
    path = write_database(tmp_path / "openclaw-agent.sqlite", [rows])
    with sqlite3.connect(path) as connection:
        connection.execute(
            "INSERT INTO session_windows VALUES (?, 'agent:main:main', NULL)", (rows[0]["id"],)
        )
        connection.execute("CREATE TABLE session_entry_snapshots (session_key TEXT, snapshot_json TEXT)")
        connection.execute(
            "INSERT INTO session_entry_snapshots VALUES ('agent:main:main', ?)",
            (json.dumps({"systemPrompt": {"chars": 8000}}),),
        )
    connection.close()
    trace = read(path)
    assert trace.kind_names == ("main",)
    assert "1 of 1 sessions" in " ".join(trace.provenance.assumptions)


def test_a_cold_session_is_read_from_its_archive(shared: Path, tmp_path: Path) -> None:
    path = write_database(tmp_path / "openclaw-agent.sqlite", [rows_in(sample(shared, 2))])
    with sqlite3.connect(path) as connection:
        packed = zstandard.compress(sample(shared, 1).read_bytes())
        connection.execute(
            "INSERT INTO session_transcript_cold_archives VALUES ('cold', 'x.jsonl.zst', 'sqlite', ?)",
            (packed,),
        )
    connection.close()
    assert read(path).input_tokens.sum() == 112_411 + 38_459


def test_what_was_imported_counts_once(shared: Path, tmp_path: Path) -> None:
    """The originals beside the database, and in the folder of imported ones."""
    path = write_database(tmp_path / "openclaw-agent.sqlite", [rows_in(sample(shared, 1))])
    archive = tmp_path / "session-sqlite-import-archive"
    archive.mkdir()
    for folder in (tmp_path, archive):
        (folder / "a.jsonl").write_bytes(sample(shared, 1).read_bytes())
    (archive / "b.jsonl").write_bytes(sample(shared, 2).read_bytes())
    trace = read(tmp_path / "a.jsonl", archive / "a.jsonl", archive / "b.jsonl", path)
    assert trace.num_requests == 11
    assert counts(trace)["copied_files"] == 1
    assert counts(trace)["copied_calls"] == 7


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("seq", "has no column seq or sequence"),
        ("session_id", "has no column session_id or session_key"),
    ],
)
def test_a_table_without_a_column(column: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "openclaw-agent.sqlite"
    with sqlite3.connect(path) as connection:
        names = [name for name in ("session_id", "seq", "event_json") if name != column]
        connection.execute(f"CREATE TABLE transcript_events ({', '.join(names)})")
    connection.close()
    with pytest.raises(TraceFormatError, match=message) as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_a_broken_frame_is_a_bad_row(shared: Path, tmp_path: Path) -> None:
    path = write_database(tmp_path / "openclaw-agent.sqlite", [rows_in(sample(shared, 1))])
    with sqlite3.connect(path) as connection:
        connection.execute(
            "UPDATE transcript_events SET event_json = NULL, event_zstd = ? WHERE seq = 7", (b"no frame",)
        )
    connection.close()
    with pytest.raises(TraceFormatError, match=r"event 7: its event is empty, or its zstd frame is broken"):
        read(path)
    assert counts(read(path, bad_share=0.1))["bad_rows"] == 1


def test_a_database_that_breaks_off(shared: Path, tmp_path: Path) -> None:
    path = write_database(tmp_path / "openclaw-agent.sqlite", [rows_in(sample(shared, 1))])
    path.write_bytes(path.read_bytes()[:8192])
    with pytest.raises(TraceFormatError, match=r"the database cannot be read: .*: copy it again"):
        read(path)
