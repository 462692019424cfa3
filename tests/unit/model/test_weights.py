"""Counts and bytes of two models small enough to add up by hand."""

import pytest

from warmset.model import (
    FeedForward,
    LatentAttention,
    ModelSpec,
    active_linear_parameters,
    active_parameters,
    decode_kv_bytes_read,
    decode_weight_bytes_read,
    load_model,
    num_parameters,
    weight_bytes,
    weight_bytes_per_gpu,
)

HIDDEN, VOCAB = 8, 100
TABLE = HIDDEN * VOCAB
NORMS = (2 * 2 + 1) * HIDDEN

# Two layers, four heads of two, two KV heads; a gated dense part of 16.
DENSE = ModelSpec(
    name="dense",
    model_type="test",
    num_layers=2,
    hidden_size=HIDDEN,
    num_heads=4,
    num_kv_heads=2,
    key_head_size=2,
    value_head_size=2,
    feed_forward=FeedForward(num_dense_layers=2, dense_intermediate_size=16),
    vocab_size=VOCAB,
    tied_embeddings=False,
)
QUERY_AND_OUTPUT, KEY_AND_VALUE, DENSE_FFN = 2 * (8 * 8 + 8 * 8), 2 * (8 * 4 + 8 * 4), 2 * 3 * 8 * 16

# Two layers with a latent of 3 + 1 and a factored query; one is dense, one has 4 experts, 2 chosen, 1 shared.
MIXED = ModelSpec(
    name="mixed",
    model_type="test",
    num_layers=2,
    hidden_size=HIDDEN,
    num_heads=4,
    num_kv_heads=1,
    key_head_size=3,
    value_head_size=2,
    latent=LatentAttention(latent_size=3, rope_head_size=1, nope_head_size=2),
    query_latent_size=5,
    feed_forward=FeedForward(
        num_dense_layers=1,
        dense_intermediate_size=16,
        num_moe_layers=1,
        num_experts=4,
        experts_per_token=2,
        moe_intermediate_size=6,
        shared_intermediate_size=6,
    ),
    vocab_size=VOCAB,
    tied_embeddings=True,
)
EXPERT = 3 * 8 * 6
ROUTER = 8 * 4
DOWN = 2 * (8 * 5 + 8 * (3 + 1))
BY_HEADS = 2 * (5 * 4 * 3 + 3 * 4 * (2 + 2) + 4 * 2 * 8)
MIXED_LINEAR = DOWN + BY_HEADS + 3 * 8 * 16 + EXPERT  # with the shared expert, without router and routed ones


def test_all_parameters():
    assert num_parameters(DENSE) == 2 * TABLE + NORMS + QUERY_AND_OUTPUT + KEY_AND_VALUE + DENSE_FFN
    assert num_parameters(MIXED) == TABLE + NORMS + MIXED_LINEAR + ROUTER + 4 * EXPERT


def test_active_parameters():
    assert active_parameters(DENSE) == num_parameters(DENSE)
    assert active_parameters(MIXED) == num_parameters(MIXED) - 2 * EXPERT
    assert active_linear_parameters(DENSE) == QUERY_AND_OUTPUT + KEY_AND_VALUE + DENSE_FFN
    assert active_linear_parameters(MIXED) == MIXED_LINEAR + ROUTER + 2 * EXPERT


def test_only_linear_layers_are_quantized():
    linear = QUERY_AND_OUTPUT + KEY_AND_VALUE + DENSE_FFN
    assert weight_bytes(DENSE, "bf16") == 2 * num_parameters(DENSE)
    assert weight_bytes(DENSE, "int8") == linear + 2 * (2 * TABLE + NORMS)
    scales = -(-linear * 4 // (128 * 128))
    assert weight_bytes(DENSE, "fp8") == linear + scales + 2 * (2 * TABLE + NORMS)
    assert weight_bytes(MIXED, "int8") == MIXED_LINEAR + 4 * EXPERT + 2 * (TABLE + NORMS + ROUTER)


@pytest.mark.parametrize(
    ("weight_format", "block_weights", "block_bytes"),
    [
        ("fp8", 128 * 128, 128 * 128 + 4),  # an fp32 scale for each block
        ("int4", 128, 64 + 2 + 0.5),  # a 16-bit scale and a 4-bit zero
        ("mxfp4", 32, 16 + 1),  # an 8-bit exponent
        ("nvfp4", 16, 8 + 1),  # an fp8 scale
    ],
)
def test_scales_count(weight_format, block_weights, block_bytes):
    spec = load_model("Meta-Llama-3.1-8B")
    linear = active_linear_parameters(spec)
    rest = 2 * (num_parameters(spec) - linear)
    assert weight_bytes(spec, weight_format) == linear / block_weights * block_bytes + rest


@pytest.mark.parametrize(("tensor_parallel", "rows", "kv_share"), [(1, 128, 1), (2, 64, 2), (4, 64, 2)])
def test_weights_on_each_gpu(tensor_parallel, rows, kv_share):
    linear = (QUERY_AND_OUTPUT + DENSE_FFN) // tensor_parallel + KEY_AND_VALUE // kv_share
    expected = 2 * (linear + 2 * rows * HIDDEN + NORMS)
    assert weight_bytes_per_gpu(DENSE, "bf16", tensor_parallel) == expected


def test_latent_projections_are_on_every_gpu():
    linear = DOWN + (MIXED_LINEAR - DOWN + 4 * EXPERT) // 4
    assert weight_bytes_per_gpu(MIXED, "bf16", 4) == 2 * (linear + 64 * HIDDEN + NORMS + ROUTER)


@pytest.mark.parametrize(("batch_size", "experts"), [(1, 2), (2, 3), (3, 3.5), (1000, 4)])
def test_a_decode_step_reads_the_experts_that_are_chosen(batch_size, experts):
    expected = 2 * (MIXED_LINEAR + ROUTER + NORMS + TABLE + experts * EXPERT)
    assert decode_weight_bytes_read(MIXED, "bf16", batch_size) == pytest.approx(expected)


def test_a_decode_step_reads_the_head_but_not_the_embedding():
    assert decode_weight_bytes_read(DENSE, "bf16", 7) == 2 * (num_parameters(DENSE) - TABLE)


def test_a_decode_step_reads_a_latent_once():
    assert decode_kv_bytes_read(MIXED, "bf16", 1000) == 1000 * 2 * (3 + 1) * 2
    assert decode_kv_bytes_read(DENSE, "fp8", 1000) == 1000 * 2 * 2 * (2 + 2)
