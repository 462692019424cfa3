"""Compressed attention of DeepSeek V4 and V4.1: a short window, and entries that stand for several tokens.

Source: `docs/method.md`, KV bytes; vLLM 0.33.0 models/deepseek_v4 for what a compressor keeps.
"""

from warmset.model.fields import Fields
from warmset.model.heads import HEADS
from warmset.model.spec import Attention, Cache, CompressedEntry, Indexer, IndexKey, Mixer, StatePart

INDEXED_RATIO = 4
"""V4 has an index at this ratio only; above it every entry is attended to."""

FP32_BITS = 32
LARGEST_RATIO = 2**20


def compressed_mixer(fields: Fields, hidden_size: int, layer: int) -> Mixer:
    """The attention of one layer: its window, and its compressed entries with their index.

    In V4.1 (`kv_source_layer_ids`) only the named layers own compressed entries; the others read them.

    Raises: InputError when a field is missing or impossible.
    """
    entry = CompressedEntry(size=fields.required("head_dim"), rope_size=fields.required("qk_rope_head_dim"))
    if entry.rope_size > entry.size:
        fields.refuse(f"qk_rope_head_dim={entry.rope_size} is more than head_dim={entry.size}")
    window = fields.required("sliding_window")
    ratio = compression(fields, layer)
    is_source = _is_source(fields, "kv_source_layer_ids", layer)
    if is_source and ratio == 0 and fields.get("kv_source_layer_ids") is not None and layer < _layers(fields):
        fields.refuse(
            f"kv_source_layer_ids names layer {layer}, which compresses nothing: compress_ratios has 0"
        )
    owns = ratio > 0 and is_source
    indexer = _indexer(fields, ratio, layer)
    caches = [Cache(entry=entry, reach="sliding", span_tokens=window)]
    if owns:
        caches.append(Cache(entry=entry, tokens_per_entry=ratio))
        if indexer is not None:
            key = IndexKey(size=indexer.key_size, default_format="fp8_scaled")
            caches.append(Cache(entry=key, tokens_per_entry=ratio))
    num_heads = fields.required(*HEADS)
    window_attention = Attention(
        num_heads=num_heads, key_size=entry.size, value_size=entry.size, reach="sliding", span_tokens=window
    )
    attentions = [window_attention]
    if ratio:
        attentions.append(
            Attention(
                num_heads=num_heads,
                key_size=entry.size,
                value_size=entry.size,
                indexer=indexer,
                tokens_per_entry=ratio,
            )
        )
    return Mixer(
        caches=tuple(caches),
        states=_compressors(fields, entry, indexer, ratio) if owns else (),
        attentions=tuple(attentions),
        split_parameters=_split_parameters(fields, hidden_size, num_heads, entry),
        replicated_parameters=_replicated_parameters(
            fields, hidden_size, entry, indexer, ratio if owns else 0
        ),
        small_parameters=fields.required("q_lora_rank") + entry.size + num_heads,
    )


def compression(fields: Fields, layer: int) -> int:
    """Tokens that one entry of the layer stands for, or 0 where it has only its window.

    Raises: InputError when the list is missing or too short.
    """
    ratios = fields.get("compress_ratios")
    if not isinstance(ratios, list):
        fields.refuse("the config has no compress_ratios")
    if layer >= len(ratios):
        fields.refuse(f"compress_ratios has {len(ratios)} entries, and there is a layer {layer}")
    if type(ratios[layer]) is not int or not 0 <= ratios[layer] <= LARGEST_RATIO:
        fields.refuse(f"compress_ratios[{layer}]={ratios[layer]!r} is not a number of tokens")
    return int(ratios[layer])


def _is_source(fields: Fields, key: str, layer: int) -> bool:
    if fields.get(key) is None:
        return True
    return layer in fields.layer_numbers(key, _layers(fields))


def _layers(fields: Fields) -> int:
    return fields.required("num_hidden_layers")


def _indexer(fields: Fields, ratio: int, layer: int) -> Indexer | None:
    has_sources = isinstance(fields.get("kv_source_layer_ids"), list)
    if ratio == 0 or (ratio != INDEXED_RATIO and not has_sources):
        return None
    return Indexer(
        num_heads=fields.required("index_n_heads"),
        key_size=fields.required("index_head_dim"),
        top_k=fields.required("index_topk"),
        tokens_per_key=ratio,
        shared=not _is_source(fields, "index_source_layer_ids", layer),
    )


def _compressors(
    fields: Fields, entry: CompressedEntry, indexer: Indexer | None, ratio: int
) -> tuple[StatePart, ...]:
    """fp32 rows that wait to be compressed: two overlapping runs at ratio 4, one run above it.

    None for V4.1, whose entries are written at once.
    """
    if isinstance(fields.get("kv_source_layer_ids"), list):
        return ()
    overlap = 2 if ratio == INDEXED_RATIO else 1
    widths = [entry.size] if indexer is None else [entry.size, indexer.key_size]
    return tuple(
        StatePart(
            role="compressor",
            num_units=1,
            unit_elements=overlap * ratio * 2 * overlap * width,
            bits=FP32_BITS,
            sharded=False,
        )
        for width in widths
    )


def _split_parameters(fields: Fields, hidden_size: int, num_heads: int, entry: CompressedEntry) -> int:
    """Queries from their latent; the output through `o_groups` projections of rank `o_lora_rank`."""
    queries = fields.required("q_lora_rank") * num_heads * entry.size
    rank, groups = fields.required("o_lora_rank"), fields.required("o_groups")
    return queries + num_heads * entry.size * rank + groups * rank * hidden_size


def _replicated_parameters(
    fields: Fields, hidden_size: int, entry: CompressedEntry, indexer: Indexer | None, ratio: int
) -> int:
    query_latent_size = fields.required("q_lora_rank")
    shared = hidden_size * (query_latent_size + entry.size)
    if ratio == 0:
        return shared
    overlap = 2 if ratio == INDEXED_RATIO else 1
    compressor = 2 * hidden_size * overlap * entry.size
    if indexer is None or indexer.shared:
        return shared + compressor
    index = query_latent_size * indexer.num_heads * indexer.key_size + hidden_size * indexer.num_heads
    return shared + compressor + index + 2 * hidden_size * overlap * indexer.key_size
