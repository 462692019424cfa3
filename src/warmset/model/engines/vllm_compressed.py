"""Pages of DeepSeek V4 and V4.1 in vLLM: compressed entries, index keys, windows, inputs of compressors.

V4 keeps the raw inputs of a compressor as windows of their own, with small blocks; V4.1 keeps those of the
open group in a ring, one block for each request.

Source: vLLM 0.33.0 models/{deepseek_v4,deepseek_v41}/{attention,compressor}.py,
v1/attention/backends/mla/sparse_swa.py.
"""

import math

from warmset.errors import UnsupportedModelError
from warmset.model.engines.vllm_families import is_v41
from warmset.model.engines.vllm_pages import Page
from warmset.model.engines.vllm_states import BlockPlan
from warmset.model.engines.vllm_types import VllmSettings
from warmset.model.layouts import KvLayout, entry_bytes
from warmset.model.spec import Cache, CompressedEntry, IndexKey, Layer, ModelSpec

PACKED = {"fp8", "fp8_ds_mla"}
PACKED_ALIGNMENT_BYTES = 576
PLAIN_ALIGNMENT_BYTES = 512
WINDOW_BLOCK_TOKENS = 64
V41_WINDOW_BLOCK_TOKENS = 32
V41_RECORD_BYTES = 528
"""Of V4.1 on data-centre Blackwell: 512 elements in fp8 and a scale for 32 of them."""

COMPRESSOR_WINDOWS = {4: (8, 4, 4), 128: (128, 8, 2)}
"""By ratio: window and block in tokens, and fp32 vectors for a token (two overlapping groups at ratio 4)."""

RING_RATIO = 2
RING_ROWS = 8


def is_compressed(layer: Layer) -> bool:
    """Whether the layer is one of V4 or V4.1."""
    return any(isinstance(cache.entry, CompressedEntry) for cache in layer.caches)


def pages(
    spec: ModelSpec, layout: KvLayout, settings: VllmSettings, plan: BlockPlan, cache: Cache
) -> list[Page]:
    """The page of a cache, and that of the compressor before it.

    Raises: UnsupportedModelError when entries stand for a number of tokens that vLLM has no compressor for.
    """
    is_packed = layout.keys in PACKED
    is_record = is_packed and is_v41(spec) and settings.capability == "sm100"
    alignment = PACKED_ALIGNMENT_BYTES if is_packed and not is_record else PLAIN_ALIGNMENT_BYTES
    if cache.reach == "sliding":
        return [_window(spec, layout, cache, alignment, is_record=is_record)]
    page = Page(
        kind="latent",
        block_tokens=plan.block_tokens,
        entry_bytes=_entry_bytes(layout, cache, is_record=is_record),
        tokens_per_entry=cache.tokens_per_entry,
        role="index" if isinstance(cache.entry, IndexKey) else "",
        alignment_bytes=alignment,
        is_dcp_sharded=True,
    )
    return [page, *_compressor(spec, settings, cache, alignment)]


def _entry_bytes(layout: KvLayout, cache: Cache, *, is_record: bool) -> int:
    if is_record and isinstance(cache.entry, CompressedEntry):
        return V41_RECORD_BYTES
    return entry_bytes(cache.entry, layout)


def _window(
    spec: ModelSpec, layout: KvLayout, cache: Cache, alignment_bytes: int, *, is_record: bool
) -> Page:
    size_bytes = _entry_bytes(layout, cache, is_record=is_record)
    return Page(
        kind="sliding_latent",
        block_tokens=V41_WINDOW_BLOCK_TOKENS if is_v41(spec) else WINDOW_BLOCK_TOKENS,
        entry_bytes=size_bytes,
        span_tokens=cache.span_tokens,
        alignment_bytes=alignment_bytes,
        stride_bytes=math.lcm(size_bytes, V41_RECORD_BYTES) if is_record else 1,
        is_dcp_sharded=True,
    )


def _compressor(spec: ModelSpec, settings: VllmSettings, cache: Cache, alignment_bytes: int) -> list[Page]:
    ratio = cache.tokens_per_entry
    size = cache.entry.size if isinstance(cache.entry, CompressedEntry | IndexKey) else 0
    if is_v41(spec):
        if ratio < RING_RATIO or isinstance(cache.entry, IndexKey):
            return []  # ratio 1 pools nothing, and index keys are made from the entries
        rows = max(RING_ROWS, 1 << (settings.num_speculative_tokens + 1).bit_length())
        return [Page(kind="ring", block_tokens=rows, entry_bytes=2 * size * 4, is_dcp_sharded=True)]
    if ratio not in COMPRESSOR_WINDOWS:
        raise UnsupportedModelError(f"{spec.name}: vLLM has no compressor for {ratio} tokens to an entry")
    window_tokens, block_tokens, num_vectors = COMPRESSOR_WINDOWS[ratio]
    return [
        Page(
            kind="sliding_latent",
            block_tokens=block_tokens,
            entry_bytes=num_vectors * size * 4,
            span_tokens=window_tokens,
            role="compressor",
            alignment_bytes=alignment_bytes,
            is_dcp_sharded=True,
        )
    ]
