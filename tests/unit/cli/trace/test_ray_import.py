"""`warmset trace import --ray`: a cluster of two nodes on this machine reads what this process would read."""

import contextlib
import gzip
import importlib.util
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.traces import mooncake_row, write_rows
from tests.support.weka import WEKA_SAMPLE
from warmset.cli.trace import ray_import
from warmset.cli.trace.ray_import import read_on_ray
from warmset.errors import InputError, TraceFormatError
from warmset.trace import ReadOptions, Trace, read_trace, read_wst
from warmset.trace.forest import OPTIONAL_COLUMNS

HAS_RAY = importlib.util.find_spec("ray") is not None
needs_ray = pytest.mark.skipif(not HAS_RAY, reason="needs Ray: pip install 'warmset[ray]'")
COLUMNS = (
    *("node_parent", "node_depth", "arrival_ms", "input_tokens", "output_tokens", "leaf", "num_blocks"),
    *OPTIONAL_COLUMNS,
)
OPTIONS = ReadOptions(session_gap_ms=5000)
OBJECT_STORE_BYTES = 100 * 2**20


@contextlib.contextmanager
def cluster() -> Iterator[str]:
    """The address of a head and a worker of one core each."""
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": OBJECT_STORE_BYTES}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        nodes = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
        try:
            nodes.add_node(**node)
            nodes.wait_for_nodes()
            yield nodes.address
        finally:
            nodes.shutdown()


def assert_same(found: Trace, expected: Trace) -> None:
    for name in COLUMNS:
        one, other = getattr(found, name), getattr(expected, name)
        assert (one is None) == (other is None), name
        if other is not None:
            assert one.dtype == other.dtype, name
            assert (one == other).all(), name
    assert found.findings == expected.findings
    assert found.provenance == expected.provenance
    assert (found.kind_names, found.model_names) == (expected.kind_names, expected.model_names)


def mooncake_parts(folder: Path) -> Path:
    """Six files that share prompts, out of order in time, with odd and empty ones among them."""
    folder.mkdir()
    for part in range(6):
        rows = [
            mooncake_row(
                timestamp=100 * (37 * (part + 6 * turn) % 50),
                output_length=turn % 2,
                hash_ids=[0, turn % 4, 10 + (part + turn) % 5],
                input_length=1200,
                session_id=f"s{(part + turn) % 7}",
            )
            for turn in range(20 + part)
        ]
        write_rows(folder / f"part-{part}.jsonl", *rows)
    (folder / "part-6.jsonl").write_bytes(b"")
    return folder


# --- on the cluster --------------------------------------------------------------------------------


def mooncake_in_parts(address, tmp_path):
    folder = mooncake_parts(tmp_path / "parts")
    expected = read_trace([folder], options=OPTIONS)
    assert expected.num_requests == 135
    assert {finding.code for finding in expected.findings} >= {"empty_files", "no_output", "unsorted_rows"}
    assert_same(read_on_ray([str(folder)], None, OPTIONS, address), expected)


def weka_sessions_split_into_files(address, tmp_path, shared, warmset):
    """As the command; names of a folder of this process mean the same on every node."""
    with gzip.open(shared / WEKA_SAMPLE) as lines:
        sessions = lines.read().splitlines(keepends=True)
    folder = tmp_path / "sessions"
    folder.mkdir()
    for part, start in enumerate((0, 1, 5, 20, 21, 40)):
        stop = (1, 5, 20, 21, 40, 49)[part]
        (folder / f"{part}.jsonl").write_bytes(b"".join(sessions[start:stop]))
    with contextlib.chdir(tmp_path):
        ended = warmset("trace", "import", "sessions", "--out", "t.wst", "--ray-address", address)
    assert ended.code == 0, ended.err
    assert ended.out.startswith("t.wst: 1,620 requests in 49 sessions over ")
    found = read_wst(tmp_path / "t.wst")
    assert_same(found, read_trace([folder]))
    alone = read_trace([shared / WEKA_SAMPLE])
    assert (found.num_requests, found.num_nodes) == (alone.num_requests, alone.num_nodes) == (1620, 155_286)
    for name in ("arrival_ms", "leaf", "node_parent", "session", "previous"):
        assert (getattr(found, name) == getattr(alone, name)).all(), name


def what_a_worker_refuses_comes_back_in_one_line(address, tmp_path, warmset):
    folder = mooncake_parts(tmp_path / "parts")
    wrong = [mooncake_row(timestamp=n, input_length=64, hash_ids=[n, n + 1, n + 2, n + 3]) for n in range(50)]
    write_rows(folder / "part-3.jsonl", *wrong)
    with pytest.raises(TraceFormatError) as caught:
        read_trace([folder])
    ended = warmset("trace", "import", folder, "--out", tmp_path / "t.wst", "--ray-address", address)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"warmset: {caught.value}\n"
    assert "try --block-tokens 16" in ended.err
    assert not (tmp_path / "t.wst").exists()


def the_share_of_bad_rows_is_that_of_all_files(address, tmp_path):
    """One file is bad to a third, which is one row in a hundred of all; two such files are too many."""
    good = [mooncake_row(timestamp=n) for n in range(100)]
    write_rows(tmp_path / "a", *good)
    write_rows(tmp_path / "b", mooncake_row(), mooncake_row(), mooncake_row(input_length=-1))
    expected = read_trace([tmp_path])
    assert expected.findings[0].code == "bad_rows"
    assert_same(read_on_ray([str(tmp_path)], None, ReadOptions(), address), expected)
    write_rows(tmp_path / "c", mooncake_row(), mooncake_row(output_length=-1))
    with pytest.raises(TraceFormatError) as here:
        read_trace([tmp_path])
    with pytest.raises(TraceFormatError) as there:
        read_on_ray([str(tmp_path)], None, ReadOptions(), address)
    assert str(there.value) == str(here.value)
    assert re.fullmatch(r".*/b:3: input_length is -1: .* \(2 of 105 rows cannot be used\)", str(here.value))


def a_worker_that_could_not_even_say_what_is_wrong(address, tmp_path, warmset, kind):
    import ray

    lost = ray.exceptions.WorkerCrashedError()
    no_warmset = ray.exceptions.RayTaskError("f", "a\nb", ModuleNotFoundError("No module named 'warmset'"))
    error, says = {
        "lost": (lost, "a worker was lost: "),
        "no_warmset": (
            no_warmset,
            "a worker cannot read logs: No module named 'warmset': install warmset on",
        ),
    }[kind]

    def fail(_: object) -> None:
        raise error

    write_rows(tmp_path / "a", mooncake_row())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ray, "get", fail)
        ended = warmset(
            "trace", "import", tmp_path / "a", "--out", tmp_path / "t.wst", "--ray-address", address
        )
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"warmset: --ray {address}: {says}")
    assert ended.err.count("\n") == 1


@needs_ray
def test_on_a_cluster(tmp_path, warmset, request, subtests):
    """One test, so that tests side by side start one cluster and not several."""

    def folder(name: str) -> Path:
        (tmp_path / name).mkdir()
        return tmp_path / name

    with cluster() as address:
        with subtests.test("mooncake"):
            mooncake_in_parts(address, folder("mooncake"))
        with subtests.test("weka"):
            shared = request.getfixturevalue("shared")
            weka_sessions_split_into_files(address, folder("weka"), shared, warmset)
        with subtests.test("refusal"):
            what_a_worker_refuses_comes_back_in_one_line(address, folder("refusal"), warmset)
        with subtests.test("bad rows"):
            the_share_of_bad_rows_is_that_of_all_files(address, folder("bad"))
        for kind in ("lost", "no_warmset"):
            with subtests.test(kind):
                a_worker_that_could_not_even_say_what_is_wrong(address, folder(kind), warmset, kind)


# --- without one -----------------------------------------------------------------------------------


@needs_ray
@pytest.mark.parametrize(
    "nowhere", ["127.0.0.1:1", "auto", "nowhere", "ray://127.0.0.1:1", "h:port", "127.0.0.1:99999", ""]
)
def test_no_cluster_answers(tmp_path, warmset, nowhere, monkeypatch):
    """At once: Ray itself waits minutes for an address where nothing listens."""
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")  # what `auto` stands for
    write_rows(tmp_path / "a", mooncake_row())
    start_s = time.monotonic()
    ended = warmset("trace", "import", tmp_path / "a", "--out", tmp_path / "t.wst", "--ray-address", nowhere)
    assert time.monotonic() - start_s < 10
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"warmset: --ray {nowhere}: no cluster answers: ")
    assert ended.err.endswith("start one with ray start --head\n")
    assert ended.err.count("\n") == 1


def test_ray_is_not_installed(tmp_path, warmset, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    write_rows(tmp_path / "a", mooncake_row())
    ended = warmset("trace", "import", tmp_path / "a", "--out", tmp_path / "t.wst", "--ray")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "warmset: --ray needs Ray: pip install 'warmset[ray]'\n"


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["-"], "--ray: stdin is here and not on the cluster: write it to a file that all nodes see"),
        (["none.jsonl"], "none.jsonl: cannot be read: "),
        (["empty"], "empty: holds no requests"),
    ],
)
def test_what_no_cluster_is_asked_for(tmp_path, monkeypatch, names, says):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").touch()
    with pytest.raises(InputError) as caught:
        read_on_ray(names, None, OPTIONS, "auto")
    assert str(caught.value).startswith(says)


class TextFormat:
    TITLE = "text"
    prompts = staticmethod(lambda *_: iter(()))


class LinkedFormat:
    TITLE = "linked"
    FILES_REFER_TO_EACH_OTHER = True


@pytest.mark.parametrize(
    ("module", "options", "says"),
    [
        (LinkedFormat, OPTIONS, "--ray: files of made-up refer to one another: import them without --ray"),
        (
            TextFormat,
            OPTIONS,
            "--ray: text is cut alike on all nodes only if told how: give --tokenizer or --chars-per-token",
        ),
    ],
)
def test_formats_of_which_a_file_cannot_be_read_alone(module, options, says):
    from warmset.trace.readers import Detected
    from warmset.trace.reading import Logs
    from warmset.trace.tally import Tally

    logs = Logs([], Detected("made-up", module), Tally(), "t")
    with pytest.raises(InputError) as caught:
        ray_import._check_parts(logs, options)
    assert str(caught.value) == says
    if module is TextFormat:
        ray_import._check_parts(logs, ReadOptions(chars_per_token=4.0))
