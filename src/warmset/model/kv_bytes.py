"""Bytes of the KV cache of a whole model, before any engine rounds or replicates them."""

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from math import ceil
from typing import NamedTuple

from warmset.errors import InputError
from warmset.model.layouts import KvLayout, entry_bytes, kv_layout
from warmset.model.spec import Cache, KvHeads, Layer, ModelSpec, StatePart

MODEL_BITS = 16
"""Of a state in the model's own number format."""


class KvBytes(NamedTuple):
    """The parts of a sequence's KV: what grows, what is bounded by a window, what has one size.

    `growth_bytes_per_token` is an exact fraction where an entry stands for several tokens. A model with
    windows of different lengths has several `windows`: bytes per token by window length.
    """

    growth_bytes_per_token: Fraction
    windows: dict[int, int]
    state_bytes_per_sequence: int
    cross_bytes_per_input: int
    mtp_bytes_per_token: Fraction

    @property
    def window_bytes_per_token(self) -> int:
        """What a token adds while it is within every window."""
        return sum(self.windows.values())

    @property
    def window_tokens(self) -> int:
        """The longest window, or 0."""
        return max(self.windows, default=0)

    @property
    def constant_bytes_per_sequence(self) -> int:
        """State and full windows: what a long sequence holds beside its growth."""
        return self.state_bytes_per_sequence + sum(span * size for span, size in self.windows.items())


def kv_bytes(spec: ModelSpec, layout: KvLayout) -> KvBytes:
    """The parts of the KV of one sequence.

    Formula: bytes(L) = G·L + Σ S_w·min(L, W_w) + C + X
    Source: `docs/method.md`, KV bytes.
    Raises: InputError when the layout is not defined for the model.

    >>> from warmset.model.config import load_model
    >>> kv_bytes(load_model("gemma-3-27b-it"), kv_layout("bf16")).windows  # 52 layers, window 1,024
    {1024: 425984}
    """
    caches = _counted(spec.layers)
    windows: Counter[int] = Counter()
    for cache, count in caches.items():
        if cache.reach in {"sliding", "chunked"}:
            windows[cache.span_tokens] += count * entry_bytes(cache.entry, layout)
    cross = sum(
        count * cache.span_tokens * entry_bytes(cache.entry, layout)
        for cache, count in caches.items()
        if cache.reach == "cross"
    )
    return KvBytes(
        growth_bytes_per_token=_growth(caches, layout),
        windows=dict(windows),
        state_bytes_per_sequence=state_bytes(part for layer in spec.layers for part in layer.states),
        cross_bytes_per_input=cross,
        mtp_bytes_per_token=_growth(_counted(spec.mtp_layers), layout),
    )


def growth_bytes_per_token(spec: ModelSpec, layout: KvLayout) -> Fraction:
    """Bytes that one more token adds to a long sequence, exactly.

    >>> from warmset.model.config import load_model
    >>> int(growth_bytes_per_token(load_model("Meta-Llama-3.1-405B"), kv_layout("bf16")))  # arXiv 2505.09343
    516096
    >>> int(growth_bytes_per_token(load_model("DeepSeek-V3"), kv_layout("bf16")))  # the same table
    70272
    """
    return _growth(_counted(spec.layers), layout)


def sequence_bytes(spec: ModelSpec, tokens: int, layout: KvLayout) -> int:
    """Bytes of a running sequence of that many tokens, prompt and output together, with one encoder input.

    An entry that stands for several tokens exists once they are all there.
    """
    _check_tokens(tokens)
    caches = sum(
        count * _cache_bytes(cache, _entries(cache, tokens), layout)
        for cache, count in _counted(spec.layers).items()
    )
    return caches + state_bytes(part for layer in spec.layers for part in layer.states)


def cached_prefix_bytes(
    spec: ModelSpec, prefix_tokens: int, layout: KvLayout, snapshot_tokens: int | None = None
) -> int:
    """Bytes that a cached prefix takes in any tier.

    A prefix can be taken up again only where its recurrent states were kept and its windows are whole:
    every `snapshot_tokens`, or at its end alone (`None`). What grows is kept once, each state once a reuse
    point, each window up to once a reuse point. Encoder inputs are not part of a prefix.

    Formula: G·L + n·C + n·Σ S_w·min(W_w, Δ), n = L/Δ rounded down; at one point Δ = L
    Source: `docs/method.md`, Cached prefix.
    Raises: InputError when a length is negative, or `snapshot_tokens` is not positive.
    """
    _check_tokens(prefix_tokens)
    if snapshot_tokens is not None and snapshot_tokens < 1:
        raise InputError(f"snapshot_tokens={snapshot_tokens} is not positive")
    num_points = 1 if snapshot_tokens is None else prefix_tokens // snapshot_tokens
    apart_tokens = prefix_tokens if snapshot_tokens is None else snapshot_tokens
    total = num_points * state_bytes(part for layer in spec.layers for part in layer.states)
    for cache, count in _counted(spec.layers).items():
        if cache.reach == "cross":
            continue
        if cache.reach == "full":
            entries = prefix_tokens // cache.tokens_per_entry
        else:
            entries = num_points * min(cache.span_tokens, apart_tokens)
        total += count * _cache_bytes(cache, entries, layout)
    return total


def state_bytes(parts: Iterable[StatePart]) -> int:
    """Bytes of states; a part without a number format of its own has the model's."""
    elements: Counter[int] = Counter()
    for part in parts:
        elements[part.bits or MODEL_BITS] += part.num_units * part.unit_elements
    return sum(ceil(Fraction(number * bits, 8)) for bits, number in elements.items())


def _counted(layers: Iterable[Layer]) -> Counter[Cache]:
    return Counter(cache for layer in layers for cache in layer.caches)


def _growth(caches: Counter[Cache], layout: KvLayout) -> Fraction:
    growing = (item for item in caches.items() if item[0].reach == "full")
    return sum(
        (Fraction(n * entry_bytes(cache.entry, layout), cache.tokens_per_entry) for cache, n in growing),
        Fraction(0),
    )


def _entries(cache: Cache, tokens: int) -> int:
    if cache.reach == "full":
        return tokens // cache.tokens_per_entry
    return cache.span_tokens if cache.reach == "cross" else min(tokens, cache.span_tokens)


def _cache_bytes(cache: Cache, num_entries: int, layout: KvLayout) -> int:
    """Of so many entries, the newest of which may stay in 16 bits."""
    plain = min(num_entries, layout.residual_tokens) if isinstance(cache.entry, KvHeads) else 0
    packed = (num_entries - plain) * entry_bytes(cache.entry, layout)
    return packed + plain * entry_bytes(cache.entry, kv_layout("bf16"))


def _check_tokens(tokens: int) -> None:
    if tokens < 0:
        raise InputError(f"a sequence of {tokens} tokens: a length is 0 or more")
