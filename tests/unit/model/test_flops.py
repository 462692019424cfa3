import subprocess
import sys

import numpy as np
import pytest

from tests.support.small_models import DENSE, DENSE_LINEAR, HIDDEN, LATENT, MIXED, VOCAB, mixers_alone
from warmset.model import (
    active_linear_parameters,
    all_reduce_bytes,
    decode_flops_per_step,
    decode_kv_bytes_read,
    kv_layout,
    load_model,
    prefill_flops,
    sequence_bytes,
    shipped_models,
)
from warmset.model.kv_reads import decode_kv_bytes_per_sequence
from warmset.model.spec import (
    Attention,
    Cache,
    CompressedEntry,
    Indexer,
    IndexKey,
    KvHeads,
    Mixer,
    StatePart,
)

LOGITS = 2 * VOCAB * HIDDEN
BF16, FP8 = kv_layout("bf16"), kv_layout("fp8")


def test_prefill_counts_each_pair_of_query_and_key():
    flops = prefill_flops(DENSE, 3, 10)
    pairs = 11 + 12 + 13
    assert flops.attention == 2 * 2 * 4 * (2 + 2) * pairs
    assert flops.gemm == 2 * 3 * DENSE_LINEAR + LOGITS
    assert flops.total == flops.gemm + flops.attention


def test_cached_latents_are_expanded_again():
    flops = prefill_flops(MIXED, 3, 10)
    assert flops.attention == 2 * 2 * 4 * (3 + 2) * (11 + 12 + 13)
    expanded = 2 * 2 * 10 * 3 * 4 * (2 + 2)
    assert flops.gemm == 2 * 3 * active_linear_parameters(MIXED) + LOGITS + expanded


def test_a_window_bounds_the_pairs():
    spec = mixers_alone(
        Mixer(attentions=(Attention(num_heads=4, key_size=2, value_size=2, reach="sliding", span_tokens=12),))
    )
    assert prefill_flops(spec, 3, 10).attention == 2 * 4 * (2 + 2) * (11 + 12 + 12)


def test_a_chosen_latent_is_absorbed():
    indexer = Indexer(num_heads=2, key_size=5, top_k=12)
    part = Attention(num_heads=4, key_size=3, value_size=2, latent=LATENT, indexer=indexer)
    absorbed, scores = 2 * 4 * (2 * 3 + 1) * (11 + 12 + 12), 2 * 2 * 5 * (11 + 12 + 13)
    flops = prefill_flops(mixers_alone(Mixer(attentions=(part,))), 3, 10)
    assert flops == (LOGITS, absorbed + scores)
    shared = Indexer(num_heads=2, key_size=5, top_k=12, shared=True)
    part = Attention(num_heads=4, key_size=3, value_size=2, latent=LATENT, indexer=shared)
    assert prefill_flops(mixers_alone(Mixer(attentions=(part,))), 3, 10).attention == absorbed


def test_compressed_entries():
    # At positions 11, 12, 13 there are 2, 3, 3 entries of four tokens, and a window of four.
    shape = {"num_heads": 4, "key_size": 6, "value_size": 6}
    window = Attention(**shape, reach="sliding", span_tokens=4)
    flops = prefill_flops(
        mixers_alone(Mixer(attentions=(window, Attention(**shape, tokens_per_entry=4)))), 3, 10
    )
    assert flops.attention == 2 * 4 * 12 * (3 * 4 + 2 + 3 + 3)


def test_an_encoder_input_is_projected_once():
    part = Attention(num_heads=4, key_size=2, value_size=2, reach="cross", span_tokens=50)
    spec = mixers_alone(Mixer(attentions=(part,), split_parameters=70, kv_parameters=11))
    assert prefill_flops(spec, 3, 0) == (2 * 3 * 70 + LOGITS + 2 * 11 * 50, 3 * 2 * 4 * 4 * 50)
    assert prefill_flops(spec, 3, 10).gemm == 2 * 3 * 70 + LOGITS
    assert decode_flops_per_step(spec, 2, 20) == (2 * (2 * 70 + LOGITS), 2 * 2 * 4 * 4 * 50)


def test_a_recurrence_is_linear():
    spec = mixers_alone(Mixer(scan_flops_per_token=13))
    assert [prefill_flops(spec, 3, cached).attention for cached in (0, 10)] == [39, 39]
    assert decode_flops_per_step(spec, 5, 100).attention == 65


def test_nothing_new_costs_nothing():
    assert prefill_flops(MIXED, 0, 10) == (0, 0)
    columns = prefill_flops(MIXED, np.array([0, 3]), np.array([10, 10]))
    assert columns.gemm.tolist() == [0, prefill_flops(MIXED, 3, 10).gemm]


@pytest.mark.parametrize("shipped", shipped_models(), ids=lambda shipped: shipped.model)
def test_columns_agree_with_integers(shipped):
    spec = load_model(str(shipped.path))
    new, cached = [0, 1, 100, 5000, 131_072], [70_000, 0, 300, 5000, 8191]
    columns = prefill_flops(spec, np.array(new), np.array(cached))
    exact = [prefill_flops(spec, *row) for row in zip(new, cached, strict=True)]
    assert columns.gemm == pytest.approx([row.gemm for row in exact], rel=1e-12)
    assert columns.attention == pytest.approx([row.attention for row in exact], rel=1e-12)
    assert all(isinstance(row.total, int) for row in exact)


def test_decode():
    dense = decode_flops_per_step(DENSE, 5, 100)
    assert dense == (2 * 5 * DENSE_LINEAR + 5 * LOGITS, 2 * 2 * 4 * (2 + 2) * 100)
    assert decode_flops_per_step(MIXED, 5, 100).attention == 2 * 2 * 4 * (2 * 3 + 1) * 100
    assert decode_flops_per_step(DENSE, 0, 0) == (0, 0)


def test_decode_in_a_window_counts_each_sequence():
    part = Attention(num_heads=4, key_size=2, value_size=2, reach="sliding", span_tokens=12)
    spec = mixers_alone(Mixer(attentions=(part,)))
    # 35 tokens in three sequences: 12, 12 and 11.
    assert decode_flops_per_step(spec, 3, 35).attention == 2 * 4 * 4 * 35
    assert decode_flops_per_step(spec, 3, 300).attention == 2 * 4 * 4 * 36


def test_a_decode_step_reads_a_latent_once():
    assert decode_kv_bytes_read(MIXED, BF16, 1000) == 1000 * 2 * (3 + 1) * 2
    assert decode_kv_bytes_read(DENSE, FP8, 1000) == 1000 * 2 * 2 * (2 + 2)
    assert decode_kv_bytes_read(DENSE, FP8, 1001, batch_size=7) == 1001 * 2 * 2 * (2 + 2)


def test_a_decode_step_reads_the_whole_index_and_what_it_chose():
    # DeepSeek-V3.2 with 100,000 tokens: 132 bytes of index for each, 656 of latents for 2,048 of them.
    spec = load_model("DeepSeek-V3.2")
    assert decode_kv_bytes_per_sequence(spec, FP8, 100_000) == 61 * (132 * 100_000 + 656 * 2048)
    assert decode_kv_bytes_per_sequence(spec, FP8, 1000) == 61 * (132 + 656) * 1000


def test_a_decode_step_reads_compressed_entries():
    # DeepSeek-V4-Flash: 43 windows of 128; 21 layers with an entry and an index key for 4 tokens, 512
    # entries of which are chosen; 20 layers with an entry for 128 tokens; 584 and 132 bytes.
    spec = load_model("DeepSeek-V4-Flash")
    ratios = [
        cache.tokens_per_entry
        for layer in spec.layers
        for cache in layer.caches
        if cache.reach == "full" and isinstance(cache.entry, CompressedEntry)
    ]
    assert (ratios.count(4), ratios.count(128)) == (21, 20)
    state = sequence_bytes(spec, 0, FP8)
    caches = 43 * 128 * 584 + 21 * (512 * 584 + 25_000 * 132) + 20 * 781 * 584
    assert decode_kv_bytes_per_sequence(spec, FP8, 100_000) == caches + 2 * state


def test_states_are_read_and_written():
    part = StatePart(role="recurrent", num_units=4, unit_elements=100, bits=32)
    spec = mixers_alone(Mixer(states=(part,)))
    assert decode_kv_bytes_read(spec, BF16, 1000, batch_size=3) == 3 * 2 * 4 * 100 * 4
    assert decode_kv_bytes_read(spec, BF16, 0) == 0


def test_layers_that_share_read_the_cache_of_an_earlier_one():
    entry = KvHeads(num_heads=2, key_size=2, value_size=2)
    full = Attention(num_heads=4, key_size=2, value_size=2)
    window = Attention(num_heads=4, key_size=2, value_size=2, reach="sliding", span_tokens=12)
    spec = mixers_alone(
        Mixer(caches=(Cache(entry=entry),), attentions=(full,)),
        Mixer(caches=(Cache(entry=entry, reach="sliding", span_tokens=12),), attentions=(window,)),
        Mixer(attentions=(full,)),
        Mixer(attentions=(window,)),
        Mixer(attentions=(window,)),
    )
    assert decode_kv_bytes_per_sequence(spec, BF16, 100) == 16 * (2 * 100 + 3 * 12)


def test_an_index_that_is_shared_is_read_once():
    own = Indexer(num_heads=2, key_size=8, top_k=10)
    shared = Indexer(num_heads=2, key_size=8, top_k=10, shared=True)
    key = Cache(entry=IndexKey(size=8, default_format="bf16"))
    shape = {"num_heads": 4, "key_size": 3, "value_size": 2, "latent": LATENT}
    spec = mixers_alone(
        Mixer(caches=(Cache(entry=LATENT), key), attentions=(Attention(**shape, indexer=own),)),
        Mixer(caches=(Cache(entry=LATENT),), attentions=(Attention(**shape, indexer=shared),)),
    )
    assert decode_kv_bytes_per_sequence(spec, BF16, 100) == 2 * 8 * 10 + 16 * 100


@pytest.mark.parametrize("shipped", shipped_models(), ids=lambda shipped: shipped.model)
def test_a_step_reads_no_more_than_each_layer_reaches(shipped):
    # Layers that share a cache read it again, so the bound is over layers with attention, not over caches.
    spec = load_model(str(shipped.path))
    read = decode_kv_bytes_per_sequence(spec, BF16, 40_000)
    held = sequence_bytes(spec, 40_000, BF16)
    sharing = sum(bool(mixer.attentions) for layer in spec.layers for mixer in layer.mixers)
    owning = sum(bool(mixer.caches) for layer in spec.layers for mixer in layer.mixers) or 1
    assert 0 < read <= 2 * held * max(1, -(-sharing // owning))


def test_all_reduce():
    assert all_reduce_bytes(DENSE, 10) == 2 * 2 * 10 * HIDDEN * 2
    # Nemotron-H has a mixer or an MLP in a layer, never both: one sum for each of its 52.
    spec = load_model("Nemotron-H-8B")
    assert all_reduce_bytes(spec, 1) == 52 * 4096 * 2


def test_sizes_need_no_numpy():
    script = (
        "import sys; from warmset.model import load_model, growth_bytes_per_token, kv_layout; "
        "growth_bytes_per_token(load_model('gpt2'), kv_layout('bf16')); print('numpy' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
