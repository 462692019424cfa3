"""The report says the same things in each language."""

import string
import tomllib
from collections.abc import Iterator

import pytest

from tests.gates.source import PACKAGE

LOCALES = PACKAGE / "report" / "locales"


def texts(tree: dict, prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from texts(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def placeholders(value: object) -> set[str]:
    parts = value if isinstance(value, list) else [value]
    return {
        field for part in parts for _, field, _, _ in string.Formatter().parse(str(part)) if field is not None
    }


@pytest.fixture(scope="module")
def locales() -> dict[str, dict[str, object]]:
    paths = {name: LOCALES / f"{name}.toml" for name in ("en", "zh")}
    missing = [path.name for path in paths.values() if not path.is_file()]
    if missing:
        pytest.skip(f"needs report/locales: {', '.join(missing)}")
    return {
        name: dict(texts(tomllib.loads(path.read_text(encoding="utf-8")))) for name, path in paths.items()
    }


def test_same_keys(locales):
    assert set(locales["en"]) ^ set(locales["zh"]) == set()


def test_same_placeholders(locales):
    en, zh = locales["en"], locales["zh"]
    different = {
        key: (sorted(placeholders(en[key])), sorted(placeholders(zh[key])))
        for key in en.keys() & zh.keys()
        if placeholders(en[key]) != placeholders(zh[key])
    }
    assert different == {}


def test_no_text_is_empty(locales):
    """Chinese puts nothing between two sentences, so a separator may be empty."""
    empty = [
        f"{name}: {key}"
        for name, language in locales.items()
        for key, text in language.items()
        if not text and not key.endswith("_separator")
    ]
    assert empty == []
