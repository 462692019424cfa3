import json

import pytest

from warmset.errors import InputError
from warmset.model import FeedForward, load_model, resolve_config, shipped_models

MIXTURE = {
    "model_type": "new",
    "num_hidden_layers": 6,
    "hidden_size": 64,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 100,
    "n_routed_experts": 16,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
}


@pytest.mark.parametrize(
    ("fields", "num_moe_layers"),
    [
        ({}, 6),
        ({"first_k_dense_replace": 2}, 4),
        ({"first_k_dense_replace": 1, "moe_layer_freq": 2}, 2),
        ({"moe_layer_freq": [0, 1, 1, 1, 1, 0]}, 4),
        ({"decoder_sparse_step": 4}, 1),
        ({"mlp_only_layers": [0, 3]}, 4),
        ({"moe_layers_enum": "3,4,5,6"}, 3),
        ({"mlp_layer_types": ["dense", *["sparse"] * 5]}, 5),
    ],
    ids=str,
)
def test_which_layers_have_experts(fields, num_moe_layers):
    ffn = resolve_config(MIXTURE | fields, "m").feed_forward
    assert (ffn.num_moe_layers, ffn.num_dense_layers) == (num_moe_layers, 6 - num_moe_layers)


@pytest.mark.parametrize(
    ("fields", "width"),
    [
        ({}, 0),
        ({"n_shared_experts": 2}, 64),
        ({"n_shared_experts": None}, 0),
        ({"shared_expert_intermediate_size": 48}, 48),
        ({"shared_intermediate_size": 0}, 0),
        ({"num_shared_expert": [1, 1]}, 32),
    ],
    ids=str,
)
def test_width_of_shared_experts(fields, width):
    assert resolve_config(MIXTURE | fields, "m").feed_forward.shared_intermediate_size == width


def test_more_layers_with_experts_than_layers():
    with pytest.raises(InputError, match="7 layers are said to have experts, of 6"):
        resolve_config(MIXTURE | {"moe_layer_freq": [1] * 7}, "m")


def test_longcat_has_two_caches_and_a_mixture_in_each_block():
    # 12 of 768 experts are chosen, 512 of which hold weights: 8 on average. The maker says 560 B parameters
    # and 27 B active on average.
    spec = load_model("LongCat-Flash-Chat")
    assert spec.num_layers == 56
    assert spec.feed_forward == FeedForward(
        num_dense_layers=56,
        dense_intermediate_size=12288,
        num_moe_layers=28,
        num_experts=512,
        experts_per_token=8,
        moe_intermediate_size=2048,
        num_zero_experts=256,
    )


@pytest.mark.parametrize("num_hidden_layers", [28, 56])
def test_longcat_is_counted_in_blocks_whatever_else_its_config_says(num_hidden_layers):
    path = next(shipped.path for shipped in shipped_models() if "LongCat" in shipped.model)
    config = json.loads(path.read_text(encoding="utf-8")) | {"num_hidden_layers": num_hidden_layers}
    assert resolve_config(config, "m").num_layers == 56


@pytest.mark.parametrize(
    ("model", "width", "gated"),
    [
        ("openai-community/gpt2", 4 * 768, False),
        ("mpt-7b", 4 * 4096, False),
        ("falcon-7b", 4 * 4544, False),
        ("starcoder", 24576, False),
        ("gemma-2b", 16384, True),
        ("chatglm3-6b", 13696, True),
    ],
)
def test_dense_width(model, width, gated):
    ffn = load_model(model).feed_forward
    assert (ffn.dense_intermediate_size, ffn.gated, ffn.num_moe_layers) == (width, gated, 0)
