"""Which node a request goes to decides what it can hit there."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from warmset.evaluation import Routing, TierBudget
from warmset.reuse import ReuseProfile, profile_reuse
from warmset.tiers.stack import stack_capacities

Int64s = npt.NDArray[np.int64]


def hit_tokens_by_tier(
    profile: ReuseProfile, budgets: Sequence[TierBudget], num_nodes: int, routing: Routing
) -> Int64s:
    """Hit tokens of every request in every tier. Shapes: requests x tiers.

    `prefix`: the router sends a prompt to the node that holds its prefix, so all nodes work as one pool.
    `round_robin`: the router does not look, so a node's own tiers know only every n-th request; a remote pool
    is one for all nodes and serves what it holds itself. The engines of a node share what the node holds.
    """
    if routing == "prefix" or num_nodes == 1:
        return stack_capacities(budgets, num_nodes).hit_tokens_per_request(profile)
    local = [budget for budget in budgets if budget.tier != "remote"]
    tokens = _round_robin(profile, local, num_nodes)
    if len(local) == len(budgets):
        return tokens
    remote = budgets[-1].usable_blocks * num_nodes
    beside = 0 if budgets[-1].inclusive else stack_capacities(local, 1).reach_blocks[-1]
    pooled = profile.hit_tokens_per_request(remote + beside)
    return np.column_stack([tokens, np.maximum(pooled - tokens.sum(axis=1), 0)])


def _round_robin(profile: ReuseProfile, budgets: Sequence[TierBudget], num_nodes: int) -> Int64s:
    trace = profile.trace
    stack = stack_capacities(budgets, 1)
    tokens = np.zeros((trace.num_requests, len(budgets)), dtype=np.int64)
    for node in range(min(num_nodes, trace.num_requests)):
        here = np.arange(node, trace.num_requests, num_nodes)
        tokens[here] = stack.hit_tokens_per_request(profile_reuse(trace.only(here)))
    return tokens
