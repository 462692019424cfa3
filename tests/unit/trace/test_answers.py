"""What generation leaves in the cache: the partial last block of a prompt, and the answer to it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from tests.oracles.description import latest_starts, unlimited_hits
from tests.oracles.list_lru import Request, hit_tokens, in_order
from tests.support.traces import BLOCK_TOKENS, make_trace, workloads
from warmset.trace import Trace
from warmset.trace.answers import answer_hits, find_answers

OTHER = Request(0, (99,), 4)
"""Shares nothing, so that no block is shared by all."""
TURN = Request(1, (1, 2, 3), 10)
"""Two full blocks of 4 tokens, and 2 tokens of the third."""


def trace_of(*requests: Request, output_tokens: int = 5, **columns: list[int]) -> Trace:
    trace = make_trace(requests)
    outputs = np.full(trace.num_requests, output_tokens)
    known = {name: np.array(column, np.int32) for name, column in columns.items()}
    return replace(trace, output_tokens=outputs, **known)


def marks(trace: Trace) -> list[tuple[int, int, int]]:
    """Parent, prompt and decoded tokens of each request."""
    found = find_answers(trace)
    columns = (found.parent, found.prompt_tokens, found.decoded_tokens)
    return list(zip(*(column.tolist() for column in columns), strict=True))


NONE = (-1, 0, 0)


@pytest.mark.parametrize(
    ("turn", "mark"),
    [
        (Request(2, (1, 2, 4, 5, 6), 20), (1, 10, 15)),
        (Request(2, (1, 2, 4, 5), 13), (1, 10, 13)),
        (Request(2, (1, 2, 3), 10), (1, 10, 10)),
        (Request(2, (1, 2, 4), 9), (1, 0, 0)),
        (Request(2, (1, 5, 6), 12), NONE),
        (Request(2, (1,), 4), NONE),
        (Request(2, (), 0), NONE),
    ],
    ids=["goes_on", "answer_is_cut", "same", "shorter", "branches", "start_of_it", "empty"],
)
def test_marks_of_an_inferred_turn(turn, mark):
    trace = trace_of(OTHER, TURN, turn)
    assert find_answers(trace).basis == "inferred"
    assert marks(trace) == [NONE, NONE, mark]


def test_blocks_that_all_requests_share_tell_nothing():
    """A system prompt of one block: the first prompt is that block alone, and starts all others."""
    requests = [Request(0, (1,), 4), Request(1, (1, 2), 8), Request(2, (1, 2, 3), 12)]
    assert marks(trace_of(*requests)) == [NONE, NONE, (1, 8, 12)]


def test_the_log_s_link_counts_where_the_prompt_goes_on():
    longer = Request(2, (1, 2, 4, 5, 6), 20)
    assert marks(trace_of(OTHER, TURN, longer, previous=[-1, -1, 1]))[2] == (1, 10, 15)
    assert marks(trace_of(OTHER, TURN, longer, previous=[-1, -1, 0]))[2] == NONE
    assert marks(trace_of(OTHER, TURN, longer, previous=[-1, -1, -1]))[2] == NONE
    assert find_answers(trace_of(OTHER, TURN, longer, previous=[-1, -1, 1])).basis == "previous"


def test_a_link_to_a_prompt_without_a_full_block_is_believed_and_a_session_is_not():
    requests = [Request(0, (7,), 3), Request(1, (8, 9), 8)]
    assert marks(trace_of(*requests, previous=[-1, 0]))[1] == (0, 3, 8)
    assert marks(trace_of(*requests, session=[0, 0]))[1] == NONE


def test_a_link_forward_in_time_is_none():
    assert marks(trace_of(TURN, Request(1, (1, 2, 3), 10), previous=[1, -1])) == [NONE, NONE]


def test_turns_of_a_session_go_past_what_stands_between():
    helper = Request(2, (50, 51), 8)
    longer = Request(3, (1, 2, 4, 5, 6), 20)
    trace = trace_of(OTHER, TURN, helper, longer, session=[1, 0, 0, 0])
    assert find_answers(trace).basis == "session"
    assert marks(trace)[3] == (1, 10, 15)
    assert marks(trace_of(OTHER, TURN, helper, longer, session=[1, 2, 0, 0]))[3] == NONE


def test_hits_by_hand():
    """Of 20 tokens, 8 lie in known blocks, 2 more in the partial one, and 5 are the answer."""
    trace = trace_of(OTHER, TURN, Request(2, (1, 2, 4, 5, 6), 20))
    hits = answer_hits(trace, find_answers(trace))
    assert hits == (4 + 10 + 20, 8, 10, 15)


def test_no_ids_mean_no_hits():
    trace = trace_of(Request(0, (), 10), Request(1, (), 10))
    assert answer_hits(trace, find_answers(trace)) == (20, 0, 0, 0)


@given(workloads())
def test_inferred_turns_are_those_of_plain_lists(requests):
    trace = make_trace(requests)
    hits = unlimited_hits(requests)
    shared = min(hits[1:], default=0)
    expected = latest_starts(requests, BLOCK_TOKENS, shared)
    found = find_answers(trace)
    assert found.parent.tolist() == [-1 if parent is None else parent for parent in expected]
    ordered = in_order(requests)
    for row, parent in enumerate(expected):
        size = ordered[row].input_tokens
        if parent is None or size < ordered[parent].input_tokens:
            assert (found.prompt_tokens[row], found.decoded_tokens[row]) == (0, 0)
        else:
            prompt = ordered[parent].input_tokens
            assert found.prompt_tokens[row] == prompt
            assert found.decoded_tokens[row] == min(prompt + 1, size)  # answers of one token
    totals = answer_hits(trace, found)
    assert totals.blocks_tokens == sum(hit_tokens(requests, hits, BLOCK_TOKENS))
    assert totals.blocks_tokens <= totals.with_partial_block_tokens <= totals.with_answer_tokens
    assert totals.with_answer_tokens <= totals.input_tokens
