"""Messages of GenAI spans in the form of OpenAI's chat API, from the names of several years."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from warmset.trace.prompt import Message, message_text
from warmset.trace.readers.log_rows import Row, UnusableRowError, decoded

_INDEXED = re.compile(r"gen_ai\.(prompt|completion)\.(\d+)\.(role|content)")
_TEXT_ROLES = {"gen_ai.prompt": "user", "gen_ai.completion": "assistant"}


def messages_in(attributes: Row) -> tuple[Message, ...]:
    """What the model was given; nothing where the span was recorded without content.

    Raises: UnusableRowError where it is of no known form.
    """
    listed = _listed(attributes.get("gen_ai.input.messages"), "gen_ai.input.messages")
    messages = tuple(message for each in listed for message in _converted(each))
    if not messages:
        return _indexed(attributes, "prompt") or _single(attributes, "gen_ai.prompt")
    system = _listed(attributes.get("gen_ai.system_instructions"), "gen_ai.system_instructions")
    if system:
        return tuple(_converted({"role": "system", "parts": system})) + messages
    return messages


def answer_in(attributes: Row) -> str:
    """The text of the first answer, its tool calls as JSON."""
    listed = _listed(attributes.get("gen_ai.output.messages"), "gen_ai.output.messages")[:1]
    messages = [message for each in listed for message in _converted(each)]
    messages = (
        messages or [*_indexed(attributes, "completion")[:1]] or [*_single(attributes, "gen_ai.completion")]
    )
    return "\n".join(message_text(message) for message in messages)


def tools_in(attributes: Row) -> tuple[Row, ...]:
    """Definitions of the tools, each as it was recorded."""
    listed = _listed(attributes.get("gen_ai.tool.definitions"), "gen_ai.tool.definitions")
    opened = (decoded(tool) if isinstance(tool, str) else tool for tool in listed)
    return tuple(tool for tool in opened if isinstance(tool, dict))


def _listed(value: Any, name: str) -> list[Any]:  # noqa: ANN401 - any attribute
    """A list, from itself or its JSON; a text that is none stands as one part."""
    if isinstance(value, str) and value:
        value = decoded(value) or [{"role": "user", "type": "text", "content": value}]
    if isinstance(value, dict):
        value = value.get("messages", [value])
    if value is None or value == "":
        return []
    if not isinstance(value, list):
        raise UnusableRowError(f"{name} is not a list of messages")
    return value


def _converted(message: Any) -> Iterator[Row]:  # noqa: ANN401 - any JSON value
    """A message; its parts become content, tool calls, reasoning and answers of tools."""
    message = decoded(message) if isinstance(message, str) else message
    if not isinstance(message, dict):
        raise UnusableRowError("a message of the span is not an object with a role")
    parts = message.get("parts")
    if not isinstance(parts, list):
        yield {name: value for name, value in message.items() if name != "finish_reason"}
        return
    yield from _from_parts(
        str(message.get("role", "user")), [part for part in parts if isinstance(part, dict)]
    )


def _from_parts(role: str, parts: list[Row]) -> Iterator[Row]:
    content: list[Row] = []
    calls: list[Row] = []
    reasoning: list[str] = []
    for part in parts:
        kind = part.get("type")
        if kind == "text":
            content.append({"type": "text", "text": _as_text(part.get("content"))})
        elif kind == "reasoning":
            reasoning.append(_as_text(part.get("content")))
        elif kind == "tool_call":
            function = {"name": part.get("name"), "arguments": _as_text(part.get("arguments"))}
            calls.append({"id": part.get("id"), "type": "function", "function": function})
        elif kind == "tool_call_response":
            result = part.get("response", part.get("result"))
            yield {"role": "tool", "tool_call_id": part.get("id"), "content": _as_text(result)}
        else:
            content.append(part)
    if content or calls or reasoning:
        message: Row = {"role": role, "content": _joined(content)}
        if reasoning:
            message["reasoning_content"] = "\n".join(reasoning)
        if calls:
            message["tool_calls"] = calls
        yield message


def _joined(content: list[Row]) -> str | list[Row]:
    """One text where all parts are text."""
    texts = [part["text"] for part in content if part.get("type") == "text"]
    return "\n".join(texts) if len(texts) == len(content) else content


def _as_text(value: Any) -> str:  # noqa: ANN401 - any JSON value
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _indexed(attributes: Row, which: str) -> tuple[Row, ...]:
    """Messages that were written as `gen_ai.prompt.0.role`, `gen_ai.prompt.0.content` and so on."""
    found: dict[int, Row] = {}
    for name, value in attributes.items():
        match = _INDEXED.fullmatch(name)
        if match and match[1] == which:
            found.setdefault(int(match[2]), {"role": "user"})[match[3]] = value
    return tuple(found[position] for position in sorted(found))


def _single(attributes: Row, name: str) -> tuple[Row, ...]:
    """The whole prompt or answer as one attribute: a text, or messages as JSON."""
    value = attributes.get(name)
    if not isinstance(value, str) or not value:
        return ()
    listed = decoded(value)
    if isinstance(listed, list) and all(isinstance(each, dict) for each in listed):
        return tuple(message for each in listed for message in _converted(each))
    return ({"role": _TEXT_ROLES[name], "content": value},)
