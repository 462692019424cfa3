import re
import tomllib
from importlib.resources import files

import pytest
from msgspec.structs import replace

from tests.support import evaluations
from warmset.catalog import default, defaults
from warmset.evaluation import Assumption
from warmset.report.sections import build_document

NOTES = tomllib.loads(
    files("warmset.report").joinpath("locales", "notes.zh.toml").read_text(encoding="utf-8")
)
GROUPED = re.compile(r"(?<=\d)[ ,](?=\d{3}(?!\d))")
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def numbers(note):
    """The numbers of a note, whatever stands between their thousands."""
    return set(NUMBER.findall(GROUPED.sub("", note)))


def shown(fact, language):
    """The report of an evaluation whose only assumption is this one."""
    assumption = Assumption(key="gemm_efficiency", group="serving", fact=fact)
    return repr(build_document(evaluations.evaluation(assumptions=(assumption,)), language))


def test_every_note_is_translated_and_no_other():
    assert NOTES.keys() == {key for key, fact in defaults().items() if fact.note}


def test_thousands_may_be_written_with_a_space_or_a_comma():
    assert numbers("14 300 - 8 x 1000") == numbers("14,300 − 8 × 1000") == {"14300", "8", "1000"}


@pytest.mark.parametrize("key", NOTES)
def test_numbers_are_those_of_the_catalog(key):
    assert numbers(default(key).note) - numbers(NOTES[key]) == set()


def test_default_shows_its_note_in_the_language_of_the_report():
    fact = default("gemm_efficiency")
    assert NOTES["gemm_efficiency"] in shown(fact, "zh")
    assert fact.note not in shown(fact, "zh")
    assert fact.note in shown(fact, "en")


@pytest.mark.parametrize("note", ["Our own measurement.", ""])
def test_another_fact_keeps_its_own_note(note):
    page = shown(replace(default("gemm_efficiency"), origin="given", note=note), "zh")
    assert note in page
    assert NOTES["gemm_efficiency"] not in page
