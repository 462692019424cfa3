"""History as it was sent first: what re-reading a log is worth if nothing in it is rewritten."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from warmset.trace.lint.align import Run, shared
from warmset.trace.lint.causes import rewriting
from warmset.trace.lint.view import Kept, leading_systems
from warmset.trace.prompt import Message, Prompt, message_text

KEPT_TITLE = "every message left as and where it was sent first"
KEPT_CODES = frozenset(
    {
        "carrier",
        "clock",
        "counter",
        "history_rewritten",
        "json_key_order",
        "request_id",
        "template_flags",
        "thinking_stripped",
        "tool_result_cut",
        "whitespace",
    }
)
_Keys = list[tuple[str, str]]


def kept_history(before: Kept | None, prompt: Prompt, codes: Collection[str]) -> tuple[Prompt, Kept]:
    """The prompt with its history as it was sent first, as far as breaks of these codes changed it."""
    new = list(prompt.messages)
    groups: list[Sequence[Message]] = [[message] for message in new]
    if before is not None and prompt.text is None:
        groups = _carried_on(before, new, codes)
    kept = Kept(new, groups)
    messages = [message for group in groups for message in group]
    return (prompt if messages == new else replace(prompt, messages=messages)), kept


def _carried_on(before: Kept, new: list[Message], codes: Collection[str]) -> list[Sequence[Message]]:
    old_keys, new_keys = _keys(before.sent), _keys(new)
    same = 0
    while same < min(len(old_keys), len(new_keys)) and old_keys[same] == new_keys[same]:
        same += 1
    groups = list(before.groups[:same])
    if same == len(old_keys):
        return [*groups, *([message] for message in new[same:])]
    tail = old_keys[same:]
    if "carrier" in codes and same and same + len(tail) < len(new) and tail == new_keys[-len(tail) :]:
        stays = [message for group in before.groups[same:] for message in group]
        groups[-1] = [*groups[-1], *stays]
        arrived = new[same : len(new) - len(tail)]
        return [*groups, *([message] for message in arrived), *([] for _ in tail)]
    older = _older_versions(before.sent[same:], tail, new[same:], new_keys[same:], codes)
    head = leading_systems(new)
    for place in range(same, len(new)):
        source = older.get(place - same) if place >= head else None
        groups.append([new[place]] if source is None else before.groups[same + source])
    return groups


def _keys(messages: Sequence[Message]) -> _Keys:
    return [(str(message.get("role", "user")), message_text(message)) for message in messages]


def _older_versions(
    old: Sequence[Message], old_keys: _Keys, new: Sequence[Message], new_keys: _Keys, codes: Collection[str]
) -> dict[int, int]:
    """Place of the earlier version of each new message that has one: equal, or rewritten between equals."""
    runs = [*shared(old_keys, new_keys).runs, Run(len(old), len(new), 0)]
    found = {run.second + step: run.first + step for run in runs for step in range(run.size)}
    first = second = 0
    for run in runs:
        gap = min(run.first - first, run.second - second)
        if run.size == 0 or run.first - first == run.second - second:
            for step in range(gap):
                cause = _version_code(old[first + step], new[second + step])
                if cause in codes:
                    found[second + step] = first + step
        first, second = run.first + run.size, run.second + run.size
    return found


def _version_code(old: Message, new: Message) -> str | None:
    if old.get("role") != new.get("role"):
        return None
    cause = rewriting(old, new)
    if cause is None:
        return "history_rewritten" if old.get("role") in {"assistant", "tool", "function"} else None
    return cause.code
