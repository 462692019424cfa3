"""What is not understood or impossible: one line that names the model and the field."""

import copy
import json

import pytest

from tests.support.configs import LLAMA, without
from warmset.errors import InputError, UnsupportedModelError
from warmset.model import growth_bytes_per_token, kv_layout, resolve_config, shipped_models

PATHS = {shipped.model: shipped.path for shipped in shipped_models()}


def shipped(model, **changes):
    """A shipped config with fields of its language model changed, or removed where the change is `...`."""
    config = json.loads(PATHS[model].read_text(encoding="utf-8"))
    fields = config.get("text_config", config)
    fields.update(changes)
    for key in [key for key, value in changes.items() if value is ...]:
        del fields[key]
    return config


def refusal(config, kind=InputError):
    with pytest.raises(kind) as error:
        resolve_config(config, "org/m")
    message = str(error.value)
    assert message.startswith("org/m: ")
    assert len(message.splitlines()) == 1
    return message


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
    spec = resolve_config(LLAMA | fields, "m")
    assert growth_bytes_per_token(spec, kv_layout("bf16")) == 128


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"sliding_window": 4095}, "sliding-window layers (sliding_window=4095)"),
        (
            {"sliding_window": 9999, "max_position_embeddings": None},
            "sliding-window layers (sliding_window=9999)",
        ),
        ({"attn_config": {"sliding_window_size": 128}}, "(attn_config.sliding_window_size=128)"),
        ({"layer_types": ["full_attention", "ring"]}, "layer_types has 'ring'"),
        ({"layer_types": ["full_attention", "sliding_attention"]}, "layer_types has 'sliding_attention'"),
        ({"model_type": "new", "layer_types": ["full_attention", "ring"]}, "layer_types: 1 of 2 are ring"),
        ({"model_type": "new", "layer_types": ["mamba", "mamba"]}, "layer_types: 2 of 2 are mamba"),
        (
            {"model_type": "new", "attention_chunk_size": 64},
            "chunked-local attention layers (attention_chunk_size=64)",
        ),
        ({"model_type": "new", "ssm_state_size": 16}, "recurrent-state layers (ssm_state_size=16)"),
        ({"model_type": "new", "rwkv_version": 7}, "recurrent-state layers (rwkv_version=7)"),
        (
            {"model_type": "new", "linear_num_value_heads": 16},
            "linear-attention layers (linear_num_value_heads=16)",
        ),
        ({"model_type": "new", "conv_L_cache": 3}, "short-convolution layers (conv_L_cache=3)"),
        (
            {"model_type": "new", "index_topk": 16},
            "sparse-attention layers with an index cache (index_topk=16)",
        ),
        ({"index_topk": 16}, "sparse-attention layers with an index cache (index_topk=16)"),
        (
            {"model_type": "new", "compress_ratios": [0, 4]},
            "compressed KV entries (compress_ratios=[2 values])",
        ),
        (
            {"model_type": "new", "kv_source_layer_ids": [2]},
            "another layer's KV (kv_source_layer_ids=[1 values])",
        ),
        ({"use_cla": True, "cla_share_factor": 2}, "another layer's KV (use_cla=true, cla_share_factor=2)"),
        (
            {"model_type": "new", "cross_attention_layers": [1]},
            "cross-attention layers (cross_attention_layers=",
        ),
        ({"is_encoder_decoder": True}, "encoder-decoder caches (is_encoder_decoder=true)"),
        (
            {"model_type": "new", "per_layer_config": [{}]},
            "different attention (per_layer_config=[1 values])",
        ),
        ({"model_type": "new", "num_loops": 3}, "different attention (num_loops=3)"),
        ({"model_type": "new", "kv_lora_rank": 16}, "latents of an unknown kind (kv_lora_rank=16)"),
        ({"head_dim": 16, "v_head_dim": 8}, "keys and values of different sizes (head_dim=16, v_head_dim=8)"),
        ({"attn_output_gate": True}, "attention output gates (attn_output_gate=true)"),
        ({"num_key_value_heads": [2, 4]}, "layers that differ in num_key_value_heads"),
        ({"model_type": None}, "no model_type"),
        ({"model_type": None, "architectures": ["NewForCausalLM"]}, "no model_type"),
        ({"model_type": "rwkv"}, "recurrent-state layers (model_type=rwkv)"),
        ({"model_type": "t5"}, "encoder-decoder caches (model_type=t5)"),
        (
            {"model_type": "mistral_large4"},
            "sparse-attention layers with an index cache (model_type=mistral_large4)",
        ),
        ({"model_type": "dots3_note"}, "sparse-attention layers with an index cache (model_type=dots3_note)"),
    ],
    ids=str,
)
def test_a_class_that_is_not_known_is_refused_with_its_field(fields, words):
    assert words in refusal(LLAMA | fields, UnsupportedModelError)


def test_an_encoder_beside_the_language_model():
    config = {"text_config": LLAMA, "is_encoder_decoder": True}
    assert "encoder-decoder caches (is_encoder_decoder=true)" in refusal(config, UnsupportedModelError)


def sized_or_refused(config):
    try:
        return resolve_config(config, "org/m")
    except InputError:
        return None


@pytest.mark.parametrize("model", PATHS)
def test_a_model_under_an_unknown_type_is_sized_the_same_or_refused(model):
    config = shipped(model)
    renamed = copy.deepcopy(config)
    for level in (renamed, renamed.get("text_config", renamed)):
        level["model_type"] = "unheard_of"
    expected = growth_bytes_per_token(resolve_config(config, model), kv_layout("bf16"))
    spec = sized_or_refused(renamed)
    assert spec is None or growth_bytes_per_token(spec, kv_layout("bf16")) == expected


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (without(LLAMA, "num_hidden_layers"), "no num_hidden_layers"),
        (without(LLAMA, "hidden_size"), "no hidden_size"),
        (without(LLAMA, "num_attention_heads"), "no num_attention_heads"),
        (without(LLAMA, "vocab_size"), "no vocab_size"),
        (without(LLAMA, "intermediate_size"), "no intermediate_size"),
        (shipped("deepseek-ai/DeepSeek-V3", kv_lora_rank=...), "no kv_lora_rank"),
        (shipped("deepseek-ai/DeepSeek-V3", qk_rope_head_dim=...), "no qk_rope_head_dim"),
        (shipped("deepseek-ai/DeepSeek-V3", v_head_dim=...), "no v_head_dim"),
        (shipped("deepseek-ai/DeepSeek-V3.2", index_head_dim=...), "no index_head_dim"),
        (shipped("deepseek-ai/DeepSeek-V4-Flash", compress_ratios=...), "no compress_ratios"),
        (shipped("deepseek-ai/DeepSeek-V4-Flash", sliding_window=...), "no sliding_window"),
        (shipped("google/gemma-3-27b-it", sliding_window=...), "sliding-window layers and no sliding_window"),
        (
            shipped("openai/gpt-oss-20b", sliding_window=...),
            "has sliding-window layers and no sliding_window",
        ),
        (
            shipped("meta-llama/Llama-4-Scout-17B-16E-Instruct", attention_chunk_size=...),
            "no attention_chunk_size",
        ),
        (shipped("openai/whisper-large-v3", max_source_positions=...), "no max_source_positions"),
        (
            without(LLAMA, "num_key_value_heads") | {"model_type": "mixtral"},
            "model_type=mixtral does not mean one",
        ),
        (
            without(LLAMA, "num_key_value_heads") | {"model_type": "new"},
            "no num_key_value_heads, and model_type=new",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_missing_is_named(config, words):
    assert words in refusal(config)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (LLAMA | {"num_hidden_layers": 0}, "num_hidden_layers=0"),
        (LLAMA | {"num_hidden_layers": -2}, "num_hidden_layers=-2"),
        (LLAMA | {"num_hidden_layers": 10**7}, "num_hidden_layers=10000000: a model has 1 to 10000 layers"),
        (LLAMA | {"hidden_size": 0}, "hidden_size=0 is not positive"),
        (LLAMA | {"hidden_size": True}, "hidden_size=True is not a whole number"),
        (LLAMA | {"hidden_size": "64"}, "hidden_size='64' is not a whole number"),
        (LLAMA | {"hidden_size": 64.0}, "hidden_size=64.0 is not a whole number"),
        (
            LLAMA | {"hidden_size": 10**30},
            "hidden_size=1000000000000000000000000000000 is not a whole number",
        ),
        (LLAMA | {"hidden_size": 65}, "no head_dim"),
        (LLAMA | {"num_attention_heads": -8}, "num_attention_heads=-8 is not positive"),
        (LLAMA | {"num_key_value_heads": 3}, "8 heads cannot share 3 KV heads"),
        (LLAMA | {"num_key_value_heads": 0}, "8 heads cannot share 0 KV heads"),
        (LLAMA | {"num_key_value_heads": -2}, "8 heads cannot share -2 KV heads"),
        (LLAMA | {"num_key_value_heads": 16}, "8 heads cannot share 16 KV heads"),
        (LLAMA | {"model_type": "mistral", "sliding_window": 0}, "sliding_window=0 is not positive"),
        (LLAMA | {"model_type": "mistral", "sliding_window": -1}, "sliding_window=-1 is not positive"),
        (LLAMA | {"model_type": "hunyuan", "use_cla": True, "cla_share_factor": -1}, "cla_share_factor=-1"),
        (LLAMA | {"use_sliding_window": 1}, "use_sliding_window=1 is neither true nor false"),
        (LLAMA | {"rope_scaling": 4}, "rope_scaling=4 is not a JSON object"),
        (LLAMA | {"rope_scaling": {"type": "linear", "factor": float("nan")}}, "factor of nan"),
        (LLAMA | {"attn_config": 4}, "attn_config=4 is not a JSON object"),
        (LLAMA | {"text_config": 4}, "text_config=4 is not a JSON object"),
        (LLAMA | {"quantization_config": 4}, "quantization_config=4 is not a JSON object"),
        (LLAMA | {"num_local_experts": 4}, "no num_experts_per_tok"),
        (LLAMA | {"num_local_experts": 4, "num_experts_per_tok": 5}, "cannot choose 5 of 4"),
        (shipped("deepseek-ai/DeepSeek-V3", qk_rope_head_dim=-1), "qk_rope_head_dim=-1 is negative"),
        (
            shipped("deepseek-ai/DeepSeek-V4-Flash", qk_rope_head_dim=513),
            "qk_rope_head_dim=513 is more than head_dim=512",
        ),
        (shipped("Qwen/Qwen3-Next-80B-A3B-Instruct", linear_num_key_heads=5), "does not divide"),
        ([LLAMA], "not a JSON object but an array"),
        (7, "not a JSON object but a number"),
        (None, "not a JSON object but null"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_impossible_is_named(config, words):
    assert words in refusal(config)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (LLAMA | {"layer_types": 3 * ["full_attention"]}, "list of layer kinds has 3 entries for 2 layers"),
        (
            shipped("openai/gpt-oss-20b", num_hidden_layers=23),
            "list of layer kinds has 24 entries for 23 layers",
        ),
        (
            shipped("nvidia/Nemotron-H-8B-Base-8K", hybrid_override_pattern="M*"),
            "has 2 entries for 52 layers",
        ),
        (
            shipped("XiaomiMiMo/MiMo-V2-Flash", hybrid_layer_pattern=[0, 1]),
            "hybrid_layer_pattern has 2 entries for 48",
        ),
        (shipped("XiaomiMiMo/MiMo-V2-Flash", hybrid_layer_pattern=48 * [2]), "other values than 0 and 1"),
        (shipped("MiniMaxAI/MiniMax-M1-80k", attn_type_list=[1]), "attn_type_list has 1 entries for 80"),
        (
            shipped("nvidia/Llama-3_3-Nemotron-Super-49B-v1", block_configs=[{}]),
            "block_configs has 1 entries for 80",
        ),
        (shipped("nvidia/Llama-3_3-Nemotron-Super-49B-v1", block_configs=80 * [{}]), "no attention object"),
        (shipped("deepseek-ai/DeepSeek-V4-Flash", compress_ratios=[0, 4]), "compress_ratios has 2 entries"),
        (shipped("deepseek-ai/DeepSeek-V4-Flash", compress_ratios=44 * [-4]), "compress_ratios[0]=-4"),
        (
            shipped("zai-org/GLM-5.2", indexer_types=["full"]),
            "indexer_types has 1 entries, and there is a layer 1",
        ),
        (
            shipped("zai-org/GLM-5.2", indexer_types=78 * ["half"]),
            "indexer_types[0]='half' is neither full nor shared",
        ),
        (shipped("thinkingmachines/Inkling", local_layer_ids=[66]), "local_layer_ids names layer 66"),
        (
            shipped("thinkingmachines/Inkling", local_layer_ids=["0"]),
            "local_layer_ids is not a list of layer numbers",
        ),
        (
            shipped("meta-llama/Llama-3.2-90B-Vision-Instruct", cross_attention_layers=[100]),
            "cross_attention_layers names layer 100",
        ),
        (
            shipped("moonshotai/Kimi-Linear-48B-A3B-Instruct", linear_attn_config={"full_attn_layers": [28]}),
            "full_attn_layers names layer 28",
        ),
        (
            shipped("LGAI-EXAONE/EXAONE-4.0-32B", layer_types=..., sliding_window_pattern="LLLX"),
            "sliding_window_pattern='LLLX' is not made of L and G",
        ),
        (
            shipped("nvidia/Nemotron-H-8B-Base-8K", hybrid_override_pattern=52 * "X"),
            "hybrid_override_pattern has 'X'",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_lists_that_do_not_fit(config, words):
    assert words in refusal(config)


M3_SPARSE = shipped("MiniMaxAI/MiniMax-M3")
M3_SPARSE = M3_SPARSE.get("text_config", M3_SPARSE)["sparse_attention_config"]
MLLAMA = shipped("meta-llama/Llama-3.2-90B-Vision-Instruct")


@pytest.mark.parametrize(
    ("config", "field"),
    [
        (LLAMA | {"vocab_size": -100}, "vocab_size=-100"),
        (LLAMA | {"head_dim": -8}, "head_dim=-8"),
        (LLAMA | {"model_type": "a\nb", "sliding_window": 12}, "sliding_window=12"),
        (shipped("deepseek-ai/DeepSeek-V3", q_lora_rank=-1), "q_lora_rank=-1"),
        (shipped("deepseek-ai/DeepSeek-V3", num_nextn_predict_layers=-1), "num_nextn_predict_layers=-1"),
        (shipped("deepseek-ai/DeepSeek-V3", num_nextn_predict_layers=2**39), "num_nextn_predict_layers=5497"),
        (
            shipped(
                "MiniMaxAI/MiniMax-M3", sparse_attention_config=M3_SPARSE | {"sparse_attention_freq": [1]}
            ),
            "sparse_attention_freq has 1 entries",
        ),
        (
            shipped("deepseek-ai/DeepSeek-V4.1-Flash", kv_source_layer_ids=[2, 99]),
            "kv_source_layer_ids names",
        ),
        (
            shipped("deepseek-ai/DeepSeek-V4.1-Flash", kv_source_layer_ids=["2"]),
            "kv_source_layer_ids is not a",
        ),
        (shipped("deepseek-ai/DeepSeek-V4.1-Flash", index_source_layer_ids=["2"]), "index_source_layer_ids"),
        (shipped("google/gemma-3n-E4B-it", num_kv_shared_layers=-1), "num_kv_shared_layers=-1"),
        (shipped("google/gemma-3n-E4B-it", num_kv_shared_layers=35), "num_kv_shared_layers=35"),
        (shipped("zai-org/GLM-5.2", indexer_types=100 * ["full"]), "indexer_types has 100 entries"),
        (shipped("zai-org/GLM-5.2", indexer_types=78 * [{}]), "indexer_types[0]={}"),
        (shipped("zai-org/GLM-5.3-Flash", index_kpool=0), "index_kpool=0"),
        (shipped("tiiuae/falcon-40b", num_kv_heads=0), "0 KV heads"),
        (shipped("XiaomiMiMo/MiMo-V2-Flash", v_head_dim=0), "v_head_dim=0"),
        (shipped("XiaomiMiMo/MiMo-V2-Flash", swa_num_key_value_heads=0), "swa_num_key_value_heads=0"),
        (shipped("google/gemma-3-27b-it", sliding_window_pattern=0), "sliding_window_pattern=0"),
        (shipped("deepseek-ai/DeepSeek-V4-Flash", compress_ratios=44 * [10**30]), "compress_ratios[0]=1000"),
        (shipped("Qwen/Qwen3-8B", share_q_dim=-1), "share_q_dim=-1"),
        (shipped("ai21labs/AI21-Jamba-1.5-Mini", attn_layer_offset=8), "attn_layer_offset=8"),
        (shipped("ai21labs/AI21-Jamba-1.5-Mini", attn_layer_offset=-1), "attn_layer_offset=-1"),
        (
            shipped("moonshotai/Kimi-Linear-48B-A3B-Instruct", linear_attn_config={"full_attn_layers": [0]}),
            "full_attn_layers names layer 0",
        ),
        (
            shipped("deepseek-ai/DeepSeek-V4.1-Flash", kv_source_layer_ids=[0, 2]),
            "kv_source_layer_ids names layer 0",
        ),
        (shipped("zai-org/GLM-5.2", indexer_types=78 * ["shared"]), "indexer_types[0]='shared'"),
        (shipped("deepseek-ai/DeepSeek-V3.2", index_topk_freq=0), "index_topk_freq=0"),
        (shipped("Qwen/Qwen3-Next-80B-A3B-Instruct", full_attention_interval=0), "full_attention_interval=0"),
        (shipped("google/gemma-4-26B-A4B", num_global_key_value_heads=0), "num_global_key_value_heads=0"),
        (MLLAMA | {"vision_config": MLLAMA["vision_config"] | {"max_num_tiles": -1}}, "max_num_tiles=-1"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_would_change_the_answer_silently(config, field):
    assert field in refusal(config)


@pytest.mark.parametrize(
    ("config", "growth"),
    [
        # 5 full layers of 2 x 2 x 512 and 25 of 2 x 8 x 256, in bf16
        (shipped("google/gemma-4-26B-A4B", max_position_embeddings=1024), 5 * 4096 + 25 * 8192),
        # 9 full layers of 4 x (192 + 128) and 39 of 8 x (192 + 128), in bf16
        (shipped("XiaomiMiMo/MiMo-V2-Flash", max_position_embeddings=128), 9 * 2560 + 39 * 5120),
    ],
    ids=["gemma-4-26B-A4B", "MiMo-V2-Flash"],
)
def test_layers_keep_their_own_heads_where_their_window_does_not_bind(config, growth):
    assert growth_bytes_per_token(resolve_config(config, "m"), kv_layout("bf16")) == growth


def test_a_layer_kind_that_is_no_word_is_refused():
    config = shipped("openai/gpt-oss-20b", layer_types=24 * [["full_attention"]])
    assert "layer_types has ['full_attention']" in refusal(config, UnsupportedModelError)


def test_a_group_whose_format_is_no_word_says_nothing_of_the_weights():
    groups = {"group_0": {"weights": {"type": ["int"], "num_bits": {}}}}
    quantization = {"quant_method": "compressed-tensors", "config_groups": groups}
    found = resolve_config(LLAMA | {"quantization_config": quantization}, "m").quantization
    assert found is not None
    assert found.weight_format is None
