"""What a model is, as far as sizes and arithmetic go: layers, heads, cache, feed-forward part, vocabulary."""

from typing import Literal

import msgspec

CacheClass = Literal["MHA", "GQA", "MQA", "MLA"]


class LatentAttention(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The sizes of multi-head latent attention: the cache holds one latent and one rotated key a token.

    In config.json: `kv_lora_rank` (c), `qk_rope_head_dim` (r), `qk_nope_head_dim`.
    """

    latent_size: int
    rope_head_size: int
    nope_head_size: int


class FeedForward(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The feed-forward part: how many layers are dense, how many are mixtures of experts, and how wide.

    `shared_intermediate_size` is the width of all shared experts of a layer together.
    `experts_per_token` counts experts that hold weights; `num_zero_experts` only widen the router.
    """

    gated: bool = True
    num_dense_layers: int
    dense_intermediate_size: int
    num_moe_layers: int = 0
    num_experts: int = 0
    experts_per_token: int = 0
    moe_intermediate_size: int = 0
    shared_intermediate_size: int = 0
    num_zero_experts: int = 0

    @property
    def num_matrices(self) -> int:
        """Weight matrices of one feed-forward block: up and down, and the gate where there is one."""
        return 3 if self.gated else 2


class ModelSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A decoder all of whose layers have full attention of one shape.

    `num_layers` counts the layers that own a cache. With latent attention the cache has one KV head,
    and `key_head_size` and `value_head_size` are those of the un-absorbed attention.
    `query_latent_size` is the rank of a factored query projection (`q_lora_rank`, Step-3's `share_q_dim`).
    """

    name: str
    model_type: str
    num_layers: int
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    key_head_size: int
    value_head_size: int
    latent: LatentAttention | None = None
    query_latent_size: int | None = None
    feed_forward: FeedForward
    vocab_size: int
    tied_embeddings: bool
    num_position_embeddings: int = 0
    max_context_tokens: int | None = None
    dtype_bits: int | None = None
    quantization_method: str | None = None
    kv_cache_bits: int | None = None

    @property
    def cache_class(self) -> CacheClass:
        """How the heads share keys and values."""
        if self.latent is not None:
            return "MLA"
        if self.num_kv_heads == self.num_heads:
            return "MHA"
        return "MQA" if self.num_kv_heads == 1 else "GQA"

    @property
    def cached_elements_per_head(self) -> int:
        """What one KV head of one layer keeps of a token: key and value, or latent and rotated key."""
        if self.latent is not None:
            return self.latent.latent_size + self.latent.rope_head_size
        return self.key_head_size + self.value_head_size

    @property
    def cached_elements_per_token(self) -> int:
        """Elements that the whole model keeps of a token."""
        return self.num_layers * self.num_kv_heads * self.cached_elements_per_head
