"""KV bytes against kvcache-simulator 0.1.3 of KVCache.AI and its catalogue of 62 variants (Apache-2.0).

Several variants share the geometry of one config that we ship, and are compared with that one.
"""

import json
from typing import NamedTuple

import pytest

from warmset.model import kv_bytes, kv_layout, load_model, resolve_config, sequence_bytes, shipped_models

calculator = pytest.importorskip(
    "kvcache_sim.calculator", reason="needs kvcache-simulator: the catalogue that ours is compared with"
)

CATALOGUE = calculator.load_models_data()
VARIANTS = calculator.models_by_id(CATALOGUE)
PATHS = {shipped.model: shipped.path for shipped in shipped_models()}
LENGTHS = (4096, 32768, 131072)
ALL_BF16 = kv_layout("bf16", "bf16")
FP8 = kv_layout("fp8")

# Variant -> our config of the same name or, where marked, of the same geometry.
SAME = {
    "deepseek-v3.2": "deepseek-ai/DeepSeek-V3.2",
    "deepseek-v3": "deepseek-ai/DeepSeek-V3",
    "deepseek-r1": "deepseek-ai/DeepSeek-R1",
    "glm-5": "zai-org/GLM-5",
    "glm-5.1": "zai-org/GLM-5",  # geometry
    "glm-5.2": "zai-org/GLM-5.2",
    "glm-5.3": "zai-org/GLM-5.2",  # geometry
    "kimi-k3": "moonshotai/Kimi-K3",
    "kimi-k2.5": "moonshotai/Kimi-K2.5",
    "kimi-k2.6": "moonshotai/Kimi-K2.5",  # geometry
    "kimi-k2.7-code": "moonshotai/Kimi-K2.5",  # geometry
    "qwen3.6-27b": "Qwen/Qwen3.5-27B",  # geometry
    "qwen3.6-35b-a3b": "Qwen/Qwen3.5-35B-A3B",  # geometry
    "qwen3.5-397b-a17b": "Qwen/Qwen3.5-397B-A17B",
    "qwen3.5-35b-a3b": "Qwen/Qwen3.5-35B-A3B",
    "qwen3.5-27b": "Qwen/Qwen3.5-27B",
    "qwen3-235b-a22b": "Qwen/Qwen3-235B-A22B",
    "qwen3-32b": "Qwen/Qwen3-32B",
    "qwen3-14b": "mistralai/Mistral-Nemo-Instruct-2407",  # geometry: 40 layers, 8 KV heads of 128
    "qwen3-8b": "Qwen/Qwen3-8B",
    "qwen3-4b": "Qwen/Qwen3-8B",  # geometry
    "qwen3-1.7b": "Qwen/Qwen3-0.6B",  # geometry
    "qwen3-0.6b": "Qwen/Qwen3-0.6B",
    "qwen2.5-72b": "Qwen/Qwen2.5-72B-Instruct",
    "qwen2.5-32b": "Qwen/Qwen3-32B",  # geometry: 64 layers, 8 KV heads of 128
    "qwen2.5-7b": "Qwen/Qwen2-7B-Instruct",  # geometry
    "qwen2.5-coder-32b": "Qwen/Qwen3-32B",  # geometry
    "llama-3.1-8b": "meta-llama/Meta-Llama-3.1-8B",
    "llama-3.1-70b": "meta-llama/Meta-Llama-3.1-70B",
    "llama-3.3-70b": "meta-llama/Meta-Llama-3.1-70B",  # geometry
    "gemma-4-e2b": "google/gemma-4-E2B-it",
    "gemma-4-e4b": "google/gemma-4-E4B-it",
    "gemma-4-26b-a4b": "google/gemma-4-26B-A4B",
    "gemma-4-31b": "nvidia/Gemma-4-31B-IT-NVFP4",
    "cohere-command-r-v01": "CohereForAI/c4ai-command-r-v01",
    "cohere-command-r-plus": "Qwen/Qwen3-32B",  # geometry: 64 layers, 8 KV heads of 128
    "cohere-command-r7b-12-2024": "CohereForAI/c4ai-command-r7b-12-2024",
    "cohere-command-a-03-2025": "LGAI-EXAONE/EXAONE-4.0-32B",  # geometry: 16 full layers and 48 with 4,096
    "cohere-command-a-plus-05-2026": "CohereForAI/c4ai-command-r7b-12-2024",  # geometry
    "mimo-v2.5": "XiaomiMiMo/MiMo-V2-Flash",  # geometry
    "minimax-m2": "MiniMaxAI/MiniMax-M2.5",  # geometry
    "minimax-m2.1": "MiniMaxAI/MiniMax-M2.5",  # geometry
    "minimax-m2.5": "MiniMaxAI/MiniMax-M2.5",
    "minimax-m2.7": "MiniMaxAI/MiniMax-M2.5",  # geometry
    "minimax-m3": "MiniMaxAI/MiniMax-M3",
}


class Difference(NamedTuple):
    model: str
    ours: tuple[int, int, int]
    theirs: tuple[int, int, int]
    reason: str


# At bf16, at the three lengths.
DIFFERENT = {
    "deepseek-v4-flash": Difference(
        "deepseek-ai/DeepSeek-V4-Flash",
        (46_022_656, 243_286_016, 919_617_536),
        (33_816_576, 231_079_936, 907_411_456),
        "12,206,080 bytes of fp32 rows that wait in the compressors: CompressorStateCache in vLLM 0.33.0, "
        "models/deepseek_v4/compressor.py. It counts none.",
    ),
    "deepseek-v4-pro": Difference(
        "deepseek-ai/DeepSeek-V4-Pro",
        (67_043_328, 349_405_184, 1_317_502_976),
        (48_332_800, 330_694_656, 1_298_792_448),
        "18,710,528 bytes in the compressors, as above.",
    ),
    "qwen3.8-27b": Difference(
        "Qwen/Qwen3.5-27B",  # geometry
        (422_379_520, 2_301_427_712, 8_743_878_656),
        (346_882_048, 2_225_930_240, 8_668_381_184),
        "75,497,472 bytes: it takes states in bf16 for Qwen3.8, in fp32 for Qwen3.6 and 3.5. The config has "
        "mamba_ssm_dtype=float32, which vLLM 0.33.0 model_executor/models/config.py takes for this family.",
    ),
}

# It carries the fields of these for its web page, and its Python code refuses their formula.
NOT_COMPUTED = {"dots3-note-prev", "deepseek-v4.1-flash", "glm-5.3-flash", "inkling", "inkling-small"}

# We ship no config of these. Variant -> a config of the same family that its fields are put into, or None.
NOT_SHIPPED = {
    "dots3-note-prev": None,
    "inkling-small": None,
    "mimo-v2.5-pro": "XiaomiMiMo/MiMo-V2-Flash",
    "qwen2.5-14b": "Qwen/Qwen2.5-72B-Instruct",
    "qwen3-30b-a3b": "Qwen/Qwen3-235B-A22B",
    "qwen3.5-0.8b": "Qwen/Qwen3.5-27B",
    "qwen3.5-2b": "Qwen/Qwen3.5-27B",
    "qwen3.5-4b": "Qwen/Qwen3.5-27B",
    "qwen3.5-9b": "Qwen/Qwen3.5-27B",
    "qwen3.5-122b-a10b": "Qwen/Qwen3.5-397B-A17B",
    "qwen3.8-2.4t-a95b": "Qwen/Qwen3.5-397B-A17B",
}


def their_bytes(variant, tokens, precision="bf16_fp16", **options):
    result = calculator.calculate_cache_size(
        VARIANTS[variant],
        tokens=tokens,
        precision=precision,
        indexer_precision="bf16_fp16",
        include_linear_attention_state=True,
        models_data=CATALOGUE,
        **options,
    )
    assert result.total_bytes == int(result.total_bytes)
    return int(result.total_bytes)


def test_every_variant_is_accounted_for():
    assert len(VARIANTS) == 62
    known = set(SAME) | set(DIFFERENT) | (NOT_COMPUTED - set(NOT_SHIPPED))
    assert known | set(NOT_SHIPPED) == set(VARIANTS)
    assert not known & set(NOT_SHIPPED)
    assert not set(SAME) & set(DIFFERENT)


@pytest.mark.parametrize("variant", SAME)
def test_the_same_bytes(variant):
    spec = load_model(SAME[variant])
    ours = [sequence_bytes(spec, tokens, ALL_BF16) for tokens in LENGTHS]
    assert ours == [their_bytes(variant, tokens) for tokens in LENGTHS]


@pytest.mark.parametrize("variant", DIFFERENT)
def test_listed_differences(variant):
    difference = DIFFERENT[variant]
    spec = load_model(difference.model)
    assert tuple(sequence_bytes(spec, tokens, ALL_BF16) for tokens in LENGTHS) == difference.ours
    assert tuple(their_bytes(variant, tokens) for tokens in LENGTHS) == difference.theirs


def test_the_differences_are_what_the_reasons_say():
    for variant in ("deepseek-v4-flash", "deepseek-v4-pro"):
        state = kv_bytes(load_model(DIFFERENT[variant].model), ALL_BF16).state_bytes_per_sequence
        for ours, theirs in zip(DIFFERENT[variant].ours, DIFFERENT[variant].theirs, strict=True):
            assert ours - theirs == state
    qwen = DIFFERENT["qwen3.8-27b"]
    fp32 = [their_bytes("qwen3.8-27b", tokens, recurrent_state_precision="fp32") for tokens in LENGTHS]
    assert fp32 == list(qwen.ours)


def has_plain_drafts(variant):
    """V4's draft layers have a window alone; Gated DeltaNet's are not counted by its formula."""
    return variant in SAME and VARIANTS[variant]["formula"] in {"mla", "dsa_mla", "standard_gqa"}


DRAFTED = [
    variant
    for variant, model in VARIANTS.items()
    if has_plain_drafts(variant) and calculator.has_draft_kv_cache(model)
]


@pytest.mark.parametrize("variant", DRAFTED)
def test_the_same_bytes_with_draft_layers(variant):
    spec = load_model(SAME[variant])
    drafts = kv_bytes(spec, ALL_BF16).mtp_bytes_per_token
    assert drafts > 0
    for tokens in LENGTHS:
        ours = sequence_bytes(spec, tokens, ALL_BF16) + drafts * tokens
        assert ours == their_bytes(variant, tokens, include_draft_kv_cache=True)


def test_variants_with_draft_layers():
    assert len(DRAFTED) == 11  # V3, R1, V3.2, four GLM-5.x, four MiniMax-M2.x


@pytest.mark.parametrize("variant", SAME)
def test_in_8_bits(variant):
    """Ours differs only by what engines store beside the elements of an indexed latent and its index key.

    Such a latent has four fp32 scales and its rotated key in bf16: 656 bytes and not 576. The index key stays
    at 256 bytes on its side and takes 132 on ours, fp8 with a scale.
    """
    # vLLM 0.33.0 v1/attention/backends/mla/flashmla_sparse.py; SGLang 0.5.23 srt/mem_cache/memory_pool.py
    spec = load_model(SAME[variant])
    model = VARIANTS[variant]
    if model["formula"] == "dsa_mla":
        layers = model["fields"]["num_hidden_layers"]
        index_layers = model["fields"].get("indexer_full_layers", layers)
        beside = layers * (656 - 576) + index_layers * (132 - 256)
    else:
        beside = 0
    layout = FP8 if model["formula"] == "dsa_mla" else kv_layout("fp8", "bf16")
    for tokens in LENGTHS:
        theirs = their_bytes(variant, tokens, precision="fp8_int8")
        assert sequence_bytes(spec, tokens, layout) == theirs + beside * tokens


def in_the_place_of(variant):
    """A config of the same family with the fields of a variant that we do not ship."""
    model, fields = NOT_SHIPPED[variant], VARIANTS[variant]["fields"]
    config = json.loads(PATHS[model].read_text(encoding="utf-8"))
    text = config.get("text_config", config)
    lists = ("layer_types", "hybrid_layer_pattern", "moe_layer_freq")
    values = {key: value for key, value in text.items() if key not in lists}
    values |= {key: value for key, value in fields.items() if key in text} | {"head_dim": fields["head_dim"]}
    if "hybrid_layer_pattern" in text:
        values["hybrid_layer_pattern"] = fields["full_attention_layers"] * [0] + fields[
            "sliding_attention_layers"
        ] * [1]
    return values


@pytest.mark.parametrize("variant", [variant for variant, model in NOT_SHIPPED.items() if model])
def test_the_fields_of_a_variant_that_is_not_shipped(variant):
    spec = resolve_config(in_the_place_of(variant), variant)
    options = {"recurrent_state_precision": "fp32"} if variant == "qwen3.8-2.4t-a95b" else {}
    for tokens in LENGTHS:
        assert sequence_bytes(spec, tokens, ALL_BF16) == their_bytes(variant, tokens, **options)


@pytest.mark.parametrize("variant", sorted(NOT_COMPUTED))
def test_what_it_does_not_compute(variant):
    with pytest.raises(ValueError, match="Unsupported formula"):
        their_bytes(variant, 4096)


def test_the_fields_of_what_it_does_not_compute():
    fields = VARIANTS["inkling"]["fields"]
    kv = kv_bytes(load_model("thinkingmachines/Inkling"), ALL_BF16)
    size, hidden = 2 * 2 * fields["head_dim"], fields["hidden_size"]
    full, sliding = fields["full_attention_layers"], fields["sliding_attention_layers"]
    heads, sliding_heads = fields["num_key_value_heads"], fields["swa_num_key_value_heads"]
    assert kv.growth_bytes_per_token == full * heads * size
    assert kv.windows == {fields["sliding_window"]: sliding * sliding_heads * size}
    inputs = full * (heads * size + 4 * hidden) + sliding * (sliding_heads * size + 4 * hidden)
    assert kv.state_bytes_per_sequence == (fields["sconv_kernel_size"] - 1) * inputs

    fields = VARIANTS["glm-5.3-flash"]["fields"]
    kv = kv_bytes(load_model("zai-org/GLM-5.3-Flash"), ALL_BF16)
    latents = 2 * fields["full_attention_layers"] * fields["kv_lora_rank"]
    keys = 2 * fields["indexer_full_layers"] * fields["index_head_dim"] // fields["index_kpool"]
    assert kv.growth_bytes_per_token == latents + keys
    width = fields["kda_num_heads"] * fields["kda_head_dim"]
    states = 2 * 3 * 3 * width + 4 * width * fields["kda_head_dim"]
    ring = 2 * 2 * fields["index_kpool"] * fields["index_head_dim"]
    assert kv.state_bytes_per_sequence == fields["kda_layers"] * states + fields["indexer_full_layers"] * ring

    fields = VARIANTS["deepseek-v4.1-flash"]["fields"]
    kv = kv_bytes(load_model("deepseek-ai/DeepSeek-V4.1-Flash"), ALL_BF16)
    entry = 2 * (fields["head_dim"] + fields["index_head_dim"])
    sources = fields["kv_source_layer_ids"]
    assert kv.growth_bytes_per_token == sum(entry // fields["compress_ratios"][layer] for layer in sources)
    assert kv.windows == {fields["sliding_window"]: 2 * fields["num_hidden_layers"] * fields["head_dim"]}
