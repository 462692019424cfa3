"""What the files of an OpenClaw folder are, and what its index says of the sessions.

Source: openclaw/openclaw, `src/config/sessions`, `src/trajectory`, `src/agents/cache-trace.ts`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from warmset.trace.source import NOT_JSON, Head, Input
from warmset.trace.tally import Tally

FileKind = Literal["database", "transcript", "exact", "index", "part", "copy", "other"]
"""`part` belongs to a database; `copy` repeats another file; `exact` holds prompts as they were sent."""

_SQLITE_MAGIC = b"SQLite format 3\0"
_DATABASE_PARTS = ("-wal", "-shm", "-journal")
_TRAJECTORY = "openclaw-trajectory"
_ENTRY_TYPES = {
    *("session", "message", "model_change", "thinking_level_change", "compaction", "branch_summary"),
    *("custom_message", "custom", "label", "session_info", "reset"),
}
_HOME = ".openclaw"
_AGENT_FOLDERS = {"sessions", "agent"}
"""Below `agents/<agent>`."""
_STAGES = (b"session:", b"prompt:", b"stream:", b"cache:")
_NAMES_BYTES = 4096
IMPORT_ARCHIVE = "session-sqlite-import-archive"


def file_kind(head: Head) -> FileKind:
    """What a file is, by its content, and by its name where that tells copies from originals."""
    name = head.path.name
    if name.endswith(_DATABASE_PARTS) and ".sqlite" in name:
        return "part"
    if head.start.startswith(_SQLITE_MAGIC):
        is_agents = b"transcript_events" in head.start or name.startswith("openclaw-agent")
        return "database" if is_agents else "other"
    if name == "sessions.json" and b'"sessionId"' in head.start:
        return "index"
    if not head.rows:
        return "exact" if _starts_cache_trace(head.start) else "other"
    first = head.rows[0]
    if first.get("traceSchema") == _TRAJECTORY or _is_cache_trace(first):
        return "exact"
    if not any(_is_entry(row) for row in head.rows):
        return "other"
    return "copy" if ".checkpoint." in name or ".corrupt-" in name else "transcript"


def is_ours(head: Head) -> bool:
    """Whether a file is of OpenClaw, or lies in its folder."""
    parts = head.path.parts
    is_in_agent = len(parts) > 3 and "agents" in parts[:-3] and not _AGENT_FOLDERS.isdisjoint(parts)
    return file_kind(head) != "other" or _HOME in parts or is_in_agent or ".trajectory" in head.path.name


def _starts_cache_trace(start: bytes) -> bool:
    """Whether a first row longer than a head is of a cache trace: prompts come after the names."""
    names = start[:_NAMES_BYTES]
    return b'"seq":' in names and any(b'"stage":"%s' % stage in names for stage in _STAGES)


def _is_cache_trace(row: Mapping[str, Any]) -> bool:
    return {"ts", "seq", "stage"} <= row.keys() and isinstance(row["stage"], str) and ":" in row["stage"]


def _is_entry(row: Mapping[str, Any]) -> bool:
    kind = row.get("type")
    if not isinstance(kind, str) or kind not in _ENTRY_TYPES or "timestamp" not in row:
        return False
    if kind == "session":
        return "id" in row
    return "parentId" in row or isinstance(row.get("message"), dict) or "modelId" in row


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """What the index says of a session."""

    key: str = ""
    is_spawned: bool = False
    num_report_chars: int | None = None
    """Characters of system prompt and tool schemas, as the agent reported them."""

    @property
    def agent(self) -> str:
        """The agent that the key names."""
        parts = self.key.split(":")
        return parts[1] if len(parts) > 1 and parts[0] == "agent" else ""


def traffic_kind(facts: SessionFacts, *, has_parent: bool) -> str | None:
    """The class of traffic that a session key names; without one, sub-agent if its header names a parent."""
    parts = facts.key.split(":")
    named = set(parts[2:] if parts[0] == "agent" else parts)
    for part, kind in _KINDS.items():
        if part in named:
            return kind
    if facts.is_spawned or (has_parent and not facts.key):
        return "sub-agent"
    return "other" if facts.key else None


_KINDS = {
    "heartbeat": "heartbeat",
    "subagent": "sub-agent",
    "cron": "cron",
    "hook": "hook",
    "dashboard": "dashboard",
    "group": "group",
    "channel": "channel",
    "direct": "direct",
    "dm": "direct",
    "main": "main",
}


def agent_of(path: Path, facts: SessionFacts) -> str:
    """The agent of a file: as the session key says, or the folder below `agents`."""
    parts = path.parts
    if facts.agent or "agents" not in parts[:-1]:
        return facts.agent
    return parts[parts.index("agents") + 1]


def index_entries(source: Input, tally: Tally) -> Iterator[tuple[str, SessionFacts]]:
    """Sessions of a `sessions.json`: their id, and the name of their file where the entry has one."""
    try:
        entries = msgspec.json.decode(source.whole(), type=dict[str, Any])
    except NOT_JSON:
        tally.note("broken_index", f"{source.label}: sessions are of no known kind")
        return
    for key, entry in entries.items():
        if not isinstance(entry, dict):
            continue
        facts = entry_facts(key, entry)
        for name in (entry.get("sessionId"), Path(str(entry.get("sessionFile", ""))).name):
            if isinstance(name, str) and name:
                yield name, facts


def entry_facts(key: str, entry: Mapping[str, Any]) -> SessionFacts:
    """What an entry of the index says."""
    return SessionFacts(key, bool(entry.get("spawnedBy")), report_chars(entry.get("systemPromptReport")))


def report_chars(report: Any) -> int | None:  # noqa: ANN401 - any JSON value
    """Characters of a `systemPromptReport`: the system prompt, and the schemas of the tools."""
    if not isinstance(report, dict):
        return None
    sizes = [_number(report.get("systemPrompt"), "chars"), _number(report.get("tools"), "schemaChars")]
    return sum(sizes) or None


def _number(value: Any, field: str) -> int:  # noqa: ANN401 - any JSON value
    found = value.get(field) if isinstance(value, dict) else None
    return found if isinstance(found, int) and 0 <= found < 2**40 else 0
