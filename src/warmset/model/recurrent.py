"""Layers with a fixed state instead of a cache: delta rules, lightning attention, convolutions.

Mamba layers are in `recurrent_mamba`. Of every kind: what it keeps of a sequence, its arithmetic and weights.

Source: vLLM 0.33.0 model_executor/layers/mamba/mamba_utils.py for states and their number formats;
transformers 5.24.0 models/*/modeling_*.py for weights.
"""

from typing import NamedTuple

import msgspec

from warmset.model.fields import Fields
from warmset.model.spec import Layer, Mixer, StatePart

SCAN_FLOPS_PER_ELEMENT = 6
"""FLOPs that a recurrence does for an element of its state and a token: decay, update and read-out.

Uncertain by a third: kernels that work in chunks do more than the plain recurrence, and the kinds differ.
"""

STATE_BITS = {"float32": 32, "bfloat16": 16, "float16": 16}
STATE_DTYPE_KEYS = ("mamba_ssm_dtype", "mamba_ssm_cache_dtype")

GDN_KEY_HEADS = 16
GDN_VALUE_HEADS = 32
LINEAR_HEAD_SIZE = 128
LINEAR_KERNEL_SIZE = 4
KDA_HEADS = {"kimi_linear": 32, "glm5_next_text": 64}
SHORT_CONV_KERNEL_SIZE = 3
LFM3_KERNEL_SIZE = 7
GDN_DEFAULT_HEADS = {"lara_mini": (8, 16)}
"""What transformers takes where a config is silent."""


def gated_delta(fields: Fields, hidden_size: int) -> Mixer:
    """A Gated DeltaNet layer: Qwen3-Next, Qwen3.5, `qwen4_exp`, OLMo Hybrid, Lara (`linear_*` fields).

    The recurrent state has the format of `mamba_ssm_dtype`, or the model's own where the config is silent, as
    in Qwen3-Next; SGLang takes fp32 there.

    Raises: InputError when a count is not positive or the key heads do not divide the value heads.
    """
    key_heads, value_heads, key_size, value_size = _delta_sizes(fields, hidden_size)
    kernel = count(fields, LINEAR_KERNEL_SIZE, "linear_conv_kernel_dim")
    if value_heads % key_heads:
        fields.refuse(
            f"linear_num_key_heads={key_heads} does not divide linear_num_value_heads={value_heads}"
        )
    keys, values = key_heads * key_size, value_heads * value_size
    return Mixer(
        states=(
            conv_state(key_heads, 2 * key_size, kernel),
            conv_state(value_heads, value_size, kernel),
            recurrent_state(value_heads, value_size * key_size, state_bits(fields)),
        ),
        scan_flops_per_token=SCAN_FLOPS_PER_ELEMENT * values * key_size,
        split_parameters=hidden_size * (2 * keys + 3 * values + 2 * value_heads),
        small_parameters=(2 * keys + values) * kernel + 2 * value_heads + value_size,
    )


class _DeltaSizes(NamedTuple):
    num_key_heads: int
    num_value_heads: int
    key_size: int
    value_size: int


def _delta_sizes(fields: Fields, hidden_size: int) -> _DeltaSizes:
    """OLMo Hybrid takes its heads from the attention: keys three quarters as wide, values twice the keys."""
    heads = GDN_DEFAULT_HEADS.get(fields.text("model_type") or "", (GDN_KEY_HEADS, GDN_VALUE_HEADS))
    is_olmo = fields.text("model_type") == "olmo_hybrid"
    if is_olmo:
        heads = 2 * (fields.required("num_attention_heads"),)
    key_heads = count(fields, heads[0], "linear_num_key_heads")
    value_heads = count(fields, heads[1], "linear_num_value_heads")
    default_size = 3 * hidden_size // (4 * key_heads) if is_olmo else LINEAR_HEAD_SIZE
    key_size = count(fields, default_size, "linear_key_head_dim")
    value_size = count(fields, 2 * key_size if is_olmo else LINEAR_HEAD_SIZE, "linear_value_head_dim")
    return _DeltaSizes(key_heads, value_heads, key_size, value_size)


def rg_lru(fields: Fields, hidden_size: int) -> Mixer:
    """A recurrent block of RecurrentGemma: a convolution and a gated linear recurrence, fp32 by channels.

    The gates of the recurrence are block-diagonal by attention heads.

    Raises: InputError when the heads are missing or do not divide the width.
    """
    width = count(fields, hidden_size, "lru_width")
    num_heads = fields.required("num_attention_heads")
    kernel = count(fields, LINEAR_KERNEL_SIZE, "conv1d_width")
    if width % num_heads:
        fields.refuse(f"num_attention_heads={num_heads} does not divide lru_width={width}")
    block = width // num_heads
    return Mixer(
        states=(conv_state(num_heads, block, kernel), recurrent_state(num_heads, block, 32)),
        scan_flops_per_token=SCAN_FLOPS_PER_ELEMENT * width,
        split_parameters=3 * hidden_size * width + 2 * width * block,
        small_parameters=width * (kernel + 1) + 3 * width + 2 * width + hidden_size,
    )


def kda(fields: Fields, hidden_size: int) -> Mixer:
    """A Kimi Delta Attention layer: Kimi-Linear and Kimi-K3, GLM-5.3-Flash, Ling-3 (`bailing_hybrid`).

    Sizes are in `linear_attn_config`, or in `linear_num_heads`, `linear_head_dim`, `linear_conv_kernel_dim`;
    Ling-3 may give them as `num_attention_heads`, `head_dim` and `short_conv_kernel_size`. The decay and the
    output gate are of low rank, with their first halves on every GPU; in Ling-3 both are of full rank, in
    Kimi-K3 the gate (`use_full_rank_gate`). The recurrent state is fp32 unless the config says otherwise.

    Raises: InputError when a count is missing or not positive.
    """
    is_ling = (fields.text("model_type") or "").startswith("bailing")
    num_heads, head_size, kernel_size = _kda_sizes(fields, is_ling=is_ling)
    width = num_heads * head_size
    has_full_rank_gate = fields.flag("linear_attn_config.use_full_rank_gate")
    num_full_rank = 2 if is_ling else 1 if has_full_rank_gate else 0
    num_low_rank = 2 - num_full_rank
    return Mixer(
        states=(
            conv_state(num_heads, 3 * head_size, kernel_size),
            recurrent_state(num_heads, head_size * head_size, state_bits(fields, default_bits=32)),
        ),
        scan_flops_per_token=SCAN_FLOPS_PER_ELEMENT * width * head_size,
        split_parameters=hidden_size * ((4 + num_full_rank) * width + num_heads)
        + num_low_rank * head_size * width,
        replicated_parameters=num_low_rank * hidden_size * head_size,
        small_parameters=3 * width * kernel_size + width + num_heads + head_size,
    )


class _KdaSizes(NamedTuple):
    num_heads: int
    head_size: int
    kernel_size: int


def _kda_sizes(fields: Fields, *, is_ling: bool) -> _KdaSizes:
    section = fields.section("linear_attn_config")
    if section is not None:
        return _KdaSizes(
            section.required("num_heads"),
            section.required("head_dim"),
            count(section, LINEAR_KERNEL_SIZE, "short_conv_kernel_size"),
        )
    if is_ling:
        return _KdaSizes(
            fields.required("linear_num_heads", "num_attention_heads"),
            count(fields, LINEAR_HEAD_SIZE, "linear_head_dim", "head_dim"),
            count(fields, LINEAR_KERNEL_SIZE, "linear_conv_kernel_dim", "short_conv_kernel_size"),
        )
    return _KdaSizes(
        count(fields, KDA_HEADS.get(fields.text("model_type") or ""), "linear_num_heads"),
        count(fields, LINEAR_HEAD_SIZE, "linear_head_dim"),
        count(fields, LINEAR_KERNEL_SIZE, "linear_conv_kernel_dim"),
    )


def lightning(fields: Fields, hidden_size: int) -> Mixer:
    """A lightning-attention layer: MiniMax-Text-01 and MiniMax-M1 (`num_attention_heads`, `head_dim`).

    It has keys and values for every query head and no convolution. The state is fp32 unless the config says
    otherwise.

    Raises: InputError when the heads are missing or, without a `head_dim`, do not divide the hidden size.
    """
    num_heads = fields.required("num_attention_heads")
    if not fields.integer("head_dim") and hidden_size % num_heads:
        fields.refuse(f"num_attention_heads={num_heads} does not divide hidden_size={hidden_size}")
    head_size = count(fields, hidden_size // num_heads, "head_dim")
    width = num_heads * head_size
    return Mixer(
        states=(recurrent_state(num_heads, head_size * head_size, state_bits(fields, default_bits=32)),),
        scan_flops_per_token=SCAN_FLOPS_PER_ELEMENT * width * head_size,
        split_parameters=5 * hidden_size * width,
        small_parameters=width,
    )


def short_conv(fields: Fields, hidden_size: int) -> Mixer:
    """A gated short convolution: LFM2, LFM2-MoE, LFM3 (`conv_L_cache`, `conv_bias`). It has no recurrence.

    Raises: InputError when `conv_dim` is not the hidden size or the width of the convolution is not positive.
    """
    is_lfm3 = fields.text("model_type") == "lfm3"
    kernel = count(fields, LFM3_KERNEL_SIZE if is_lfm3 else SHORT_CONV_KERNEL_SIZE, "conv_L_cache")
    if count(fields, hidden_size, "conv_dim") != hidden_size:
        fields.refuse(f"conv_dim={fields.integer('conv_dim')} is not hidden_size={hidden_size}")
    biases = 5 * hidden_size if fields.flag("conv_bias") else 0
    return Mixer(
        states=(conv_state(hidden_size, 1, kernel),),
        split_parameters=4 * hidden_size * hidden_size,
        small_parameters=hidden_size * kernel + biases,
    )


def inkling_convs(fields: Fields, hidden_size: int, num_kv_heads: int, head_size: int) -> Mixer:
    """The four short convolutions beside the attention of an Inkling layer, or none with `use_sconv` off.

    They filter the keys, the values, and the outputs of the attention and of the MLP; `num_kv_heads` and
    `head_size` are those of this layer's attention. vLLM stores them in pages of its own, padded further.

    Raises: InputError when the width of the convolution is not positive.
    """
    if fields.flag("use_sconv") is False:
        return Mixer()
    kernel = count(fields, LINEAR_KERNEL_SIZE, "sconv_kernel_size", "conv_kernel_size")
    return Mixer(
        states=(conv_state(num_kv_heads, 2 * head_size, kernel), conv_state(hidden_size, 2, kernel)),
        small_parameters=2 * (num_kv_heads * head_size + hidden_size) * kernel,
    )


def with_recurrent_bits(layers: tuple[Layer, ...], bits: int) -> tuple[Layer, ...]:
    """The layers with recurrent states of another number format; convolutions keep theirs."""
    return tuple(
        msgspec.structs.replace(layer, mixers=tuple(_with_bits(mixer, bits) for mixer in layer.mixers))
        for layer in layers
    )


def _with_bits(mixer: Mixer, bits: int) -> Mixer:
    states = tuple(
        msgspec.structs.replace(part, bits=bits) if part.role == "recurrent" else part
        for part in mixer.states
    )
    return msgspec.structs.replace(mixer, states=states)


def conv_state(num_units: int, num_channels: int, kernel_size: int) -> StatePart:
    """The last inputs of a causal convolution: one fewer than it is wide, for each channel of each unit."""
    return StatePart(role="conv", num_units=num_units, unit_elements=num_channels * (kernel_size - 1))


def recurrent_state(num_units: int, num_elements: int, bits: int | None) -> StatePart:
    """The state of a recurrence, by heads or channels."""
    return StatePart(role="recurrent", num_units=num_units, unit_elements=num_elements, bits=bits)


def count(fields: Fields, num_default: int | None, *keys: str) -> int:
    """A positive whole number, or what the family takes where the config is silent.

    Raises: InputError when it is missing and has no default, or is not positive.
    """
    if num_default is not None and fields.integer(*keys) is None:
        return num_default
    return fields.required(*keys)


def state_bits(fields: Fields, default_bits: int | None = None) -> int | None:
    """Bits of an element of a recurrent state: what the config says, or the default of the family.

    `None` is the model's own number format.

    Raises: InputError when the config names a format that is not known.
    """
    for key in STATE_DTYPE_KEYS:
        dtype = fields.text(key)
        if dtype is not None and dtype != "auto":
            if dtype not in STATE_BITS:
                fields.refuse(f"{key}={dtype!r} is not one of {', '.join(STATE_BITS)}")
            return STATE_BITS[dtype]
    return default_bits
