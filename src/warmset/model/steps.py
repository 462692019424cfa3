"""How each number was made: the formula with the numbers in it, and where they came from."""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

from warmset.model.flops import prefill_flops
from warmset.model.kv_bytes import MODEL_BITS, KvBytes
from warmset.model.layouts import KvLayout, entry_bytes
from warmset.model.parameters import active_linear_parameters, count_parameters
from warmset.model.spec import Cache, CompressedEntry, IndexKey, KvHeads, Latent, ModelSpec, StatePart
from warmset.model.step import Step

CONFIG = "config.json"


def kv_steps(spec: ModelSpec, layout: KvLayout) -> Iterator[Step]:
    """Each kind of cache and of state that the layers keep, with what it costs."""
    counted = Counter(cache for layer in spec.layers for cache in layer.caches)
    for cache, count in counted.items():
        yield _cache_step(cache, count, layout)
    states = Counter(part for layer in spec.layers for part in layer.states)
    for part, count in states.items():
        yield _state_step(part, count)


def weight_steps(spec: ModelSpec) -> Iterator[Step]:
    """Parameters by role."""
    count = count_parameters(spec)
    roles = {name.removeprefix("num_"): number for name, number in count._asdict().items() if number}
    formula = " + ".join(f"{number:,} {role.replace('_', ' ')}" for role, number in roles.items())
    yield Step("parameters", formula, f"{sum(count):,}", "docs/method.md, Weights")
    yield Step(
        "multiplied with each token",
        "linear layers and the chosen experts, without embedding and LM head",
        f"{active_linear_parameters(spec):,}",
        "docs/method.md, FLOPs",
    )


def sequence_step(kv: KvBytes, tokens: int, total_bytes: int, layout: KvLayout) -> Step:
    """A running sequence, from the parts of its KV."""
    parts = [f"{_number(kv.growth_bytes_per_token)} x {tokens:,}"]
    parts += [f"{size:,} x min({tokens:,}, {span:,})" for span, size in kv.windows.items()]
    parts += [f"{kv.state_bytes_per_sequence:,} of state"] if kv.state_bytes_per_sequence else []
    parts += [f"{kv.cross_bytes_per_input:,} of one input"] if kv.cross_bytes_per_input else []
    parts += [f"{layout.residual_tokens} tokens in 16 bits"] if layout.residual_tokens else []
    return Step(
        f"sequence of {tokens:,} tokens",
        " + ".join(parts),
        f"{total_bytes:,} bytes",
        "docs/method.md, KV bytes",
    )


def prefix_step(kv: KvBytes, tokens: int, total_bytes: int, snapshot_tokens: int | None) -> Step:
    """A cached prefix: what grows once, states and windows at each reuse point."""
    num_points = 1 if snapshot_tokens is None else tokens // snapshot_tokens
    apart_tokens = tokens if snapshot_tokens is None else snapshot_tokens
    parts = [f"{size:,} x min({apart_tokens:,}, {span:,})" for span, size in kv.windows.items()]
    parts += [f"{kv.state_bytes_per_sequence:,} of state"] if kv.state_bytes_per_sequence else []
    at_points = f" + {num_points:,} reuse points x ({' + '.join(parts)})" if parts else ""
    return Step(
        f"cached prefix of {tokens:,} tokens",
        f"{_number(kv.growth_bytes_per_token)} x {tokens:,}{at_points}",
        f"{total_bytes:,} bytes",
        "docs/method.md, Cached prefix",
    )


def prefill_step(spec: ModelSpec, tokens: int) -> Step:
    """The arithmetic of a prompt with nothing cached."""
    flops, linear = prefill_flops(spec, tokens, 0), active_linear_parameters(spec)
    if tokens == 0:
        return Step("prefill of 0 tokens", "nothing to compute", "0 FLOPs", "docs/method.md, FLOPs")
    parts = [f"2 x {linear:,} x {tokens:,}", f"2 x {spec.vocab_size:,} x {spec.hidden_size:,} of logits"]
    of_input = flops.gemm - 2 * linear * tokens - 2 * spec.vocab_size * spec.hidden_size
    if of_input:
        parts.append(f"{of_input:,} of keys and values of one encoder input")
    parts.append(f"{flops.attention:,} of attention and recurrences")
    label = f"prefill of {tokens:,} tokens"
    return Step(label, " + ".join(parts), f"{flops.total:,} FLOPs", "docs/method.md, FLOPs")


def field_steps(spec: ModelSpec) -> Iterator[Step]:
    """What was read from the config, and what was taken for granted."""
    for read in spec.fields_read:
        if read.assumed_because:
            value = f"{read.value} ({read.assumed_because})"
            yield Step(read.field, "", value, "assumed: the config is silent")
        elif not read.value.startswith("{"):  # a section; its own fields are read one by one
            yield Step(read.field, "", read.value, CONFIG)


def _cache_step(cache: Cache, count: int, layout: KvLayout) -> Step:
    size = entry_bytes(cache.entry, layout)
    words, sizes = _entry_words(cache)
    every = f" / {cache.tokens_per_entry} tokens" if cache.tokens_per_entry > 1 else ""
    rate = Fraction(count * size, cache.tokens_per_entry)
    reach = {
        "full": "every token",
        "sliding": f"up to {cache.span_tokens:,} tokens",
        "chunked": f"up to {cache.span_tokens:,} tokens, a chunk",
        "cross": f"for {cache.span_tokens:,} tokens of an encoder input",
    }[cache.reach]
    return Step(
        f"{words}, {reach}",
        f"{count} layers x [{sizes} in {_layout_words(cache, layout)}: {size:,} bytes]{every}",
        f"{_number(rate)} bytes per token",
        "docs/method.md, KV bytes",
    )


def _entry_words(cache: Cache) -> tuple[str, str]:
    entry = cache.entry
    if isinstance(entry, KvHeads):
        sizes = f"{entry.num_heads} KV heads x ({entry.key_size} + {entry.value_size})"
        return "keys and values", sizes
    if isinstance(entry, Latent):
        return "latent and rotated key", f"({entry.latent_size} + {entry.rope_size})"
    if isinstance(entry, CompressedEntry):
        return "window entry" if cache.reach == "sliding" else "compressed entry", f"{entry.size}"
    return "index key", f"{entry.size}"


def _layout_words(cache: Cache, layout: KvLayout) -> str:
    if not isinstance(cache.entry, IndexKey):
        return layout.name
    return (
        layout.index_keys
        or {"fp8_scaled": "fp8 with a scale", "bf16": "bf16", "as_kv": layout.name}[
            cache.entry.default_format
        ]
    )


def _state_step(part: StatePart, count: int) -> Step:
    bits = part.bits or MODEL_BITS
    total = count * -(-part.num_units * part.unit_elements * bits // 8)
    return Step(
        f"{part.role} state",
        f"{count} layers x {part.num_units:,} x {part.unit_elements:,} elements of {bits} bits",
        f"{total:,} bytes per sequence",
        "docs/method.md, State",
    )


def _number(value: Fraction) -> str:
    return f"{value.numerator:,}" if value.denominator == 1 else f"{float(value):,.6g}"
