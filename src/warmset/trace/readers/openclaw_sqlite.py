"""OpenClaw's database of one agent, since 2026.8: transcripts as rows, the large ones packed with zstd.

The database is never opened where it lies while it has a write-ahead log: both are copied first. Columns are
looked up, since their set grows with each schema version.
Source: openclaw/openclaw, `src/state/openclaw-agent-schema.sql`.
"""

import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import zstandard

from warmset.errors import InputError, TraceFormatError
from warmset.trace.readers.openclaw_files import SessionFacts, entry_facts, report_chars
from warmset.trace.source import MAX_LINE_BYTES, NOT_JSON, Input
from warmset.trace.tally import Tally

_EVENTS = "transcript_events"
_SESSION_COLUMNS = ("session_id", "session_key")
_ORDER_COLUMNS = ("seq", "sequence", "event_index", "position")
_PAYLOADS = ("event_json", "event_zstd")
_SIZE = "event_utf8_bytes"
_COPY_TRIES = 3


class Transcript(NamedTuple):
    """One session of a database."""

    session: str
    facts: SessionFacts
    lines: Iterator[tuple[str, bytes]]
    """Place and text of each event; to be read before the next session."""


@contextmanager
def opened_database(source: Input) -> Iterator["AgentDatabase"]:
    """An agent's database, read from a copy where it is in use or packed.

    Raises: TraceFormatError where it cannot be read as one, or changes all the time.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = _readable(source, Path(folder))
        mode = "mode=ro&immutable=1" if path == source.path else "mode=rw"
        try:
            with closing(sqlite3.connect(f"{path.resolve().as_uri()}?{mode}", uri=True)) as connection:
                connection.execute("PRAGMA query_only = 1")
                yield AgentDatabase(source.label, connection)
        except sqlite3.Error as error:
            raise TraceFormatError(
                f"{source.label}: the database cannot be read: {error}: copy it again, with its -wal file, "
                "while OpenClaw is stopped"
            ) from error


def _readable(source: Input, folder: Path) -> Path:
    """The database itself where no program has it open, else a copy with its log."""
    with source.opened() as stream:
        is_plain = (
            not source.is_stdin and stream.read(15) == b"SQLite format 3" and _is_as_stored(source.path)
        )
    log = source.path.with_name(source.path.name + "-wal")
    if is_plain and not log.exists():
        return source.path
    copy = folder / "agent.sqlite"
    if not is_plain:
        with source.opened() as stream, copy.open("wb") as written:
            shutil.copyfileobj(stream, written)
        return copy
    for _ in range(_COPY_TRIES):
        before = _stamps(source.path, log)
        shutil.copyfile(source.path, copy)
        shutil.copyfile(log, folder / "agent.sqlite-wal")
        if _stamps(source.path, log) == before:
            return copy
    raise InputError(
        f"{source.label}: is written to all the time: stop OpenClaw, or copy it with its -wal file"
    )


def _is_as_stored(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(15) == b"SQLite format 3"


def _stamps(*paths: Path) -> list[tuple[int, int]]:
    return [(state.st_mtime_ns, state.st_size) for state in (path.stat() for path in paths)]


class AgentDatabase:
    """Sessions and their events."""

    def __init__(self, label: str, connection: sqlite3.Connection) -> None:
        self._label = label
        self._connection = connection
        self._connection.text_factory = bytes

    def transcripts(self, tally: Tally) -> Iterator[Transcript]:
        """All sessions of the database, those in cold storage too; each is to be read before the next.

        Raises: TraceFormatError where a table lacks a column that is needed.
        """
        facts = self._session_facts(tally)
        columns = self._columns(_EVENTS)
        session = self._needed(_SESSION_COLUMNS, columns)
        order = self._needed(_ORDER_COLUMNS, columns)
        self._needed(_PAYLOADS, columns)
        rows = self._select(_EVENTS, (session, order, *_PAYLOADS, _SIZE), ordered_by=(session, order))
        for name, events in groupby(rows, key=lambda row: _text(row[0])):
            yield Transcript(name, facts.get(name, SessionFacts()), self._events(name, events, tally))
        for name, packed in self._archives():
            yield Transcript(name, facts.get(name, SessionFacts()), self._lines(name, packed, tally))

    def _events(
        self, session: str, rows: Iterable[Sequence[Any]], tally: Tally
    ) -> Iterator[tuple[str, bytes]]:
        for _, number, plain, packed, size in rows:
            place = f"{self._label}: session {session}, event {number}"
            event = _bytes(plain) if plain is not None else _unpacked(packed)
            if event is None or (size is not None and packed is not None and len(event) != size):
                tally.rows += 1
                tally.drop(place, "its event is empty, or its zstd frame is broken: repair the database")
                continue
            yield place, event

    def _archives(self) -> Iterator[tuple[str, bytes]]:
        """Sessions that were moved out of the events into one packed text."""
        for table in ("session_transcript_cold_archives", "session_transcript_archives"):
            if {"session_id", "archive_blob"} <= self._columns(table):
                for session, packed in self._select(table, ("session_id", "archive_blob")):
                    if packed is not None:
                        yield _text(session), _bytes(packed)

    def _lines(self, session: str, packed: bytes, tally: Tally) -> Iterator[tuple[str, bytes]]:
        place = f"{self._label}: archive of session {session}"
        text = _unpacked(packed) if packed.startswith(zstandard.FRAME_HEADER) else packed
        if text is None:
            tally.rows += 1
            tally.drop(place, "its zstd frame is broken: repair the database")
            return
        for number, line in enumerate(text.splitlines(), start=1):
            yield f"{place}, line {number}", line

    def _session_facts(self, tally: Tally) -> dict[str, SessionFacts]:
        """What the tables of sessions say, by session id."""
        nodes: dict[str, SessionFacts] = {}
        if {"session_key", "entry_json"} <= self._columns("session_nodes"):
            for key, entry in self._select("session_nodes", ("session_key", "entry_json")):
                nodes[_text(key)] = entry_facts(_text(key), self._object(entry, tally))
        for key, report in self._reports(tally):
            known = nodes.get(key, SessionFacts(key))
            nodes[key] = SessionFacts(key, known.is_spawned, known.num_report_chars or report)
        columns = self._columns("session_windows")
        if not {"session_id", "session_key"} <= columns:
            return {}
        found: dict[str, SessionFacts] = {}
        for session, key_bytes, spawner in self._select(
            "session_windows", ("session_id", "session_key", "spawned_by")
        ):
            key = _text(key_bytes)
            node = nodes.get(key, SessionFacts(key))
            found[_text(session)] = SessionFacts(key, node.is_spawned or bool(spawner), node.num_report_chars)
        return found

    def _reports(self, tally: Tally) -> Iterator[tuple[str, int | None]]:
        """Sizes of system prompts that have a table of their own, since schema 24."""
        table = "session_entry_snapshots"
        columns = self._columns(table)
        if "session_key" not in columns:
            return
        for column in sorted(name for name in columns if name.endswith("_json")):
            for key, value in self._select(table, ("session_key", column)):
                found = self._object(value, tally)
                chars = report_chars(found.get("systemPromptReport", found))
                if chars:
                    yield _text(key), chars

    def _object(self, value: Any, tally: Tally) -> dict[str, Any]:  # noqa: ANN401 - whatever a column holds
        try:
            decoded = msgspec.json.decode(_bytes(value)) if value is not None else None
        except NOT_JSON:
            tally.note("broken_index", f"{self._label}: an entry of its sessions is no JSON")
            return {}
        return decoded if isinstance(decoded, dict) else {}

    def _columns(self, table: str) -> set[str]:
        return {_text(row[1]) for row in self._connection.execute(f"PRAGMA table_info({table})")}

    def _needed(self, names: Sequence[str], columns: set[str]) -> str:
        for name in names:
            if name in columns:
                return name
        raise TraceFormatError(
            f"{self._label}: the table {_EVENTS} has no column {' or '.join(names)}, but "
            f"{json.dumps(sorted(columns))}: export the sessions as JSONL, and import those"
        )

    def _select(
        self, table: str, names: Sequence[str], ordered_by: Sequence[str] = ()
    ) -> Iterator[Sequence[Any]]:
        """Values of columns, NULL where the table has none of the name."""
        columns = self._columns(table)
        values = ", ".join(_quoted(name) if name in columns else "NULL" for name in names)
        order = f" ORDER BY {', '.join(map(_quoted, ordered_by))}" if ordered_by else ""
        return self._connection.execute(f"SELECT {values} FROM {_quoted(table)}{order}")  # noqa: S608 - quoted


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(value: Any) -> str:  # noqa: ANN401 - whatever a column holds
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def _bytes(value: Any) -> bytes:  # noqa: ANN401 - whatever a column holds
    return value if isinstance(value, bytes) else str(value).encode()


def _unpacked(packed: Any) -> bytes | None:  # noqa: ANN401 - whatever a column holds
    """The text of a frame; `None` where it is none, or larger than a line may be."""
    if not isinstance(packed, bytes):
        return None
    try:
        with zstandard.ZstdDecompressor().stream_reader(packed) as stream:
            text = stream.read(MAX_LINE_BYTES + 1)
    except zstandard.ZstdError:
        return None
    return text if 0 < len(text) <= MAX_LINE_BYTES else None
