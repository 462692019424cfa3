"""Real traces, to the block and to the token.

The expected numbers come from outside: an independent C simulator (checked against separately written Python)
and KVCache.AI's kvcache-simulator. Those of the trace that ships are in `mooncake_conversation.json` beside
this file; those of the other traces lie in ../shared with the traces.
"""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.oracles.list_lru import hit_blocks, hit_tokens, kvcache_simulator_hit_blocks
from tests.support.traces import read_mooncake, requests_of
from tests.support.weka import WEKA_SAMPLE, read_weka_sessions
from warmset.reuse import CapacityCurve, Hits, ReuseProfile, capacity_curve, profile_reuse, window_blocks
from warmset.trace import Trace, sample_trace

SHIPPED = json.loads(Path(__file__).with_name("mooncake_conversation.json").read_text(encoding="utf-8"))

READERS: dict[str, Callable[[Path], Trace]] = {
    "mooncake_synthetic": lambda shared: read_mooncake(shared / "traces/mooncake/synthetic_trace.jsonl.gz"),
    "weka_sample": lambda shared: read_weka_sessions(shared / WEKA_SAMPLE),
    "lmcache_miniswe": lambda shared: read_mooncake(
        shared / "traces/lmcache-agent/miniswe.blocks16.jsonl.gz", block_tokens=16
    ),
}

# Capacities in blocks at which kvcache-simulator 0.1.3 counts less than there is: it keeps one block too few
# of a prompt longer than the cache. `kvcache_simulator_hit_blocks` does so too.
SIMULATOR_LOSES = {"mooncake_conversation": set(), "mooncake_synthetic": {24, 48}}

# Working sets as published with the traces: window in seconds, mean and most blocks.
WORKING_SETS = [
    ("mooncake_synthetic", 60, 5_395, 7_032),
    ("mooncake_synthetic", 600, 28_212, 36_216),
    ("mooncake_synthetic", 3600, 43_924, 43_924),
    ("weka_sample", 60, 802, 22_858),
    ("weka_sample", 600, 2_665, 47_480),
    ("weka_sample", 3600, 8_603, 104_529),
    ("lmcache_miniswe", 60, 1_281, 3_204),
    ("lmcache_miniswe", 600, 10_382, 10_382),
    ("lmcache_miniswe", 3600, 10_382, 10_382),
]


# Percent of the blocks used once and of the requests that hit more than one block, from the same section.
ONCE_AND_HITTING = {
    "mooncake_conversation": (75.9, 38.7),
    "mooncake_synthetic": (58.5, 43.8),
    "weka_sample": (7.9, 96.4),
    "lmcache_miniswe": (8.7, 95.3),
}


class Case:
    """One trace, its expected numbers and its profile."""

    def __init__(self, name: str, trace: Trace, expected: dict) -> None:
        self.name = name
        self.trace = trace
        self.expected = expected
        self.profile: ReuseProfile = profile_reuse(trace)
        self.curve: CapacityCurve = capacity_curve(self.profile)

    def expect(self, hits: Hits, row: dict) -> None:
        assert hits.blocks == row["hit_blocks"]
        assert round(hits.blocks / self.trace.block_refs, 6) == row["block_hit"]
        assert round(hits.tokens / self.profile.measured_tokens, 6) == row["token_hit"]


@pytest.fixture(scope="module", params=["mooncake_conversation", *READERS])
def case(request) -> Case:
    name = request.param
    if name == "mooncake_conversation":
        return Case(name, sample_trace(), SHIPPED)
    shared = request.getfixturevalue("shared")
    truth = json.loads((shared / "traces/ground_truth.json").read_text(encoding="utf-8"))["traces"][name]
    truth["working_set"] = {
        str(window_s): {"mean_blocks": mean, "max_blocks": most}
        for trace, window_s, mean, most in WORKING_SETS
        if trace == name
    }
    if name == "mooncake_synthetic":
        points = json.loads((shared / "traces/kvcache_simulator_points.json").read_text(encoding="utf-8"))
        simulated = points["traces"][name]
        truth["kvcache_simulator"] = {
            "measure_from": 0.5,
            "measured_tokens": simulated["measured_tokens"],
            "ceiling_hit_tokens": simulated["ceiling_hit_tokens"],
            "lru_hit_tokens": {point["capacity_blocks"]: point["lru"] for point in simulated["points"]},
        }
    return Case(name, READERS[name](shared), truth)


def test_totals(case):
    trace, expected = case.trace, case.expected
    assert trace.block_tokens == expected["block_tokens"]
    assert trace.num_requests == expected["requests"]
    assert trace.block_refs == expected["block_refs"]
    assert trace.num_nodes == expected["unique_blocks"]
    assert trace.input_tokens.sum() == case.profile.measured_tokens == expected["input_tokens"]
    # One request of the WEKA sample has no output, which trace-facts.md counts too (section 6, 12).
    noted = {finding.code: finding.count for finding in trace.findings}
    assert noted == ({"no_output": 1} if case.name == "weka_sample" else {})


def test_unlimited(case):
    case.expect(case.profile.unlimited, case.expected["hits"]["unlimited"])
    case.expect(case.curve.at(case.trace.num_nodes), case.expected["hits"]["unlimited"])


def test_tails_first_lru_at_every_capacity(case):
    rows = case.expected["hits"]["LRUrev"]
    assert len(rows) >= 4
    for capacity, row in rows.items():
        case.expect(case.profile.hits(int(capacity)), row)
        case.expect(case.curve.at(int(capacity)), row)


def test_sliding_time_to_live(case):
    rows = case.expected["hits"]["TTLslide"]
    assert len(rows) == 12
    for ttl_s, row in rows.items():
        case.expect(case.profile.hits(ttl_ms=1000 * int(ttl_s)), row)


def test_working_set_of_consecutive_windows(case):
    rows = case.expected["working_set"]
    assert len(rows) == 3
    for window_s, row in rows.items():
        window = window_blocks(case.profile, 1000 * int(window_s))
        assert window.max_blocks == row["max_blocks"]
        # The notes round the means to whole blocks, some of them up.
        assert abs(window.mean_blocks - row["mean_blocks"]) < 1


def test_blocks_used_once_and_requests_that_hit(case):
    once, hitting = ONCE_AND_HITTING[case.name]
    used_once = 1 - case.profile.blocks_touched_again() / case.trace.num_nodes
    hits_more_than_one = np.mean(case.profile.hit_blocks_per_request() > 1)
    assert abs(100 * used_once - once) < 0.1  # the notes round up to a tenth: 75.85 is 75.9
    assert abs(100 * hits_more_than_one - hitting) < 0.1


@pytest.mark.parametrize("case", SIMULATOR_LOSES, indirect=True)
def test_kvcache_simulator_hits_the_same_tokens(case):
    simulated = case.expected["kvcache_simulator"]
    profile = profile_reuse(case.trace, simulated["measure_from"])
    curve = capacity_curve(profile)
    assert profile.measured_tokens == simulated["measured_tokens"]
    assert profile.unlimited.tokens == simulated["ceiling_hit_tokens"]
    assert len(simulated["lru_hit_tokens"]) >= 11
    for capacity, tokens in simulated["lru_hit_tokens"].items():
        counted = profile.hits(int(capacity)).tokens
        assert counted == curve.at(int(capacity)).tokens
        assert counted > tokens if int(capacity) in SIMULATOR_LOSES[case.name] else counted == tokens, (
            capacity
        )


@pytest.mark.parametrize(("capacity", "simulated_tokens"), [(24, 116_736), (48, 204_800)])
def test_where_kvcache_simulator_counts_less_the_slow_caches_say_why(shared, capacity, simulated_tokens):
    trace = READERS["mooncake_synthetic"](shared)
    requests, half = requests_of(trace), trace.num_requests // 2

    def measured_tokens(hits: list[int]) -> int:
        return sum(hit_tokens(requests, hits, trace.block_tokens)[half:])

    assert measured_tokens(kvcache_simulator_hit_blocks(requests, capacity)) == simulated_tokens
    expected = measured_tokens(hit_blocks(requests, capacity))
    assert profile_reuse(trace, measure_from=0.5).hits(capacity).tokens == expected


def test_curve_is_the_profile(case):
    most = case.curve.most_blocks
    for capacity in (0, 1, 2, most // 100, most // 10, most // 2, most - 1, most, most + 1, 10**9):
        assert case.curve.at(capacity) == case.profile.hits(capacity)
