"""The written report in a browser: charts drawn, a silent console, nothing fetched, whole without scripts."""

import re

import pytest
from msgspec.structs import replace

from tests.support import evaluations
from warmset.evaluate import evaluate
from warmset.report import LANGUAGES, render_html, render_markdown, write_report
from warmset.scenario import Assumed, load_scenario

CHARTS = 8


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    paths = write_report(evaluations.evaluation(), folder, ("en", "zh"))
    return {path.name: path for path in paths}


@pytest.mark.parametrize("name", ["report.html", "report.zh.html"])
def test_charts_are_drawn_and_the_console_stays_silent(browser, reports, name):
    page = browser.dump_dom(reports[name])
    assert len(re.findall(r"<svg[^>]*>", page)) == CHARTS
    assert browser.console_errors(reports[name]) == []
    assert browser.network_requests(reports[name]) == []


def test_axes_and_marks_carry_the_texts_of_their_language(browser, reports):
    english, chinese = (browser.dump_dom(reports[name]) for name in ("report.html", "report.zh.html"))
    for text in ("flat start", "plateau", "as recorded", "10 min"):
        assert f">{text}</text>" in english
    for text in ("起步平缓", "饱和段", "原始流量", "10 分钟"):
        assert f">{text}</text>" in chinese


def test_odd_evaluations_draw_too(browser, tmp_path):
    for case in ("saturated", "with_unknowns", "not_worth_it", "hostile"):
        paths = write_report(getattr(evaluations, case)(), tmp_path / case, ("en",))
        assert browser.console_errors(paths[1]) == [], case
        assert "<svg" in browser.dump_dom(paths[1]), case


def test_complete_without_scripts(browser, reports, tmp_path):
    """With its scripts taken out, the page still says everything that the charts show."""
    text = reports["report.html"].read_text(encoding="utf-8")
    silent = tmp_path / "silent.html"
    silent.write_text(re.sub(r"<script(?! type).*?</script>", "", text, flags=re.DOTALL), encoding="utf-8")
    page = browser.dump_dom(silent)
    assert "<svg" not in page
    assert page.count("<details>") == CHARTS
    for tier in ("HBM", "DRAM", "NVMe", "Recomputed"):
        assert f"<td>{tier}" in page
    curve = evaluations.evaluation().reuse.points
    assert f'data-value="{curve[-1].token_hit_ratio}"' in page


def test_the_policy_stops_an_injected_script(browser, reports, tmp_path):
    text = reports["report.html"].read_text(encoding="utf-8")
    injected = tmp_path / "injected.html"
    injected.write_text(
        text.replace("</main>", "<script>document.title = 'taken'</script></main>"), encoding="utf-8"
    )
    page = browser.dump_dom(injected)
    assert "<title>taken</title>" not in page


@pytest.mark.parametrize(("width", "name"), [(1280, "wide"), (390, "narrow")])
def test_the_page_fits_its_window(browser, reports, tmp_path, width, name):
    png = tmp_path / f"{name}.png"
    browser.screenshot(reports["report.html"], png, width=width, height=900)
    assert png.stat().st_size > 20_000


VARIANTS = {
    "built-in": {},
    "no lower tiers": {"tiers": {"dram": "0GB", "nvme": "0GB"}},
    "an SLO that nothing meets": {"slo": {"ttft": "60ms", "tpot": "1ms"}},
    "a remote pool": {"tiers": {"remote": "20TB"}, "assume": {"remote_price_per_tb": Assumed(value=1000.0)}},
}


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_the_real_evaluation_has_all_its_words(changes):
    scenario = load_scenario(None)
    parts = {
        name: change if name == "assume" else replace(getattr(scenario, name), **change)
        for name, change in changes.items()
    }
    evaluation = evaluate(replace(scenario, **parts))
    for language in LANGUAGES:
        for text in (render_html(evaluation, language), render_markdown(evaluation, language)):
            assert re.findall("⟦.*?⟧", text) == []
