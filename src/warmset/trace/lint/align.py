"""What two texts or two lists share, and in which order."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple, TypeVar

_Unit = TypeVar("_Unit", bound=Hashable)

LONG_LINE_SIZE = 1000
"""Longer lines are cut into sentences."""
SENTENCE_END = re.compile(r"[.!?;]\s+")
_LINE_ENDS = re.compile(r"[^\n]*\n|[^\n]+")
_SENTENCES = re.compile(rf".+?(?:{SENTENCE_END.pattern}|\Z)", re.DOTALL)


class Run(NamedTuple):
    """`size` units that stand in both lists, from `first` and from `second` on."""

    first: int
    second: int
    size: int


class Shared(NamedTuple):
    """What two lists have in common: in the same order, and elsewhere."""

    runs: tuple[Run, ...]
    moved: tuple[tuple[int, int], ...]
    """Units that occur once in each, but not in the order of the others: (place in first, in second)."""


def common_prefix_size(first: str, second: str) -> int:
    """Leading characters that both have."""
    low, high = 0, min(len(first), len(second))
    if first[:high] == second[:high]:
        return high
    while low < high - 1:
        middle = (low + high) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle
    return low


def units_of(text: str) -> list[str]:
    """A text cut into lines with their ends, and long lines into sentences; joined again it is the same."""
    units = []
    for line in _LINE_ENDS.findall(text):
        if len(line) > LONG_LINE_SIZE:
            units += _SENTENCES.findall(line)
        else:
            units.append(line)
    return units


def common_size(first: str, second: str) -> int:
    """Characters of lines that both texts have, and of an equal end, wherever they stand."""
    limit = min(len(first), len(second))
    tail = common_prefix_size(first[: -limit - 1 : -1], second[: -limit - 1 : -1]) if limit else 0
    first, second = first[: len(first) - tail], second[: len(second) - tail]
    return tail + sum(
        len(unit) * count for unit, count in (Counter(units_of(first)) & Counter(units_of(second))).items()
    )


def shared(first: Sequence[_Unit], second: Sequence[_Unit]) -> Shared:
    """Common runs of two lists, anchored at units that occur once in each (patience diff)."""
    pairs = _unique_pairs(first, second)
    kept = _longest_rising([second_place for _, second_place in pairs])
    in_order = [pairs[place] for place in kept]
    ordered = set(in_order)
    return Shared(_grown(in_order, first, second), tuple(pair for pair in pairs if pair not in ordered))


def _unique_pairs(first: Sequence[_Unit], second: Sequence[_Unit]) -> list[tuple[int, int]]:
    times_first, times_second = Counter(first), Counter(second)
    place = {unit: index for index, unit in enumerate(second) if times_second[unit] == 1}
    return [
        (index, place[unit]) for index, unit in enumerate(first) if times_first[unit] == 1 and unit in place
    ]


def _longest_rising(numbers: Sequence[int]) -> list[int]:
    """Places of a longest rising subsequence."""
    ends: list[int] = []
    end_places: list[int] = []
    before = [-1] * len(numbers)
    for place, number in enumerate(numbers):
        length = bisect_left(ends, number)
        before[place] = end_places[length - 1] if length else -1
        ends[length : length + 1] = [number]
        end_places[length : length + 1] = [place]
    chosen = []
    place = end_places[-1] if end_places else -1
    while place >= 0:
        chosen.append(place)
        place = before[place]
    return chosen[::-1]


def _grown(
    anchors: Sequence[tuple[int, int]], first: Sequence[_Unit], second: Sequence[_Unit]
) -> tuple[Run, ...]:
    """Anchors widened over equal neighbours, and joined."""
    runs: list[Run] = []
    for first_place, second_place in (*anchors, (len(first), len(second))):
        first_low = runs[-1].first + runs[-1].size if runs else 0
        second_low = runs[-1].second + runs[-1].size if runs else 0
        if first_place < first_low or second_place < second_low:
            continue  # the run before has grown over it
        start = _equal_before(first, second, first_place - first_low, first_place, second_place, second_low)
        end = first_place
        while (
            end < len(first)
            and end - first_place + second_place < len(second)
            and first[end] == second[end - first_place + second_place]
        ):
            end += 1
        if end > start:
            runs.append(Run(start, second_place - (first_place - start), end - start))
    return tuple(runs)


def _equal_before(
    first: Sequence[_Unit],
    second: Sequence[_Unit],
    most: int,
    first_place: int,
    second_place: int,
    second_low: int,
) -> int:
    """Where in `first` the equal units directly before two places start."""
    start = first_place
    for _ in range(min(most, second_place - second_low)):
        if first[start - 1] != second[start - 1 - first_place + second_place]:
            break
        start -= 1
    return start
