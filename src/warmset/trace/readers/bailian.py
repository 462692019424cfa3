"""Bailian JSONL (Qwen at Alibaba): one request a row, tied to the one whose conversation it goes on.

`chat_id` names the request and `parent_chat_id` the one before it (-1: none); `timestamp` counts seconds from
the start; `input_length`, `output_length` (tokens); `type` (text, search, image, file), `turn`; `hash_ids` of
16-token blocks, the last one partial.
Source: alibaba-edu/qwen-bailian-usagetraces-anon, README.
"""

from collections.abc import Mapping, Sequence

import msgspec

from warmset.trace.builder import Name, TraceBuilder
from warmset.trace.options import ReadOptions
from warmset.trace.readers.block_fit import settle_block_size
from warmset.trace.readers.log_rows import UnusableRowError
from warmset.trace.readers.rows import (
    MAX_TOKENS,
    Check,
    Decoded,
    RowTaker,
    decode_lines,
    id_list,
    in_range,
    milliseconds,
    name,
    number,
    signed_ids,
    whole_number,
)
from warmset.trace.source import Head, Input
from warmset.trace.tally import Tally

TITLE = "Bailian JSONL (Qwen)"
BAILIAN_BLOCK_TOKENS = 16
_FIELDS = {"chat_id", "parent_chat_id", "hash_ids"}
_NO_PARENT = (-1, "-1", None)


class _Link(msgspec.Struct):
    chat_id: int | str
    parent_chat_id: int | str | None


class _Row(_Link):
    timestamp: float | int
    input_length: int
    output_length: int
    hash_ids: list[int | str]
    type: str | None = None


def matches(head: Head) -> bool:
    """Rows that name the chat before them, with hash ids."""
    return bool(head.rows) and head.rows[0].keys() >= _FIELDS


def read(inputs: Sequence[Input], options: ReadOptions, tally: Tally) -> TraceBuilder:
    """All rows; a session is the conversation that a first chat starts, with all its branches.

    Raises: TraceFormatError where the block size contradicts most rows, and another fits nearly all.
    """
    builder = TraceBuilder(options.block_tokens or BAILIAN_BLOCK_TOKENS, tally)
    chats = _Chats(inputs)
    takers = [RowTaker(source, builder) for source in inputs]
    for source, taker in zip(inputs, takers, strict=True):
        for decoded in decode_lines(source, _Row, _CHECKS, tally):
            try:
                _take(decoded, taker, chats)
            except UnusableRowError as error:
                taker.drop(decoded.number, str(error))
    settle_block_size([taker.fit for taker in takers], builder, options.block_tokens)
    return builder


def _take(decoded: Decoded[_Row], taker: RowTaker, chats: "_Chats") -> None:
    row = decoded.row
    for field in ("input_length", "output_length"):
        in_range(field, getattr(row, field), MAX_TOKENS)
    arrival_ms = milliseconds("timestamp", row.timestamp)
    ids = signed_ids(row.hash_ids, decoded.lists)
    parent = None if row.parent_chat_id in _NO_PARENT else row.parent_chat_id
    if parent is not None and not chats.has(parent):
        taker.note("unknown_parents", decoded.number, f"chat {parent!r} is not in the log")
        parent = None
    if chats.met(row.chat_id):
        taker.note("repeated_chats", decoded.number, f"chat {row.chat_id!r} again")
    taker.fit.add(decoded.number, ids.size, row.input_length)
    taker.take(
        decoded.number,
        arrival_ms=arrival_ms,
        input_tokens=row.input_length,
        output_tokens=row.output_length,
        ids=ids,
        session=chats.root(row.chat_id),
        kind=row.type,
        key=row.chat_id,
        previous_key=parent,
    )


class _Chats:
    """Who goes on from whom, known before the first row is taken: a parent may stand below its child."""

    def __init__(self, inputs: Sequence[Input]) -> None:
        self._parent: dict[Name, Name | None] = {}
        self._root: dict[Name, Name] = {}
        self._met: set[Name] = set()
        unheard = Tally()  # the second reading counts what is wrong
        for source in inputs:
            for _, row, _ in decode_lines(source, _Link, _LINK_CHECKS, unheard):
                parent = None if row.parent_chat_id in _NO_PARENT else row.parent_chat_id
                self._parent.setdefault(row.chat_id, parent)

    def has(self, chat: Name) -> bool:
        """Whether the log has this chat."""
        return chat in self._parent

    def met(self, chat: Name) -> bool:
        """Whether this was asked of the chat before."""
        is_known = chat in self._met
        self._met.add(chat)
        return is_known

    def root(self, chat: Name) -> Name:
        """The chat that starts the conversation, or the one above it that the log does not have."""
        path: list[Name] = []
        on_path: set[Name] = set()
        at = chat
        while at not in self._root and at not in on_path:
            above = self._parent.get(at)
            if above is None:
                break
            path.append(at)
            on_path.add(at)
            at = above
        root = self._root.get(at, at)
        self._root.update((each, root) for each in path)
        return root


_LINK_CHECKS: Mapping[str, Check] = {
    "chat_id": name,
    "parent_chat_id": lambda value: "" if value is None else name(value),
}
_CHECKS = {
    **_LINK_CHECKS,
    "timestamp": number,
    "input_length": whole_number,
    "output_length": whole_number,
    "hash_ids": id_list,
}
