from typing import get_args

import pytest
from msgspec.structs import replace

from tests.support import evaluations
from warmset.evaluation import BASELINES, Decision
from warmset.report import KeyTable, key_table, verdict_sentence
from warmset.report.document import Table
from warmset.report.sections import build_document


def table_of(document, key):
    """The table of that key, in whatever group of whatever section it stands."""
    blocks = [block for section in document.sections for block in section.blocks]
    tables = [inner for block in blocks for inner in (block, *getattr(block, "blocks", ()))]
    return next(table for table in tables if isinstance(table, Table) and table.key == key)


OPENINGS = {
    "buy": ("Buy: ", "建议采购："),
    "buy_for_latency": ("Buy for latency", "可以为时延而购"),
    "marginal": ("Marginal: ", "得失相当："),
    "do_not_buy": ("Do not buy: ", "不建议采购："),
}


@pytest.mark.parametrize("decision", get_args(Decision))
def test_verdict_is_one_plain_sentence_in_each_language(decision):
    evaluation = evaluations.with_decision(decision)
    for language, opening in zip(("en", "zh"), OPENINGS[decision], strict=True):
        sentence = verdict_sentence(evaluation, language)
        assert sentence.startswith(opening)
        assert sentence.endswith("." if language == "en" else "。")
        assert "⟦" not in sentence
        assert "\u00a0" not in sentence


def test_verdict_names_its_numbers():
    assert "3 nodes" in verdict_sentence(evaluations.evaluation(), "en")
    assert "20.9 %" in verdict_sentence(evaluations.not_worth_it(), "en")


@pytest.mark.parametrize(
    ("case", "en", "zh"),
    [
        ("unmet", "Do not buy: the SLO cannot be met", "不建议采购：在尝试过的节点数范围内"),
        ("without_tiers", "Nothing to buy: the scenario has no tier", "没有可采购的"),
        ("rescued", "Buy to meet the SLO: with the lower tiers 3 nodes", "为满足 SLO 而购"),
    ],
)
def test_verdict_claims_no_more_than_was_found(case, en, zh):
    evaluation = getattr(evaluations, case)()
    assert verdict_sentence(evaluation, "en").startswith(en)
    assert verdict_sentence(evaluation, "zh").startswith(zh)


def test_verdict_without_numbers_stays_a_sentence():
    sentence = verdict_sentence(evaluations.with_unknowns(), "en")
    assert sentence.startswith("Buy: ")
    assert "n/a" not in sentence


@pytest.mark.parametrize("language", ["en", "zh"])
def test_key_table_is_rectangular_and_plain(language):
    table = key_table(evaluations.with_unknowns(), language)
    assert isinstance(table, KeyTable)
    assert len(table.columns) == 1 + len(BASELINES)
    assert {len(row) for row in table.rows} == {len(table.columns)}
    assert "\u00a0" not in "".join(map("".join, table.rows))


def test_key_table_says_why_a_number_is_missing():
    rows = {row[0]: row[1:] for row in key_table(evaluations.with_unknowns(), "en").rows}
    assert rows["Nodes needed"][0] == "n/a (the SLO is not met at up to 64 nodes)"
    assert rows["TTFT P95"][0] == "n/a (the queue grows without end)"


def test_hit_rates_are_totals_over_totals():
    rows = {row[0]: row[1:] for row in key_table(evaluations.evaluation(), "en").rows}
    assert rows["Token hit rate"] == ("0.0 %", "20.9 %", "37.4 %")


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("case", ["evaluation", "not_worth_it", "with_unknowns", "saturated"])
def test_no_text_is_missing(case, language):
    assert "⟦" not in repr(build_document(getattr(evaluations, case)(), language))


def test_reasons_name_tiers_and_baselines_as_people_do():
    english = build_document(evaluations.evaluation(), "en").verdict
    assert any(sentence.startswith("NVMe adds nothing") for sentence in english.reasons)
    chinese = build_document(evaluations.not_worth_it(), "zh").verdict
    assert any(sentence.startswith("不复用：") for sentence in chinese.reasons)


def test_sections_in_their_order():
    keys = [section.key for section in build_document(evaluations.evaluation(), "en").sections]
    assert keys == [
        "reading",
        "metrics",
        "traffic",
        "curves",
        "concurrency",
        "capacity",
        "hit-curve",
        "economics",
        "assumptions",
        "findings",
        "method",
        "glossary",
    ]


def test_the_context_section_corrects_the_common_claim():
    assert "whole KV in HBM" in repr(build_document(evaluations.evaluation(), "en").sections)
    assert "KV 必须全部在显存里" in repr(build_document(evaluations.evaluation(), "zh").sections)


@pytest.mark.parametrize(("dormant", "share"), [(0.0, "0.0 %"), (98.2, "50.0 %"), (None, "n/a")])
def test_nobody_dormant_is_a_share_of_zero_and_not_unknown(dormant, share):
    evaluation = evaluations.evaluation()
    counts = replace(evaluation.capacity.session_counts[0], mean_sessions=196.4, mean_dormant=dormant)
    capacity = replace(evaluation.capacity, session_counts=(counts,))
    table = table_of(build_document(replace(evaluation, capacity=capacity), "en"), "session-counts")
    assert table.rows[0][-1].text.replace("\u00a0", " ").startswith(share)


ASSUMED = "Tokens are counted at 3.9 characters each, measured on 12 rows that report usage."


def of_own_log():
    """The example on a user's own log: nobody to cite, and something assumed on the way in."""
    whole = evaluations.evaluation()
    traffic = replace(
        whole.traffic, name="my log", source="LiteLLM log", licence="", citation="", assumptions=(ASSUMED,)
    )
    return replace(whole, traffic=traffic)


@pytest.mark.parametrize(("language", "title"), [("en", "had to assume"), ("zh", "不得不作的假设")])
def test_what_the_import_assumed_stands_in_the_report(language, title):
    sections = {section.key: section for section in build_document(of_own_log(), language).sections}
    first = sections["findings"].blocks[0]
    assert title in first.title
    assert first.blocks[0].items == (ASSUMED,)
    plain = {section.key: section for section in build_document(evaluations.evaluation(), language).sections}
    assert all(title not in getattr(block, "title", "") for block in plain["findings"].blocks)


@pytest.mark.parametrize(
    ("language", "says"), [("en", "read as: LiteLLM log"), ("zh", "按 LiteLLM log 读取")]
)
def test_a_log_of_ones_own_is_named_and_not_cited(language, says):
    footer = build_document(of_own_log(), language).footer
    assert any("my log" in line and says in line for line in footer)
    assert not any("cite" in line or "引用" in line for line in footer)
