"""The real logs with text beside the repository, against facts that were counted apart from our readers."""

import gzip
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support.text_logs import counts, detected, read_log
from tests.support.traces import requests_of
from warmset.trace import ReadOptions, Trace

BLOCK_CHARACTERS = 64
FOUR_CHARACTERS = ReadOptions(block_tokens=16, chars_per_token=4, hash_key=b"key")


@pytest.fixture(scope="module")
def miniswe(shared: Path) -> Path:
    return shared / "traces" / "samples" / "lmcache_agent_text_miniswe.jsonl.gz"


@pytest.fixture(scope="module")
def otel(shared: Path) -> Path:
    return shared / "traces" / "samples" / "otel_genai_prefix_sharing_example.json"


def unpacked(log: Path) -> list[dict[str, Any]]:
    with gzip.open(log) as lines:
        return [json.loads(line) for line in lines]


def prefixes(text: str) -> list[str]:
    """The prefix that ends at each block, the last one maybe within it."""
    return [text[:end] for end in range(BLOCK_CHARACTERS, len(text) + BLOCK_CHARACTERS, BLOCK_CHARACTERS)]


def known_leading_blocks(texts: list[str]) -> list[int]:
    """Of each text: leading blocks that an earlier text starts with."""
    seen: set[str] = set()
    known = []
    for text in texts:
        own = prefixes(text)
        known.append(next((count for count, prefix in enumerate(own) if prefix not in seen), len(own)))
        seen.update(own)
    return known


def known_leading_nodes(trace: Trace) -> list[int]:
    seen: set[int] = set()
    known = []
    for request in requests_of(trace):
        known.append(sum(node in seen for node in request.ids))
        seen.update(request.ids)
    return known


def test_lmcache_agent_log(miniswe: Path):
    rows = unpacked(miniswe)
    rows.sort(key=lambda row: row["timestamp"])
    texts = [row["input"] for row in rows]
    assert detected(miniswe) == ["lmcache_agent"]
    trace = read_log("lmcache_agent", miniswe, options=FOUR_CHARACTERS)
    # shared/traces/README.md: 22 requests, 2 sessions
    assert trace.num_requests == 22
    assert trace.session.tolist() == [0] * 13 + [1] * 9
    assert trace.num_blocks.tolist() == [len(prefixes(text)) for text in texts]
    assert trace.num_nodes == len({prefix for text in texts for prefix in prefixes(text)})
    assert known_leading_nodes(trace) == known_leading_blocks(texts)
    assert sum(known_leading_nodes(trace)) > trace.block_refs / 2
    assert counts(trace) == {}
    assert trace.provenance.assumptions == ("Tokens are counted at 4 characters each, as given.",)


def test_lmcache_agent_times_and_lengths_match_the_published_conversion(miniswe: Path, shared: Path):
    """Sessions 7 and 19 of the folder's conversion with cl100k_base, in ms from the folder's first row."""
    converted = unpacked(shared / "traces" / "lmcache-agent" / "miniswe.blocks16.jsonl.gz")
    trace = read_log("lmcache_agent", miniswe, options=FOUR_CHARACTERS)
    for ours, theirs in ((0, 7), (1, 19)):
        rows = [row for row in converted if row["session_id"] == theirs]
        is_ours = trace.session == ours
        arrival_ms = trace.arrival_ms[is_ours] - trace.arrival_ms[is_ours][0]
        expected_ms = [row["timestamp"] - rows[0]["timestamp"] for row in rows]
        assert max(abs(arrival_ms - expected_ms)) <= 1
        # Four characters a token is within a tenth of what the tokenizer counted.
        tokens = sum(row["input_length"] for row in rows)
        assert abs(trace.input_tokens[is_ours].sum() / tokens - 1) < 0.1


def test_other_keys_give_the_same_trace(miniswe: Path):
    first, second = (
        read_log("lmcache_agent", miniswe, options=replace(FOUR_CHARACTERS, hash_key=key))
        for key in (b"1", b"2")
    )
    assert first.node_parent.tolist() == second.node_parent.tolist()
    assert first.leaf.tolist() == second.leaf.tolist()


def test_otel_spans(otel: Path):
    spans = json.loads(otel.read_text())["spans"]
    assert detected(otel) == ["otel"]
    trace = read_log("otel", otel)
    # Read off the file: four turns of one conversation among three single questions, all on one model.
    assert trace.num_requests == len(spans) == 7
    assert trace.arrival_ms.tolist() == [0, 2000, 4000, 6000, 8000, 10000, 12000]
    assert trace.duration_ms.tolist() == [1000, 1000, 1000, 1500, 1800, 1500, 1000]
    assert trace.input_tokens.tolist() == [50, 45, 100, 180, 270, 380, 40]
    assert trace.output_tokens.tolist() == [20, 15, 50, 60, 70, 55, 10]
    assert trace.session.tolist() == [0, 1, 2, 2, 2, 2, 3]
    assert trace.previous.tolist() == [-1, -1, -1, 2, 3, 4, -1]
    assert trace.model_names == ("gpt-4o",)
    # Each turn starts with the whole of the one before: its full blocks of 8 characters are known.
    texts = [
        "".join(
            f"{message['role']}\n{message['content']}\n"
            for message in json.loads(span["attributes"]["gen_ai.input.messages"])
        )
        for span in spans
    ]
    assert all(later.startswith(text) for text, later in pairwise(texts[2:6]))
    assert known_leading_nodes(trace)[3:6] == [len(text) // 8 for text in texts[2:5]]
