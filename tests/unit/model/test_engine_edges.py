"""Engine rules where one block, slot or byte more or less shows."""

from fractions import Fraction

import pytest

from tests.support.sglang_models import HYBRID, pools
from tests.support.vllm_models import HEADS, layer, model, pool_of
from warmset.errors import InfeasibleError
from warmset.model.engines.sglang import sglang_budget_bytes
from warmset.model.spec import Cache, CompressedEntry, IndexKey, KvHeads, Layer, Mixer

GIB = 2**30


def test_a_budget_that_no_share_of_the_card_reaches():
    for weights in (80 * GIB, 100 * GIB, 300 * GIB):
        with pytest.raises(InfeasibleError, match="split the model over more GPUs"):
            sglang_budget_bytes(80 * GIB, Fraction(9, 10), weights)
    assert sglang_budget_bytes(80 * GIB, Fraction(1), 80 * GIB - 1) == 1


@pytest.mark.parametrize(
    ("num_drafts", "num_slots"),
    [
        # 190 slots of memory, 9/19 of it for states: 90. One slot is for padding, 89 are left.
        (0, 89),
        # Each of 5 drafts keeps a state of every running request, which holds 5 slots: 2 slots of memory a
        # slot; the padding request has its 5 drafts too: (90 - 6) / 2.
        (5, 42),
        # (90 - 11) / 3 = 26.3
        (10, 26),
    ],
)
def test_states_and_their_drafts_share_a_budget(num_drafts, num_slots):
    # SGLang 0.5.23 kv_cache_configurator.py, "Solve jointly"; 3 layers of 32 heads.
    slot_bytes = 3 * 32 * (3 * 64 * 2 + 64 * 128 * 4)
    answer = pools(HYBRID, available_bytes=190 * slot_bytes, num_draft_tokens=num_drafts)
    assert answer.state_pool is not None
    assert (answer.state_pool.slot_bytes, answer.state_pool.num_slots) == (slot_bytes, num_slots)


@pytest.mark.parametrize(
    ("window", "num_drafts", "num_blocks"),
    [
        # window - 1, then 2 x 8 tokens in flight, in blocks of 16, and one for the start of the window
        (17, 1, 2 + 1),
        (18, 1, 3 + 1),
        # one token more for each draft but the first
        (16, 2, 2 + 1),
        (17, 2, 3 + 1),
        (15, 3, 2 + 1),
        (16, 3, 3 + 1),
    ],
)
def test_drafts_of_several_modules_look_back_one_token_further_each(window, num_drafts, num_blocks):
    # vLLM 0.33.0 single_type_kv_cache_manager.py: draft layers depend on num_speculative_tokens - 1 more.
    windows = layer(HEADS, reach="sliding", span=window)
    pool = pool_of(model(windows, mtp=(windows,) * 3), batched_tokens=8, num_speculative_tokens=num_drafts)
    assert pool.blocks_per_request == num_blocks


@pytest.mark.parametrize(("num_drafts", "num_rows"), [(0, 8), (6, 8), (7, 16), (14, 16), (15, 32)])
def test_rings_of_v41_hold_a_step_and_its_drafts(num_drafts, num_rows):
    # vLLM 0.33.0 deepseek_v41/compressor.py: max(8, the next power of two of drafts + 2 rows).
    entry = CompressedEntry(size=512, rope_size=64)
    caches = (
        Cache(entry=entry, reach="sliding", span_tokens=128),
        Cache(entry=entry, tokens_per_entry=2),
        Cache(entry=IndexKey(size=128, default_format="fp8_scaled"), tokens_per_entry=2),
    )
    spec = model(Layer(mixers=(Mixer(caches=caches),)), model_type="deepseek_v41_text")
    groups = pool_of(spec, num_speculative_tokens=num_drafts).groups
    assert [group.block_tokens for group in groups if group.kind == "ring"] == [num_rows]


def test_the_pool_as_releases_before_0_21_log_it():
    # vllm#40691: blocks over groups, times the smallest block. One full layer, 5 windows: 6 groups of 16.
    windowed = model(layer(HEADS), *[layer(HEADS, reach="sliding", span=128)] * 5)
    pool = pool_of(windowed, available_bytes=3005 * 16 * 4096, batched_tokens=512)
    assert (pool.num_blocks, len(pool.groups)) == (3005, 6)
    assert pool.legacy_pool_tokens == 500 * 16
    # Full layers of 4 heads in blocks of 32 beside windows of 8 in blocks of 16: the smaller counts.
    small = KvHeads(num_heads=4, key_size=128, value_size=128)
    mixed = model(layer(small), layer(HEADS, reach="sliding", span=64))
    pool = pool_of(mixed, available_bytes=3001 * 16 * 4096, batched_tokens=512)
    assert sorted(group.block_tokens for group in pool.groups) == [16, 32]
    assert pool.legacy_pool_tokens == 1500 * 16
