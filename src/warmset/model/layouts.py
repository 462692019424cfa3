"""How many bytes a cached entry takes in each layout.

Source: `docs/method.md`, KV layouts; vLLM 0.33.0 v1/kv_cache_interface.py, SGLang 0.5.23 and llama.cpp for
what each engine writes.
"""

from functools import cache
from typing import NamedTuple, assert_never

from warmset.errors import InputError
from warmset.model.spec import CompressedEntry, Entry, IndexKey, KvHeads, Latent


class Packing(NamedTuple):
    """How one vector of elements is stored: bits of an element, bytes beside each group and each vector."""

    bits: int
    group_elements: int = 0
    group_bytes: int = 0
    vector_bytes: int = 0

    def vector_size_bytes(self, num_elements: int) -> int:
        """Bytes of one vector; a group that is begun is paid in full."""
        groups = -(-num_elements // self.group_elements) if self.group_elements else 0
        return -(-num_elements * self.bits // 8) + groups * self.group_bytes + self.vector_bytes


PACKINGS: dict[str, Packing] = {
    "bf16": Packing(16),
    "fp16": Packing(16),
    "fp32": Packing(32),
    "fp8": Packing(8),  # one scale a layer
    "int8": Packing(8),  # one scale a layer
    "fp8_per_token_head": Packing(8, vector_bytes=4),
    "int8_per_token_head": Packing(8, vector_bytes=4),
    "int4_per_token_head": Packing(4, vector_bytes=4),
    "nvfp4": Packing(4, group_elements=16, group_bytes=1),
    "mxfp4": Packing(4, group_elements=16, group_bytes=1),
    "mxfp8": Packing(8, group_elements=32, group_bytes=1),
    "q8_0": Packing(8, group_elements=32, group_bytes=2),
    "q5_0": Packing(5, group_elements=32, group_bytes=2),
    "q5_1": Packing(5, group_elements=32, group_bytes=4),
    "q4_0": Packing(4, group_elements=32, group_bytes=2),
    "q4_1": Packing(4, group_elements=32, group_bytes=4),
    "iq4_nl": Packing(4, group_elements=32, group_bytes=2),
    "kivi4": Packing(4, group_elements=64, group_bytes=4),
    "kivi2": Packing(2, group_elements=64, group_bytes=4),
}
"""`mxfp4` as SGLang writes it, with a scale for 16 elements, not 32 as OCP has it. `kivi*` after the
QuantizedCache of transformers: a 16-bit scale and zero for 64 elements."""

RESIDUAL_TOKENS = {"kivi4": 128, "kivi2": 128}
"""The newest tokens that stay in 16 bits."""

HEAD_SCALED = {"fp8_per_token_head", "int8_per_token_head", "int4_per_token_head", "kivi4", "kivi2"}
"""Layouts that exist for keys and values of heads only."""

LATENT_LAYOUTS = ("fp8_ds_mla", "nvfp4_ds_mla")
INDEX_LAYOUTS = {
    "fp8": Packing(8, vector_bytes=4),
    "bf16": Packing(16),
    "mxfp4": Packing(4, group_elements=32, group_bytes=1),
}
"""An index key of 128 elements takes 132, 256 or 68 bytes."""

LAYOUT_NAMES = (*PACKINGS, *LATENT_LAYOUTS)


class KvLayout(NamedTuple):
    """A layout of keys and one of values, the same name twice unless the engine sets them apart.

    `index_keys`: of index keys, or `None` for what the engines do by default.
    """

    keys: str
    values: str
    index_keys: str | None = None

    @property
    def name(self) -> str:
        """As `kv_layout` reads it."""
        return self.keys if self.keys == self.values else f"{self.keys}/{self.values}"

    @property
    def residual_tokens(self) -> int:
        """The newest tokens of a sequence, which stay in 16 bits."""
        return max(RESIDUAL_TOKENS.get(self.keys, 0), RESIDUAL_TOKENS.get(self.values, 0))


@cache
def kv_layout(name: str, index: str | None = None) -> KvLayout:
    """The layout that a name means: `fp8`, or `q8_0/q4_0` for keys and values apart.

    Raises: InputError with the names that are known.
    """
    keys, _, values = name.partition("/")
    layout = KvLayout(keys, values or keys, index)
    for part in (layout.keys, layout.values):
        if part not in LAYOUT_NAMES:
            raise InputError(f"KV layout {part!r} is not known: choose one of {', '.join(LAYOUT_NAMES)}")
    if layout.keys != layout.values and set(layout[:2]) & set(LATENT_LAYOUTS):
        raise InputError(f"KV layout {name!r}: a latent is one vector, so it has one layout")
    if index is not None and index not in INDEX_LAYOUTS:
        raise InputError(f"index layout {index!r} is not known: choose one of {', '.join(INDEX_LAYOUTS)}")
    return layout


def entry_bytes(entry: Entry, layout: KvLayout) -> int:
    """Bytes of one entry.

    Raises: InputError when the layout is not defined for the entry.
    """
    if isinstance(entry, KvHeads):
        return _kv_heads_bytes(entry, layout)
    if isinstance(entry, IndexKey):
        return _index_bytes(entry, layout)
    if isinstance(entry, Latent):
        return _latent_bytes(entry, layout)
    if isinstance(entry, CompressedEntry):
        return _compressed_bytes(entry, layout)
    assert_never(entry)


def _kv_heads_bytes(entry: KvHeads, layout: KvLayout) -> int:
    if layout.keys in LATENT_LAYOUTS:
        raise InputError(f"KV layout {layout.name} stores latents, and this model keeps keys and values")
    keys = PACKINGS[layout.keys].vector_size_bytes(entry.key_size)
    return entry.num_heads * (keys + PACKINGS[layout.values].vector_size_bytes(entry.value_size))


def _latent_bytes(entry: Latent, layout: KvLayout) -> int:
    """fp8_ds_mla: the latent in fp8, an fp32 scale for 128 of them, the rotated key in bf16: 656 bytes."""
    name = _latent_layout(layout)
    if name == "fp8_ds_mla" or (name == "fp8" and entry.sparse):
        return entry.latent_size + 4 * -(-entry.latent_size // 128) + 2 * entry.rope_size
    if name == "nvfp4_ds_mla":
        return -(-entry.latent_size // 2) + -(-entry.latent_size // 16) + entry.rope_size
    return PACKINGS[name].vector_size_bytes(entry.latent_size + entry.rope_size)


def _compressed_bytes(entry: CompressedEntry, layout: KvLayout) -> int:
    """In fp8 the rotated elements stay in bf16, and 64 elements share a scale byte, padded to 8."""
    name = _latent_layout(layout)
    if name in {"fp8", "fp8_ds_mla"}:
        plain = entry.size - entry.rope_size
        scales = -(-plain // 64)
        return plain + 2 * entry.rope_size + -(-scales // 8) * 8
    if name == "nvfp4_ds_mla":
        raise InputError("KV layout nvfp4_ds_mla is not defined for compressed entries")
    return PACKINGS[name].vector_size_bytes(entry.size)


def _latent_layout(layout: KvLayout) -> str:
    if layout.keys != layout.values:
        raise InputError(f"KV layout {layout.name}: a latent is one vector, so it has one layout")
    if layout.keys in HEAD_SCALED:
        raise InputError(f"KV layout {layout.name} is defined for keys and values of heads, not for latents")
    return layout.keys


def _index_bytes(entry: IndexKey, layout: KvLayout) -> int:
    if layout.index_keys is not None:
        return INDEX_LAYOUTS[layout.index_keys].vector_size_bytes(entry.size)
    if entry.default_format == "fp8_scaled":
        return INDEX_LAYOUTS["fp8"].vector_size_bytes(entry.size)
    if entry.default_format == "bf16" or layout.keys in LATENT_LAYOUTS:
        return PACKINGS["bf16"].vector_size_bytes(entry.size)
    return PACKINGS[layout.keys].vector_size_bytes(entry.size)
