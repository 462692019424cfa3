"""Single rows of the report and lines of the plan, counted again from the log or other printed numbers."""

import pytest

from tests.support.cases import CHAT
from warmset.evaluation import BASELINES, Evaluation
from warmset.trace import open_trace

TOKEN_BYTES = 2 * 64 * 8 * 128 * 2
"""KV of a token of Qwen3-32B in bf16: 64 layers, 8 KV heads of 128."""
BLOCK_BYTES = 512 * TOKEN_BYTES


def values_of(evaluation: Evaluation, key: str, statistic: str):
    return next(row for row in evaluation.metrics if row.key == key).values[statistic]


def concurrency(evaluation: Evaluation, key: str):
    return next(row.values for row in evaluation.concurrency if row.key == key)


def test_the_load_factor_shortens_time_and_nothing_else(evaluated):
    once, twice = evaluated("chat").traffic, evaluated("twice_as_fast").traffic
    assert twice.span_s == pytest.approx(once.span_s / 2, abs=0.001)
    assert twice.requests_per_s == pytest.approx(once.requests_per_s * 2, rel=1e-3)
    assert (twice.block_refs, twice.unique_blocks) == (once.block_refs, once.unique_blocks)


def test_the_longest_context_ends_at_the_model_or_at_the_pool(evaluated):
    for limit in evaluated("chat").context_limits:
        assert (limit.longest_tokens, limit.limited_by) == (40_960, "model")
    found = evaluated("long_context")
    pool_tokens = found.tier_budgets[0].usable_bytes // TOKEN_BYTES
    for limit in found.context_limits:
        assert (limit.longest_tokens, limit.limited_by) == (pool_tokens, "hbm")


def test_200k_tokens_are_said_to_be_beyond_the_model_where_they_are(evaluated):
    assert concurrency(evaluated("chat"), "at_200k_context").tiered.note == "beyond_model_context"
    assert concurrency(evaluated("long_context"), "at_200k_context").tiered.note == ""


def test_gpu_seconds_saved_are_those_of_every_gpu(evaluated):
    found = evaluated("built_in")
    saved = next(
        gain.value.mid for row in found.metrics for gain in row.gain if gain.key == "gpu_seconds_saved"
    )
    spared = found.utilization.engine.mid - found.utilization.tiered.mid
    requests = found.traffic.num_requests
    span_s = found.traffic.span_s * requests / (requests - 1)
    assert saved == pytest.approx(spared * span_s * found.reference_nodes * 8, rel=1e-3)


def test_tiers_park_what_they_hold_once(evaluation):
    row = next(row for row in evaluation.metrics if row.key == "hbm_per_request")
    boundaries = evaluation.reuse.boundaries
    if not boundaries or not boundaries[-1].capacity_blocks:
        return
    block_bytes = boundaries[-1].capacity_bytes / boundaries[-1].capacity_blocks
    session = evaluation.traffic.unique_blocks * block_bytes / evaluation.capacity.num_sessions
    parked = [row.values["parked_hbm"].tiered.mid, row.values["parked_below"].tiered.mid]
    held = min(boundaries[-1].capacity_blocks / max(evaluation.traffic.unique_blocks, 1), 1)
    assert sum(parked) == pytest.approx(session * held)
    assert row.values["parked_below"].engine.mid == 0


def test_hbm_for_a_hit_rate_that_the_tiers_do_not_reach_is_not_told(evaluated):
    found = evaluated("small_nvme")
    hits = sum(tier.hit_tokens["tiered"] for tier in found.tier_traffic) / found.traffic.input_tokens
    assert hits < found.reuse.unlimited_token_hit_ratio
    assert found.occupancy_curve[0].tiered_hbm_bytes > 0
    for point in found.occupancy_curve:
        assert (point.tiered_hbm_bytes is None) == (point.token_hit_ratio > hits)


def test_the_rise_begins_above_what_all_prompts_share(evaluated):
    """Each prompt is one block that all have and one of fifty in turn, which comes back over 50 others."""
    assert 40 <= evaluated("shared_root").reuse.rise_start_blocks <= 52


def test_chunk_tails_are_what_is_left_of_whole_chunks(evaluated):
    tokens = open_trace("mooncake-conversation", 512).input_tokens.tolist()
    rows = [row for row in evaluated("built_in").capacity.overheads if row.key == "chunk_tail"]
    assert [row.tier for row in rows] == ["dram", "nvme"]
    for row in rows:
        assert row.share_ratio == pytest.approx(sum(count % 256 for count in tokens) / sum(tokens))


def test_logical_bytes_are_shared_out_over_the_windows(evaluated):
    found = evaluated("chat")
    refs = sum(len(row["hash_ids"]) for row in CHAT)
    for row in found.capacity.dedup:
        windows = int(found.traffic.span_s // row.window_s) + 1
        assert row.logical_bytes == refs * BLOCK_BYTES // windows


def test_a_window_past_the_trace_may_need_every_new_prompt_whole(evaluated):
    newest = sorted(CHAT, key=lambda row: row["timestamp"])[len(CHAT) // 2 :]
    refs = sum(len(row["hash_ids"]) for row in newest)
    span_s = (newest[-1]["timestamp"] - newest[0]["timestamp"]) / 1000
    day = next(row for row in evaluated("chat").capacity.ttl_windows if row.ttl_s == 86_400)
    assert day.max_bytes.high == pytest.approx(refs * BLOCK_BYTES / span_s * 86_400)
    assert day.max_bytes.mid < day.max_bytes.high


def test_tiers_that_save_nothing_are_recommended_away(evaluated):
    rows = evaluated("no_reuse").capacity.recommended
    assert {row.tier: row.recommended_bytes for row in rows} == {"dram": 0, "nvme": 0}


def test_the_pool_bounds_concurrency_alike_under_every_baseline(evaluated):
    found = evaluated("long_context")
    row = concurrency(found, "at_200k_context")
    assert row.none.mid == found.tier_budgets[0].usable_bytes // TOKEN_BYTES // 200_000
    assert {values_of(found, "max_concurrency", "per_node").of(each).mid for each in BASELINES} == {
        values_of(found, "max_concurrency", "per_node").engine.mid
    }
