"""Types whose configs are silent about their layers, and types with caches of several kinds.

Expected kinds and sizes are worked out by hand from `models/*/configuration_*.py` and `modeling_*.py` of
transformers 5.24.0, or the file of vLLM 0.33.0 that a comment names. Letters: f full, s sliding, r a state,
x cross-attention beside full, i an index beside full.
"""

import pytest

from warmset.errors import InputError, UnsupportedModelError, WarmsetError
from warmset.model import kv_bytes, kv_layout, num_parameters, resolve_config

BF16 = kv_layout("bf16")
BASE = {
    "num_hidden_layers": 8,
    "hidden_size": 64,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 100,
    "max_position_embeddings": 4096,
}
WINDOW = BASE | {"sliding_window": 32}
EXPERTS = {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
SWITCHED = WINDOW | {"use_sliding_window": True}
MAMBA2 = {"mamba_n_heads": 16, "mamba_d_head": 8, "mamba_d_state": 4, "mamba_expand": 2}
LATENT = {"kv_lora_rank": 16, "q_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 8}
INDEX = {"index_topk": 4, "index_head_dim": 16, "index_n_heads": 2}
ALTERNATING = {"layer_types": 4 * ["sliding_attention", "full_attention"]}
BART = {
    "model_type": "bart",
    "d_model": 64,
    "num_hidden_layers": 3,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_attention_heads": 16,
    "decoder_attention_heads": 8,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128,
    "vocab_size": 100,
    "max_position_embeddings": 1024,
    "is_encoder_decoder": True,
}


def resolved(model_type, config):
    return resolve_config({"model_type": model_type} | config, "m")


def letters(spec):
    """The kind of each layer in one letter."""
    kinds = []
    for layer in spec.layers:
        reaches = [cache.reach for cache in layer.caches]
        index = "i" if any(cache.entry.__class__.__name__ == "IndexKey" for cache in layer.caches) else ""
        cross = "x" if "cross" in reaches else ""
        kinds.append(index or cross or (reaches[0][0] if reaches else "r"))
    return "".join(kinds)


# What the configuration class takes where the config names no layers.


@pytest.mark.parametrize(
    ("model_type", "config", "kinds"),
    [
        ("afmoe", WINDOW | EXPERTS, "sssfsssf"),
        ("bamba", BASE | MAMBA2, "rrrrrrrr"),  # attn_layer_indices: none
        ("bamba", BASE | MAMBA2 | {"attn_layer_indices": [2]}, "rrfrrrrr"),
        ("cohere2", WINDOW, "sssfsssf"),
        ("cohere2_moe", WINDOW | EXPERTS, "sssfsssf"),
        # One dense layer, and the pattern starts again behind it.
        ("cohere2_moe", WINDOW | EXPERTS | {"first_k_dense_replace": 1}, "fsssfsss"),
        (
            "cohere2_moe",
            WINDOW | EXPERTS | {"first_k_dense_replace": 2, "prefix_dense_sliding_window_pattern": 2},
            "sfsssfss",
        ),
        ("cohere_compass_text", WINDOW, "ffffffff"),
        ("cwm", WINDOW, "fsssfsss"),  # i % 4 == 0, not (i + 1) % 4
        ("dots1", WINDOW, "ffffffff"),  # max_window_layers: 62
        ("dots1", WINDOW | {"max_window_layers": 6}, "ffffffss"),
        ("exaone4", WINDOW, "sssfsssf"),
        ("exaone4", WINDOW | {"sliding_window_pattern": "LLG"}, "ssfssfsf"),  # the last layer is always full
        ("exaone_moe", WINDOW | EXPERTS, "sssfsssf"),
        ("gemma3n_text", WINDOW | {"num_kv_shared_layers": 0}, "ssssfsss"),  # the last layer is not forced
        ("gemma4_text", WINDOW, "sssssfsf"),  # "Forcing last layer to `full_attention`"
        ("gemma4_text", WINDOW | {"layer_types": 8 * ["sliding_attention"]}, "sssssssf"),
        ("gemma4_unified_text", WINDOW, "sssssfsf"),
        ("gpt_oss", WINDOW, "sfsfsfsf"),
        ("granite_swa", WINDOW, "fsssfsss"),
        ("granitemoe_swa", WINDOW, "fsssfsss"),
        ("granitemoehybrid", BASE | MAMBA2, "rrrrrrrr"),
        ("laguna", WINDOW, "ffffffff"),
        ("lara_mini", WINDOW, "rsrfsrsr"),
        ("lfm2", BASE, "ffffffff"),  # full_attn_idxs: all
        ("lfm2", BASE | {"full_attn_idxs": [2, 5]}, "rrfrrfrr"),
        ("lfm3", WINDOW, "rrfrsrfr"),
        ("mellum", WINDOW, "ffffffff"),
        ("ministral", WINDOW, "ssssssss"),
        ("ministral", BASE | {"max_position_embeddings": 8192}, "ssssssss"),  # sliding_window: 4096
        ("ministral", BASE | {"max_position_embeddings": 8192, "sliding_window": None}, "ffffffff"),
        ("muse_glimmer_text", WINDOW | {"num_hidden_layers": 6}, "sfsssf"),  # counted from the last layer
        ("muse_spark_text", WINDOW | EXPERTS, "sssfsssf"),
        ("olmo3", WINDOW, "sssfsssf"),
        ("olmo_hybrid", BASE, "rrrfrrrf"),
        ("olmo_hybrid", BASE | {"num_hidden_layers": 3}, "rrf"),
        ("qwen2", SWITCHED, "ffffffff"),  # max_window_layers: 28
        ("qwen2", SWITCHED | {"num_hidden_layers": 30}, 28 * "f" + "ss"),
        ("qwen2_vl", SWITCHED | {"num_hidden_layers": 81}, 80 * "f" + "s"),
        ("qwen3", SWITCHED | {"max_window_layers": 5}, "fffffsss"),
        ("qwen2_moe", SWITCHED | EXPERTS, "sfsfsfsf"),
        ("qwen2_moe", SWITCHED | EXPERTS | {"max_window_layers": 3}, "sfsfffff"),
        ("qwen3_moe", SWITCHED | EXPERTS | {"max_window_layers": 8}, "ssssssss"),  # it has no such field
        ("recurrent_gemma", BASE | {"attention_window_size": 32}, "rrsrrsrr"),
        ("smollm3", SWITCHED, "fffsfffs"),  # windows where there is no rotary embedding
        ("smollm3", SWITCHED | {"no_rope_layers": [1, 0, 1, 1, 1, 1, 1, 1]}, "fsffffff"),
        ("smollm3", WINDOW, "ffffffff"),
        ("step3p5", WINDOW, "ffffffff"),
        ("vaultgemma", WINDOW, "sfsfsfsf"),
    ],
)
def test_layers_where_the_config_is_silent(model_type, config, kinds):
    assert letters(resolved(model_type, config)) == kinds


@pytest.mark.parametrize(
    ("model_type", "config", "growth", "windows", "state_bytes"),
    [
        # 2 full layers and 6 sliding; keys and values of 2 heads of 8 in 2 bytes are 64.
        ("exaone_moe", WINDOW | EXPERTS, 128, {32: 384}, 0),
        ("granite_swa", WINDOW, 128, {32: 384}, 0),
        # head_dim 128: 2 x 2 x 128 x 2 = 1024 bytes a layer. The list is of query heads.
        (
            "laguna",
            WINDOW | ALTERNATING | {"num_attention_heads_per_layer": 4 * [8, 4]},
            4096,
            {32: 4096},
            0,
        ),
        ("mellum", WINDOW | ALTERNATING, 4096, {32: 4096}, 0),
        ("muse_spark_text", WINDOW | EXPERTS, 1024, {32: 3072}, 0),  # head_dim 64: 512 bytes
        # global_head_dim 512 with num_global_key_value_heads=1 is 2048; head_dim 256 with 2 heads as well.
        (
            "gemma4_unified_text",
            WINDOW | {"attention_k_eq_v": True, "num_global_key_value_heads": 1},
            2 * 2048,
            {32: 6 * 2048},
            0,
        ),
        # Without attention_k_eq_v the full layers have as many KV heads as the sliding ones.
        ("gemma4_text", WINDOW | {"num_global_key_value_heads": 1}, 2 * 4096, {32: 6 * 2048}, 0),
        # num_kv_shared_layers: 15 of 20 layers read the first five: ssssf, 2 heads of 256.
        ("gemma3n_text", WINDOW | {"num_hidden_layers": 20}, 2048, {32: 4 * 2048}, 0),
        # num_key_value_heads: as many as query heads.
        ("cohere2", {key: WINDOW[key] for key in WINDOW if "value" not in key}, 2 * 256, {32: 6 * 256}, 0),
        # linear heads: 8 of int(0.75 x 64 / 8) = 6 and of 12. State 8 x 6 x 12, conv. 3 x (2 x 48 + 96).
        ("olmo_hybrid", BASE, 128, {}, 6 * (576 + 576) * 2),
        # linear heads: 8 of 128 and 16 of 128. State 16 x 128 x 128, convolution 3 x (2 x 1024 + 2048).
        ("lara_mini", WINDOW, 1024, {32: 3072}, 4 * (262_144 + 12_288) * 2),
        # conv_L_cache: 7 of 64 channels, 6 kept; LFM2 has 3.
        ("lfm3", WINDOW, 2048, {32: 1024}, 5 * 6 * 64 * 2),
        ("lfm2", BASE | {"full_attn_idxs": [2]}, 64, {}, 7 * 2 * 64 * 2),
        # modeling_recurrent_gemma.py: rg_lru.recurrent_states in fp32, conv1d_state 3 x lru_width.
        (
            "recurrent_gemma",
            BASE | {"attention_window_size": 32, "lru_width": 80},
            0,
            {32: 128},
            6 * (80 * 4 + 3 * 80 * 2),
        ),
        # An index key of 128 in two bytes on the sparse layers; 1024 bytes of keys and values on all.
        (
            "minimax_m3_vl_text",
            BASE | {"layer_types": 4 * ["full_attention"] + 4 * ["minimax_m3_sparse"]},
            8 * 1024 + 4 * 256,
            {},
            0,
        ),
    ],
)
def test_bytes(model_type, config, growth, windows, state_bytes):
    sizes = kv_bytes(resolved(model_type, config), BF16)
    assert sizes.growth_bytes_per_token == growth
    assert (sizes.windows, sizes.state_bytes_per_sequence) == (windows, state_bytes)


def test_an_index_of_hy_4_shared_by_four_layers():
    # vLLM 0.33.0 stores the latent of 16 + 4 in two bytes, an index key of 16 in fp8 with a scale in 20.
    types = ["full", "full", "shared", "shared", "shared", "full", "shared", "shared"]
    config = BASE | LATENT | INDEX | {"layer_types": 8 * ["indexed_attention"]}
    spec = resolved("hy_v4_vl_text", config | {"indexer_types": types})
    assert letters(spec) == "iifffiff"
    assert kv_bytes(spec, BF16).growth_bytes_per_token == 8 * 40 + 3 * 20
    with pytest.raises(InputError, match="no indexer_types"):
        resolved("hy_v4_vl_text", config)


def test_gpt_neo():
    # gpt-neo-1.3B: attention_types [[["global", "local"], 12]], window_size 256, none of the usual names.
    config = {"num_layers": 4, "hidden_size": 64, "num_heads": 8, "vocab_size": 100, "window_size": 256}
    config |= {"max_position_embeddings": 2048, "attention_types": [[["global", "local"], 2]]}
    spec = resolved("gpt_neo", config)
    assert letters(spec) == "fsfs"
    assert kv_bytes(spec, BF16).windows == {256: 2 * 256}  # 2 layers, 8 heads of 8, keys and values
    assert (
        letters(resolved("gpt_neo", config | {"attention_layers": ["local", "global", "local", "local"]}))
        == "sfss"
    )
    for wrong in ([["global", 2]], [[["global"], 0]], [[["ring"], 4]], [[["global"], 3]]):
        with pytest.raises(InputError):
            resolved("gpt_neo", config | {"attention_types": wrong})


def test_a_decoder_with_an_encoder_of_text():
    # modeling_bart.py: every decoder layer has self-attention, and cross-attention over the encoder's output.
    spec = resolved("bart", BART)
    assert letters(spec) == "xx"  # decoder_layers, where num_hidden_layers is the encoder's
    sizes = kv_bytes(spec, BF16)
    assert sizes.growth_bytes_per_token == 2 * 2 * 64 * 2
    assert sizes.cross_bytes_per_input == 1024 * 2 * 2 * 64 * 2
    assert spec.layers[0].mixers[0].attentions[0].num_heads == 8


def test_weights_of_bart_large():
    # 406.29 million in facebook/bart-large; biases of the decoder's attention are not counted here.
    large = {"d_model": 1024, "encoder_layers": 12, "decoder_layers": 12, "vocab_size": 50265}
    heads = {"encoder_attention_heads": 16, "decoder_attention_heads": 16}
    spec = resolved("bart", BART | large | heads | {"encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096})
    assert num_parameters(spec) == pytest.approx(406_291_456, rel=0.001)


def test_whisper_turbo_has_fewer_layers_than_its_encoder():
    # openai/whisper-large-v3-turbo: decoder_layers=4, encoder_layers=32, num_hidden_layers=32.
    audio = {"max_source_positions": 1500, "num_mel_bins": 128, "max_target_positions": 448}
    assert resolved("whisper", BART | audio | {"decoder_layers": 4, "num_hidden_layers": 32}).num_layers == 4


@pytest.mark.parametrize(
    ("fields", "reach", "is_dense"),
    [
        (
            {},
            "sliding",
            True,
        ),  # vLLM models/exaone_moe.py: the kind of the layer of the same number, no experts
        ({"layer_types": 8 * ["full_attention"]}, "full", True),
        ({"mtp_layer_types": ["full_attention"]}, "full", True),
    ],
    ids=str,
)
def test_draft_layers_of_exaone(fields, reach, is_dense):
    spec = resolved("exaone_moe", WINDOW | EXPERTS | {"num_nextn_predict_layers": 1} | fields)
    (draft,) = spec.mtp_layers
    assert (draft.caches[0].reach, draft.feed_forward.num_experts == 0) == (reach, is_dense)


def test_draft_layers_of_mellum():
    # configuration_mellum.py: mtp_layer_types is sliding, with experts.
    spec = resolved("mellum", WINDOW | EXPERTS | {"num_mtp_layers": 2})
    assert [(layer.caches[0].reach, layer.feed_forward.num_experts) for layer in spec.mtp_layers] == 2 * [
        ("sliding", 8)
    ]
    with pytest.raises(UnsupportedModelError, match="mtp_layer_types"):
        resolved(
            "mellum",
            WINDOW | {"num_mtp_layers": 2, "mtp_layer_types": ["sliding_attention", "full_attention"]},
        )


@pytest.mark.parametrize(
    ("model_type", "fields", "weights"),
    [
        # modeling_laguna.py: g_proj from the hidden state to a gate for each head or element.
        ("laguna", {"gating": True}, 64 * 8),
        ("laguna", {"gating": "per-head"}, 64 * 8),
        ("laguna", {"gating": "per-element"}, 64 * 8 * 128),
        # modeling_lfm3.py: a gate for each head with use_attention_gate.
        ("lfm3", {"layer_types": 8 * ["full_attention"]}, 64 * 8),
        ("lfm3", {"layer_types": 8 * ["full_attention"], "use_attention_gate": False}, 0),
        # modeling_afmoe.py, modeling_muse_glimmer.py: gate_proj is as wide as the queries.
        ("afmoe", {}, 64 * 8 * 128),
        ("muse_glimmer_text", {}, 64 * 8 * 128),
        ("mellum", {}, 0),
    ],
)
def test_weights_of_gates(model_type, fields, weights):
    (mixer,) = resolved(model_type, WINDOW | fields).layers[0].mixers
    assert mixer.split_parameters == 2 * 64 * 8 * 128 + weights  # queries and outputs


def test_weights_of_sinks():
    # modeling_granite_swa.py: one for each head.
    assert resolved("granite_swa", WINDOW).layers[0].mixers[0].small_parameters == 8
    assert resolved("granite", BASE).layers[0].mixers[0].small_parameters == 0


def test_weights_of_the_recurrence():
    # modeling_recurrent_gemma.py: three projections, two gates of 8 blocks of 8 x 8; a convolution of 4 with
    # its bias, the decay, the biases of the gates, those of the projections. The MLP is half as wide as said.
    layer = resolved("recurrent_gemma", BASE | {"attention_window_size": 32}).layers[0]
    assert layer.mixers[0].split_parameters == 3 * 64 * 64 + 2 * 8 * 8 * 8
    assert layer.mixers[0].small_parameters == 5 * 64 + 64 + 2 * 64 + 3 * 64
    assert layer.feed_forward.dense_parameters == 3 * 64 * 64 + 2 * 64 + 64


def test_experts_in_a_smaller_space():
    # modeling_muse_spark.py: pre_expert_proj, 8 experts of three 16 x 16 matrices, post_expert_proj.
    part = resolved("muse_spark_text", WINDOW | EXPERTS | {"moe_hidden_size": 16}).layers[0].feed_forward
    assert (part.shared_parameters, part.expert_parameters) == (2 * 64 * 16, 3 * 16 * 16)


def test_a_dense_layer_of_its_own_width():
    # modeling_cohere2_moe.py: prefix_dense_intermediate_size is of the dense layers alone.
    config = WINDOW | {"num_experts": 8, "num_experts_per_tok": 2, "first_k_dense_replace": 1}
    first, second = resolved("cohere2_moe", config | {"prefix_dense_intermediate_size": 256}).layers[:2]
    assert first.feed_forward.dense_parameters == 3 * 64 * 256
    assert second.feed_forward.expert_parameters == 3 * 64 * 128


@pytest.mark.parametrize(
    ("model_type", "fields", "words"),
    [
        ("exaone_moe", {"sliding_windows": 8 * [32]}, "sliding_windows"),
        ("mixtral", {"layer_types": 8 * ["indexed_attention"]}, "layer_types has 'indexed_attention'"),
        ("laguna", {"num_attention_heads_per_layer": [8]}, "num_attention_heads_per_layer"),
        ("recurrent_gemma", {"block_types": []}, "block_types"),
        ("recurrent_gemma", {"block_types": ["ring"]}, "'ring'"),
        ("recurrent_gemma", {"lru_width": 65}, "lru_width=65"),
        *(
            (name, {}, "not understood")
            for name in ("zamba2", "t5", "voxtral_realtime", "inkling2_text", "rwkv")
        ),
    ],
)
def test_what_is_refused(model_type, fields, words):
    with pytest.raises(WarmsetError, match=words):
        resolved(model_type, WINDOW | {"attention_window_size": 32} | fields)
