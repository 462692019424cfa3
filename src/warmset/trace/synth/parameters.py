"""Parameters of generators: what each means, what it may be, and where its value comes from."""

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import isfinite
from typing import Any, ClassVar, Literal, NamedTuple, get_args, get_origin, get_type_hints

import msgspec
import numpy as np

from warmset.errors import InputError
from warmset.trace.builder import TraceBuilder
from warmset.trace.forest import Provenance, Trace
from warmset.trace.synth.recording import Limits, Service
from warmset.units import parse_seconds

Basis = Literal["published", "fitted", "assumed", "chosen"]
"""Read in a source; computed from published data; nobody's but ours; set by whoever runs the generator."""

DEFAULT_BLOCK_TOKENS = 16
"""vLLM's default block."""


def published(text: str, source: str, **limits: Any) -> msgspec.Meta:  # noqa: ANN401 - msgspec's own keywords
    """What a parameter means, where its default was read, and the limits of its values."""
    return _meta("published", text, source, limits)


def fitted(text: str, source: str, **limits: Any) -> msgspec.Meta:  # noqa: ANN401 - msgspec's own keywords
    """What a parameter means, which data its default was computed from, and the limits of its values."""
    return _meta("fitted", text, source, limits)


def assumed(text: str, **limits: Any) -> msgspec.Meta:  # noqa: ANN401 - msgspec's own keywords
    """What a parameter means, and the limits of its values; its default is our assumption."""
    return _meta("assumed", text, "", limits)


def _meta(basis: Basis, text: str, source: str, limits: Mapping[str, Any]) -> msgspec.Meta:
    return msgspec.Meta(description=text, extra={"basis": basis, "source": source}, **limits)


class Preset(NamedTuple):
    """Named values that differ from a generator's defaults."""

    title: str
    values: Mapping[str, Any]
    source: str = ""
    """Where the values were read; those named in `assumed` were not."""
    assumed: tuple[str, ...] = ()


class Parameter(NamedTuple):
    """One parameter of a generator as it is set."""

    name: str
    value: Any
    basis: Basis
    source: str
    text: str


class Generator(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters of one kind of traffic. A subclass says how requests come of them."""

    NAME: ClassVar[str]
    TITLE: ClassVar[str]
    PRESETS: ClassVar[Mapping[str, Preset]]
    USUAL: ClassVar[Limits] = Limits()
    """Where to stop if nobody says so; without limits, traffic ends by itself."""
    NOTES: ClassVar[tuple[str, ...]] = ()
    """What the traffic takes for granted beyond its parameters, one sentence each."""

    def service(self) -> Service:
        """How long answers take."""
        raise NotImplementedError

    def fill(self, rng: np.random.Generator, limits: Limits, block_tokens: int) -> TraceBuilder:
        """All requests, in a builder."""
        raise NotImplementedError

    def generate(
        self,
        rng: np.random.Generator,
        limits: Limits | None = None,
        block_tokens: int = DEFAULT_BLOCK_TOKENS,
        preset: str = "default",
    ) -> Trace:
        """Traffic of these parameters. The same parameters and random numbers give the same trace.

        `preset` names where the values came from, for the provenance.
        Raises: InputError where parameters contradict one another, or no request comes within the limits.
        """
        if block_tokens < 1:
            raise InputError(f"--block-tokens {block_tokens}: a block holds at least 1 token")
        stops = self.USUAL if limits is None or limits == Limits() else limits
        builder = self.fill(rng, stops, block_tokens)
        if not builder.num_requests:
            raise InputError(f"{self.NAME}: no request came within the limits: give a longer --duration")
        return builder.build(self._provenance(preset, stops))

    def _provenance(self, preset: str, limits: Limits) -> Provenance:
        rows = list(parameters(self, preset))
        told = {
            "generator": self.NAME,
            "preset": preset,
            "num_requests": limits.num_requests,
            "duration_ms": limits.duration_ms,
            "parameters": {row.name: row.value for row in rows},
            "basis": {
                basis: [row.name for row in rows if row.basis == basis]
                for basis in get_args(Basis)
                if any(row.basis == basis for row in rows)
            },
        }
        service = self.service()
        timing = (
            f"Answers take {service.overhead_ms:g} ms, and 1 s for each {service.prefill_tokens_per_s:,g} "
            f"prompt tokens that their conversation did not have and {service.decode_tokens_per_s:,g} output "
            "tokens; nobody queues on a server."
        )
        return Provenance(
            name=f"{self.NAME}/{preset} (generated)",
            source=f"generated, {msgspec.json.encode(told).decode()}",
            assumptions=("The traffic is generated, and no log of a service.", timing, *self.NOTES),
        )


def preset_of(generator: type[Generator], name: str) -> Preset:
    """A preset by its name.

    Raises: InputError for a name that the generator does not have.
    """
    if name not in generator.PRESETS:
        suggestion = _suggestion(name, list(generator.PRESETS))
        raise InputError(f"--preset {name}: {generator.NAME} has no such preset{suggestion}")
    return generator.PRESETS[name]


def configured(
    generator: type[Generator], preset: str = "default", settings: Mapping[str, str] | None = None
) -> Generator:
    """A generator with the values of a preset, some of them set by hand, as text.

    Raises: InputError for an unknown name or preset, a value that cannot be read or is not allowed.
    """
    values = dict(preset_of(generator, preset).values)
    types = get_type_hints(generator, include_extras=True)
    for name, text in (settings or {}).items():
        if name not in generator.__struct_fields__:
            known = list(generator.__struct_fields__)
            raise InputError(
                f"--set {name}: {generator.NAME} has no such parameter{_suggestion(name, known)}"
            )
        values[name] = _parsed(name, text, types[name])
    return generator(**values)


def parameters(generator: Generator, preset: str = "default") -> Iterator[Parameter]:
    """Every parameter with its value and where that comes from."""
    kind = type(generator)
    chosen = preset_of(kind, preset)
    types = get_type_hints(kind, include_extras=True)
    defaults = dict(zip(kind.__struct_fields__, kind.__struct_defaults__, strict=True))
    for name in kind.__struct_fields__:
        meta: msgspec.Meta = types[name].__metadata__[0]
        extra = meta.extra or {}
        value = getattr(generator, name)
        basis, source = extra["basis"], extra["source"]
        if name in chosen.values and value == chosen.values[name]:
            if name in chosen.assumed or not chosen.source:
                basis, source = "assumed", ""
            else:
                basis, source = "published", chosen.source
        elif value != defaults[name]:
            basis, source = "chosen", "--set"
        yield Parameter(name, value, basis, source, meta.description or "")


def with_seed(trace: Trace, seed: int) -> Trace:
    """The same trace, and in its provenance the seed that makes it again."""
    source = f"{trace.provenance.source}, seed {seed}"
    return replace(trace, provenance=replace(trace.provenance, source=source))


def _parsed(name: str, text: str, annotated: Any) -> Any:  # noqa: ANN401 - whatever type a parameter has
    """The value that a text stands for; times may have a unit."""
    plain = annotated.__origin__
    raw: Any = text.strip()
    if name.endswith(("_s", "_ms")) and plain in {int, float} and raw[-1:].isalpha():
        raw = _time(name, raw)
        raw = round(raw) if plain is int else raw
    elif get_origin(plain) is tuple:
        raw = [part.strip() for part in raw.split(",")]
    elif plain in {int, float}:
        raw = raw.replace("_", "")
    try:
        value = msgspec.convert(raw, annotated, strict=False)
    except msgspec.ValidationError as error:
        raise InputError(f"--set {name}={text}: {_allowed(annotated)}") from error
    numbers = value if isinstance(value, tuple) else (value,)
    if not all(isfinite(number) for number in numbers if isinstance(number, float)):
        raise InputError(f"--set {name}={text}: {_allowed(annotated)}")
    return value


def _time(name: str, text: str) -> float:
    """A duration with a unit, in that of the parameter."""
    try:
        seconds = parse_seconds(text)
    except InputError as error:
        raise InputError(f"--set {name}={text}: {error}") from error
    return seconds if name.endswith("_s") else 1000 * seconds


def _allowed(annotated: Any) -> str:  # noqa: ANN401 - whatever type a parameter has
    """What a value must be, in words."""
    plain, meta = annotated.__origin__, annotated.__metadata__[0]
    if get_origin(plain) is Literal:
        return f"it must be one of {', '.join(map(str, get_args(plain)))}"
    if plain is bool:
        return "it must be true or false"
    if get_origin(plain) is tuple:
        count = "" if meta.min_length is None else f"{meta.min_length} "
        return f"it must be {count}numbers of at least 0, as 1,2,3"
    limits = [
        words.format(value)
        for value, words in (
            (meta.ge, "of at least {:g}"),
            (meta.gt, "above {:g}"),
            (meta.le, "at most {:g}"),
            (meta.lt, "below {:g}"),
        )
        if value is not None
    ]
    what = "a whole number" if plain is int else "a number"
    return f"it must be {what}{' ' if limits else ''}{' and '.join(limits)}"


def _suggestion(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f": did you mean {close[0]}?" if close else f": it has {', '.join(known)}"
