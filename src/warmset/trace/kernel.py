"""Chains of block ids walked down a growing forest, compiled.

A block's identity includes everything before it, so a vertex of the forest is found by (parent vertex, id).
Prompts repeat the path of the prompt before them nearly always: the child that was taken last is tried first,
and only where it differs is the hash table asked. So a repeated block costs two sequential reads.
"""

import numba
import numpy as np
import numpy.typing as npt

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

EMPTY = -1
_MIX = np.uint64(0x9E3779B97F4A7C15)
_FOLD = np.uint64(0xBF58476D1CE4E5B9)


@numba.njit(cache=True, inline="always")
def _slot(parent: int, identity: int, mask: int) -> np.int64:
    mixed = np.uint64(identity) * _MIX ^ np.uint64(parent) * _FOLD
    mixed ^= mixed >> np.uint64(29)
    mixed *= _FOLD
    mixed ^= mixed >> np.uint64(32)
    return np.int64(mixed & np.uint64(mask))


@numba.njit(cache=True)
def walk(
    ids: Int64s,
    start: int,
    above: int,
    num_nodes: int,
    node_parent: Int32s,
    node_id: Int64s,
    last_child: Int32s,
    slots: Int32s,
) -> tuple[int, int, int, int]:
    """Follow `ids[start:]` down from the vertex `above`, and grow what is not there yet.

    `above` below zero is a root: each scope of ids has its own. Stops early when the columns are full.
    Returns the vertex reached, ids taken, vertices of the forest, and how many of the ids were known.
    """
    mask = slots.size - 1
    room = node_parent.size
    known = 0
    position = start
    while position < ids.size:
        identity = ids[position]
        node = last_child[above] if above >= 0 else EMPTY
        if node == EMPTY or node_id[node] != identity:
            slot = _slot(above, identity, mask)
            node = slots[slot]
            while node != EMPTY and (node_id[node] != identity or node_parent[node] != above):
                slot = (slot + 1) & mask
                node = slots[slot]
            if node == EMPTY:
                if num_nodes == room:
                    break
                node = num_nodes
                num_nodes += 1
                slots[slot] = node
                node_parent[node] = above
                node_id[node] = identity
                last_child[node] = EMPTY
            else:
                known += 1
            if above >= 0:
                last_child[above] = node
        else:
            known += 1
        above = node
        position += 1
    return above, position - start, num_nodes, known


@numba.njit(cache=True)
def fill_slots(slots: Int32s, node_parent: Int32s, node_id: Int64s, num_nodes: int) -> None:
    """Enter every vertex into an empty hash table."""
    mask = slots.size - 1
    for node in range(num_nodes):
        slot = _slot(node_parent[node], node_id[node], mask)
        while slots[slot] != EMPTY:
            slot = (slot + 1) & mask
        slots[slot] = node


@numba.njit(cache=True)
def graft(  # noqa: PLR0917 - columns, not objects
    part_parent: Int32s,
    part_id: Int64s,
    scope_shift: int,
    start: int,
    renamed: Int32s,
    num_nodes: int,
    node_parent: Int32s,
    node_id: Int64s,
    last_child: Int32s,
    slots: Int32s,
) -> tuple[int, int]:
    """Enter the vertices of another forest, from its vertex `start` on; `renamed` gets the name of each.

    Scopes above 0 move up by `scope_shift`. Stops early when the columns are full.
    Returns the vertices of the other forest that are in, and those of this one.
    """
    mask = slots.size - 1
    for part_node in range(start, part_parent.size):
        above = part_parent[part_node]
        if above >= 0:
            above = renamed[above]
        elif above < -1:
            above -= scope_shift
        identity = part_id[part_node]
        slot = _slot(above, identity, mask)
        node = slots[slot]
        while node != EMPTY and (node_id[node] != identity or node_parent[node] != above):
            slot = (slot + 1) & mask
            node = slots[slot]
        if node == EMPTY:
            if num_nodes == node_parent.size:
                return part_node, num_nodes
            node = num_nodes
            num_nodes += 1
            slots[slot] = node
            node_parent[node] = above
            node_id[node] = identity
            last_child[node] = EMPTY
        renamed[part_node] = node
    return part_parent.size, num_nodes


@numba.njit(cache=True)
def number_by_first_use(node_parent: Int32s, leaf: Int32s) -> Int32s:
    """A new number for each vertex, in the order in which requests first touch them; -1 where none does."""
    number = np.full(node_parent.size, -1, dtype=np.int32)
    path = np.empty(node_parent.size, dtype=np.int32)
    known = 0
    for request in range(leaf.size):
        node = leaf[request]
        steps = 0
        while node >= 0 and number[node] < 0:
            path[steps] = node
            steps += 1
            node = node_parent[node]
        for step in range(steps - 1, -1, -1):
            number[path[step]] = known
            known += 1
    return number


@numba.njit(cache=True)
def known_blocks(node_parent: Int32s, leaf: Int32s, num_blocks: Int32s) -> Int32s:
    """Leading blocks of each request that an earlier one had."""
    is_known = np.zeros(node_parent.size, dtype=np.bool_)
    known = num_blocks.copy()
    for request in range(leaf.size):
        node = leaf[request]
        while node >= 0 and not is_known[node]:
            is_known[node] = True
            known[request] -= 1
            node = node_parent[node]
    return known


@numba.njit(cache=True)
def ancestor_at_multiple(node_parent: Int32s, node_depth: Int32s, times: int) -> Int32s:
    """The nearest vertex above each whose depth is a multiple of `times`, or -1."""
    above = np.empty(node_parent.size, dtype=np.int32)
    for node in range(node_parent.size):
        parent = node_parent[node]
        above[node] = parent if parent < 0 or node_depth[parent] % times == 0 else above[parent]
    return above


@numba.njit(cache=True)
def node_owner(node_parent: Int32s, leaf: Int32s, group: Int32s) -> Int32s:
    """The group whose requests alone touch each vertex; -1 where several do, -2 where none does."""
    owner = np.full(node_parent.size, -2, dtype=np.int32)
    for request in range(leaf.size):
        node = leaf[request]
        while node >= 0 and owner[node] != -1 and owner[node] != group[request]:
            # Whoever touched a vertex touched those above it too: a known owner ends the walk.
            owner[node] = group[request] if owner[node] == -2 else -1
            node = node_parent[node]
    return owner


@numba.njit(cache=True)
def fill_path(node_parent: Int32s, leaf: int, num_blocks: int, path: Int32s) -> None:
    """The vertices from the root to a leaf, into the start of `path`."""
    node = leaf
    for position in range(num_blocks - 1, -1, -1):
        path[position] = node
        node = node_parent[node]


@numba.njit(cache=True)
def depths(node_parent: Int32s) -> Int32s:
    """Blocks from the root to each vertex, itself included; a parent must precede its children."""
    depth = np.empty(node_parent.size, dtype=np.int32)
    for node in range(node_parent.size):
        above = node_parent[node]
        depth[node] = 1 if above < 0 else depth[above] + 1
    return depth


@numba.njit(cache=True)
def scopes(node_parent: Int32s) -> Int32s:
    """The scope of ids to which each vertex belongs, from parents that name it below zero."""
    scope = np.empty(node_parent.size, dtype=np.int32)
    for node in range(node_parent.size):
        above = node_parent[node]
        scope[node] = -1 - above if above < 0 else scope[above]
    return scope
