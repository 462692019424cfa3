"""Why a prompt parts from the one before it."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from warmset.trace.lint.align import (
    LONG_LINE_SIZE,
    SENTENCE_END,
    common_prefix_size,
    common_size,
    shared,
    units_of,
)
from warmset.trace.lint.jsons import only_keys_differ, raw_tool, sorted_tool, tool_name
from warmset.trace.lint.view import Parting, Segment, View, leading_systems
from warmset.trace.lint.volatile import TITLES, Spot, masked, spot_at, spots
from warmset.trace.prompt import Message, message_text

_SPACES = re.compile(r"\s+")
_REWRITTEN_SHARE = 0.25
"""Of the shorter text, what two versions of one message have in common at least."""
_SHRUNK_SHARE = 0.9
"""A compaction leaves less than this of the prompt before."""
_TOOL_ROLES = {"tool", "function"}
_MODEL_ROLES = {*_TOOL_ROLES, "assistant"}
UNKNOWN_CAUSE = "unknown"


class Cause(NamedTuple):
    """A cause by its code, and what differs, in words."""

    code: str
    detail: str


def cause_of(before: View, after: View, found: Parting, *, between_sessions: bool) -> Cause:
    """Why `after` parts from `before`; code `unknown` where no form fits."""
    slots = {found.first.slot, found.second.slot}
    if slots & {"system", "prompt"}:
        return _standing_cause(found, between_sessions=between_sessions)
    if "tools" in slots:
        return _tool_cause(before, after, found)
    return _history_cause(before, after, found)


# --- tools -----------------------------------------------------------------------------------------


def _tool_cause(before: View, after: View, found: Parting) -> Cause:
    old, new = before.prompt.tools, after.prompt.tools
    old_sorted, new_sorted = [sorted_tool(tool) for tool in old], [sorted_tool(tool) for tool in new]
    if old_sorted == new_sorted:
        return Cause("json_key_order", "the same tools, their keys in another order")
    if Counter(old_sorted) == Counter(new_sorted):
        return Cause("tool_order", f"the same {len(new)} tools in another order")
    if found.first.slot == found.second.slot:
        place = found.index - leading_systems(after.prompt.messages)
        old_tool, new_tool = old[place], new[place]
        if tool_name(old_tool) == tool_name(new_tool):
            cause = text_cause(raw_tool(old_tool), raw_tool(new_tool), found.offset)
            if cause is not None:
                return cause
            if Counter(map(tool_name, old)) == Counter(map(tool_name, new)):
                return Cause("tool_set", "the same tools, one with another definition")
    return Cause("tool_set", f"{len(old)} tools before, {len(new)} now")


# --- system messages and completions ---------------------------------------------------------------


def _standing_cause(found: Parting, *, between_sessions: bool) -> Cause:
    first, second = found.first, found.second
    edited = "private_text" if between_sessions else "system_edited"
    if first.slot != second.slot:
        return Cause(edited, "a system message more or less than before")
    is_text = first.slot == "prompt"
    cause = text_cause(first.text, second.text, found.offset, goes_on=is_text)
    if cause is not None:
        return cause
    if is_text and first.text.count("<think>", found.offset - 8) > second.text.count(
        "<think>", found.offset - 8
    ):
        return Cause("thinking_stripped", "reasoning that was there before is left out")
    if between_sessions:
        return Cause(edited, "text that differs from session to session, above text that does not")
    if _is_moved(first.text, second.text, found.offset):
        return Cause("memory_block", "the same text at another place")
    if is_text:
        return Cause("text_edited", "text that was sent before is edited")
    return Cause(edited, "text that was sent before is edited")


def _is_moved(first: str, second: str, offset: int) -> bool:
    """Whether the line that differs is in the other text too, among other neighbours."""
    start = first.rfind("\n", 0, offset) + 1
    old, new = units_of(first[start:]), units_of(second[start:])
    return any(place == 0 or other == 0 for place, other in shared(old, new).moved)


# --- history ---------------------------------------------------------------------------------------


def _history_cause(before: View, after: View, found: Parting) -> Cause:
    old, new = before.segments[found.index :], after.segments[found.index :]
    if len(old) < len(new) and old == new[-len(old) :]:
        return Cause("carrier", "a message that moves to the end of each prompt")
    old_stays, new_was = old[0] in new, new[0] in old
    if old_stays and new_was:
        return Cause("memory_block", "the same message at another place")
    if new_was:
        is_start = found.index == leading_systems(after.prompt.messages) + len(after.prompt.tools)
        return _dropped(old[: old.index(new[0])], is_start=is_start)
    if old_stays:
        return _inserted(new[: new.index(old[0])])
    if _is_compacted(before, after, old, new):
        return Cause("compaction", "the history is replaced by something shorter")
    return _replaced(before, after, found)


def _dropped(dropped: Sequence[Segment], *, is_start: bool) -> Cause:
    roles = {segment.role for segment in dropped}
    if is_start and (len(dropped) > 1 or "assistant" in roles):
        return Cause("history_trimmed", "the oldest messages are left out")
    if roles <= _MODEL_ROLES:
        return Cause("history_rewritten", "messages that were sent before are left out")
    return Cause("memory_block", "a block that was sent once is left out")


def _inserted(inserted: Sequence[Segment]) -> Cause:
    if {segment.role for segment in inserted} <= _MODEL_ROLES:
        return Cause("history_rewritten", "messages are put between those that were sent before")
    return Cause("memory_block", "a block is put between messages that were sent before")


def _is_compacted(before: View, after: View, old: Sequence[Segment], new: Sequence[Segment]) -> bool:
    if after.num_characters >= _SHRUNK_SHARE * before.num_characters:
        return False
    kept = Counter(old) & Counter(new)
    return 2 * sum(len(segment.text) * count for segment, count in kept.items()) <= sum(
        len(segment.text) for segment in old
    )


def _replaced(before: View, after: View, found: Parting) -> Cause:
    first, second = found.first, found.second
    if first.role != second.role:
        return Cause(UNKNOWN_CAUSE, "messages of other roles than before")
    old, new = message_at(before, found.index), message_at(after, found.index)
    cause = rewriting(old, new)
    if cause is not None:
        return cause
    if first.role in _MODEL_ROLES:
        return Cause("history_rewritten", "a message that was sent before is replaced")
    return Cause("memory_block", "a block with other text than before")


def message_at(view: View, index: int) -> Message:
    """The message that a segment shows."""
    return view.prompt.messages[index - len(view.prompt.tools)]


def rewriting(old: Message, new: Message) -> Cause | None:
    """How the second message is a later version of the first; `None` where it is another message."""
    first, second = message_text(old), message_text(new)
    role = str(new.get("role", "user"))
    if _reasons(old) > _reasons(new):
        return Cause("thinking_stripped", "reasoning that was there before is left out")
    offset = common_prefix_size(first, second)
    cause = text_cause(first, second, offset)
    if cause is not None:
        return cause
    if role in _TOOL_ROLES and len(second) < len(first):
        return Cause("tool_result_cut", "a tool result is shorter than before")
    if second and second in first:
        return Cause("history_rewritten", "a message is shorter than when it was sent first")
    common = offset + common_size(first[offset:], second[offset:])
    if common >= _REWRITTEN_SHARE * min(len(first), len(second)):
        return Cause("history_rewritten", "a message that was sent before is edited")
    return None


def _reasons(message: Message) -> int:
    return message_text(message).count("<think>") + bool(message.get("reasoning_content"))


# --- inside a text ---------------------------------------------------------------------------------


def text_cause(first: str, second: str, offset: int, *, goes_on: bool = False) -> Cause | None:
    """What form the difference at a place has, if it is one that changes by itself.

    `goes_on`: the second text may have more at its end.
    """
    if _only_spaces_differ(first, second, offset, goes_on=goes_on):
        return Cause("whitespace", "white space or an encoding of the same characters")
    if only_keys_differ(first, second, offset):
        return Cause("json_key_order", "a JSON object, its keys in another order")
    old, new, place = _units_at(first, second, offset)
    if _is_switch(old, new, place):
        return Cause("template_flags", TITLES["flag"])
    old_spot, new_spot = spot_at(old, place), spot_at(new, place)
    if old_spot is None or new_spot is None or old_spot.start != new_spot.start:
        return None
    if masked(old) != masked(new):
        return None
    spot = _more_particular(old_spot, new_spot)
    return Cause(spot.code, TITLES[spot.kind])


def spaces_normalised(text: str) -> str:
    """The text with one space for each run of white space, in Unicode's composed form (NFC)."""
    return _SPACES.sub(" ", unicodedata.normalize("NFC", text)).strip()


def _only_spaces_differ(first: str, second: str, offset: int, *, goes_on: bool) -> bool:
    around = first[max(offset - 1, 0) : offset + 1] + second[max(offset - 1, 0) : offset + 1]
    if around.isascii() and not any(character.isspace() for character in around):
        return False
    old, new = spaces_normalised(first), spaces_normalised(second)
    return new.startswith(old) if goes_on else old == new


def spots_at(first: str, second: str, offset: int) -> list[Spot]:
    """The pieces that change by themselves at a place of both texts."""
    old, new, place = _units_at(first, second, offset)
    found = [spot_at(old, place), spot_at(new, place)]
    switches = [spot for unit in (old, new) for spot in spots(unit) if spot.kind == "flag"]
    return [spot for spot in found if spot is not None] + switches


def _units_at(first: str, second: str, offset: int) -> tuple[str, str, int]:
    """The line of each text around a place, of long lines the sentence; and the place in it."""
    start = first.rfind("\n", 0, offset) + 1
    ends = [len(text) if (end := text.find("\n", offset)) < 0 else end for text in (first, second)]
    if max(ends) - start > LONG_LINE_SIZE:
        for ending in SENTENCE_END.finditer(first, start, offset):
            start = ending.end()
        ends = [
            match.end() if (match := SENTENCE_END.search(text, offset, end)) else end
            for text, end in zip((first, second), ends, strict=True)
        ]
    return first[start : ends[0]], second[start : ends[1]], offset - start


def _is_switch(old: str, new: str, place: int) -> bool:
    flags = [spot for unit in (old, new) for spot in spots(unit) if spot.kind == "flag"]
    if not any(spot.end >= place for spot in flags):
        return False
    old_rest, new_rest = masked(old).strip(), masked(new).strip()
    return old_rest == new_rest or not old_rest or not new_rest


def _more_particular(first: Spot, second: Spot) -> Spot:
    return second if first.kind == "number" else first
