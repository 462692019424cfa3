"""Counts and bytes of two models small enough to add up by hand."""

from fractions import Fraction

import pytest

from tests.support.small_models import (
    BY_HEADS,
    DENSE,
    DENSE_FFN,
    DENSE_LINEAR,
    DOWN,
    EXPERT,
    HIDDEN,
    KEY_AND_VALUE,
    MIXED,
    MIXED_LINEAR,
    NORMS,
    QUERY_AND_OUTPUT,
    ROUTER,
    TABLE,
)
from warmset.errors import InputError
from warmset.model import (
    ModelSpec,
    Placement,
    active_linear_parameters,
    active_parameters,
    decode_weight_bytes_read,
    load_model,
    num_parameters,
    weight_bytes,
    weight_bytes_per_gpu,
)
from warmset.model.checkpoints import checkpoint_formats
from warmset.model.spec import FeedForward, Layer, Quantization
from warmset.model.weights import WeightFormats


def over(tensor_parallel, **sizes):
    return Placement(tensor_parallel=tensor_parallel, **sizes)


def test_all_parameters():
    assert num_parameters(DENSE) == 2 * TABLE + NORMS + DENSE_LINEAR
    assert num_parameters(MIXED) == TABLE + NORMS + MIXED_LINEAR + ROUTER + 4 * EXPERT


def test_active_parameters():
    assert active_parameters(DENSE) == num_parameters(DENSE)
    assert active_parameters(MIXED) == num_parameters(MIXED) - 2 * EXPERT
    assert active_linear_parameters(DENSE) == DENSE_LINEAR
    assert active_linear_parameters(MIXED) == MIXED_LINEAR + ROUTER + 2 * EXPERT


def test_tables_are_weights_but_not_active():
    # Whisper's encoder and Gemma 3n's per-layer embeddings are such tables.
    spec = _with(MIXED, table_parameters=1000, num_position_embeddings=7)
    assert num_parameters(spec) == num_parameters(MIXED) + 1000 + 7 * HIDDEN
    assert active_parameters(spec) == active_parameters(MIXED) + 7 * HIDDEN
    assert active_linear_parameters(spec) == active_linear_parameters(MIXED)


def test_draft_layers_are_left_out():
    assert num_parameters(_with(MIXED, mtp_layers=MIXED.layers)) == num_parameters(MIXED)


def test_only_linear_layers_are_quantized():
    assert weight_bytes(DENSE, "bf16") == 2 * num_parameters(DENSE)
    assert weight_bytes(DENSE, "fp32") == 4 * num_parameters(DENSE)
    assert weight_bytes(DENSE, "int8") == DENSE_LINEAR + 2 * (2 * TABLE + NORMS)
    scales = -(-DENSE_LINEAR * 4 // (128 * 128))
    assert weight_bytes(DENSE, "fp8") == DENSE_LINEAR + scales + 2 * (2 * TABLE + NORMS)
    assert weight_bytes(MIXED, "int8") == MIXED_LINEAR + 4 * EXPERT + 2 * (TABLE + NORMS + ROUTER)


def test_a_format_for_each_group():
    formats = WeightFormats("bf16", "int8", "fp32", "mxfp4")
    expected = 2 * (DOWN + BY_HEADS) + DENSE_FFN + 4 * EXPERT + 4 * EXPERT * Fraction(17, 32)
    assert weight_bytes(MIXED, formats) == expected + 2 * (TABLE + NORMS + ROUTER)


@pytest.mark.parametrize(
    ("weight_format", "block_weights", "block_bytes"),
    [
        ("fp8", 128 * 128, 128 * 128 + 4),  # an fp32 scale for each block
        ("int4", 128, 64 + 2 + 0.5),  # a 16-bit scale and a 4-bit zero
        ("int4_g32", 32, 16 + 2),  # a 16-bit scale
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
    linear = 2 * ((QUERY_AND_OUTPUT + DENSE_FFN) // tensor_parallel + KEY_AND_VALUE // kv_share)
    expected = 2 * (linear + 2 * rows * HIDDEN + NORMS)
    assert weight_bytes_per_gpu(DENSE, "bf16", over(tensor_parallel)) == expected


def test_latent_projections_are_on_every_gpu():
    linear = DOWN + (MIXED_LINEAR - DOWN + 4 * EXPERT) // 4
    assert weight_bytes_per_gpu(MIXED, "bf16", over(4)) == 2 * (linear + 64 * HIDDEN + NORMS + ROUTER)


def test_dp_attention_copies_attention_and_embedding():
    # Two groups of two GPUs: attention by 2, everything else by 4. 100 rows are two padded runs of 64.
    rest = (DENSE_FFN + EXPERT + 4 * EXPERT) // 4
    tables = (64 + 64) * HIDDEN  # the embedding over 2 GPUs, the head over 4
    spec = _with(MIXED, tied_embeddings=False)
    expected = 2 * (DOWN + BY_HEADS // 2 + rest + tables + NORMS + ROUTER)
    assert weight_bytes_per_gpu(spec, "bf16", over(4, dp_attention=2)) == expected
    alone = 2 * (DOWN + BY_HEADS + rest + (128 + 64) * HIDDEN + NORMS + ROUTER)
    assert weight_bytes_per_gpu(spec, "bf16", over(4, dp_attention=4)) == alone


def test_experts_stay_whole_under_expert_parallelism():
    by_four = weight_bytes_per_gpu(MIXED, "bf16", over(4))
    assert weight_bytes_per_gpu(MIXED, "bf16", over(4), expert_parallel=4) == by_four
    # Five experts over two pairs of GPUs: three of them, each over two GPUs.
    odd = _with_experts(MIXED, 5)
    more = weight_bytes_per_gpu(odd, "bf16", over(4), expert_parallel=2) - by_four
    assert more == 2 * (3 * EXPERT // 2 - 4 * EXPERT // 4)


def test_the_fullest_stage_of_a_pipeline():
    # Stages of one layer each; the first has the embedding, the last the LM head and the last norm.
    layer = DENSE_LINEAR // 2 + 2 * HIDDEN
    assert weight_bytes_per_gpu(DENSE, "bf16", over(1, pipeline_parallel=2)) == 2 * (
        layer + 128 * HIDDEN + HIDDEN
    )
    # A tied table is on both ends.
    tied = _with(DENSE, tied_embeddings=True)
    assert weight_bytes_per_gpu(tied, "bf16", over(1, pipeline_parallel=2)) == 2 * (
        layer + 128 * HIDDEN + HIDDEN
    )
    # Three layers over two stages: the longer one comes first, and the last stage is lighter.
    longer = _with(DENSE, layers=DENSE.layers + DENSE.layers[:1])
    assert weight_bytes_per_gpu(longer, "bf16", over(1, pipeline_parallel=2)) == 2 * (
        2 * layer + 128 * HIDDEN
    )


def test_one_gpu_has_all_weights_but_for_the_padding():
    for name in ("gpt2", "Mixtral-8x7B", "DeepSeek-V3.2", "Kimi-Linear", "gemma-3n-E4B", "gpt-oss-20b"):
        spec = load_model(name)
        padding = -spec.vocab_size % 64 * spec.hidden_size * (1 if spec.tied_embeddings else 2)
        assert weight_bytes_per_gpu(spec, "bf16", over(1)) == weight_bytes(spec, "bf16") + 2 * padding


def dense_bytes_per_gpu(expert_parallel=1, **sizes):
    return weight_bytes_per_gpu(DENSE, "bf16", Placement(**sizes), expert_parallel=expert_parallel)


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"tensor_parallel": 3}, "4 heads cannot be split over tensor_parallel=3"),
        ({"tensor_parallel": 4, "dp_attention": 3}, "dp_attention=3 does not divide tensor_parallel=4"),
        ({"tensor_parallel": 4, "expert_parallel": 3}, "expert_parallel=3 does not divide tensor_parallel=4"),
        ({"tensor_parallel": 1, "pipeline_parallel": 3}, "pipeline_parallel=3"),
    ],
)
def test_splits_that_do_not_work(sizes, message):
    with pytest.raises(InputError, match=message) as refusal:
        dense_bytes_per_gpu(**sizes)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("quantization", "formats"),
    [
        ({"method": "mxfp4"}, ("bf16", "bf16", "bf16", "mxfp4")),
        ({"method": "fp8", "weight_format": "e4m3"}, ("fp8",) * 4),
        ({"method": "fp8", "expert_format": "fp4"}, ("fp8", "fp8", "fp8", "mxfp4")),
        ({"method": "modelopt", "weight_format": "NVFP4"}, ("nvfp4",) * 4),
        ({"method": "awq"}, ("int4",) * 4),
        (
            {
                "method": "compressed-tensors",
                "weight_format": "int4",
                "unquantized_modules": (
                    "lm_head",
                    "re:.*self_attn.*",
                    "re:.*shared_experts.*",
                    r"re:.*mlp\.(gate|up|gate_up|down)_proj.*",
                ),
            },
            ("bf16", "bf16", "bf16", "int4"),
        ),
        (
            {"method": "fp8", "unquantized_modules": ("model.layers.0.self_attn", "model.layers.1.mlp.gate")},
            ("bf16", "fp8", "fp8", "fp8"),
        ),
        ({"method": "fp8", "unquantized_modules": ("model.layers.7.mlp.gate", "lm_head")}, ("fp8",) * 4),
    ],
    ids=str,
)
def test_formats_of_a_checkpoint(quantization, formats):
    assert checkpoint_formats(_with(MIXED, quantization=Quantization(**quantization))) == formats


def test_a_checkpoint_without_quantization():
    assert checkpoint_formats(MIXED) == ("bf16",) * 4
    assert checkpoint_formats(_with(MIXED, dtype_bits=32)) == ("fp32",) * 4


def test_a_quantization_nobody_knows():
    spec = _with(MIXED, quantization=Quantization(method="magic"))
    with pytest.raises(InputError, match="does not say what format 'magic' is: give the format"):
        checkpoint_formats(spec)


@pytest.mark.parametrize(("batch_size", "experts"), [(1, 2), (2, 3), (3, 3.5), (1000, 4)])
def test_a_decode_step_reads_the_experts_that_are_chosen(batch_size, experts):
    expected = 2 * (MIXED_LINEAR + ROUTER + NORMS + TABLE + experts * EXPERT)
    assert decode_weight_bytes_read(MIXED, "bf16", batch_size) == pytest.approx(expected)


def test_a_decode_step_reads_the_head_but_not_the_embedding():
    assert decode_weight_bytes_read(DENSE, "bf16", 7) == 2 * (num_parameters(DENSE) - TABLE)


def _with(spec, **changes):
    return ModelSpec(**{name: getattr(spec, name) for name in spec.__struct_fields__} | changes)


def _with_experts(spec, num_experts):
    last = spec.layers[-1]
    part = FeedForward(
        **{name: getattr(last.feed_forward, name) for name in last.feed_forward.__struct_fields__}
        | {"num_experts": num_experts}
    )
    layer = Layer(mixers=last.mixers, feed_forward=part, norm_parameters=last.norm_parameters)
    return _with(spec, layers=(*spec.layers[:-1], layer))
