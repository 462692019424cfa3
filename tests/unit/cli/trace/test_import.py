"""`warmset trace import`: what may be named, what comes out where, and what is refused in one line."""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard

from tests.support.traces import mooncake_row, write_rows
from warmset.trace import read_trace, read_wst
from warmset.trace.readers import FORMATS, format_named

WEKA = Path(__file__).parents[3] / "data/traces/weka"
ROWS = [mooncake_row(timestamp=n, hash_ids=[n % 3, 10 + n]) for n in range(5)]
KEYS = [
    *("out", "name", "source", "requests", "span_ms", "block_tokens", "block_refs", "unique_blocks"),
    *("input_tokens", "output_tokens", "sessions", "assumptions", "findings"),
]


@pytest.fixture
def logs(tmp_path) -> Path:
    """A folder of three parts, in three packings."""
    folder = tmp_path / "logs"
    folder.mkdir()
    texts = [f"{json.dumps(row)}\n".encode() for row in ROWS]
    (folder / "a.jsonl").write_bytes(texts[0] + texts[1])
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(texts[2]))
    (folder / "c.jsonl.zst").write_bytes(zstandard.compress(texts[3] + texts[4]))
    return folder


def imported(warmset, tmp_path, *words: object) -> dict:
    ended = warmset("trace", "import", *words, "--out", tmp_path / "t.wst", "--force", "--json")
    assert (ended.code, ended.err) == (0, "")
    return json.loads(ended.out)


def refused(warmset, tmp_path, *words: object) -> str:
    """The one line that says what is wrong; nothing is written."""
    ended = warmset("trace", "import", *words, "--out", tmp_path / "t.wst")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("warmset: ")
    assert ended.err.count("\n") == 1
    assert len(ended.err) < 500
    assert not (tmp_path / "t.wst").exists()
    return ended.err.removeprefix("warmset: ").removesuffix("\n")


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# --- what may be named -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [["logs"], ["logs/"], ["logs/*"], ["logs/**"], ["logs/a.jsonl", "logs/[bc]*"], ["logs/?.jsonl*"]],
    ids=str,
)
def test_files_folders_and_patterns(warmset, tmp_path, logs, monkeypatch, names):
    monkeypatch.chdir(tmp_path)
    found = imported(warmset, tmp_path, *names)
    assert found["requests"] == 5
    assert found["name"] == "logs: 3 files"
    trace = read_wst(tmp_path / "t.wst")
    assert trace.arrival_ms.tolist() == [0, 1, 2, 3, 4]
    assert trace.leaf.tolist() == [1, 3, 5, 6, 7]


def test_stdin(tmp_path):
    path = write_rows(tmp_path / "log", *ROWS)
    for packed in (
        path.read_bytes(),
        gzip.compress(path.read_bytes()),
        zstandard.compress(path.read_bytes()),
    ):
        run = subprocess.run(
            [
                sys.executable,
                "-c",
                "import warmset.cli; warmset.cli.main()",
                "trace",
                "import",
                "-",
                "--out",
                "t.wst",
                "--force",
                "--json",
            ],
            cwd=tmp_path,
            input=packed,
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert (run.returncode, run.stderr) == (0, b"")
        found = json.loads(run.stdout)
        assert (found["name"], found["requests"]) == ("stdin", 5)
        assert read_wst(tmp_path / "t.wst").num_nodes == 8


def test_stdin_that_is_no_log(tmp_path):
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            "import warmset.cli; warmset.cli.main()",
            "trace",
            "import",
            "-",
            "--out",
            "t.wst",
        ],
        cwd=tmp_path,
        input=b"hello\n",
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 2
    assert run.stderr.startswith(b"warmset: stdin: is no request log that is known; --format takes one of ")
    assert files_in(tmp_path) == []


# --- what comes out --------------------------------------------------------------------------------


def test_contract(warmset, tmp_path):
    """Of the sessions that are known by hand: tests/unit/trace/readers/test_weka.py."""
    path = WEKA / "relative.jsonl"
    found = imported(warmset, tmp_path, path)
    assert list(found) == KEYS
    findings = found.pop("findings")
    assert found == {
        "out": str(tmp_path / "t.wst"),
        "name": "relative.jsonl",
        "source": "WEKA kv-cache-tester sessions",
        "requests": 7,
        "span_ms": 62_500,
        "block_tokens": 64,
        "block_refs": 12,
        "unique_blocks": 9,
        "input_tokens": 904,
        "output_tokens": 39,
        "sessions": 2,
        "assumptions": [
            "The log has no common clock: sessions are taken to start 60 s apart, in file order."
        ],
    }
    assert [(each["code"], each["count"]) for each in findings] == [("no_output", 1), ("content_ids", 12)]
    assert all(list(each) == ["code", "count", "first_example"] for each in findings)
    assert findings[0]["first_example"].startswith(f"{path}:2")


def test_what_is_written_is_what_was_read(warmset, tmp_path):
    imported(warmset, tmp_path, WEKA / "relative.jsonl")
    trace, expected = read_wst(tmp_path / "t.wst"), read_trace([WEKA / "relative.jsonl"])
    assert trace.provenance == expected.provenance
    assert trace.findings == expected.findings
    for name in ("arrival_ms", "leaf", "node_parent", "session", "previous", "think_ms"):
        assert getattr(trace, name).tolist() == getattr(expected, name).tolist()


def test_text(warmset, tmp_path):
    ended = warmset("trace", "import", WEKA / "relative.jsonl", "--out", tmp_path / "t.wst")
    assert ended.code == 0
    assert ended.out == (
        f"{tmp_path}/t.wst: 7 requests in 2 sessions over 62.5 s, 904 input and 39 output tokens; "
        "12 references to 9 distinct blocks of 64 tokens\n"
    )
    assumed, no_output, content = ended.err.splitlines()
    assert assumed.startswith("assumed: The log has no common clock")
    assert no_output.startswith(f"note: no_output: 1 ({WEKA / 'relative.jsonl'}:2")
    assert content.startswith("note: content_ids: 12 (")


def test_a_log_of_lengths_says_so(warmset, tmp_path):
    path = write_rows(tmp_path / "log", *(mooncake_row(hash_ids=[]) for _ in range(3)))
    ended = warmset("trace", "import", path, "--out", tmp_path / "t.wst", "--json")
    found = json.loads(ended.out)
    assert (found["block_refs"], found["unique_blocks"], found["sessions"]) == (None, None, None)
    ended = warmset("trace", "import", path, "--out", tmp_path / "t.wst", "--force")
    assert ended.out.endswith("; lengths only: what prompts share is not in the log\n")


def test_a_trace_that_was_imported_is_opened_by_other_verbs(warmset, tmp_path):
    path = write_rows(tmp_path / "log.jsonl", *ROWS)
    imported(warmset, tmp_path, path)
    words = ("--capacity-blocks", "1,2,3,8", "--json")
    from_log, from_wst = (warmset("curve", each, *words) for each in (path, tmp_path / "t.wst"))
    assert from_wst.code == 0
    assert json.loads(from_wst.out) == json.loads(from_log.out)
    assert json.loads(from_wst.out)["unlimited"]["hit_blocks"] == 2


def test_formats(warmset):
    ended = warmset("trace", "import", "--formats")
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    assert [line.split()[0] for line in lines] == list(FORMATS)
    assert all(line.endswith(format_named(line.split()[0]).format.TITLE) for line in lines)


# --- options ---------------------------------------------------------------------------------------


def test_a_file_that_is_there_stays(warmset, tmp_path, logs):
    (tmp_path / "t.wst").write_text("mine")
    ended = warmset("trace", "import", logs, "--out", tmp_path / "t.wst")
    assert ended.code == 2
    assert ended.err == (
        f"warmset: --out {tmp_path}/t.wst: is there already: give another name, or --force to replace it\n"
    )
    assert (tmp_path / "t.wst").read_text() == "mine"
    assert warmset("trace", "import", logs, "--out", tmp_path / "t.wst", "--force").code == 0
    assert read_wst(tmp_path / "t.wst").num_requests == 5


def test_an_import_that_fails_leaves_what_was_there(warmset, tmp_path):
    (tmp_path / "t.wst").write_text("mine")
    path = write_rows(tmp_path / "log", *ROWS, {"timestamp": 0})
    assert warmset("trace", "import", path, "--out", tmp_path / "t.wst", "--force").code == 2
    assert (tmp_path / "t.wst").read_text() == "mine"
    assert files_in(tmp_path) == ["log", "t.wst"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--out", "none/t.wst"], "--out none/t.wst: there is no folder none"),
        (["--out", "."], "--out .: is a folder: name a file in it"),
        (["--out", ".", "--force"], "--out .: is a folder: name a file in it"),
        (["--out", "/", "--force"], "--out /: is a folder: name a file in it"),
        (["--out", "x" * 300], "cannot be written: File name too long"),
        ([], "--out is missing: name the .wst file to write"),
        (["--out"], "Option '--out' requires an argument."),
        (["--out", "t.wst", "--colour"], "No such option '--colour'"),
        (["--out", "t.wst", "--block-tokens", "many"], "'many' is not a valid integer"),
    ],
)
def test_places_and_options_that_are_refused(warmset, logs, tmp_path, monkeypatch, words, says):
    monkeypatch.chdir(tmp_path)
    ended = warmset("trace", "import", "logs", *words)
    assert (ended.code, ended.out) == (2, "")
    assert says in ended.err
    assert ended.err.count("\n") == 1
    assert files_in(tmp_path) == ["logs"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--format", "arrow"], f"--format arrow: it must be one of {', '.join(FORMATS)}"),
        (["--block-tokens", "0"], "--block-tokens 0: a block holds at least 1 token"),
        (["--block-tokens", "-5"], "--block-tokens -5: a block holds at least 1 token"),
        (["--block-tokens", "9" * 30], f"--block-tokens {'9' * 30}: it must be at most 1073741824"),
        (["--chars-per-token", "0"], "--chars-per-token 0.0: it must be above 0"),
        (["--chars-per-token", "nan"], "--chars-per-token nan: it must be above 0"),
        (["--chars-per-token", "inf"], "--chars-per-token inf: it must be above 0"),
        (
            ["--session-gap", "-1"],
            "--session-gap -1: it must be at least 0 and at most 31622400 seconds, a year",
        ),
        (["--session-gap", "1e9"], "--session-gap 1e+09: it must be at least 0 and at most 31622400 seconds"),
        (["--session-gap", "nan"], "--session-gap nan: it must be a number of seconds"),
        (["--session-gap", "inf"], "--session-gap inf: it must be a number of seconds"),
        (["--max-bad-rows", "1"], "--max-bad-rows 1.0: it must be at least 0 and below 1"),
        (["--max-bad-rows", "-0.1"], "--max-bad-rows -0.1: it must be at least 0 and below 1"),
        (["--max-bad-rows", "nan"], "--max-bad-rows nan: it must be at least 0 and below 1"),
    ],
)
def test_values_that_are_refused(warmset, tmp_path, logs, words, says):
    assert refused(warmset, tmp_path, logs, *words).startswith(says)


def test_nothing_is_named(warmset, tmp_path):
    says = "no log given: name files, folders, patterns, or - for stdin"
    assert refused(warmset, tmp_path) == says


def test_a_format_that_is_forced(warmset, tmp_path):
    path = write_rows(tmp_path / "log", {"a": 1}, *ROWS)
    assert "rows with the fields 'a' are no request log that is known" in refused(warmset, tmp_path, path)
    says = refused(warmset, tmp_path, path, "--format", "mooncake")
    assert says == f"{path}:1: timestamp is missing"
    found = imported(warmset, tmp_path, path, "--format", "mooncake", "--max-bad-rows", "0.2")
    assert found["requests"] == 5
    assert found["findings"][0] == {
        "code": "bad_rows",
        "count": 1,
        "first_example": f"{path}:1: timestamp is missing",
    }


def test_a_gap_between_sessions(warmset, tmp_path):
    found = imported(warmset, tmp_path, WEKA / "relative.jsonl", "--session-gap", "0.5")
    assert found["span_ms"] == 9_500
    assert "0.5 s apart" in found["assumptions"][0]


def test_the_size_of_blocks_is_the_logs_own(warmset, tmp_path):
    says = refused(warmset, tmp_path, WEKA / "relative.jsonl", "--block-tokens", "16")
    assert says == (
        f"{WEKA / 'relative.jsonl'}:1: block_size is 64: leave --block-tokens 16 out, and reblock the trace"
    )


# --- logs that are refused -------------------------------------------------------------------------


def test_two_formats_in_a_folder(warmset, tmp_path, logs):
    (logs / "d.jsonl").write_bytes((WEKA / "relative.jsonl").read_bytes())
    assert refused(warmset, tmp_path, logs) == (
        f"{logs}/d.jsonl: is weka, but {logs}/a.jsonl is mooncake: "
        "import them apart, then warmset trace merge"
    )


def test_an_empty_file_in_a_folder_is_counted(warmset, tmp_path, logs):
    (logs / "aa.jsonl").write_bytes(b"")
    (logs / "z.jsonl.gz").write_bytes(gzip.compress(b"\n\n"))
    found = imported(warmset, tmp_path, logs)
    assert found["requests"] == 5
    assert found["findings"] == [
        {"code": "empty_files", "count": 2, "first_example": f"{logs}/aa.jsonl"},
    ]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", ": holds no requests"),
        (b"\n \n", ": holds no requests"),
        (b"\0\1\2" * 50, ": a binary file, and no request log that is known"),
        (b"PAR1" + bytes(range(256)), ": the Parquet or Arrow file is broken: "),
        (b"hello\nworld\n", ": is no request log that is known"),
        (b'{"a": 1, "b": 2}\n', ": rows with the fields 'a, b' are no request log that is known"),
        (b'{\n"a": 1}', ": is no request log that is known"),
        (gzip.compress(b"x" * 1000)[:20], ":1: the gzip stream is broken: "),
        (b"\xff\xfe" * 30, ": is no request log that is known"),
    ],
    ids=["empty", "blank", "binary", "parquet", "text", "rows", "document", "cut_gzip", "no_utf8"],
)
def test_logs_that_are_refused(warmset, tmp_path, content, says):
    path = tmp_path / "log"
    path.write_bytes(content)
    text = refused(warmset, tmp_path, path)
    assert text.startswith(f"{path}{says}")
    assert "Traceback" not in text


def test_names_that_stand_for_nothing(warmset, tmp_path):
    (tmp_path / "empty").mkdir()
    for name in ("none.jsonl", "*.csv", "empty", ""):
        says = refused(warmset, tmp_path, tmp_path / name if name else "")
        assert "cannot be read: " in says
        assert "no such file" in says or "holds no files" in says


def test_too_many_bad_rows(warmset, tmp_path):
    path = write_rows(tmp_path / "log", *ROWS, {"timestamp": 7, "input_length": -1}, {"timestamp": 8})
    assert refused(warmset, tmp_path, path) == (
        f"{path}:6: output_length is missing (2 of 7 rows cannot be used)"
    )


def test_a_cut_file_is_named_with_its_line(warmset, tmp_path):
    rows = "".join(f"{json.dumps(mooncake_row(timestamp=n, hash_ids=[n, 7 * n + 1]))}\n" for n in range(5000))
    path = tmp_path / "log.gz"
    whole = gzip.compress(rows.encode())
    path.write_bytes(whole[: len(whole) // 2])
    line = re.match(
        r":(\d+): the gzip stream is broken: ", refused(warmset, tmp_path, path).removeprefix(str(path))
    )
    assert 1000 < int(line.group(1)) < 4000


def test_a_log_is_not_replaced_by_its_trace(warmset, tmp_path):
    log = write_rows(tmp_path / "log.jsonl", mooncake_row())
    before = log.read_bytes()
    ended = warmset("trace", "import", log, "--out", tmp_path / "." / "log.jsonl", "--force")
    assert ended.code == 2
    assert "is one of the logs to read" in ended.err
    assert log.read_bytes() == before
