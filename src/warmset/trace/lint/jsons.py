"""JSON inside texts: the same value in one order of keys."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec

_LOOKED_AT = 32
_DECODER = json.JSONDecoder()
_BROKEN = (ValueError, RecursionError)


def raw_tool(tool: Mapping[str, Any]) -> str:
    """A tool as it was sent."""
    return msgspec.json.encode(tool).decode()


def sorted_tool(tool: Mapping[str, Any]) -> str:
    """A tool with its keys in order."""
    return msgspec.json.encode(tool, order="sorted").decode()


def tool_name(tool: Mapping[str, Any]) -> str:
    """What the model calls the tool."""
    function = tool.get("function")
    inner = function if isinstance(function, Mapping) else tool
    return str(inner.get("name", ""))


def only_keys_differ(first: str, second: str, offset: int) -> bool:
    """Whether both texts hold, around a place, the same JSON object with its keys in another order."""
    start = offset
    for _ in range(_LOOKED_AT):
        start = first.rfind("{", 0, start)
        if start < 0:
            return False
        found, other = _object_at(first, start), _object_at(second, start)
        if found is None or other is None or found[1] <= offset:
            continue
        if found[0] == other[0]:
            return True
    return False


def with_sorted_keys(text: str) -> str:
    """The text with the keys of every JSON object in order; spaces after separators as they were."""
    parts = []
    taken = 0
    start = text.find("{")
    while start >= 0:
        found = _object_at(text, start)
        end = start + 1
        if found is not None:
            value, end = found
            colon = ": " if '": ' in text[start:end] else ":"
            ordered = json.dumps(
                value, sort_keys=True, ensure_ascii=False, separators=(", " if colon == ": " else ",", colon)
            )
            parts += [text[taken:start], ordered]
            taken = end
        start = text.find("{", end)
    return "".join([*parts, text[taken:]])


def _object_at(text: str, start: int) -> tuple[dict[str, Any], int] | None:
    if not text.startswith("{", start):
        return None
    try:
        value, end = _DECODER.raw_decode(text, start)
    except _BROKEN:
        return None
    return value, end
