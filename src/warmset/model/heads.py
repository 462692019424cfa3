"""Attention shape of a config: heads, KV heads and head sizes, or the sizes of a latent.

The traps are those of `configuration_*.py` in transformers 5.24.0, where a field is missing or a decoy.
"""

from typing import NamedTuple

from warmset.model.families import Family
from warmset.model.fields import Fields
from warmset.model.spec import LatentAttention

HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads")
KV_HEADS = (
    "num_key_value_heads",
    "n_head_kv",
    "num_kv_heads",
    "num_attention_groups",
    "attn_config.kv_n_heads",
)
HEAD_SIZE = ("head_dim", "hidden_size_per_head", "attention_head_dim", "kv_channels", "attn_config.head_dim")

FALCONS = {"falcon", "RefinedWeb", "RefinedWebModel"}


class Heads(NamedTuple):
    """Attention shape of every layer."""

    num_heads: int
    num_kv_heads: int
    key_head_size: int
    value_head_size: int
    latent: LatentAttention | None
    query_latent_size: int | None


def resolve_heads(fields: Fields, model_type: str, family: Family, hidden_size: int) -> Heads:
    """The attention shape.

    Raises: InputError when a field is missing or impossible.
    """
    num_heads = fields.required(*HEADS)
    if family.latent and fields.flag("use_mla") is not False:
        return _latent_heads(fields, num_heads)
    head_size = _head_size(fields, family, hidden_size, num_heads)
    num_kv_heads = _num_kv_heads(fields, model_type, family, num_heads)
    if not 1 <= num_kv_heads <= num_heads or num_heads % num_kv_heads:
        fields.refuse(f"{num_heads} heads cannot share {num_kv_heads} KV heads evenly")
    return Heads(num_heads, num_kv_heads, head_size, head_size, None, fields.integer("share_q_dim") or None)


def _latent_heads(fields: Fields, num_heads: int) -> Heads:
    """The one cached vector of a token counts as one KV head, whatever `num_key_value_heads` says.

    MiniCPM3 is sized as the latent attention that its config describes; vLLM 0.33 caches its expanded
    keys and values instead.
    """
    latent = LatentAttention(
        latent_size=fields.required("kv_lora_rank"),
        rope_head_size=fields.required("qk_rope_head_dim"),
        nope_head_size=fields.required("qk_nope_head_dim"),
    )
    return Heads(
        num_heads=num_heads,
        num_kv_heads=1,
        key_head_size=latent.nope_head_size + latent.rope_head_size,
        value_head_size=fields.required("v_head_dim"),
        latent=latent,
        query_latent_size=fields.integer("q_lora_rank") or None,
    )


def _head_size(fields: Fields, family: Family, hidden_size: int, num_heads: int) -> int:
    for key in HEAD_SIZE:
        size = fields.integer(key)
        if size is not None and size > 0:
            return size
    if family.head_size is not None:
        return family.head_size
    if hidden_size % num_heads:
        fields.refuse(
            f"the config has no head_dim, and hidden_size={hidden_size} is not {num_heads} heads wide"
        )
    return hidden_size // num_heads


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
    if family.mha_by_default:
        return num_heads
    return fields.refuse(
        f"the config has no {KV_HEADS[0]}, and model_type={model_type} does not mean one for every head"
    )


def _falcon_kv_heads(fields: Fields, model_type: str, num_heads: int) -> int:
    """The older architecture keeps one KV head whatever `num_kv_heads` says, unless multi-query is off."""
    new_architecture = fields.flag("new_decoder_architecture")
    if new_architecture is None:
        new_architecture = model_type == "RefinedWeb"
    if new_architecture or fields.flag("multi_query") is False:
        return fields.integer(*KV_HEADS) or num_heads
    return 1
