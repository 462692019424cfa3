"""The one-pass profile and everything read from it, against slow caches on plain lists."""

from collections import Counter
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.list_lru import (
    Request,
    blocks_of,
    hit_blocks,
    hit_tokens,
    in_order,
    present_blocks,
    resident_counts,
    window_counts,
)
from tests.support.traces import BLOCK_TOKENS, make_trace, with_prefix_ids, workloads
from warmset.reuse import (
    Hits,
    ReuseProfile,
    capacity_curve,
    profile_reuse,
    resident_blocks,
    window_blocks,
)
from warmset.reuse.kinds import open_sessions, request_kinds

ttls_ms = st.integers(0, 35)


def profile_of(requests: list[Request], measure_from: float = 0.0) -> ReuseProfile:
    return profile_reuse(make_trace(requests), measure_from)


def every_capacity(profile: ReuseProfile) -> range:
    """From nothing to beyond the whole forest."""
    return range(profile.trace.num_nodes + 3)


def expected(requests: list[Request], hits: list[int], first_measured: int = 0) -> Hits:
    tokens = hit_tokens(requests, hits, BLOCK_TOKENS)
    return Hits(sum(hits[first_measured:]), sum(tokens[first_measured:]))


@given(workloads())
def test_hits_at_every_capacity(requests):
    profile = profile_of(requests)
    for capacity in every_capacity(profile):
        hits = hit_blocks(requests, capacity)
        assert profile.hits(capacity) == expected(requests, hits), capacity
        assert profile.hit_blocks_per_request(capacity).tolist() == hits
        assert profile.hit_tokens_per_request(capacity).tolist() == hit_tokens(requests, hits, BLOCK_TOKENS)
    assert profile.unlimited == profile.hits() == expected(requests, hit_blocks(requests))


@given(workloads())
def test_hits_at_every_time_to_live(requests):
    profile = profile_of(requests)
    for ttl_ms in range(32):
        assert profile.hits(ttl_ms=ttl_ms) == expected(requests, hit_blocks(requests, ttl_ms=ttl_ms)), ttl_ms


@given(workloads(), ttls_ms)
def test_hits_with_both_limits_are_those_of_a_cache_that_drops_expired_blocks_at_once(requests, ttl_ms):
    profile = profile_of(requests)
    for capacity in every_capacity(profile):
        hits = hit_blocks(requests, capacity, ttl_ms)
        assert profile.hits(capacity, ttl_ms) == expected(requests, hits), capacity


@given(workloads(), st.sampled_from([0.0, 0.3, 0.5, 0.99, 1.0]))
def test_warm_up_counts_for_the_cache_and_not_for_the_totals(requests, measure_from):
    profile = profile_of(requests, measure_from)
    first = int(len(requests) * measure_from)
    assert profile.measured_tokens == sum(request.input_tokens for request in in_order(requests)[first:])
    curve = capacity_curve(profile)
    for capacity in every_capacity(profile):
        hits = expected(requests, hit_blocks(requests, capacity), first)
        assert profile.hits(capacity) == curve.at(capacity) == hits, capacity


@given(workloads(), st.sampled_from([0.0, 0.5]))
def test_curve_is_the_profile_at_every_capacity(requests, measure_from):
    profile = profile_of(requests, measure_from)
    curve = capacity_curve(profile)
    for capacity in (*every_capacity(profile), curve.most_blocks, curve.most_blocks + 1, 10**12):
        assert curve.at(capacity) == profile.hits(capacity), capacity
    assert curve.at(curve.most_blocks) == profile.unlimited
    if curve.most_blocks:
        assert curve.at(curve.most_blocks - 1).blocks < profile.unlimited.blocks
    assert curve.measured_tokens == profile.measured_tokens


@given(workloads())
def test_curve_never_falls(requests):
    profile = profile_of(requests)
    curve = capacity_curve(profile)
    assert curve.at(0) == Hits(0, 0)
    assert np.all(np.diff(curve.hit_blocks) >= 0)
    assert np.all(np.diff(curve.hit_tokens) >= 0)


@given(workloads(), st.one_of(st.none(), st.integers(0, 20)))
def test_hits_never_fall_with_time_to_live(requests, capacity):
    profile = profile_of(requests)
    by_ttl = [profile.hits(capacity, ttl_ms) for ttl_ms in range(32)]
    assert all(low.blocks <= high.blocks and low.tokens <= high.tokens for low, high in pairwise(by_ttl))
    assert by_ttl[-1] == profile.hits(capacity)


@given(workloads(), st.integers(0, 20))
def test_what_tails_first_lru_holds_of_a_prompt_is_a_prefix_of_it(requests, capacity):
    profile = profile_of(requests)
    present = present_blocks(requests, capacity)
    assert profile.hit_blocks_per_request(capacity).tolist() == [sum(blocks) for blocks in present]
    assert all(blocks == sorted(blocks, reverse=True) for blocks in present)


@given(workloads())
def test_capacity_for_tokens_inverts_the_curve(requests):
    curve = capacity_curve(profile_of(requests))
    most = int(curve.hit_tokens[-1])
    for tokens in range(most + 1):
        capacity = curve.capacity_for_tokens(tokens)
        assert curve.at(capacity).tokens >= tokens
        assert capacity == 0 or curve.at(capacity - 1).tokens < tokens
    assert curve.capacity_for_tokens(most + 1) is None


@given(workloads())
def test_runs_cover_every_reused_block_once(requests):
    profile = profile_of(requests)
    reused = [
        (request, depth)
        for request, first, length in zip(profile.request, profile.depth, profile.length, strict=True)
        for depth in range(first, first + length)
    ]
    unlimited = hit_blocks(requests)
    assert sorted(reused) == [(r, depth + 1) for r, hits in enumerate(unlimited) for depth in range(hits)]
    assert np.all(profile.owner < profile.request)
    assert np.all(profile.distance >= profile.depth)
    assert np.all(profile.length > 0)


@given(workloads())
def test_prefix_ids_and_content_ids_give_one_profile(requests):
    by_content, by_prefix = profile_of(requests), profile_of(with_prefix_ids(requests))
    for name in ("request", "owner", "depth", "length", "distance", "age_ms"):
        assert getattr(by_content, name).tolist() == getattr(by_prefix, name).tolist(), name


@given(workloads(), st.integers(1, 40))
def test_window_blocks(requests, window_ms):
    counts = window_counts(requests, window_ms)
    window = window_blocks(profile_of(requests), window_ms)
    assert window == (sum(counts) / len(counts), max(counts), len(counts))


@given(workloads(), ttls_ms)
def test_resident_blocks(requests, ttl_ms):
    """The mean is over the milliseconds in which a whole window lies inside the trace."""
    counts = resident_counts(requests, ttl_ms)
    start, end = min(counts), max(counts)
    fits = end - start >= ttl_ms
    first = start + ttl_ms if fits else start
    inside = [counts[now] for now in range(first, end)] or [counts[end]]
    resident = resident_blocks(profile_of(requests), ttl_ms)
    assert resident.max_blocks == max(counts.values())
    assert resident.window_fits_trace == fits
    assert np.isclose(resident.mean_blocks, sum(inside) / len(inside), rtol=1e-12)


@given(workloads())
def test_blocks_touched_again(requests):
    touches = Counter(block for request in requests for block in blocks_of(request))
    assert profile_of(requests).blocks_touched_again() == sum(count > 1 for count in touches.values())


@given(workloads(), st.data())
def test_some_of_the_requests_are_profiled_as_if_there_were_no_others(requests, data):
    ordered = in_order(requests)
    kept = sorted(data.draw(st.sets(st.integers(0, len(ordered) - 1), min_size=1)))
    profile = profile_reuse(make_trace(requests).only(np.array(kept)))
    alone = profile_of([ordered[request] for request in kept])
    for name in ("request", "owner", "depth", "length", "distance", "age_ms"):
        assert getattr(profile, name).tolist() == getattr(alone, name).tolist(), name
    assert profile.measured_tokens == alone.measured_tokens
    assert profile.unlimited == alone.unlimited


@given(workloads())
def test_every_request_is_of_one_kind(requests):
    kinds = request_kinds(profile_of(requests))
    assert np.all(np.sum([kinds.first, kinds.multi_turn, kinds.shared_prefix, kinds.repeated], axis=0) == 1)
    assert kinds.first[0]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), min_size=1, max_size=12), st.integers(0, 45)
)
def test_open_sessions(touches, window_ms):
    number, arrival_ms = np.array(sorted(touches, key=lambda touch: touch[1])).T
    start, end = int(arrival_ms.min()), int(arrival_ms.max())
    counts = {
        now: len({session for session, ms in touches if now - window_ms <= ms <= now})
        for now in range(start, end + 1)
    }
    first = start + window_ms if end - start >= window_ms else start
    inside = [counts[now] for now in range(first, end)] or [counts[end]]
    opened = open_sessions(number, arrival_ms, window_ms)
    assert opened.most == max(counts.values())
    assert np.isclose(opened.mean, sum(inside) / len(inside), rtol=1e-12)


@given(workloads(), ttls_ms)
def test_pool_of_the_most_resident_blocks_never_evicts_before_the_time_to_live(requests, ttl_ms):
    profile = profile_of(requests)
    capacity = resident_blocks(profile, ttl_ms).max_blocks
    assert profile.hits(capacity, ttl_ms) == profile.hits(ttl_ms=ttl_ms)
