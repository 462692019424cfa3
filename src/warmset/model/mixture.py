"""Routed experts of a config: how many, how wide, how many a token chooses, and which layers have them."""

import re
from typing import Literal, NamedTuple

from warmset.model.fields import Fields

Kind = Literal["dense", "experts", "both", "none"]
"""What feed-forward part a layer has."""

NUM_EXPERTS = (
    "num_local_experts",
    "num_experts",
    "n_routed_experts",
    "moe_num_experts",
    "ffn_config.moe_num_experts",
)
EXPERTS_PER_TOKEN = (
    "num_experts_per_tok",
    "num_experts_per_token",
    "experts_per_token",
    "top_k_experts",
    "moe_topk",
    "moe_top_k",
    "moe_k",
    "ffn_config.moe_top_k",
)
EXPERT_WIDTH = (
    "moe_intermediate_size",
    "expert_intermediate_size",
    "expert_ffn_hidden_size",
    "ffn_config.ffn_hidden_size",
    "intermediate_size",
)
SHARED_WIDTH = (
    "shared_expert_intermediate_size",
    "moe_shared_expert_intermediate_size",
    "share_expert_dim",
    "shared_intermediate_size",
)
NUM_SHARED_EXPERTS = ("n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts")
EXPERT_INPUT = ("moe_latent_size", "routed_expert_hidden_size", "moe_hidden_size")
"""The smaller space that experts work in: Nemotron 3, Kimi-K3, Muse Spark."""

FIRST_DENSE_LAYERS = (
    "first_k_dense_replace",
    "moe_layer_start_index",
    "num_dense_layers",
    "dense_mlp_idx",
)
DEFAULT_DENSE_LAYERS = {
    "afmoe": 1,
    "bailing_hybrid": 2,
    "deepseek_v3": 3,
    "deepseek_v32": 3,
    "ernie4_5_moe": 1,
    "exaone_moe": 1,
    "glm4_moe": 1,
    "glm4_moe_lite": 1,
    "glm4v_moe": 1,
    "glm5_next": 3,
    "glm_moe_dsa": 3,
    "hy_v4": 1,
    "hy_v4_vl": 1,
    "kimi_k2": 3,
    "kimi_linear": 1,
    "laguna": 1,
    "lfm2_moe": 2,
    "sarvam_moe": 1,
    "step3p5": 3,
    "step3p7": 3,
}
"""Dense layers at the start where the config is silent, as transformers 5.24.0 has them."""

EXPERT_KINDS = {"sparse", "moe", "hash_moe"}
"""`hash_moe`: DeepSeek V4's first layers choose by the token's id; their experts are the same."""
BLOCK_KINDS: dict[str, Kind] = {
    "-": "dense",
    "mlp": "dense",
    "E": "experts",
    "moe": "experts",
    "M": "none",
    "mamba": "none",
    "linear_attention": "none",
    "*": "none",
    "attention": "none",
    "full_attention": "none",
}
SHARED_GATED = {"qwen2_moe", "qwen3_next", "qwen3_5_moe", "qwen4_exp"}
"""These weigh their shared expert with a gate of its own."""


BIASED_ROUTERS = {
    *("exaone_moe", "glm4_moe", "glm4v_moe", "gpt_oss", "kimi_linear", "laguna", "minimax_m2", "minimax_m3"),
    "minimax_m3_vl",
}
"""With a bias for each expert; so have all with `topk_method` `noaux_tc`."""


class Mixture(NamedTuple):
    """The routed experts of one layer. `width`s in elements; `input_size` of what an expert works on."""

    num_experts: int
    experts_per_token: int  # of those that hold weights
    num_router_outputs: int
    num_router_biases: int
    width_size: int
    input_size: int
    shared_width_size: int
    has_shared_gate: bool


def num_experts(fields: Fields) -> int:
    """Routed experts of a layer; 0 where the config has none or a single one.

    Raises: InputError when the number is negative.
    """
    number = fields.integer(*NUM_EXPERTS) or 0
    if number < 0:
        fields.refuse(f"{number} experts are fewer than none")
    return number if number > 1 else 0


def resolve_mixture(fields: Fields, family: str, hidden_size: int) -> Mixture:
    """The routed experts of the layers that have them.

    Experts without weights (LongCat's `zero_expert_num`) cost nothing: `experts_per_token` is then the mean
    under uniform routing, rounded up.

    Raises: InputError when a width or a number is missing, or a token chooses more experts than there are.
    """
    number = fields.required(*NUM_EXPERTS)
    num_zero = _not_negative(fields, "zero_expert_num") or 0
    chosen = fields.required(*EXPERTS_PER_TOKEN)
    if chosen > number + num_zero:
        fields.refuse(f"a token cannot choose {chosen} of {number + num_zero} experts")
    width = _expert_width(fields)
    num_shared = _not_negative(fields, *NUM_SHARED_EXPERTS) or 0
    scored = num_shared if family == "inkling" and fields.flag("shared_expert_sink") is not False else 0
    shared_width = _shared_width(fields, family, width, num_shared)
    return Mixture(
        num_experts=number,
        experts_per_token=-(-chosen * number // (number + num_zero)),
        num_router_outputs=number + num_zero + scored,
        num_router_biases=number if _has_router_bias(fields, family) else 0,
        width_size=width,
        input_size=_positive(fields, *EXPERT_INPUT) or hidden_size,
        shared_width_size=shared_width,
        has_shared_gate=family in SHARED_GATED and shared_width > 0,
    )


def _has_router_bias(fields: Fields, family: str) -> bool:
    return family in BIASED_ROUTERS or fields.get("topk_method") == "noaux_tc"


def _expert_width(fields: Fields) -> int:
    """Inkling may give the dense width a name of its own, and `intermediate_size` is then the experts'."""
    if fields.get("dense_intermediate_size") is not None and fields.integer("intermediate_size"):
        return fields.required("intermediate_size")
    return fields.required(*EXPERT_WIDTH)


def _shared_width(fields: Fields, family: str, expert_width: int, num_shared: int) -> int:
    if family == "llama4":
        return expert_width
    width = _not_negative(fields, *SHARED_WIDTH)
    return num_shared * expert_width if width is None else width


def layer_kinds(fields: Fields, family: str, num_layers: int) -> tuple[Kind, ...]:
    """What feed-forward part each layer has, for all families but Nemotron-NAS and LongCat-Flash.

    Raises: InputError when a list has the wrong length or an unknown word.
    """
    if family == "nemotron_h":
        return _block_kinds(fields, num_layers)
    dense: Kind = "dense"
    if not num_experts(fields):
        return (dense,) * num_layers
    if family == "gemma4":
        kind: Kind = "both" if fields.flag("enable_moe_block") else dense
        return (kind,) * num_layers
    with_experts = _layers_with_experts(fields, family, num_layers)
    kinds: dict[bool, Kind] = {True: "experts", False: "dense"}
    return tuple(kinds[layer in with_experts] for layer in range(num_layers))


def _block_kinds(fields: Fields, num_layers: int) -> tuple[Kind, ...]:
    """Nemotron-H: a layer is a mixer or a feed-forward part, never both."""
    key = "layers_block_type" if fields.get("layers_block_type") is not None else "hybrid_override_pattern"
    blocks = fields.get(key)
    if not isinstance(blocks, str | list):
        fields.refuse(f"the config has no {key} that says which layers have a feed-forward part")
    _check_length(fields, key, len(blocks), num_layers)
    unknown = next((block for block in blocks if str(block) not in BLOCK_KINDS), None)
    if unknown is not None:
        fields.refuse(f"{key} has {str(unknown)[:20]!r}, which is none of {', '.join(BLOCK_KINDS)}")
    return tuple(BLOCK_KINDS[str(block)] for block in blocks)


def _layers_with_experts(fields: Fields, family: str, num_layers: int) -> set[int]:
    kinds = fields.get("mlp_layer_types")
    if isinstance(kinds, list):
        _check_length(fields, "mlp_layer_types", len(kinds), num_layers)
        unknown = {str(kind) for kind in kinds} - EXPERT_KINDS - {"dense"}
        if unknown:
            fields.refuse(f"mlp_layer_types has {min(unknown)[:20]!r}, which is neither dense nor sparse")
        return {layer for layer, kind in enumerate(kinds) if str(kind) in EXPERT_KINDS}
    named = fields.get("moe_layers_enum", "moe_layers")
    if named is not None:
        return {int(layer) for layer in re.findall(r"\b\d{1,6}\b", str(named))}
    for key in ("moe_layer_freq", "is_moe_layer"):
        flags = fields.get(key)
        if isinstance(flags, list):
            _check_length(fields, key, len(flags), num_layers)
            return {layer for layer, flag in enumerate(flags) if flag}
    if family == "jamba":
        return _every(fields, num_layers)
    return {layer for layer in range(num_layers) if _has_experts(fields, family, layer)}


def _every(fields: Fields, num_layers: int) -> set[int]:
    period = _positive(fields, "expert_layer_period") or 2
    offset = fields.integer("expert_layer_offset")
    return set(range(1 if offset is None else offset, num_layers, period))


def _has_experts(fields: Fields, family: str, layer: int) -> bool:
    first = _not_negative(fields, *FIRST_DENSE_LAYERS)
    if first is None:
        first = DEFAULT_DENSE_LAYERS.get(family, 0)
    last = _not_negative(fields, "moe_layer_end_index")
    every = _positive(fields, "moe_layer_freq") or 1
    step = _positive(fields, "decoder_sparse_step", "moe_layer_interval", "interleave_moe_layer_step") or 1
    dense = fields.get("mlp_only_layers")
    if isinstance(dense, list) and layer in dense:
        return False
    is_in_range = layer >= first and (last is None or layer <= last)
    return is_in_range and layer % every == 0 and (layer + 1) % step == 0


def _check_length(fields: Fields, key: str, num_entries: int, num_layers: int) -> None:
    if num_entries != num_layers:
        fields.refuse(f"{key} has {num_entries} entries for {num_layers} layers")


def _not_negative(fields: Fields, *keys: str) -> int | None:
    value = fields.integer(*keys)
    if value is not None and value < 0:
        fields.refuse(f"{keys[0]}={value} is negative")
    return value


def _positive(fields: Fields, *keys: str) -> int | None:
    return None if fields.integer(*keys) is None else fields.required(*keys)
