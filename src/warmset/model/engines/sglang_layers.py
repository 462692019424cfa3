"""What SGLang stores of each layer: its pool, and the bytes of a token or of a state slot on one rank.

Source: SGLang 0.5.23 srt/configs/model_config.py (`is_hybrid_swa_model`, `get_num_kv_heads`),
srt/model_executor/pool_configurator.py, srt/configs/mamba_utils.py.
"""

from typing import Literal, NamedTuple

import msgspec

from warmset.errors import InputError, UnsupportedModelError
from warmset.model.layouts import INDEX_LAYOUTS, KvLayout, entry_bytes
from warmset.model.spec import CompressedEntry, Entry, IndexKey, KvHeads, Latent, Layer, ModelSpec, StatePart

_SERVED_NAMES = (
    "apertus arcee baichuan bailing_hybrid bailing_moe chatglm cohere cohere2 dbrx deepseek "
    "deepseek_v2 deepseek_v3 deepseek_v32 deepseek_v4 deepseek_v41 ernie4_5 ernie4_5_moe exaone "
    "exaone4 falcon_h1 falcon_mamba gemma gemma2 gemma3 gemma3n gemma4 gemma4_unified glm4 glm4_moe "
    "glm4_moe_lite glm4v glm4v_moe glm5_next glm_moe_dsa gpt2 gpt_bigcode gpt_oss granite granitemoe "
    "granitemoehybrid hunyuan hunyuan_v1_dense hunyuan_v1_moe hy_v4 inkling inkling_mm internlm2 "
    "internlm3 kimi_k2 kimi_k25 kimi_k3 kimi_linear kimi_vl lfm2 lfm2_moe llama llama4 longcat_flash "
    "mamba mamba2 mimo mimo_v2_flash minicpm minicpm3 minimax_m2 minimax_m3 minimax_m3_vl mistral "
    "mistral3 mixtral mllama nemotron-nas nemotron_h olmo olmo2 olmo3 olmoe opt phi phi3 phimoe qwen "
    "qwen2 qwen2_5_vl qwen2_moe qwen2_vl qwen3 qwen3_5 qwen3_5_moe qwen3_moe qwen3_next qwen3_vl "
    "qwen3_vl_moe qwen4_exp stablelm starcoder2 step3 step3_vl step3p5 step3p7 xverse "
)
SERVED = frozenset(_SERVED_NAMES.split())
"""Model types with a model class in srt/models, without the ending of a language model inside a larger
one.
"""

NO_ENCODER_DEPTH = {"whisper"}
"""SGLang gives the layers of the encoder rows too, and a spec does not hold how many they are."""

WINDOWED = {
    "gemma4",
    "gemma4_unified",
    "gpt_oss",
    "inkling",
    "inkling_mm",
    "llama4",
    "mimo_v2_flash",
    "step3p5",
    "step3p7",
}
"""Families whose sliding or chunked layers get a pool of their own; all others pay every layer in full."""

WINDOW_WITHOUT_ITSELF = {"gemma4", "gemma4_unified", "gpt_oss", "inkling", "inkling_mm"}
"""Families whose window SGLang counts without the token itself."""

SPLIT_BY_ALL_RANKS = WINDOWED | {"minimax_m3", "minimax_m3_vl"}
"""Families whose KV heads SGLang divides by the whole attention TP, DCP or not."""

EXTRA_BUFFER = {
    "bailing_hybrid",
    "falcon_h1",
    "glm5_next",
    "granitemoehybrid",
    "inkling",
    "inkling_mm",
    "kimi_k3",
    "kimi_linear",
    "nemotron_h",
    "qwen3_5",
    "qwen3_5_moe",
    "qwen3_next",
    "qwen4_exp",
}
"""Families for which `auto` means the radix-cache strategy `extra_buffer`."""

LAYOUTS = {
    "bf16": "auto",
    "fp16": "auto",
    "fp8": "fp8_e4m3",
    "fp8_ds_mla": "fp8_e4m3",
    "nvfp4": "nvfp4",
    "mxfp4": "fp4_mx_block16",
    "mxfp8": "mxfp8",
}
"""KV layouts that SGLang has, and its name for them (`--kv-cache-dtype`)."""

CONV_BITS = 16
RECURRENT_BITS = 32
"""SGLANG_MAMBA_CONV_DTYPE and the default of --mamba-ssm-dtype."""

Side = Literal["full", "swa"]


class Ranks(NamedTuple):
    """What one rank sees of the placement: attention tensor parallelism and decode context parallelism."""

    attention_parallel: int
    decode_context_parallel: int

    def heads(self, num_heads: int) -> int:
        """KV heads of a layer on a rank; ranks of one DCP group share them, and the division rounds down."""
        return max(1, num_heads // (self.attention_parallel // self.decode_context_parallel))


class LayerRow(NamedTuple):
    """One token of one layer on a rank; index keys apart, because DCP does not divide them."""

    side: Side
    kv_bytes: int
    key_bytes: int
    """Of the `kv_bytes`, where keys and values are in buffers of their own; else 0."""
    index_bytes: int


def served_family(spec: ModelSpec) -> str:
    """The model type as SGLang's tables know it.

    Raises: UnsupportedModelError when SGLang 0.5.23 has no model class for it, or sizes it by what a spec
    lacks.
    """
    family = spec.model_type.removesuffix("_model").removesuffix("_text")
    if family in NO_ENCODER_DEPTH:
        raise UnsupportedModelError(
            f"{spec.name}: SGLang 0.5.23 gives encoder layers KV rows too, which the model spec does not "
            "hold: size it with another engine"
        )
    if family not in SERVED:
        raise UnsupportedModelError(
            f"{spec.name}: SGLang 0.5.23 has no model class for model_type {spec.model_type!r}: "
            "size it with engine vllm or physics"
        )
    return family


def check_layout(spec: ModelSpec, layout: KvLayout) -> str:
    """SGLang's name of the layout.

    Raises: InputError when SGLang does not have it.
    """
    name = LAYOUTS.get(layout.keys)
    if name is None or layout.keys != layout.values:
        raise InputError(
            f"{spec.name}: SGLang has no KV layout {layout.name}: choose one of {', '.join(LAYOUTS)}"
        )
    if layout.index_keys not in {None, "fp8", "bf16"}:
        raise InputError(f"{spec.name}: SGLang has no index layout {layout.index_keys}: choose fp8 or bf16")
    return name


def stages(num_layers: int, pipeline_parallel: int) -> list[range]:
    """The layers of each pipeline stage; what is left over goes to the last stages.

    Source: srt/distributed/utils.py, get_pp_indices.
    """
    base, extra = divmod(num_layers, pipeline_parallel)
    ends = [
        base * (rank + 1) + max(0, rank + 1 - pipeline_parallel + extra) for rank in range(pipeline_parallel)
    ]
    return [range(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


def layer_rows(
    spec: ModelSpec, layout: KvLayout, ranks: Ranks, *, raw_latents: bool
) -> list[LayerRow | None]:
    """What a token costs in each layer of the model, `None` where a layer has no attention.

    Layers that own no KV (Hunyuan CLA, Gemma 3n, Nemotron-NAS, cross-attention of Llama 3.2) get rows of
    the width of their neighbours nonetheless: SGLang multiplies one width by `num_hidden_layers`. Only in
    models with a recurrent state does it count the layers with attention.
    """
    family = served_family(spec)
    skips_others = bool(state_layers(spec))
    patterns = _patterns(spec, family)
    rows: list[LayerRow | None] = []
    for layer in spec.layers:
        if skips_others and not _growing_entries(layer):
            rows.append(None)
            continue
        side = _side(layer, family)
        kv_entry, index_entry = _growing_entries(layer) or patterns[side]
        kv_bytes = _kv_bytes(kv_entry, layout, ranks, raw_latents=raw_latents)
        own_index = index_entry if _growing_entries(layer) else None
        rows.append(LayerRow(side, kv_bytes, _key_bytes(kv_entry, kv_bytes), _index_bytes(own_index, layout)))
    return rows


def index_row_bytes(spec: ModelSpec, layout: KvLayout) -> int:
    """Bytes of a token in an index that a layer owns, 0 for a model without."""
    for layer in spec.layers:
        entries = _growing_entries(layer)
        if entries and entries.index_key:
            return _index_bytes(entries.index_key, layout)
    return 0


class _Entries(NamedTuple):
    kv: Entry
    index_key: tuple[IndexKey, int] | None
    """With the tokens that share a key."""


def _growing_entries(layer: Layer) -> _Entries | None:
    kv: Entry | None = None
    index = None
    for cache in layer.caches:
        if cache.reach == "cross":
            continue
        if isinstance(cache.entry, IndexKey):
            index = (cache.entry, cache.tokens_per_entry)
        else:
            kv = cache.entry
    return None if kv is None else _Entries(kv, index)


def _patterns(spec: ModelSpec, family: str) -> dict[Side, _Entries]:
    """The width that SGLang takes for every layer of a pool: that of the first which has one.

    Raises: UnsupportedModelError when no layer keeps keys and values, but SGLang would give it a pool.
    """
    patterns: dict[Side, _Entries] = {}
    for layer in spec.layers:
        entries = _growing_entries(layer)
        if entries is not None:
            patterns.setdefault(_side(layer, family), entries)
    if family == "minicpm3" and not isinstance(patterns["full"].kv, Latent):
        raise UnsupportedModelError(
            f"{spec.name}: SGLang 0.5.23 caches the latent of minicpm3, and the spec holds keys and "
            "values of heads: size it with engine vllm or physics"
        )
    return patterns


def _side(layer: Layer, family: str) -> Side:
    reaches = {attention.reach for mixer in layer.mixers for attention in mixer.attentions}
    reaches |= {cache.reach for cache in layer.caches}
    return "swa" if family in WINDOWED and reaches & {"sliding", "chunked"} else "full"


def _kv_bytes(entry: Entry, layout: KvLayout, ranks: Ranks, *, raw_latents: bool) -> int:
    if isinstance(entry, KvHeads):
        if layout.keys == "fp8_ds_mla":
            raise InputError("KV layout fp8_ds_mla stores latents, and this model keeps keys and values")
        return entry_bytes(msgspec.structs.replace(entry, num_heads=ranks.heads(entry.num_heads)), layout)
    if isinstance(entry, Latent) and raw_latents and layout.keys == "fp8":
        return entry.latent_size + entry.rope_size
    if isinstance(entry, CompressedEntry):
        raise InputError("compressed entries have pools of their own")
    return entry_bytes(entry, layout)


def _key_bytes(entry: Entry, kv_bytes: int) -> int:
    if not isinstance(entry, KvHeads):
        return 0
    return kv_bytes * entry.key_size // (entry.key_size + entry.value_size)


def _index_bytes(index: tuple[IndexKey, int] | None, layout: KvLayout) -> int:
    """A DSA key is always fp8 with a scale, others are bf16. Pooled keys round up (DSA) or down (QSA)."""
    if index is None:
        return 0
    entry, tokens = index
    if entry.default_format == "fp8_scaled":
        if layout.index_keys == "bf16":
            raise InputError(
                "SGLang keeps index keys of this model in fp8 with a scale: leave index_layout out"
            )
        return -(-INDEX_LAYOUTS["fp8"].vector_size_bytes(entry.size) // tokens)
    bits = 8 if layout.index_keys == "fp8" else 16
    return entry.size * bits // 8 // tokens


def state_layers(spec: ModelSpec) -> list[int]:
    """Layers with a convolution or a recurrence, which take slots of the state pool."""
    return [
        index
        for index, layer in enumerate(spec.layers)
        if any(part.role in {"conv", "recurrent"} for part in layer.states)
    ]


def state_bytes(spec: ModelSpec, layer: Layer, attention_parallel: int, recurrent_bits: int | None) -> int:
    """Bytes of one state slot of one layer on a rank: convolutions bf16, recurrences fp32 by default.

    `recurrent_bits` overrules the config (`--mamba-ssm-dtype`). Inkling: every layer gets the convolutions
    of full and sliding layers both, and those of the hidden stream are on every rank.
    Source: srt/configs/mamba_utils.py, srt/configs/inkling.py.

    Raises: InputError when tensor parallelism does not divide the heads or channels.
    """
    parts = [part for part in layer.states if part.role in {"conv", "recurrent"}]
    if served_family(spec).startswith("inkling"):
        parts = _inkling_parts(spec)
    return sum(_part_bytes(spec, part, attention_parallel, recurrent_bits) for part in parts)


def _inkling_parts(spec: ModelSpec) -> list[StatePart]:
    parts = {part for layer in spec.layers for part in layer.states if part.role == "conv"}
    return [
        msgspec.structs.replace(part, sharded=part.num_units != spec.hidden_size)
        for part in sorted(parts, key=lambda part: (part.num_units, part.unit_elements))
    ]


def _part_bytes(spec: ModelSpec, part: StatePart, attention_parallel: int, recurrent_bits: int | None) -> int:
    units = part.num_units
    if part.sharded:
        if units % attention_parallel and units > attention_parallel:
            raise InputError(
                f"{spec.name}: {units} state heads or channels cannot be split over attention tensor "
                f"parallelism {attention_parallel}: choose a divisor of {units}"
            )
        units = max(1, units // attention_parallel)
    bits = CONV_BITS if part.role == "conv" else recurrent_bits or part.bits or RECURRENT_BITS
    return units * part.unit_elements * bits // 8
