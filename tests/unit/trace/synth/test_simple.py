"""Chat, long documents, retrieval and one-shot: hits counted by hand."""

from functools import cache

import numpy as np
import pytest

from warmset.reuse import profile_reuse
from warmset.trace.synth import GENERATORS, Limits, configured


def generated(name, preset="default", *, block_tokens=16, seed=1, limits=None, **settings):
    generator = configured(GENERATORS[name], preset, {key: str(value) for key, value in settings.items()})
    return generator.generate(np.random.default_rng(seed), limits, block_tokens, preset)


TINY_CHAT = {
    "num_users": 2,
    "num_rounds": 2,
    "system_tokens": 8,
    "history_tokens": 8,
    "question_p50_tokens": 4,
    "answer_p50_tokens": 4,
}


def test_tiny_chat_counted_by_hand():
    # Blocks of 4. Round 1: 8 + 8 + 4 = 20 tokens, 5 blocks; round 2: 20 + 4 + 4 = 28 tokens, 7 blocks.
    # The other user's round 1 has the 2 blocks of the system prompt; each round 2 has all 5 of its round 1.
    trace = generated("chat", block_tokens=4, **TINY_CHAT)
    assert sorted(trace.input_tokens.tolist()) == [20, 20, 28, 28]
    assert profile_reuse(trace).unlimited == (2 + 5 + 5, 4 * (2 + 5 + 5))


def test_blocks_that_straddle_a_shared_and_an_own_part_are_nobody_elses():
    # Blocks of 5: the system prompt's 8 tokens fill one block; the second holds 2 tokens of the user's.
    # Round 1 fills 4 blocks, and round 2 has all of them; the other user has 1.
    trace = generated("chat", block_tokens=5, **TINY_CHAT)
    assert profile_reuse(trace).unlimited == (1 + 4 + 4, 5 * (1 + 4 + 4))


def test_multi_round_qa_lengths_and_hits():
    # Prompt of round r: 1,000 + 20,000 + 20 r + 100 (r - 1). A first round has the 62 full blocks of the
    # system prompt, all but the first; any other round has the full blocks of the round before.
    trace = generated("chat", "multi-round-qa-15x20")
    lengths = [21_000 + 20 * number + 100 * (number - 1) for number in range(1, 21)]
    assert trace.num_requests == 15 * 20
    for session in range(15):
        assert trace.input_tokens[trace.session == session].tolist() == lengths
    expected = 14 * 62 + 15 * sum(length // 16 for length in lengths[:-1])
    assert profile_reuse(trace).unlimited == (expected, 16 * expected)


def test_users_ask_at_the_rate_and_join_one_by_one():
    # 15 users at 0.5 a second: a question every 30 s each; 19 gaps a session, so one joins every 38 s.
    trace = generated("chat", "multi-round-qa-15x20")
    one = trace.arrival_ms[trace.session == 3]
    assert set(np.diff(one).tolist()) == {30_000}
    starts = [trace.arrival_ms[trace.session == session][0] for session in range(15)]
    assert np.diff(starts).tolist() == [38_000] * 14


def test_a_slow_answer_holds_the_next_question_back():
    trace = generated("chat", **TINY_CHAT, requests_per_s=100, decode_tokens_per_s=1)
    follows = trace.previous >= 0
    assert (trace.think_ms[follows] == 0).all()
    assert (trace.duration_ms >= 4000).all()


def test_waves_bring_users_with_a_history_of_their_own():
    trace = generated("chat", block_tokens=4, **TINY_CHAT, num_waves=3)
    assert trace.num_requests == 2 * 2 * 3
    assert profile_reuse(trace).unlimited.blocks == 5 * 2 + 6 * 5


def test_sharegpt_like_means():
    # Kwon et al., SOSP 2023, figure 11: 161 tokens a question, 338 an answer.
    trace = generated("chat", "sharegpt", num_users=2000)
    opening = trace.previous < 0
    assert trace.input_tokens[opening].mean() == pytest.approx(161, rel=0.12)
    assert trace.output_tokens.mean() == pytest.approx(338, rel=0.08)
    assert trace.num_requests / 2000 == pytest.approx(4, rel=0.12)


@cache
def documents(order):
    return profile_reuse(generated("long-document-qa", order=order))


# 8 documents of 20,000 tokens, asked twice: 1,250 blocks of 16 each, and 3 more in all 20,050 tokens.
DOCUMENT_BLOCKS, PROMPT_BLOCKS = 1250, 1253


@pytest.mark.parametrize("order", ["cyclic", "random", "tiled"])
def test_long_documents_are_read_once_where_nothing_is_lost(order):
    profile = documents(order)
    assert profile.trace.block_refs == 16 * PROMPT_BLOCKS
    assert profile.unlimited.blocks == 8 * DOCUMENT_BLOCKS


def test_cyclic_documents_hit_only_where_all_fit():
    profile = documents("cyclic")
    assert profile.hits(7 * PROMPT_BLOCKS).blocks == 0
    assert profile.hits(8 * PROMPT_BLOCKS).blocks == 8 * DOCUMENT_BLOCKS


def test_tiled_documents_hit_where_one_fits():
    assert documents("tiled").hits(PROMPT_BLOCKS).blocks == 8 * DOCUMENT_BLOCKS


def test_repeating_prompts_whole_as_vllm_does():
    profile = profile_reuse(generated("long-document-qa", question_tokens=0))
    assert profile.unlimited.blocks == 8 * DOCUMENT_BLOCKS
    assert profile.trace.num_nodes == 8 * DOCUMENT_BLOCKS


def test_rag_prompts_share_the_system_prompt_and_ranked_chunks():
    settings = {"num_documents": 1, "chunks_per_document": 2, "chunks_per_query": 2, "chunk_tokens": 32}
    lengths = {"system_tokens": 16, "question_p50_tokens": 16, "question_sigma": 0}
    # All prompts are 1 + 2 + 2 + 1 blocks; ranked, both chunks stand in one order, and 5 blocks come again.
    ranked = profile_reuse(generated("rag", limits=Limits(num_requests=50), **settings, **lengths))
    assert ranked.trace.block_refs == 50 * 6
    assert ranked.unlimited.blocks == 49 * 5
    # Shuffled, there are two orders: 1 block of both, 4 of each.
    shuffled = profile_reuse(
        generated("rag", "shuffled", limits=Limits(num_requests=50), **settings, **lengths)
    )
    assert shuffled.trace.num_nodes == 1 + 2 * 4 + 50
    assert shuffled.unlimited.blocks == 50 * 6 - (1 + 2 * 4 + 50)


def test_rag_documents_follow_zipf():
    # One chunk a document and a query, four documents of weights 1, 1/2, 1/3, 1/4: shares 12, 6, 4, 3 of 25.
    trace = generated(
        "rag",
        limits=Limits(num_requests=20_000),
        num_documents=4,
        chunks_per_document=1,
        chunks_per_query=1,
        chunk_tokens=16,
        system_tokens=0,
        zipf_factor=1,
        question_p50_tokens=1,
        question_sigma=0,
    )
    shares = np.sort(np.bincount(trace.leaf))[::-1] / trace.num_requests
    assert shares == pytest.approx(np.array([12, 6, 4, 3]) / 25, abs=0.02)


def test_one_shot_shares_nothing_but_a_system_prompt():
    assert profile_reuse(generated("one-shot")).unlimited.blocks == 0
    shared = generated("one-shot", limits=Limits(num_requests=10), system_tokens=160)
    assert profile_reuse(shared).unlimited.blocks == 9 * 10


@pytest.mark.parametrize(
    ("preset", "rate", "inputs", "outputs"),
    [
        # trace-facts, section 3: Azure 2023, conversations and code
        ("default", 5.53, (1020, 2735), (129, 424)),
        ("azure-2023-code", 2.57, (1469, 5188), (13, 55)),
    ],
)
def test_one_shot_has_azures_lengths(preset, rate, inputs, outputs):
    trace = generated("one-shot", preset, limits=Limits(num_requests=20_000))
    assert np.percentile(trace.input_tokens, (50, 90)) == pytest.approx(inputs, rel=0.06)
    assert np.percentile(trace.output_tokens, (50, 90)) == pytest.approx(outputs, rel=0.06)
    spread = 0.04 if preset == "default" else 0.35  # bursts of a coefficient of variation of 13
    assert trace.num_requests / trace.span_ms * 1000 == pytest.approx(rate, rel=spread)
