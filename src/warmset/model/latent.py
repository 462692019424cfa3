"""Latent attention (MLA), with or without an index that selects what is attended to (DSA)."""

from warmset.model.families import Family
from warmset.model.fields import Fields
from warmset.model.heads import resolve_num_heads
from warmset.model.spec import Attention, Cache, Indexer, IndexKey, Latent, Mixer, StatePart


def latent_mixer(fields: Fields, family: Family, hidden_size: int, layer: int) -> Mixer:
    """The latent attention of one layer. `num_key_value_heads` and `head_dim` are decoys here.

    MiniCPM3 is sized as the latent attention that its config describes; vLLM 0.33 caches its expanded
    keys and values instead.

    Source: arXiv 2405.04434; DeepSeek-V3.2-Exp for the index.
    Raises: InputError when a field is missing or impossible.
    """
    indexer, ring_tokens = _indexer(fields, family, layer)
    rope_size = fields.count("qk_rope_head_dim")
    if rope_size is None:
        fields.refuse("the config has no qk_rope_head_dim")
    latent = Latent(
        latent_size=fields.required("kv_lora_rank"),
        rope_size=rope_size,
        sparse=indexer is not None and rope_size > 0,
    )
    attention = Attention(
        num_heads=resolve_num_heads(fields, family),
        key_size=fields.required("qk_nope_head_dim") + latent.rope_size,
        value_size=fields.required("v_head_dim"),
        latent=latent,
        indexer=indexer,
    )
    query_latent_size = fields.count("q_lora_rank") or 0
    caches = [Cache(entry=latent)]
    states: tuple[StatePart, ...] = ()
    if indexer is not None and not indexer.shared:
        key = IndexKey(size=indexer.key_size, default_format="fp8_scaled")
        caches.append(Cache(entry=key, tokens_per_entry=indexer.tokens_per_key))
        if ring_tokens:
            ring = ring_tokens * indexer.key_size
            states = (StatePart(role="tail", num_units=1, unit_elements=ring, bits=16, sharded=False),)
    return Mixer(
        caches=tuple(caches),
        states=states,
        attentions=(attention,),
        split_parameters=_split_parameters(fields, hidden_size, attention, query_latent_size),
        replicated_parameters=hidden_size * (query_latent_size + latent.latent_size + latent.rope_size)
        + _index_parameters(hidden_size, query_latent_size, indexer),
        small_parameters=query_latent_size + latent.latent_size,
    )


def _split_parameters(fields: Fields, hidden_size: int, attention: Attention, query_latent_size: int) -> int:
    latent = attention.latent
    latent_size = 0 if latent is None else latent.latent_size
    nope_size = attention.key_size - (0 if latent is None else latent.rope_size)
    queries = (query_latent_size or hidden_size) * attention.num_heads * attention.key_size
    expansion = latent_size * attention.num_heads * (nope_size + attention.value_size)
    gates = 2 if fields.flag("mla_use_output_gate") else 1
    return queries + expansion + gates * attention.num_heads * attention.value_size * hidden_size


def _indexer(fields: Fields, family: Family, layer: int) -> tuple[Indexer | None, int]:
    """The index of a layer and the tokens of its ring of keys that wait to be pooled (GLM-5.3)."""
    if fields.integer("index_topk") is None:
        return None, 0
    pool_tokens = 1 if fields.get("index_kpool") is None else fields.required("index_kpool")
    indexer = Indexer(
        num_heads=fields.required("index_n_heads"),
        key_size=fields.required("index_head_dim"),
        top_k=fields.required("index_topk"),
        tokens_per_key=pool_tokens,
        shared=not _owns_index(fields, family, layer),
    )
    return indexer, 2 * pool_tokens if pool_tokens > 1 else 0


def _owns_index(fields: Fields, family: Family, layer: int) -> bool:
    """Whether the layer scores its own index: listed as `full`, or by frequency after an offset."""
    types = fields.get("indexer_types")
    if isinstance(types, list):
        if layer >= len(types):
            fields.refuse(f"indexer_types has {len(types)} entries, and there is a layer {layer}")
        num_layers = fields.required("num_hidden_layers")
        if len(types) > num_layers:
            fields.refuse(f"indexer_types has {len(types)} entries for {num_layers} layers")
        if types[layer] not in ("full", "shared"):
            fields.refuse(f"indexer_types[{layer}]={types[layer]!r} is neither full nor shared")
        if types[0] == "shared":
            fields.refuse("indexer_types[0]='shared', and there is no earlier layer to share with")
        return bool(types[layer] == "full")
    if family.shares_index and fields.get("index_topk_freq") is None:
        fields.refuse("the config has no indexer_types")
    frequency = fields.positive("index_topk_freq") or 1
    offset = fields.count("index_skip_topk_offset") or 0
    return layer < offset or max(layer - offset + 1, 0) % frequency == 0


def _index_parameters(hidden_size: int, query_latent_size: int, indexer: Indexer | None) -> int:
    """Index queries from the query latent, one key from the hidden state, a weight for each index head."""
    if indexer is None or indexer.shared:
        return 0
    queries = (query_latent_size or hidden_size) * indexer.num_heads * indexer.key_size
    return queries + hidden_size * (indexer.key_size + indexer.num_heads)
