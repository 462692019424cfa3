"""Which prompt a prompt goes on from: turns in order, and the starts of conversations among each other."""

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from warmset.errors import InputError
from warmset.trace.lint.jsons import tool_name
from warmset.trace.lint.view import SYSTEM_ROLES, View, leading_systems, parting
from warmset.trace.lint.volatile import masked
from warmset.trace.prompt import Prompt, message_text

Int64s = npt.NDArray[np.int64]

_OPEN_STARTS = 8
_OPEN_PROMPTS = 4
"""Prompts of one lineage to which the next one may belong: a conversation and its helpers take turns."""
_LIKE_SHARE = 0.5
_SHAPE_SIZE = 64
_CHANGED = InputError("the log changed while it was read: lint a copy of it")


class Turn(NamedTuple):
    """A prompt and what its lineage is called."""

    log_index: int
    """In the log."""
    lineage: Hashable
    prompt: Prompt


class Lineages:
    """Names of lineages, and their turns in order of arrival whatever the order of the log.

    A lineage is a session; without, what goes on from a key; without, the prompts with one first message.
    """

    def __init__(self) -> None:
        self._names: list[int] = []
        self._arrivals_ms: list[int] = []
        self._lineage_of_key: dict[Hashable, int] = {}
        self._numbers: dict[Hashable, int] = {}

    def take(self, prompt: Prompt) -> None:
        """Name the lineage of the next prompt of the log."""
        number = None if prompt.previous_key is None else self._lineage_of_key.get(prompt.previous_key)
        if number is None or prompt.session is not None:
            number = self._numbers.setdefault(_lineage_name(prompt), len(self._numbers))
        if prompt.key is not None:
            self._lineage_of_key[prompt.key] = number
        self._names.append(number)
        self._arrivals_ms.append(prompt.arrival_ms)

    def arrivals_ms(self) -> Int64s:
        """Arrivals in the order of the log."""
        return np.array(self._arrivals_ms, dtype=np.int64)

    def in_order(self, prompts: Iterable[Prompt]) -> Iterator[Turn]:
        """The same prompts again, each after the earlier ones of its lineage; few are held back.

        Raises: InputError where they are not as many as before.
        """
        names = np.array(self._names, dtype=np.int64)
        order = np.lexsort((np.arange(names.size), self.arrivals_ms(), names))
        waits_for = np.full(names.size, -1)
        follows = names[order[1:]] == names[order[:-1]]
        waits_for[order[1:][follows]] = order[:-1][follows]
        next_of = {int(first): int(second) for second, first in enumerate(waits_for) if first >= 0}
        done = np.zeros(names.size, dtype=bool)
        held: dict[int, Prompt] = {}
        for position, prompt in enumerate(prompts):
            if position == names.size:
                raise _CHANGED
            held[position] = prompt
            place = position
            while place in held and (waits_for[place] < 0 or done[waits_for[place]]):
                yield Turn(place, self._names[place], held.pop(place))
                done[place] = True
                place = next_of.get(place, -1)
        if not done.all():
            raise _CHANGED


def _lineage_name(prompt: Prompt) -> Hashable:
    if prompt.session is not None:
        return "session", prompt.session
    if prompt.text is not None:
        return "texts", ""
    leading = leading_systems(prompt.messages)
    first = prompt.messages[leading : leading + 1]
    return "opening", masked(message_text(first[0])) if first else ""


class Pair(NamedTuple):
    """A prompt with the one that it is held against."""

    before: View
    between_sessions: bool


class Tracker:
    """Finds for each prompt, taken in order, the one that it goes on from."""

    def __init__(self) -> None:
        self._open: dict[Hashable, OrderedDict[Hashable, View]] = defaultdict(OrderedDict)
        self._starts: deque[View] = deque(maxlen=_OPEN_STARTS)

    def pair(self, lineage: Hashable, view: View) -> Pair | None:
        """The prompt before; for the first of a lineage, the start of another that is most like it."""
        recent = self._open[lineage]
        before = _goes_on_from(list(recent.values()), view)
        shape = _shape(view)
        recent[shape] = view
        recent.move_to_end(shape)
        if len(recent) > _OPEN_PROMPTS:
            recent.popitem(last=False)
        if before is not None:
            return Pair(before, between_sessions=False)
        head = head_of(view)
        like = _most_like(self._starts, head)
        self._starts.append(head)
        return None if like is None else Pair(like, between_sessions=True)


def _goes_on_from(recent: Sequence[View], view: View) -> View | None:
    """The latest if this prompt only adds to it, or else the one with which it has most text in common."""
    if recent and _is_start_of(recent[-1], view):
        return recent[-1]
    best, most = None, 0
    for before in reversed(recent):
        common = before.common_with(view) if len(recent) > 1 else 1
        if common > most and _belongs(before, view):
            best, most = before, common
    return best


def _belongs(before: View, view: View) -> bool:
    """Whether two prompts share history, or else most of how they start."""
    history = {segment for segment in before.segments if segment.slot == "history"}
    return any(segment in history for segment in view.segments) or _common_head(before, view) is not None


def _common_head(first: View, second: View) -> int | None:
    """Characters that the starts share; `None` where they are not alike."""
    common = _weight(first.head_units & second.head_units)
    least = _LIKE_SHARE * min(_weight(first.head_units), _weight(second.head_units))
    return common if common and common >= least else None


def _weight(units: Counter[str]) -> int:
    return sum(len(unit) * count for unit, count in units.items())


def _is_start_of(before: View, view: View) -> bool:
    old, new = before.segments, view.segments
    return (
        bool(old and new)
        and len(old) <= len(new)
        and old[0].text == new[0].text[: len(old[0].text)]
        and (parting(before, view) is None)
    )


def _most_like(starts: Iterable[View], head: View) -> View | None:
    best, most = None, 0
    for start in starts:
        common = _common_head(start, head)
        if common is not None and common >= most:
            best, most = start, common
    return best


def head_of(view: View) -> View:
    """System messages and tools alone; a completion whole."""
    prompt = view.prompt
    return View(replace(prompt, messages=prompt.messages[: leading_systems(prompt.messages)], answer=""))


def _shape(view: View) -> Hashable:
    """What tells the conversations of one lineage apart: model, tools and how the prompt starts."""
    prompt = view.prompt
    start = next((segment.text for segment in view.segments if segment.role in SYSTEM_ROLES), "")
    if prompt.text is not None:
        start = prompt.text
    return prompt.model, tuple(sorted(map(tool_name, prompt.tools))), masked(start[:_SHAPE_SIZE])
