"""Entries of OpenClaw transcripts, versions 1 to 3: lines of JSON into what each adds to a prompt.

Version 1 is linear and has no ids; later ones are trees by `id` and `parentId`. Unknown types are carried on.
Source: badlogic/pi-mono, openclaw/openclaw, `session-manager.ts`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import msgspec

from warmset.trace.forest import UNKNOWN
from warmset.trace.readers.log_rows import UnusableRowError
from warmset.trace.readers.log_times import Clock
from warmset.trace.readers.spans import ContentHash, ContentHasher
from warmset.trace.readers.transcript import MAX_TOKENS, NO_ENTRY, Call, Entry
from warmset.trace.readers.transcript_rows import Row, rows_of_lines
from warmset.trace.tally import Tally

NEWEST_VERSION = 3
IMAGE_CHARS = 4800
"""What OpenClaw itself counts for an image."""
_COPIES = "openclaw"
"""Provider of texts that were sent to a channel without a model."""
_FAILURES = {"error": "failed_calls", "aborted": "aborted_calls"}
_CUTS = ("compaction", "reset")


class _Usage(msgspec.Struct):
    input: int | None = None
    output: int | None = None
    cache_read: int | None = msgspec.field(default=None, name="cacheRead")
    cache_write: int | None = msgspec.field(default=None, name="cacheWrite")


class Text(NamedTuple):
    """What content holds."""

    content: ContentHash
    num_chars: int


@dataclass(frozen=True, slots=True)
class Origin:
    """What a call needs to know of its transcript."""

    session: str
    lineage: str
    kind: str | None


class EntryReader:
    """Lines of one transcript into entries."""

    def __init__(self, tally: Tally, hasher: ContentHasher, chars_per_token: float) -> None:
        self.tally = tally
        self.header: Row = {}
        self.entries: list[Entry] = []
        self._hasher = hasher
        self._chars_per_token = chars_per_token
        self._clock = Clock(tally)
        self._index_of_id: dict[str, int] = {}
        self._reports_cache: set[str] = set()

    def read(self, lines: Iterable[tuple[str, bytes]]) -> None:
        """All lines: FILE:LINE and text of each."""
        for place, row in rows_of_lines(lines, self.tally):
            self._take(row, place)

    def place_calls(self, origin: Origin) -> list[Entry]:
        """The entries, their calls with their origin, and cached tokens only where any are reported."""
        for entry in self.entries:
            if entry.call is None:
                continue
            call = entry.call
            is_reported = call.lineage in self._reports_cache
            if not is_reported:
                self.tally.note(
                    "no_cache_report", f"{call.place}: nothing was read from a cache, or none was told"
                )
            entry.call = replace(
                call,
                session=origin.session,
                lineage=f"{origin.lineage}\0{call.lineage}",
                kind=origin.kind,
                cached_tokens=call.cached_tokens if is_reported else UNKNOWN,
            )
        return self.entries

    def _take(self, row: Row, place: str) -> None:
        kind = row.get("type")
        index = len(self.entries)
        if index == 0 and kind != "session":
            self.tally.note("no_header", place)
        entry = Entry(parent_index=self._parent(row, place), time_ms=self._time(row, place))
        self.entries.append(entry)
        identity = row.get("id")
        if kind == "session":
            self._take_header(row, place)
        elif isinstance(identity, str):
            self._index_of_id[identity] = index
        if kind == "message" and isinstance(row.get("message"), dict):
            self._take_message(entry, row, row["message"], place)
        elif kind == "custom_message":
            self._add_text(entry, self._text("user", row.get("content")))
        elif kind == "branch_summary":
            self._add_text(entry, self._text("user", row.get("summary")))
        elif kind in _CUTS:
            self._take_cut(entry, row, place)

    def _take_header(self, row: Row, place: str) -> None:
        self.header = self.header or row
        version = row.get("version", 1)
        if isinstance(version, int) and version > NEWEST_VERSION:
            self.tally.note("newer_version", f"{place}: version {version}, read as {NEWEST_VERSION}")

    def _parent(self, row: Row, place: str) -> int:
        """The entry that a row names; the one before it where it names none, or one that is not there."""
        before = len(self.entries) - 1
        if "parentId" not in row:
            return before
        parent = row["parentId"]
        if parent is None:
            return NO_ENTRY
        if parent in self._index_of_id:
            return self._index_of_id[parent]
        self.tally.note(
            "lost_parents", f"{place}: parentId names no line before; taken to follow the line before"
        )
        return before

    def _take_cut(self, entry: Entry, row: Row, place: str) -> None:
        entry.is_cut = True
        if row.get("type") == "compaction":
            self.tally.note(
                "unlogged_summary_calls", f"{place}: the call that wrote the summary is not in the log"
            )
            self._add_text(entry, self._text("user", row.get("summary")))
        kept, kept_index = row.get("firstKeptEntryId"), row.get("firstKeptEntryIndex")
        if isinstance(kept, str):
            entry.kept_index = self._index_of_id.get(kept, len(self.entries))
        elif isinstance(kept_index, int) and kept_index >= 0:
            entry.kept_index = kept_index

    # --- messages ---------------------------------------------------------------------------------

    def _take_message(self, entry: Entry, row: Row, message: Row, place: str) -> None:
        role = message.get("role")
        if role == "assistant":
            self._take_answer(entry, row, message, place)
        elif role == "bashExecution":
            if not message.get("excludeFromContext"):
                shown = [message.get("command"), message.get("output")]
                self._add_text(entry, self._text("user", "\n".join(map(str, shown))))
        elif role in {"user", "toolResult", "custom", "hookMessage"}:
            entry.is_turn = role == "user"
            spoken = "toolResult" if role == "toolResult" else "user"
            self._add_text(entry, self._text(spoken, _as_sent(message)))
        else:
            self.tally.note("unknown_roles", place)

    def _take_answer(self, entry: Entry, row: Row, message: Row, place: str) -> None:
        if message.get("provider") == _COPIES:
            self.tally.note("delivery_copies", place)
            return
        stopped = str(message.get("stopReason"))
        text = self._text("assistant", message.get("content"))
        usage = self._usage(message, place)
        prompt = (
            0 if usage is None else (usage.input or 0) + (usage.cache_read or 0) + (usage.cache_write or 0)
        )
        if stopped not in _FAILURES:
            entry.content = text.content
            entry.estimated_tokens = self._tokens(text)
        if usage is None or prompt == 0:
            if not (usage is None and message.get("usage")):  # then it was dropped
                self.tally.note(_FAILURES.get(stopped, "calls_without_usage"), place)
            return
        entry.call = self._call(row, message, usage, entry.time_ms, place)
        if entry.call is not None and stopped not in _FAILURES:
            entry.estimated_tokens = usage.output or 0

    def _usage(self, message: Row, place: str) -> _Usage | None:
        if message.get("usage") is None:
            return None
        try:
            usage = msgspec.convert(message["usage"], _Usage)
        except msgspec.ValidationError as error:
            self.tally.drop(place, f"usage: {error}")
            return None
        for field in usage.__struct_fields__:
            tokens = getattr(usage, field)
            if tokens is not None and not 0 <= tokens <= MAX_TOKENS:
                self.tally.drop(
                    place, f"usage has {tokens} tokens of {field}: it must lie between 0 and {MAX_TOKENS}"
                )
                return None
        return usage

    def _call(self, row: Row, message: Row, usage: _Usage, end_ms: int, place: str) -> Call | None:
        """The call of an answer: it starts at the message's time, and ends at the entry's."""
        start_ms = self._time(message, place)
        if start_ms == UNKNOWN:
            start_ms, end_ms = end_ms, UNKNOWN
        if start_ms == UNKNOWN:
            self.tally.drop(place, "has no time: timestamp must be ISO 8601, or milliseconds since 1970")
            return None
        provider, model = str(message.get("provider", "")), str(message.get("model", ""))
        lineage = f"{provider}\0{model}"
        if usage.cache_read or usage.cache_write:
            self._reports_cache.add(lineage)
        identity = row.get("id")
        named = identity if isinstance(identity, str) else f"{self.header.get('id')}#{len(self.entries)}"
        return Call(
            key=f"{named}@{row.get('timestamp')}",
            place=place,
            arrival_ms=start_ms,
            end_ms=end_ms,
            input_tokens=(usage.input or 0) + (usage.cache_read or 0) + (usage.cache_write or 0),
            output_tokens=usage.output or 0,
            cached_tokens=UNKNOWN if usage.cache_read is None else usage.cache_read,
            lineage=lineage,
            model=model,
            session="",
            kind=None,
        )

    def _time(self, row: Row, place: str) -> int:
        try:
            return self._clock.milliseconds(row.get("timestamp"), "timestamp", place)
        except UnusableRowError:
            return UNKNOWN

    # --- text -------------------------------------------------------------------------------------

    def _add_text(self, entry: Entry, text: Text) -> None:
        entry.content = text.content
        entry.estimated_tokens = self._tokens(text)

    def _tokens(self, text: Text) -> int:
        return -int(-text.num_chars // self._chars_per_token)

    def _text(self, role: str, content: Any) -> Text:  # noqa: ANN401 - whatever a log holds
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not isinstance(blocks, list):
            return Text(0, 0)
        num_chars = sum(map(_block_chars, blocks))
        return Text(self._hasher.hash(role, msgspec.json.encode(blocks)), num_chars)


def _as_sent(message: Row) -> Any:  # noqa: ANN401 - whatever a log holds
    """The text that the model got, where the log has it beside what the person wrote."""
    own = message.get("__openclaw")
    projection = own.get("modelPromptProjection") if isinstance(own, dict) else None
    text = projection.get("text") if isinstance(projection, dict) else None
    return text if isinstance(text, str) else message.get("content")


def _block_chars(block: Any) -> int:  # noqa: ANN401 - whatever a log holds
    if not isinstance(block, dict):
        return len(str(block))
    match block.get("type"):
        case "text":
            return len(str(block.get("text", "")))
        case "thinking":
            return len(str(block.get("thinking", "")))
        case "toolCall":
            return len(str(block.get("name", ""))) + len(msgspec.json.encode(block.get("arguments")))
        case "image":
            return IMAGE_CHARS
    return len(msgspec.json.encode(block))
