import json
from importlib.resources import files

import pytest

from warmset.errors import InputError
from warmset.model.fields import Fields, language_fields
from warmset.model.recurrent import (
    gated_delta,
    inkling_convs,
    kda,
    lightning,
    short_conv,
    with_recurrent_bits,
)
from warmset.model.recurrent_mamba import mamba1, mamba2
from warmset.model.spec import Cache, KvHeads, Layer, Mixer, StatePart

JAMBA = "ai21labs--AI21-Jamba-1.5-Mini"
FALCON_MAMBA = "tiiuae--falcon-mamba-7b-instruct"
CODESTRAL = "mistralai--Mamba-Codestral-7B-v0.1"
NEMOTRON_H_8B = "nvidia--Nemotron-H-8B-Base-8K"
NEMOTRON_H_56B = "nvidia--Nemotron-H-56B-Base-8K"
NEMOTRON_NANO = "nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"
NEMOTRON_SUPER = "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8"
NEMOTRON_ULTRA = "nvidia--NVIDIA-Nemotron-3-Ultra-550B-A55B-BF16"
FALCON_H1 = "tiiuae--Falcon-H1-7B-Instruct"
GRANITE = "ibm-granite--granite-4.0-h-tiny"
QWEN_NEXT = "Qwen--Qwen3-Next-80B-A3B-Instruct"
QWEN_27B = "Qwen--Qwen3.5-27B"
QWEN_35B = "Qwen--Qwen3.5-35B-A3B"
QWEN_397B = "Qwen--Qwen3.5-397B-A17B"
QWEN_FLASH = "Qwen--Qwen3.8-Flash-Next"
KIMI_LINEAR = "moonshotai--Kimi-Linear-48B-A3B-Instruct"
KIMI_K3 = "moonshotai--Kimi-K3"
GLM_FLASH = "zai-org--GLM-5.3-Flash"
LING = "inclusionAI--Ling-3.0-Flash"
MINIMAX_M1 = "MiniMaxAI--MiniMax-M1-80k"
LFM2 = "LiquidAI--LFM2-2.6B"
INKLING = "thinkingmachines--Inkling"

KINDS = {
    JAMBA: mamba1,
    FALCON_MAMBA: mamba1,
    CODESTRAL: mamba2,
    NEMOTRON_H_8B: mamba2,
    NEMOTRON_H_56B: mamba2,
    NEMOTRON_NANO: mamba2,
    NEMOTRON_SUPER: mamba2,
    NEMOTRON_ULTRA: mamba2,
    FALCON_H1: mamba2,
    GRANITE: mamba2,
    QWEN_NEXT: gated_delta,
    QWEN_27B: gated_delta,
    QWEN_35B: gated_delta,
    QWEN_397B: gated_delta,
    QWEN_FLASH: gated_delta,
    KIMI_LINEAR: kda,
    KIMI_K3: kda,
    GLM_FLASH: kda,
    LING: kda,
    MINIMAX_M1: lightning,
    LFM2: short_conv,
}


def shipped(model, changes=()):
    """The language model of a shipped config, with some fields changed or, where None, removed."""
    config = json.loads((files("warmset.catalog") / "models" / f"{model}.json").read_text())
    fields = language_fields(config, model)
    values = dict(fields.values) | dict(changes)
    return Fields(model, {key: value for key, value in values.items() if value is not None})


def mixer_of(model, changes=()):
    fields = shipped(model, changes)
    return KINDS[model](fields, fields.required("hidden_size"))


def state_bytes(mixers):
    parts = [part for mixer in mixers for part in mixer.states]
    return sum(part.num_units * part.unit_elements * (part.bits or 16) for part in parts) // 8


def num_parameters(mixer):
    return mixer.split_parameters + mixer.kv_parameters + mixer.replicated_parameters + mixer.small_parameters


# Bytes of one sequence, derived from vLLM 0.33.0: model-configs/EXPECTED-DETAIL.csv, columns
# recurrent_state_B_per_seq and recurrent_state_other_dtype_B. Two are published as well: Nemotron-H-8B with a
# bf16 state, 51,806,208, by a third party's test; Qwen3.5-27B, 153,944,064, traced from a running vLLM. There
# GLM-5.3-Flash and Qwen3.8-Flash-Next also hold the newest keys of indexers: 11 of 2,048 B, 12 of 1,024 B.
STATES = [
    (JAMBA, 28, 8_716_288, 32, 16_056_320),
    (FALCON_MAMBA, 64, 19_922_944, 32, 36_700_160),
    (CODESTRAL, 64, 138_149_888, 32, 272_367_616),
    (NEMOTRON_H_8B, 24, 102_137_856, 16, 51_806_208),
    (NEMOTRON_H_56B, 54, 912_605_184, 16, 459_620_352),
    (NEMOTRON_NANO, 23, 49_082_368, 16, 24_965_120),
    (NEMOTRON_SUPER, 40, 170_229_760, 16, 86_343_680),
    (NEMOTRON_ULTRA, 48, 407_961_600, 16, 206_635_008),
    (FALCON_H1, 44, 70_152_192, 32, 139_358_208),
    (GRANITE, 36, 29_030_400, 32, 57_341_952),
    (QWEN_NEXT, 36, 39_518_208, 32, 77_266_944),
    (QWEN_27B, 48, 153_944_064, 16, 78_446_592),
    (QWEN_35B, 30, 64_389_120, 16, 32_931_840),
    (QWEN_397B, 45, 192_061_440, 16, 97_689_600),
    (QWEN_FLASH, 36, 115_470_336 - 12 * 1024, 16, 58_834_944),
    (KIMI_LINEAR, 20, 43_417_600, 16, 22_446_080),
    (KIMI_K3, 69, 449_372_160, 16, 232_316_928),
    (GLM_FLASH, 34, 147_642_368 - 11 * 2048, 16, 76_316_672),
    (LING, 35, 75_980_800, 16, 39_280_640),
    (MINIMAX_M1, 70, 293_601_280, 16, 146_800_640),
    (LFM2, 22, 180_224, 32, 180_224),
]


@pytest.mark.parametrize(("model", "num_layers", "size", "other_bits", "other_size"), STATES)
def test_state_of_a_sequence(model, num_layers, size, other_bits, other_size):
    layers = (Layer(mixers=(mixer_of(model),)),) * num_layers
    other = with_recurrent_bits(layers, other_bits)
    sizes = [state_bytes([mixer for layer in each for mixer in layer.mixers]) for each in (layers, other)]
    assert sizes == [size, other_size]


def test_state_of_the_convolutions_beside_attention():
    # EXPECTED-DETAIL.csv: 55 layers with a window and 16 KV heads, 11 without and 8 KV heads.
    fields = shipped(INKLING)
    local, full = (inkling_convs(fields, 6144, num_kv_heads, 128) for num_kv_heads in (16, 8))
    assert state_bytes([local] * 55 + [full] * 11) == 6_352_896


def test_convolutions_beside_attention_can_be_off():
    assert inkling_convs(shipped(INKLING, {"use_sconv": False}), 6144, 8, 128) == Mixer()


# Elements of all parameters that the modules of transformers 5.24.0 make of these configs, counted by running
# their constructors. The headers of Kimi-Linear's checkpoint add up to the same.
PARAMETERS = [
    (JAMBA, 105_308_448),
    (FALCON_MAMBA, 105_308_160),
    (CODESTRAL, 109_635_968),
    (NEMOTRON_H_8B, 109_635_968),
    (NEMOTRON_H_56B, 438_424_320),
    (NEMOTRON_NANO, 38_742_208),
    (NEMOTRON_SUPER, 109_635_968),
    (NEMOTRON_ULTRA, 421_636_864),
    (FALCON_H1, 29_976_136),
    (GRANITE, 14_642_576),
    (QWEN_NEXT, 33_718_464),
    (QWEN_27B, 115_876_064),
    (QWEN_35B, 33_718_464),
    (QWEN_397B, 118_014_208),
    (QWEN_FLASH, 57_958_624),
    (KIMI_LINEAR, 39_514_272),
    (GLM_FLASH, 137_732_288),
    (LING, 63_049_888),
    (MINIMAX_M1, 251_666_432),
    (LFM2, 16_783_360),
]


@pytest.mark.parametrize(("model", "parameters"), PARAMETERS)
def test_parameters_of_a_layer(model, parameters):
    assert num_parameters(mixer_of(model)) == parameters


# The same count for configs with biases, several groups, or names that no shipped model uses.
@pytest.mark.parametrize(
    ("config", "hidden_size", "parameters"),
    [
        (
            {"model_type": "bamba", "mamba_d_state": 128, "mamba_d_head": 64, "mamba_proj_bias": True},
            4096,
            102_307_840,
        ),
        (
            {"model_type": "zamba2", "n_mamba_heads": 112, "mamba_ngroups": 2, "mamba_headdim": 64},
            3584,
            78_433_872,
        ),
    ],
    ids=["bamba", "zamba2"],
)
def test_parameters_of_other_mamba_families(config, hidden_size, parameters):
    assert num_parameters(mamba2(Fields("m", config), hidden_size)) == parameters


def test_parameters_of_a_whole_model_without_attention():
    # Published for Mamba-Codestral-7B-v0.1: 7,285,403,648. Two embeddings and a norm in and after the layers.
    layers = 64 * (num_parameters(mixer_of(CODESTRAL)) + 4096)
    assert layers + 2 * 32768 * 4096 + 4096 == 7_285_403_648


def test_full_rank_gate_of_kimi_k3():
    # vLLM 0.33.0 models/kimi_k3/nvidia/kda.py: queries, keys, values, gate, output and the second half of the
    # decay are 96 * 128 wide, the first half 128 and on every GPU, and a head has one rate.
    mixer = mixer_of(KIMI_K3)
    width = 96 * 128
    assert mixer.split_parameters == 7168 * (5 * width + 96) + 128 * width
    assert mixer.replicated_parameters == 7168 * 128
    assert mixer.small_parameters == 3 * width * 4 + width + 96 + 128


# On every GPU: halves of low rank (2304 and 4096 by 128, twice), what one group shares (two states of the
# hidden size), and nothing in models whose projections vLLM 0.33.0 splits throughout.
@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        (KIMI_LINEAR, 2 * 2304 * 128),
        (GLM_FLASH, 2 * 4096 * 128),
        (LING, 0),
        (GRANITE, 2 * 1536 * 128),
        (FALCON_H1, 2 * 3072 * 256),
        (NEMOTRON_NANO, 0),
        (QWEN_27B, 0),
        (JAMBA, 0),
        (LFM2, 0),
    ],
)
def test_parameters_on_every_gpu(model, parameters):
    assert mixer_of(model).replicated_parameters == parameters


def rank_elements(mixer, role, tensor_parallel):
    """Elements on one GPU, as StatePart says that tensor parallelism divides them."""
    return sum(
        max(1, -(-part.num_units // tensor_parallel)) * part.unit_elements
        for part in mixer.states
        if part.role == role
    )


# Elements on one GPU by vLLM 0.33.0 model_executor/layers/mamba/mamba_utils.py, MambaStateShapeCalculator:
# convolution, recurrence.
@pytest.mark.parametrize(
    ("model", "tensor_parallel", "conv", "recurrent"),
    [
        (JAMBA, 8, 8192 // 8 * 3, 8192 // 8 * 16),
        (NEMOTRON_H_8B, 8, (8192 + 2 * 8 * 128) // 8 * 3, 16 * 64 * 128),
        (FALCON_H1, 8, (3072 + 2 * 8 * 256) // 8 * 3, 3 * 128 * 256),  # one group on every GPU
        (GRANITE, 4, (3072 + 2 * 4 * 128) // 4 * 3, 12 * 64 * 128),
        (QWEN_27B, 4, (2 * 16 * 128 + 48 * 128) // 4 * 3, 12 * 128 * 128),
        (KIMI_LINEAR, 8, 3 * 32 * 128 // 8 * 3, 4 * 128 * 128),
        (MINIMAX_M1, 8, 0, 8 * 128 * 128),
        (LFM2, 2, 2048 // 2 * 2, 0),
    ],
)
def test_state_on_one_gpu(model, tensor_parallel, conv, recurrent):
    mixer = mixer_of(model)
    assert rank_elements(mixer, "conv", tensor_parallel) == conv
    assert rank_elements(mixer, "recurrent", tensor_parallel) == recurrent


@pytest.mark.parametrize("model", KINDS)
@pytest.mark.parametrize("tensor_parallel", [1, 2, 3, 4, 8, 16, 64])
def test_ranks_hold_the_whole_state_and_never_more_than_a_copy_each(model, tensor_parallel):
    mixer = mixer_of(model)
    for role in ("conv", "recurrent"):
        whole = rank_elements(mixer, role, 1)
        assert whole <= tensor_parallel * rank_elements(mixer, role, tensor_parallel)
        assert rank_elements(mixer, role, tensor_parallel) <= whole


# kv-physics section 10: 6 * heads * key size * value size, 6 * heads * head size * state size.
@pytest.mark.parametrize(
    ("model", "flops"),
    [
        (QWEN_27B, 6 * 48 * 128 * 128),
        (KIMI_LINEAR, 6 * 32 * 128 * 128),
        (NEMOTRON_H_8B, 6 * 128 * 64 * 128),
        (JAMBA, 6 * 8192 * 16),
        (LFM2, 0),
    ],
)
def test_arithmetic_of_the_recurrence(model, flops):
    assert mixer_of(model).scan_flops_per_token == flops


# transformers 5.24.0 models/*/configuration_*.py: what each family takes where a config is silent.
@pytest.mark.parametrize(
    ("model", "silent"),
    [
        (JAMBA, ["mamba_expand", "mamba_d_conv", "mamba_d_state", "mamba_dt_rank", "mamba_conv_bias"]),
        (FALCON_MAMBA, ["state_size", "conv_kernel", "time_step_rank"]),
        (CODESTRAL, ["num_heads", "head_dim", "state_size", "n_groups", "conv_kernel", "expand"]),
        (NEMOTRON_H_8B, ["mamba_num_heads", "mamba_head_dim", "ssm_state_size", "n_groups", "conv_kernel"]),
        (FALCON_H1, ["mamba_d_state", "mamba_n_groups", "mamba_d_conv", "mamba_d_head"]),
        (GRANITE, ["mamba_expand", "mamba_d_head", "mamba_n_groups", "mamba_d_conv"]),
        (QWEN_NEXT, ["linear_num_key_heads", "linear_num_value_heads", "linear_key_head_dim"]),
        (QWEN_27B, ["linear_value_head_dim", "linear_conv_kernel_dim"]),
        (LFM2, ["conv_L_cache", "conv_dim"]),
        (MINIMAX_M1, []),
    ],
)
def test_defaults_of_the_family(model, silent):
    assert mixer_of(model, dict.fromkeys(silent)) == mixer_of(model)


@pytest.mark.parametrize(
    ("model", "changes"),
    [
        (FALCON_MAMBA, {"intermediate_size": None, "expand": 2}),
        (FALCON_MAMBA, {"time_step_rank": "auto"}),
        (NEMOTRON_NANO, {"n_groups": None, "mamba_n_groups": 8, "conv_kernel": None, "mamba_d_conv": 4}),
        (NEMOTRON_NANO, {"model_type": "a new wrapper"}),
        (GRANITE, {"model_type": "a new wrapper"}),
        (FALCON_H1, {"mamba_d_head": "auto"}),
        (KIMI_LINEAR, {"linear_attn_config": None}),
        (GLM_FLASH, {"linear_attn_config": None}),
        (GLM_FLASH, {"linear_attn_config": None, "linear_num_heads": 64, "linear_head_dim": 128}),
        # As the checkpoint has it: transformers moves head_dim to linear_head_dim when it saves a config.
        (LING, {"linear_num_heads": None, "linear_head_dim": None, "head_dim": 128}),
        (LING, {"linear_conv_kernel_dim": None}),
    ],
    ids=str,
)
def test_other_spellings(model, changes):
    assert mixer_of(model, changes) == mixer_of(model)


def test_channels_of_falcon_h1():
    # transformers 5.24.0 falcon_h1: null is the expansion of the hidden size, missing is 1024.
    config = {"model_type": "falcon_h1", "mamba_n_heads": 16}
    expanded, default = (
        mamba2(Fields("m", config | changes), 3072) for changes in ({"mamba_d_ssm": None}, {})
    )
    assert [mixer.states[0].unit_elements for mixer in (expanded, default)] == [384 * 3, 64 * 3]


# A norm over the channels, biases of each projection and of the convolution: FalconH1Mixer of transformers
# 5.24.0 with 3072 channels, a convolution of 3584, 24 heads.
@pytest.mark.parametrize(
    ("model", "changes", "added"),
    [
        (FALCON_H1, {"mamba_rms_norm": True}, 3072),
        (FALCON_H1, {"mamba_proj_bias": True}, 3072 + 3584 + 24),
        (FALCON_H1, {"projectors_bias": True}, 3072),
        (FALCON_H1, {"mamba_conv_bias": False}, -3584),
        (JAMBA, {"mamba_proj_bias": True}, 2 * 8192 + 4096),
        (JAMBA, {"mamba_conv_bias": False}, -8192),
        (LFM2, {"conv_bias": True}, 5 * 2048),
    ],
    ids=str,
)
def test_switches_of_biases_and_norms(model, changes, added):
    mixer, plain = mixer_of(model, changes), mixer_of(model)
    assert num_parameters(mixer) - num_parameters(plain) == added
    assert mixer.small_parameters - plain.small_parameters == added


@pytest.mark.parametrize(
    ("model", "changes", "bits"),
    [
        (NEMOTRON_H_8B, {}, 32),
        (NEMOTRON_H_8B, {"mamba_ssm_cache_dtype": "bfloat16"}, 16),
        (NEMOTRON_H_8B, {"mamba_ssm_cache_dtype": "auto"}, 32),
        (QWEN_27B, {"mamba_ssm_dtype": None}, None),
        (QWEN_27B, {"mamba_ssm_dtype": "float16"}, 16),
        (QWEN_NEXT, {}, None),
        (QWEN_NEXT, {"mamba_ssm_dtype": "float32"}, 32),
        (KIMI_LINEAR, {}, 32),
        (KIMI_LINEAR, {"mamba_ssm_dtype": "bfloat16"}, 16),
        (FALCON_H1, {}, None),
        (JAMBA, {}, None),
        (MINIMAX_M1, {}, 32),
    ],
    ids=str,
)
def test_format_of_the_recurrent_state(model, changes, bits):
    parts = mixer_of(model, changes).states
    assert [part.bits for part in parts if part.role == "recurrent"] == [bits]
    assert all(part.bits is None for part in parts if part.role == "conv")


def test_another_format_changes_recurrent_states_only():
    window = StatePart(role="compressor", num_units=1, unit_elements=7, bits=32, sharded=False)
    cache = Cache(entry=KvHeads(num_heads=2, key_size=64, value_size=64))
    recurrence = StatePart(role="recurrent", num_units=4, unit_elements=8)
    layer = Layer(mixers=(Mixer(caches=(cache,)), Mixer(states=(recurrence, window))), norm_parameters=5)
    (changed,) = with_recurrent_bits((layer,), 8)
    assert changed.states == (StatePart(role="recurrent", num_units=4, unit_elements=8, bits=8), window)
    assert (changed.caches, changed.norm_parameters) == (layer.caches, 5)


@pytest.mark.parametrize(
    ("model", "changes", "message"),
    [
        (
            QWEN_27B,
            {"linear_num_value_heads": 40},
            "linear_num_key_heads=16 does not divide linear_num_value",
        ),
        (QWEN_27B, {"linear_value_head_dim": 0}, "linear_value_head_dim=0 is not positive"),
        (QWEN_27B, {"linear_conv_kernel_dim": "four"}, "linear_conv_kernel_dim='four' is not a whole number"),
        (QWEN_27B, {"mamba_ssm_dtype": "float8"}, "mamba_ssm_dtype='float8' is not one of float32"),
        (QWEN_27B, {"mamba_ssm_dtype": 32}, "mamba_ssm_dtype=32 is not a string"),
        (KIMI_LINEAR, {"linear_attn_config": {"head_dim": 128}}, "the config has no num_heads"),
        (KIMI_LINEAR, {"linear_attn_config": 4}, "linear_attn_config=4 is not a JSON object"),
        (KIMI_K3, {"linear_attn_config": {"num_heads": 96, "head_dim": -1}}, "head_dim=-1 is not positive"),
        (LING, {"linear_num_heads": None, "num_attention_heads": None}, "the config has no linear_num_heads"),
        (MINIMAX_M1, {"num_attention_heads": None}, "the config has no num_attention_heads"),
        (MINIMAX_M1, {"head_dim": None, "num_attention_heads": 100}, "=100 does not divide hidden_size=6144"),
        (LFM2, {"conv_dim": 1024}, "conv_dim=1024 is not hidden_size=2048"),
        (LFM2, {"conv_L_cache": 0}, "conv_L_cache=0 is not positive"),
        (JAMBA, {"mamba_dt_rank": 0}, "mamba_dt_rank=0 is not positive"),
        (JAMBA, {"mamba_dt_rank": [1, 2]}, "mamba_dt_rank"),
        (JAMBA, {"mamba_d_state": -16}, "mamba_d_state=-16 is not positive"),
        (NEMOTRON_NANO, {"n_groups": 7}, "n_groups=7 does not divide mamba_num_heads=64"),
        (NEMOTRON_NANO, {"mamba_head_dim": 0}, "mamba_head_dim=0 is not positive"),
        (GRANITE, {"mamba_n_heads": 47}, "mamba_n_heads=47 does not divide the 3072 channels"),
        (GRANITE, {"mamba_d_head": 32}, "mamba_n_heads=48 heads of mamba_d_head=32 do not fill the 3072"),
        (FALCON_H1, {"mamba_d_ssm": 6144}, "mamba_d_head=128 do not fill the 6144 channels"),
        (GRANITE, {"model_type": "new", "mamba_n_heads": None}, "has no mamba_num_heads or mamba_n_heads"),
    ],
    ids=str,
)
def test_configs_that_cannot_be_used(model, changes, message):
    with pytest.raises(InputError, match=message) as refusal:
        mixer_of(model, changes)
    assert "\n" not in str(refusal.value)
