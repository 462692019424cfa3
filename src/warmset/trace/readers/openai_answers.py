"""What a log of OpenAI-like calls says beside the request: the answer, its cost, its session, its end."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from warmset.trace.prompt import message_text
from warmset.trace.readers.log_rows import Row, UnusableRowError, decoded

MAX_TOKENS = 2**40
_MAX_DURATION_MS = 2**40
_RESPONSE_FIELDS = ("response", "response_body", "output", "providerResponse", "completion", "answer")
_STREAM = ("data:", "event:")
_WRAPPERS = ("body", "json", "textBody")
_INPUT_FIELDS = ("prompt_tokens", "input_tokens", "promptTokens", "inputTokens")
_OUTPUT_FIELDS = ("completion_tokens", "output_tokens", "completionTokens", "outputTokens")
_DETAIL_FIELDS = ("prompt_tokens_details", "input_tokens_details")
_CACHED_FIELDS = (
    "cache_read_input_tokens",
    "prompt_cache_hit_tokens",
    "prompt_cache_read_tokens",
    "cached_tokens",
    "cachedTokens",
)
_SESSION_FIELDS = (
    "session_id",
    "sessionid",
    "litellm_session_id",
    "conversation_id",
    "conversationid",
    "thread_id",
    "threadid",
    "chat_id",
    "helicone_session_id",
    "x_session_id",
    "x_session_affinity",
)
_NESTED_SESSION_FIELDS = ("metadata", "properties", "request_properties", "attributes", "headers")
_DURATION_MS_FIELDS = (
    "duration_ms",
    "request_duration_ms",
    "latency_ms",
    "response_time_ms",
    "elapsed_ms",
    "delay_ms",
)
_DURATION_S_FIELDS = ("duration_s", "latency_s", "duration_seconds", "latency_seconds")
_STATUS_FIELDS = (
    "status",
    "status_code",
    "statuscode",
    "response_status",
    "http_status",
    "response_status_code",
)
_FAILED = frozenset({"failure", "failed", "error", "cancelled", "canceled"})


class Usage(NamedTuple):
    """Tokens as the server counted them; `None` where it does not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None


class Response(NamedTuple):
    """What came back: the body, and what it was wrapped in."""

    body: Row
    wrapper: Row
    text: str = ""
    """The answer, where it is logged as text."""


def response_of(row: Row) -> Response:
    """The response in a row; empty where it has none."""
    for field in _RESPONSE_FIELDS:
        value = row.get(field)
        value = (decoded(value) or value) if isinstance(value, str) else value
        if isinstance(value, str) and value:
            return Response(_assembled(value), {}, "" if value.startswith(_STREAM) else value)
        if isinstance(value, list) and value:
            return Response({"output": value}, {})
        if isinstance(value, dict) and value:
            return _unwrapped(value)
    for name, value in row.items():
        inner = decoded(value) if isinstance(value, str) else value
        if name.lower().startswith(_RESPONSE_FIELDS) and isinstance(inner, dict) and inner:
            return _unwrapped(inner)
    return Response({}, {})


def _unwrapped(value: Row) -> Response:
    for field in _WRAPPERS:
        inner = value.get(field)
        inner = (decoded(inner) or inner) if isinstance(inner, str) else inner
        if isinstance(inner, dict) and inner:
            return Response(inner, value)
        if isinstance(inner, str) and inner:
            return Response(_assembled(inner), value, "" if inner.startswith(_STREAM) else inner)
    return Response(value, value)


def _assembled(text: str) -> Row:
    """The body that a stream of server-sent events adds up to; empty for any other text."""
    said: list[str] = []
    body: Row = {}
    for line in text.split("\n") if text.startswith(_STREAM) else ():
        event = decoded(line.removeprefix("data:")) if line.startswith("data:") else None
        if not isinstance(event, dict):
            continue
        if isinstance(event.get("response"), dict):  # Responses: the last event holds the whole
            body = event["response"]
            continue
        body |= {name: event[name] for name in ("id", "model", "created", "usage") if event.get(name)}
        choices = event.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        delta = first.get("delta", first) if isinstance(first, dict) else None
        if isinstance(delta, dict):
            said.append(message_text(delta | {"content": delta.get("content", delta.get("text"))}))
    return body | {"choices": [{"text": "".join(said)}]} if said else body


def answer_of(response: Response) -> str:
    """The text of an answer, its tool calls as JSON; the first where there are several."""
    if response.text:
        return response.text
    body = response.body
    choices = body.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        message = choices[0].get("message")
        text = choices[0].get("text")
        return message_text(message) if isinstance(message, dict) else text if isinstance(text, str) else ""
    output = body.get("output")
    if isinstance(output, list):
        items = [item for item in output if isinstance(item, dict)]
        return "\n".join(message_text(item if "content" in item else {"content": [item]}) for item in items)
    return message_text(body) if isinstance(body.get("content"), str | list) else ""


def usage_of(*sources: Any) -> Usage:  # noqa: ANN401 - whatever a log holds
    """Tokens from the first source that has each; a source is an object of counts, or its JSON.

    Anthropic counts cached tokens beside `input_tokens`, OpenAI within.

    Raises: UnusableRowError for a count that cannot be one.
    """
    found = [_counts(source) for source in sources if source]
    return Usage(
        *(next((each for each in column if each is not None), None) for column in zip(*found, strict=True))
    )


def _counts(source: Any) -> Usage:  # noqa: ANN401 - whatever a log holds
    counts = decoded(source) if isinstance(source, str) else source
    if not isinstance(counts, Mapping):
        return Usage()
    prompt = _first_count(counts, _INPUT_FIELDS)
    cached = _first_count(counts, _CACHED_FIELDS)
    details = [each for field in _DETAIL_FIELDS if isinstance(each := counts.get(field), dict)]
    if cached is None and details:
        cached = _first_count(details[0], _CACHED_FIELDS)
    written = token_count(counts.get("cache_creation_input_tokens"), "cache_creation_input_tokens")
    beside = "prompt_tokens" not in counts and not details and "cache_read_input_tokens" in counts
    if prompt is not None and beside:
        prompt += (cached or 0) + (written or 0)
    if cached is not None and prompt is not None and cached > prompt:
        raise UnusableRowError(
            f"{cached} cached tokens of {prompt}: a cache cannot hold more than the prompt"
        )
    return Usage(prompt, _first_count(counts, _OUTPUT_FIELDS), cached)


def _first_count(counts: Mapping[str, Any], fields: tuple[str, ...]) -> int | None:
    known = (token_count(counts.get(field), field) for field in fields)
    return next((count for count in known if count is not None), None)


def token_count(value: Any, field: str) -> int | None:  # noqa: ANN401 - whatever a log holds
    """A number of tokens, as a number or as text; `None` where there is none.

    Raises: UnusableRowError for what is no number of tokens.
    """
    if value is None or value == "":
        return None
    try:
        number = (
            float(value) if isinstance(value, int | float | str) and not isinstance(value, bool) else math.nan
        )
    except (ValueError, OverflowError):
        number = math.nan
    if not 0 <= number <= MAX_TOKENS or number != int(number):
        raise UnusableRowError(f"{field} is not a number of tokens: it must lie between 0 and {MAX_TOKENS}")
    return int(number)


def session_of(*rows: Row | None) -> str | int | None:
    """What names the conversation, in the first row that does or in what the row carries along."""
    for row in rows:
        for fields in _with_nested(row):
            named = {name.lower().replace("-", "_"): value for name, value in fields.items()}
            for name in _SESSION_FIELDS:
                value = named.get(name)
                if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
                    return value
    return None


def _with_nested(row: Row | None) -> Iterator[Row]:
    if row is None:
        return
    yield row
    for name in _NESTED_SESSION_FIELDS:
        inner = row.get(name)
        inner = decoded(inner) if isinstance(inner, str) else inner
        if isinstance(inner, dict):
            yield inner


def duration_ms(row: Row) -> int | None:
    """How long the answer took, from a field that names its unit."""
    named = {name.lower(): value for name, value in row.items()}
    for fields, milliseconds in ((_DURATION_MS_FIELDS, 1), (_DURATION_S_FIELDS, 1000)):
        for field in fields:
            number = _number(named.get(field))
            if number is not None and 0 <= number * milliseconds <= _MAX_DURATION_MS:
                return round(number * milliseconds)
    return None


def has_failed(row: Row, response: Response) -> bool:
    """Whether a call brought an error and no answer."""
    for fields in (row, response.wrapper):
        named = {name.lower(): value for name, value in fields.items()}
        for field in _STATUS_FIELDS:
            value = named.get(field)
            number = _number(value)
            if (number is not None and number >= 400) or (
                isinstance(value, str) and value.lower() in _FAILED
            ):
                return True
    return bool(response.body.get("error")) or (
        bool(row.get("error")) and not (response.body or response.text)
    )


def model_of(*rows: Row | None) -> str | None:
    """The name of the model, from the first row that has one."""
    for row in rows:
        value = row.get("model") if row else None
        if isinstance(value, str) and value:
            return value
    return None


def _number(value: Any) -> float | None:  # noqa: ANN401 - whatever a log holds
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
