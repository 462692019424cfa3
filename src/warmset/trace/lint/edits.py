"""Moving text inside a prompt without changing the sequence of its roles."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from warmset.trace.lint.view import leading_systems
from warmset.trace.prompt import Message, Prompt, message_text

Change = Callable[[str], str]


def with_text(message: Message, change: Change) -> Message:
    """The message with its content changed, and the text parts of a content of parts."""
    content = message.get("content")
    if isinstance(content, str):
        return {**message, "content": change(content)}
    if isinstance(content, list):
        return {**message, "content": [_changed_part(part, change) for part in content]}
    return message


def _changed_part(part: object, change: Change) -> object:
    if isinstance(part, str):
        return change(part)
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return {**part, "text": change(part["text"])}
    return part


def with_standing(prompt: Prompt, change: Change) -> Prompt:
    """The prompt with its leading system messages changed, those left empty taken out; or a completion."""
    if prompt.text is not None:
        return replace(prompt, text=change(prompt.text))
    leading = leading_systems(prompt.messages)
    changed = [with_text(message, change) for message in prompt.messages[:leading]]
    kept = [message for message in changed if message_text(message)]
    return replace(prompt, messages=[*kept, *prompt.messages[leading:]])


def with_tail(prompt: Prompt, texts: Sequence[str]) -> Prompt:
    """The prompt with texts put at its end."""
    tail = "".join(texts)
    if not tail:
        return prompt
    if prompt.text is not None:
        return replace(prompt, text=prompt.text + tail)
    return _put(prompt, len(prompt.messages) - 1, tail, before=False)


def with_lead(prompt: Prompt, text: str) -> Prompt:
    """The prompt with a text put before the first message after system messages and tools."""
    return _put(prompt, leading_systems(prompt.messages), text, before=True) if text else prompt


def _put(prompt: Prompt, index: int, text: str, *, before: bool) -> Prompt:
    """Put a text into a message behind the tools; where there is none, add one."""
    messages = list(prompt.messages)
    if not leading_systems(messages) <= index < len(messages):
        return replace(prompt, messages=[*messages, {"role": "user", "content": text}])
    message = messages[index]
    content = message.get("content")
    changed: object
    if isinstance(content, list):
        part = {"type": "text", "text": text}
        changed = [part, *content] if before else [*content, part]
    else:
        old = content if isinstance(content, str) else ""
        changed = text + old if before else old + text
    messages[index] = {**message, "content": changed}
    return replace(prompt, messages=messages)
