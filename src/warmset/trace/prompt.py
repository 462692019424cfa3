"""A request whose log has its text: what was sent, before it becomes blocks."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from warmset.trace.builder import Name

Message = Mapping[str, Any]
"""One message in the form of OpenAI's chat API; `content` is a string after `message_text`."""

TOOLS_ROLE = "tools"
PROMPT_ROLE = "prompt"


class Piece(NamedTuple):
    """A run of prompt text with one role: `system`, `tools`, `user`, `assistant`, `tool` or `prompt`."""

    role: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One request with text. Text never reaches a `Trace`; only hashes of blocks do, and then only numbers.

    `messages` and `tools` are as sent, in the form of OpenAI's chat API; a completion has `text` instead.
    Token counts are the server's own (usage), and `None` where the log has none.
    """

    place: str
    """FILE:LINE, for messages."""
    arrival_ms: int
    messages: Sequence[Message] = ()
    tools: Sequence[Mapping[str, Any]] = ()
    text: str | None = None
    answer: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    duration_ms: int | None = None
    think_ms: int | None = None
    session: Name | None = None
    kind: str | None = None
    model: str | None = None
    key: Name | None = None
    previous_key: Name | None = None


def pieces(prompt: Prompt) -> Iterator[Piece]:
    """The text of a prompt in the order in which a server would most likely render it, without a template.

    Leading system messages, then tool schemas (where many open models' chat templates put them), then what
    follows.
    """
    if prompt.text is not None:
        yield Piece(PROMPT_ROLE, prompt.text)
        return
    leading = 0
    while leading < len(prompt.messages) and prompt.messages[leading].get("role") in {"system", "developer"}:
        yield Piece("system", message_text(prompt.messages[leading]))
        leading += 1
    for tool in prompt.tools:
        yield Piece(TOOLS_ROLE, msgspec.json.encode(tool).decode())
    for message in prompt.messages[leading:]:
        yield Piece(str(message.get("role", "user")), message_text(message))


def message_text(message: Message) -> str:
    """What a message adds to the prompt, as text: content parts in order, then tool calls as JSON.

    Parts that are not text (images, audio) stand as their JSON: the same part gives the same text.
    """
    texts = [_content_text(message.get("content"))]
    for field in ("reasoning_content", "tool_calls", "function_call"):
        if message.get(field):
            value = message[field]
            texts.append(value if isinstance(value, str) else msgspec.json.encode(value).decode())
    return "\n".join(text for text in texts if text)


def _content_text(content: Any) -> str:  # noqa: ANN401 - whatever a log holds
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(
            part["text"]
            if isinstance(part, dict) and isinstance(part.get("text"), str)
            else part
            if isinstance(part, str)
            else msgspec.json.encode(part).decode()
            for part in content
        )
    return msgspec.json.encode(content).decode()
