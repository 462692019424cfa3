"""What vLLM decides by model family and card: kernels, their blocks, layouts, and what it does not serve.

Source: vLLM 0.33.0 platforms/cuda.py, v1/attention/backends/**, models/**, model_executor/models/config.py.
"""

from collections.abc import Iterator

from warmset.errors import InputError, UnsupportedModelError
from warmset.model.engines.vllm_types import VllmSettings
from warmset.model.layouts import KvLayout, kv_layout
from warmset.model.spec import Cache, CompressedEntry, IndexKey, KvHeads, Latent, Layer, ModelSpec

LAST_RELEASES = {
    "mllama": "0.10.2",
    "mllama_text_model": "0.10.2",
    "minimax_m1": "0.23.0",
    "minimax": "0.23.0",
    "minimax_text_01": "0.23.0",
    "bamba": "0.23.0",
    "mpt": "0.28.0",
    "hunyuan": None,
}
"""Families that vLLM 0.33.0 has no model for, and the last release that had one.

Source: vLLM 0.33.0 model_executor/models/registry.py.
"""

LAYOUTS = {
    "bf16",
    "fp16",
    "fp8",
    "fp8_per_token_head",
    "int8_per_token_head",
    "int4_per_token_head",
    "nvfp4",
    "fp8_ds_mla",
    "nvfp4_ds_mla",
}
"""Of config/cache.py CacheDType, those that Warmset can size."""

EXPANDED_LATENTS = {"minicpm3"}
"""MLA that vLLM runs un-absorbed: it caches keys and values of all heads."""

MAMBA2 = {"nemotron_h", "falcon_h1", "granitemoehybrid", "zamba2", "mamba2"}
GATED_DELTA = {"qwen3_next", "qwen3_5", "qwen3_5_moe", "qwen4_exp"}
BOUNDED_KDA = {"glm5_next", "kimi_k3"}
"""Families by the kernel of their states: only these can hand out states inside a prompt."""

GATED_DELTA_ALIGNMENT_TOKENS = 64
"""Of the states that FlashInfer's kernel hands out (v1/attention/backends/gdn_attn.py)."""


def family(spec: ModelSpec) -> str:
    """The model type without the mark of a nested text config."""
    return spec.model_type.removesuffix("_text")


def check_served(spec: ModelSpec) -> None:
    """Refuses a family that vLLM 0.33.0 has no model for.

    Raises: UnsupportedModelError with the last release that had one.
    """
    if family(spec) not in LAST_RELEASES:
        return
    release = LAST_RELEASES[family(spec)]
    advice = f": the last release that did is {release}" if release else ""
    raise UnsupportedModelError(
        f"{spec.name}: vLLM 0.33.0 does not serve model type {spec.model_type}{advice}"
    )


def engine_layout(spec: ModelSpec, layout: KvLayout | None, settings: VllmSettings) -> KvLayout:
    """The layout asked for, or vLLM's own.

    That is `fp8_ds_mla` for V4, fp8 for a checkpoint with fp8 scales and for sparse MLA of the GLM family on
    data-centre Blackwell, else bf16.

    Raises: InputError when vLLM does not know the layout.
    """
    if layout is None:
        return kv_layout(_default_layout(spec, settings))
    if layout.keys != layout.values or layout.keys not in LAYOUTS:
        raise InputError(
            f"KV layout {layout.name}: vLLM has none such, choose one of {', '.join(sorted(LAYOUTS))}"
        )
    return layout


def _default_layout(spec: ModelSpec, settings: VllmSettings) -> str:
    if has_entry(spec, CompressedEntry):
        return "fp8_ds_mla"
    if spec.quantization is not None and spec.quantization.kv_cache_bits == 8:
        return "fp8"
    if settings.capability == "sm100" and family(spec) in {"glm_moe_dsa", "glm5_next"}:
        return "fp8"
    return "bf16"


def own_caches(spec: ModelSpec) -> Iterator[Cache]:
    """Caches of all layers but drafts."""
    return (cache for layer in spec.layers for cache in layer.caches)


def has_entry(spec: ModelSpec, entry_type: type[KvHeads | Latent | CompressedEntry | IndexKey]) -> bool:
    """Whether some layer keeps entries of a type."""
    return any(isinstance(cache.entry, entry_type) for cache in own_caches(spec))


def has_states(layer: Layer, spec: ModelSpec) -> bool:
    """Whether vLLM keeps a state page for the layer. Inkling's convolutions are windows in vLLM."""
    return not is_inkling(spec) and any(part.role in {"conv", "recurrent"} for part in layer.states)


def is_inkling(spec: ModelSpec) -> bool:
    """Whether convolutions stand beside the attention of every layer."""
    return family(spec).startswith("inkling")


def is_v41(spec: ModelSpec) -> bool:
    """Whether compressed entries are of the second kind, with a ring instead of windows of raw keys."""
    return family(spec) == "deepseek_v41"


def is_packed(spec: ModelSpec) -> bool:
    """Whether pages of unequal size lie side by side within a block: V4, Flash-Next and GLM-5.3-Flash.

    Their backends allow only layouts with the block outermost (BLHNC, BLNHC).
    """
    caches = list(own_caches(spec))
    return any(isinstance(c.entry, CompressedEntry) or c.tokens_per_entry > 1 for c in caches)


def kernel_block_tokens(spec: ModelSpec, layout: KvLayout, settings: VllmSettings) -> int:
    """The smallest block that all kernels of a model accept; vLLM takes it, or 16 if they accept that."""
    on_hopper = settings.capability == "sm90"
    if has_entry(spec, CompressedEntry):
        return (64 if on_hopper else 128) if is_v41(spec) else 256
    if has_entry(spec, Latent) and family(spec) not in EXPANDED_LATENTS:
        if has_entry(spec, IndexKey):
            return 128 if is_packed(spec) else 64
        if settings.capability == "sm100":
            return 32
        return 64 if on_hopper and layout.keys == "fp8" else 16
    return 128 if has_entry(spec, IndexKey) and not is_packed(spec) else 16


def hands_out_states(spec: ModelSpec, settings: VllmSettings) -> bool:
    """Whether kernels hand out states inside a prompt, for which vLLM keeps one more block in reserve.

    Mamba 2 always; FlashInfer's gated delta rule and FlashKDA on Hopper and Blackwell. FlashInfer's own
    limits on Blackwell (CUDA 13) are taken as met.
    """
    if settings.release == "0.30.0":
        return False
    has_kernel = settings.capability != "sm80" and family(spec) in GATED_DELTA | BOUNDED_KDA
    return family(spec) in MAMBA2 or has_kernel


def state_alignment_tokens(spec: ModelSpec, settings: VllmSettings) -> int:
    """Tokens that blocks are multiples of so that handed-out states fall on their ends."""
    return (
        GATED_DELTA_ALIGNMENT_TOKENS
        if family(spec) in GATED_DELTA and hands_out_states(spec, settings)
        else 1
    )
