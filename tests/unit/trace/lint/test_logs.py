"""From files to a report: formats with text and without, and what is wrong with them."""

import json

import pytest

from tests.support.lint_logs import line, lines, say, turns
from tests.support.traces import mooncake_row, write_rows
from warmset.errors import InputError, TraceFormatError
from warmset.trace import ReadOptions
from warmset.trace.lint.logs import lint_logs

RULES = lines("rule", 9)
OPTIONS = ReadOptions(hash_key=b"key")


def gateway_row(turn, **changes):
    """A chat call with a clock above its rules."""
    messages = [say("system", line(f"Current time: 12:0{turn}") + RULES), *turns(turn)]
    return {
        "timestamp": 1_790_000_000 + turn,
        "session_id": "one",
        "request": {"model": "small", "messages": messages},
    } | changes


def test_a_log_with_text(tmp_path):
    path = write_rows(tmp_path / "calls.jsonl", *(gateway_row(turn) for turn in (1, 2, 3)))
    report, notes = lint_logs([path], None, OPTIONS)
    assert report.reads_text
    assert report.name == "calls.jsonl"
    assert [each.code for each in report.findings] == ["clock"]
    assert report.findings[0].example == f"{path}:2: system message, character 19: a time of day"
    # Between pieces stand their roles: "system", "user" and two line ends, 13 characters in all.
    assert report.after_all.hit_tokens == 16 * ((635 + 64 + 13) // 64 + (635 + 3 * 64 + 13 + 16) // 64)
    assert report.assumptions == ("No tokenizer was given: tokens are assumed to be 4 characters each.",)
    assert [note.code for note in notes] == []


def test_characters_per_token_as_given(tmp_path):
    path = write_rows(tmp_path / "calls.jsonl", *(gateway_row(turn) for turn in (1, 2, 3)))
    report, _ = lint_logs([path], None, ReadOptions(hash_key=b"key", chars_per_token=2, block_tokens=32))
    assert report.assumptions == ("Tokens are counted at 2 characters each, as given.",)
    assert report.after_all.hit_tokens == 2 * 16 * (11 + 13)


def test_ids_of_the_import_do_not_change_the_report(tmp_path):
    path = write_rows(tmp_path / "calls.jsonl", *(gateway_row(turn) for turn in (1, 2, 3)))
    first, second = (lint_logs([path], None, ReadOptions(hash_key=key)) for key in (b"one", b"two"))
    assert first == second


def test_a_log_without_text(tmp_path):
    path = write_rows(
        tmp_path / "log.jsonl", mooncake_row(), mooncake_row(timestamp=5, hash_ids=[0, 2]), mooncake_row()
    )
    report, _ = lint_logs([path], None, OPTIONS)
    assert not report.reads_text
    assert report.before.hit_tokens == 512 + 600


def test_a_format_that_has_text_only_at_times(shared):
    """OpenClaw transcripts have no system prompt, so no prompt as it was sent."""
    report, _ = lint_logs([shared / "traces/samples/openclaw_example_1.jsonl"], None, OPTIONS)
    assert not report.reads_text
    assert report.num_requests == 7


def test_bad_rows_are_counted_once_and_fail_above_their_share(tmp_path):
    rows = [gateway_row(turn) for turn in (1, 2, 3)]
    path = write_rows(tmp_path / "calls.jsonl", *rows, {"timestamp": "never", "request": {"messages": []}})
    with pytest.raises(TraceFormatError, match=r"calls\.jsonl:4: "):
        lint_logs([path], None, OPTIONS)
    report, notes = lint_logs([path], None, ReadOptions(hash_key=b"key", bad_share=0.5))
    assert report.num_requests == 3
    assert [(note.code, note.count) for note in notes] == [("bad_rows", 1)]


def test_no_such_log(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        lint_logs([tmp_path / "none.jsonl"], None, OPTIONS)


def test_nothing_of_the_text_is_in_the_report(tmp_path):
    from warmset.trace.lint import as_json

    word = "xyzzy"
    rows = [gateway_row(turn) for turn in (1, 2, 3)]
    for turn, row in enumerate(rows):
        row["request"]["messages"][0]["content"] += f"{word} {'abc'[turn]}{word}\n" + RULES
        row["request"]["tools"] = [
            {"type": "function", "function": {"name": f"{word}{name}"}} for name in ("ab", "ba")[turn % 2]
        ]
    path = write_rows(tmp_path / "calls.jsonl", *rows)
    report, notes = lint_logs([path], None, OPTIONS)
    assert {each.code for each in report.findings} >= {"clock", "system_edited"}
    assert word not in json.dumps(as_json(report))
    assert word not in repr(notes)
