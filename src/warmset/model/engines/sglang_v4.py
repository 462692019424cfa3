"""The pools of DeepSeek V4 and V4.1 in SGLang: compressed entries, windows and compressor states.

Source: SGLang 0.5.23 srt/model_executor/pool_configurator.py (DSV4PoolConfigurator),
srt/mem_cache/deepseek_v4_memory_pool.py, kernels/ops/attention/dsv4/kv_layout.py.
"""

from fractions import Fraction
from typing import NamedTuple

from warmset.errors import UnsupportedModelError
from warmset.model.spec import CompressedEntry, ModelSpec

INDEX_KEY_SIZE = 128
INDEX_FP8_BYTES = 132
INDEX_FP4_BYTES = 68
INDEX_PAGE_TOKENS = 64
STATE_BYTES_PER_ELEMENT = 4
LOW_RATIOS = (1, 2)
RATIOS = (1, 2, 4, 128)


class RowFormat(NamedTuple):
    """One entry as FlashMLA pages hold it; a page is padded to a multiple of `align_bytes`."""

    name: str
    row_bytes: int
    align_bytes: int

    def bytes_per_entry(self, page_entries_size: int) -> Fraction:
        """Bytes of an entry with its share of the padding of a page of so many entries."""
        pages = -(-page_entries_size * self.row_bytes // self.align_bytes)
        return Fraction(pages * self.align_bytes, page_entries_size)


V4_ROW = RowFormat("448 fp8 + 64 bf16 + 8 scale bytes", 584, 576)
V41_ROW = RowFormat("512 fp8 + 16 scale bytes", 528, 512)
V41_FP4_ROW = RowFormat("512 fp4 + 32 scale bytes", 288, 256)


class V4Layers(NamedTuple):
    """Layers of a pipeline stage: all, which keep windows, and those that own entries of each ratio."""

    num_layers: int
    owners: dict[int, int]
    """Tokens that an entry stands for -> layers."""


class V4Rates(NamedTuple):
    """Bytes of one window token and of one token in the compressed pools, over a whole stage on a rank."""

    swa: Fraction
    compressed: Fraction


def v4_layers(spec: ModelSpec, stage: range) -> V4Layers:
    """Counts the layers of a stage.

    Raises: UnsupportedModelError when a layer compresses by a ratio that SGLang does not have.
    """
    owners: dict[int, int] = {}
    for index in stage:
        for cache in spec.layers[index].caches:
            if isinstance(cache.entry, CompressedEntry) and cache.reach == "full":
                owners[cache.tokens_per_entry] = owners.get(cache.tokens_per_entry, 0) + 1
    for ratio in owners:
        if ratio not in RATIOS:
            raise UnsupportedModelError(
                f"{spec.name}: SGLang 0.5.23 has no pool for compression ratio {ratio}"
            )
    return V4Layers(len(stage), owners)


def entry_size(spec: ModelSpec) -> int:
    """Elements of a compressed entry, 512 in all known models."""
    for layer in spec.layers:
        for cache in layer.caches:
            if isinstance(cache.entry, CompressedEntry):
                return cache.entry.size
    raise UnsupportedModelError(f"{spec.name}: no layer keeps compressed entries")


def v4_rates(
    layers: V4Layers, size: int, page_tokens: int, *, num_draft_tokens: int, is_v41_layout: bool
) -> V4Rates:
    """Bytes of a token in the window pool and in the compressed pools.

    Formula: window p·n + (ring/page)·(4·d + 4·d_idx)·4·n_4;  compressed Σ p_r·n_r/r + index: 132/4 at ratio
    4, 68/r at ratios 1 and 2; both times (n + 1)/n with speculative decoding. p: bytes of an entry with
    padding.
    """
    main = V41_ROW if is_v41_layout else V4_ROW
    states = 4 * (size + INDEX_KEY_SIZE) * STATE_BYTES_PER_ELEMENT
    share = Fraction(ring_size(4, num_draft_tokens), page_tokens)
    swa = main.bytes_per_entry(page_tokens) * layers.num_layers + share * states * layers.owners.get(4, 0)
    compressed = sum(
        (_compressed_rate(ratio, page_tokens, is_v41_layout=is_v41_layout) * count)
        for ratio, count in layers.owners.items()
    )
    inflation = Fraction(layers.num_layers + (1 if num_draft_tokens else 0), layers.num_layers)
    return V4Rates(swa * inflation, Fraction(compressed) * inflation)


def _compressed_rate(ratio: int, page_tokens: int, *, is_v41_layout: bool) -> Fraction:
    row = V4_ROW
    if is_v41_layout:
        row = V41_FP4_ROW if ratio in LOW_RATIOS else V41_ROW
    index = {1: INDEX_FP4_BYTES, 2: INDEX_FP4_BYTES, 4: INDEX_FP8_BYTES, 128: 0}[ratio]
    return (row.bytes_per_entry(page_tokens // ratio) + index) / ratio


def ring_size(ratio: int, num_draft_tokens: int) -> int:
    """Rows of a request's ring of compressor inputs; drafts need more."""
    if ratio == 2:
        return 2 if not num_draft_tokens else 1 << (num_draft_tokens + 1).bit_length()
    return {4: 8, 128: 128}[ratio] * (2 if num_draft_tokens else 1)


def fixed_state_bytes(layers: V4Layers, size: int, num_requests: int, num_draft_tokens: int) -> int:
    """Compressor states of ratios 128 and 2, which every request slot has, used or not; one slot is spare.

    Formula: rows · 2·d · 4 · n, rows = (requests + 1)·ring + ring + 1 rounded up to the ratio.
    """
    total = 0
    for ratio in (128, 2):
        ring = ring_size(ratio, num_draft_tokens)
        rows = (num_requests + 1) * ring + ring + 1
        rows = -(-rows // ratio) * ratio
        total += rows * 2 * size * STATE_BYTES_PER_ELEMENT * layers.owners.get(ratio, 0)
    return total


def low_ratio_padding_bytes(
    layers: V4Layers, full_tokens: int, page_tokens: int, *, is_v41_layout: bool
) -> Fraction:
    """Pages that the pools of ratios 1 and 2 hold in reserve."""
    padding = Fraction(0)
    for ratio in LOW_RATIOS:
        row = V41_FP4_ROW if is_v41_layout else V4_ROW
        main = page_tokens * row.bytes_per_entry(page_tokens // ratio)
        slots = (full_tokens + page_tokens) // ratio + INDEX_PAGE_TOKENS
        slots = -(-slots // INDEX_PAGE_TOKENS) * INDEX_PAGE_TOKENS
        index = (slots - full_tokens // ratio) * INDEX_FP4_BYTES
        padding += (main + index) * layers.owners.get(ratio, 0)
    return padding
