"""Public traces as imported: counts, lengths and times against the notes on them.

Source: ../shared/research/trace-facts.md section 3 and ../shared/traces/ground_truth.json, both computed by
an independent C simulator and checked against separately written Python. Lengths are in whole tokens there.
"""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tests.support.row_logs import findings, is_matched_by, read_log, refusal
from warmset.trace import Trace


class Facts(NamedTuple):
    """One column of the table, or one line below it."""

    requests: int
    span_s: float
    input_mean: int
    input_quantiles: tuple[int, int, int, int]
    output_mean: int
    output_quantiles: tuple[int, int, int, int]


class Blocks(NamedTuple):
    """Block size, references to blocks, and distinct ones."""

    size: int
    refs: int
    distinct: int


AZURE = {
    "AzureLLMInferenceTrace_conv.csv.gz": Facts(
        19_366, 3502, 1155, (1020, 2735, 4142, 14_050), 211, (129, 424, 601, 1000)
    ),
    "AzureLLMInferenceTrace_code.csv.gz": Facts(
        8819, 3436, 2048, (1469, 5188, 7436, 7437), 28, (13, 55, 251, 1899)
    ),
}
MOST_IN_1_S = {"AzureLLMInferenceTrace_conv.csv.gz": 16, "AzureLLMInferenceTrace_code.csv.gz": 67}
# File, block size, references to blocks, distinct blocks, lengths, and what is odd.
WITH_IDS = {
    "mooncake/conversation_trace.jsonl.gz": (
        Blocks(512, 288_500, 182_790),
        Facts(12_031, 3537, 12_035, (6909, 27_367, 85_400, 126_195), 343, (350, 597, 1119, 2000)),
        {},
    ),
    "mooncake/synthetic_trace.jsonl.gz": (
        Blocks(512, 121_877, 43_924),
        Facts(3993, 1022, 15_325, (11_587, 38_611, 66_456, 191_378), 149, (69, 389, 768, 893)),
        {},
    ),
    "lmcache-agent/magagent.blocks16.jsonl.gz": (
        Blocks(16, 93_173, 14_705),
        Facts(746, 6449, 1992, (1044, 9083, 10_265, 10_807), 586, (332, 480, 10_000, 10_000)),
        {"empty_prompts": 53},
    ),
    "lmcache-agent/miniswe.blocks16.jsonl.gz": (
        Blocks(16, 155_193, 10_382),
        Facts(402, 552, 6169, (3890, 12_330, 39_429, 46_594), 110, (95, 177, 291, 348)),
        {},
    ),
    "lmcache-agent/taubench.blocks16.jsonl.gz": (
        Blocks(16, 5078, 819),
        Facts(471, 181, 165, (102, 407, 772, 1200), 22, (0, 56, 195, 413)),
        {"no_output": 283},
    ),
}
SESSIONS = {"magagent": 25, "miniswe": 20, "taubench": 24}
IN_GROUND_TRUTH = ("mooncake_conversation", "mooncake_synthetic", "lmcache_miniswe")


def check_facts(trace: Trace, facts: Facts) -> None:
    """Means to the token; quantiles too, where two ways to take a quantile differ by less."""
    assert trace.num_requests == facts.requests
    assert trace.span_ms / 1000 == pytest.approx(facts.span_s, abs=0.5)
    for tokens, mean, quantiles in (
        (trace.input_tokens, facts.input_mean, facts.input_quantiles),
        (trace.output_tokens, facts.output_mean, facts.output_quantiles),
    ):
        assert tokens.mean() == pytest.approx(mean, abs=0.5)
        assert np.percentile(tokens, [50, 90, 99, 100]) == pytest.approx(quantiles, abs=1)


@pytest.mark.parametrize("name", AZURE)
def test_azure_2023(shared: Path, name):
    path = shared / "traces/azure-2023" / name
    assert is_matched_by(path) == ["azure"]
    trace = read_log("azure", path)
    check_facts(trace, AZURE[name])
    per_second = np.bincount(trace.arrival_ms // 1000)
    assert per_second.max() == MOST_IN_1_S[name]
    assert not trace.has_blocks
    assert trace.findings == ()


@pytest.mark.parametrize("name", WITH_IDS)
def test_traces_with_ids(shared: Path, name):
    blocks, facts, odd = WITH_IDS[name]
    path = shared / "traces" / name
    assert is_matched_by(path) == ["mooncake"]
    trace = read_log("mooncake", path, block_tokens=blocks.size)
    check_facts(trace, facts)
    assert (trace.block_refs, trace.num_nodes) == (blocks.refs, blocks.distinct)
    assert {code: count for code, (count, _) in findings(trace).items()} == odd
    assert trace.provenance.assumptions == ()


@pytest.mark.parametrize("name", IN_GROUND_TRUTH)
def test_ground_truth(shared: Path, name):
    """With prefix ids and no limit, every reference to a block but the first is a hit."""
    truth = json.loads((shared / "traces/ground_truth.json").read_text(encoding="utf-8"))["traces"][name]
    trace = read_log("mooncake", shared / "traces" / truth["file"], block_tokens=truth["block_tokens"])
    assert trace.num_requests == truth["requests"]
    assert trace.input_tokens.sum() == truth["input_tokens"]
    assert trace.block_refs == truth["block_refs"]
    assert trace.num_nodes == truth["unique_blocks"]
    assert trace.block_refs - trace.num_nodes == truth["hits"]["unlimited"]["hit_blocks"]


@pytest.mark.parametrize("name", SESSIONS)
def test_sessions_and_turns(shared: Path, name):
    """`turn` counts from 1 without a gap: all requests but the first of a session go on from another."""
    path = shared / "traces/lmcache-agent" / f"{name}.blocks16.jsonl.gz"
    trace = read_log("mooncake", path, block_tokens=16)
    assert np.unique(trace.session).size == SESSIONS[name]
    goes_on = trace.previous >= 0
    assert np.count_nonzero(goes_on) == trace.num_requests - SESSIONS[name]
    assert np.array_equal(trace.session[goes_on], trace.session[trace.previous[goes_on]])


@pytest.mark.parametrize("name", SESSIONS)
def test_the_default_block_size_is_refused_for_smaller_blocks(shared: Path, name):
    path = shared / "traces/lmcache-agent" / f"{name}.blocks16.jsonl.gz"
    assert refusal("mooncake", path).endswith("try --block-tokens 16")
