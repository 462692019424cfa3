"""Weights of attention, matrix by matrix, against the modules of transformers 5.24.0."""

import pytest

from warmset.model import load_model


def weights(name, layer):
    (mixer,) = load_model(name).layers[layer].mixers
    return mixer.split_parameters, mixer.kv_parameters, mixer.replicated_parameters


# DeepSeek-V4-Flash: hidden 4,096; 64 heads of 512; query latent 1,024; 8 output groups of rank 1,024;
# 64 index heads of 128. modeling_deepseek_v4.py: q_b_proj, o_a_proj (grouped), o_b_proj.
V4_SPLIT = 1024 * 64 * 512 + 64 * 512 * 1024 + 8 * 1024 * 4096
V4_SHARED = 4096 * 1024 + 4096 * 512  # q_a_proj, kv_proj
V4 = {
    0: 0,
    128: 2 * 4096 * 512,  # kv_proj and gate_proj of the compressor
    4: 2 * 4096 * 2 * 512  # twice as wide where runs overlap
    + 1024 * 64 * 128  # q_b_proj of the indexer
    + 4096 * 64  # its weights_proj
    + 2 * 4096 * 2 * 128,  # its own compressor
}


@pytest.mark.parametrize("ratio", V4)
def test_compressed_attention(ratio):
    spec = load_model("DeepSeek-V4-Flash")
    ratios = [max(part.tokens_per_entry for part in layer.caches) for layer in spec.layers]
    layer = ratios.index(max(ratio, 1))
    assert weights("DeepSeek-V4-Flash", layer) == (V4_SPLIT, 0, V4_SHARED + V4[ratio])


def test_latent_attention():
    # DeepSeek-V3: hidden 7,168; 128 heads of 128 + 64 and 128; latents of 1,536 and 512.
    split = 1536 * 128 * 192 + 512 * 128 * (128 + 128) + 128 * 128 * 7168  # q_b, kv_b, o
    assert weights("DeepSeek-V3", 0) == (split, 0, 7168 * (1536 + 512 + 64))  # q_a, kv_a with the rotated key
    # DeepSeek-V2-Lite: hidden 2,048; 16 heads; no query latent.
    split = 2048 * 16 * 192 + 512 * 16 * (128 + 128) + 16 * 128 * 2048
    assert weights("DeepSeek-V2-Lite", 0) == (split, 0, 2048 * (512 + 64))


def test_an_index():
    # DeepSeek-V3.2: 64 index heads of 128: wq_b from the query latent, wk, weights_proj.
    index = 1536 * 64 * 128 + 7168 * 128 + 7168 * 64
    assert weights("DeepSeek-V3.2", 0)[2] == 7168 * (1536 + 512 + 64) + index


def test_grouped_queries():
    # Qwen3-8B: hidden 4,096; 32 heads and 8 KV heads of 128.
    assert weights("Qwen3-8B", 0) == (2 * 4096 * 32 * 128, 2 * 4096 * 8 * 128, 0)


def test_queries_with_a_gate():
    # Qwen3.5-27B: hidden 5,120; 24 heads, 4 KV heads of 256 on each fourth layer; q_proj is twice as wide.
    split = 5120 * 2 * 24 * 256 + 24 * 256 * 5120
    assert weights("Qwen3.5-27B", 3) == (split, 2 * 5120 * 4 * 256, 0)
