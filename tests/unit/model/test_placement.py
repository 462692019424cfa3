from fractions import Fraction

import pytest

from warmset.errors import InputError
from warmset.model import (
    Placement,
    cached_prefix_bytes,
    growth_bytes_per_token,
    growth_bytes_per_token_per_gpu,
    kv_bytes,
    kv_layout,
    load_model,
    replication_factor,
    resolve_config,
    sequence_bytes,
)
from warmset.model.placement import (
    check_placement,
    gpu_bytes,
    heads_on_rank,
    sequence_bytes_per_gpu,
    stage_layers,
    stage_specs,
)

BF16, FP8 = kv_layout("bf16"), kv_layout("fp8")


def spread(tensor=1, pipeline=1, dp_attention=1, dcp=1):
    return Placement(
        tensor_parallel=tensor,
        pipeline_parallel=pipeline,
        dp_attention=dp_attention,
        decode_context_parallel=dcp,
    )


@pytest.mark.parametrize(
    ("model", "tensor_parallel", "share", "replication"),
    [
        ("Qwen3-235B-A22B", 1, Fraction(1), 1),
        ("Qwen3-235B-A22B", 4, Fraction(1, 4), 1),
        ("Qwen3-235B-A22B", 8, Fraction(1, 4), 2),  # four KV heads, each on two GPUs
        ("Qwen3-235B-A22B", 16, Fraction(1, 4), 4),
        ("Qwen3.5-27B", 8, Fraction(1, 4), 2),
        ("gemma-2b", 8, Fraction(1), 8),  # one KV head
        ("DeepSeek-V3", 8, Fraction(1), 8),  # one latent
        ("DeepSeek-V3.2", 8, Fraction(1), 8),  # index keys too
        ("DeepSeek-V4-Flash", 8, Fraction(1), 8),  # one compressed entry
        ("Llama-2-7b-hf", 32, Fraction(1, 32), 1),
        ("Gemma-4-31B-IT-NVFP4", 8, Fraction(1, 4), 2),  # full layers have 4 KV heads, windowed ones 16
        ("Mamba-Codestral-7B-v0.1", 4, Fraction(1), 1),  # nothing grows
    ],
)
def test_share_of_each_gpu(model, tensor_parallel, share, replication):
    spec = load_model(model)
    whole = growth_bytes_per_token(spec, BF16)
    assert growth_bytes_per_token_per_gpu(spec, BF16, tensor_parallel) == share * whole
    assert gpu_bytes(spec, BF16, spread(tensor_parallel)).growth_bytes_per_token == share * whole
    assert replication_factor(spec, BF16, tensor_parallel) == replication


def test_index_keys_are_on_every_gpu_and_heads_are_not():
    # MiniMax-M3: 60 layers of 4 KV heads of 128, 57 with one index key of 128.
    spec = load_model("MiniMax-M3")
    on_each = gpu_bytes(spec, BF16, spread(4))
    assert on_each.growth_bytes_per_token == 60 * 512 + 57 * 256
    assert on_each.replication == Fraction(4 * (60 * 512 + 57 * 256), 137_472)


def test_heads_on_a_rank():
    assert [heads_on_rank(8, size) for size in (1, 2, 4, 8, 16)] == [8, 4, 2, 1, 1]


def test_windows_and_encoder_inputs_are_split_by_heads():
    gemma = gpu_bytes(load_model("Gemma-4-31B-IT-NVFP4"), BF16, spread(8))
    assert gemma.window_bytes_per_token == 50 * 2 * 2 * 256 * 2  # 2 of 16 KV heads
    whisper = gpu_bytes(load_model("whisper-large-v3"), BF16, spread(4))
    assert whisper.cross_bytes_per_input == 245_760_000 // 4


@pytest.mark.parametrize(
    ("model", "tensor_parallel", "num_bytes"),
    [
        ("Qwen3.5-27B", 8, 153_944_064 // 8),
        # 24 layers; 8 of 128 heads of 64 x 128 in fp32; 8 groups over 16 GPUs, one on each.
        ("Nemotron-H-8B-Base-8K", 16, 24 * (8 * 64 * 128 * 4 + (8 * 64 + 2 * 128) * 3 * 2)),
        ("DeepSeek-V4-Flash", 8, 12_206_080),  # what waits in the compressors is on every GPU
        ("MiniMax-M1-80k", 8, 293_601_280 // 8),
    ],
)
def test_states(model, tensor_parallel, num_bytes):
    assert gpu_bytes(load_model(model), BF16, spread(tensor_parallel)).state_bytes_per_sequence == num_bytes


def test_dp_attention():
    # sglang#7055: DeepSeek-R1, 8 groups of one GPU; each has requests and a pool of its own.
    latent = load_model("DeepSeek-R1")
    own = gpu_bytes(latent, BF16, spread(8, dp_attention=8))
    assert (own.growth_bytes_per_token, own.replication) == (70_272, 1)
    assert gpu_bytes(latent, BF16, spread(8)).replication == 8
    qwen = load_model("Qwen3-235B-A22B")
    assert gpu_bytes(qwen, BF16, spread(8, dp_attention=2)).growth_bytes_per_token == 192_512 // 4
    assert gpu_bytes(qwen, BF16, spread(8, dp_attention=4)).growth_bytes_per_token == 192_512 // 2
    assert spread(8, pipeline=2, dp_attention=4).attention_parallel == 2
    assert spread(8, pipeline=2, dp_attention=4).num_gpus == 16


def test_context_parallelism_stripes_what_grows():
    latent = load_model("DeepSeek-V3")
    on_each = gpu_bytes(latent, BF16, spread(8, dcp=8))
    assert (on_each.growth_bytes_per_token, on_each.replication) == (Fraction(70_272, 8), 1)
    assert sequence_bytes_per_gpu(latent, 4097, BF16, spread(8, dcp=8)) == 513 * 70_272
    # Of grouped queries only the copies are striped: 4 KV heads on 8 GPUs.
    qwen = gpu_bytes(load_model("Qwen3-235B-A22B"), BF16, spread(8, dcp=2))
    assert (qwen.growth_bytes_per_token, qwen.replication) == (192_512 // 8, 1)


def test_context_parallelism_leaves_windows_and_states_whole():
    spec = load_model("DeepSeek-V4-Flash")
    alone, striped = (gpu_bytes(spec, BF16, spread(8, dcp=dcp)) for dcp in (1, 8))
    assert striped.growth_bytes_per_token == alone.growth_bytes_per_token / 8
    assert striped.window_bytes_per_token == alone.window_bytes_per_token == 43 * 1024
    assert striped.state_bytes_per_sequence == alone.state_bytes_per_sequence == 12_206_080
    # Every eighth token's entries, all of the window and of what waits.
    assert sequence_bytes_per_gpu(spec, 2**20, BF16, spread(8, dcp=8)) == sequence_bytes(spec, 2**17, BF16)


@pytest.mark.parametrize(
    ("model", "pipeline_parallel", "counts"),
    [
        # vLLM 0.33.0 distributed/utils.py: the rest goes to the stages just before the last.
        ("DeepSeek-V3", 1, [61]),
        ("DeepSeek-V3", 2, [31, 30]),
        ("DeepSeek-V3", 4, [15, 15, 16, 15]),
        ("DeepSeek-V3", 8, [7, 7, 8, 8, 8, 8, 8, 7]),
        ("Qwen3-235B-A22B", 4, [23, 24, 24, 23]),
        ("gpt2", 12, [1] * 12),
    ],
)
def test_stages(model, pipeline_parallel, counts):
    spec = load_model(model)
    stages = stage_layers(spec, pipeline_parallel)
    assert [len(stage) for stage in stages] == counts
    assert tuple(layer for stage in stages for layer in stage) == spec.layers


def test_a_gpu_keeps_the_layers_of_its_stage():
    spec = load_model("DeepSeek-V3")
    on_each = gpu_bytes(spec, BF16, spread(8, pipeline=4))
    assert (on_each.growth_bytes_per_token, on_each.replication) == (16 * 1152, 8)
    # Jamba: one attention layer in each run of eight.
    assert gpu_bytes(load_model("AI21-Jamba-1.5-Mini"), BF16, spread(1, 4)).growth_bytes_per_token == 4096
    assert sequence_bytes_per_gpu(spec, 1000, FP8, spread(8, pipeline=4)) == 1000 * 16 * 576


def test_the_model_of_a_stage_is_a_model():
    spec = load_model("GLM-5.3-Flash")
    rank = stage_specs(spec, spread(4))[0]
    kv = kv_bytes(rank, BF16)
    assert kv.growth_bytes_per_token == 11_627
    assert cached_prefix_bytes(rank, 1152, BF16) == 11_627 * 1152 + kv.state_bytes_per_sequence
    assert stage_specs(spec, spread()) == [spec]


@pytest.mark.parametrize(
    ("model", "placement", "words"),
    [
        (
            "Qwen3-235B-A22B",
            spread(3),
            "64 heads cannot be split over tensor_parallel=3: choose a divisor of 64",
        ),
        ("falcon-7b", spread(2), "71 heads cannot be split over tensor_parallel=2"),
        (
            "phi-4",
            spread(4),
            "10 KV heads cannot be split over tensor_parallel=4: choose a divisor or a mult",
        ),
        ("DeepSeek-V3", spread(3), "128 heads cannot be split over tensor_parallel=3"),
        ("DeepSeek-V4-Flash", spread(128), "64 heads cannot be split over tensor_parallel=128"),
        ("DeepSeek-V3", spread(1, 62), "pipeline_parallel=62 is more than its layers"),
        (
            "Qwen3-235B-A22B",
            spread(4, 1, 1, 2),
            "decode_context_parallel=2 .* choose a divisor of 1",
        ),
        (
            "Qwen3-235B-A22B",
            spread(8, 1, 1, 4),
            "decode_context_parallel=4 .* choose a divisor of 2",
        ),
    ],
)
def test_what_the_model_cannot_take(model, placement, words):
    spec = load_model(model)
    for ask in (check_placement, stage_specs, lambda *both: gpu_bytes(both[0], BF16, both[1])):
        with pytest.raises(InputError, match=f"^{spec.name}: .*{words}") as error:
            ask(spec, placement)
        assert "\n" not in str(error.value)


def test_every_attention_of_a_model_is_asked():
    config = {
        "model_type": "gemma4",
        "num_hidden_layers": 6,
        "hidden_size": 64,
        "num_attention_heads": 12,
        "num_key_value_heads": 6,
        "num_global_key_value_heads": 4,
        "attention_k_eq_v": True,
        "head_dim": 16,
        "global_head_dim": 32,
        "sliding_window": 128,
        "intermediate_size": 128,
        "vocab_size": 100,
    }
    spec = resolve_config(config, "m")
    check_placement(spec, spread(2))
    for size, words in ((4, "6 KV heads"), (6, "4 KV heads"), (8, "12 heads")):
        with pytest.raises(InputError, match=words):
            check_placement(spec, spread(size))


@pytest.mark.parametrize(
    ("model", "pipeline_parallel", "tokens"),
    [("gemma-3-1b-it", 4, 131_072), ("Step-3.7-Flash", 4, 131_072), ("Kimi-K3", 2, 5_000)],
)
def test_the_fullest_gpu_holds_at_least_its_share(model, pipeline_parallel, tokens):
    spec = load_model(model)
    fullest = sequence_bytes_per_gpu(spec, tokens, BF16, spread(1, pipeline_parallel))
    assert fullest * pipeline_parallel >= sequence_bytes(spec, tokens, BF16)


@pytest.mark.parametrize(
    ("model", "tensor_parallel"),
    [("Mamba-Codestral-7B-v0.1", 3), ("falcon-mamba-7b-instruct", 3), ("Qwen3.5-27B", 24)],
)
def test_states_that_do_not_divide(model, tensor_parallel):
    """128 heads or 8,192 channels over 3, 16 key heads over 24.

    vLLM 0.33.0 model_executor/layers/mamba/mamba_utils.py divides without a rest, or stops.
    """
    with pytest.raises(InputError, match=f"tensor_parallel={tensor_parallel}"):
        check_placement(load_model(model), spread(tensor_parallel))


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ((0,), "tensor_parallel=0: it must be at least 1"),
        ((-2,), "tensor_parallel=-2: it must be at least 1"),
        ((1, 0), "pipeline_parallel=0"),
        ((1, 1, 0), "dp_attention=0"),
        ((1, 1, 1, 0), "decode_context_parallel=0"),
        ((8, 1, 3), "dp_attention=3 does not divide tensor_parallel=8"),
        ((4, 1, 8), "dp_attention=8 does not divide tensor_parallel=4"),
        ((8, 1, 8, 2), "decode_context_parallel=2 does not divide the 1 GPUs"),
        ((8, 1, 1, 3), "decode_context_parallel=3 does not divide the 8 GPUs"),
    ],
)
def test_sizes_that_no_model_can_take(sizes, words):
    with pytest.raises(InputError, match=f"^{words}"):
        spread(*sizes)
