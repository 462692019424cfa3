"""Which layers have which feed-forward part, and how many weights: small configs counted by hand."""

import json

import pytest

from warmset.errors import InputError
from warmset.model import resolve_config, shipped_models
from warmset.model.feed_forward import resolve_feed_forwards
from warmset.model.fields import Fields
from warmset.model.spec import FeedForward

HIDDEN = 64
MIXTURE = {
    "intermediate_size": 128,
    "n_routed_experts": 16,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
}
DENSE = FeedForward(dense_parameters=3 * 64 * 128)
EXPERT, ROUTER = 3 * 64 * 32, 64 * 16


def resolve(model_type="new", num_layers=6, /, **config):
    return resolve_feed_forwards(Fields("m", config), model_type, HIDDEN, num_layers)


def with_experts(parts):
    return [layer for layer, part in enumerate(parts) if part is not None and part.num_experts]


@pytest.mark.parametrize(
    ("fields", "layers"),
    [
        ({}, [0, 1, 2, 3, 4, 5]),
        ({"first_k_dense_replace": 2}, [2, 3, 4, 5]),
        ({"num_dense_layers": 2}, [2, 3, 4, 5]),
        ({"first_k_dense_replace": 1, "moe_layer_freq": 2}, [2, 4]),
        ({"moe_layer_freq": [0, 1, 1, 1, 1, 0]}, [1, 2, 3, 4]),
        ({"decoder_sparse_step": 4}, [3]),
        ({"interleave_moe_layer_step": 2}, [1, 3, 5]),
        ({"mlp_only_layers": [0, 3]}, [1, 2, 4, 5]),
        ({"moe_layers_enum": "3,4,5,6"}, [3, 4, 5]),
        ({"moe_layers_enum": [1, 2]}, [1, 2]),
        ({"mlp_layer_types": ["dense", *["sparse"] * 5]}, [1, 2, 3, 4, 5]),
        ({"mlp_layer_types": ["hash_moe", "hash_moe", *["moe"] * 4]}, [0, 1, 2, 3, 4, 5]),
        ({"moe_layer_start_index": 1, "moe_layer_end_index": 4}, [1, 2, 3, 4]),
    ],
    ids=str,
)
def test_which_layers_have_experts(fields, layers):
    parts = resolve(**MIXTURE | fields)
    assert with_experts(parts) == layers
    assert all(parts[layer] == DENSE for layer in range(6) if layer not in layers)
    assert all(
        parts[layer]
        == FeedForward(
            router_parameters=ROUTER, expert_parameters=EXPERT, num_experts=16, experts_per_token=2
        )
        for layer in layers
    )


@pytest.mark.parametrize(
    ("model_type", "fields", "layers"),
    [
        ("jamba", {"expert_layer_period": 2, "expert_layer_offset": 1}, [1, 3, 5]),
        ("jamba", {"expert_layer_period": 3, "expert_layer_offset": 0}, [0, 3]),
        ("jamba", {}, [1, 3, 5]),  # the defaults of its class
        ("deepseek_v3", {}, [3, 4, 5]),
        ("glm4_moe", {}, [1, 2, 3, 4, 5]),
        ("step3p7", {}, [3, 4, 5]),
        ("deepseek_v2", {}, [0, 1, 2, 3, 4, 5]),
    ],
)
def test_which_layers_have_experts_by_family(model_type, fields, layers):
    assert with_experts(resolve(model_type, **MIXTURE | fields)) == layers


@pytest.mark.parametrize(
    ("fields", "width"),
    [
        ({}, 0),
        ({"n_shared_experts": 2}, 64),
        ({"n_shared_experts": None}, 0),
        ({"shared_expert_intermediate_size": 48}, 48),
        ({"shared_intermediate_size": 0}, 0),
        ({"num_shared_expert": [1, 1]}, 32),
        ({"share_expert_dim": 40, "n_shared_experts": 1}, 40),
    ],
    ids=str,
)
def test_width_of_shared_experts(fields, width):
    assert resolve(**MIXTURE | fields)[0].shared_parameters == 3 * HIDDEN * width


@pytest.mark.parametrize(
    ("model_type", "config", "weights"),
    [
        ("llama", {"intermediate_size": 100}, 3 * 64 * 100),
        ("llama", {"intermediate_size": 100, "mlp_bias": True}, 3 * 64 * 100 + 2 * 100 + 64),
        ("gpt2", {}, 2 * 64 * 256 + 256 + 64),
        ("gpt2", {"n_inner": 100}, 2 * 64 * 100 + 100 + 64),
        ("falcon", {"bias": False}, 2 * 64 * 256),
        ("mpt", {"expansion_ratio": 3}, 2 * 64 * 192),
        ("whisper", {"decoder_ffn_dim": 100, "encoder_ffn_dim": 7}, 2 * 64 * 100 + 100 + 64),
        ("starcoder2", {"intermediate_size": 100, "use_bias": False}, 2 * 64 * 100),
        ("chatglm", {"ffn_hidden_size": 100}, 3 * 64 * 100),
        ("granitemoehybrid", {"num_local_experts": 0, "shared_intermediate_size": 100}, 3 * 64 * 100),
        ("lfm2", {"intermediate_size": 100, "block_auto_adjust_ff_dim": True}, 3 * 64 * 66),
        (
            "lfm2",
            {
                "intermediate_size": 100,
                "block_auto_adjust_ff_dim": True,
                "block_ffn_dim_multiplier": 1.5,
                "block_multiple_of": 16,
            },
            3 * 64 * 112,  # 66 x 1.5 = 99, up to a multiple of 16
        ),
    ],
    ids=str,
)
def test_dense_parts(model_type, config, weights):
    assert resolve(model_type, 2, **config) == (FeedForward(dense_parameters=weights),) * 2


def test_a_single_expert_is_a_dense_part():
    assert resolve("new", 1, num_experts=1, intermediate_size=128) == (DENSE,)


def test_llama4_has_a_shared_expert_as_wide_as_the_others_and_another_dense_width():
    parts = resolve(
        "llama4_text",
        4,
        intermediate_size=32,
        intermediate_size_mlp=128,
        interleave_moe_layer_step=2,
        num_local_experts=16,
        num_experts_per_tok=1,
    )
    experts = FeedForward(
        shared_parameters=EXPERT,
        router_parameters=ROUTER,
        expert_parameters=EXPERT,
        num_experts=16,
        experts_per_token=1,
    )
    assert parts == (DENSE, experts, DENSE, experts)


def test_gemma4_has_both_side_by_side():
    config = {"intermediate_size": 128, "num_experts": 16, "top_k_experts": 2, "moe_intermediate_size": 32}
    both = FeedForward(
        dense_parameters=DENSE.dense_parameters,
        router_parameters=ROUTER,
        expert_parameters=EXPERT,
        num_experts=16,
        experts_per_token=2,
    )
    assert resolve("gemma4_text", 2, enable_moe_block=True, **config) == (both, both)
    assert resolve("gemma4_text", 2, enable_moe_block=False, **config) == (DENSE, DENSE)


def test_gemma4_is_twice_as_wide_where_it_shares_keys():
    parts = resolve("gemma4_text", 3, intermediate_size=128, use_double_wide_mlp=True, num_kv_shared_layers=2)
    assert [part.dense_parameters for part in parts] == [3 * 64 * 128, 3 * 64 * 256, 3 * 64 * 256]


def test_gemma3n_lists_its_widths():
    parts = resolve("gemma3n_text", 3, intermediate_size=[128, 64, 32])
    assert [part.dense_parameters for part in parts] == [3 * 64 * 128, 3 * 64 * 64, 3 * 64 * 32]


@pytest.mark.parametrize(
    "blocks",
    [
        {"hybrid_override_pattern": "M-*E"},
        {"layers_block_type": ["mamba", "mlp", "attention", "moe"]},
        {"layers_block_type": ["linear_attention", "mlp", "full_attention", "moe"]},
    ],
    ids=str,
)
def test_nemotron_h_has_experts_in_a_smaller_space(blocks):
    mixer, dense, attention, experts = resolve(
        "nemotron_h",
        4,
        moe_latent_size=16,
        moe_shared_expert_intermediate_size=40,
        n_shared_experts=1,
        **MIXTURE,
        **blocks,
    )
    assert (mixer, attention) == (None, None)
    assert dense == FeedForward(dense_parameters=2 * 64 * 128)  # squared ReLU: no gate
    assert experts == FeedForward(
        shared_parameters=2 * 64 * 40 + 2 * 64 * 16,
        router_parameters=ROUTER,
        expert_parameters=2 * 16 * 32,
        num_experts=16,
        experts_per_token=2,
    )


def test_nemotron_nas_rounds_its_widths_up():
    blocks = [
        {"ffn": {"ffn_mult": 2.625, "no_op": False}},  # 2/3 x 2.625 x 64 = 112, up to 256
        {"ffn": {"ffn_mult": None, "no_op": True}},
        {"ffn": {"ffn_mult": 8.0, "no_op": False}},  # 341, up to 512
        {"ffn": {"intermediate_size": 100}},
        {"ffn": {"no_op": False, "replace_with_linear": True}},
    ]
    parts = resolve("nemotron-nas", 5, block_configs=blocks)
    widths = [part and part.dense_parameters / 192 for part in parts[:4]]
    assert widths == [256, None, 512, 100]
    assert parts[4] == FeedForward(dense_parameters=64 * 64)


def test_longcat_blocks_are_two_layers():
    # 12 of 768 experts are chosen, 512 of which hold weights: 8 on average.
    config = {"num_layers": 2, "ffn_hidden_size": 128, "expert_ffn_hidden_size": 32, "moe_topk": 12}
    first, second, third, _ = resolve("longcat_flash", 2, n_routed_experts=512, zero_expert_num=256, **config)
    assert first == third
    assert second == DENSE
    assert first == FeedForward(
        dense_parameters=DENSE.dense_parameters,
        router_parameters=64 * 768,
        expert_parameters=EXPERT,
        num_experts=512,
        experts_per_token=8,
    )


def test_routers_and_their_company():
    # gpt-oss: biases on experts and router; Qwen3-Next: a gate on the shared expert; Inkling: its router
    # scores the shared experts too.
    oss = resolve(
        "gpt_oss", 1, num_local_experts=16, experts_per_token=2, num_experts_per_tok=2, intermediate_size=32
    )[0]
    assert (oss.router_parameters, oss.expert_parameters) == (ROUTER + 16, EXPERT + 2 * 32 + 64)
    qwen = resolve("qwen3_next", 1, shared_expert_intermediate_size=48, **MIXTURE)[0]
    assert qwen.router_parameters == ROUTER + 64
    inkling = resolve("inkling_mm_model", 1, n_shared_experts=2, **MIXTURE)[0]
    assert inkling.router_parameters == 64 * 18


def test_a_model_of_mixers_alone():
    assert resolve("falcon_mamba", 3, intermediate_size=128) == (None, None, None)


@pytest.mark.parametrize(
    ("model_type", "change", "message"),
    [
        ("new", {"moe_layer_freq": [1] * 7}, "moe_layer_freq has 7 entries for 6 layers"),
        ("new", {"mlp_layer_types": ["dense"] * 5}, "mlp_layer_types has 5 entries for 6 layers"),
        ("new", {"mlp_layer_types": ["dense"] * 5 + ["odd"]}, "'odd', which is neither dense nor sparse"),
        ("new", {"num_experts_per_tok": 17}, "a token cannot choose 17 of 16 experts"),
        ("new", {"num_experts_per_tok": 0}, "num_experts_per_tok=0 is not positive"),
        ("new", {"n_routed_experts": -1}, "-1 experts are fewer than none"),
        ("new", {"moe_intermediate_size": 0}, "moe_intermediate_size=0 is not positive"),
        ("new", {"moe_layer_freq": 0}, "moe_layer_freq=0 is not positive"),
        ("new", {"first_k_dense_replace": -2}, "first_k_dense_replace=-2 is negative"),
        ("new", {"n_routed_experts": 0, "intermediate_size": None}, "the config has no intermediate_size"),
        ("gemma3n", {"n_routed_experts": 0, "intermediate_size": [1, 2]}, "has 2 entries for 6 layers"),
        (
            "gemma3n",
            {"n_routed_experts": 0, "intermediate_size": [1] * 5 + [0]},
            "not positive whole numbers",
        ),
        ("nemotron_h", {"hybrid_override_pattern": "M-*"}, "has 3 entries for 6 layers"),
        ("nemotron_h", {"hybrid_override_pattern": "M-*EMX"}, "'X', which is none of"),
        ("nemotron_h", {}, "the config has no hybrid_override_pattern"),
        ("nemotron-nas", {"block_configs": [{}]}, "block_configs has 1 entries for 6 layers"),
        ("nemotron-nas", {"block_configs": [{}] * 6}, "has no ffn"),
    ],
)
def test_refusals(model_type, change, message):
    with pytest.raises(InputError) as refusal:
        resolve(model_type, **MIXTURE | change)
    assert message in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("num_hidden_layers", [28, 56])
def test_longcat_is_counted_in_blocks_whatever_else_its_config_says(num_hidden_layers):
    path = next(shipped.path for shipped in shipped_models() if "LongCat" in shipped.model)
    config = json.loads(path.read_text(encoding="utf-8")) | {"num_hidden_layers": num_hidden_layers}
    spec = resolve_config(config, "m")
    assert (spec.num_layers, spec.num_moe_layers) == (56, 28)
