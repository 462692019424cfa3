"""What a model is, as far as sizes and arithmetic go: for every layer what it keeps, computes and weighs."""

from typing import Literal

import msgspec

Reach = Literal["full", "sliding", "chunked", "cross"]
"""How far back a cache goes: every token, the last `span_tokens`, the current run of `span_tokens`, or the
`span_tokens` of one encoder input (an image, an audio clip)."""

IndexFormat = Literal["fp8_scaled", "bf16", "as_kv"]
"""How engines store an index key unless told otherwise: fp8 with one fp32 scale, bf16, or like the KV."""


class KvHeads(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Keys and values of some heads."""

    num_heads: int
    key_size: int
    value_size: int


class Latent(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """One latent and one rotated key for all heads (MLA): `kv_lora_rank`, `qk_rope_head_dim`.

    `sparse`: engines store it as `fp8_ds_mla` when asked for fp8, because an index selects from it.
    """

    latent_size: int
    rope_size: int
    sparse: bool = False


class CompressedEntry(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """One vector that is key and value of all heads (DeepSeek V4); `rope_size` elements of it are rotated."""

    size: int
    rope_size: int


class IndexKey(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The key by which sparse attention chooses what to attend to."""

    size: int
    default_format: IndexFormat


Entry = KvHeads | Latent | CompressedEntry | IndexKey


class Cache(msgspec.Struct, frozen=True, kw_only=True):
    """A run of equal entries that a layer keeps for a sequence, one for every `tokens_per_entry` tokens."""

    entry: Entry
    reach: Reach = "full"
    span_tokens: int = 0
    """0 where the reach is `full`."""
    tokens_per_entry: int = 1


StateRole = Literal["conv", "recurrent", "compressor", "tail"]


class StatePart(msgspec.Struct, frozen=True, kw_only=True):
    """A state of fixed size that a layer keeps for a sequence, whatever its length.

    Tensor parallelism divides the `num_units` (heads, channels or groups) where `sharded`; a rank has at
    least one. `bits` of an element; `None` is the model's own number format, taken as 16.
    """

    role: StateRole
    num_units: int
    unit_elements: int
    bits: int | None = None
    sharded: bool = True


class Indexer(msgspec.Struct, frozen=True, kw_only=True):
    """What scores index keys and how many entries each query then attends to."""

    num_heads: int
    key_size: int
    top_k: int
    tokens_per_key: int = 1
    shared: bool = False
    """Takes over the choice of an earlier layer and scores nothing itself."""


class Attention(msgspec.Struct, frozen=True, kw_only=True):
    """The arithmetic of one softmax attention.

    With a latent, `key_size` and `value_size` are those of the un-absorbed attention. `tokens_per_entry`
    above 1 means that the reach is over compressed entries.
    """

    num_heads: int
    key_size: int
    value_size: int
    reach: Reach = "full"
    span_tokens: int = 0
    latent: Latent | None = None
    indexer: Indexer | None = None
    tokens_per_entry: int = 1


class Mixer(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a layer that mixes tokens: what it keeps, how it computes, how many weights it has.

    `split_parameters` are divided over heads by tensor parallelism, `kv_parameters` over KV heads,
    `replicated_parameters` (down-projections of latents, indexers, compressors) are on every GPU.
    `small_parameters` (norms, biases, convolutions, decays) are on every GPU and never quantised.
    """

    caches: tuple[Cache, ...] = ()
    states: tuple[StatePart, ...] = ()
    attentions: tuple[Attention, ...] = ()
    scan_flops_per_token: int = 0
    """Of a recurrence; linear in the length."""
    split_parameters: int = 0
    kv_parameters: int = 0
    replicated_parameters: int = 0
    small_parameters: int = 0


class FeedForward(msgspec.Struct, frozen=True, kw_only=True):
    """The feed-forward part of a layer: weights that every token uses, and routed experts.

    `experts_per_token` counts experts that hold weights.
    """

    dense_parameters: int = 0
    shared_parameters: int = 0
    """Shared experts, and the projections around experts that work in a smaller space."""
    router_parameters: int = 0
    expert_parameters: int = 0
    """Of one routed expert."""
    num_experts: int = 0
    experts_per_token: int = 0


class Layer(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """One layer: mixers side by side (Falcon-H1 has two, an MLP layer none) and a feed-forward part."""

    mixers: tuple[Mixer, ...] = ()
    feed_forward: FeedForward | None = None
    norm_parameters: int = 0

    @property
    def caches(self) -> tuple[Cache, ...]:
        """What the layer keeps of tokens."""
        return tuple(cache for mixer in self.mixers for cache in mixer.caches)

    @property
    def states(self) -> tuple[StatePart, ...]:
        """What the layer keeps of a sequence as a whole."""
        return tuple(part for mixer in self.mixers for part in mixer.states)


class Quantization(msgspec.Struct, frozen=True, kw_only=True):
    """What a checkpoint says of its weights: method, modules that it leaves alone, bits of cached elements.

    `expert_format` where routed experts have a format of their own (`expert_dtype`).
    """

    method: str
    weight_format: str | None = None
    expert_format: str | None = None
    unquantized_modules: tuple[str, ...] = ()
    kv_cache_bits: int | None = None


class FieldRead(msgspec.Struct, frozen=True):
    """A field of a config and its value; `assumed_because` where the config is silent."""

    field: str
    value: str
    assumed_because: str = ""


class ModelSpec(msgspec.Struct, frozen=True, kw_only=True, cache_hash=True):
    """A model. `cache_class` is its class in words: `GQA`, `MLA + DSA`, `GQA + sliding window`.

    `mtp_layers` draft tokens and keep caches only with speculative decoding on. `table_parameters` are
    further look-up tables and encoders that a prompt token is not multiplied with.
    """

    name: str
    model_type: str
    cache_class: str
    hidden_size: int
    vocab_size: int
    tied_embeddings: bool
    layers: tuple[Layer, ...]
    mtp_layers: tuple[Layer, ...] = ()
    num_position_embeddings: int = 0
    table_parameters: int = 0
    max_context_tokens: int | None = None
    dtype_bits: int | None = None
    quantization: Quantization | None = None
    fields_read: tuple[FieldRead, ...] = ()
    """What the config said, and what was taken for granted where it is silent."""

    @property
    def num_layers(self) -> int:
        """Layers, as the config counts them or, where it counts pairs, as they keep caches."""
        return len(self.layers)

    @property
    def num_moe_layers(self) -> int:
        """Layers with routed experts."""
        return sum(1 for layer in self.layers if layer.feed_forward and layer.feed_forward.num_experts)

    @property
    def is_latent(self) -> bool:
        """Whether all growing entries are one for all heads, so that every GPU keeps a copy."""
        entries = [cache.entry for layer in self.layers for cache in layer.caches if cache.reach == "full"]
        return bool(entries) and not any(isinstance(entry, KvHeads) for entry in entries)
