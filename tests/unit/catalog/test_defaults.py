import tomllib
from importlib.resources import files

import pytest

from warmset.catalog import default, defaults
from warmset.facts import Fact

FIELDS = set(Fact.__struct_fields__)


@pytest.mark.parametrize("name", defaults())
def test_a_default_says_where_it_comes_from(name):
    fact = default(name)
    assert fact.least <= fact.value <= fact.most
    assert fact.unit
    assert fact.source
    assert fact.date
    assert fact.note.endswith(".")
    assert fact.origin != "given"


def test_the_file_holds_fields_of_a_fact_only():
    text = files("warmset.catalog").joinpath("defaults.toml").read_text(encoding="utf-8")
    assert {field for table in tomllib.loads(text).values() for field in table} <= FIELDS


@pytest.mark.parametrize("name", defaults())
def test_a_name_agrees_with_its_unit(name):
    fact = default(name)
    endings = {
        "_per_s": "bytes/s",
        "_bytes": "bytes",
        "_bytes_per_gpu": "bytes",
        "_ratio": "ratio",
        "_share": "ratio",
        "_efficiency": "ratio",
        "_tokens": "tokens",
        "_years": "years",
        "_s": "s",
    }
    ending = next((ending for ending in endings if name.endswith(ending)), None)
    if ending is not None:
        assert fact.unit == endings[ending]
    if fact.unit == "ratio" and name != "pue" and not name.endswith("_scale"):
        assert fact.value <= 1 or name == "decode_weight_bandwidth_efficiency"


def test_money_starts_with_its_currency():
    money = [name for name in defaults() if name.endswith("_price") or name.startswith("staff_cost")]
    assert len(money) == 6
    assert all(default(name).unit.split(" per ")[0] in {"CNY", "USD"} for name in money)


def test_defaults_cannot_be_changed():
    with pytest.raises(TypeError):
        defaults()["gemm_efficiency"] = default("block_tokens")


def test_an_unknown_name_is_our_bug():
    with pytest.raises(KeyError):
        default("gem_efficiency")
