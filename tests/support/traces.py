"""Small traces from plain lists, and trace files."""

import json
from collections.abc import Sequence
from pathlib import Path

from hypothesis import strategies as st

from tests.oracles.list_lru import Request
from warmset.trace import Provenance, ReadOptions, Trace, TraceBuilder, read_trace

BLOCK_TOKENS = 4
PROVENANCE = Provenance(name="test")


# --- traces from lists -----------------------------------------------------------------------------


def make_trace(requests: Sequence[Request], block_tokens: int = BLOCK_TOKENS) -> Trace:
    """A trace of these requests, in any order of time; their ids may be of content or of prefixes."""
    builder = TraceBuilder(block_tokens)
    for request in requests:
        builder.add(
            arrival_ms=request.arrival_ms, input_tokens=request.input_tokens, output_tokens=1, ids=request.ids
        )
    return builder.build(PROVENANCE)


def requests_of(trace: Trace) -> list[Request]:
    """The requests of a trace, with its nodes for ids."""

    def path(node: int) -> tuple[int, ...]:
        nodes = []
        while node >= 0:
            nodes.append(node)
            node = parent[node]
        return tuple(reversed(nodes))

    parent = trace.node_parent.tolist()
    columns = (trace.arrival_ms, trace.leaf, trace.input_tokens)
    return [
        Request(arrival_ms, path(leaf), tokens)
        for arrival_ms, leaf, tokens in zip(*(column.tolist() for column in columns), strict=True)
    ]


def ancestor(trace: Trace, node: int, depth: int) -> int:
    """The vertex at this depth on the path to a vertex; -1 at depth 0."""
    while node >= 0 and trace.node_depth[node] > depth:
        node = int(trace.node_parent[node])
    return int(node) if depth else -1


def prompts(*ids: Sequence[int], gap_ms: int = 1) -> list[Request]:
    """Requests with full blocks only, one every `gap_ms`."""
    return [
        Request(position * gap_ms, tuple(prompt), len(prompt) * BLOCK_TOKENS)
        for position, prompt in enumerate(ids)
    ]


def with_prefix_ids(requests: Sequence[Request]) -> list[Request]:
    """The same prompts with one id for each distinct prefix, numbered at random but fixed."""
    numbers: dict[tuple[int, ...], int] = {}

    def number(prefix: tuple[int, ...]) -> int:
        return numbers.setdefault(prefix, (len(numbers) * 7919 + 13) % 1_000_003)

    return [
        request._replace(ids=tuple(number(request.ids[: depth + 1]) for depth in range(len(request.ids))))
        for request in requests
    ]


@st.composite
def workloads(draw: st.DrawFn, max_requests: int = 12) -> list[Request]:
    """Forests of short prompts with ties, unsorted times, partial last blocks and odd lengths.

    Prompts start anew or go on from an earlier one, as the turns of a conversation do.
    """
    new_ids = st.lists(st.integers(0, 3), max_size=6)
    drawn: list[Request] = []
    for _ in range(draw(st.integers(1, max_requests))):
        start: tuple[int, ...] = ()
        if drawn and draw(st.booleans()):
            earlier = draw(st.sampled_from(drawn)).ids
            start = earlier[: draw(st.integers(0, len(earlier)))]
        ids = (*start, *draw(new_ids))[:10]
        tokens = len(ids) * BLOCK_TOKENS + draw(st.integers(-2 * BLOCK_TOKENS, BLOCK_TOKENS))
        drawn.append(Request(draw(st.integers(0, 30)), ids, max(tokens, 0)))
    return drawn


# --- trace files -----------------------------------------------------------------------------------


def mooncake_row(**changes: object) -> dict[str, object]:
    """A good row for 512-token blocks, with some fields changed."""
    return {"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [0, 1]} | changes


def write_rows(path: Path, *rows: object) -> Path:
    """One JSON text a line."""
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def read_mooncake(path: Path, block_tokens: int | None = None) -> Trace:
    """A file read as Mooncake JSONL, whatever it looks like."""
    return read_trace([path], "mooncake", ReadOptions(block_tokens=block_tokens))
