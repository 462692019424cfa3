"""Distances, ages and hits on prompts small enough to follow by hand."""

import random

import pytest

from tests.oracles.list_lru import Request, hit_blocks
from tests.support.traces import BLOCK_TOKENS, make_trace, prompts
from warmset.reuse import Hits, ReuseProfile, profile_reuse


def profile_of(*ids: list[int]) -> ReuseProfile:
    return profile_reuse(make_trace(prompts(*ids)))


def runs(profile: ReuseProfile) -> list[tuple[int, ...]]:
    """(request, owner, first depth, length, distance of the first) of every run."""
    columns = (profile.request, profile.owner, profile.depth, profile.length, profile.distance)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_a_prompt_asked_again_needs_room_for_itself():
    profile = profile_of([1, 2, 3], [1, 2, 3])
    assert runs(profile) == [(1, 0, 1, 3, 1)]
    assert [profile.hits(capacity).blocks for capacity in range(5)] == [0, 1, 2, 3, 3]


def test_another_prompt_in_between_adds_its_blocks():
    profile = profile_of([1, 2, 3], [8, 9], [1, 2])
    assert runs(profile) == [(2, 0, 1, 2, 3)]
    assert [profile.hits(capacity).blocks for capacity in range(6)] == [0, 0, 0, 1, 2, 2]


def test_a_path_falls_into_one_run_for_each_owner_tail_first():
    # Request 1 took the first block over from request 0, which keeps the two below.
    profile = profile_of([1, 2, 3], [1, 7], [1, 2, 3])
    assert runs(profile) == [(1, 0, 1, 1, 1), (2, 0, 2, 2, 3), (2, 1, 1, 1, 1)]


def test_the_next_turn_of_a_conversation_finds_the_whole_last_one():
    profile = profile_of([1, 2], [1, 2, 3, 4], [1, 2, 3, 4, 5])
    assert profile.hit_blocks_per_request().tolist() == [0, 2, 4]
    assert profile.hit_blocks_per_request(3).tolist() == [0, 2, 3]


def test_a_prompt_longer_than_the_cache_leaves_its_first_blocks():
    profile = profile_of([1, 2, 3, 4, 5], [1, 2, 3, 4, 5])
    assert profile.hits(2) == Hits(2, 2 * BLOCK_TOKENS)


def test_age_is_the_time_since_the_last_touch():
    requests = [Request(0, (1, 2), 8), Request(10, (1,), 4), Request(25, (1, 2), 8)]
    profile = profile_reuse(make_trace(requests))
    assert profile.age_ms.tolist() == [10, 25, 15]
    assert [profile.hits(ttl_ms=ttl).blocks for ttl in (9, 10, 14, 15, 24, 25)] == [0, 1, 1, 2, 2, 3]


def test_requests_at_the_same_moment_hit_one_another_at_any_time_to_live():
    requests = [Request(5, (1, 2), 8), Request(5, (1, 2), 8)]
    assert profile_reuse(make_trace(requests)).hits(ttl_ms=0) == Hits(2, 8)


@pytest.mark.parametrize(
    ("input_tokens", "tokens"),
    [(12, 12), (9, 9), (8, 8), (3, 3), (0, 0), (100, 12)],
    ids=["full", "partial", "two_blocks_of_three_ids", "less_than_a_block", "empty", "more_than_the_ids"],
)
def test_hit_tokens_are_those_of_the_input(input_tokens, tokens):
    requests = [Request(0, (1, 2, 3), input_tokens), Request(1, (1, 2, 3), input_tokens)]
    assert profile_reuse(make_trace(requests)).unlimited == Hits(3, tokens)


def test_warm_up_requests_fill_the_cache_and_do_not_count():
    trace = make_trace(prompts([1, 2], [1, 2], [1, 2, 3], [1, 2, 3]))
    profile = profile_reuse(trace, measure_from=0.5)
    assert profile.first_measured == 2
    assert profile.measured_tokens == 24
    assert profile.unlimited == Hits(5, 20)
    assert profile.hit_blocks_per_request().tolist() == [0, 2, 2, 3]


@pytest.mark.parametrize("capacity", [0, -1, -100])
def test_no_room_no_hits(capacity):
    assert profile_of([1], [1]).hits(capacity) == Hits(0, 0)


@pytest.mark.parametrize("ids", [([],), ([], []), ([1, 2],), ([1], [2])])
def test_nothing_reused(ids):
    profile = profile_of(*ids)
    assert runs(profile) == []
    assert profile.unlimited == Hits(0, 0)
    assert profile.hit_tokens_per_request(5).tolist() == [0] * len(ids)


def test_more_runs_than_the_first_guess():
    """Random walks down a binary tree meet a new owner at every other turn: about 4.5 runs a request."""
    rng = random.Random(5)
    walks = [tuple(rng.randrange(2) for _ in range(9)) for _ in range(3000)]
    requests = [Request(ms, walk, 9 * BLOCK_TOKENS) for ms, walk in enumerate(walks)]
    profile = profile_reuse(make_trace(requests))
    assert profile.request.size > 4 * len(requests) + 16
    for capacity in (3, 40, 300):
        assert profile.hit_blocks_per_request(capacity).tolist() == hit_blocks(requests, capacity)
