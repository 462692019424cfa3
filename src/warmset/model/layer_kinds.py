"""Which kind each layer of a model is: read from the list, string, interval or rule that its config uses."""

from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Literal

from warmset.errors import UnsupportedModelError
from warmset.model.families import CHUNKED, SLIDING, SPARSE, Family, family_name
from warmset.model.fields import Fields

LayerKind = Literal["full", "sliding", "unbound", "chunked", "recurrent", "parallel", "cross", "none"]
"""`unbound`: a sliding layer whose window is longer than any sequence. `parallel`: attention and a recurrence
side by side. `none`: a feed-forward part alone."""

FULL: LayerKind = "full"
SLIDING_KIND: LayerKind = "sliding"

LAYERS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "decoder_layers")
WINDOWS = ("sliding_window", "sliding_window_size")
MAX_LAYERS = 10_000

KINDS: dict[str, LayerKind] = {
    "full_attention": "full",
    "attention": "full",
    "full": "full",
    "global_attention": "full",
    "deepseek_sparse_attention": "full",
    "indexed_attention": "full",
    "qwen_sparse_attention": "full",
    "minimax_m3_sparse": "full",
    "sliding_attention": "sliding",
    "chunked_attention": "chunked",
    "linear_attention": "recurrent",
    "lightning_attention": "recurrent",
    "mamba": "recurrent",
    "conv": "recurrent",
    "hybrid": "parallel",
    "moe": "none",
    "mlp": "none",
}
"""Names in `layer_types` and `layers_block_type`."""

SPARSE_KINDS = {
    "deepseek_sparse_attention",
    "indexed_attention",
    "qwen_sparse_attention",
    "minimax_m3_sparse",
}
"""Full attention that an index chooses from."""

PATTERN_LETTERS: dict[str, LayerKind] = {"M": "recurrent", "*": "full", "-": "none", "E": "none"}
"""`hybrid_override_pattern` of Nemotron-H."""

FLAG_LISTS: tuple[tuple[str, LayerKind, LayerKind], ...] = (
    ("attn_type_list", "full", "recurrent"),
    ("hybrid_layer_pattern", "sliding", "full"),
)
"""A 1 or 0 for every layer: the field, what a 1 is, what a 0 is."""

ID_LISTS: tuple[tuple[str, LayerKind, LayerKind], ...] = (
    ("local_layer_ids", "sliding", "full"),
    ("cross_attention_layers", "cross", "full"),
    ("attn_layer_indices", "full", "recurrent"),
    ("full_attn_idxs", "full", "recurrent"),
)
"""Numbers of layers from 0: the field, what those are, what the others are."""

ALL_ALIKE: dict[str, LayerKind] = {
    "falcon_h1": "parallel",
    "falcon_mamba": "recurrent",
    "mamba": "recurrent",
    "mamba2": "recurrent",
}
WINDOW_INTERVALS = (
    "sliding_window_pattern",
    "_sliding_window_pattern",
    "layer_switch",
    "global_attn_every_n_layers",
)

FAMILY_LETTERS: dict[str, LayerKind] = {"F": "full", "S": "sliding", "R": "recurrent"}
"""Of `Family.pattern`."""

LISTS = ("layer_types", "layers_block_type", "block_configs", "attn_type_list", "hybrid_layer_pattern")


def count_layers(fields: Fields) -> int:
    """Layers as the config counts them, from their number or from the list or string that names each.

    Beside an encoder they are the decoder's; `num_hidden_layers` is then the encoder's.

    Raises: InputError when there is neither, or more than any model has.
    """
    declared = fields.integer("decoder_layers") if fields.has("encoder_layers") else None
    declared = fields.integer(*LAYERS) if declared is None else declared
    if declared is None:
        named = fields.get(*LISTS) or fields.get("hybrid_override_pattern")
        declared = len(named) if isinstance(named, list | str) else fields.required(LAYERS[0])
    if not 1 <= declared <= MAX_LAYERS:
        fields.refuse(f"{LAYERS[0]}={declared}: a model has 1 to {MAX_LAYERS} layers")
    return declared


def window_tokens(fields: Fields, family: Family, context_tokens: int | None) -> int | None:
    """The window, or None where there is none, it is switched off, or no sequence is longer.

    Raises: InputError when it is not positive; UnsupportedModelError for windows layer by layer.
    """
    if fields.get("sliding_windows") is not None:  # K-EXAONE 2, vLLM 0.33.0 models/exaone_moe.py
        raise UnsupportedModelError(
            f"{fields.name}: a window for each layer (sliding_windows) is not sized yet"
        )
    switch = fields.flag("use_sliding_window")
    if switch is False or (switch is None and family.window_switch):
        return None
    keys = (family.window_key, *WINDOWS)
    window = fields.integer(*keys)
    if window is None:
        window = None if any(fields.has(key) for key in keys) else family.window_tokens
    if window is not None and window < 1:
        fields.refuse(f"sliding_window={window} is not positive")
    if window is not None and context_tokens is not None and window >= context_tokens:
        return None
    return window


def layer_kinds(
    fields: Fields, model_type: str, family: Family, num_layers: int, window: int | None
) -> tuple[LayerKind, ...]:
    """The kind of every layer. One with a window that does not bind keeps its own heads and is `unbound`.

    Raises: InputError when a list has the wrong length; UnsupportedModelError for a kind nobody knows.
    """
    kinds = tuple(_kinds(fields, model_type, family, num_layers))
    if len(kinds) != num_layers:
        fields.refuse(f"the list of layer kinds has {len(kinds)} entries for {num_layers} layers")
    if family.last_full and kinds[-1] == "sliding":
        kinds = (*kinds[:-1], FULL)
    by_rule = family.all_windowed or family.window_switch
    if "sliding" in kinds and window is None and not by_rule and _window_is_missing(fields, family):
        fields.refuse("the config has sliding-window layers and no sliding_window")
    return tuple("unbound" if kind == "sliding" and window is None else kind for kind in kinds)


def _window_is_missing(fields: Fields, family: Family) -> bool:
    return fields.integer(family.window_key, *WINDOWS) is None and fields.flag("use_sliding_window") is None


def _kinds(fields: Fields, model_type: str, family: Family, num_layers: int) -> Iterator[LayerKind]:
    named = fields.get("layer_types", "layers_block_type")
    pattern = fields.get("hybrid_override_pattern")
    if isinstance(named, list):
        for kind in named:
            yield _named(fields, family, kind)
    elif isinstance(pattern, str):
        for letter in pattern:
            yield _letter(fields, letter)
    else:
        rule = RULES.get(family_name(model_type))
        yield from rule(fields, num_layers) if rule else _by_family(fields, model_type, family, num_layers)


def _named(fields: Fields, family: Family, name: object) -> LayerKind:
    kind = KINDS.get(str(name))
    needed = {"sliding": SLIDING, "chunked": CHUNKED}.get(kind or "")
    needed = SPARSE if str(name) in SPARSE_KINDS else needed
    known = needed in family.has if needed else (kind in {"full", "none"} or family.recurrent is not None)
    if kind is None or not known:
        raise UnsupportedModelError(f"{fields.name}: layer_types has {name!r}, which is not understood here")
    return kind


def _letter(fields: Fields, letter: str) -> LayerKind:
    kind = PATTERN_LETTERS.get(letter)
    if kind is None:
        raise UnsupportedModelError(f"{fields.name}: hybrid_override_pattern has {letter!r}, not one of M*-E")
    return kind


def _by_family(fields: Fields, model_type: str, family: Family, num_layers: int) -> Iterator[LayerKind]:
    for key, kind_where_set, kind_elsewhere in FLAG_LISTS:
        if fields.get(key) is not None:
            for flag in _flags(fields, key, num_layers):
                yield kind_where_set if flag else kind_elsewhere
            return
    for key, kind_of_listed, kind_elsewhere in ID_LISTS:
        if fields.get(key) is not None:
            yield from _listed(
                fields.layer_numbers(key, num_layers), kind_of_listed, kind_elsewhere, num_layers
            )
            return
    if fields.get("block_configs") is not None:
        yield from _blocks(fields, num_layers)
    elif family.pattern:
        yield from _repeated(family, num_layers)
    elif family.recurrent is not None:
        yield from _recurrent(fields, model_type, family, num_layers)
    elif CHUNKED in family.has and SLIDING not in family.has:
        yield from _chunked(fields, family, num_layers)
    elif SLIDING in family.has and not family.compressed:
        yield from _sliding(fields, family, num_layers)
    else:
        yield from repeat(FULL, num_layers)


def _listed(
    layers: set[int], kind_of_listed: LayerKind, kind_elsewhere: LayerKind, num_layers: int
) -> Iterator[LayerKind]:
    for layer in range(num_layers):
        yield kind_of_listed if layer in layers else kind_elsewhere


def _recurrent(fields: Fields, model_type: str, family: Family, num_layers: int) -> Iterator[LayerKind]:
    alike = ALL_ALIKE.get(model_type)
    if alike is not None:
        yield from repeat(alike, num_layers)
    elif fields.get("linear_attn_config.full_attn_layers") is not None:
        first = 0 if model_type.startswith("glm5_next") else 1  # Kimi counts from 1
        full = fields.layer_numbers("linear_attn_config.full_attn_layers", num_layers + first)
        if min(full, default=first) < first:
            fields.refuse("linear_attn_config.full_attn_layers names layer 0, and this type counts from 1")
        yield from _listed({layer - first for layer in full}, "full", "recurrent", num_layers)
    elif fields.get("attn_layer_period") is not None:
        period, offset = fields.required("attn_layer_period"), fields.count("attn_layer_offset") or 0
        if offset >= period:
            fields.refuse(f"attn_layer_offset={offset} is not below attn_layer_period={period}")
        full = set(range(offset, num_layers, period))
        yield from _listed(full, "full", "recurrent", num_layers)
    else:
        interval = fields.positive("full_attention_interval", "layer_group_size") or family.interval
        yield from _every(fields, interval, "recurrent", num_layers)


def _every(
    fields: Fields, interval: int | None, elsewhere: LayerKind, num_layers: int
) -> Iterator[LayerKind]:
    """Full attention in the last of every `interval` layers."""
    if interval is None or interval < 1:
        fields.refuse("the config does not say which layers have full attention: layer_types is missing")
    yield from _listed(set(range(interval - 1, num_layers, interval)), "full", elsewhere, num_layers)


def _repeated(family: Family, num_layers: int) -> Iterator[LayerKind]:
    """The pattern of a family, from the first layer or up to the last."""
    length = len(family.pattern)
    offset = -num_layers % length if family.ends_with_pattern else 0
    for layer in range(num_layers):
        yield FAMILY_LETTERS[family.pattern[(layer + offset) % length]]


def _chunked(fields: Fields, family: Family, num_layers: int) -> Iterator[LayerKind]:
    """Llama 4: layers without rotary embedding see everything; a 0 in `no_rope_layers` is such a layer."""
    if fields.get("no_rope_layers"):
        flags = _flags(fields, "no_rope_layers", num_layers)
        for flag in flags:
            yield "chunked" if flag else "full"
        return
    interval = fields.integer("no_rope_layer_interval") or family.interval
    yield from _every(fields, interval, "chunked", num_layers)


def _sliding(fields: Fields, family: Family, num_layers: int) -> Iterator[LayerKind]:
    if family.window_switch or family.num_layers_before_window:
        yield from _by_window_rule(fields, family, num_layers)
        return
    pattern = fields.get(*WINDOW_INTERVALS)
    if isinstance(pattern, str):
        if not pattern or set(pattern) - {"L", "G"}:
            fields.refuse(f"sliding_window_pattern={pattern!r} is not made of L and G")
        for i in range(num_layers):
            is_last = i == num_layers - 1  # full whatever the pattern says: configuration_exaone4.py
            yield "full" if is_last or pattern[i % len(pattern)] == "G" else "sliding"
        return
    if pattern is None and family.all_windowed:
        yield from repeat(SLIDING_KIND, num_layers)
        return
    yield from _every(fields, fields.positive(*WINDOW_INTERVALS) or family.interval, "sliding", num_layers)


def _by_window_rule(fields: Fields, family: Family, num_layers: int) -> Iterator[LayerKind]:
    """Which layers a switched-on window binds.

    Source: transformers 5.24.0 configuration_{qwen2,qwen2_moe,qwen3_moe,smollm3,dots1}.py.
    """
    limit = fields.count("max_window_layers")
    limit = family.num_layers_before_window if limit is None else limit
    unroped = set(range((family.interval or 1) - 1, num_layers, family.interval or 1))
    if fields.get("no_rope_layers") is not None:
        flags = _flags(fields, "no_rope_layers", num_layers)
        unroped = {layer for layer, flag in enumerate(flags) if not flag}
    for layer in range(num_layers):
        binds = {
            "late layers": layer >= limit,
            "every second layer": layer % 2 == 0 and layer < limit,
            "layers without rope": layer in unroped,
            "all layers": True,
        }
        yield "sliding" if binds[family.window_rule] else "full"


def _blocks(fields: Fields, num_layers: int) -> Iterator[LayerKind]:
    for block in _list(fields, "block_configs", num_layers):
        attention = block.get("attention") if isinstance(block, dict) else None
        if not isinstance(attention, dict):
            fields.refuse("a block of block_configs has no attention object")
        for unknown in ("replace_with_linear", "sparsify", "window_length", "num_sink_tokens"):
            if attention.get(unknown):
                raise UnsupportedModelError(f"{fields.name}: block_configs: {unknown} is not sized yet")
        yield "none" if attention.get("no_op") else "full"


def _flags(fields: Fields, key: str, num_layers: int) -> list[bool]:
    values = _list(fields, key, num_layers)
    if any(value not in (0, 1) for value in values):
        fields.refuse(f"{key} holds other values than 0 and 1")
    return [bool(value) for value in values]


def _list(fields: Fields, key: str, num_layers: int) -> list[object]:
    values = fields.get(key)
    if not isinstance(values, list):
        fields.refuse(f"{key} is not a list")
    if len(values) != num_layers:
        fields.refuse(f"{key} has {len(values)} entries for {num_layers} layers")
    return values


def _gpt_neo(fields: Fields, num_layers: int) -> Iterator[LayerKind]:
    """`attention_layers`, or `attention_types`: lists of kinds, each with how often it is repeated."""
    names: list[object] = []
    groups = fields.get("attention_types")
    if fields.get("attention_layers") is not None:
        names = _list(fields, "attention_layers", num_layers)
    elif not isinstance(groups, list):
        fields.refuse("the config has neither attention_layers nor attention_types")
    else:
        for group in groups:
            kinds, times = group if isinstance(group, list) and len(group) == 2 else (None, None)
            if not isinstance(kinds, list) or type(times) is not int or not 0 < times <= MAX_LAYERS:
                fields.refuse("attention_types is not made of lists of kinds and their number")
            names += kinds * times
    yield from _of_names(fields, names, {"global": "full", "local": "sliding"})


def _recurrent_gemma(fields: Fields, num_layers: int) -> Iterator[LayerKind]:
    """`block_types`, repeated; its attention is local."""
    names = fields.get("block_types")
    if names is None:
        names = ["recurrent", "recurrent", "attention"]
    if not isinstance(names, list) or not names:
        fields.refuse("block_types is not a list of kinds")
    repeated = [names[layer % len(names)] for layer in range(num_layers)]
    yield from _of_names(fields, repeated, {"recurrent": "recurrent", "attention": "sliding"})


def _of_names(fields: Fields, names: list[object], kinds: dict[str, LayerKind]) -> Iterator[LayerKind]:
    for name in names:
        kind = kinds.get(str(name))
        if kind is None:
            fields.refuse(f"a layer is {str(name)[:20]!r}, which is none of {', '.join(kinds)}")
        yield kind


def _cohere2_moe(fields: Fields, num_layers: int) -> Iterator[LayerKind]:
    """The dense layers at the start count for themselves, and the others from 1 again."""
    num_dense = min(fields.count("first_k_dense_replace") or 0, num_layers)
    yield from _every(
        fields, fields.positive("prefix_dense_sliding_window_pattern") or 1, "sliding", num_dense
    )
    rest = num_layers - num_dense
    yield from _every(fields, fields.positive("sliding_window_pattern") or 4, "sliding", rest)


def _olmo_hybrid(_: Fields, num_layers: int) -> Iterator[LayerKind]:
    """Every fourth layer has full attention; the last one where there are fewer."""
    yield from _listed(set(range(3, num_layers, 4)) or {num_layers - 1}, "full", "recurrent", num_layers)


def _lfm3(_: Fields, num_layers: int) -> Iterator[LayerKind]:
    """Convolutions on odd layers and the first; full and sliding attention in turn on the others."""
    for layer in range(num_layers):
        yield "full" if layer % 4 == 2 else "sliding" if layer % 4 == 0 and layer else "recurrent"


RULES: dict[str, Callable[[Fields, int], Iterator[LayerKind]]] = {
    "cohere2_moe": _cohere2_moe,
    "gpt_neo": _gpt_neo,
    "lfm3": _lfm3,
    "olmo_hybrid": _olmo_hybrid,
    "recurrent_gemma": _recurrent_gemma,
}
"""How a type without `layer_types` decides. Source: transformers 5.24.0 models/*/configuration_*.py."""
