"""The layers of a model, built from its config: mixers by kind, feed-forward parts, draft layers."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from warmset.errors import UnsupportedModelError
from warmset.model.attention import attention_mixer
from warmset.model.compressed import compressed_mixer
from warmset.model.families import ENCODER, SLIDING, Family, Recurrence
from warmset.model.feed_forward import resolve_feed_forwards
from warmset.model.fields import Fields
from warmset.model.latent import latent_mixer
from warmset.model.layer_kinds import LayerKind, layer_kinds
from warmset.model.recurrent import gated_delta, inkling_convs, kda, lightning, rg_lru, short_conv
from warmset.model.recurrent_mamba import mamba1, mamba2
from warmset.model.spec import Attention, Cache, IndexKey, KvHeads, Layer, Mixer

RECURRENCES: dict[Recurrence, Callable[[Fields, int], Mixer]] = {
    "GDN": gated_delta,
    "KDA": kda,
    "lightning attention": lightning,
    "Mamba1": mamba1,
    "Mamba2": mamba2,
    "RG-LRU": rg_lru,
    "short convolution": short_conv,
}

MOST_DRAFT_LAYERS = 100

WITHOUT_DRAFT_INDEX = ("glm5_next", "qwen4_exp", "minimax_m3")
"""Types whose draft layer keeps keys and values or a latent, and no index keys."""

SLIDING_DRAFTS = ("step3p", "mellum")
"""Types whose draft layers have the window of the sliding layers."""


@dataclass(frozen=True, slots=True)
class LayerBuilder:
    """What every layer of one model has in common."""

    fields: Fields
    model_type: str
    family: Family
    hidden_size: int
    window: int | None
    """In tokens, or `None` where no window binds."""

    def layers(self, num_layers: int) -> tuple[Layer, ...]:
        """All layers in their order; LongCat-Flash counts pairs of them."""
        if self.model_type == "longcat_flash":
            num_layers = 2 * self.fields.required("num_layers")
        kinds = layer_kinds(self.fields, self.model_type, self.family, num_layers, self.window)
        parts = resolve_feed_forwards(self.fields, self.model_type, self.hidden_size, num_layers)
        norms = self.family.num_norms_per_layer * self.hidden_size
        return tuple(
            Layer(mixers=self.mixers(kind, layer), feed_forward=part, norm_parameters=norms)
            for layer, (kind, part) in enumerate(zip(kinds, parts, strict=True))
        )

    def draft_layers(self, layers: tuple[Layer, ...]) -> tuple[Layer, ...]:
        """The layers that predict further tokens (MTP), which vLLM and SGLang run only when told to."""
        num_drafts = _num_draft_layers(self.fields)
        if num_drafts == 0:
            return ()
        if self.family.compressed:
            mixers: tuple[Mixer, ...] = (compressed_mixer(self.fields, self.hidden_size, len(layers)),)
        else:
            mixers = self.mixers(self._draft_kind(layers[0]), 0)
        if self.model_type.startswith(WITHOUT_DRAFT_INDEX):
            mixers = tuple(_without_index(mixer) for mixer in mixers)
        in_order = layers if self.model_type == "exaone_moe" else layers[::-1]  # its drafts are dense
        feed_forward = next((layer.feed_forward for layer in in_order if layer.feed_forward), None)
        return num_drafts * (Layer(mixers=mixers, feed_forward=feed_forward),)

    def _draft_kind(self, first_layer: Layer) -> LayerKind:
        """Of all draft layers: `mtp_layer_types`, or what the type has where the config is silent.

        Raises: UnsupportedModelError when they differ.
        """
        listed = self.fields.get("mtp_layer_types")
        is_sliding = self.model_type.startswith(SLIDING_DRAFTS)
        if self.model_type == "exaone_moe":
            reaches = {cache.reach for cache in first_layer.caches}
            is_sliding = "sliding" in reaches
        if isinstance(listed, list) and listed and SLIDING in self.family.has:
            if len({str(kind) for kind in listed}) > 1:
                raise UnsupportedModelError(
                    f"{self.fields.name}: draft layers that differ in mtp_layer_types are not sized yet"
                )
            is_sliding = listed[0] == "sliding_attention"
        if not is_sliding:
            return "full"
        return "sliding" if self.window else "unbound"

    def mixers(self, kind: LayerKind, layer: int) -> tuple[Mixer, ...]:
        """What mixes tokens in one layer."""
        if kind == "none":
            return ()
        if kind == "recurrent":
            return (self._recurrence(),)
        if kind == "parallel":
            return (self._attention("full", layer), self._recurrence())
        attention = self._attention(kind, layer)
        if ENCODER in self.family.has:
            return attention, self._encoder_attention(attention)
        if self.model_type.startswith("inkling"):
            return attention, self._convolutions(attention)
        return (attention,)

    def _attention(self, kind: LayerKind, layer: int) -> Mixer:
        if self.family.compressed:
            return compressed_mixer(self.fields, self.hidden_size, layer)
        if self.family.latent and self.fields.flag("use_mla") is not False:
            return latent_mixer(self.fields, self.family, self.hidden_size, layer)
        return attention_mixer(
            self.fields, self.model_type, self.family, self.hidden_size, kind, layer, self.window
        )

    def _recurrence(self) -> Mixer:
        if self.family.recurrent is None:
            self.fields.refuse(
                f"model_type={self.model_type} has no recurrent layers, and the config names some"
            )
        return RECURRENCES[self.family.recurrent](self.fields, self.hidden_size)

    def _encoder_attention(self, attention: Mixer) -> Mixer:
        """Keys and values of one audio clip or text, computed once from the encoder."""
        span = self.fields.required("max_source_positions", "max_position_embeddings")
        first = attention.attentions[0]
        entry = KvHeads(num_heads=first.num_heads, key_size=first.key_size, value_size=first.value_size)
        return msgspec.structs.replace(
            attention,
            caches=(Cache(entry=entry, reach="cross", span_tokens=span),),
            attentions=(msgspec.structs.replace(first, reach="cross", span_tokens=span),),
        )

    def _convolutions(self, attention: Mixer) -> Mixer:
        entry = attention.caches[0].entry
        heads, size = (entry.num_heads, entry.key_size) if isinstance(entry, KvHeads) else (1, 1)
        return inkling_convs(self.fields, self.hidden_size, heads, size)


def class_words(builder: LayerBuilder, layers: tuple[Layer, ...]) -> str:
    """The class of a model's cache in the field's words: `GQA`, `MLA + DSA`, `GQA + sliding window`."""
    mixers = [mixer for layer in layers for mixer in layer.mixers]
    attentions = [attention for mixer in mixers for attention in mixer.attentions]
    words = [_head_words(mixers, attentions)] if attentions else []
    reaches = {attention.reach for attention in attentions if attention.tokens_per_entry == 1}
    if words != ["compressed (CSA/HCA)"]:
        words += ["sliding window"] if "sliding" in reaches else []
    words += ["chunked-local"] if "chunked" in reaches else []
    words += ["cross-attention"] if "cross" in reaches else []
    if any(attention.indexer for attention in attentions) and words[0] != "compressed (CSA/HCA)":
        words.append("DSA" if words[0] == "MLA" else "sparse index")
    if any(mixer.attentions and not mixer.caches for mixer in mixers):
        words.append("cross-layer sharing")
    if builder.family.recurrent is not None:
        words.append(builder.family.recurrent)
    elif any(layer.states for layer in layers) and any(mixer.states and not mixer.caches for mixer in mixers):
        words.append("short convolution")
    return " + ".join(words)


def _head_words(mixers: list[Mixer], attentions: list[Attention]) -> str:
    if any(attention.latent for attention in attentions):
        return "MLA"
    shapes = {
        (mixer.attentions[0].num_heads, cache.entry.num_heads)
        for mixer in mixers
        for cache in mixer.caches
        if mixer.attentions and isinstance(cache.entry, KvHeads)
    }
    if not shapes:
        return "compressed (CSA/HCA)"
    if all(heads == kv_heads for heads, kv_heads in shapes):
        return "MHA"
    return "MQA" if all(kv_heads == 1 for _, kv_heads in shapes) else "GQA"


def _num_draft_layers(fields: Fields) -> int:
    num_drafts = fields.count("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers") or 0
    if not num_drafts and fields.flag("use_mtp"):
        num_drafts = (fields.count("num_mtp_modules") or 0) * (fields.count("mtp_transformer_layers") or 1)
    if num_drafts > MOST_DRAFT_LAYERS:
        fields.refuse(f"num_nextn_predict_layers={num_drafts}: no model has more than {MOST_DRAFT_LAYERS}")
    return num_drafts


def _without_index(mixer: Mixer) -> Mixer:
    caches = tuple(cache for cache in mixer.caches if not isinstance(cache.entry, IndexKey))
    return msgspec.structs.replace(mixer, caches=caches, states=())
