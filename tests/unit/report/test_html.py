"""The page as a parser sees it: structure, numbers, and that nothing from outside becomes markup."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from typing import get_args

import pytest

from tests.support import evaluations
from warmset.evaluation import BASELINES, MetricKey
from warmset.report import render_html, render_markdown, write_report


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.scripts = []
        self.words = []
        self._inside = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in {"script", "style"}:
            self._inside.append(tag)
            if tag == "script" and "type" not in dict(attrs):
                self.scripts.append("")

    def handle_endtag(self, tag):
        if tag in {"script", "style"}:
            self._inside.pop()

    def handle_data(self, data):
        if self._inside == ["script"] and self.tags[-1] == ("script", {}):
            self.scripts[-1] += data
        elif not self._inside:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    def with_attribute(self, name):
        return [attributes[name] for _, attributes in self.tags if name in attributes]


@pytest.fixture(scope="module", params=["en", "zh"])
def language(request):
    return request.param


@pytest.fixture(scope="module")
def page(language):
    return Page(render_html(evaluations.evaluation(), language))


def test_every_metric_appears_once_in_full(page):
    assert page.with_attribute("data-metric") == list(get_args(MetricKey))


def test_ids_are_unique_and_links_lead_somewhere(page):
    ids = page.with_attribute("id")
    assert len(ids) == len(set(ids))
    inner = [href[1:] for href in page.with_attribute("href") if href.startswith("#")]
    assert set(inner) <= set(ids)


def test_language_is_declared(page, language):
    assert ("html", {"lang": "zh-CN" if language == "zh" else "en"}) in page.tags


def test_every_chart_has_its_table(page):
    assert len(page.with_attribute("data-chart")) == 8
    assert sum(tag == "details" for tag, _ in page.tags) == 8


def test_numbers_in_the_tables_are_those_of_the_evaluation(page):
    evaluation = evaluations.evaluation()
    printed = [float(value) for value in page.with_attribute("data-value")]
    for row in evaluation.metrics:
        for values in row.values.values():
            assert {values.of(baseline).mid for baseline in BASELINES} <= set(printed)
    for row in evaluation.concurrency:
        assert {value for each in BASELINES if (value := row.values.of(each).mid) is not None} <= set(printed)
    for budget in evaluation.tier_budgets:
        assert {line.size_bytes for line in budget.lines} | {budget.usable_bytes} <= set(printed)
    for line in evaluation.economics.cost_lines:
        assert {line.values.of(baseline).mid for baseline in BASELINES} <= set(printed)


def test_assumptions_show_origin_and_source(page, language):
    assert "press on channel prices" in page.text
    for word in {"en": ("published", "assumed", "given"), "zh": ("公开", "假定", "给定")}[language]:
        assert word in page.text


def test_no_part_is_fetched_from_anywhere(page, language):
    text = render_html(evaluations.evaluation(), language)
    assert page.with_attribute("src") == []
    assert [tag for tag, _ in page.tags if tag in {"link", "iframe", "object", "embed", "img", "base"}] == []
    assert not re.search(r"url\(|@import", text.split("</style>")[0])
    assert [href for href in page.with_attribute("href") if "//" in href] == []


def test_only_the_two_named_scripts_may_run(page):
    (policy,) = [
        attributes["content"]
        for tag, attributes in page.tags
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in page.scripts]
    assert len(hashes) == 2
    assert re.findall(r"'sha256-([^']+)'", policy) == hashes
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    assert "script-src 'unsafe-inline'" not in policy


def test_hostile_names_are_text(language):
    text = render_html(evaluations.hostile(), language)
    page = Page(text)
    assert "<script>alert(1)" not in text
    assert len(page.scripts) == 2
    assert page.text.count("<script>alert(1)</script>") >= 6
    assert "{{7*7}}" in page.text


def test_hostile_names_are_text_in_markdown(language):
    text = render_markdown(evaluations.hostile(), language)
    assert "<script>" not in text.replace("\\<", "")
    assert not re.search(r"(?<!\\)\[a(?<!\\)\]\(javascript", text)


def test_unknown_is_printed_with_its_reason():
    page = Page(render_html(evaluations.with_unknowns(), "en"))
    assert "n/a the SLO is not met at up to 64 nodes" in page.text
    assert "n/a the queue grows without end" in page.text


def test_markdown_has_every_section_and_table(language):
    evaluation = evaluations.evaluation()
    markdown = render_markdown(evaluation, language)
    assert markdown.count("\n## ") == 14
    assert sum(line.startswith("### ") and line[4].isdigit() for line in markdown.splitlines()) == 13
    widths = {}
    for line in markdown.splitlines():
        if line.startswith("| "):
            widths.setdefault(len(re.findall(r"(?<!\\)\|", line)), 0)
    assert widths
    assert "⟦" not in markdown


def test_markdown_tables_are_rectangular(language):
    rows = []
    for line in [*render_markdown(evaluations.evaluation(), language).splitlines(), ""]:
        if line.startswith("|"):
            rows.append(len(re.findall(r"(?<!\\)\|", line)))
        elif rows:
            assert len(set(rows)) == 1
            rows = []


def test_one_language_is_written(tmp_path):
    paths = write_report(evaluations.evaluation(), tmp_path / "new" / "folder", ("zh",))
    assert [path.name for path in paths] == ["evaluation.json", "report.html", "report.md"]
    assert 'lang="zh-CN"' in paths[1].read_text(encoding="utf-8")


def test_both_languages_link_to_each_other(tmp_path):
    paths = {path.name: path for path in write_report(evaluations.evaluation(), tmp_path, ("en", "zh"))}
    assert set(paths) == {"evaluation.json", "report.html", "report.md", "report.zh.html", "report.zh.md"}
    assert 'href="report.zh.html"' in paths["report.html"].read_text(encoding="utf-8")
    assert 'href="report.html"' in paths["report.zh.html"].read_text(encoding="utf-8")
    assert "(report.zh.md)" in paths["report.md"].read_text(encoding="utf-8")
