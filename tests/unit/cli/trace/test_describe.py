"""`warmset trace describe`: its JSON, its tables, and what it refuses."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from tests.support.traces import mooncake_row, write_rows
from warmset.cli.trace.describe import command
from warmset.errors import InputError


def described(*words: object) -> str:
    found = CliRunner().invoke(command, [str(word) for word in words], catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return found.stdout


@pytest.fixture
def log(tmp_path):
    """A conversation of two turns, a request of its own, and an answer of 100 tokens to the first."""
    rows = [
        mooncake_row(hash_ids=[9], input_length=512),
        mooncake_row(timestamp=1000, hash_ids=[0, 1], input_length=1000, output_length=100),
        mooncake_row(timestamp=61_000, hash_ids=[0, 2, 3], input_length=1500),
    ]
    return write_rows(tmp_path / "log.jsonl", *rows)


def test_json(log):
    document = json.loads(described(log, "--json"))
    assert document["num_requests"] == 3
    assert document["reuse"]["token_hit_ratio"] == 512 / 3012
    assert document["generated_tokens"]["with_partial_block_tokens"] == 1000
    assert document["generated_tokens"]["with_answer_tokens"] == 1100
    assert document["sessions"]["activity"]["dormant_time_ratio"] == 0.0
    assert document["definitions"]["reuse.token_hit_ratio"]


def test_the_active_window_reaches_the_sessions(log):
    for window in ("15", "15s", "0.25min"):
        activity = json.loads(described(log, "--active-window", window, "--json"))["sessions"]["activity"]
        assert (activity["active_window_s"], activity["dormant_time_ratio"]) == (15.0, 0.75)


def test_tables_say_each_number_with_its_definition(log, monkeypatch):
    monkeypatch.setenv("COLUMNS", "110")
    text = described(log)
    lines = {line.split("│")[1].strip(): line for line in text.splitlines() if line.count("│") >= 4}
    assert "17.0 %" in lines["token hit rate"]
    assert "unlimited cache" in lines["token hit rate"]
    assert "36.5 %" in lines["… and with answers"]
    assert "n/a" in lines["duplicate sessions"]
    assert "only sessions that the log names" in lines["duplicate sessions"]
    assert "input tokens: prompt tokens of a request" in text
    assert max(map(len, text.splitlines())) <= 110


def test_lengths_only_say_why_reuse_is_not_known(tmp_path):
    rows = [mooncake_row(timestamp=ms, hash_ids=[], input_length=0) for ms in (0, 1000)]
    text = described(write_rows(tmp_path / "lengths.jsonl", *rows))
    assert "n/a" in text
    assert "lengths only" in " ".join(text.split())


def test_findings_and_assumptions_go_to_stderr(tmp_path):
    path = write_rows(tmp_path / "odd.jsonl", mooncake_row(output_length=0), mooncake_row())
    found = CliRunner().invoke(command, [str(path)], catch_exceptions=False)
    assert "no_output" in found.stderr
    assert "no_output" not in found.stdout
    assert [each["code"] for each in json.loads(described(path, "--json"))["findings"]] == ["no_output"]


@pytest.mark.parametrize("window", ["-1", "nan", "inf", "9999999999999999", "soon"])
def test_a_window_that_is_none_is_refused(log, window):
    with pytest.raises(InputError, match="--active-window"):
        described(log, "--active-window", window)


def test_a_log_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="nothing here"):
        described(tmp_path / "nothing here")


def test_help_loads_no_numbers():
    script = (
        "import sys; from warmset.cli.trace.describe import command; "
        "command(['--help'], standalone_mode=False); assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)
