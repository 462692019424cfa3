"""The feed-forward part of a config: dense width, experts, and which layers have which."""

import re

from warmset.model.families import Family
from warmset.model.fields import Fields
from warmset.model.spec import FeedForward

DENSE_WIDTH = ("dense_intermediate_size", "intermediate_size", "ffn_hidden_size", "n_inner", "ffn_dim")
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
    "moe_topk",
    "moe_top_k",
    "moe_k",
    "ffn_config.moe_top_k",
)
EXPERT_WIDTH = (
    "moe_intermediate_size",
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
SPARSE_KINDS = {"sparse", "moe"}


def resolve_feed_forward(fields: Fields, family: Family, hidden_size: int, num_layers: int) -> FeedForward:
    """The feed-forward part of a model all of whose layers have one, dense or of experts.

    A model type that is not known is taken to be gated, as nearly all are; that touches weights only.

    Raises: InputError when a width or the number of chosen experts is missing.
    """
    num_experts = fields.integer(*NUM_EXPERTS) or 0
    if num_experts <= 1:
        width = _dense_width(fields, family, hidden_size)
        return FeedForward(gated=family.gated, num_dense_layers=num_layers, dense_intermediate_size=width)
    num_moe_layers = _num_moe_layers(fields, num_layers)
    if num_moe_layers > num_layers:
        fields.refuse(f"{num_moe_layers} layers are said to have experts, of {num_layers}")
    num_dense_layers = num_layers - num_moe_layers
    expert_width = fields.required(*EXPERT_WIDTH)
    return FeedForward(
        gated=family.gated,
        num_dense_layers=num_dense_layers,
        dense_intermediate_size=_dense_width(fields, family, hidden_size) if num_dense_layers else 0,
        num_moe_layers=num_moe_layers,
        num_experts=num_experts,
        experts_per_token=_experts_per_token(fields, num_experts),
        moe_intermediate_size=expert_width,
        shared_intermediate_size=_shared_width(fields, expert_width),
    )


def longcat_feed_forward(fields: Fields, num_blocks: int) -> FeedForward:
    """LongCat-Flash: each block has two dense parts and one of experts beside them.

    Of the experts that a token chooses, those without weights cost nothing: `experts_per_token` is the mean
    under uniform routing, rounded up.
    """
    num_experts = fields.required("n_routed_experts")
    num_zero_experts = fields.integer("zero_expert_num") or 0
    chosen = _experts_per_token(fields, num_experts)
    return FeedForward(
        num_dense_layers=2 * num_blocks,
        dense_intermediate_size=fields.required("ffn_hidden_size"),
        num_moe_layers=num_blocks,
        num_experts=num_experts,
        experts_per_token=-(-chosen * num_experts // (num_experts + num_zero_experts)),
        moe_intermediate_size=fields.required("expert_ffn_hidden_size"),
        num_zero_experts=num_zero_experts,
    )


def _dense_width(fields: Fields, family: Family, hidden_size: int) -> int:
    factor = fields.integer("expansion_ratio") or family.ffn_factor
    if fields.integer(*DENSE_WIDTH) is None and factor is not None:
        return factor * hidden_size
    return fields.required("intermediate_size", *DENSE_WIDTH)


def _experts_per_token(fields: Fields, num_experts: int) -> int:
    chosen = fields.required(*EXPERTS_PER_TOKEN)
    if chosen > num_experts:
        fields.refuse(f"a token cannot choose {chosen} of {num_experts} experts")
    return chosen


def _shared_width(fields: Fields, expert_width: int) -> int:
    width = fields.integer(*SHARED_WIDTH)
    if width is not None:
        return max(width, 0)
    return (fields.integer(*NUM_SHARED_EXPERTS) or 0) * expert_width


def _num_moe_layers(fields: Fields, num_layers: int) -> int:
    kinds = fields.get("mlp_layer_types")
    if isinstance(kinds, list):
        return sum(str(kind) in SPARSE_KINDS for kind in kinds)
    named = fields.get("moe_layers_enum")
    if named is not None:
        layers = set(re.findall(r"\b\d{1,6}\b", str(named)))
        return sum(int(layer) < num_layers for layer in layers)
    frequency = fields.get("moe_layer_freq")
    if isinstance(frequency, list):
        return sum(bool(flag) for flag in frequency)
    return sum(_is_moe_layer(fields, layer) for layer in range(num_layers))


def _is_moe_layer(fields: Fields, layer: int) -> bool:
    first = fields.integer("first_k_dense_replace", "moe_layer_start_index") or 0
    every = fields.integer("moe_layer_freq") or 1
    step = fields.integer("decoder_sparse_step", "moe_layer_interval") or 1
    dense = fields.get("mlp_only_layers")
    is_listed = isinstance(dense, list) and layer in dense
    return layer >= first and layer % every == 0 and (layer + 1) % step == 0 and not is_listed
