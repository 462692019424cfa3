"""From a name to a trace: what is opened how, what it is called, and what a choice must agree with."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from tests.support.traces import mooncake_row, write_rows
from tests.support.wst import npy, pack
from warmset.errors import InputError
from warmset.trace import Provenance, ReadOptions, open_trace, read_trace, write_wst
from warmset.trace.readers import FORMATS, format_named
from warmset.trace.reading import find_logs
from warmset.trace.sample import SAMPLE_NAME

WEKA = Path(__file__).parents[2] / "data/traces/weka"


@pytest.fixture
def log(tmp_path) -> Path:
    return write_rows(tmp_path / "log.jsonl", *(mooncake_row(timestamp=n) for n in range(3)))


@pytest.fixture
def wst(tmp_path) -> Path:
    write_wst(read_trace([WEKA / "relative.jsonl"]), tmp_path / "t.wst")
    return tmp_path / "t.wst"


def refusal(function, *arguments, **options) -> str:
    with pytest.raises(InputError) as caught:
        function(*arguments, **options)
    text = str(caught.value)
    assert "\n" not in text
    return text


# --- opening ---------------------------------------------------------------------------------------


def test_the_sample_by_its_name():
    assert open_trace(SAMPLE_NAME).num_requests == 12_031
    assert open_trace(SAMPLE_NAME, 512).num_requests == 12_031


def test_a_wst(wst):
    assert open_trace(str(wst)).num_requests == 7
    assert open_trace(str(wst), 64).block_tokens == 64
    other = wst.rename(wst.with_name("any name"))
    assert open_trace(str(other)).num_requests == 7


def test_a_log(log):
    assert open_trace(str(log)).block_tokens == 512
    short = write_rows(log, *(mooncake_row(input_length=32, hash_ids=[0, n]) for n in range(9)))
    assert open_trace(str(short), 16).block_tokens == 16


def test_a_block_size_that_is_not_what_the_ids_cover(wst):
    says = "its ids cover {} tokens each, not 16: warmset trace reblock changes that"
    assert refusal(open_trace, SAMPLE_NAME, 16) == f"{SAMPLE_NAME}: {says.format(512)}"
    assert refusal(open_trace, str(wst), 16) == f"{wst}: {says.format(64)}"
    path = WEKA / "relative.jsonl"
    assert refusal(open_trace, str(path), 16).startswith(
        f"{path}:1: block_size is 64: leave --block-tokens 16"
    )


def test_a_wst_that_is_broken_is_no_log(wst):
    wst.write_bytes(wst.read_bytes()[:-100])
    assert refusal(open_trace, str(wst)).startswith(f"{wst}: is no whole .wst file: ")


def test_another_zip_is_no_wst(tmp_path):
    path = pack(tmp_path / "t.wst", {"a.npy": npy(np.arange(3))})
    assert refusal(open_trace, str(path)).startswith(
        f"{path}: a binary file, and no request log that is known"
    )


def test_a_name_that_stands_for_nothing(tmp_path):
    assert "no such file" in refusal(open_trace, str(tmp_path / "none"))
    assert "no such file" in refusal(open_trace, "")
    assert "cannot be read: " in refusal(open_trace, "x" * 5000)


# --- logs ------------------------------------------------------------------------------------------


def test_what_a_trace_is_called(tmp_path, log):
    assert read_trace([log]).provenance == Provenance(name="log.jsonl", source="Mooncake JSONL")
    (tmp_path / "empty").touch()
    many = read_trace([log, tmp_path / "empty"])
    assert many.provenance.name == f"{tmp_path.name}: 2 files"
    named = Provenance(name="mine", licence="MIT")
    assert read_trace([log], provenance=named).provenance == Provenance("mine", "Mooncake JSONL", "MIT")
    named = Provenance(name="mine", source="there")
    assert read_trace([log], provenance=named).provenance == named


def test_empty_logs_are_left_out_and_counted(tmp_path, log):
    (tmp_path / "a").touch()
    (tmp_path / "b").write_bytes(gzip.compress(b"\n"))
    logs = find_logs([tmp_path], None, 0.01)
    assert [source.path for source in logs.inputs] == [log]
    assert [(each.code, each.count) for each in logs.tally.findings()] == [("empty_files", 2)]
    assert logs.found.name == "mooncake"


def test_only_empty_logs(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).touch()
    assert refusal(read_trace, [tmp_path]) == f"{tmp_path}/a: holds no requests"
    assert refusal(read_trace, [tmp_path], "mooncake") == f"{tmp_path}/a: holds no requests"


def test_a_forced_format_need_not_fit(tmp_path, log):
    (tmp_path / "b").write_bytes((WEKA / "relative.jsonl").read_bytes())
    assert "import them apart" in refusal(read_trace, [tmp_path])
    says = refusal(read_trace, [tmp_path], "mooncake")
    assert says == f"{tmp_path}/b:1: timestamp is missing (2 of 5 rows cannot be used)"


def test_a_format_that_is_none(log):
    says = f"--format arrow: it must be one of {', '.join(FORMATS)}"
    assert refusal(read_trace, [log], "arrow") == says
    assert refusal(read_trace, [log], "../mooncake").startswith("--format ../mooncake: it must be one of ")


def test_too_many_bad_rows(log):
    write_rows(log, *(mooncake_row(timestamp=n) for n in range(99)), mooncake_row(input_length=-1))
    assert read_trace([log]).findings[0].code == "bad_rows"
    says = refusal(read_trace, [log], options=ReadOptions(bad_share=0.009))
    assert says.startswith(f"{log}:100: input_length is -1")


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_whole(name):
    """What `--formats` prints and what an import calls."""
    module = format_named(name).format
    assert module.TITLE
    assert module.TITLE.strip() == module.TITLE
    assert callable(module.matches)
    assert callable(module.read)


# --- choices ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ({"block_tokens": 0}, "--block-tokens 0: a block holds at least 1 token"),
        ({"block_tokens": 2**30 + 1}, "--block-tokens 1073741825: it must be at most 1073741824"),
        ({"chars_per_token": 0.0}, "--chars-per-token 0.0: it must be above 0"),
        ({"chars_per_token": float("nan")}, "--chars-per-token nan: it must be above 0"),
        ({"bad_share": 1.0}, "--max-bad-rows 1.0: it must be at least 0 and below 1"),
        ({"bad_share": float("nan")}, "--max-bad-rows nan: it must be at least 0 and below 1"),
        ({"session_gap_ms": -1}, "--session-gap -0.001: it must be at least 0 and at most 31622400 seconds"),
        (
            {"session_gap_ms": 10**18},
            "--session-gap 1e+15: it must be at least 0 and at most 31622400 seconds",
        ),
    ],
    ids=str,
)
def test_choices_that_no_format_could_use(choice, says):
    assert refusal(ReadOptions, **choice).startswith(says)


def test_choices_at_their_limits():
    ReadOptions(block_tokens=1, chars_per_token=1e-9, bad_share=0.0, session_gap_ms=0)
    ReadOptions(block_tokens=2**30, chars_per_token=1e9, bad_share=0.999, session_gap_ms=366 * 86_400_000)
