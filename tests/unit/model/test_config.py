import json

import msgspec
import pytest

from tests.support.configs import LLAMA, without
from warmset.errors import InputError, ScenarioError
from warmset.model import growth_bytes_per_token, kv_bytes, kv_layout, load_model, resolve_config
from warmset.model.spec import KvHeads, Latent

BF16 = kv_layout("bf16")
LATENT = {
    "model_type": "deepseek_v3",
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "head_dim": 72,
    "kv_lora_rank": 16,
    "q_lora_rank": None,
    "qk_rope_head_dim": 4,
    "qk_nope_head_dim": 8,
    "v_head_dim": 8,
    "intermediate_size": 128,
    "vocab_size": 100,
}
FALCON = {
    "model_type": "falcon",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 8,
    "vocab_size": 100,
}
LINEAR = {
    "num_heads": 2,
    "head_dim": 8,
    "short_conv_kernel_size": 4,
}
KIMI = LATENT | {"model_type": "kimi_linear", "linear_attn_config": LINEAR | {"full_attn_layers": [4]}}


def resolved(config):
    return resolve_config(config, "m")


def model_of(config):
    """Without the record of which field said what."""
    return msgspec.structs.replace(resolved(config), fields_read=())


def growth(config):
    return growth_bytes_per_token(resolved(config), BF16)


def entries(config):
    """The first entry of each layer, or None of a layer that keeps none."""
    return [layer.caches[0].entry if layer.caches else None for layer in resolved(config).layers]


def reaches(config):
    """How far each layer sees: `full`, `sliding`, ... or a dash."""
    return [layer.caches[0].reach if layer.caches else "-" for layer in resolved(config).layers]


def test_grouped_queries():
    spec = resolved(LLAMA)
    assert spec.cache_class == "GQA"
    assert entries(LLAMA) == 2 * [KvHeads(num_heads=2, key_size=8, value_size=8)]
    assert growth(LLAMA) == 2 * 2 * 2 * 8 * 2


def test_a_latent_ignores_the_decoys():
    spec = resolved(LATENT)
    assert spec.cache_class == "MLA"
    assert entries(LATENT) == 4 * [Latent(latent_size=16, rope_size=4)]
    assert growth(LATENT) == 4 * (16 + 4) * 2


@pytest.mark.parametrize(
    "field",
    ["num_hidden_layers", "n_layer", "n_layers", "num_layers", "decoder_layers"],
)
def test_names_of_the_number_of_layers(field):
    assert resolved(without(LLAMA, "num_hidden_layers") | {field: 5}).num_layers == 5


@pytest.mark.parametrize(
    ("lists", "num_layers"),
    [
        ({"layer_types": 3 * ["full_attention"]}, 3),
        ({"model_type": "nemotron_h", "layers_block_type": ["attention", "mlp", "attention"]}, 3),
        ({"model_type": "nemotron_h", "hybrid_override_pattern": "*-*-"}, 4),
    ],
    ids=str,
)
def test_lists_may_stand_for_the_number_of_layers(lists, num_layers):
    assert resolved(without(LLAMA, "num_hidden_layers") | lists).num_layers == num_layers


@pytest.mark.parametrize(
    "field",
    ["num_attention_heads", "n_head", "n_heads", "num_heads", "decoder_attention_heads"],
)
def test_names_of_the_number_of_heads(field):
    spec = resolved(without(LLAMA, "num_attention_heads") | {field: 4})
    assert spec.layers[0].mixers[0].attentions[0].num_heads == 4


@pytest.mark.parametrize(
    "fields",
    [
        {"num_key_value_heads": 4},
        {"n_head_kv": 4},
        {"num_kv_heads": 4},
        {"num_attention_groups": 4},
        {"attn_config": {"kv_n_heads": 4}},
    ],
    ids=str,
)
def test_names_of_the_number_of_kv_heads(fields):
    assert entries(without(LLAMA, "num_key_value_heads") | fields)[0].num_heads == 4


@pytest.mark.parametrize(
    "fields",
    [
        {"head_dim": 32},
        {"hidden_size_per_head": 32},
        {"attention_head_dim": 32},
        {"kv_channels": 32},
        {"attn_config": {"head_dim": 32}},
    ],
    ids=str,
)
def test_names_of_the_head_size(fields):
    assert entries(LLAMA | fields)[0].key_size == 32


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("hidden_size", "n_embd"),
        ("hidden_size", "n_embed"),
        ("hidden_size", "d_model"),
        ("vocab_size", "padded_vocab_size"),
    ],
)
def test_other_names(old, new):
    assert model_of(without(LLAMA, old) | {new: LLAMA[old]}) == model_of(LLAMA)


@pytest.mark.parametrize(
    "wrapped",
    [
        {"text_config": LLAMA},
        {"llm_config": LLAMA},
        {"language_config": LLAMA},
        {"thinker_config": {"text_config": LLAMA}},
        {"model_type": "llava", "text_config": LLAMA, "num_hidden_layers": 99},
    ],
    ids=lambda config: next(iter(config)),
)
def test_a_language_model_inside(wrapped):
    assert model_of(wrapped) == model_of(LLAMA)


@pytest.mark.parametrize(
    ("config", "num_kv_heads"),
    [
        pytest.param(without(LLAMA, "num_key_value_heads"), 8, id="llama without the field is MHA"),
        pytest.param(LLAMA | {"kv_lora_rank": None}, 2, id="kv_lora_rank null is no latent"),
        pytest.param(LLAMA | {"cla_share_factor": 2}, 2, id="cla factor without the switch"),
        pytest.param(FALCON | {"num_kv_heads": 8, "multi_query": True}, 1, id="old falcon has one"),
        pytest.param(FALCON | {"num_kv_heads": 8}, 1, id="falcon is multi-query by default"),
        pytest.param(FALCON | {"multi_query": False}, 8, id="falcon with multi-query off"),
        pytest.param(
            FALCON | {"num_kv_heads": 2, "multi_query": True, "new_decoder_architecture": True},
            2,
            id="new falcon counts its KV heads",
        ),
        pytest.param(
            FALCON | {"model_type": "RefinedWeb", "n_head_kv": 2, "multi_query": True}, 2, id="RefinedWeb"
        ),
        pytest.param(
            FALCON | {"model_type": "RefinedWebModel", "multi_query": True}, 1, id="RefinedWebModel"
        ),
        pytest.param(FALCON | {"model_type": "gpt_bigcode"}, 1, id="gpt_bigcode is multi-query by default"),
        pytest.param(FALCON | {"model_type": "gpt_bigcode", "multi_query": False}, 8, id="gpt_bigcode off"),
        pytest.param(
            FALCON | {"model_type": "mpt", "attn_config": {"attn_type": "multiquery_attention"}}, 1, id="mpt"
        ),
        pytest.param(
            LLAMA | {"model_type": "chatglm", "multi_query_attention": True, "multi_query_group_num": 4},
            4,
            id="chatglm groups",
        ),
        pytest.param(LLAMA | {"model_type": "chatglm"}, 8, id="chatglm without groups"),
        pytest.param(
            without(LLAMA, "model_type") | {"architectures": ["LlamaForCausalLM"]}, 2, id="architectures only"
        ),
        pytest.param(LLAMA | {"model_type": "new"}, 2, id="an unknown type that is plain"),
    ],
)
def test_kv_heads(config, num_kv_heads):
    assert [entry.num_heads for entry in entries(config)] == 2 * [num_kv_heads]


@pytest.mark.parametrize(
    ("config", "head_size"),
    [
        (LLAMA | {"head_dim": 0}, 8),
        (LLAMA | {"head_dim": None}, 8),
        (LLAMA | {"head_dim": 128}, 128),  # as Qwen3-0.6B: not hidden size over heads
        (LLAMA | {"model_type": "gemma"}, 256),
        (LLAMA | {"model_type": "qwen3"}, 128),
        (LLAMA | {"model_type": "gpt_oss", "sliding_window": 128}, 64),
        (LLAMA | {"model_type": "minimax_m2"}, 128),
    ],
)
def test_head_size(config, head_size):
    assert {(entry.key_size, entry.value_size) for entry in entries(config)} == {(head_size, head_size)}


# Traps of published configs, one test each.


def test_a_sparse_config_has_the_defaults_of_its_class():
    # gemma-3-4b-it leaves out heads, KV heads, head size and the pattern: 8, 4, 256 and every sixth layer.
    text = {
        "model_type": "gemma3_text",
        "hidden_size": 2560,
        "intermediate_size": 10240,
        "num_hidden_layers": 34,
        "sliding_window": 1024,
    }
    config = {"model_type": "gemma3", "text_config": text}
    assert set(entries(config)) == {KvHeads(num_heads=4, key_size=256, value_size=256)}
    assert reaches(config)[:7] == 5 * ["sliding"] + ["full", "sliding"]
    assert growth(config) == 20_480  # llama.cpp: 2560 MiB at 131,072 tokens (ollama PR#17037)
    assert resolved(config).vocab_size == 262_208


def test_a_window_that_is_switched_off():
    # Qwen2.5-72B has sliding_window=131072 and use_sliding_window=false.
    windowed = LLAMA | {"model_type": "qwen2", "sliding_window": 128}
    assert growth(windowed | {"use_sliding_window": False}) == growth(windowed) == 128
    on = windowed | {"use_sliding_window": True}
    assert reaches(on) == 2 * ["full"]  # max_window_layers is 28 where configuration_qwen2.py is not told
    on |= {"max_window_layers": 0}
    assert (growth(on), kv_bytes(resolved(on), BF16).windows) == (0, {128: 128})
    assert reaches(on | {"max_window_layers": 1}) == ["full", "sliding"]


def test_a_window_that_no_sequence_exceeds():
    # Phi-4-mini: sliding_window=262144, max_position_embeddings=131072.
    windowed = LLAMA | {"model_type": "phi3", "sliding_window": 4095}
    assert reaches(windowed) == 2 * ["sliding"]
    assert reaches(windowed | {"sliding_window": 4096}) == 2 * ["full"]


def test_a_share_factor_without_its_switch():
    # Hunyuan-7B has cla_share_factor=2 and no use_cla.
    hunyuan = LLAMA | {"model_type": "hunyuan", "cla_share_factor": 2, "num_hidden_layers": 5}
    assert growth(hunyuan) == 5 * 64
    assert growth(hunyuan | {"use_cla": False}) == 5 * 64
    shared = hunyuan | {"use_cla": True}
    assert [entry is not None for entry in entries(shared)] == [True, False, True, False, True]
    assert growth(hunyuan | {"model_type": "llama"}) == 5 * 64


def test_a_chunk_size_that_is_not_one():
    # MiMo-V2-Flash has attention_chunk_size=128 beside its sliding window.
    mimo = LLAMA | {
        "model_type": "mimo_v2_flash",
        "hybrid_layer_pattern": [0, 1],
        "sliding_window": 32,
        "attention_chunk_size": 128,
        "head_dim": 12,
        "v_head_dim": 8,
        "swa_num_key_value_heads": 4,
        "swa_head_dim": 10,
        "swa_v_head_dim": 6,
    }
    assert reaches(mimo) == ["full", "sliding"]
    assert entries(mimo) == [
        KvHeads(num_heads=2, key_size=12, value_size=8),
        KvHeads(num_heads=4, key_size=10, value_size=6),
    ]
    assert kv_bytes(resolved(mimo), BF16).windows == {32: 4 * 16 * 2}


def test_a_latent_rank_of_null_is_no_latent():
    # Hunyuan-7B has kv_lora_rank=null; DeepSeek's first models have use_mla=false.
    assert growth(LLAMA | {"kv_lora_rank": None}) == 128
    off = LATENT | {"model_type": "deepseek_v2", "use_mla": False, "kv_lora_rank": None, "v_head_dim": 0}
    assert entries(off) == 4 * [KvHeads(num_heads=8, key_size=72, value_size=72)]


@pytest.mark.parametrize("config", [LATENT, KIMI], ids=["deepseek_v3", "kimi_linear"])
def test_decoys_of_latent_models(config):
    # Kimi-Linear: head_dim=72 and num_key_value_heads=32 are not used.
    for decoys in ({}, {"head_dim": 72, "num_key_value_heads": 3}, {"head_dim": 0, "num_key_value_heads": 0}):
        assert growth(config | decoys) == growth(config)


def test_layers_counted_from_one_and_from_nought():
    # Kimi-Linear and Kimi-K3 list full_attn_layers from 1, GLM-5.3-Flash from 0.
    assert reaches(KIMI) == ["-", "-", "-", "full"]
    glm = KIMI | {"model_type": "glm5_next_text", "linear_attn_config": LINEAR | {"full_attn_layers": [3]}}
    assert reaches(glm) == ["-", "-", "-", "full"]


def test_layers_counted_in_pairs():
    # LongCat-Flash has 28 double layers and 56 latents.
    longcat = without(LATENT, "num_hidden_layers") | {"model_type": "longcat_flash", "num_layers": 28}
    longcat |= {"n_routed_experts": 4, "moe_topk": 2, "expert_ffn_hidden_size": 32, "ffn_hidden_size": 64}
    assert resolved(longcat).num_layers == 56
    assert growth(longcat) == 56 * (16 + 4) * 2


def test_layers_that_read_the_cache_of_another():
    # Gemma 3n and 4 E: the last num_kv_shared_layers own none.
    gemma = LLAMA | {
        "model_type": "gemma4_text",
        "num_hidden_layers": 6,
        "sliding_window": 32,
        "layer_types": 2 * ["sliding_attention", "sliding_attention", "full_attention"],
        "num_kv_shared_layers": 2,
        "global_head_dim": 512,
    }
    assert reaches(gemma) == ["sliding", "sliding", "full", "sliding", "-", "-"]
    assert entries(gemma)[2] == KvHeads(num_heads=2, key_size=512, value_size=512)


def test_kv_heads_of_full_layers_only_where_keys_are_values():
    # Gemma 4: num_global_key_value_heads counts with attention_k_eq_v alone; both are stored.
    gemma = LLAMA | {"model_type": "gemma4_text", "num_hidden_layers": 6, "sliding_window": 32}
    gemma |= {"global_head_dim": 512, "num_global_key_value_heads": 1}
    assert entries(gemma)[5] == KvHeads(num_heads=2, key_size=512, value_size=512)
    assert entries(gemma | {"attention_k_eq_v": True})[5] == KvHeads(
        num_heads=1, key_size=512, value_size=512
    )


def test_an_index_that_some_layers_take_over():
    # GLM-5.2: `shared` layers own no index keys. DeepSeek-V3.2 has one on every layer.
    sparse = LATENT | {"model_type": "glm_moe_dsa", "index_topk": 8, "index_head_dim": 16, "index_n_heads": 2}
    assert growth(sparse) == 4 * (40 + 20)
    assert growth(sparse | {"indexer_types": ["full", "full", "full", "shared"]}) == 4 * 40 + 3 * 20
    by_frequency = {"index_topk_freq": 2, "index_skip_topk_offset": 1}
    assert growth(sparse | by_frequency) == 4 * 40 + 2 * 20


@pytest.mark.parametrize(
    ("fields", "tokens"),
    [
        ({}, 4096),
        ({"max_position_embeddings": None}, None),
        ({"n_positions": 2048}, 2048),
        ({"rope_scaling": None}, 4096),
        ({"rope_scaling": {"type": "linear", "factor": 2.0}}, 8192),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, 4096),
        ({"rope_scaling": {"type": "longrope", "long_factor": [1]}}, 4096),
        ({"rope_scaling": {"type": "dynamic", "alpha": 1000}}, 4096),
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}, 4096),
        ({"rope_scaling": {"type": "yarn", "factor": 4, "original_max_position_embeddings": 2048}}, 8192),
        ({"rope_scaling": {"type": "yarn", "factor": 4}}, 16384),
        ({"model_type": "cohere", "model_max_length": 131072}, 131072),
    ],
    ids=str,
)
def test_longest_context(fields, tokens):
    assert resolved(LLAMA | fields).max_context_tokens == tokens


@pytest.mark.parametrize(
    ("section", "bits"),
    [
        # compressed-tensors, ModelOpt
        ({"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}, 8),
        ({"quant_method": "modelopt", "kv_cache_quant_algo": "FP8"}, 8),
        ({"quant_method": "modelopt", "kv_cache_quant_algo": "NVFP4"}, 4),
        ({"quant_method": "fp8"}, None),
        ({"quant_method": "fp8", "kv_cache_scheme": None}, None),
    ],
    ids=str,
)
def test_cached_elements_as_the_checkpoint_has_them(section, bits):
    quantization = resolved(LLAMA | {"quantization_config": section}).quantization
    assert (quantization.method, quantization.kv_cache_bits) == (section["quant_method"], bits)


def test_format_and_quantization_may_stand_at_either_level():
    quantized = {"quantization_config": {"quant_method": "modelopt", "kv_cache_quant_algo": "FP8"}}
    outer = resolved({"text_config": LLAMA, "torch_dtype": "bfloat16", **quantized})
    inner = resolved({"text_config": LLAMA | {"dtype": "bfloat16"} | quantized})
    for spec in (outer, inner):
        assert (spec.dtype_bits, spec.quantization.method, spec.quantization.kv_cache_bits) == (
            16,
            "modelopt",
            8,
        )
    plain = resolved(LLAMA)
    assert (plain.dtype_bits, plain.quantization) == (None, None)


def test_tied_embeddings():
    assert not resolved(LLAMA).tied_embeddings
    assert resolved(LLAMA | {"model_type": "gemma"}).tied_embeddings
    assert resolved({"text_config": LLAMA, "tie_word_embeddings": True}).tied_embeddings
    outer_and_inner = {"text_config": LLAMA | {"tie_word_embeddings": False}, "tie_word_embeddings": True}
    assert not resolved(outer_and_inner).tied_embeddings


def test_a_file_and_a_folder(tmp_path):
    folder = tmp_path / "My-Model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA))
    assert (
        load_model(str(folder))
        == load_model(str(folder / "config.json"))
        == resolve_config(LLAMA, "My-Model")
    )
    (tmp_path / "other.json").write_text(json.dumps(LLAMA))
    assert load_model(str(tmp_path / "other.json")).name == "other"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "there is no such file"),
        (b"[1, 2]", "holds no JSON object"),
        (b"3", "holds no JSON object"),
        (b'{\n "a": 1,\n "b"\n}', "config.json:4: not JSON"),
        (b"", "config.json:1: not JSON"),
        (b"\xff\xfe{}", "UTF-8"),
        (b"[" * 100_000, "can be read"),
        (b'{"a": ' + b"9" * 5000 + b"}", "can be read"),
        (b" " * (4 * 2**20 + 1), "larger than 4 MiB"),
    ],
    ids=["none", "array", "number", "a comma missing", "empty", "not UTF-8", "deep", "long number", "large"],
)
def test_files_that_cannot_be_used(tmp_path, content, words):
    if content is not None:
        (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(InputError, match=words) as error:
        load_model(str(tmp_path))
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"missing\.json: there is no such file"):
        load_model(str(tmp_path / "missing.json"))


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("Qwen/Qwen3-235B-A22B", "Qwen/Qwen3-235B-A22B"),
        ("qwen/qwen3-235b-a22b", "Qwen/Qwen3-235B-A22B"),
        ("qwen3-235b-a22b", "Qwen/Qwen3-235B-A22B"),
        ("llama-3.1-8b", "meta-llama/Meta-Llama-3.1-8B"),
        ("deepseek-v3", "deepseek-ai/DeepSeek-V3"),
        ("mixtral 8x7b", "mistralai/Mixtral-8x7B-v0.1"),
    ],
)
def test_names_of_shipped_models(name, model):
    assert load_model(name).name == model


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Qwen3-235B", None),
        ("Llama-3.1-70B", "could be meta-llama/Meta-Llama-3.1-70B or nvidia/Llama-3.1-70B-Instruct-FP8"),
        ("Qwen3-2", "did you mean .*Qwen/Qwen3-"),
        ("Meta-Lama-3.1-8B", "did you mean meta-llama/Meta-Llama-3.1-8B"),
        ("org/nothing-like-it", "is not known: .* did you mean"),
        pytest.param("x" * 5000, "is not known", id="long"),
        ("a\0b", "is not known"),
    ],
)
def test_names_that_do_not_say_which(name, words):
    if words is None:
        assert load_model(name).name == "Qwen/Qwen3-235B-A22B"
        return
    with pytest.raises(ScenarioError, match=words) as error:
        load_model(name)
    assert "\n" not in str(error.value)
