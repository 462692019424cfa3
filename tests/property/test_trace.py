"""The forest, against the tuples of ids that a prompt consists of."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.list_lru import blocks_of, in_order
from tests.support.traces import (
    make_trace,
    mooncake_row,
    read_mooncake,
    with_prefix_ids,
    workloads,
    write_rows,
)
from warmset.trace import Trace


def prefix_of_node(trace: Trace, requests: list) -> dict[int, tuple[int, ...]]:
    """Which distinct prefix each node stands for, by walking every request from its leaf to the root."""
    prefixes: dict[int, tuple[int, ...]] = {}
    for leaf, request in zip(trace.leaf.tolist(), in_order(requests), strict=True):
        node = leaf
        for block in reversed(blocks_of(request)):
            assert prefixes.setdefault(node, block) == block
            node = int(trace.node_parent[node])
        assert node == -1
    return prefixes


@given(workloads(), st.booleans())
def test_one_node_for_each_distinct_prefix(requests, prefix_coded):
    if prefix_coded:
        requests = with_prefix_ids(requests)
    trace = make_trace(requests)
    prefixes = prefix_of_node(trace, requests)
    distinct = {block for request in requests for block in blocks_of(request)}
    assert sorted(prefixes.values()) == sorted(distinct)
    assert sorted(prefixes) == list(range(trace.num_nodes))
    assert [len(prefixes[node]) for node in range(trace.num_nodes)] == trace.node_depth.tolist()
    assert np.all(trace.node_parent < np.arange(trace.num_nodes))


@given(workloads())
def test_content_ids_and_prefix_ids_give_one_forest(requests):
    by_content, by_prefix = make_trace(requests), make_trace(with_prefix_ids(requests))
    for name in ("node_parent", "node_depth", "leaf", "num_blocks", "arrival_ms", "input_tokens"):
        assert getattr(by_content, name).tolist() == getattr(by_prefix, name).tolist(), name
    assert by_prefix.findings == ()


@given(workloads())
def test_content_ids_are_named_when_an_id_follows_two_blocks(requests):
    parents = {(block[-1], block[:-1]) for request in requests for block in blocks_of(request)}
    repeated = any(count > 1 for count in Counter(identity for identity, _ in parents).values())
    assert bool(make_trace(requests).findings) == repeated


@given(workloads())
def test_order_is_by_arrival_and_stable(requests):
    marked = [request._replace(input_tokens=position) for position, request in enumerate(requests)]
    trace = make_trace(marked)
    assert trace.input_tokens.tolist() == [request.input_tokens for request in in_order(marked)]
    assert trace.arrival_ms.tolist() == sorted(request.arrival_ms for request in marked)
    assert trace.num_blocks.tolist() == [len(request.ids) for request in in_order(marked)]


@given(workloads())
def test_totals(requests):
    trace = make_trace(requests)
    assert trace.num_requests == len(requests)
    assert trace.block_refs == sum(len(request.ids) for request in requests)
    assert trace.span_ms == max(r.arrival_ms for r in requests) - min(r.arrival_ms for r in requests)


@given(requests=workloads(), blanks=st.lists(st.booleans(), min_size=12, max_size=12))
def test_no_line_of_a_file_is_lost(tmp_path_factory, requests, blanks):
    rows = [
        mooncake_row(timestamp=r.arrival_ms, input_length=4 * len(r.ids), hash_ids=list(r.ids))
        for r in with_prefix_ids(requests)
    ]
    path = write_rows(tmp_path_factory.mktemp("trace") / "trace.jsonl", *rows)
    lines = [
        line + ("\n" if blank else "")
        for line, blank in zip(path.read_text().splitlines(keepends=True), blanks, strict=False)
    ]
    path.write_text("".join(lines))
    trace = read_mooncake(path, block_tokens=4)
    skipped = sum(finding.count for finding in trace.findings if finding.code == "blank_lines")
    assert trace.num_requests + skipped == len(path.read_text().splitlines())
    assert trace.leaf.tolist() == make_trace(requests).leaf.tolist()
