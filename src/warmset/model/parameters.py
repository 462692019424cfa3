"""How many weights a model has, by what becomes of them: sharded, replicated, quantised, read per token."""

from typing import NamedTuple

from warmset.model.spec import ModelSpec


class ParameterCount(NamedTuple):
    """Weights of the whole model by group; biases and the norms inside attention are left out (below 0.1 %).

    `num_attention` is split by heads; `num_kv_projection` by KV heads; `num_latent_projection` (the
    down-projections of queries and keys) is on every GPU.
    """

    num_embedding: int
    num_lm_head: int
    num_positions: int
    num_norms: int
    num_router: int
    num_attention: int
    num_kv_projection: int
    num_latent_projection: int
    num_dense_ffn: int
    num_shared_experts: int
    num_routed_experts: int

    @property
    def unquantized(self) -> int:
        """Weights that stay at two bytes whatever the format of the rest."""
        return self.num_embedding + self.num_lm_head + self.num_positions + self.num_norms + self.num_router

    @property
    def always_read(self) -> int:
        """Weights of linear layers that every token uses, without router and LM head."""
        return (
            self.num_attention
            + self.num_kv_projection
            + self.num_latent_projection
            + self.num_dense_ffn
            + self.num_shared_experts
        )


def count_parameters(spec: ModelSpec) -> ParameterCount:
    """The weights by group.

    Source: `docs/method.md`, Weights.
    """
    ffn, hidden = spec.feed_forward, spec.hidden_size
    table = spec.vocab_size * hidden
    return ParameterCount(
        num_embedding=table,
        num_lm_head=0 if spec.tied_embeddings else table,
        num_positions=spec.num_position_embeddings * hidden,
        num_norms=(2 * spec.num_layers + 1) * hidden,
        num_router=ffn.num_moe_layers * hidden * (ffn.num_experts + ffn.num_zero_experts),
        num_attention=spec.num_layers * _split_by_heads(spec),
        num_kv_projection=spec.num_layers * _split_by_kv_heads(spec),
        num_latent_projection=spec.num_layers * hidden * _latent_width(spec),
        num_dense_ffn=ffn.num_dense_layers * ffn.num_matrices * hidden * ffn.dense_intermediate_size,
        num_shared_experts=ffn.num_moe_layers * ffn.num_matrices * hidden * ffn.shared_intermediate_size,
        num_routed_experts=ffn.num_moe_layers * ffn.num_experts * expert_parameters(spec),
    )


def num_parameters(spec: ModelSpec) -> int:
    """All weights, the embedding table once more as LM head unless they are tied."""
    return sum(count_parameters(spec))


def active_parameters(spec: ModelSpec) -> int:
    """Weights behind the computation of one token: all but the routed experts that it does not choose.

    The embedding table and the LM head count in full, as in the published figures.
    """
    ffn = spec.feed_forward
    unused = ffn.num_moe_layers * (ffn.num_experts - ffn.experts_per_token) * expert_parameters(spec)
    return num_parameters(spec) - unused


def active_linear_parameters(spec: ModelSpec) -> int:
    """N_act: weights of linear layers that one token is multiplied with, without embedding and LM head.

    Source: `docs/method.md`, FLOPs: dense, attention, router, shared and the chosen routed experts.
    """
    ffn, count = spec.feed_forward, count_parameters(spec)
    chosen = ffn.num_moe_layers * ffn.experts_per_token * expert_parameters(spec)
    return count.always_read + count.num_router + chosen


def expert_parameters(spec: ModelSpec) -> int:
    """Weights of one routed expert of one layer."""
    return spec.feed_forward.num_matrices * spec.hidden_size * spec.feed_forward.moe_intermediate_size


def latent_expansion(spec: ModelSpec) -> int:
    """Weights of one layer that turn a latent into keys and values (`kv_b`): c·H·(d_nope + d_v), or none."""
    if spec.latent is None:
        return 0
    return spec.latent.latent_size * spec.num_heads * (spec.latent.nope_head_size + spec.value_head_size)


def _split_by_heads(spec: ModelSpec) -> int:
    query_input = spec.hidden_size if spec.query_latent_size is None else spec.query_latent_size
    queries = query_input * spec.num_heads * spec.key_head_size
    output = spec.num_heads * spec.value_head_size * spec.hidden_size
    return queries + output + latent_expansion(spec)


def _split_by_kv_heads(spec: ModelSpec) -> int:
    if spec.latent is not None:
        return 0
    return spec.hidden_size * spec.num_kv_heads * (spec.key_head_size + spec.value_head_size)


def _latent_width(spec: ModelSpec) -> int:
    keys = 0 if spec.latent is None else spec.latent.latent_size + spec.latent.rope_head_size
    return keys + (spec.query_latent_size or 0)
