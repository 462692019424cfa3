"""Chat templates of model folders: messages as the text that the model reads.

Source: transformers' `render_jinja_template` (sandbox, options, helpers) and, for what reaches the template,
vLLM's chat utilities: arguments of tool calls as objects, content parts joined unless the template loops over
them.
"""

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from warmset.errors import InputError
from warmset.trace.prompt import Message, Prompt, message_text

if TYPE_CHECKING:
    from jinja2 import Template
    from jinja2.sandbox import ImmutableSandboxedEnvironment

TEMPLATE_FILE = "chat_template.jinja"
CONFIG_FILE = "tokenizer_config.json"
_DEFAULT, _WITH_TOOLS = "default", "tool_use"
_LOOPS_OVER_CONTENT = re.compile(
    r"\bfor\s+\w+\s+in\s+(content\b|\w+(\[[^\]]*\])?(\.content\b|\[\s*['\"]content['\"]\s*\]))"
)
_FAILURES = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, RecursionError)


class TemplateFailedError(Exception):
    """A template cannot render a prompt; its text names the kind of failure, and nothing of the prompt."""


class ChatTemplate:
    """Renders prompts of messages and tools, ready for the answer to start.

    `sources` holds the templates by name: `default`, and maybe `tool_use` for prompts with tools.
    """

    def __init__(self, sources: Mapping[str, str], special_tokens: Mapping[str, str]) -> None:
        environment = _environment()
        self._templates = {name: environment.from_string(source) for name, source in sources.items()}
        self._keeps_parts = {name: bool(_LOOPS_OVER_CONTENT.search(text)) for name, text in sources.items()}
        self._special_tokens = dict(special_tokens)

    def render(self, prompt: Prompt) -> str:
        """The text of a prompt; where a template asks for the time, that of the request's arrival in UTC.

        Raises: TemplateFailedError where the template refuses these messages, or breaks on them.
        """
        from jinja2 import TemplateError

        name = _WITH_TOOLS if prompt.tools and _WITH_TOOLS in self._templates else _DEFAULT
        template: Template = self._templates[name]
        keeps_parts = self._keeps_parts[name]
        try:
            return template.render(
                messages=[_for_template(message, keeps_parts=keeps_parts) for message in prompt.messages],
                tools=list(prompt.tools) or None,
                documents=None,
                add_generation_prompt=True,
                strftime_now=_clock_at(prompt.arrival_ms),
                **self._special_tokens,
            )
        except TemplateError as error:
            raise TemplateFailedError(f"the chat template refuses it ({type(error).__name__})") from error
        except _FAILURES as error:
            raise TemplateFailedError(f"the chat template breaks on it ({type(error).__name__})") from error


def find_template(folder: Path) -> ChatTemplate | None:
    """The chat template of a model folder, if it has one.

    Raises: InputError where one is there and cannot be used.
    """
    from jinja2 import TemplateSyntaxError

    config = _config(folder / CONFIG_FILE)
    file = folder / TEMPLATE_FILE
    place = folder / CONFIG_FILE
    if file.is_file():
        sources, place = {_DEFAULT: _read(file)}, file
    else:
        sources = _sources(config.get("chat_template"), place)
    if not sources:
        return None
    try:
        return ChatTemplate(sources, _special_tokens(config))
    except TemplateSyntaxError as error:
        raise InputError(
            f"{place}: line {error.lineno} of the chat template is wrong: {error.message}"
        ) from error


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read: {error}") from error


def _config(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        return msgspec.json.decode(_read(file).encode(), type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise InputError(f"{file}: cannot be read: {error}: copy it from the model again") from error


def _sources(value: Any, place: Path) -> dict[str, str]:  # noqa: ANN401 - whatever the config holds
    """Templates by name: one text, or a list of named ones."""
    if value is None:
        return {}
    if isinstance(value, str):
        return {_DEFAULT: value}
    named = {
        each["name"]: each["template"]
        for each in (value if isinstance(value, list) else ())
        if isinstance(each, dict)
        and isinstance(each.get("name"), str)
        and isinstance(each.get("template"), str)
    }
    if _DEFAULT not in named:
        raise InputError(f"{place}: its chat_template is neither a text nor a list with one named {_DEFAULT}")
    return named


def _special_tokens(config: Mapping[str, Any]) -> dict[str, str]:
    """`bos_token` and its like, given as text or as an object with `content`."""
    tokens = {}
    for name, value in config.items():
        text = value.get("content") if isinstance(value, dict) else value
        if name.endswith("_token") and isinstance(text, str):
            tokens[name] = text
    return tokens


def _for_template(message: Message, *, keeps_parts: bool) -> dict[str, Any]:
    """A message in the form that templates expect."""
    changed = dict(message)
    content = message.get("content")
    if not (keeps_parts and isinstance(content, list)):
        changed["content"] = message_text({"content": content})
    calls = message.get("tool_calls")
    if isinstance(calls, list):
        changed["tool_calls"] = [_with_parsed_arguments(call) for call in calls]
    return changed


def _with_parsed_arguments(call: Any) -> Any:  # noqa: ANN401 - whatever a log holds
    """A tool call whose arguments are an object, not the JSON of one."""
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("arguments"), str):
        return call
    try:
        arguments = json.loads(function["arguments"])
    except ValueError:
        return call
    return {**call, "function": {**function, "arguments": arguments}}


def _clock_at(arrival_ms: int) -> Callable[[str], str]:
    return lambda text: datetime.fromtimestamp(arrival_ms / 1000, UTC).strftime(text)


def _refuse(message: str) -> NoReturn:
    from jinja2 import TemplateError

    raise TemplateError(message)


def _to_json(
    value: Any,  # noqa: ANN401 - whatever a template has
    ensure_ascii: bool = False,  # noqa: FBT001, FBT002 - templates pass these by position too
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,  # noqa: FBT001, FBT002
) -> str:
    """JSON as Python writes it; Jinja's own filter escapes HTML."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


@cache
def _environment() -> "ImmutableSandboxedEnvironment":
    from jinja2.ext import Extension
    from jinja2.nodes import Node
    from jinja2.parser import Parser
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Generation(Extension):
        """`{% generation %}`, which marks answers for training and prints what it holds."""

        tags = {"generation"}  # noqa: RUF012 - Jinja's own form

        def parse(self, parser: Parser) -> list[Node]:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _refuse
    return environment
