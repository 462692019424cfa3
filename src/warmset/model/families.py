"""What the model types of transformers mean where their config.json is silent.

Source: `configuration_*.py` of transformers 5.24.0; vLLM 0.33.0 and SGLang 0.5.23 for what engines do
otherwise.
"""

from typing import Literal, NamedTuple

SLIDING = "sliding-window layers"
CHUNKED = "chunked-local attention layers"
STATE = "Mamba or other recurrent-state layers"
LINEAR = "linear-attention layers"
CONVOLUTION = "short-convolution layers"
SPARSE = "sparse-attention layers with an index cache"
COMPRESSED = "compressed KV entries"
SHARED = "layers that share another layer's KV"
CROSS = "cross-attention layers"
ENCODER = "encoder-decoder caches"
PER_LAYER = "layers with different attention"
LATENT = "low-rank latents of an unknown kind"
UNEQUAL = "keys and values of different sizes"
GATE = "attention output gates"

Recurrence = Literal["GDN", "KDA", "lightning attention", "Mamba1", "Mamba2", "RG-LRU", "short convolution"]
WindowRule = Literal["late layers", "every second layer", "layers without rope", "all layers"]


class Family(NamedTuple):
    """Defaults of a model type, and what it has besides full attention.

    `mha_by_default`: without a KV-head field every head has its own keys and values. `interval`: one layer in
    so many has full attention where no field says which; `pattern`: kinds that repeat instead, F for full, S
    for sliding and R for recurrent, which end with the last layer where `ends_with_pattern`. `window_switch`:
    a window counts only with `use_sliding_window`, and then by the `window_rule`; `all_windowed`: a window
    stands for every layer; `last_full`: the last layer has full attention whatever the config says.
    `output_gate`: queries come with a gate of the same width; `sinks`: a weight for each head beside the
    softmax; `head_gate`: a gate for each head. `compressed`: attention of DeepSeek V4. `num_shared_layers`:
    the last ones, which read an earlier layer's KV; `shares_index`: layers take over an earlier one's choice
    by default, so a config has to say which. `has`: the classes that the resolver reads for this type.
    """

    mha_by_default: bool = False
    latent: bool = False
    gated: bool = True
    tied: bool = False
    learned_positions: bool = False
    num_heads: int | None = None
    num_kv_heads: int | None = None
    head_size: int | None = None
    ffn_factor: int | None = None
    window_switch: bool = False
    window_rule: WindowRule = "late layers"
    num_layers_before_window: int = 0
    all_windowed: bool = False
    window_tokens: int | None = None
    window_key: str = "sliding_window"
    interval: int | None = None
    pattern: str = ""
    ends_with_pattern: bool = False
    last_full: bool = False
    output_gate: bool = False
    sinks: bool = False
    head_gate: bool = False
    num_norms_per_layer: int = 2
    compressed: bool = False
    num_shared_layers: int = 0
    shares_index: bool = False
    recurrent: Recurrence | None = None
    has: frozenset[str] = frozenset()


def _has(*words: str) -> Family:
    return Family(has=frozenset(words))


_LLAMA = Family(mha_by_default=True)
_GPT = Family(mha_by_default=True, gated=False, tied=True, ffn_factor=4)
_PLAIN = Family()
_LATENT = Family(latent=True)
_QWEN = _has(SLIDING)._replace(window_switch=True, num_layers_before_window=28)
_QWEN3 = _QWEN._replace(head_size=128)
_WINDOWED = _has(SLIDING)._replace(all_windowed=True)
_EVERY_FOURTH = _has(SLIDING, PER_LAYER)._replace(interval=4)
_LISTED = _has(SLIDING, PER_LAYER)._replace(pattern="F", head_size=128)
_FULL_FIRST = _has(SLIDING, PER_LAYER)._replace(pattern="FSSS")
_FULL_LAST = _has(SLIDING, PER_LAYER, GATE)._replace(
    pattern="SSSF", ends_with_pattern=True, output_gate=True, num_norms_per_layer=4
)
_GEMMA = _has(SLIDING, PER_LAYER, SHARED)._replace(tied=True, head_size=256, num_norms_per_layer=4)
_GEMMA4 = _GEMMA._replace(interval=6, last_full=True)
_GATED_DELTA = _has(LINEAR, STATE, CONVOLUTION, GATE, PER_LAYER, SPARSE)._replace(
    interval=4, recurrent="GDN", output_gate=True, head_size=256
)
_KDA = _has(LINEAR, STATE, CONVOLUTION, LATENT, SPARSE, COMPRESSED, GATE, PER_LAYER)._replace(
    latent=True, recurrent="KDA"
)
_LIGHTNING = _has(LINEAR, PER_LAYER)._replace(recurrent="lightning attention", interval=8)
_MAMBA2 = _has(STATE, CONVOLUTION, LINEAR, PER_LAYER, CHUNKED)._replace(recurrent="Mamba2")
_MAMBA1 = _has(STATE, CONVOLUTION, PER_LAYER, CHUNKED)._replace(recurrent="Mamba1")
_CONV = _has(CONVOLUTION, STATE, LINEAR, PER_LAYER)._replace(recurrent="short convolution", tied=True)
_ENCODER_DECODER = _has(ENCODER, CROSS)._replace(
    mha_by_default=True, gated=False, tied=True, num_norms_per_layer=3
)
_INDEXED = _has(SPARSE, LATENT, PER_LAYER)._replace(latent=True)
_V4 = _has(COMPRESSED, SPARSE, SLIDING, LATENT, SHARED, PER_LAYER)._replace(compressed=True)

FAMILIES: dict[str, Family] = {
    "afmoe": _EVERY_FOURTH._replace(
        mha_by_default=True, head_size=128, output_gate=True, num_norms_per_layer=4
    ),
    "arcee": Family(mha_by_default=True, gated=False),
    "baichuan": _LLAMA,
    "bailing_hybrid": _KDA._replace(interval=6),
    "bamba": _MAMBA2._replace(pattern="R"),
    "bart": _ENCODER_DECODER,
    "bloom": _GPT,
    "chatglm": _PLAIN,
    "cohere": Family(mha_by_default=True, tied=True, num_norms_per_layer=1),
    "cohere2_moe": _EVERY_FOURTH._replace(
        mha_by_default=True, tied=True, head_size=128, num_norms_per_layer=1
    ),
    "cohere_compass": _LISTED._replace(mha_by_default=True, tied=True, head_size=None, num_norms_per_layer=1),
    "cohere2": _EVERY_FOURTH._replace(mha_by_default=True, tied=True, num_norms_per_layer=1),
    "cwm": _FULL_FIRST._replace(head_size=128),
    "dbrx": _PLAIN,
    "deepseek": _LLAMA,
    "deepseek_v2": _LATENT,
    "deepseek_v3": _LATENT,
    "deepseek_v32": _INDEXED,
    "deepseek_v4": _V4,
    "deepseek_v41": _V4,
    "dots1": _has(SLIDING)._replace(window_tokens=4096, num_layers_before_window=62),
    "exaone4": _EVERY_FOURTH,
    "exaone_moe": _EVERY_FOURTH,
    "falcon": _GPT._replace(num_norms_per_layer=1),
    "falcon_h1": _MAMBA2,
    "falcon_mamba": _MAMBA1._replace(num_norms_per_layer=1),
    "RefinedWeb": _GPT,
    "RefinedWebModel": _GPT,
    "gemma": Family(head_size=256, tied=True),
    "gemma2": _GEMMA._replace(interval=2),
    "gemma3": _GEMMA._replace(interval=6, num_heads=8, num_kv_heads=4),
    "gemma3n": _GEMMA._replace(interval=5, num_shared_layers=15),
    "gemma4": _GEMMA4,
    "gemma4_unified": _GEMMA4,
    "glm": Family(head_size=128),
    "glm4": Family(head_size=128),
    "glm4_moe": _PLAIN,
    "glm4_moe_lite": _LATENT,
    "glm4v_moe": _PLAIN,
    "glm5_next": _KDA,
    "glm_moe_dsa": _INDEXED,
    "gpt2": _GPT._replace(learned_positions=True),
    "gpt_bigcode": _GPT._replace(learned_positions=True),
    "gpt_neo": _has(SLIDING, PER_LAYER)._replace(
        mha_by_default=True, gated=False, tied=True, learned_positions=True, window_key="window_size"
    ),
    "gpt_neox": Family(mha_by_default=True, gated=False),
    "gpt_oss": _has(SLIDING)._replace(interval=2, head_size=64),
    "gptj": _GPT._replace(tied=False, num_norms_per_layer=1),
    "granite": _LLAMA,
    "granite_swa": _FULL_FIRST._replace(tied=True, sinks=True),
    "granitemoe": _LLAMA,
    "granitemoe_swa": _FULL_FIRST._replace(mha_by_default=True, sinks=True),
    "granitemoehybrid": _MAMBA2._replace(tied=True, mha_by_default=True, pattern="R"),
    "hunyuan": _has(SHARED)._replace(mha_by_default=True),
    "hunyuan_v1_dense": _LLAMA,
    "hunyuan_v1_moe": _LLAMA,
    "hy_v4": _INDEXED._replace(shares_index=True),
    "hy_v4_vl": _INDEXED._replace(shares_index=True),
    "inkling_mm": _has(SLIDING, CONVOLUTION, PER_LAYER, STATE),
    "jamba": _MAMBA1,
    "kimi_k2": _LATENT,
    "kimi_k3": _KDA,
    "kimi_linear": _KDA,
    "laguna": _LISTED._replace(head_gate=True),
    "lara_mini": _GATED_DELTA._replace(
        has=_GATED_DELTA.has | {SLIDING}, pattern="RSRFS", output_gate=False, head_size=128, tied=True
    ),
    "lfm2": _CONV._replace(pattern="F"),
    "lfm2_moe": _CONV,
    "lfm3": _CONV._replace(has=_CONV.has | {SLIDING}, head_size=128, head_gate=True, num_norms_per_layer=4),
    "llama": _LLAMA,
    "llama4": _has(CHUNKED)._replace(interval=4, head_size=128),
    "longcat_flash": _LATENT,
    "mamba": _MAMBA1._replace(num_norms_per_layer=1, tied=True),
    "mamba2": _MAMBA2._replace(num_norms_per_layer=1),
    "mellum": _LISTED,
    "mimo": _QWEN,
    "mimo_v2_flash": _has(SLIDING, CHUNKED, UNEQUAL, PER_LAYER),
    "minicpm3": Family(latent=True, tied=True),
    "minimax": _LIGHTNING,
    "minimax_m1": _LIGHTNING,
    "minimax_text_01": _LIGHTNING,
    "minimax_m2": _has(LINEAR)._replace(head_size=128),
    "minimax_m3": _has(SPARSE, GATE, PER_LAYER)._replace(head_size=128),
    "minimax_m3_vl": _has(SPARSE, GATE, PER_LAYER)._replace(head_size=128),
    "ministral": _WINDOWED._replace(window_tokens=4096),
    "mistral": _WINDOWED._replace(window_tokens=4096),
    "mixtral": _WINDOWED,
    "mllama": _has(CROSS, SHARED),
    "mpt": _GPT,
    "muse_glimmer": _FULL_LAST._replace(head_size=128),
    "muse_spark": _FULL_LAST._replace(head_size=64, num_norms_per_layer=5),
    "nemotron": Family(mha_by_default=True, gated=False),
    "nemotron-nas": _has(PER_LAYER),
    "nemotron_h": _MAMBA2._replace(gated=False, num_norms_per_layer=1),
    "olmo": _LLAMA._replace(num_norms_per_layer=0),
    "olmo2": _LLAMA,
    "olmo3": _EVERY_FOURTH._replace(mha_by_default=True),
    "olmo_hybrid": _GATED_DELTA._replace(mha_by_default=True, output_gate=False, head_size=None),
    "olmoe": _LLAMA,
    "opt": _GPT._replace(learned_positions=True),
    "phi": Family(mha_by_default=True, gated=False, num_norms_per_layer=1),
    "phi3": _WINDOWED._replace(mha_by_default=True),
    "phimoe": _WINDOWED,
    "qwen2": _QWEN,
    "qwen2_5_omni": _QWEN,
    "qwen2_5_vl": _QWEN._replace(num_layers_before_window=80),
    "qwen2_moe": _QWEN._replace(window_rule="every second layer"),
    "qwen2_vl": _QWEN._replace(num_layers_before_window=80),
    "qwen3": _QWEN3,
    "qwen3_5": _GATED_DELTA,
    "qwen3_5_moe": _GATED_DELTA,
    "qwen3_moe": _QWEN._replace(window_rule="all layers"),
    "qwen3_next": _GATED_DELTA,
    "qwen3_omni_moe": _QWEN,
    "qwen3_vl_moe": _QWEN,
    "qwen3_vl": _QWEN3,
    "qwen4_exp": _GATED_DELTA,
    "recurrent_gemma": _has(SLIDING, STATE, PER_LAYER)._replace(
        mha_by_default=True, tied=True, recurrent="RG-LRU", window_key="attention_window_size"
    ),
    "seed_oss": Family(head_size=128),
    "smollm3": _QWEN._replace(tied=True, window_rule="layers without rope", interval=4),
    "stablelm": _PLAIN,
    "starcoder2": _WINDOWED._replace(gated=False, tied=True),
    "step3": _PLAIN,
    "step3p5": _LISTED,
    "step3p7": _LISTED,
    "vaultgemma": _GEMMA._replace(interval=2, num_norms_per_layer=2),
    "whisper": _ENCODER_DECODER,
}

UNKNOWN = Family()

ARCHITECTURES: dict[str, str] = {
    "BloomForCausalLM": "bloom",
    "ChatGLMModel": "chatglm",
    "CohereForCausalLM": "cohere",
    "DbrxForCausalLM": "dbrx",
    "DeepseekV2ForCausalLM": "deepseek_v2",
    "DeepseekV3ForCausalLM": "deepseek_v3",
    "FalconForCausalLM": "falcon",
    "GPT2LMHeadModel": "gpt2",
    "GPTBigCodeForCausalLM": "gpt_bigcode",
    "GPTNeoXForCausalLM": "gpt_neox",
    "GemmaForCausalLM": "gemma",
    "Glm4MoeForCausalLM": "glm4_moe",
    "LlamaForCausalLM": "llama",
    "LongcatFlashForCausalLM": "longcat_flash",
    "MPTForCausalLM": "mpt",
    "MiniCPM3ForCausalLM": "minicpm3",
    "MiniMaxM2ForCausalLM": "minimax_m2",
    "MistralForCausalLM": "mistral",
    "MixtralForCausalLM": "mixtral",
    "Olmo2ForCausalLM": "olmo2",
    "OPTForCausalLM": "opt",
    "Phi3ForCausalLM": "phi3",
    "Qwen2ForCausalLM": "qwen2",
    "Qwen3ForCausalLM": "qwen3",
    "Qwen3MoeForCausalLM": "qwen3_moe",
    "JambaForCausalLM": "jamba",
    "NemotronHForCausalLM": "nemotron_h",
    "DeciLMForCausalLM": "nemotron-nas",
    "Gemma2ForCausalLM": "gemma2",
    "Gemma3ForCausalLM": "gemma3",
    "GptOssForCausalLM": "gpt_oss",
}
"""The model type of a config that names only its class."""

_UNSIZED = {
    SLIDING: "inkling inkling2 inkling2_loop voxtral_realtime",
    STATE: "rwkv xlstm zamba zamba2",
    SPARSE: "axk2 dots3_note mistral_large4",
    ENCODER: "t5 t5gemma t5gemma2",
    PER_LAYER: "blt hrm",
}

UNSIZED_FAMILIES: dict[str, str] = {
    name: words for words, names in _UNSIZED.items() for name in names.split()
}
"""Types that are refused even where their config is silent about the reason."""


def family_name(model_type: str) -> str:
    """The model type without the ending that marks the language model inside a multimodal one."""
    return model_type.removesuffix("_model").removesuffix("_text")
