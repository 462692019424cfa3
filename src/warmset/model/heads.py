"""Attention shape of a layer: heads, KV heads and head sizes.

The traps are those of `configuration_*.py` in transformers 5.24.0, where a field is missing or a decoy.
"""

from typing import NamedTuple

from warmset.model.families import Family
from warmset.model.fields import Fields
from warmset.model.layer_kinds import LayerKind

HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "decoder_attention_heads")
KV_HEADS = (
    "num_key_value_heads",
    "n_head_kv",
    "num_kv_heads",
    "num_attention_groups",
    "attn_config.kv_n_heads",
)
HEAD_SIZE = ("head_dim", "hidden_size_per_head", "attention_head_dim", "kv_channels", "attn_config.head_dim")

GEMMA4_GLOBAL_HEAD_SIZE = 512

FALCONS = {"falcon", "RefinedWeb", "RefinedWebModel"}


class Heads(NamedTuple):
    """Attention shape of one layer."""

    num_heads: int
    num_kv_heads: int
    key_size: int
    value_size: int


def resolve_heads(
    fields: Fields, model_type: str, family: Family, hidden_size: int, kind: LayerKind, layer: int
) -> Heads:
    """The attention shape of one layer.

    Sliding layers may have their own (`swa_*`: MiMo, Inkling), full ones too (`global_*`: Gemma 4); Nemotron
    models found by search have KV heads block by block.

    Raises: InputError when a field is missing or impossible.
    """
    num_heads = _own_heads(fields, resolve_num_heads(fields, family), layer)
    key_size = _head_size(fields, family, hidden_size, num_heads)
    if fields.get("block_configs") is not None:
        num_kv_heads = _block_kv_heads(fields, num_heads, layer)
    else:
        num_kv_heads = _num_kv_heads(fields, model_type, family, num_heads)
    value_size = _value_size(fields, family) or key_size
    if kind in {"sliding", "unbound"}:
        num_heads = fields.positive("swa_num_attention_heads") or num_heads
        num_kv_heads = fields.positive("swa_num_key_value_heads") or num_kv_heads
        key_size = fields.positive("swa_head_dim") or key_size
        value_size = fields.positive("swa_v_head_dim") or value_size
    elif global_size := _global_head_size(fields, model_type):
        key_size = value_size = global_size
        if fields.flag("attention_k_eq_v"):
            num_kv_heads = fields.positive("num_global_key_value_heads") or num_kv_heads
    if not 1 <= num_kv_heads <= num_heads or num_heads % num_kv_heads:
        fields.refuse(f"{num_heads} heads cannot share {num_kv_heads} KV heads evenly")
    if key_size < 1 or value_size < 1:
        fields.refuse(f"head sizes of {key_size} and {value_size} are not positive")
    return Heads(num_heads, num_kv_heads, key_size, value_size)


def _own_heads(fields: Fields, num_heads: int, layer: int) -> int:
    """Laguna has a number of query heads for each layer."""
    listed = fields.get("num_attention_heads_per_layer")
    if listed is None:
        return num_heads
    own = listed[layer] if isinstance(listed, list) and layer < len(listed) else None
    if type(own) is not int or own < 1:
        fields.refuse(f"num_attention_heads_per_layer has no positive number of heads for layer {layer}")
    return own


def _global_head_size(fields: Fields, model_type: str) -> int | None:
    """Head size of Gemma 4's full layers; transformers 5.24.0 takes 512 where the config is silent."""
    size = fields.integer("global_head_dim")
    if size is None and model_type.startswith("gemma4") and not fields.has("global_head_dim"):
        return fields.assume("global_head_dim", GEMMA4_GLOBAL_HEAD_SIZE, "default of the model type")
    return fields.required("global_head_dim") if size else None


def _value_size(fields: Fields, family: Family) -> int | None:
    """DeepSeek models that switch latent attention off say 0 for what the head size is."""
    return fields.count("v_head_dim") if family.latent else fields.positive("v_head_dim")


def resolve_num_heads(fields: Fields, family: Family) -> int:
    """Query heads, with the default of a family whose configs leave them out.

    Raises: InputError when they are missing or not positive.
    """
    if fields.has("encoder_attention_heads") and fields.integer("decoder_attention_heads") is not None:
        return fields.required("decoder_attention_heads")
    if fields.integer(*HEADS) is None and family.num_heads is not None:
        return fields.assume(HEADS[0], family.num_heads, "default of the model type")
    return fields.required(*HEADS)


def _block_kv_heads(fields: Fields, num_heads: int, layer: int) -> int:
    blocks = fields.get("block_configs")
    block = blocks[layer] if isinstance(blocks, list) else None
    attention = block.get("attention") if isinstance(block, dict) else None
    group = attention.get("n_heads_in_group") if isinstance(attention, dict) else None
    if type(group) is not int or group < 1 or num_heads % group:
        fields.refuse(
            f"block_configs[{layer}].attention.n_heads_in_group={group} does not divide {num_heads}"
        )
    return num_heads // group


def _head_size(fields: Fields, family: Family, hidden_size: int, num_heads: int) -> int:
    for key in HEAD_SIZE:
        size = fields.count(key)
        if size:
            return size
    if family.head_size is not None:
        return fields.assume(HEAD_SIZE[0], family.head_size, "default of the model type")
    if hidden_size % num_heads:
        fields.refuse(
            f"the config has no head_dim, and hidden_size={hidden_size} is not {num_heads} heads wide"
        )
    return fields.assume(HEAD_SIZE[0], hidden_size // num_heads, "hidden size over heads")


def _num_kv_heads(fields: Fields, model_type: str, family: Family, num_heads: int) -> int:
    if model_type in FALCONS:
        return _falcon_kv_heads(fields, model_type, num_heads)
    if model_type == "gpt_bigcode":
        return num_heads if fields.flag("multi_query") is False else 1
    if model_type == "chatglm":
        grouped = fields.flag("multi_query_attention")
        return fields.required("multi_query_group_num") if grouped else num_heads
    if model_type == "mpt" and fields.get("attn_config.attn_type") == "multiquery_attention":
        return 1
    declared = fields.integer(*KV_HEADS)
    if declared is not None:
        return declared
    if family.num_kv_heads is not None:
        return fields.assume(KV_HEADS[0], family.num_kv_heads, "default of the model type")
    if family.mha_by_default:
        return fields.assume(KV_HEADS[0], num_heads, "as many as query heads")
    return fields.refuse(
        f"the config has no {KV_HEADS[0]}, and model_type={model_type} does not mean one for every head"
    )


def _falcon_kv_heads(fields: Fields, model_type: str, num_heads: int) -> int:
    """The older architecture keeps one KV head whatever `num_kv_heads` says, unless multi-query is off."""
    new_architecture = fields.flag("new_decoder_architecture")
    if new_architecture is None:
        new_architecture = model_type == "RefinedWeb"
    if new_architecture or fields.flag("multi_query") is False:
        declared = fields.integer(*KV_HEADS)
        return num_heads if declared is None else declared
    return fields.assume(KV_HEADS[0], 1, "multi_query without new_decoder_architecture")
