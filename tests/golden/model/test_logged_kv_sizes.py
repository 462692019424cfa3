"""KV sizes that engines logged, papers printed or others worked out, each with its source."""

from fractions import Fraction

import msgspec
import pytest

from warmset.model import (
    cached_prefix_bytes,
    growth_bytes_per_token,
    growth_bytes_per_token_per_gpu,
    kv_bytes,
    kv_layout,
    load_model,
    sequence_bytes,
)
from warmset.model.kv_bytes import state_bytes
from warmset.model.layouts import entry_bytes
from warmset.model.placement import Placement, stage_specs
from warmset.model.recurrent import with_recurrent_bits
from warmset.model.spec import IndexKey

BF16, FP8 = kv_layout("bf16"), kv_layout("fp8")
ALL_BF16 = kv_layout("bf16", "bf16")
MIB, GIB = 2**20, 2**30


def printed(num_bytes, text, unit_bytes):
    digits = len(text.partition(".")[2])
    return f"{float(num_bytes / unit_bytes):.{digits}f}" == text


@pytest.mark.parametrize(
    ("model", "tokens", "text", "unit_bytes"),
    [
        ("DeepSeek-V3", 32768, "2196.00", MIB),  # llama.cpp PR#11446
        ("DeepSeek-R1", 1_230_416, "80.53", GIB),  # sglang#7055
        ("Kimi-K2.5", 262_144, "17.16", GIB),  # unsloth PR#4757
        ("Qwen3-0.6B", 40_960, "4.38", GIB),  # unsloth PR#4757
        ("Meta-Llama-3.1-8B", 1952 * 16, "3.81", GIB),  # vllm#10517: 1,952 blocks
        ("Meta-Llama-3.1-70B", 1_000_000, "327680000000", 1),  # a test of NVIDIA/kvpress
        ("gpt-oss-20b", 131_072, "3.0029", GIB),  # tests of teilomillet/kvfit; as the two below
        ("gpt-oss-120b", 131_072, "4.5044", GIB),
        ("gemma-3-27b-it", 131_072, "10.41", GIB),  # unsloth PR#4757: growth and window
        ("gemma-3-27b-it", 131_072, "10.406", GIB),  # 10 x 8,192 x 131,072 + 52 x 8,192 x 1,024
    ],
)
def test_sequences_in_bf16(model, tokens, text, unit_bytes):
    assert printed(sequence_bytes(load_model(model), tokens, BF16), text, unit_bytes)


@pytest.mark.parametrize(
    ("model", "layout", "tokens", "text", "unit_bytes"),
    [
        ("Qwen3.5-27B", BF16, 262_144, "16384", MIB),  # llama.cpp; unsloth says 16.00 GiB
        ("gemma-3-4b-it", BF16, 131_072, "2560", MIB),  # llama.cpp log in ollama PR#17037, its full layers
        ("gpt-oss-20b", BF16, 131_072, "3.00", GIB),  # gguf-parser-go#32, its full layers
        ("DeepSeek-V4-Flash", ALL_BF16, 2**20, "6.72", GIB),  # vLLM's DeepSeek-V4 blog
        ("DeepSeek-V4-Pro", ALL_BF16, 2**20, "9.62", GIB),  # the same
        ("DeepSeek-V3.2", ALL_BF16, 2**20, "83.88", GIB),  # the same
    ],
)
def test_growth_alone(model, layout, tokens, text, unit_bytes):
    assert printed(growth_bytes_per_token(load_model(model), layout) * tokens, text, unit_bytes)


@pytest.mark.parametrize(
    ("model", "layout", "bytes_per_token"),
    [
        ("DeepSeek-V3", BF16, 70_272),  # "Insights into DeepSeek-V3", arXiv 2505.09343, table 1: 70.272 KB
        ("Qwen2.5-72B-Instruct", BF16, 327_680),  # the same: 327.680 KB
        ("Meta-Llama-3.1-405B", BF16, 516_096),  # the same: 516.096 KB
        ("DeepSeek-V3.2", ALL_BF16, 85_888),  # SGLang PR#11309
        ("DeepSeek-V3.2", FP8, 48_068),  # the same: 43.67 GB of tokens
        ("GLM-5", BF16, 100_152),  # 78 x (576 x 2 + 132): vLLM and SGLang keep the index in fp8 with a scale
        ("DeepSeek-V4-Flash", ALL_BF16, 6_880),  # vLLM's DeepSeek-V4 blog
        ("DeepSeek-V4-Pro", ALL_BF16, 9_848),  # the same
        ("MiniMax-M3", BF16, 137_472),  # one index head: vLLM and SGLang model code; kvfit counts four
        ("Qwen3.8-Flash-Next", BF16, 25_344),  # blocks traced from vLLM by mondegreens/apron
        ("Qwen3.5-27B", BF16, 65_536),  # the same
    ],
)
def test_bytes_per_token(model, layout, bytes_per_token):
    assert growth_bytes_per_token(load_model(model), layout) == bytes_per_token


@pytest.mark.parametrize(
    ("model", "bytes_per_token"),
    [
        ("DeepSeek-V3", 1_152),  # one more latent
        ("DeepSeek-V3.2", 1_284),  # and its index key
        ("GLM-4.5", 4_096),
        ("DeepSeek-V4-Flash", 0),  # its draft layer has a window alone
    ],
)
def test_draft_layers(model, bytes_per_token):
    assert kv_bytes(load_model(model), BF16).mtp_bytes_per_token == bytes_per_token


def test_a_file_that_counts_the_draft_layer_and_no_index():
    # unsloth PR#4757: 17.18 GiB for GLM-5 at 202,752 tokens. GGUF's block count has the draft layer in it.
    spec = load_model("GLM-5")
    latents = [
        entry_bytes(cache.entry, BF16)
        for layer in (*spec.layers, *spec.mtp_layers)
        for cache in layer.caches
        if not isinstance(cache.entry, IndexKey)
    ]
    assert latents == 79 * [1_152]
    assert printed(sum(latents) * 202_752, "17.18", GIB)


@pytest.mark.parametrize(
    ("model", "cells", "window_bytes", "full_tokens", "text", "unit_bytes"),
    [
        ("gemma-3-4b-it", 1024 + 512, 118_784, 0, "174.00", MIB),  # ollama PR#17037
        ("gemma-4-26B-A4B", 1024 + 512, 204_800, 131_072, "3.00", 10**9),  # ollama PR#16958
    ],
)
def test_windows_with_a_micro_batch_in_flight(model, cells, window_bytes, full_tokens, text, unit_bytes):
    """llama.cpp allocates the window and a micro-batch of 512 tokens for windowed layers."""
    kv = kv_bytes(load_model(model), BF16)
    assert (kv.window_bytes_per_token, kv.window_tokens) == (window_bytes, 1024)
    size = cells * kv.window_bytes_per_token + full_tokens * kv.growth_bytes_per_token
    assert printed(size, text, unit_bytes)


def test_states():
    # A third-party test has 51,806,208 bytes for Nemotron-H-8B with states in bf16.
    nemotron = load_model("Nemotron-H-8B-Base-8K")
    layers = with_recurrent_bits(nemotron.layers, 16)
    assert state_bytes(part for layer in layers for part in layer.states) == 51_806_208
    # llama.cpp logs 598.5 MiB for four sequences of Qwen3.5-27B; it keeps convolutions in fp32 too.
    parts = [part for layer in load_model("Qwen3.5-27B").layers for part in layer.states]
    assert state_bytes(parts) == 153_944_064
    all_fp32 = [msgspec.structs.replace(part, bits=32) for part in parts]
    assert 4 * state_bytes(all_fp32) == 598.5 * MIB


@pytest.mark.parametrize(
    ("model", "num_bytes"),
    [
        (
            "whisper-large-v3",
            245_760_000,
        ),  # 32 x 1,500 x 2 x 20 x 64 x 2; the length is in TensorRT-LLM#19514
        ("Llama-3.2-90B-Vision-Instruct", 524_615_680),  # 20 layers x 4 tiles x 1,601 x 4,096
    ],
)
def test_encoder_inputs(model, num_bytes):
    assert kv_bytes(load_model(model), BF16).cross_bytes_per_input == num_bytes


def test_one_gpu():
    # KVDirect issue 2: 640 MiB on each of 8 GPUs at 16K tokens.
    llama = load_model("Meta-Llama-3.1-70B")
    assert growth_bytes_per_token_per_gpu(llama, BF16, 8) * 16384 == 640 * MIB
    # vllm#21348: SGLang logs 16.46 GB (GiB) for 367,404 tokens on each of 4 GPUs, 48,104 bytes a token.
    qwen = load_model("Qwen3-235B-A22B")
    assert growth_bytes_per_token_per_gpu(qwen, BF16, 4) == 48_128
    assert growth_bytes_per_token_per_gpu(qwen, BF16, 4) == pytest.approx(48_104, rel=0.001)


def test_a_cached_prefix_with_states():
    # Blocks of 784 tokens, traced from vLLM by mondegreens/apron: 262,144 bytes a token with padded pages.
    spec = load_model("Qwen3.5-27B")
    per_token = Fraction(cached_prefix_bytes(spec, 100 * 784, BF16, snapshot_tokens=784), 100 * 784)
    assert per_token == 65_536 + Fraction(153_944_064, 784)
    assert round(per_token) == 261_893
    # LMCache's usual chunk of 256 tokens: 667 KB.
    assert printed(cached_prefix_bytes(spec, 256, BF16, snapshot_tokens=256) / 256, "667", 1000)


def test_a_cached_prefix_on_one_gpu():
    # LMCache PR#5042: 43,723 bytes a token and rank for GLM-5.3-Flash on 4 GPUs, blocks of 1,152 tokens.
    rank = stage_specs(load_model("GLM-5.3-Flash"), Placement(tensor_parallel=4))[0]
    states = [part for layer in rank.layers for part in layer.states if part.role != "tail"]
    growth = growth_bytes_per_token(rank, BF16)
    assert round(growth + Fraction(state_bytes(states), 1152)) == 43_663  # 11,627 + 32,036
    per_token = Fraction(cached_prefix_bytes(rank, 1152, BF16, snapshot_tokens=1152), 1152)
    assert float(per_token) == pytest.approx(43_723, rel=0.002)
