"""Typed look-ups in a config.json, with errors that name the model and the field."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn, cast

from warmset.errors import InputError, UnsupportedModelError
from warmset.model.spec import FieldRead

Config = Mapping[str, object]

WRAPPERS = ("text_config", "llm_config", "language_config", "thinker_config")
"""Where a multimodal config keeps its language model."""

LARGEST_COUNT = 2**40


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of one JSON object. A key such as `attn_config.kv_n_heads` looks into a nested object.

    The object around a language model (`outer`) is asked for the few things that may stand at either level.
    """

    name: str
    values: Config
    outer: "Fields | None" = None
    prefix: str = ""
    """Where the object stands in the config, for the log."""
    log: dict[str, FieldRead] = field(default_factory=dict)
    """What was read, and what was taken for granted where the config is silent."""

    def get(self, *keys: str) -> object:
        """The value of the first key that is there and not null."""
        return next((value for key in keys if (value := self._value(key)) is not None), None)

    def has(self, key: str) -> bool:
        """Whether the key is there, even if null."""
        return key in self.values

    def integer(self, *keys: str) -> int | None:
        """The first whole number under these keys; a list of equal numbers stands for that number."""
        for key in keys:
            value = self._value(key)
            if isinstance(value, list) and value:
                value = self._common_value(key, value)
            if value is None:
                continue
            if type(value) is not int or abs(value) > LARGEST_COUNT:
                self.refuse(f"{key}={_short(value)} is not a whole number that can be used")
            return value
        return None

    def required(self, *keys: str) -> int:
        """A positive whole number that must be there. The first key is the usual spelling."""
        value = self.integer(*keys)
        if value is None:
            self.refuse(f"the config has no {keys[0]}")
        if value < 1:
            self.refuse(f"{self._spelling(keys)}={value} is not positive")
        return value

    def count(self, *keys: str) -> int | None:
        """A whole number of 0 or more, or None where the config does not mention it."""
        value = self.integer(*keys)
        if value is not None and value < 0:
            self.refuse(f"{self._spelling(keys)}={value} is negative")
        return value

    def positive(self, *keys: str) -> int | None:
        """A positive whole number, or None where the config does not mention it."""
        return None if self.get(*keys) is None else self.required(*keys)

    def layer_numbers(self, key: str, num_layers: int) -> set[int]:
        """A list of layers, numbered from 0."""
        values = self.get(key)
        if not isinstance(values, list) or not all(type(value) is int for value in values):
            self.refuse(f"{key} is not a list of layer numbers")
        beyond = [value for value in values if not 0 <= value < num_layers]
        if beyond:
            self.refuse(f"{key} names layer {beyond[0]}, and the model has fewer")
        return set(values)

    def flag(self, key: str) -> bool | None:
        """A switch, or None where the config does not mention it."""
        value = self._value(key)
        if value is not None and not isinstance(value, bool):
            self.refuse(f"{key}={_short(value)} is neither true nor false")
        return value

    def text(self, key: str) -> str | None:
        """A string, or None where the config does not mention it."""
        value = self._value(key)
        if value is not None and not isinstance(value, str):
            self.refuse(f"{key}={_short(value)} is not a string")
        return value

    def section(self, key: str) -> "Fields | None":
        """A nested object, or None where the config does not mention it."""
        value = self._value(key)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            self.refuse(f"{key}={_short(value)} is not a JSON object")
        return Fields(self.name, cast("Config", value), prefix=f"{self.prefix}{key}.", log=self.log)

    def assume(self, key: str, value: int, why: str) -> int:
        """Take a value that the config leaves out, and note it."""
        self.log[self.prefix + key] = FieldRead(self.prefix + key, str(value), why)
        return value

    def refuse(self, reason: str) -> NoReturn:
        """Raise the error for a field that cannot be used, in one line."""
        raise InputError(f"{self.name}: {' '.join(reason.split())}")

    def _spelling(self, keys: tuple[str, ...]) -> str:
        return next(key for key in keys if self._value(key) is not None)

    def _value(self, key: str) -> object:
        value: object = self.values
        for step in key.split("."):
            if not isinstance(value, Mapping):
                self.refuse(f"{key.rpartition('.')[0]}={_short(value)} is not a JSON object")
            value = value.get(step)
            if value is None:
                return None
        self.log.setdefault(self.prefix + key, FieldRead(self.prefix + key, _short(value)))
        return value

    def _common_value(self, key: str, values: list[object]) -> object:
        if any(value != values[0] for value in values):
            raise UnsupportedModelError(f"{self.name}: layers that differ in {key} are not sized yet")
        return values[0]


def language_fields(config: object, name: str) -> Fields:
    """The fields of the innermost language model of a config.

    Raises: InputError when the config or a nested one is not a JSON object.
    """
    if not isinstance(config, Mapping):
        raise InputError(f"{name}: the config is not a JSON object but {_kind(config)}")
    fields = Fields(name, cast("Config", config))
    while True:
        inner = next((section for key in WRAPPERS if (section := fields.section(key)) is not None), None)
        if inner is None:
            return fields
        fields = Fields(name, inner.values, outer=fields, log=fields.log)


def _kind(value: object) -> str:
    kinds = {list: "an array", str: "a string", bool: "true or false", int: "a number", float: "a number"}
    return kinds.get(type(value), "null")


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
