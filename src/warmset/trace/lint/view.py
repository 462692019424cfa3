"""A prompt as a list of texts with places, and where two of them part."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from warmset.trace.lint.align import common_prefix_size, common_size, units_of
from warmset.trace.prompt import Message, Prompt, pieces

Slot = Literal["system", "tools", "history", "prompt"]
SYSTEM_ROLES = ("system", "developer")
SLOT_TITLES = {"system": "system message", "tools": "tool definition", "prompt": "prompt text"}


@dataclass(frozen=True, slots=True)
class Kept:
    """A prompt of a conversation: as it was sent, and as it would have been."""

    sent: Sequence[Message]
    groups: Sequence[Sequence[Message]]
    """For each message as sent, the messages that stand there instead: none where it stays where it was."""


class Segment(NamedTuple):
    """One text of a prompt: a leading system message, a tool, a message after them, or a whole completion."""

    slot: Slot
    role: str
    text: str


@dataclass
class View:
    """A prompt, cut."""

    prompt: Prompt
    kept: dict[Hashable, Kept] = field(default_factory=dict)
    """What its conversation looks like with history left alone, by what was mended."""

    @cached_property
    def segments(self) -> list[Segment]:
        """Its texts in the order in which a server would most likely render them."""
        prompt = self.prompt
        texts = list(pieces(prompt))
        if prompt.text is not None:
            return [Segment("prompt", role, text) for role, text in texts]
        leading = leading_systems(prompt.messages)
        head = leading + len(prompt.tools)
        slots: list[Slot] = ["system"] * leading
        slots += ["tools"] * len(prompt.tools)
        slots += ["history"] * (len(texts) - head)
        return [Segment(slot, role, text) for slot, (role, text) in zip(slots, texts, strict=True)]

    @cached_property
    def num_characters(self) -> int:
        """Characters of all texts."""
        return sum(len(segment.text) for segment in self.segments)

    def common_with(self, other: "View") -> int:
        """Characters of texts that both have, wherever they stand; for completions, of lines."""
        if self.prompt.text is not None and other.prompt.text is not None:
            return common_size(self.prompt.text, other.prompt.text)
        both = Counter(self.segments) & Counter(other.segments)
        return sum(len(segment.text) * count for segment, count in both.items())

    @cached_property
    def head_units(self) -> Counter[str]:
        """Lines of the system messages and whole tools; of a completion, all lines."""
        units: Counter[str] = Counter()
        for segment in self.segments:
            if segment.slot in {"system", "prompt"}:
                units.update(units_of(segment.text))
            elif segment.slot == "tools":
                units[segment.text] += 1
        return units


@dataclass(frozen=True, slots=True)
class Parting:
    """The first place where a prompt is not the one before it with more at the end."""

    first: Segment
    second: Segment
    index: int
    """Of the segment."""
    offset: int
    """Characters of the segment before the place."""
    depth_characters: int
    """Characters of the prompt before the place."""
    common_characters: int
    """Characters behind the place that the prompt before had too."""
    inside_characters: int
    """Of them: inside the segment."""


def leading_systems(messages: Sequence[Message]) -> int:
    """System messages before any other."""
    leading = 0
    while leading < len(messages) and messages[leading].get("role") in SYSTEM_ROLES:
        leading += 1
    return leading


def parting(before: View, after: View) -> Parting | None:
    """Where `after` parts from `before`; `None` where it only goes on, or is the start of it."""
    old, new = before.segments, after.segments
    index = 0
    while index < len(old) and index < len(new) and old[index] == new[index]:
        index += 1
    if index in {len(old), len(new)}:
        return None
    first, second = old[index], new[index]
    alike = first[:2] == second[:2]
    offset = common_prefix_size(first.text, second.text) if alike else 0
    if alike and (
        (offset == len(first.text) and index == len(old) - 1)
        or (offset == len(second.text) and index == len(new) - 1)
    ):
        return None
    inside, beyond = _common_behind(old[index:], new[index:], offset if alike else None)
    return Parting(
        first,
        second,
        index,
        offset,
        sum(len(segment.text) for segment in new[:index]) + offset,
        inside + beyond,
        inside,
    )


def _common_behind(old: list[Segment], new: list[Segment], offset: int | None) -> tuple[int, int]:
    """Characters in both rests: inside the two texts that part, if they are of one kind, and beyond."""
    both = Counter(old) & Counter(new)
    beyond = sum(len(segment.text) * count for segment, count in both.items())
    if offset is None:
        return 0, beyond
    if new[0] in both:
        return 0, beyond - offset
    inside = 0 if old[0] in both else common_size(old[0].text[offset:], new[0].text[offset:])
    return inside, beyond


def place_of(view: View, found: Parting) -> str:
    """Where two prompts part, in words: the text counts from 1 within its slot, as do characters."""
    segment = found.second
    before = view.segments[: found.index]
    number = 1 + sum(1 for each in before if each.slot == segment.slot)
    title = SLOT_TITLES.get(segment.slot, "")
    if segment.slot == "history":
        title = f"message {1 + sum(1 for each in before if each.slot != 'tools')} ({segment.role})"
    elif number > 1 or segment.slot == "tools":
        title = f"{title} {number}"
    return f"{view.prompt.place}: {title}, character {found.offset + 1}"
