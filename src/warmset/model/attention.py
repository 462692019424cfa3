"""Softmax attention of keys and values: what a layer of each kind keeps, computes and weighs."""

from warmset.model.families import Family
from warmset.model.fields import Fields
from warmset.model.heads import Heads, resolve_heads
from warmset.model.layer_kinds import LayerKind
from warmset.model.spec import Attention, Cache, Indexer, IndexKey, KvHeads, Mixer, Reach, StatePart

REACH: dict[LayerKind, Reach] = {
    "full": "full",
    "parallel": "full",
    "sliding": "sliding",
    "unbound": "full",
    "chunked": "chunked",
    "cross": "cross",
}

M3_INDEX_HEADS, M3_INDEX_SIZE, M3_TOP_BLOCKS, M3_BLOCK_TOKENS = 4, 128, 16, 128
"""Where a config is silent, in transformers 5.24.0."""

VISION_TILES, VISION_PATCHES = 4, 1601
"""Mllama: at most 4 tiles an image, (560 / 14)² patches and a class token each."""


def attention_mixer(
    fields: Fields,
    model_type: str,
    family: Family,
    hidden_size: int,
    kind: LayerKind,
    layer: int,
    window: int | None,
) -> Mixer:
    """The attention of one layer with its own keys and values.

    Raises: InputError when a field is missing or impossible.
    """
    heads = resolve_heads(fields, model_type, family, hidden_size, kind, layer)
    span = span_tokens(fields, kind, window)
    reach = REACH[kind]
    caches: tuple[Cache, ...] = ()
    if _owns_cache(fields, family, layer):
        entry = KvHeads(num_heads=heads.num_kv_heads, key_size=heads.key_size, value_size=heads.value_size)
        caches = (Cache(entry=entry, reach=reach, span_tokens=span),)
    indexer, index_caches, states = _index(fields, model_type, layer)
    query_latent_size = fields.count("share_q_dim") or 0
    attention = Attention(
        num_heads=heads.num_heads,
        key_size=heads.key_size,
        value_size=heads.value_size,
        reach=reach,
        span_tokens=span,
        indexer=indexer,
    )
    return Mixer(
        caches=(*caches, *index_caches),
        states=states,
        attentions=(attention,),
        split_parameters=_split_parameters(fields, family, hidden_size, heads, query_latent_size),
        kv_parameters=_kv_parameters(fields, hidden_size, heads, kind) if caches else 0,
        replicated_parameters=hidden_size * (query_latent_size + per_layer_input_width(fields))
        + _index_parameters(hidden_size, indexer),
        small_parameters=_small_parameters(fields, hidden_size, heads) + family.sinks * heads.num_heads,
    )


def span_tokens(fields: Fields, kind: LayerKind, window: int | None) -> int:
    """Tokens that a layer of this kind looks back over; 0 for all of them.

    Raises: InputError when the config does not say.
    """
    if kind == "sliding" and window is not None:
        return window
    if kind == "chunked":
        return fields.required("attention_chunk_size")
    return vision_tokens(fields) if kind == "cross" else 0


def vision_tokens(fields: Fields) -> int:
    """Tokens of one image of Mllama: tiles times patches, with a class token for each tile."""
    vision = fields.outer.section("vision_config") if fields.outer is not None else None
    if vision is None:
        return VISION_TILES * VISION_PATCHES
    image_size, patch_size = vision.integer("image_size"), vision.integer("patch_size")
    tiles = vision.count("max_num_tiles") or VISION_TILES
    if not image_size or not patch_size or image_size < 1 or patch_size < 1 or tiles < 1:
        return tiles * VISION_PATCHES
    return tiles * ((image_size // patch_size) ** 2 + 1)


def per_layer_input_width(fields: Fields) -> int:
    """Gemma 3n and 4: gate, projection and model projection of a layer's own input."""
    return 3 * (fields.count("hidden_size_per_layer_input") or 0)


def _owns_cache(fields: Fields, family: Family, layer: int) -> bool:
    """Whether the layer writes keys and values of its own.

    The last `num_kv_shared_layers` read an earlier layer's; with cross-layer attention one layer of
    `cla_share_factor` writes.
    """
    shared = fields.count("num_kv_shared_layers")
    if shared is None:
        shared = family.num_shared_layers
    num_layers = fields.required("num_hidden_layers") if shared else 0
    if shared and shared >= num_layers:
        fields.refuse(f"num_kv_shared_layers={shared} leaves none of {num_layers} layers to share with")
    if shared and layer >= num_layers - shared:
        return False
    factor = fields.integer("cla_share_factor") if fields.flag("use_cla") else None
    if factor is not None and factor < 1:
        fields.refuse(f"cla_share_factor={factor} is not positive")
    return factor is None or layer % factor == 0


def _index(
    fields: Fields, model_type: str, layer: int
) -> tuple[Indexer | None, tuple[Cache, ...], tuple[StatePart, ...]]:
    """Index keys beside keys and values: MiniMax-M3 on its sparse layers, Qwen3.8-Flash-Next on full ones."""
    if model_type.startswith("minimax_m3"):
        return _minimax_index(fields, layer)
    if model_type.startswith("qwen4_exp"):
        return _qwen_index(fields)
    return None, (), ()


def _minimax_index(
    fields: Fields, layer: int
) -> tuple[Indexer | None, tuple[Cache, ...], tuple[StatePart, ...]]:
    """One index key a token, whatever the number of index heads; vLLM and SGLang store one."""
    section = fields.section("sparse_attention_config")
    kinds = fields.get("layer_types")
    if section is None and isinstance(kinds, list) and "minimax_m3_sparse" in kinds:
        return _flat_minimax_index(fields) if kinds[layer] == "minimax_m3_sparse" else (None, (), ())
    if section is None or section.flag("use_sparse_attention") is False:
        return None, (), ()
    sparse = section.get("sparse_attention_freq")
    num_layers = fields.required("num_hidden_layers")
    if isinstance(sparse, list) and len(sparse) != num_layers:
        fields.refuse(f"sparse_attention_freq has {len(sparse)} entries for {num_layers} layers")
    if isinstance(sparse, list) and not sparse[layer]:
        return None, (), ()
    size = section.required("sparse_index_dim")
    indexer = Indexer(
        num_heads=section.required("sparse_num_index_heads"),
        key_size=size,
        top_k=section.required("sparse_topk_blocks") * section.required("sparse_block_size"),
    )
    return indexer, (Cache(entry=IndexKey(size=size, default_format="as_kv")),), ()


def _flat_minimax_index(fields: Fields) -> tuple[Indexer, tuple[Cache, ...], tuple[StatePart, ...]]:
    """As `minimax_m3_vl` of transformers 5.24.0 spells it."""
    size = fields.positive("index_head_dim") or M3_INDEX_SIZE
    num_blocks = fields.positive("index_topk_blocks") or M3_TOP_BLOCKS
    indexer = Indexer(
        num_heads=fields.positive("index_n_heads") or M3_INDEX_HEADS,
        key_size=size,
        top_k=num_blocks * (fields.positive("index_block_size") or M3_BLOCK_TOKENS),
    )
    return indexer, (Cache(entry=IndexKey(size=size, default_format="as_kv")),), ()


def _qwen_index(fields: Fields) -> tuple[Indexer, tuple[Cache, ...], tuple[StatePart, ...]]:
    """One bf16 key for `indexer_compress_ratio` tokens, and a ring of the keys that wait to be compressed."""
    size, ratio = fields.required("indexer_head_dim"), fields.required("indexer_compress_ratio")
    indexer = Indexer(
        num_heads=fields.required("indexer_n_heads"),
        key_size=size,
        top_k=fields.required("indexer_budget"),
        tokens_per_key=ratio,
    )
    cache = Cache(entry=IndexKey(size=size, default_format="bf16"), tokens_per_entry=ratio)
    tail = StatePart(role="tail", num_units=1, unit_elements=ratio * size, bits=16, sharded=False)
    return indexer, (cache,), (tail,)


def _index_parameters(hidden_size: int, indexer: Indexer | None) -> int:
    """Projections of index queries and of the one index key."""
    return 0 if indexer is None else hidden_size * indexer.key_size * (indexer.num_heads + 1)


def _split_parameters(
    fields: Fields, family: Family, hidden_size: int, heads: Heads, query_latent_size: int
) -> int:
    gates = 2 if _has_output_gate(fields, family) else 1
    queries = (query_latent_size or hidden_size) * heads.num_heads * heads.key_size * gates
    outputs = heads.num_heads * heads.value_size * hidden_size
    return queries + outputs + _head_gate_width(fields, family, heads) * hidden_size


def _head_gate_width(fields: Fields, family: Family, heads: Heads) -> int:
    """A gate for each head (Laguna, LFM3), or for each of its elements where Laguna's `gating` says so."""
    if not family.head_gate or fields.get("use_attention_gate") is False:
        return 0
    is_by_head = fields.get("gating") in (None, True, "per-head")
    return heads.num_heads * (1 if is_by_head else heads.value_size)


def _has_output_gate(fields: Fields, family: Family) -> bool:
    declared = fields.flag("attn_output_gate")
    return family.output_gate if declared is None else declared


def _kv_parameters(fields: Fields, hidden_size: int, heads: Heads, kind: LayerKind) -> int:
    """Gemma 4 with `attention_k_eq_v` has one projection for both on its full layers, and caches both."""
    one_projection = fields.flag("attention_k_eq_v") and kind == "full"
    width = heads.key_size if one_projection else heads.key_size + heads.value_size
    return hidden_size * heads.num_kv_heads * width


def _small_parameters(fields: Fields, hidden_size: int, heads: Heads) -> int:
    biased = any(
        fields.flag(key) for key in ("attention_bias", "qkv_bias", "use_bias", "add_qkv_bias", "bias")
    )
    if not biased:
        return 0
    return (
        heads.num_heads * heads.key_size
        + heads.num_kv_heads * (heads.key_size + heads.value_size)
        + hidden_size
    )
