"""BurstGPT's CSV, without sessions and with."""

import pytest

from tests.support.row_logs import DATA, findings, is_matched_by, read_log, refusal

FIRST, THIRD = DATA / "burstgpt" / "first.csv", DATA / "burstgpt" / "third.csv"
HEADER = FIRST.read_text(encoding="utf-8").splitlines()[0]


def test_the_first_release():
    trace = read_log("burstgpt", FIRST)
    assert trace.arrival_ms.tolist() == [5000, 45_000, 118_000, 118_000]
    assert trace.input_tokens.tolist() == [470, 1080, 410, 1300]
    assert trace.output_tokens.tolist() == [18, 230, 276, 0]
    assert [trace.model_names[model] for model in trace.model] == ["ChatGPT", "ChatGPT", "GPT-4", "ChatGPT"]
    assert [trace.kind_names[kind] for kind in trace.kind] == ["Conversation log"] * 2 + ["API log"] * 2
    assert not trace.has_blocks
    assert trace.session is None
    assert trace.duration_ms is None
    assert findings(trace) == {"no_output": (1, "line 5")}


def test_the_release_with_sessions():
    trace = read_log("burstgpt", THIRD)
    assert trace.arrival_ms.tolist() == [19_440_110_000, 19_440_161_000, 19_440_192_250]
    assert trace.session.tolist() == [0, 1, 0]
    assert trace.duration_ms.tolist() == [43_000, 2000, 8500]
    assert findings(trace) == {"other_total": (1, "line 4: 1700 and 123 tokens are not 1900")}


@pytest.mark.parametrize("path", [FIRST, THIRD], ids=["first", "third"])
def test_it_is_told_by_its_columns(path):
    assert is_matched_by(path) == ["burstgpt"]


def test_rows_without_a_session_are_counted(tmp_path):
    path = tmp_path / "t.csv"
    lines = THIRD.read_text(encoding="utf-8").replace("session-b", "")
    path.write_text(lines, encoding="utf-8")
    trace = read_log("burstgpt", path)
    assert trace.session is None
    assert findings(trace)["unnamed_sessions"][0] == 1


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("x,ChatGPT,1,2,3,API log", "Timestamp is 'x', not a number of seconds"),
        (",ChatGPT,1,2,3,API log", "Timestamp is '', not a number of seconds"),
        ("NaN,ChatGPT,1,2,3,API log", "Timestamp is 'NaN', not a number of seconds"),
        ("inf,ChatGPT,1,2,3,API log", "Timestamp is 'inf', not a number of seconds"),
        ("1e400,ChatGPT,1,2,3,API log", "Timestamp is inf: it must lie between 0 and 100000000000"),
        ("-1,ChatGPT,1,2,3,API log", "Timestamp is -1.0: it must lie between 0 and 100000000000"),
        ("1,ChatGPT,nan,2,3,API log", "Request tokens is 'nan', not a whole number"),
        ("1,ChatGPT,-4,2,3,API log", "Request tokens is -4: it must lie between 0 and 1099511627776"),
        ("1,ChatGPT,1,,3,API log", "Response tokens is missing"),
        ("1,ChatGPT,1,2,many,API log", "Total tokens is 'many', not a whole number"),
    ],
)
def test_a_bad_row(tmp_path, line, why):
    path = tmp_path / "t.csv"
    path.write_text(f"{HEADER}\n{line}\n", encoding="utf-8")
    assert refusal("burstgpt", path) == f":2: {why}"
