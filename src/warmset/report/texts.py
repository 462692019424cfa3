"""The report's words: one TOML catalog a language, keys by section, `str.format` placeholders."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from string import Formatter
from types import MappingProxyType
from typing import Any, Literal, get_args

from warmset.facts import Basis, Origin

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")
TAG_SECTIONS: dict[str, str] = dict.fromkeys(get_args(Basis), "basis") | dict.fromkeys(
    get_args(Origin), "origins"
)
"""The section of the catalog that explains each tag of a number."""

MISSING = "⟦{}⟧"
"""How a text or a placeholder that nobody wrote shows up: visible to a reader, easy to find for a test."""


class Texts:
    """The texts of one language.

    >>> Texts("en")("units.nodes", n=3)
    '3 nodes'
    >>> Texts("zh")("reasons.slower_ttft", engine_ttft="3 秒", tiered_ttft="5 s")[:27]
    '同样的节点数，TTFT P95 反而从 3 秒升到 5'
    >>> Texts("zh")("no.such.key")
    '⟦no.such.key⟧'
    """

    def __init__(self, language: Language) -> None:
        self.language: Language = language
        self._texts = _catalog(language)

    def __call__(self, key: str, /, **values: object) -> str:
        """The text of a key with its placeholders filled in."""
        text = self._texts.get(key)
        if text is None:
            return MISSING.format(key)
        if self.language == "zh":
            return _fitted(_parts(text, values))
        return "".join(_parts(text, values))

    def has(self, key: str) -> bool:
        """Whether somebody wrote this text."""
        return key in self._texts

    def or_else(self, key: str, fallback: str) -> str:
        """The text of a key, or a fallback that came with the data."""
        return self._texts.get(key, fallback)

    def or_humanised(self, section: str, key: str) -> str:
        """The name of a free-form key, or the key itself made readable."""
        return self._texts.get(f"{section}.{key}", key.replace("_", " ").capitalize())

    def note_of_default(self, key: str, note: str) -> str:
        """The note of one of the catalog's own defaults, given in English as it stands there."""
        return _notes_in_chinese().get(key, note) if self.language == "zh" else note

    def joined(self, parts: list[str]) -> str:
        """A list in one line, separated as the language does it."""
        return self("document.list_separator").join(parts)

    def keys(self) -> frozenset[str]:
        """Every key of the catalog."""
        return frozenset(self._texts)


def _parts(text: str, values: Mapping[str, object]) -> Iterator[str]:
    for literal, name, _, _ in Formatter().parse(text):
        yield literal
        if name is not None:
            yield str(values[name]) if name in values else MISSING.format(name)


def _fitted(parts: Iterator[str]) -> str:
    """Parts joined with a space between Chinese and Latin, and none between Chinese and Chinese.

    What is filled in is not touched, only the seams.
    """
    joined = ""
    for part in filter(None, parts):
        if _SEAM_TIGHT.search(f"{joined[-2:]}|{part[:2]}"):
            joined, part = joined.rstrip(" "), part.lstrip(" ")  # noqa: PLW2901
        joined += f" {part}" if _SEAM_LOOSE.search(f"{joined[-1:]}|{part[:1]}") else part
    return joined


_WIDE = "\u3000-\u303f\u4e00-\u9fff\uff00-\uffef"
_SEAM_TIGHT = re.compile(rf"[{_WIDE}] \|[{_WIDE}]|[{_WIDE}]\| [{_WIDE}]")
_SEAM_LOOSE = re.compile(r"[\u4e00-\u9fff]\|[A-Za-z0-9<−]|[A-Za-z0-9%]\|[\u4e00-\u9fff]")


@cache
def _catalog(language: Language) -> Mapping[str, str]:
    text = files(__package__).joinpath("locales", f"{language}.toml").read_text(encoding="utf-8")
    return MappingProxyType(dict(_flat(tomllib.loads(text), "")))


@cache
def _notes_in_chinese() -> Mapping[str, str]:
    text = files(__package__).joinpath("locales", "notes.zh.toml").read_text(encoding="utf-8")
    return MappingProxyType(tomllib.loads(text))


def _flat(tree: dict[str, Any], prefix: str) -> Iterator[tuple[str, str]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", str(value)


def slug(unit: str) -> str:
    """A unit as it is written in a key.

    >>> slug("USD per GB-month")
    'USD_per_GB_month'
    """
    return re.sub(r"[^A-Za-z0-9%]+", "_", unit.replace("/", " per ")).strip("_")
