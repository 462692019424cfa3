"""`warmset trace lint`: its JSON, its table, and exit code 0 whatever it finds."""

import json

import click
import pytest

from tests.support.lint_logs import line, lines, say, turns
from tests.support.traces import make_trace, prompts, write_rows
from warmset.cli.trace.lint import command
from warmset.errors import InputError
from warmset.trace import write_wst

REPORT_KEYS = [
    "name",
    "requests",
    "reads_text",
    "sees_turns",
    "baseline",
    "before",
    "after_all",
    "findings",
    "misses",
    "unexplained_share",
    "assumptions",
]
FINDING_KEYS = [
    "code",
    "count",
    "num_total",
    "example",
    "mend",
    "counted",
    "role",
    "depth_tokens",
    "depth_share",
    "lost_tokens",
    "behind_requests",
    "between_sessions_requests",
    "confidence",
    "origin",
    "fix",
    "baseline",
    "before",
    "after",
    "gain_ratio",
]


@pytest.fixture
def lint(capsys):
    """Runs the verb; what it raises passes through, as the command line's outermost frame expects."""

    def run(*words):
        result = command.main([str(word) for word in words], standalone_mode=False)
        assert result in {None, 0}
        return capsys.readouterr()

    return run


def calls(folder, starts):
    rows = [
        {
            "timestamp": 1_790_000_000 + turn,
            "session_id": "one",
            "request": {
                "model": "small",
                "messages": [say("system", start + lines("rule", 9)), *turns(turn + 1)],
            },
        }
        for turn, start in enumerate(starts)
    ]
    return write_rows(folder / "calls.jsonl", *rows)


@pytest.fixture
def ticking(tmp_path):
    return calls(tmp_path, [line(f"Current time: 12:0{turn}") for turn in (1, 2, 3)])


def test_contract_of_the_json(lint, ticking):
    out, err = lint(ticking, "--json")
    report = json.loads(out)
    assert err == ""
    assert list(report) == REPORT_KEYS
    (finding,) = report["findings"]
    assert list(finding) == FINDING_KEYS
    assert finding["code"] == "clock"
    assert finding["origin"] == "measured on this trace"
    after = finding["after"]
    assert after["token_hit_ratio"] == after["hit_tokens"] / after["input_tokens"]
    assert finding["gain_ratio"] == after["token_hit_ratio"] - report["before"]["token_hit_ratio"]
    assert sum(share["miss_tokens"] for share in report["misses"]) == report["before"]["input_tokens"]


def test_table_in_80_columns(lint, ticking, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    out, err = lint(ticking)
    assert err == "assumed: No tokenizer was given: tokens are assumed to be 4 characters each.\n"
    assert max(map(len, out.splitlines())) <= 80
    text = " ".join(out.split())
    assert "Token hit rate 0.0 %; with all fixes together" in text
    assert "1. clock (certain): " in text
    assert "Gain measured on this trace: moved to the end of the prompt." in text
    assert "Baseline: token hit rate = " in text
    assert "of the misses." in text


def test_it_says_that_nothing_breaks(lint, tmp_path):
    out, _ = lint(calls(tmp_path, [line("Today is a day")] * 3))
    assert "No break found: " in out
    assert "% is new text." in out


def test_a_wst_is_linted_by_its_ids(lint, tmp_path):
    path = tmp_path / "trace.wst"
    write_wst(make_trace(prompts([1, 2], [1, 2, 3], [9])), path)
    report = json.loads(lint(path, "--json").out)
    assert not report["reads_text"]
    assert report["before"] == {"input_tokens": 24, "hit_tokens": 8, "token_hit_ratio": 8 / 24}
    assert "the log names no conversations" in " ".join(lint(path).out.split())


def test_no_input(lint):
    with pytest.raises(InputError, match="no log given"):
        lint()


def test_a_flag_that_is_not_one(lint, ticking):
    with pytest.raises(click.ClickException, match="--nonsense"):
        lint(ticking, "--nonsense")
    with pytest.raises(InputError, match="--chars-per-token 0"):
        lint(ticking, "--chars-per-token", "0")
