import ast
from pathlib import Path
from string import Formatter
from typing import get_args

import pytest

from warmset import evaluation as tree
from warmset.catalog.defaults import defaults
from warmset.evaluate import verdict
from warmset.report.texts import LANGUAGES, Texts

EN, ZH = Texts("en"), Texts("zh")


def placeholders(texts, key):
    return {name for _, name, _, _ in Formatter().parse(texts.or_else(key, "")) if name}


def test_same_keys_in_both_languages():
    assert EN.keys() ^ ZH.keys() == set()


def test_same_placeholders_in_both_languages():
    assert {key for key in EN.keys() if placeholders(EN, key) != placeholders(ZH, key)} == set()  # noqa: SIM118


def required():
    for key in get_args(tree.MetricKey):
        yield from (f"metrics.{key}.{part}" for part in ("name", "short", "definition", "method"))
    for key in get_args(tree.ConcurrencyKey):
        yield from (f"concurrency.{key}.{part}" for part in ("name", "change", "driver"))
    for key in get_args(tree.TrafficKindKey):
        yield from (f"traffic.{key}.{part}" for part in ("name", "definition"))
    for key in tree.BASELINES:
        yield from (f"baselines.{key}.{part}" for part in ("name", "definition"))
    for key in get_args(tree.Decision):
        yield from (f"verdict.{part}" for part in (key, f"{key}_plain", f"label_{key}"))
    yield from (f"tiers.{key}" for key in get_args(tree.TierName))
    yield from (f"assumptions.keys.{key}" for key in defaults())


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_key_of_the_tree_has_its_words(language):
    assert [key for key in required() if not Texts(language).has(key)] == []


def keys_of_calls(module, name):
    """The constant `key=` of every call of `name` in a module, both sides of a conditional included."""
    for node in ast.walk(ast.parse(Path(module.__file__).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name:
            for keyword in node.keywords:
                if keyword.arg == "key":
                    yield from (
                        each.value for each in ast.walk(keyword.value) if isinstance(each, ast.Constant)
                    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_reason_has_its_sentence(language):
    texts = Texts(language)
    keys = set(keys_of_calls(verdict, "Reason"))
    assert len(keys) > 10
    missing = [key for key in keys if not (texts.has(f"reasons.{key}") or texts.has(f"would_change.{key}"))]
    assert missing == []


def test_missing_text_and_missing_value_show():
    assert EN("no.such.key") == "⟦no.such.key⟧"
    assert EN("units.nodes") == "⟦n⟧ nodes"


def test_filled_values_are_not_templates():
    assert EN("document.title", scenario="{model}") == "{model}"


def test_unknown_name_is_made_readable():
    assert EN.or_humanised("assumptions.keys", "strange_new_input") == "Strange new input"


@pytest.mark.parametrize(
    ("tier", "text"),
    [("NVMe", "NVMe 不起作用：它"), ("内存（DRAM）", "内存（DRAM）不起作用：它")],
)
def test_chinese_and_latin_are_spaced_at_the_seams(tier, text):
    assert ZH("reasons.tier_adds_nothing", tier=tier, capacity="1", above="2").startswith(text)


def test_filled_values_keep_their_own_spacing():
    assert ZH("document.title", scenario="客服A 平台") == "客服A 平台"
