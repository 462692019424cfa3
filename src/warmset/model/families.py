"""What the model types of transformers mean where their config.json is silent.

Source: `configuration_*.py` of transformers 5.24.0; vLLM 0.33.0 and SGLang 0.5.23 for what engines do
otherwise.
"""

from typing import NamedTuple


class Family(NamedTuple):
    """Defaults of a model type.

    `mha_by_default`: without a KV-head field every head has its own keys and values.
    `num_kv_heads` depends on switches for the types that `heads.py` knows by name.
    `ffn_factor`: width of the feed-forward part in hidden sizes. `window_switch`: a window counts only with
    `use_sliding_window`.
    """

    mha_by_default: bool = False
    latent: bool = False
    gated: bool = True
    tied: bool = False
    learned_positions: bool = False
    head_size: int | None = None
    ffn_factor: int | None = None
    window_switch: bool = False
    window_tokens: int | None = None


_LLAMA = Family(mha_by_default=True)
_GPT = Family(mha_by_default=True, gated=False, tied=True, ffn_factor=4)
_PLAIN = Family()
_LATENT = Family(latent=True)
_QWEN = Family(window_switch=True)
_QWEN3 = Family(window_switch=True, head_size=128)

FAMILIES: dict[str, Family] = {
    "arcee": Family(mha_by_default=True, gated=False),
    "baichuan": _LLAMA,
    "bloom": _GPT,
    "chatglm": _PLAIN,
    "cohere": Family(mha_by_default=True, tied=True),
    "dbrx": _PLAIN,
    "deepseek": _LLAMA,
    "deepseek_v2": _LATENT,
    "deepseek_v3": _LATENT,
    "dots1": Family(window_tokens=4096),
    "falcon": _GPT,
    "RefinedWeb": _GPT,
    "RefinedWebModel": _GPT,
    "gemma": Family(head_size=256, tied=True),
    "glm": Family(head_size=128),
    "glm4": Family(head_size=128),
    "glm4_moe": _PLAIN,
    "glm4_moe_lite": _LATENT,
    "glm4v_moe": _PLAIN,
    "gpt2": _GPT._replace(learned_positions=True),
    "gpt_bigcode": _GPT._replace(learned_positions=True),
    "gpt_neox": Family(mha_by_default=True, gated=False),
    "gptj": _GPT._replace(tied=False),
    "granite": _LLAMA,
    "granitemoe": _LLAMA,
    "hunyuan_v1_dense": _LLAMA,
    "hunyuan_v1_moe": _LLAMA,
    "kimi_k2": _LATENT,
    "llama": _LLAMA,
    "longcat_flash": _LATENT,
    "mimo": _QWEN,
    "minicpm3": Family(latent=True, tied=True),
    "minimax_m2": Family(head_size=128),
    "mistral": Family(window_tokens=4096),
    "mixtral": _PLAIN,
    "mpt": _GPT,
    "nemotron": Family(mha_by_default=True, gated=False),
    "olmo": _LLAMA,
    "olmo2": _LLAMA,
    "olmoe": _LLAMA,
    "opt": _GPT._replace(learned_positions=True),
    "phi": Family(mha_by_default=True, gated=False),
    "phi3": _LLAMA,
    "phimoe": _PLAIN,
    "qwen2": _QWEN,
    "qwen2_5_omni": _QWEN,
    "qwen2_5_vl": _QWEN,
    "qwen2_moe": _QWEN,
    "qwen2_vl": _QWEN,
    "qwen3": _QWEN3,
    "qwen3_moe": _QWEN,
    "qwen3_omni_moe": _QWEN,
    "qwen3_vl_moe": _QWEN,
    "qwen3_vl": _QWEN3,
    "seed_oss": Family(head_size=128),
    "smollm3": Family(window_switch=True, tied=True),
    "stablelm": _PLAIN,
    "starcoder2": Family(gated=False, tied=True),
    "step3": _PLAIN,
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
}
"""The model type of a config that names only its class."""

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

_UNSIZED = {
    SLIDING: """afmoe cohere2 cohere2_moe cohere_compass cwm exaone4 exaone_moe gemma2 gemma3 gemma3n gemma4
        gemma4_unified gpt_neo gpt_oss granite_swa granitemoe_swa inkling inkling_mm_model inkling2
        inkling2_loop laguna mellum mimo_v2_flash ministral muse_glimmer muse_spark olmo3 step3p5 step3p7
        vaultgemma voxtral_realtime""",
    CHUNKED: "llama4",
    STATE: """bamba falcon_h1 falcon_mamba granitemoehybrid jamba mamba mamba2 nemotron_h recurrent_gemma rwkv
        xlstm zamba zamba2""",
    LINEAR: """bailing_hybrid glm5_next kimi_linear lara_mini minimax minimax_m1 minimax_text_01 olmo_hybrid
        qwen3_5 qwen3_5_moe qwen3_next qwen4_exp""",
    CONVOLUTION: "lfm2 lfm2_moe lfm3",
    SPARSE: """axk2 deepseek_v32 dots3_note glm_moe_dsa hy_v4 hy_v4_vl minimax_m3 minimax_m3_vl
        mistral_large4""",
    COMPRESSED: "deepseek_v4 deepseek_v41",
    CROSS: "mllama",
    ENCODER: "bart t5 t5gemma t5gemma2 whisper",
    PER_LAYER: "nemotron-nas blt hrm",
}

UNSIZED_FAMILIES: dict[str, str] = {
    name: words for words, names in _UNSIZED.items() for name in names.split()
}
"""Types that are refused even where their config is silent about the reason."""


def family_name(model_type: str) -> str:
    """The model type without the ending that marks the language model inside a multimodal one."""
    return model_type.removesuffix("_model").removesuffix("_text")
