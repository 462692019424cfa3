"""The feed-forward part of each layer of a config: dense, routed experts, both side by side, or none.

Source: transformers 5.24.0 models/*/modeling_*.py for which matrices there are; vLLM 0.33.0
model_executor/models/nemotron_nas.py and models/kimi_k3 for what transformers does not have.
"""

from typing import NamedTuple

import msgspec

from warmset.model.fields import Fields
from warmset.model.mixture import Mixture, layer_kinds, resolve_mixture
from warmset.model.spec import FeedForward

DENSE_WIDTH = (
    "prefix_dense_intermediate_size",
    "dense_intermediate_size",
    "intermediate_size_mlp",
    "intermediate_size",
    "ffn_hidden_size",
    "n_inner",
    "ffn_dim",
    "decoder_ffn_dim",
    "block_ff_dim",
    "d_ff",
)

WITHOUT = {"mamba", "mamba2", "falcon_mamba"}
"""Every layer is a mixer alone."""

UNGATED = {
    *("arcee", "bart", "bloom", "codegen", "falcon", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_neox", "gptj"),
    *("mpt", "nemotron", "nemotron_h", "opt", "persimmon", "phi", "refinedweb", "refinedwebmodel"),
    *("starcoder2", "whisper"),
}
"""Two matrices instead of three. A type that is not known is taken to be gated, as nearly all are."""

BIASED = {
    *("bart", "bloom", "codegen", "gpt2", "gpt_bigcode", "gpt_neo", "gpt_neox", "gpt_oss", "gptj", "opt"),
    *("persimmon", "phi", "recurrent_gemma", "starcoder2", "whisper"),
}
BIAS_FLAGS = {"starcoder2": "use_bias", "falcon": "bias", "refinedweb": "bias", "refinedwebmodel": "bias"}
"""The switch of a family; all others have `mlp_bias` or none."""

FOUR_HIDDEN_SIZES = {
    *("bloom", "codegen", "falcon", "gpt2", "gpt_bigcode", "gpt_neo", "gptj", "mpt"),
    *("refinedweb", "refinedwebmodel"),
    "gemma4",  # as every dense Gemma 4 is; the default of transformers is that of no published one
}
DEFAULT_WIDTH = {"nemotron_h": 21504}
NAS_MULTIPLE = 256


class _Shape(NamedTuple):
    fields: Fields
    family: str
    hidden_size: int
    num_layers: int

    def mlp(self, width: int, input_size: int) -> int:
        """Weights of one multi-layer perceptron, with its biases."""
        num_matrices = 2 if self.family in UNGATED else 3
        biases = (num_matrices - 1) * width + input_size if self._has_biases() else 0
        return num_matrices * input_size * width + biases

    def _has_biases(self) -> bool:
        stated = self.fields.flag(BIAS_FLAGS.get(self.family, "mlp_bias"))
        return self.family in BIASED if stated is None else stated


def resolve_feed_forwards(
    fields: Fields, model_type: str, hidden_size: int, num_layers: int
) -> tuple[FeedForward | None, ...]:
    """The feed-forward part of each layer, or `None` where it has none.

    LongCat-Flash has two entries for each of its blocks, whatever `num_layers` says: both are dense, and the
    first has the experts too. Biases are counted with the matrices that they belong to.

    Raises: InputError when a width or a number is missing or impossible, or a list has the wrong length.
    """
    family = model_type.removesuffix("_model").removesuffix("_mm").removesuffix("_text").lower()
    shape = _Shape(fields, family, hidden_size, num_layers)
    if family in WITHOUT:
        return (None,) * num_layers
    if family == "longcat_flash":
        return _longcat(shape)
    if family == "nemotron-nas":
        return _searched(shape)
    kinds = layer_kinds(fields, family, num_layers)
    widths = _dense_widths(shape) if {"dense", "both"} & set(kinds) else (0,) * num_layers
    experts = _experts(shape) if {"experts", "both"} & set(kinds) else FeedForward()
    parts: dict[str, FeedForward | None] = {"none": None, "experts": experts}
    for kind, width in set(zip(kinds, widths, strict=True)):
        if kind in {"dense", "both"}:
            base = experts if kind == "both" else FeedForward()
            dense = shape.mlp(width, hidden_size)
            parts[f"{kind} {width}"] = msgspec.structs.replace(base, dense_parameters=dense)
    return tuple(
        parts[kind if kind in parts else f"{kind} {width}"] for kind, width in zip(kinds, widths, strict=True)
    )


def _experts(shape: _Shape) -> FeedForward:
    mixture = resolve_mixture(shape.fields, shape.family, shape.hidden_size)
    shared = shape.mlp(mixture.shared_width_size, shape.hidden_size) if mixture.shared_width_size else 0
    return FeedForward(
        shared_parameters=shared + _projections(shape, mixture),
        router_parameters=_router(shape, mixture),
        expert_parameters=shape.mlp(mixture.width_size, mixture.input_size),
        num_experts=mixture.num_experts,
        experts_per_token=mixture.experts_per_token,
    )


def _projections(shape: _Shape, mixture: Mixture) -> int:
    """Into the smaller space of the experts and back."""
    if mixture.input_size == shape.hidden_size:
        return 0
    return 2 * shape.hidden_size * mixture.input_size


def _router(shape: _Shape, mixture: Mixture) -> int:
    gate = shape.hidden_size if mixture.has_shared_gate else 0
    return shape.hidden_size * mixture.num_router_outputs + mixture.num_router_biases + gate


def _dense_widths(shape: _Shape) -> tuple[int, ...]:
    fields, num_layers = shape.fields, shape.num_layers
    listed = fields.get("intermediate_size")
    if isinstance(listed, list):
        return _listed_widths(fields, listed, num_layers)
    width = _dense_width(shape)
    num_wide = 0
    if shape.family in {"gemma4", "gemma4_unified"} and fields.flag("use_double_wide_mlp"):
        num_wide = fields.integer("num_kv_shared_layers") or 0
        if not 0 <= num_wide <= num_layers:
            fields.refuse(f"num_kv_shared_layers={num_wide} does not fit {num_layers} layers")
    return (width,) * (num_layers - num_wide) + (2 * width,) * num_wide


def _listed_widths(fields: Fields, listed: list[object], num_layers: int) -> tuple[int, ...]:
    """Gemma 3n: a width for each layer."""
    if len(listed) != num_layers:
        fields.refuse(f"intermediate_size has {len(listed)} entries for {num_layers} layers")
    widths = [width for width in listed if type(width) is int and width > 0]
    if len(widths) != num_layers:
        fields.refuse("intermediate_size has entries that are not positive whole numbers")
    return tuple(widths)


def _dense_width(shape: _Shape) -> int:
    fields = shape.fields
    keys: tuple[str, ...] = DENSE_WIDTH
    if shape.family in {"granitemoehybrid", "granitemoeshared"}:  # without experts the shared part is all
        keys = ("shared_intermediate_size", *DENSE_WIDTH)
    if fields.integer(*keys) is None:
        factor = fields.integer("expansion_ratio") or (4 if shape.family in FOUR_HIDDEN_SIZES else 0)
        width = factor * shape.hidden_size or DEFAULT_WIDTH.get(shape.family, 0)
        if width > 0:
            return width
        fields.refuse("the config has no intermediate_size")
    width = fields.required(*keys)
    if shape.family == "recurrent_gemma":  # it counts both halves
        return width // 2
    return _adjusted(fields, width) if fields.flag("block_auto_adjust_ff_dim") else width


def _adjusted(fields: Fields, width: int) -> int:
    """LFM2: two thirds of the stated width, times a factor, rounded up."""
    width = 2 * width // 3
    factor = fields.get("block_ffn_dim_multiplier")
    if not isinstance(factor, int | float):
        return width
    multiple = fields.required("block_multiple_of")
    return -(-int(factor * width) // multiple) * multiple


def _longcat(shape: _Shape) -> tuple[FeedForward, ...]:
    """Each block has two dense parts and one of experts beside them."""
    num_blocks = shape.fields.required("num_layers")
    dense = shape.mlp(shape.fields.required("ffn_hidden_size"), shape.hidden_size)
    both = msgspec.structs.replace(_experts(shape), dense_parameters=dense)
    return (both, FeedForward(dense_parameters=dense)) * num_blocks


def _searched(shape: _Shape) -> tuple[FeedForward | None, ...]:
    """Nemotron-NAS: what an architecture search left of each block."""
    blocks = shape.fields.get("block_configs")
    if not isinstance(blocks, list) or len(blocks) != shape.num_layers:
        found = len(blocks) if isinstance(blocks, list) else "no"
        shape.fields.refuse(f"block_configs has {found} entries for {shape.num_layers} layers")
    return tuple(_searched_block(shape, block) for block in blocks)


def _searched_block(shape: _Shape, block: object) -> FeedForward | None:
    part = Fields(shape.fields.name, {"block": block}).section("block.ffn")
    if part is None:
        shape.fields.refuse("an entry of block_configs has no ffn")
    if part.flag("no_op"):
        return None
    if part.flag("replace_with_linear"):
        return FeedForward(dense_parameters=shape.hidden_size**2)
    factor = part.get("ffn_mult")
    if isinstance(factor, int | float) and factor > 0:
        width = -(-int(2 * factor * shape.hidden_size / 3) // NAS_MULTIPLE) * NAS_MULTIPLE
    else:
        width = part.required("intermediate_size")
    return FeedForward(dense_parameters=shape.mlp(width, shape.hidden_size))
