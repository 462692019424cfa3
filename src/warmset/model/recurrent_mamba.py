"""Mamba layers: state-space models of the first generation, by channels, and of the second, by heads.

Source: transformers 5.24.0 models/*/{configuration,modeling}_*.py for fields, defaults and weights;
vLLM 0.33.0 model_executor/layers/mamba/{mamba_mixer,mamba_mixer2,mamba_utils}.py for states and for what
tensor parallelism splits.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from warmset.model.fields import Fields
from warmset.model.recurrent import SCAN_FLOPS_PER_ELEMENT, conv_state, count, recurrent_state, state_bits
from warmset.model.spec import Mixer

MAMBA_KERNEL_SIZE = 4
MAMBA_EXPANSION = 2
MAMBA1_STATE_SIZE = 16
"""What transformers takes where a config is silent, in every family."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba1Fields:
    """How a family with Mamba layers of the first generation spells their fields.

    `channels` overrules `expand`. `has_norms`: norms with weights on the step and and on B and C.
    """

    state_size: str = "state_size"
    kernel: str = "conv_kernel"
    rank: str = "time_step_rank"
    bias: str = "use_bias"
    conv_bias: str = "use_conv_bias"
    expand: str = "expand"
    channels: str | None = "intermediate_size"
    has_norms: bool = False


JAMBA = Mamba1Fields(
    state_size="mamba_d_state",
    kernel="mamba_d_conv",
    rank="mamba_dt_rank",
    bias="mamba_proj_bias",
    conv_bias="mamba_conv_bias",
    expand="mamba_expand",
    channels=None,  # its intermediate_size is that of the feed-forward part
    has_norms=True,
)


def mamba1(fields: Fields, hidden_size: int) -> Mixer:
    """A Mamba layer of the first generation: Jamba (`mamba_*` fields), falcon-mamba and Mamba itself.

    The recurrent state has the model's own format unless the config says otherwise; SGLang takes fp32.

    Raises: InputError when a count is not positive.
    """
    names = JAMBA if fields.text("model_type") == "jamba" else Mamba1Fields()
    channels = hidden_size * count(fields, MAMBA_EXPANSION, names.expand)
    if names.channels is not None:
        channels = count(fields, channels, names.channels)
    state_size = count(fields, MAMBA1_STATE_SIZE, names.state_size)
    kernel = count(fields, MAMBA_KERNEL_SIZE, names.kernel)
    rank = -(-hidden_size // 16) if fields.get(names.rank) in (None, "auto") else fields.required(names.rank)
    biases = 2 * channels + hidden_size if fields.flag(names.bias) else 0
    conv = channels * (kernel + (fields.flag(names.conv_bias) is not False))
    norms = rank + 2 * state_size if names.has_norms else 0
    decays = channels * (state_size + 2)  # A, D and the bias of the step
    return Mixer(
        states=(
            conv_state(channels, 1, kernel),
            recurrent_state(channels, state_size, state_bits(fields)),
        ),
        scan_flops_per_token=SCAN_FLOPS_PER_ELEMENT * channels * state_size,
        split_parameters=channels * (3 * hidden_size + 2 * rank + 2 * state_size),
        small_parameters=conv + decays + norms + biases,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba2Fields:
    """How a family with Mamba layers of the second generation spells their fields.

    The heads fill `channels`, or `expand` times the hidden size; not so without `expand`.
    Where a switch `norm` is named, there is no norm unless it is on. `defaults` stand for missing fields.
    """

    heads: str
    head_size: str
    state_size: str
    groups: tuple[str, ...]
    kernel: tuple[str, ...]
    expand: str | None
    channels: str | None = None
    in_bias: str
    out_bias: str
    conv_bias: tuple[str, ...]
    norm: str | None = None
    defaults: dict[str, int]
    state_bits: int | None = None


MAMBA2 = Mamba2Fields(
    heads="num_heads",
    head_size="head_dim",
    state_size="state_size",
    groups=("n_groups",),
    kernel=("conv_kernel",),
    expand="expand",
    in_bias="use_bias",
    out_bias="use_bias",
    conv_bias=("use_conv_bias",),
    defaults={"num_heads": 128, "head_dim": 64, "state_size": 128, "n_groups": 8},
)
NEMOTRON_H = Mamba2Fields(
    heads="mamba_num_heads",
    head_size="mamba_head_dim",
    state_size="ssm_state_size",
    groups=("n_groups", "mamba_n_groups"),
    kernel=("conv_kernel", "mamba_d_conv"),
    expand=None,
    in_bias="use_bias",
    out_bias="use_bias",
    conv_bias=("use_conv_bias", "mamba_conv_bias"),
    defaults={"mamba_num_heads": 128, "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8},
    state_bits=32,  # vLLM 0.33.0 model_executor/models/config.py, NemotronHForCausalLMConfig
)
BAMBA = Mamba2Fields(
    heads="mamba_n_heads",
    head_size="mamba_d_head",
    state_size="mamba_d_state",
    groups=("mamba_n_groups",),
    kernel=("mamba_d_conv",),
    expand="mamba_expand",
    in_bias="mamba_proj_bias",
    out_bias="mamba_proj_bias",
    conv_bias=("mamba_conv_bias",),
    defaults={"mamba_n_heads": 128, "mamba_d_state": 256, "mamba_n_groups": 1},
)
FALCON_H1 = replace(
    BAMBA,
    channels="mamba_d_ssm",
    out_bias="projectors_bias",
    norm="mamba_rms_norm",
    defaults=BAMBA.defaults | {"mamba_d_ssm": 1024},
)
ZAMBA2 = Mamba2Fields(
    heads="n_mamba_heads",
    head_size="mamba_headdim",
    state_size="mamba_d_state",
    groups=("mamba_ngroups",),
    kernel=("mamba_d_conv",),
    expand="mamba_expand",
    in_bias="add_bias_linear",
    out_bias="add_bias_linear",
    conv_bias=(),
    defaults={"n_mamba_heads": 8, "mamba_d_state": 64, "mamba_ngroups": 1},
)
MAMBA2_FAMILIES = {
    "mamba2": MAMBA2,
    "nemotron_h": NEMOTRON_H,
    "bamba": BAMBA,
    "granitemoehybrid": BAMBA,
    "falcon_h1": FALCON_H1,
    "zamba2": ZAMBA2,
}


class _Shape(NamedTuple):
    """Heads, groups of them that share what reads and writes the state, and the sizes of one of each."""

    num_heads: int
    head_size: int
    state_size: int
    num_groups: int
    kernel_size: int


def mamba2(fields: Fields, hidden_size: int) -> Mixer:
    """A Mamba layer of the second generation: Mamba2, Nemotron-H, Falcon-H1, Granite 4, Bamba, Zamba2.

    The recurrent state has the model's own format unless the config says otherwise; in Nemotron-H it is fp32.
    The projections of a single group are on every GPU; those of several are split. vLLM has no third case: in
    it tensor parallelism has to divide several groups.

    Raises: InputError when a count is missing or not positive, or the heads do not fill the channels evenly.
    """
    names = _mamba2_fields(fields)
    shape = _mamba2_shape(fields, names, hidden_size)
    channels = shape.num_heads * shape.head_size
    by_groups = 2 * shape.num_groups * shape.state_size
    by_heads = 2 * channels + shape.num_heads
    is_shared = shape.num_groups == 1
    return Mixer(
        states=(
            conv_state(shape.num_heads, shape.head_size, shape.kernel_size),
            conv_state(shape.num_groups, 2 * shape.state_size, shape.kernel_size),
            recurrent_state(
                shape.num_heads, shape.head_size * shape.state_size, state_bits(fields, names.state_bits)
            ),
        ),
        scan_flops_per_token=SCAN_FLOPS_PER_ELEMENT * channels * shape.state_size,
        split_parameters=hidden_size * (by_heads + channels + (0 if is_shared else by_groups)),
        replicated_parameters=hidden_size * by_groups if is_shared else 0,
        small_parameters=_mamba2_small_parameters(fields, names, hidden_size, shape),
    )


def _mamba2_small_parameters(fields: Fields, names: Mamba2Fields, hidden_size: int, shape: _Shape) -> int:
    channels = shape.num_heads * shape.head_size
    conv_channels = channels + 2 * shape.num_groups * shape.state_size
    has_conv_bias = all(fields.flag(key) is not False for key in names.conv_bias)
    has_norm = names.norm is None or fields.flag(names.norm)
    return (
        conv_channels * (shape.kernel_size + has_conv_bias)
        + 3 * shape.num_heads  # A, D and the bias of the step
        + (channels if has_norm else 0)
        + (channels + conv_channels + shape.num_heads if fields.flag(names.in_bias) else 0)
        + (hidden_size if fields.flag(names.out_bias) else 0)
    )


def _mamba2_fields(fields: Fields) -> Mamba2Fields:
    """By the model type, or by how the config spells the number of heads."""
    known = MAMBA2_FAMILIES.get(fields.text("model_type") or "")
    if known is not None:
        return known
    families = (NEMOTRON_H, BAMBA, ZAMBA2, MAMBA2)
    spelled = next((names for names in families if fields.get(names.heads) is not None), None)
    if spelled is None:
        fields.refuse(f"the config has no {' or '.join(names.heads for names in families)}")
    return spelled


def _mamba2_shape(fields: Fields, names: Mamba2Fields, hidden_size: int) -> _Shape:
    num_heads = count(fields, names.defaults.get(names.heads), names.heads)
    num_groups = count(fields, names.defaults.get(names.groups[0]), *names.groups)
    if num_heads % num_groups:
        fields.refuse(f"{names.groups[0]}={num_groups} does not divide {names.heads}={num_heads}")
    return _Shape(
        num_heads=num_heads,
        head_size=_mamba2_head_size(fields, names, hidden_size, num_heads),
        state_size=count(fields, names.defaults.get(names.state_size), names.state_size),
        num_groups=num_groups,
        kernel_size=count(fields, MAMBA_KERNEL_SIZE, *names.kernel),
    )


def _mamba2_head_size(fields: Fields, names: Mamba2Fields, hidden_size: int, num_heads: int) -> int:
    """What the config says, which has to agree with the channels where the family counts those too."""
    default = names.defaults.get(names.head_size)
    if names.expand is None:
        return count(fields, default, names.head_size)
    channels = _mamba2_channels(fields, names, names.expand, hidden_size)
    if channels % num_heads:
        fields.refuse(f"{names.heads}={num_heads} does not divide the {channels} channels of a Mamba layer")
    if fields.get(names.head_size) == "auto":
        return channels // num_heads
    head_size = count(fields, default or channels // num_heads, names.head_size)
    if num_heads * head_size != channels:
        fields.refuse(
            f"{names.heads}={num_heads} heads of {names.head_size}={head_size} "
            f"do not fill the {channels} channels of a Mamba layer"
        )
    return head_size


def _mamba2_channels(fields: Fields, names: Mamba2Fields, expand: str, hidden_size: int) -> int:
    """A null for the channels stands for the expansion; a missing one for the family's own number."""
    expanded = hidden_size * count(fields, MAMBA_EXPANSION, expand)
    if names.channels is None:
        return expanded
    default = expanded if fields.has(names.channels) else names.defaults[names.channels]
    return count(fields, default, names.channels)
