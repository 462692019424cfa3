"""The installed command runs the main job in an empty folder, and its report opens in a browser."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.scenarios import chat_rows, write_log
from warmset.evaluation import Evaluation, from_json

COMMAND = Path(sys.executable).with_name("warmset")
TIMEOUT_S = 120

Result = subprocess.CompletedProcess[str]


class Job(NamedTuple):
    folder: Path
    result: Result

    @property
    def evaluation(self) -> Evaluation:
        return from_json((self.folder / "report" / "evaluation.json").read_bytes())

    def report(self, name: str) -> str:
        return (self.folder / "report" / name).read_text(encoding="utf-8")


def warmset(folder: Path, words: Sequence[object]) -> Result:
    command = [str(COMMAND), *(str(word) for word in words)]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, encoding="utf-8", timeout=TIMEOUT_S, check=False
    )


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """`warmset evaluate`, as `make evaluate` runs it."""
    folder = tmp_path_factory.mktemp("job")
    return Job(folder, warmset(folder, ["evaluate"]))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """The same in both languages."""
    folder = tmp_path_factory.mktemp("both")
    return Job(folder, warmset(folder, ["evaluate", "--lang", "both"]))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_log(tmp_path / "chat.jsonl", chat_rows(sessions=20, turns=3, blocks=31, gap_ms=1000))


def test_it_writes_its_three_files_and_nothing_else(job):
    assert job.result.returncode == 0, job.result.stderr
    written = {str(path.relative_to(job.folder)) for path in job.folder.rglob("*") if path.is_file()}
    assert written == {"report/report.html", "report/evaluation.json", "report/report.md"}


def test_it_prints_the_verdict_and_the_key_table(job):
    from warmset.report import key_table, verdict_sentence

    words = " ".join(job.result.stdout.split())
    assert " ".join(verdict_sentence(job.evaluation, "en").split()) in words
    for row in key_table(job.evaluation, "en").rows:
        assert row[0].split()[0] in words
    assert "%" in words


def test_progress_is_not_part_of_the_answer(job):
    for name in ("report.html", "evaluation.json", "report.md"):
        assert f"written: report/{name}" in job.result.stderr
    assert "written" not in job.result.stdout
    assert "Traceback" not in job.result.stderr
    assert "Warning" not in job.result.stderr


def test_it_is_the_built_in_scenario_on_real_traffic(job):
    found = job.evaluation
    assert (found.traffic.num_requests, found.traffic.licence) == (12_031, "Apache-2.0")
    assert found.serving_method == "analytic"
    assert job.report("report.md").startswith("# ")


@pytest.mark.parametrize(("page", "word"), [("report.html", "Verdict"), ("report.zh.html", "结论")])
def test_the_report_opens_without_errors_and_offline(both, browser, page, word):
    assert both.result.returncode == 0, both.result.stderr
    path = both.folder / "report" / page
    assert browser.console_errors(path) == []
    assert browser.network_requests(path) == []
    dom = browser.dump_dom(path)
    assert word in dom
    assert "<canvas" in dom or "<svg" in dom


def test_one_language_writes_one_report(job, both):
    assert not (job.folder / "report" / "report.zh.html").exists()
    assert (both.folder / "report" / "report.md").read_text("utf-8") != both.report("report.zh.md")


def test_the_answer_in_chinese(tmp_path, log):
    result = warmset(tmp_path, ["evaluate", "--trace", log, "--lang", "zh"])
    assert result.returncode == 0, result.stderr
    assert 'lang="zh' in (tmp_path / "report" / "report.html").read_text("utf-8")
    assert any("一" <= letter <= "鿿" for letter in result.stdout)


def test_two_runs_agree_to_the_last_byte(job, both):
    assert job.report("evaluation.json") == both.report("evaluation.json")


def test_json_alone(tmp_path, log):
    result = warmset(tmp_path, ["evaluate", "--trace", log, "--json"])
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["traffic"]["num_requests"] == 60
    assert [path.name for path in tmp_path.iterdir()] == [log.name]


def test_a_printed_scenario_is_a_scenario(tmp_path, log, job):
    printed = warmset(tmp_path, ["evaluate", "--print-scenario"]).stdout
    mine = tmp_path / "mine.toml"
    mine.write_text(printed.replace('"mooncake-conversation"', f'"{log}"'), encoding="utf-8")
    result = warmset(tmp_path, ["evaluate", "mine.toml", "--json"])
    assert result.returncode == 0, result.stderr
    assert from_json(result.stdout.encode()).hardware == job.evaluation.hardware


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--help"], 0),
        (["size", "DeepSeek-V3"], 0),
        (["size", "nowhere.json"], 2),
        (["curve", "nowhere.jsonl"], 2),
        (["evaluate", "--gpu", "H9000"], 2),
        (["sort"], 2),
    ],
)
def test_exit_codes(tmp_path, words, code):
    result = warmset(tmp_path, words)
    assert result.returncode == code
    assert "Traceback" not in result.stderr
    if code:
        assert result.stdout == ""
        assert result.stderr.splitlines()[-1].startswith("warmset: ")


@pytest.mark.parametrize("words", [["nowhere.json", "--traceback"], ["--traceback", "nowhere.json"]])
def test_traceback_on_demand(tmp_path, words):
    result = warmset(tmp_path, ["size", *words])
    assert result.returncode != 0
    assert "Traceback (most recent call last)" in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["curve", "mooncake-conversation"],
        ["curve", "mooncake-conversation", "--json"],
        ["evaluate", "--print-scenario"],
    ],
    ids=["table", "json", "text"],
)
def test_a_reader_that_stops_early(tmp_path, words):
    """As in `warmset curve ... | head -0`: the pipe is closed before the first line is written."""
    with subprocess.Popen(
        [str(COMMAND), *words], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdout.close()
        errors = process.stderr.read()
        assert process.wait(TIMEOUT_S) == 0
    assert errors == ""
