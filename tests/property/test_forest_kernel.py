"""The compiled forest against tuples and dictionaries."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.prefix_forest import PrefixForest, numbered_by_first_use
from warmset.trace import kernel
from warmset.trace.builder import renumbered

INT64S = st.integers(-(2**63), 2**63 - 1)
# Few ids, so that prompts share; their neighbours in the hash, so that slots collide; any id at all.
IDS = st.one_of(st.integers(0, 3), st.sampled_from([-1, -2, 2**63 - 1, -(2**63), 2**32, 2**31]), INT64S)
PROMPTS = st.lists(st.tuples(st.lists(IDS, max_size=8), st.integers(0, 3)), max_size=20)


class Columns:
    """A forest of fixed room, as the builder holds it."""

    def __init__(self, room: int, slots: int) -> None:
        self.parent = np.full(room, 99, dtype=np.int32)
        self.id = np.full(room, 99, dtype=np.int64)
        self.last_child = np.full(room, 99, dtype=np.int32)
        self.slots = np.full(slots, kernel.EMPTY, dtype=np.int32)
        self.num_nodes = 0

    def walk(
        self, ids: list[int], scope: int, start: int = 0, above: int | None = None
    ) -> tuple[int, int, int]:
        """Vertex reached, ids taken, ids known."""
        above, steps, self.num_nodes, known = kernel.walk(
            np.array(ids, dtype=np.int64),
            start,
            -1 - scope if above is None else above,
            self.num_nodes,
            self.parent,
            self.id,
            self.last_child,
            self.slots,
        )
        return above, steps, known

    def graft(self, part: "Columns", shift: int, start: int, renamed: np.ndarray) -> int:
        entered, self.num_nodes = kernel.graft(
            part.parent[: part.num_nodes],
            part.id[: part.num_nodes],
            shift,
            start,
            renamed,
            self.num_nodes,
            self.parent,
            self.id,
            self.last_child,
            self.slots,
        )
        return entered


def room_for(prompts: list) -> int:
    return 1 + sum(len(ids) for ids, _ in prompts)


def slots_for(room: int) -> int:
    """A power of two that leaves some slot empty: nearly full, so that probes are long."""
    return 1 << room.bit_length()


def filled(prompts: list) -> tuple[Columns, PrefixForest]:
    room = room_for(prompts)
    columns, forest = Columns(room, slots_for(room)), PrefixForest()
    for ids, scope in prompts:
        leaf, steps, known = columns.walk(ids, scope)
        expected = forest.add(ids, scope)
        assert (leaf if ids else -1, known) == expected
        assert steps == len(ids)
    return columns, forest


@given(PROMPTS)
def test_walk(prompts):
    columns, forest = filled(prompts)
    blocks = sorted(forest.number, key=forest.number.__getitem__)
    assert columns.num_nodes == len(blocks)
    assert columns.id[: columns.num_nodes].tolist() == [ids[-1] for _, ids in blocks]
    parents = [
        above if above >= 0 else -1 - scope
        for above, (scope, _) in zip(forest.parents(), blocks, strict=True)
    ]
    assert columns.parent[: columns.num_nodes].tolist() == parents
    assert kernel.scopes(columns.parent[: columns.num_nodes]).tolist() == [scope for scope, _ in blocks]
    assert kernel.depths(columns.parent[: columns.num_nodes]).tolist() == [len(ids) for _, ids in blocks]


@given(PROMPTS, st.integers(0, 12))
def test_walk_stops_where_the_room_ends(prompts, room):
    """And does not touch a byte beyond, nor name a vertex that is not there."""
    columns, forest = Columns(room, slots_for(room)), PrefixForest()
    for ids, scope in prompts:
        leaf, steps, known = columns.walk(ids, scope)
        new = [(scope, tuple(ids[: depth + 1])) not in forest.number for depth in range(len(ids))]
        fitting = sum(new[: steps + 1])
        assert known == steps - sum(new[:steps])
        if steps < len(ids):
            assert len(forest.number) + fitting == room + 1
            forest.add(ids[:steps], scope)
            assert columns.num_nodes == room == len(forest.number)
            assert leaf == (forest.number[scope, tuple(ids[:steps])] if steps else -1 - scope)
            return
        forest.add(ids, scope)
        assert columns.num_nodes == len(forest.number) <= room


@given(PROMPTS, PROMPTS)
def test_a_grown_hash_table_finds_what_was_there(before, after):
    columns, forest = filled(before)
    bigger = Columns(room_for(before + after), slots_for(room_for(before + after)))
    for name in ("parent", "id", "last_child"):
        getattr(bigger, name)[: columns.num_nodes] = getattr(columns, name)[: columns.num_nodes]
    bigger.num_nodes = columns.num_nodes
    kernel.fill_slots(bigger.slots, bigger.parent, bigger.id, bigger.num_nodes)
    for ids, scope in before + after:
        leaf, _, known = bigger.walk(ids, scope)
        assert (leaf if ids else -1, known) == forest.add(ids, scope)


@given(PROMPTS, PROMPTS, st.integers(1, 5))
def test_graft(own, other, chunk):
    """The other forest comes in part by part, as room is made; scope 0 is common, other scopes are new."""
    columns, forest = filled(own)
    part, _ = filled(other)
    shift = max([scope for _, scope in own], default=0)
    leaves = [part.walk(ids, scope)[0] if ids else -1 for ids, scope in other]
    renamed = np.full(part.num_nodes, -9, dtype=np.int32)
    entered = 0
    while entered < part.num_nodes:
        room = columns.num_nodes + chunk
        bigger = Columns(room, slots_for(room))
        for name in ("parent", "id", "last_child"):
            getattr(bigger, name)[: columns.num_nodes] = getattr(columns, name)[: columns.num_nodes]
        bigger.num_nodes = columns.num_nodes
        kernel.fill_slots(bigger.slots, bigger.parent, bigger.id, bigger.num_nodes)
        columns = bigger
        entered = columns.graft(part, shift, entered, renamed)
    expected = [forest.add(ids, scope + shift if scope else 0)[0] for ids, scope in other]
    assert [int(renamed[leaf]) if leaf >= 0 else -1 for leaf in leaves] == expected
    assert columns.num_nodes == len(forest.number)
    for (ids, scope), leaf in zip(own, [forest.add(*prompt)[0] for prompt in own], strict=True):
        if ids:
            assert columns.walk(ids, scope) == (leaf, len(ids), len(ids))


@st.composite
def forests(draw: st.DrawFn) -> list[int]:
    size = draw(st.integers(0, 30))
    return [draw(st.integers(-1, node - 1)) for node in range(size)]


@given(
    forests().flatmap(
        lambda parents: st.tuples(st.just(parents), st.lists(st.integers(-1, len(parents) - 1)))
    )
)
def test_number_by_first_use(case):
    parents, leaves = case
    expected = numbered_by_first_use(parents, leaves)
    node_parent, leaf = np.array(parents, dtype=np.int32), np.array(leaves, dtype=np.int32)
    number = kernel.number_by_first_use(node_parent, leaf)
    assert number.tolist() == [expected.get(node, -1) for node in range(len(parents))]
    parent, renamed = renumbered(node_parent, leaf)
    assert renamed.tolist() == [expected.get(node, -1) for node in leaves]
    assert parent.tolist() == [
        expected.get(parents[old], -1) for old in sorted(expected, key=expected.__getitem__)
    ]


@given(forests())
def test_depths_and_scopes(parents):
    node_parent = np.array(parents, dtype=np.int32)
    depth: list[int] = []
    for above in parents:
        depth.append(1 if above == -1 else depth[above] + 1)
    assert kernel.depths(node_parent).tolist() == depth
    assert kernel.scopes(node_parent).tolist() == [0] * len(parents)
