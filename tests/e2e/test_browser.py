"""The browser helper sees what the tests of the report rely on it to see."""

from pathlib import Path

import pytest

GOOD = "<!doctype html><meta charset=utf-8><p id=a>缓存</p><script>a.append(' tier')</script>"
BAD = """<!doctype html><link rel=stylesheet href="http://example.org/style.css">
<script>console.error("first\\nsecond"); setTimeout(() => { throw new Error("boom") }, 50)</script>"""


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.html"
    path.write_text(GOOD, encoding="utf-8")
    return path


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "bad.html"
    path.write_text(BAD, encoding="utf-8")
    return path


def test_scripts_run_before_the_page_is_read(browser, good):
    assert '<p id="a">缓存 tier</p>' in browser.dump_dom(good)


def test_screenshot_has_the_asked_size(browser, good, tmp_path):
    browser.screenshot(good, tmp_path / "good.png", width=320, height=200)
    header = (tmp_path / "good.png").read_bytes()[:24]
    assert header[:4] == b"\x89PNG"
    assert (int.from_bytes(header[16:20]), int.from_bytes(header[20:24])) == (320, 200)


def test_quiet_page_has_no_errors_and_no_requests(browser, good):
    assert browser.console_errors(good) == []
    assert browser.network_requests(good) == []


def test_errors_and_requests_show(browser, bad):
    first, second = browser.console_errors(bad)
    assert "first\nsecond" in first
    assert "boom" in second
    assert browser.network_requests(bad) == ["http://example.org/style.css"]
