"""What would mend each cause, done to every prompt of a log: volatile text goes last, order is made one."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from warmset.trace.lint.align import shared, units_of
from warmset.trace.lint.causes import spaces_normalised, spots_at
from warmset.trace.lint.edits import with_standing
from warmset.trace.lint.jsons import raw_tool, sorted_tool, tool_name, with_sorted_keys
from warmset.trace.lint.private import SharedFirst
from warmset.trace.lint.remedy import Remedy, Split
from warmset.trace.lint.view import Parting, View, leading_systems
from warmset.trace.lint.volatile import spots
from warmset.trace.prompt import Message, Prompt, message_text

_CACHED_LINES = 200_000
_THOUGHT = re.compile(r"<think>.*?</think>\s*", re.DOTALL)
_BROKEN = (msgspec.DecodeError, RecursionError)


class _NothingToLearn:
    def learn(self, before: View, after: View, found: Parting) -> None:
        """What it does is the same for all breaks."""


class MaskLast:
    """Clocks, ids, counters or switches, told by their kind and by what stands before them, go last."""

    order_index = 2

    def __init__(self, slot: str) -> None:
        self.title = "moved to the end of the prompt"
        self._slot = slot
        self._known: set[tuple[str, str]] = set()
        self._lines: dict[str, tuple[str, tuple[str, ...]]] = {}

    def learn(self, before: View, after: View, found: Parting) -> None:
        """Remember what stands at the place of the break."""
        del before, after
        for spot in spots_at(found.first.text, found.second.text, found.offset):
            if (spot.code, spot.context) not in self._known:
                self._known.add((spot.code, spot.context))
                self._lines.clear()

    def split(self, prompt: Prompt) -> Split:
        """Take them out, to stand last."""
        moved: list[str] = []

        def change(text: str) -> str:
            return "".join([self._without(line, moved) for line in units_of(text)])

        if self._slot == "tools":
            tools = [self._tool(tool, moved) for tool in prompt.tools]
            return Split(replace(prompt, tools=tools), moved) if moved else Split(prompt)
        changed = with_standing(prompt, change)
        return Split(changed, moved) if moved else Split(prompt)

    def _without(self, line: str, moved: list[str], stand_in: str = "") -> str:
        if line not in self._lines:
            if len(self._lines) >= _CACHED_LINES:
                self._lines.clear()
            self._lines[line] = self._parts_of(line, stand_in)
        rest, out = self._lines[line]
        moved += out
        return rest

    def _parts_of(self, line: str, stand_in: str) -> tuple[str, tuple[str, ...]]:
        parts, out = [], []
        last_end = 0
        for spot in spots(line):
            if (spot.code, spot.context) in self._known:
                parts += [line[last_end : spot.start], stand_in]
                out.append(line[spot.start : spot.end])
                last_end = spot.end
        return "".join([*parts, line[last_end:]]), tuple(out)

    def _tool(self, tool: Mapping[str, Any], moved: list[str]) -> Mapping[str, Any]:
        out: list[str] = []
        text = "".join([self._without(line, out, stand_in="0") for line in units_of(raw_tool(tool))])
        if not out:
            return tool
        try:
            changed: dict[str, Any] = msgspec.json.decode(text, type=dict[str, Any])
        except _BROKEN:
            return tool
        moved += out
        return changed


class ToolsSorted(_NothingToLearn):
    """Tools by name."""

    order_index = 5
    title = "tools sorted by name"

    def split(self, prompt: Prompt) -> Split:
        """Sort them."""
        if len(prompt.tools) < 2:
            return Split(prompt)
        ordered = sorted(prompt.tools, key=lambda tool: (tool_name(tool), sorted_tool(tool)))
        return Split(replace(prompt, tools=ordered))


class KeysSorted(_NothingToLearn):
    """JSON keys by name, in tools or inside the standing text."""

    order_index = 0
    title = "JSON keys sorted"

    def __init__(self, slot: str) -> None:
        self._slot = slot

    def split(self, prompt: Prompt) -> Split:
        """Sort them."""
        if self._slot != "tools":
            return Split(with_standing(prompt, with_sorted_keys))
        return Split(replace(prompt, tools=[msgspec.json.decode(sorted_tool(tool)) for tool in prompt.tools]))


class SpacesNormalised(_NothingToLearn):
    """One space for each run of white space, composed characters."""

    order_index = 1
    title = "white space and encoding normalised"

    def __init__(self, slot: str) -> None:
        self._slot = slot

    def split(self, prompt: Prompt) -> Split:
        """Normalise the standing text, or the text inside tools."""
        if self._slot != "tools":
            return Split(with_standing(prompt, spaces_normalised))
        return Split(replace(prompt, tools=[_with_normal_spaces(tool) for tool in prompt.tools]))


def _with_normal_spaces(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        return spaces_normalised(value)
    if isinstance(value, Mapping):
        return {key: _with_normal_spaces(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_normal_spaces(inner) for inner in value]
    return value


class ToolsLast:
    """Tools that come and go, or change, stand behind the history."""

    order_index = 4
    title = "tools that change moved to the end of the prompt"

    def __init__(self) -> None:
        self._changing: set[str] = set()

    def learn(self, before: View, after: View, found: Parting) -> None:
        """Remember tools that one of both prompts has."""
        del found
        old = Counter(sorted_tool(tool) for tool in before.prompt.tools)
        new = Counter(sorted_tool(tool) for tool in after.prompt.tools)
        self._changing |= set((old - new) + (new - old))

    def split(self, prompt: Prompt) -> Split:
        """Take them out, to stand last."""
        kept: list[Mapping[str, Any]] = []
        last = []
        for tool in prompt.tools:
            if sorted_tool(tool) in self._changing:
                last.append(raw_tool(tool))
            else:
                kept.append(tool)
        return Split(replace(prompt, tools=kept), last) if last else Split(prompt)


class LinesLast:
    """Lines of the standing text that were edited, added, taken out or moved go last."""

    order_index = 6
    title = "lines that change moved to the end of the prompt"

    def __init__(self) -> None:
        self._changing: set[bytes] = set()

    def learn(self, before: View, after: View, found: Parting) -> None:
        """Remember lines before the last shared one that are not where they were."""
        del before, after
        first, second = found.first, found.second
        if first.slot != second.slot:
            whole = first if first.slot == "system" else second
            self._remember(units_of(whole.text))
            return
        old, new = units_of(first.text), units_of(second.text)
        same = 0
        while same < min(len(old), len(new)) and old[same] == new[same]:
            same += 1
        old, new = old[same:], new[same:]
        if old and new and old[0] in new and new[0] in old and shared(old, new).moved:
            self._remember(old[: old.index(new[0])])
            return
        runs = shared(old, new).runs
        last_old, last_new = len(old), len(new)
        if first.slot == "prompt":  # behind the last shared line both only go on
            last_old = runs[-1].first if runs else 0
            last_new = runs[-1].second if runs else 0
        kept_old = {place for run in runs for place in range(run.first, run.first + run.size)}
        kept_new = {place for run in runs for place in range(run.second, run.second + run.size)}
        self._remember([old[place] for place in range(last_old) if place not in kept_old])
        self._remember([new[place] for place in range(last_new) if place not in kept_new])

    def _remember(self, lines: list[str]) -> None:
        self._changing |= {_digest(line) for line in lines if any(map(str.isalnum, line))}

    def split(self, prompt: Prompt) -> Split:
        """Take them out, to stand last."""
        moved: list[str] = []

        def change(text: str) -> str:
            kept: list[str] = []
            for line in units_of(text):
                (moved if _digest(line) in self._changing else kept).append(line)
            return "".join(kept)

        changed = with_standing(prompt, change)
        return Split(changed, moved) if moved else Split(prompt)


class MessagesLast:
    """Messages that move, or come and go, stand behind the history."""

    order_index = 7
    title = "the block moved behind the history"

    def __init__(self) -> None:
        self._moving: set[bytes] = set()

    def learn(self, before: View, after: View, found: Parting) -> None:
        """Remember the block: moved, put in, left out or with other text."""
        old, new = before.segments[found.index :], after.segments[found.index :]
        old_stays, new_was = old[0] in new, new[0] in old
        if old_stays and new_was:
            block = [old[0] if new.index(old[0]) >= old.index(new[0]) else new[0]]
        elif new_was:
            block = old[: old.index(new[0])]
        elif old_stays:
            block = new[: new.index(old[0])]
        else:
            block = [old[0], new[0]]
        self._moving |= {_key(segment.role, segment.text) for segment in block}

    def split(self, prompt: Prompt) -> Split:
        """Take the block out, its text to stand last."""
        leading = leading_systems(prompt.messages)
        kept: list[Message] = list(prompt.messages[:leading])
        moved = []
        for message in prompt.messages[leading:]:
            text = message_text(message)
            if _key(str(message.get("role", "user")), text) in self._moving:
                moved.append(text)
            else:
                kept.append(message)
        return Split(replace(prompt, messages=kept), moved) if moved else Split(prompt)


class ThoughtsOut(_NothingToLearn):
    """Completions without reasoning between `<think>` and `</think>`, in every turn."""

    order_index = 3
    title = "reasoning left out of every prompt"

    def split(self, prompt: Prompt) -> Split:
        """Leave it out."""
        return Split(with_standing(prompt, lambda text: _THOUGHT.sub("", text)))


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()


def _key(role: str, text: str) -> bytes:
    return _digest(f"{role}\n{text}")


def remedy_for(code: str, slot: str) -> Remedy | None:
    """What mends a cause in a part of the prompt; `None` where nothing that can be tried does."""
    if slot == "history":
        return MessagesLast() if code == "memory_block" else None
    make = _BY_CODE.get(code)
    return None if make is None else make(slot)


_BY_CODE: dict[str, Callable[[str], Remedy]] = {
    **dict.fromkeys(("clock", "request_id", "counter", "template_flags"), MaskLast),
    **dict.fromkeys(("system_edited", "text_edited", "memory_block"), lambda _: LinesLast()),
    "json_key_order": KeysSorted,
    "whitespace": SpacesNormalised,
    "private_text": SharedFirst,
    "thinking_stripped": lambda _: ThoughtsOut(),
    "tool_order": lambda _: ToolsSorted(),
    "tool_set": lambda _: ToolsLast(),
}
