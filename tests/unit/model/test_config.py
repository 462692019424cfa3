import json

import pytest

from warmset.errors import InputError, ScenarioError, UnsupportedModelError
from warmset.model import growth_bytes_per_token, load_model, resolve_config

LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 100,
    "max_position_embeddings": 4096,
}
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


def without(config, *keys):
    return {key: value for key, value in config.items() if key not in keys}


def test_grouped_queries():
    spec = resolve_config(LLAMA, "m")
    assert (spec.cache_class, spec.num_kv_heads, spec.key_head_size) == ("GQA", 2, 8)
    assert growth_bytes_per_token(spec, "bf16") == 2 * 2 * 2 * 8 * 2


def test_a_latent_ignores_the_decoys():
    spec = resolve_config(LATENT, "m")
    assert (spec.cache_class, spec.num_kv_heads, spec.key_head_size, spec.value_head_size) == (
        "MLA",
        1,
        12,
        8,
    )
    assert growth_bytes_per_token(spec, "bf16") == 4 * (16 + 4) * 2


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
            LATENT | {"model_type": "deepseek_v2", "use_mla": False, "kv_lora_rank": None, "v_head_dim": 0},
            8,
            id="deepseek with the latent off",
        ),
        pytest.param({"model_type": "gemma3_wrapper", "text_config": LLAMA}, 2, id="nested"),
        pytest.param({"thinker_config": {"text_config": LLAMA}}, 2, id="nested twice"),
        pytest.param(
            without(LLAMA, "model_type") | {"architectures": ["LlamaForCausalLM"]}, 2, id="architectures only"
        ),
        pytest.param(LLAMA | {"model_type": "new"}, 2, id="an unknown type that is plain"),
    ],
)
def test_kv_heads(config, num_kv_heads):
    assert resolve_config(config, "m").num_kv_heads == num_kv_heads


@pytest.mark.parametrize(
    ("config", "head_size"),
    [
        (LLAMA | {"head_dim": 0}, 8),
        (LLAMA | {"head_dim": None}, 8),
        (LLAMA | {"head_dim": 128}, 128),
        (LLAMA | {"attention_head_dim": 32}, 32),
        (LLAMA | {"kv_channels": 16}, 16),
        (LLAMA | {"model_type": "gemma"}, 256),
        (LLAMA | {"model_type": "qwen3"}, 128),
    ],
)
def test_head_size(config, head_size):
    assert resolve_config(config, "m").key_head_size == head_size


@pytest.mark.parametrize(
    "fields",
    [
        {"sliding_window": None},
        {"sliding_window": 4096},
        {"sliding_window": 128, "use_sliding_window": False},
        {"sliding_window": 128, "model_type": "qwen2"},
        {"sliding_window": None, "sliding_window_pattern": 4},
        {"attn_config": {"sliding_window_size": -1}},
        {"layer_types": ["full_attention", "full_attention"]},
        {"attn_type_list": [1, 1]},
        {"num_kv_shared_layers": 0},
        {"is_encoder_decoder": False, "cross_attention_hidden_size": None},
        {"index_topk": None},
        {"mtp_layer_types": ["sliding_attention"]},
    ],
    ids=str,
)
def test_what_is_off_does_not_count(fields):
    assert growth_bytes_per_token(resolve_config(LLAMA | fields, "m"), "bf16") == 128


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"sliding_window": 4095}, r"sliding-window layers \(sliding_window=4095\)"),
        ({"sliding_window": 128, "model_type": "qwen2", "use_sliding_window": True}, "sliding-window"),
        ({"sliding_window": 9999, "max_position_embeddings": None}, "sliding-window"),
        ({"model_type": "mistral"}, "sliding_window=4096, the default of mistral"),
        ({"attn_config": {"sliding_window_size": 128}}, r"attn_config\.sliding_window_size=128"),
        ({"model_type": "gemma2"}, r"sliding-window layers \(model_type=gemma2\)"),
        ({"model_type": "gemma3_text"}, r"sliding-window layers \(model_type=gemma3_text\)"),
        ({"layer_types": ["full_attention", "ring"]}, "layer_types: 1 of 2 are ring"),
        ({"model_type": "new", "attention_chunk_size": 64}, "chunked-local"),
        ({"model_type": "new", "ssm_state_size": 16}, "recurrent-state"),
        ({"model_type": "new", "rwkv_version": 7}, "recurrent-state"),
        ({"model_type": "new", "linear_num_value_heads": 16}, "linear-attention"),
        ({"model_type": "new", "conv_L_cache": 3}, "short-convolution"),
        ({"model_type": "new", "index_topk": 16}, "sparse-attention"),
        ({"model_type": "new", "compress_ratios": [0, 4]}, "compressed KV"),
        ({"model_type": "new", "kv_source_layer_ids": [2]}, "share another layer's KV"),
        ({"use_cla": True, "cla_share_factor": 2}, "share another layer's KV .*cla_share_factor=2"),
        ({"model_type": "new", "cross_attention_layers": [1]}, "cross-attention"),
        ({"is_encoder_decoder": True}, "encoder-decoder"),
        ({"model_type": "new", "per_layer_config": [{}]}, "different attention"),
        ({"model_type": "new", "num_loops": 3}, "different attention"),
        ({"model_type": "new", "kv_lora_rank": 16}, "latents of an unknown kind"),
        ({"head_dim": 16, "v_head_dim": 8}, "different sizes .*v_head_dim=8"),
        ({"attn_output_gate": True}, "output gates"),
        ({"num_key_value_heads": [2, 4]}, "layers that differ in num_key_value_heads"),
        ({"model_type": None}, "no model_type"),
        ({"model_type": None, "architectures": ["NewForCausalLM"]}, "no model_type"),
    ],
    ids=str,
)
def test_what_is_not_sized_is_refused_by_name(fields, words):
    with pytest.raises(UnsupportedModelError, match=f"^org/m: .*{words}"):
        resolve_config(LLAMA | fields, "org/m")


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (without(LLAMA, "num_hidden_layers"), "no num_hidden_layers"),
        (without(LLAMA, "hidden_size"), "no hidden_size"),
        (without(LLAMA, "num_attention_heads"), "no num_attention_heads"),
        (without(LLAMA, "vocab_size"), "no vocab_size"),
        (without(LLAMA, "intermediate_size"), "no intermediate_size"),
        (without(LATENT, "kv_lora_rank"), "no kv_lora_rank"),
        (without(LATENT, "qk_rope_head_dim"), "no qk_rope_head_dim"),
        (
            without(LLAMA, "num_key_value_heads") | {"model_type": "mixtral"},
            "model_type=mixtral does not mean one",
        ),
        (
            without(LLAMA, "num_key_value_heads") | {"model_type": "new"},
            "no num_key_value_heads, and model_type=new",
        ),
        (LLAMA | {"num_hidden_layers": 0}, "num_hidden_layers=0 is not positive"),
        (LLAMA | {"num_hidden_layers": 10**7}, "layers are more than any model has"),
        (LLAMA | {"hidden_size": True}, "hidden_size=True is not a whole number"),
        (LLAMA | {"hidden_size": "64"}, "hidden_size='64' is not a whole number"),
        (LLAMA | {"num_key_value_heads": 3}, "8 heads cannot share 3 KV heads"),
        (LLAMA | {"num_key_value_heads": 0}, "8 heads cannot share 0 KV heads"),
        (LLAMA | {"hidden_size": 65}, "no head_dim"),
        (LLAMA | {"use_sliding_window": 1}, "neither true nor false"),
        (LLAMA | {"rope_scaling": 4}, "rope_scaling=4 is not a JSON object"),
        (LLAMA | {"rope_scaling": {"type": "linear", "factor": float("nan")}}, "factor of nan"),
        (LLAMA | {"attn_config": 4}, "attn_config=4 is not a JSON object"),
        (LLAMA | {"text_config": 4}, "text_config=4 is not a JSON object"),
        (LLAMA | {"quantization_config": 4}, "quantization_config=4 is not a JSON object"),
        (LLAMA | {"num_local_experts": 4}, "no num_experts_per_tok"),
        (LLAMA | {"num_local_experts": 4, "num_experts_per_tok": 5}, "cannot choose 5 of 4"),
        ([LLAMA], "not a JSON object but an array"),
        (7, "not a JSON object but a number"),
        (None, "not a JSON object but null"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_missing_or_impossible_is_named(config, words):
    with pytest.raises(InputError, match=f"^m: .*{words}"):
        resolve_config(config, "m")


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
    assert resolve_config(LLAMA | fields, "m").max_context_tokens == tokens


def test_an_encoder_beside_the_language_model():
    with pytest.raises(UnsupportedModelError, match=r"encoder-decoder caches \(is_encoder_decoder=true\)"):
        resolve_config({"text_config": LLAMA, "is_encoder_decoder": True}, "m")


def test_format_and_quantization_may_stand_at_either_level():
    quantized = {"quantization_config": {"quant_method": "modelopt", "kv_cache_quant_algo": "FP8"}}
    outer = resolve_config({"text_config": LLAMA, "torch_dtype": "bfloat16", **quantized}, "m")
    inner = resolve_config({"text_config": LLAMA | {"dtype": "bfloat16"} | quantized}, "m")
    for spec in (outer, inner):
        assert (spec.dtype_bits, spec.quantization_method, spec.kv_cache_bits) == (16, "modelopt", 8)
    scheme = {"quant_method": "compressed-tensors", "kv_cache_scheme": {"num_bits": 8, "type": "float"}}
    assert resolve_config(LLAMA | {"quantization_config": scheme}, "m").kv_cache_bits == 8
    plain = resolve_config(LLAMA, "m")
    assert (plain.dtype_bits, plain.quantization_method, plain.kv_cache_bits) == (None, None, None)


def test_tied_embeddings():
    assert not resolve_config(LLAMA, "m").tied_embeddings
    assert resolve_config(LLAMA | {"model_type": "gemma"}, "m").tied_embeddings
    assert resolve_config({"text_config": LLAMA, "tie_word_embeddings": True}, "m").tied_embeddings


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
