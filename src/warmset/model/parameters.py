"""How many weights a model has, by what becomes of them: sharded, replicated, quantised, read per token."""

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from warmset.model.spec import FeedForward, Layer, Mixer, ModelSpec


class ParameterCount(NamedTuple):
    """Weights by group.

    `num_attention` is split by heads, `num_kv_projection` by KV heads; `num_replicated` (down-projections of
    latents, indexers, compressors) is on every GPU. `num_small`: norms, biases, convolutions, decays.
    `num_tables`: look-up tables and encoders that a prompt token is not multiplied with.
    """

    num_embedding: int = 0
    num_lm_head: int = 0
    num_positions: int = 0
    num_tables: int = 0
    num_small: int = 0
    num_router: int = 0
    num_attention: int = 0
    num_kv_projection: int = 0
    num_replicated: int = 0
    num_dense_ffn: int = 0
    num_shared_experts: int = 0
    num_routed_experts: int = 0

    @property
    def unquantized(self) -> int:
        """Weights that stay at two bytes whatever the format of the rest."""
        tables = self.num_embedding + self.num_lm_head + self.num_positions + self.num_tables
        return tables + self.num_small + self.num_router

    @property
    def always_read(self) -> int:
        """Weights of linear layers that every token uses, without router and LM head."""
        attention = self.num_attention + self.num_kv_projection + self.num_replicated
        return attention + self.num_dense_ffn + self.num_shared_experts


class ExpertGroup(NamedTuple):
    """Equal sets of routed experts in several layers."""

    num_layers: int
    num_experts: int
    experts_per_token: int
    num_parameters: int  # of one expert of one layer


@lru_cache(maxsize=64)
def count_parameters(spec: ModelSpec) -> ParameterCount:
    """The weights of the whole model by group, without its MTP layers.

    Source: `docs/method.md`, Weights.
    """
    table, layers = spec.vocab_size * spec.hidden_size, count_layers(spec.layers)
    return layers._replace(
        num_embedding=table,
        num_lm_head=0 if spec.tied_embeddings else table,
        num_positions=spec.num_position_embeddings * spec.hidden_size,
        num_tables=spec.table_parameters,
        num_small=layers.num_small + spec.hidden_size,  # the last norm
    )


def count_layers(layers: Iterable[Layer]) -> ParameterCount:
    """The weights of some layers by group."""
    parts = [layer_parameters(layer) for layer in layers]
    return ParameterCount(*map(sum, zip(*parts, strict=True))) if parts else ParameterCount()


def layer_parameters(layer: Layer) -> ParameterCount:
    """The weights of one layer by group."""
    ffn, mixers = layer.feed_forward or FeedForward(), layer.mixers
    return ParameterCount(
        num_small=layer.norm_parameters + sum(mixer.small_parameters for mixer in mixers),
        num_router=ffn.router_parameters,
        num_attention=sum(mixer.split_parameters for mixer in mixers),
        num_kv_projection=sum(mixer.kv_parameters for mixer in mixers),
        num_replicated=sum(mixer.replicated_parameters for mixer in mixers),
        num_dense_ffn=ffn.dense_parameters,
        num_shared_experts=ffn.shared_parameters,
        num_routed_experts=ffn.num_experts * ffn.expert_parameters,
    )


def num_parameters(spec: ModelSpec) -> int:
    """All weights, the embedding table once more as LM head unless they are tied, MTP layers left out."""
    return sum(count_parameters(spec))


def active_parameters(spec: ModelSpec) -> int:
    """Weights behind the computation of one token: without tables and the experts that it does not choose.

    The embedding and the LM head count in full, as in the published figures.
    """
    count = count_parameters(spec)
    chosen = _chosen_parameters(spec)
    return sum(count) - count.num_tables - count.num_routed_experts + chosen


def active_linear_parameters(spec: ModelSpec) -> int:
    """N_act: weights of linear layers that one token is multiplied with, without embedding and LM head.

    Source: `docs/method.md`, FLOPs: dense, attention, router, shared and the chosen routed experts. Keys and
    values of cross-attention are made of the encoder's tokens, so their projections are not among them.
    """
    count = count_parameters(spec)
    return count.always_read + count.num_router + _chosen_parameters(spec) - cross_parameters(spec)


@lru_cache(maxsize=64)
def expert_groups(spec: ModelSpec) -> tuple[ExpertGroup, ...]:
    """The routed experts of the model; layers with equal ones together."""
    groups = Counter(
        (part.num_experts, part.experts_per_token, part.expert_parameters)
        for layer in spec.layers
        if (part := layer.feed_forward) is not None and part.num_experts
    )
    return tuple(ExpertGroup(num_layers, *group) for group, num_layers in groups.items())


def cross_parameters(spec: ModelSpec) -> int:
    """Projections of an encoder's tokens to keys and values, in all layers."""
    return sum(
        mixer.kv_parameters for layer in spec.layers for mixer in layer.mixers if attends_across(mixer)
    )


def attends_across(mixer: Mixer) -> bool:
    """Whether all keys of a mixer come from an encoder."""
    return bool(mixer.attentions) and all(part.reach == "cross" for part in mixer.attentions)


def _chosen_parameters(spec: ModelSpec) -> int:
    return sum(
        group.num_layers * group.experts_per_token * group.num_parameters for group in expert_groups(spec)
    )
