"""The forest on prompts small enough to draw."""

import numpy as np
import pytest

from tests.oracles.list_lru import Request
from tests.support.traces import make_trace, prompts


def test_prompts_that_share_a_prefix_share_nodes():
    #      1 ─ 2 ─ 3        nodes in order of first use
    #        └ 4            0 ─ 1 ─ 2
    #      5                  └ 3      4
    trace = make_trace(prompts([1, 2, 3], [1, 4], [5], [1, 2]))
    assert trace.node_parent.tolist() == [-1, 0, 1, 0, -1]
    assert trace.node_depth.tolist() == [1, 2, 3, 2, 1]
    assert trace.leaf.tolist() == [2, 3, 4, 1]
    assert trace.num_blocks.tolist() == [3, 2, 1, 2]
    assert (trace.num_requests, trace.num_nodes, trace.block_refs, trace.span_ms) == (4, 5, 8, 3)


def test_one_content_id_after_two_blocks_is_two_nodes():
    trace = make_trace(prompts([1, 9], [2, 9]))
    assert trace.node_parent.tolist() == [-1, 0, -1, 2]
    (finding,) = trace.findings
    assert (finding.code, finding.count) == ("content_ids", 4)


@pytest.mark.parametrize(
    "ids",
    [
        ([1, 2], [2]),  # 2 follows 1 and starts a prompt
        ([1, 2, 1],),  # 1 starts a prompt and follows 2
        ([1, 1],),
        ([1], [1, 1]),
        ([1, 2], [2, 1]),
    ],
)
def test_an_id_in_two_places_is_of_content(ids):
    trace = make_trace(prompts(*ids))
    assert [finding.code for finding in trace.findings] == ["content_ids"]
    assert trace.num_nodes == len({tuple(prompt[: n + 1]) for prompt in ids for n in range(len(prompt))})


def test_requests_without_blocks_have_no_leaf():
    trace = make_trace(prompts([], [1], [], [1, 2], []))
    assert trace.leaf.tolist() == [-1, 0, -1, 1, -1]
    assert trace.node_parent.tolist() == [-1, 0]
    assert trace.findings == ()


def test_no_request_has_blocks():
    trace = make_trace(prompts([], []))
    assert (trace.num_requests, trace.num_nodes, trace.block_refs) == (2, 0, 0)


def test_unsorted_requests_move_with_their_ids():
    requests = [Request(9, (1, 2, 3), 30), Request(2, (7,), 31), Request(5, (), 32), Request(2, (1,), 33)]
    trace = make_trace(requests)
    assert trace.input_tokens.tolist() == [31, 33, 32, 30]
    assert trace.leaf.tolist() == [0, 1, -1, 3]
    assert trace.node_parent.tolist() == [-1, -1, 1, 2]


def test_tokens_to_depth_never_exceed_the_input():
    trace = make_trace([Request(0, (1, 2, 3), 10), Request(1, (1, 2, 3, 4), 9)])
    requests = np.array([0, 0, 0, 0, 1, 1])
    depth = np.array([0, 1, 2, 3, 3, 4])
    assert trace.tokens_to_depth(requests, depth).tolist() == [0, 4, 8, 10, 9, 9]
