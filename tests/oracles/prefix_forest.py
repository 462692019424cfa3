"""Slow and obvious forests of prompts, on tuples and dictionaries: the reference for the trace builder.

A block is its scope of ids and the tuple of ids from the start of the prompt up to it.
"""

from collections.abc import Iterable, Sequence

Block = tuple[int, tuple[int, ...]]


class PrefixForest:
    """Distinct blocks, numbered in the order in which prompts bring them."""

    def __init__(self) -> None:
        self.number: dict[Block, int] = {}

    def add(self, ids: Sequence[int], scope: int = 0) -> tuple[int, int]:
        """The number of the last block (-1 without one), and how many leading blocks were there."""
        blocks = [(scope, tuple(ids[: depth + 1])) for depth in range(len(ids))]
        known = sum(block in self.number for block in blocks)
        for block in blocks:
            self.number.setdefault(block, len(self.number))
        return (self.number[blocks[-1]] if blocks else -1), known

    def parents(self) -> list[int]:
        """The number of the block before each, -1 for the first of a prompt."""
        return [
            self.number[scope, ids[:-1]] if len(ids) > 1 else -1
            for scope, ids in sorted(self.number, key=self.number.__getitem__)
        ]

    def repeats_ids(self) -> bool:
        """Whether some id of a scope ends two different blocks."""
        last = [(scope, ids[-1]) for scope, ids in self.number]
        return len(set(last)) < len(last)


def numbered_by_first_use(parents: Sequence[int], leaves: Iterable[int]) -> dict[int, int]:
    """A new number for each vertex on the way to some leaf, root first, leaf after leaf."""
    number: dict[int, int] = {}
    for leaf in leaves:
        path = []
        node = leaf
        while node != -1:
            path.append(node)
            node = parents[node]
        for vertex in reversed(path):
            number.setdefault(vertex, len(number))
    return number
