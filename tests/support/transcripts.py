"""Transcripts of agents: the two hand-written samples, databases of them, and what their traces share."""

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import zstandard

from tests.support.text_logs import read_log
from tests.support.traces import requests_of
from warmset.trace import ReadOptions, Trace

Row = dict[str, Any]
DEFAULT = ReadOptions()
SAMPLES = ("openclaw_example_1.jsonl", "openclaw_example_2.jsonl")


def sample(shared: Path, number: int) -> Path:
    return shared / "traces" / "samples" / SAMPLES[number - 1]


def rows_in(path: Path) -> list[Row]:
    """The lines of a sample, without one that breaks off."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.endswith("}")]


def read(*paths: Path, options: ReadOptions = DEFAULT, bad_share: float = 0.01) -> Trace:
    """OpenClaw files."""
    return read_log("openclaw", *paths, options=options, bad_share=bad_share)


def shared_tokens(trace: Trace) -> list[int]:
    """Leading tokens of each prompt in blocks that an earlier one has."""
    seen: set[int] = set()
    shared = []
    for request in requests_of(trace):
        known = 0
        while known < len(request.ids) and request.ids[known] in seen:
            known += 1
        seen.update(request.ids)
        shared.append(min(known * trace.block_tokens, request.input_tokens))
    return shared


def blocks_in(tokens: int, block_tokens: int = 16) -> int:
    """Tokens that whole blocks cover."""
    return tokens // block_tokens * block_tokens


def same_requests(one: Trace, other: Trace) -> None:
    """Everything that traces say of requests and of what they share; not where they are from."""
    for name in ("arrival_ms", "input_tokens", "output_tokens", "leaf", "num_blocks", "node_parent"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for name in ("previous", "think_ms", "duration_ms", "cached_tokens", "session"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)


TABLES = """
    CREATE TABLE session_nodes (
        session_key TEXT PRIMARY KEY, current_session_id TEXT, entry_json TEXT) STRICT;
    CREATE TABLE session_windows (session_id TEXT PRIMARY KEY, session_key TEXT, spawned_by TEXT) STRICT;
    CREATE TABLE transcript_events (
        session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT, created_at INTEGER NOT NULL,
        event_zstd BLOB, event_utf8_bytes INTEGER, PRIMARY KEY (session_id, seq)) STRICT;
    CREATE TABLE session_transcript_cold_archives (
        session_id TEXT PRIMARY KEY, archive_name TEXT, storage TEXT, archive_blob BLOB) STRICT;
"""
# Source: openclaw/openclaw, `src/state/openclaw-agent-schema.sql`, of which it is a part.


def write_database(path: Path, sessions: Sequence[Sequence[Row]], packed_from_bytes: int = 300) -> Path:
    """An agent's database; events from a size on are packed. Rows are put in from last to first."""
    with sqlite3.connect(path) as connection:
        connection.executescript(TABLES)
        for rows in sessions:
            insert_events(connection, rows, packed_from_bytes)
    connection.close()
    return path


def insert_events(connection: sqlite3.Connection, rows: Sequence[Row], packed_from_bytes: int = 300) -> None:
    session = rows[0]["id"]
    for number in reversed(range(len(rows))):
        text = json.dumps(rows[number]).encode()
        is_packed = len(text) >= packed_from_bytes
        connection.execute(
            "INSERT INTO transcript_events VALUES (?, ?, ?, 0, ?, ?)",
            (
                session,
                number,
                None if is_packed else text.decode(),
                zstandard.compress(text, 1) if is_packed else None,
                len(text) if is_packed else None,
            ),
        )


HEADERS: dict[str, Row] = {
    "1": {
        "type": "session",
        "id": "s",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "provider": "x",
        "modelId": "m",
    },
    "2": {"type": "session", "version": 2, "id": "s", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/"},
    "3": {"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/"},
}
"""The first lines of transcripts, by version."""
