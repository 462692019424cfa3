"""Bytes of an entry in each layout. Figures without a source of their own are worked out in the case."""

import pytest

from warmset.errors import InputError
from warmset.model import (
    cached_prefix_bytes,
    growth_bytes_per_token,
    kv_bytes,
    kv_layout,
    load_model,
    sequence_bytes,
)
from warmset.model.layouts import LAYOUT_NAMES, PACKINGS, entry_bytes
from warmset.model.spec import CompressedEntry, IndexKey, KvHeads, Latent

HEADS = KvHeads(num_heads=8, key_size=128, value_size=128)
ONE_HEAD = KvHeads(num_heads=1, key_size=128, value_size=128)
UNEQUAL = KvHeads(num_heads=4, key_size=192, value_size=128)
LATENT = Latent(latent_size=512, rope_size=64)
INDEXED = Latent(latent_size=512, rope_size=64, sparse=True)
COMPRESSED = CompressedEntry(size=512, rope_size=64)
INDEX_KEY = IndexKey(size=128, default_format="fp8_scaled")


@pytest.mark.parametrize(
    ("entry", "layout", "num_bytes"),
    [
        (HEADS, "bf16", 4096),
        (HEADS, "fp16", 4096),
        (HEADS, "fp32", 8192),
        (HEADS, "fp8", 2048),
        (HEADS, "int8", 2048),
        # vLLM 0.33.0 v1/kv_cache_interface.py: an fp32 scale for each head's key and each head's value.
        (HEADS, "fp8_per_token_head", 2048 + 8 * 2 * 4),
        (HEADS, "int8_per_token_head", 2048 + 8 * 2 * 4),
        (HEADS, "int4_per_token_head", 1024 + 8 * 2 * 4),
        # The same: half a byte an element and a scale byte for 16 of them. 144 is 128 x 2 x 4.5 bits.
        (ONE_HEAD, "nvfp4", 144),
        (ONE_HEAD, "mxfp4", 144),  # SGLang 0.5.23 memory_pool.py: 16 elements a scale, where OCP has 32
        (ONE_HEAD, "mxfp8", 264),
        # llama.cpp ggml-common.h: blocks of 32 elements of 34, 24, 22, 20 and 18 bytes.
        (ONE_HEAD, "q8_0", 8 * 34),
        (ONE_HEAD, "q5_1", 8 * 24),
        (ONE_HEAD, "q5_0", 8 * 22),
        (ONE_HEAD, "q4_1", 8 * 20),
        (ONE_HEAD, "q4_0", 8 * 18),
        (ONE_HEAD, "iq4_nl", 8 * 18),
        (ONE_HEAD, "q8_0/q4_0", 4 * 34 + 4 * 18),
        (UNEQUAL, "bf16/q8_0", 4 * (192 * 2 + 4 * 34)),
        # transformers 5.24.0 cache_utils.py, QuantizedCache: a 16-bit scale and zero for 64 elements.
        (ONE_HEAD, "kivi4", 2 * (64 + 2 * 4)),
        (ONE_HEAD, "kivi2", 2 * (32 + 2 * 4)),  # 2.5 bits an element
        (UNEQUAL, "bf16", 2560),  # MiMo-V2-Flash, full layers
        (LATENT, "bf16", 1152),  # arXiv 2412.19437: 512 + 64 elements
        (LATENT, "fp8", 576),  # SGLang's trtllm and tilelang backends, vLLM's dense ones
        (INDEXED, "bf16", 1152),
        (INDEXED, "fp8", 656),  # deepseek-ai/FlashMLA: 512 in fp8, four fp32 scales, 64 in bf16
        (LATENT, "fp8_ds_mla", 656),
        (LATENT, "nvfp4_ds_mla", 352),  # vLLM 0.33.0: 256 + 32 scales + 64 in fp8
        (COMPRESSED, "bf16", 1024),
        (COMPRESSED, "fp8", 584),  # vLLM 0.33.0: 448 in fp8, 64 in bf16, 8 bytes of scales
        (COMPRESSED, "fp8_ds_mla", 584),
        (INDEX_KEY, "bf16", 132),  # DeepSeek-V3.2-Exp: fp8 and an fp32 scale whatever the main cache has
        (INDEX_KEY, "fp8", 132),
        (IndexKey(size=128, default_format="bf16"), "fp8", 256),
        (IndexKey(size=128, default_format="as_kv"), "fp8", 128),
        (IndexKey(size=128, default_format="as_kv"), "fp8_ds_mla", 256),
    ],
    ids=str,
)
def test_bytes_of_an_entry(entry, layout, num_bytes):
    size = entry_bytes(entry, kv_layout(layout))
    assert type(size) is int
    assert size == num_bytes


@pytest.mark.parametrize(("index", "num_bytes"), [("fp8", 132), ("bf16", 256), ("mxfp4", 68)])
def test_index_keys_set_apart(index, num_bytes):
    # SGLang 0.5.23 and vLLM 0.33.0: 132, 256 and 68 bytes.
    assert entry_bytes(INDEX_KEY, kv_layout("bf16", index)) == num_bytes


@pytest.mark.parametrize("layout", PACKINGS)
@pytest.mark.parametrize("num_elements", [1, 7, 31, 33, 72, 80, 100])
def test_a_group_that_is_begun_is_paid_in_full(layout, num_elements):
    packing = PACKINGS[layout]
    size = packing.vector_size_bytes(num_elements)
    assert type(size) is int
    assert size * 8 >= num_elements * packing.bits
    assert size <= packing.vector_size_bytes(num_elements + 1)


def test_the_newest_tokens_stay_in_16_bits():
    # transformers 5.24.0 QuantizedCache: the last 128 tokens are not quantised.
    spec, layout = load_model("Meta-Llama-3.1-8B"), kv_layout("kivi2")
    assert layout.residual_tokens == 128
    per_token = 32 * 8 * 2 * 40  # layers, KV heads, key and value, bytes
    assert growth_bytes_per_token(spec, layout) == per_token
    assert sequence_bytes(spec, 100, layout) == 100 * 131_072
    assert sequence_bytes(spec, 128, layout) == 128 * 131_072
    assert sequence_bytes(spec, 4096, layout) == 128 * 131_072 + (4096 - 128) * per_token


def test_a_lower_tier_may_store_another_layout():
    spec = load_model("Qwen3-8B")
    fp8, bf16 = (cached_prefix_bytes(spec, 1000, kv_layout(name)) for name in ("fp8", "bf16"))
    assert 2 * fp8 == bf16 == 1000 * 147_456


def test_fp8_leaves_states_alone():
    spec = load_model("Qwen3.5-27B")
    bf16, fp8 = (kv_bytes(spec, kv_layout(name)) for name in ("bf16", "fp8"))
    assert bf16.growth_bytes_per_token == 2 * fp8.growth_bytes_per_token
    assert bf16.state_bytes_per_sequence == fp8.state_bytes_per_sequence == 153_944_064


def test_names():
    assert kv_layout("fp8").name == "fp8"
    assert kv_layout("q8_0/q4_0").name == "q8_0/q4_0"
    assert kv_layout("q8_0/q8_0") == kv_layout("q8_0")
    assert kv_layout("bf16", "mxfp4") != kv_layout("bf16")
    for name in LAYOUT_NAMES:
        assert kv_layout(name).name == name


@pytest.mark.parametrize(
    ("name", "index", "words"),
    [
        ("fp7", None, "KV layout 'fp7' is not known: choose one of bf16, fp16"),
        ("", None, "KV layout '' is not known"),
        ("BF16", None, "KV layout 'BF16' is not known"),
        ("bf16/fp7", None, "KV layout 'fp7' is not known"),
        ("bf16/fp8/fp8", None, "KV layout 'fp8/fp8' is not known"),
        ("fp8_ds_mla/fp8", None, "a latent is one vector"),
        ("bf16", "q8_0", "index layout 'q8_0' is not known: choose one of fp8, bf16, mxfp4"),
    ],
)
def test_names_that_are_not_known(name, index, words):
    with pytest.raises(InputError, match=words) as error:
        kv_layout(name, index)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("entry", "layout", "words"),
    [
        (HEADS, "fp8_ds_mla", "fp8_ds_mla stores latents"),
        (HEADS, "nvfp4_ds_mla", "nvfp4_ds_mla stores latents"),
        (LATENT, "q8_0/q4_0", "a latent is one vector"),
        (LATENT, "kivi2", "kivi2 is defined for keys and values of heads"),
        (LATENT, "fp8_per_token_head", "defined for keys and values of heads"),
        (COMPRESSED, "int4_per_token_head", "defined for keys and values of heads"),
        (COMPRESSED, "nvfp4_ds_mla", "nvfp4_ds_mla is not defined for compressed entries"),
    ],
    ids=str,
)
def test_layouts_that_an_entry_does_not_have(entry, layout, words):
    with pytest.raises(InputError, match=words) as error:
        entry_bytes(entry, kv_layout(layout))
    assert "\n" not in str(error.value)
