"""Requests to OpenAI's APIs and to those that follow them, out of the rows of logs.

Chat completions, completions, Responses and Anthropic's Messages, as gateways nest them in their logs.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from warmset.trace.prompt import Message, Prompt, message_text
from warmset.trace.readers.log_rows import Row, UnusableRowError, decoded
from warmset.trace.tally import Tally

_WRAPPERS = ("body", "json", "kwargs")
_REQUEST_FIELDS = ("request", "request_body", "body", "input", "providerRequest", "proxy_server_request")
_NOT_REQUESTS = (
    "response",
    "output",
    "completion",
    "answer",
    "metadata",
    "headers",
    "usage",
    "tools",
    "error",
)
_REDACTED = frozenset({"redacted-by-litellm", "REDACTED_BY_LITELM", "[REDACTED]", "REDACTED"})
_CUT_MARKS = ("(litellm_truncated skipped ",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked: messages and tools, or the texts of one completion call, or as many tokens."""

    messages: tuple[Message, ...] = ()
    tools: tuple[Row, ...] = ()
    texts: tuple[str, ...] = ()
    input_tokens: int | None = None
    previous_id: str | None = None
    """A response whose conversation the server keeps: then only what is new was sent."""


def request_of(row: Row) -> Row | None:
    """The body of the request in a row: nested under a usual name, the row itself, or under any name."""
    for field in _REQUEST_FIELDS:
        body = as_body(row.get(field))
        if body is not None:
            return body
    body = as_body(row)
    if body is not None:
        return body
    for name, value in row.items():
        if not name.lower().startswith(_NOT_REQUESTS):
            body = as_body(value)
            if body is not None and ("messages" in body or "model" in body):
                return body
    return None


def as_body(value: Any) -> Row | None:  # noqa: ANN401 - whatever a log holds
    """A value as the body of a request, out of its JSON and its wrapping; `None` where it is none."""
    value = decoded(value) if isinstance(value, str) else value
    if _are_messages(value):
        return {"messages": value}
    if not isinstance(value, dict):
        return None
    for wrapper in _WRAPPERS:
        inner = value.get(wrapper)
        body = as_body(inner) if isinstance(inner, dict | str) else None
        if body is not None:
            return body
    messages = value.get("messages")
    if isinstance(messages, str):
        value = {**value, "messages": decoded(messages)}
    is_chat = isinstance(value.get("messages"), list) and bool(value["messages"])
    is_completion = isinstance(value.get("prompt"), str | list)
    is_response = isinstance(value.get("input"), str | list) and ("model" in value or "instructions" in value)
    return value if is_chat or is_completion or is_response else None


def parsed(body: Row) -> Request:
    """What a request asks.

    Raises: UnusableRowError where its messages or prompt are of no known form.
    """
    tools = tuple(tool for tool in _list_in(body, "tools", "functions") if isinstance(tool, dict))
    previous = body.get("previous_response_id")
    if isinstance(body.get("messages"), list):
        return Request(messages=(*_system(body.get("system")), *_checked(body["messages"])), tools=tools)
    if "prompt" in body:
        return _completion(body["prompt"])
    value = body.get("input")
    items: list[Any] = [{"role": "user", "content": value}] if isinstance(value, str) else value or []
    messages = (*_system(body.get("instructions")), *(_message_of(item) for item in _checked(items)))
    return Request(
        messages=messages, tools=tools, previous_id=previous if isinstance(previous, str) else None
    )


def to_prompts(base: Prompt, request: Request, tally: Tally) -> Iterator[Prompt]:
    """A request with its text added, one for each text of a completion call.

    Where the text is not what was sent (redacted, cut short, kept on the server) only its length is taken.

    Raises: UnusableRowError where a message has no sender.
    """
    if request.input_tokens is not None:
        tally.note("token_prompts", f"{base.place}: the prompt is logged as tokens")
        yield replace(base, input_tokens=request.input_tokens)
        return
    check_roles(request.messages)
    missing = _missing(request)
    if missing:
        tally.note(missing, base.place)
        yield base
        return
    base = replace(base, input_tokens=base.input_tokens or None)  # no server counts 0 tokens for a text
    if request.messages or not request.texts:
        yield replace(base, messages=request.messages, tools=request.tools)
    elif len(request.texts) == 1:
        yield replace(base, text=request.texts[0])
    else:
        tally.note("split_calls", f"{base.place}: {len(request.texts)} prompts in one call")
        for text in request.texts:
            yield replace(
                base, text=text, input_tokens=None, output_tokens=None, cached_tokens=None, key=None
            )


def check_roles(messages: Sequence[Message]) -> None:
    """Refuse messages whose sender is no text.

    Raises: UnusableRowError with the place of the first.
    """
    for position, message in enumerate(messages):
        if not isinstance(message.get("role", "user"), str):
            raise UnusableRowError(f"the role of message {position + 1} is not a text")


def _missing(request: Request) -> str:
    """Why the text of a request is not what the model got, as the code of a finding; or nothing."""
    if request.previous_id is not None:
        return "stored_conversations"
    texts = [*request.texts, *(message_text(message) for message in request.messages)]
    if texts and all(text in _REDACTED for text in texts):
        return "redacted_text"
    if any(mark in text for text in texts for mark in _CUT_MARKS):
        return "cut_text"
    return ""


def _list_in(body: Row, *fields: str) -> list[Any]:
    for field in fields:
        value = body.get(field)
        value = decoded(value) if isinstance(value, str) else value
        if isinstance(value, list):
            return value
    return []


def _are_messages(value: Any) -> bool:  # noqa: ANN401 - whatever a log holds
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(each, dict) and "role" in each for each in value)
    )


def _checked(messages: list[Any]) -> Iterator[Row]:
    for position, message in enumerate(messages):
        if not isinstance(message, dict):
            raise UnusableRowError(f"message {position + 1} of the request is not an object with a role")
        yield message


def _system(value: Any) -> Iterator[Message]:  # noqa: ANN401 - whatever a log holds
    """A system prompt that stands beside the messages."""
    if isinstance(value, str | list) and value:
        yield {"role": "system", "content": value}


def _completion(prompt: Any) -> Request:  # noqa: ANN401 - whatever a log holds
    """The prompt of a completion: a text, several, or tokens."""
    if isinstance(prompt, str):
        listed = decoded(prompt)
        return _completion(listed) if _are_texts(listed) else Request(texts=(prompt,))
    if _are_texts(prompt):
        return Request(texts=tuple(prompt))
    if isinstance(prompt, list) and prompt and all(isinstance(token, int) for token in prompt):
        return Request(input_tokens=len(prompt))
    raise UnusableRowError("prompt is neither a text, a list of texts nor a list of tokens")


def _are_texts(value: Any) -> bool:  # noqa: ANN401 - whatever a log holds
    return isinstance(value, list) and bool(value) and all(isinstance(text, str) for text in value)


def _message_of(item: Row) -> Message:
    """An item of the Responses API as a message of the chat API."""
    kind = item.get("type")
    if kind == "function_call":
        call = {
            "id": item.get("call_id"),
            "type": "function",
            "function": {"name": item.get("name"), "arguments": item.get("arguments")},
        }
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if kind == "function_call_output":
        return {"role": "tool", "tool_call_id": item.get("call_id"), "content": item.get("output")}
    if "role" in item:
        return {"role": item["role"], "content": item.get("content")}
    return {"role": "assistant", "content": [item]}
