"""Tiers on one curve: how deep each reaches, and who serves a hit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.list_lru import hit_blocks, hit_tokens
from tests.support.traces import BLOCK_TOKENS, make_trace, prompts, workloads
from warmset.evaluation import TierBudget
from warmset.reuse import profile_reuse
from warmset.tiers import hit_tokens_by_tier, stack_capacities

NAMES = ("hbm", "dram", "nvme", "remote")


def budget(tier, blocks, *, inclusive=True):
    return TierBudget(
        tier=tier, lines=(), usable_bytes=blocks, bytes_per_block=1, usable_blocks=blocks, inclusive=inclusive
    )


def tiers(*blocks, inclusive=True):
    return [budget(name, size, inclusive=inclusive) for name, size in zip(NAMES, blocks, strict=False)]


@pytest.mark.parametrize(
    ("blocks", "nodes", "inclusive", "exclusive"),
    [
        ((4, 10, 100), 1, (4, 10, 100), (4, 14, 114)),
        ((4, 3, 100), 1, (4, 4, 100), (4, 7, 107)),
        ((4, 3, 2), 1, (4, 4, 4), (4, 7, 9)),
        ((4, 0, 5), 1, (4, 4, 5), (4, 4, 9)),
        ((4, 10), 6, (24, 60), (24, 84)),
        ((4,), 3, (12,), (12,)),
    ],
    ids=["growing", "dram_below_hbm", "shrinking", "empty_tier", "nodes", "hbm_alone"],
)
def test_reach(blocks, nodes, inclusive, exclusive):
    assert stack_capacities(tiers(*blocks), nodes).reach_blocks == inclusive
    assert stack_capacities(tiers(*blocks, inclusive=False), nodes).reach_blocks == exclusive
    assert stack_capacities(tiers(*blocks), nodes).tiers == NAMES[: len(blocks)]


def test_hits_by_tier_by_hand():
    # The third prompt comes back over two others: its head at distance 4, its tail at 5.
    profile = profile_reuse(make_trace(prompts([1, 2], [8], [9], [1, 2])))
    found = stack_capacities(tiers(3, 4, 5), 1).hit_tokens_per_request(profile)
    assert profile.distance.tolist() == [3]
    assert found[3].tolist() == [BLOCK_TOKENS, BLOCK_TOKENS, 0]
    assert not found[:3].any()


def test_a_dram_smaller_than_hbm_serves_nothing():
    profile = profile_reuse(make_trace(prompts([1, 2], [8], [9], [1, 2])))
    found = stack_capacities(tiers(3, 2), 1).hit_tokens_per_request(profile)
    assert found[3].tolist() == [BLOCK_TOKENS, 0]
    exclusive = stack_capacities(tiers(3, 2, inclusive=False), 1).hit_tokens_per_request(profile)
    assert exclusive[3].tolist() == [BLOCK_TOKENS, BLOCK_TOKENS]


sizes = st.lists(st.integers(0, 12), min_size=1, max_size=4)


@given(workloads(), sizes, st.booleans(), st.integers(1, 3))
def test_tiers_share_the_hits_of_the_deepest_reach(requests, blocks, inclusive, nodes):
    trace = make_trace(requests)
    profile = profile_reuse(trace)
    stack = stack_capacities(tiers(*blocks, inclusive=inclusive), nodes)
    found = stack.hit_tokens_per_request(profile)
    assert (found >= 0).all()
    for position, reach in enumerate(stack.reach_blocks):
        expected = hit_tokens(requests, hit_blocks(requests, reach), BLOCK_TOKENS)
        assert found[:, : position + 1].sum(axis=1).tolist() == expected
    computed = trace.input_tokens - found.sum(axis=1)
    assert (computed >= 0).all()
    assert int(found.sum() + computed.sum()) == int(trace.input_tokens.sum())


@given(workloads(), sizes, st.integers(1, 4))
def test_a_blind_router_gives_each_node_its_own_traffic(requests, blocks, nodes):
    ordered = sorted(requests, key=lambda request: request.arrival_ms)
    local = tiers(*blocks[:3])
    found = hit_tokens_by_tier(profile_reuse(make_trace(requests)), local, nodes, "round_robin")
    reach = max(blocks[:3])
    for node in range(nodes):
        mine = ordered[node::nodes]
        if mine:
            expected = hit_tokens(mine, hit_blocks(mine, reach), BLOCK_TOKENS)
            assert found[node::nodes].sum(axis=1).tolist() == expected


@given(workloads(), sizes.filter(lambda blocks: len(blocks) == 4), st.integers(2, 4))
def test_a_remote_pool_is_one_for_all_nodes(requests, blocks, nodes):
    """It serves what it holds itself, to every node; what other nodes hold stays theirs."""
    ordered = sorted(requests, key=lambda request: request.arrival_ms)
    profile = profile_reuse(make_trace(requests))
    found = hit_tokens_by_tier(profile, tiers(*blocks), nodes, "round_robin")
    assert found.shape == (len(requests), 4)
    pooled = hit_tokens(ordered, hit_blocks(ordered, blocks[3] * nodes), BLOCK_TOKENS)
    local = hit_tokens_by_tier(profile, tiers(*blocks[:3]), nodes, "round_robin").sum(axis=1)
    assert found.sum(axis=1).tolist() == np.maximum(local, pooled).tolist()
    assert found[:, :3].sum(axis=1).tolist() == local.tolist()


@given(workloads(), sizes.filter(lambda blocks: len(blocks) == 4), st.integers(2, 4))
def test_an_exclusive_remote_pool_adds_what_one_node_holds_above_it(requests, blocks, nodes):
    ordered = sorted(requests, key=lambda request: request.arrival_ms)
    profile = profile_reuse(make_trace(requests))
    local = hit_tokens_by_tier(profile, tiers(*blocks[:3], inclusive=False), nodes, "round_robin").sum(axis=1)
    reach = blocks[3] * nodes + sum(blocks[:3])
    pooled = hit_tokens(ordered, hit_blocks(ordered, reach), BLOCK_TOKENS)
    found = hit_tokens_by_tier(profile, tiers(*blocks, inclusive=False), nodes, "round_robin")
    assert found.sum(axis=1).tolist() == np.maximum(local, pooled).tolist()
