"""What a request does with the prompts before it, and the sessions that this tells."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.list_lru import Request
from tests.support.traces import BLOCK_TOKENS, make_trace, prompts, workloads
from warmset.reuse import profile_reuse
from warmset.reuse.kinds import LONG_PROMPT_TOKENS, open_sessions, request_kinds, sessions

KINDS = ("first", "multi_turn", "shared_prefix", "repeated")


def kinds_of(requests: list[Request]) -> list[str]:
    """The one kind of each request."""
    masks = request_kinds(profile_reuse(make_trace(requests)))
    return [" ".join(kind for kind in KINDS if getattr(masks, kind)[row]) for row in range(len(requests))]


@pytest.mark.parametrize(
    ("ids", "kinds"),
    [
        (([1, 2], [3], [4, 5]), ["first", "first", "first"]),
        (([1, 2], [1, 2, 3], [1, 2, 3, 4]), ["first", "first", "multi_turn"]),
        (([8], [1, 2], [1, 2, 3]), ["first", "first", "multi_turn"]),
        (([8], [1, 2, 3], [1, 2, 9]), ["first", "first", "shared_prefix"]),
        (([8], [1, 2], [1, 2]), ["first", "first", "repeated"]),
        (([8], [1, 2, 3], [1, 2]), ["first", "first", "repeated"]),
        (([8], [], [1]), ["first", "first", "first"]),
        (([1, 2],), ["first"]),
    ],
    ids=["no_reuse", "root_of_all", "continues", "branches", "same", "cut_short", "empty", "one"],
)
def test_kinds(ids, kinds):
    assert kinds_of(prompts(*ids)) == kinds


def test_a_system_prompt_tells_nothing():
    """All share block 1; only who knows more than that continues anything."""
    requests = prompts([1, 2], [1, 3], [1, 4], [1, 3, 5], [1, 2])
    assert kinds_of(requests) == ["first", "first", "first", "multi_turn", "repeated"]


def test_a_partial_last_block_need_not_be_known_to_continue():
    turn = Request(0, (1, 2, 3), 2 * BLOCK_TOKENS + 1)
    longer = Request(2, (1, 2, 4, 5), 4 * BLOCK_TOKENS)
    assert kinds_of([Request(0, (9,), 4), turn, longer])[-1] == "multi_turn"


def test_it_continues_whoever_touched_its_deepest_known_block_last():
    # The fourth knows all of the second, but the third went on from there: it branches off the third.
    requests = prompts([9], [1, 2], [1, 2, 3, 4], [1, 2, 3, 7])
    assert kinds_of(requests) == ["first", "first", "multi_turn", "shared_prefix"]


@given(workloads())
def test_every_request_is_of_exactly_one_kind(requests):
    assert all(kind in KINDS for kind in kinds_of(requests))


@pytest.mark.parametrize(("tokens", "beyond"), [(LONG_PROMPT_TOKENS, False), (LONG_PROMPT_TOKENS + 1, True)])
def test_long_prompts(tokens, beyond):
    trace = make_trace([Request(0, (1,), tokens)])
    assert LONG_PROMPT_TOKENS == 32_768
    assert request_kinds(profile_reuse(trace)).beyond_32k.tolist() == [beyond]


# --- sessions ----------------------------------------------------------------------------------------


def test_sessions_are_chains_of_prompts_that_continue_one_another():
    found = sessions(
        profile_reuse(make_trace(prompts([1, 2], [8, 9], [1, 2, 3], [8, 9, 5], [1, 2, 3, 4], [7], [8, 9, 5])))
    )
    assert found.number.tolist() == [0, 1, 0, 1, 0, 2, 1]
    assert (found.total, found.named_in_log) == (3, False)


def test_a_branch_is_a_session_of_its_own():
    found = sessions(profile_reuse(make_trace(prompts([9], [1, 2, 3], [1, 2, 7]))))
    assert found.number.tolist() == [0, 1, 2]


def test_sessions_that_the_log_names_are_believed():
    trace = replace(make_trace(prompts([1], [1, 2], [3])), session=np.array([7, 7, 2], np.int32))
    found = sessions(profile_reuse(trace))
    assert (found.number.tolist(), found.total, found.named_in_log) == ([7, 7, 2], 2, True)


def test_open_sessions_by_hand():
    # Session 0 is open in [0, 3] and [10, 13], session 1 in [5, 8]; whole windows lie in [3, 10].
    found = open_sessions(np.array([0, 1, 0]), np.array([0, 5, 10]), 3)
    assert found.mean == pytest.approx((1 + 4) / 7)
    assert found.most == 1


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 40)), min_size=1, max_size=25), st.integers(0, 50)
)
def test_open_sessions_at_every_millisecond(visits, window_ms):
    visits.sort(key=lambda visit: visit[1])
    number, when = (np.array(column) for column in zip(*visits, strict=True))
    found = open_sessions(number, when, window_ms)
    start, end = visits[0][1], visits[-1][1]

    def open_at(now):
        return len({session for session, ms in visits if now - window_ms <= ms <= now})

    assert found.most == max(open_at(now) for now in range(start, end + 1))
    first = start + window_ms if end - start >= window_ms else start
    counts = [open_at(now) for now in range(first, end)] or [open_at(end)]
    assert found.mean == pytest.approx(np.mean(counts))
