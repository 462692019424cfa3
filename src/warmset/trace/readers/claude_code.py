"""Claude Code logs: `~/.claude/projects/<project>/<session>.jsonl`, and those of its sub-agents.

One model call is written as several lines, one a part of its answer, with the same `message.id`; its counters
are repeated, and the output is whole in the last. Lines form trees by `uuid` and `parentUuid`; a line of
subtype `compact_boundary` cuts one. What prompts share is put together as in `transcript`.
Source: files as written by 2.0 and 2.1; the format is not documented.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec

from warmset.trace.builder import TraceBuilder
from warmset.trace.forest import UNKNOWN
from warmset.trace.options import DEFAULT_TEXT_BLOCK_TOKENS, ReadOptions
from warmset.trace.readers.log_rows import UnusableRowError
from warmset.trace.readers.log_times import Clock
from warmset.trace.readers.spans import ContentHasher
from warmset.trace.readers.transcript import ASSUMPTIONS, MAX_TOKENS, NO_ENTRY, Call, Entry, TranscriptTaker
from warmset.trace.readers.transcript_rows import Row, lines_of, rows_of_lines
from warmset.trace.source import Head, Input
from warmset.trace.tally import Tally
from warmset.trace.text_reading import ASSUMED_CHARS_PER_TOKEN

TITLE = "Claude Code logs"
FILES_REFER_TO_EACH_OTHER = True
"""A resumed session repeats the calls of the one before it."""

_LINE_TYPES = {
    *("user", "assistant", "system", "summary", "progress", "attachment", "file-history-snapshot"),
    *("queue-operation", "permission-mode", "custom-title", "ai-title", "last-prompt", "pr-link"),
    *("agent-name", "mode", "tag"),
}
_IN_PROMPT = {"user", "attachment"}
_NO_MODEL = "<synthetic>"
_NAMES_BYTES = 4096
_IMAGE_CHARS = 6000
"""About 1,500 tokens: what the documentation of the API gives for the largest image that is not scaled."""


class _Usage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int | None = 0
    cache_creation_input_tokens: int | None = 0
    cache_read_input_tokens: int | None = None

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the prompt, cached or not."""
        read, written = self.cache_read_input_tokens or 0, self.cache_creation_input_tokens or 0
        return self.input_tokens + read + written


def matches(head: Head) -> bool:
    """Lines of Claude Code, or whatever else lies in its folder of projects."""
    parts = head.path.parts
    if ".claude" in parts and "projects" in parts:
        return True
    return _is_log(head)


def _is_log(head: Head) -> bool:
    """Whether the first rows are of Claude Code, or start like one where the first is longer than a head."""
    names = head.start[:_NAMES_BYTES]
    return any(map(_is_line, head.rows)) or (
        not head.rows and b'"parentUuid":' in names and b'"sessionId":' in names
    )


def _is_line(row: Row) -> bool:
    if row.get("type") not in _LINE_TYPES or "traceSchema" in row:
        return False
    return "sessionId" in row or "leafUuid" in row or "snapshot" in row


def read(inputs: Sequence[Input], options: ReadOptions, tally: Tally) -> TraceBuilder:
    """All sessions of all files; a call that is in several counts once."""
    builder = TraceBuilder(
        options.block_tokens or DEFAULT_TEXT_BLOCK_TOKENS, tally, ids_are_content=True, times_are_epoch=True
    )
    hasher = ContentHasher(options.hash_key)
    chars_per_token = options.chars_per_token or ASSUMED_CHARS_PER_TOKEN
    taker = TranscriptTaker(builder, hasher)
    for source in inputs:
        if not _is_log(source.head()):
            tally.note("other_files", f"{source.label}: left out")
            continue
        reader = _FileReader(tally, hasher, chars_per_token)
        reader.read(source)
        taker.take(reader.finished())
    size = f"{chars_per_token:g} characters a token"
    builder.assumptions += [
        (
            "Logs hold neither system prompts nor tool schemas: their size is what a first prompt has beyond "
            f"its messages, at {size}."
        ),
        (
            "Sessions of one project, version and model are taken to share system prompt and tools, "
            "sub-agents with sub-agents only."
        ),
        "A call is taken to start when the line before it was written.",
        *ASSUMPTIONS,
    ]
    return builder


class _FileReader:
    """Lines of one file into entries."""

    def __init__(self, tally: Tally, hasher: ContentHasher, chars_per_token: float) -> None:
        self._tally = tally
        self._hasher = hasher
        self._chars_per_token = chars_per_token
        self._clock = Clock(tally)
        self._entries: list[Entry] = []
        self._index_of_uuid: dict[str, int] = {}
        self._index_of_call: dict[str, int] = {}
        self._last_of_lane: dict[str, int] = {}
        self._answers: dict[int, list[bytes]] = {}

    def read(self, source: Input) -> None:
        """Take every line."""
        for place, row in rows_of_lines(lines_of(source), self._tally):
            self._take(row, place)

    def finished(self) -> list[Entry]:
        """The entries, each answer with all of its parts."""
        for index, parts in self._answers.items():
            self._entries[index].content = self._hasher.hash("assistant", *parts)
        return self._entries

    def _take(self, row: Row, place: str) -> None:
        uuid = row.get("uuid")
        if not isinstance(uuid, str):
            return
        lane = f"{row.get('isSidechain')}/{row.get('agentId')}"
        index = len(self._entries)
        message = row.get("message")
        if row.get("type") == "assistant" and isinstance(message, dict):
            index = self._take_answer(row, message, lane, place)
        else:
            self._entries.append(self._entry(row, lane, place))
            if row.get("type") in _IN_PROMPT:
                self._add_input(self._entries[index], row, message)
        self._index_of_uuid[uuid] = index
        self._last_of_lane[lane] = index

    def _entry(self, row: Row, lane: str, place: str) -> Entry:
        is_cut = row.get("subtype") == "compact_boundary"
        if is_cut:
            self._tally.note(
                "unlogged_summary_calls", f"{place}: the call that wrote the summary is not in the log"
            )
        return Entry(
            parent_index=self._parent(row, lane, place), time_ms=self._time(row, place), is_cut=is_cut
        )

    def _parent(self, row: Row, lane: str, place: str) -> int:
        parent = row.get("parentUuid") or row.get("logicalParentUuid")
        if parent is None:
            return NO_ENTRY
        if parent in self._index_of_uuid:
            return self._index_of_uuid[parent]
        self._tally.note(
            "lost_parents", f"{place}: parentUuid names no line before; taken to follow the line before"
        )
        return self._last_of_lane.get(lane, NO_ENTRY)

    def _add_input(self, entry: Entry, row: Row, message: Any) -> None:  # noqa: ANN401 - whatever a log holds
        content = message.get("content") if isinstance(message, dict) else row.get("attachment")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if blocks is None:
            return
        listed = blocks if isinstance(blocks, list) else [blocks]
        entry.content = self._hasher.hash("user", msgspec.json.encode(blocks))
        entry.estimated_tokens = -int(-sum(map(_block_chars, listed)) // self._chars_per_token)
        entry.is_turn = row.get("type") == "user" and not any(map(_is_result, listed))

    # --- answers ----------------------------------------------------------------------------------

    def _take_answer(self, row: Row, message: Row, lane: str, place: str) -> int:
        """The entry of an answer: a new one, or that of its earlier parts."""
        name = f"{message.get('id')}/{row.get('requestId')}"
        index = self._index_of_call.get(name, len(self._entries)) if message.get("id") else len(self._entries)
        is_new = index == len(self._entries)
        if is_new:
            self._entries.append(self._entry(row, lane, place))
            self._index_of_call[name] = index
        entry = self._entries[index]
        if message.get("model") == _NO_MODEL or row.get("isApiErrorMessage"):
            self._tally.note("failed_calls", place)
            return index
        self._answers.setdefault(index, []).append(msgspec.json.encode(message.get("content")))
        usage = self._usage(message, place)
        time_ms = self._time(row, place)
        if usage is None:
            return index
        if entry.call is None and usage.prompt_tokens:
            entry.call = self._call(row, message, usage, entry, place)
        elif is_new and not usage.prompt_tokens:
            self._tally.note("calls_without_usage", place)
        if entry.call is not None:
            self._extend(entry, entry.call, usage, time_ms)
        return index

    def _extend(self, entry: Entry, call: Call, usage: _Usage, time_ms: int) -> None:
        """A further part of an answer: it ends later, and more of it is counted."""
        entry.call = replace(
            call,
            output_tokens=max(call.output_tokens, usage.output_tokens or 0),
            end_ms=UNKNOWN if call.end_ms == UNKNOWN else max(call.end_ms, time_ms),
        )
        entry.estimated_tokens = entry.call.output_tokens

    def _usage(self, message: Row, place: str) -> _Usage | None:
        try:
            usage = msgspec.convert(message.get("usage") or {}, _Usage)
        except msgspec.ValidationError as error:
            self._tally.drop(place, f"usage: {error}")
            return None
        for field in usage.__struct_fields__:
            tokens = getattr(usage, field)
            if tokens is not None and not 0 <= tokens <= MAX_TOKENS:
                self._tally.drop(place, f"{field} is {tokens}: it must lie between 0 and {MAX_TOKENS}")
                return None
        return usage

    def _call(self, row: Row, message: Row, usage: _Usage, entry: Entry, place: str) -> Call | None:
        """The call of an answer: it starts at the line before it, which was its last input."""
        end_ms = self._time(row, place)
        if end_ms == UNKNOWN:
            self._tally.drop(place, "has no time: timestamp must be ISO 8601")
            return None
        above = None if entry.parent_index == NO_ENTRY else self._entries[entry.parent_index]
        start_ms = UNKNOWN if above is None or above.call is not None else above.time_ms
        is_side = bool(row.get("isSidechain"))
        model = str(message.get("model", ""))
        cached = usage.cache_read_input_tokens
        agent = f"{row.get('cwd')}\0{row.get('version')}\0{'sub-agent' if is_side else ''}"
        return Call(
            key=f"{message.get('id')}/{row.get('requestId')}" if message.get("id") else str(row.get("uuid")),
            place=place,
            arrival_ms=end_ms if start_ms == UNKNOWN else start_ms,
            end_ms=UNKNOWN if start_ms == UNKNOWN else end_ms,
            input_tokens=usage.prompt_tokens,
            output_tokens=usage.output_tokens or 0,
            cached_tokens=UNKNOWN if cached is None else cached,
            lineage=f"{agent}\0{model}",
            model=model,
            session=f"{row.get('sessionId')}/{row.get('agentId') or ''}",
            kind="sub-agent" if is_side else "main",
        )

    def _time(self, row: Row, place: str) -> int:
        try:
            return self._clock.milliseconds(row.get("timestamp"), "timestamp", place)
        except UnusableRowError:
            return UNKNOWN


def _is_result(block: Any) -> bool:  # noqa: ANN401 - whatever a log holds
    return isinstance(block, dict) and block.get("type") == "tool_result"


def _block_chars(block: Any) -> int:  # noqa: ANN401 - whatever a log holds
    if not isinstance(block, dict):
        return len(str(block))
    if block.get("type") == "text":
        return len(str(block.get("text", "")))
    if block.get("type") == "image":
        return _IMAGE_CHARS
    if _is_result(block):
        inner = block.get("content")
        return len(inner) if isinstance(inner, str) else sum(map(_block_chars, inner or []))
    return len(msgspec.json.encode(block))
