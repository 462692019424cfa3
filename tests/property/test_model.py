"""What must hold for any model: the shipped ones at any length and placement, and configs drawn at random."""

import json
from fractions import Fraction
from functools import cache

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles import kv_oracle
from warmset.errors import InputError, WarmsetError
from warmset.model import (
    Placement,
    cached_prefix_bytes,
    growth_bytes_per_token,
    kv_bytes,
    kv_layout,
    load_model,
    resolve_config,
    sequence_bytes,
    shipped_models,
)
from warmset.model.layouts import LAYOUT_NAMES
from warmset.model.placement import gpu_bytes, sequence_bytes_per_gpu, stage_layers, stage_specs

BF16 = kv_layout("bf16")
PATHS = {shipped.model: shipped.path for shipped in shipped_models()}
MODELS = st.sampled_from(sorted(PATHS))
TOKENS = st.integers(0, 300_000)
LAYOUTS = st.sampled_from(
    [*LAYOUT_NAMES, "q8_0/q4_0", "bf16/fp8", "kivi4/kivi2", "int4_per_token_head/fp8_per_token_head"]
)


@cache
def spec_of(model):
    return load_model(model)


@cache
def config_of(model):
    return json.loads(PATHS[model].read_text(encoding="utf-8"))


def in_layout(ask):
    """The answer, or None where the model has an entry that the layout is not defined for."""
    try:
        return ask()
    except InputError as error:
        assert "KV layout" in str(error)  # noqa: PT017 - both outcomes are right, and the refusal has one reason
        return None


# Lengths


@given(MODELS, LAYOUTS, TOKENS, st.integers(1, 10_000))
def test_bytes_never_fall_with_length_and_are_whole(model, layout, tokens, more):
    spec, layout = spec_of(model), kv_layout(layout)
    sizes = in_layout(lambda: [sequence_bytes(spec, length, layout) for length in (tokens, tokens + more)])
    if sizes is None:
        return
    assert [type(size) for size in sizes] == [int, int]
    assert 0 <= sizes[0] <= sizes[1]
    growth = growth_bytes_per_token(spec, layout)
    assert type(growth) is Fraction
    kv = kv_bytes(spec, layout)
    whole = (kv.state_bytes_per_sequence, kv.cross_bytes_per_input, *kv.windows.values(), *kv.windows)
    assert {type(size) for size in whole} == {int}


@given(MODELS, st.integers(0, 300_000))
def test_a_sequence_is_growth_windows_state_and_encoder_input(model, tokens):
    """An entry that stands for several tokens exists when they are all there; until then it is missing."""
    spec = spec_of(model)
    kv = kv_bytes(spec, BF16)
    windows = sum(size * min(tokens, span) for span, size in kv.windows.items())
    fixed = windows + kv.state_bytes_per_sequence + kv.cross_bytes_per_input
    behind = kv.growth_bytes_per_token * tokens - (sequence_bytes(spec, tokens, BF16) - fixed)
    longest = max((cache.tokens_per_entry for layer in spec.layers for cache in layer.caches), default=1)
    assert 0 <= behind <= kv.growth_bytes_per_token * (longest - 1)


@given(MODELS, LAYOUTS, TOKENS, st.integers(1, 5_000), st.one_of(st.none(), st.integers(1, 10_000)))
def test_a_longer_cached_prefix_is_not_smaller(model, layout, tokens, more, snapshot):
    spec, layout = spec_of(model), kv_layout(layout)
    sizes = in_layout(
        lambda: [cached_prefix_bytes(spec, length, layout, snapshot) for length in (tokens, tokens + more)]
    )
    if sizes is not None:
        assert [type(size) for size in sizes] == [int, int]
        assert 0 <= sizes[0] <= sizes[1]


@given(MODELS, TOKENS)
def test_a_cached_prefix_with_one_point_is_a_running_sequence_without_its_encoder_input(model, tokens):
    spec = spec_of(model)
    running = sequence_bytes(spec, tokens, BF16) - kv_bytes(spec, BF16).cross_bytes_per_input
    assert cached_prefix_bytes(spec, tokens, BF16) == running


# Placement


@pytest.mark.parametrize("model", sorted(PATHS))
def test_all_gpus_together_hold_at_least_the_model(model):
    spec = spec_of(model)
    whole = kv_bytes(spec, BF16)
    accepted = 0
    for tensor in range(1, 17):
        for pipeline in range(1, 5):
            placement = Placement(tensor_parallel=tensor, pipeline_parallel=pipeline)
            try:
                fullest = gpu_bytes(spec, BF16, placement)
            except InputError:
                continue
            accepted += 1
            assert fullest.growth_bytes_per_token * placement.num_gpus >= whole.growth_bytes_per_token
            assert fullest.replication >= 1
            if pipeline == 1:
                assert fullest.window_bytes_per_token * tensor >= whole.window_bytes_per_token
                assert fullest.state_bytes_per_sequence * tensor >= whole.state_bytes_per_sequence
                assert fullest.cross_bytes_per_input * tensor >= whole.cross_bytes_per_input
    assert accepted >= 4


SPREAD = [(1, 2), (1, 3), (1, 4), (2, 1), (2, 2), (4, 4), (8, 1), (16, 1)]


@pytest.mark.parametrize("model", sorted(PATHS))
def test_a_sequence_on_all_gpus_takes_at_least_its_bytes(model):
    spec = spec_of(model)
    for tensor, pipeline in SPREAD:
        placement = Placement(tensor_parallel=tensor, pipeline_parallel=pipeline)
        stages = [
            msgspec.structs.replace(spec, layers=stage)
            for stage in stage_layers(spec, placement.pipeline_parallel)
        ]
        try:
            ranks = [stage_specs(stage, Placement(tensor_parallel=tensor))[0] for stage in stages]
        except InputError:
            continue
        for tokens in (1, 100, 5_000, 131_072):
            on_each = [sequence_bytes(rank, tokens, BF16) for rank in ranks]
            assert tensor * sum(on_each) >= sequence_bytes(spec, tokens, BF16)
            assert sequence_bytes_per_gpu(spec, tokens, BF16, placement) in on_each


@given(MODELS, st.integers(1, 32))
def test_stages_part_the_layers(model, pipeline):
    spec = spec_of(model)
    if pipeline > spec.num_layers:
        return
    stages = stage_layers(spec, pipeline)
    assert tuple(layer for stage in stages for layer in stage) == spec.layers
    lengths = [len(stage) for stage in stages]
    assert len(lengths) == pipeline
    assert 0 <= max(lengths) - min(lengths) <= 1


# Windows off


def with_fields(model, **changes):
    """A shipped config with fields of its language model changed, or removed where the change is `...`."""
    config = config_of(model)
    fields = config.get("text_config", config) | changes
    return {key: value for key, value in fields.items() if value is not ...}


def full(number):
    return {"layer_types": number * ["full_attention"], "sliding_window_pattern": ...}


ALL_FULL = {
    "CohereForAI/c4ai-command-r7b-12-2024": full(32),
    "LGAI-EXAONE/EXAONE-4.0-32B": full(64),
    "allenai/Olmo-3.1-32B-Instruct": full(64),
    "bigcode/starcoder2-7b": {"sliding_window": None},
    "google/gemma-2-27b": full(46),
    "google/gemma-2-9b": full(42),
    "google/gemma-3-12b-it": full(48),
    "google/gemma-3-1b-it": full(26),
    "google/gemma-3-27b-it": full(62),
    "google/gemma-3-4b-it": full(34),
    "google/gemma-3n-E4B-it": full(35),
    "meta-llama/Llama-4-Maverick-17B-128E-Instruct": {"no_rope_layers": 48 * [0]},
    "meta-llama/Llama-4-Scout-17B-16E-Instruct": {"no_rope_layers": 48 * [0]},
    "microsoft/Phi-3-mini-4k-instruct": {"sliding_window": None},
    "mistralai/Mistral-7B-v0.1": {"sliding_window": None},
    "openai/gpt-oss-120b": full(36),
    "openai/gpt-oss-20b": full(24),
    "stepfun-ai/Step-3.7-Flash": full(45),
}
OTHER_SHAPES = {  # their windowed layers have other heads than their full ones, or a window is all they have
    "XiaomiMiMo/MiMo-V2-Flash",
    "google/gemma-4-26B-A4B",
    "google/gemma-4-E2B-it",
    "google/gemma-4-E4B-it",
    "nvidia/Gemma-4-31B-IT-NVFP4",
    "thinkingmachines/Inkling",
    "deepseek-ai/DeepSeek-V4-Flash",
    "deepseek-ai/DeepSeek-V4-Pro",
    "deepseek-ai/DeepSeek-V4.1-Flash",
}


def test_every_windowed_model_is_among_those():
    assert {model for model in PATHS if kv_bytes(spec_of(model), BF16).windows} == set(
        ALL_FULL
    ) | OTHER_SHAPES


@pytest.mark.parametrize("model", ALL_FULL)
def test_with_all_windows_off_a_model_grows_as_its_all_full_twin(model):
    windowed = kv_bytes(spec_of(model), BF16)
    twin = kv_bytes(resolve_config(with_fields(model, **ALL_FULL[model]), "twin"), BF16)
    assert twin.windows == {}
    assert twin.growth_bytes_per_token == windowed.growth_bytes_per_token + windowed.window_bytes_per_token
    if "no_rope_layers" in ALL_FULL[model]:
        return
    off = {
        "sliding_window": 8192,
        "max_position_embeddings": 8192,
        "rope_scaling": None,
        "rope_parameters": None,
    }
    off = kv_bytes(resolve_config(with_fields(model, **off), "off"), BF16)
    assert off._replace(mtp_bytes_per_token=twin.mtp_bytes_per_token) == twin  # drafts may have a window too


# Configs drawn at random, against the slow oracle

SIZES = st.sampled_from([1, 3, 8, 17, 64])
HEADS = st.sampled_from([1, 2, 4, 8])


@st.composite
def plain_configs(draw):
    num_layers, kv_heads = draw(st.integers(1, 9)), draw(HEADS)
    config = {
        "model_type": "llama",
        "num_hidden_layers": num_layers,
        "hidden_size": 64,
        "intermediate_size": 32,
        "vocab_size": 50,
        "num_attention_heads": kv_heads * draw(HEADS),
        "num_key_value_heads": kv_heads,
        "head_dim": draw(SIZES),
    }
    kinds = st.sampled_from(["full_attention", "sliding_attention"])
    window = {"sliding_window": draw(st.integers(1, 40))}
    listed = {"layer_types": draw(st.lists(kinds, min_size=num_layers, max_size=num_layers))}
    swa_heads = draw(
        st.sampled_from([head for head in (1, 2, 4, 8) if config["num_attention_heads"] % head == 0])
    )
    more = {
        "llama": {},
        "mistral": window,
        "gpt_oss": window | listed | {"num_local_experts": 4, "num_experts_per_tok": 2},
        "gemma3_text": window | listed,
        "olmo3": window | listed,
        "mimo_v2_flash": window
        | {
            "hybrid_layer_pattern": [int(kind != "full_attention") for kind in listed["layer_types"]],
            "v_head_dim": draw(SIZES),
            "swa_num_key_value_heads": swa_heads,
            "swa_head_dim": draw(SIZES),
            "swa_v_head_dim": draw(SIZES),
        },
    }
    model_type = draw(st.sampled_from(sorted(more)))
    return config | {"model_type": model_type} | more[model_type]


@st.composite
def latent_configs(draw):
    num_layers = draw(st.integers(1, 9))
    config = {
        "model_type": "deepseek_v3",
        "num_hidden_layers": num_layers,
        "hidden_size": 64,
        "intermediate_size": 32,
        "vocab_size": 50,
        "num_attention_heads": draw(HEADS),
        "kv_lora_rank": draw(SIZES),
        "q_lora_rank": draw(st.one_of(st.none(), SIZES)),
        "qk_rope_head_dim": draw(SIZES),
        "qk_nope_head_dim": draw(SIZES),
        "v_head_dim": draw(SIZES),
    }
    if draw(st.booleans()):
        config["model_type"] = "glm_moe_dsa"
        kinds = st.sampled_from(["full", "shared"])
        others = draw(st.lists(kinds, min_size=num_layers - 1, max_size=num_layers - 1))
        config["indexer_types"] = ["full", *others]
        config |= {"index_topk": 4, "index_n_heads": 2, "index_head_dim": draw(SIZES)}
    return config


@st.composite
def hybrid_configs(draw):
    key_heads = draw(HEADS)
    return {
        "model_type": draw(st.sampled_from(["qwen3_next", "qwen3_5_text"])),
        "mamba_ssm_dtype": "float32",
        "num_hidden_layers": draw(st.integers(1, 9)),
        "hidden_size": 64,
        "intermediate_size": 32,
        "vocab_size": 50,
        "num_attention_heads": 8,
        "num_key_value_heads": draw(HEADS),
        "head_dim": draw(SIZES),
        "full_attention_interval": draw(st.integers(1, 5)),
        "linear_num_key_heads": key_heads,
        "linear_num_value_heads": key_heads * draw(HEADS),
        "linear_key_head_dim": draw(SIZES),
        "linear_value_head_dim": draw(SIZES),
        "linear_conv_kernel_dim": draw(st.integers(1, 5)),
    }


@given(st.one_of(plain_configs(), latent_configs(), hybrid_configs()), st.integers(0, 90))
def test_bytes_agree_with_the_slow_oracle(config, tokens):
    spec = resolve_config(config, "drawn")
    assert sequence_bytes(spec, tokens, BF16) == kv_oracle.sequence_bytes(config, tokens)


# Bad values in any field


MISSING = object()
BAD_VALUES = st.sampled_from(
    [MISSING, None, -1, 0, 1.5, 10**30, "x", "", True, [], [1, 2], ["x"], [None], {}, float("nan")]
)


def places(fields, path=()):
    for key, value in fields.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from places(value, (*path, key))


PLACES = [(model, path) for model in sorted(PATHS) for path in places(config_of(model))]


def changed(fields, path, value):
    first, *rest = path
    if rest:
        return fields | {first: changed(fields[first], rest, value)}
    others = {key: kept for key, kept in fields.items() if key != first}
    return others if value is MISSING else others | {first: value}


@settings(max_examples=400)
@given(st.sampled_from(PLACES), BAD_VALUES)
def test_any_value_in_any_field_is_used_or_refused_in_one_line(place, value):
    model, path = place
    message = refusal_of(changed(config_of(model), path, value))
    assert message is None or (message.startswith("org/m: ") and len(message.splitlines()) == 1)


def refusal_of(config):
    try:
        spec = resolve_config(config, "org/m")
    except WarmsetError as error:
        return str(error)
    kv = kv_bytes(spec, BF16)
    assert min(kv.growth_bytes_per_token, kv.state_bytes_per_sequence, kv.cross_bytes_per_input) >= 0
    assert all(span > 0 and size > 0 for span, size in kv.windows.items())
    return None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_any_json_is_no_model_or_a_model(config):
    try:
        resolve_config(config, "org/m")
    except WarmsetError as error:
        assert len(str(error).splitlines()) == 1  # noqa: PT017 - any JSON may also be a model
