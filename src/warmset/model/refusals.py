"""Refuse what is not sized yet: every sign in a config that not all layers have plain full attention.

A config of an unknown type is believed to be plain only if none of these signs is active. Signs are
patterns of field names, so that a new architecture is refused by the names that its authors gave.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from warmset.errors import UnsupportedModelError
from warmset.model import families
from warmset.model.families import Family
from warmset.model.fields import Config, Fields


class Sign(NamedTuple):
    """A field that says what is not sized: the class in words, and the field as it stands in the config."""

    words: str
    evidence: str


SIGNS = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (
            r"linear_attn|linear_attention|^linear_|lightning|gated_delta|deltanet|^kda_|^gdn_",
            families.LINEAR,
        ),
        (r"attn_type_list|full_att|mamba_ssm_dtype", families.LINEAR),
        (
            r"ssm|mamba|rwkv|xlstm|(^|_)state_(size|dim)|retention|recur|^time_step_|^chunk_size$",
            families.STATE,
        ),
        (r"conv_L_cache|sconv|short_conv|conv_dim|ple_conv", families.CONVOLUTION),
        (r"(^|_)d?_?conv(_|$)|conv_kernel", families.STATE),
        (r"window|(^|_)swa_|layer_switch|local_(layer|att)|hybrid_layer_pattern", families.SLIDING),
        (r"chunk", families.CHUNKED),
        (
            r"(^|_)index(_|er|es|$)|sparse_att|sparse_config|sparse_topk|sparse_block|moba|(^|_)[nd]sa(_|$)",
            families.SPARSE,
        ),
        (r"compress", families.COMPRESSED),
        (r"kv_shar|shared?_kv|kv_source|(^|_)cla(_|$)|cross_layer|yoco", families.SHARED),
        (r"cross_att", families.CROSS),
        (r"encoder", families.ENCODER),
        (
            r"hybrid|block_config|per_layer|layer_config|block_type|layer_group|layer_pattern",
            families.PER_LAYER,
        ),
        (r"attn_layer|attention_(types|layers)|global_(head|key|layer|att)|num_global", families.PER_LAYER),
        (r"(^|_)loops?(_|$)|cycles|meta_token|engram", families.PER_LAYER),
        (r"lora_rank", families.LATENT),
        (r"k_eq_v", families.PER_LAYER),
        (r"att(ention|n)_output_gate", families.GATE),
    )
)

HARMLESS = re.compile(
    r"^(mtp|vision|image|audio|video|speech|rope|quant|compression_config|decoder_sparse_step|max_window_layers"
    r"|use_sliding_window|cla_share_factor|mlp_layer_types|ignore_index|tie_encoder_decoder"
    r"|encoder_no_repeat_ngram_size|chunk_size_feed_forward|id2label|label2id|task_specific_params|auto_map)"
    r"|_token_(id|index)$|_ignore_index$|^(bos|eos|pad|unk|mask|sep)_index$|dropout"
)
"""Fields whose names look like a sign and are none, or which are judged on their own below."""

FULL_ATTENTION = {"full_attention", "full", "attention", "global_attention"}
WORDS_OF_KIND = (
    (re.compile(r"sliding|local|window|swa"), families.SLIDING),
    (re.compile(r"chunk"), families.CHUNKED),
    (re.compile(r"linear|delta|lightning"), families.LINEAR),
    (re.compile(r"conv"), families.CONVOLUTION),
    (re.compile(r"mamba|ssm|recurrent|rwkv"), families.STATE),
    (re.compile(r"sparse|index"), families.SPARSE),
    (re.compile(r"compress"), families.COMPRESSED),
)
WINDOW_LENGTHS = (
    "sliding_window",
    "sliding_window_size",
    "attention_window",
    "attention_window_size",
    "window_size",
    "attn_config.sliding_window_size",
)
MOST_EVIDENCE = 3
DEEPEST_NESTING = 6

SIDE_SIGNS = {families.PER_LAYER, families.LATENT, families.UNEQUAL, families.GATE}
"""Classes that follow from another one where there is one; they are named only where they stand alone."""


def refuse_unsized(fields: Fields, model_type: str, family: Family, max_context_tokens: int | None) -> None:
    """Raise if any layer may keep something that is not read for this model type.

    Raises: UnsupportedModelError with the class in words and the fields that say so.
    """
    signs = list(_all_signs(fields, model_type, family, max_context_tokens))
    unsized = families.UNSIZED_FAMILIES.get(families.family_name(model_type))
    if not signs and unsized is not None:
        signs = [Sign(unsized, f"model_type={model_type}")]
    if signs:
        shown = " ".join(model_type.split())
        raise UnsupportedModelError(
            f"{fields.name}: {_sentence(signs)} are not understood for model_type={shown}"
        )


def _all_signs(
    fields: Fields, model_type: str, family: Family, max_context_tokens: int | None
) -> Iterator[Sign]:
    if families.family_name(model_type) not in families.FAMILIES:
        yield from _layer_kinds(fields)
    windows_off = _windows_are_off(fields, family, max_context_tokens)
    for sign in _named_signs(fields.values, ""):
        key = sign.evidence.partition("=")[0]
        if sign.words in family.has or (family.latent and key in {"kv_lora_rank", "q_lora_rank"}):
            continue
        if sign.words != families.SLIDING or not windows_off:
            yield sign
    if (
        family.window_tokens is not None
        and not fields.has("sliding_window")
        and families.SLIDING not in family.has
    ):
        yield Sign(families.SLIDING, f"sliding_window={family.window_tokens}, the default of {model_type}")
    for sign in (*_shared_and_encoder(fields), *_unequal_heads(fields)):
        if sign.words not in family.has and not (family.latent and sign.words == families.UNEQUAL):
            yield sign


def _named_signs(values: Config, prefix: str) -> Iterator[Sign]:
    for key, value in values.items():
        if HARMLESS.search(key) or key == "layer_types":
            continue
        words = next((words for pattern, words in SIGNS if pattern.search(key)), None)
        if words is not None:
            if _is_active(key, value):
                yield Sign(words, f"{prefix}{key}={_shown(value)}")
        elif isinstance(value, Mapping):
            if prefix.count(".") >= DEEPEST_NESTING:
                yield Sign(families.PER_LAYER, f"{prefix}{key} is nested too deeply")
                continue
            yield from _named_signs(value, f"{prefix}{key}.")


def _is_active(key: str, value: object) -> bool:
    off: set[object] = {1} if re.search(r"full_att|attn_type_list", key) else {0}
    if isinstance(value, Mapping):
        return bool(value)
    if isinstance(value, list):
        return any(item is not None and (isinstance(item, list | dict) or item not in off) for item in value)
    if isinstance(value, bool | None):
        return bool(value)
    if isinstance(value, int | float):
        return value > 0 and value not in off
    return value not in {"", "none", "None"}


def _layer_kinds(fields: Fields) -> Iterator[Sign]:
    kinds = fields.get("layer_types")
    if not isinstance(kinds, list):
        if kinds is not None:
            yield Sign(families.PER_LAYER, f"layer_types={_shown(kinds)}")
        return
    for kind in sorted({str(kind) for kind in kinds} - FULL_ATTENTION):
        words = next((words for pattern, words in WORDS_OF_KIND if pattern.search(kind)), families.PER_LAYER)
        yield Sign(words, f"layer_types: {kinds.count(kind)} of {len(kinds)} are {kind}")


def _windows_are_off(fields: Fields, family: Family, max_context_tokens: int | None) -> bool:
    """A window counts only if it is switched on and shorter than the longest sequence."""
    switch = fields.flag("use_sliding_window")
    if switch is False or (switch is None and family.window_switch):
        return True
    lengths = [length for key in WINDOW_LENGTHS if (length := fields.integer(key)) is not None and length > 0]
    if lengths:
        return max_context_tokens is not None and min(lengths) >= max_context_tokens
    return any(fields.has(key) for key in WINDOW_LENGTHS) and not switch


def _shared_and_encoder(fields: Fields) -> Iterator[Sign]:
    if fields.flag("use_cla") and (factor := fields.integer("cla_share_factor")):
        yield Sign(families.SHARED, f"cla_share_factor={factor}")
    if fields.outer is not None and fields.outer.flag("is_encoder_decoder"):
        yield Sign(families.ENCODER, "is_encoder_decoder=true")


def _unequal_heads(fields: Fields) -> Iterator[Sign]:
    keys, values = fields.integer("head_dim"), fields.integer("v_head_dim")
    if keys and values and keys != values:
        yield Sign(families.UNEQUAL, f"head_dim={keys}, v_head_dim={values}")


def _sentence(signs: list[Sign]) -> str:
    main = [sign for sign in signs if sign.words not in SIDE_SIGNS]
    evidence: dict[str, list[str]] = {}
    for sign in main or signs:
        evidence.setdefault(sign.words, []).append(sign.evidence)
    sentence = " and ".join(f"{words} ({_listed(fields)})" for words, fields in evidence.items())
    return " ".join(sentence.split())


def _listed(evidence: list[str]) -> str:
    more = len(evidence) - MOST_EVIDENCE
    return ", ".join(evidence[:MOST_EVIDENCE]) + (f" and {more} more" if more > 0 else "")


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{len(value)} values]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(list(value)[:2])}, ...}}"
    text = str(value)
    return text if len(text) <= 30 else f"{text[:27]}..."
