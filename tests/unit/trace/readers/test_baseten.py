"""Baseten's Parquet and Arrow files, made here: their columns are those of AIPerf's model of the format."""

import builtins
import gzip
import re
import sys
from pathlib import Path

import pyarrow as pa
import pytest
import zstandard
from pyarrow import ipc, parquet

from tests.support.row_logs import findings, is_matched_by, read_log, refusal

START_MS = 1_760_000_000_000


def columns(**changes: object) -> dict[str, object]:
    """Four requests: the second goes on from the first, the third has another model, the fourth no hashes."""
    table = {
        "timestamp_start_unix_ms": [START_MS, START_MS + 1500, START_MS + 1500, START_MS + 9000],
        "prompt": ["never read"] * 4,
        "input_tokens": [70, 100, 64, 10],
        "output_tokens": [5, 6, 7, 0],
        "total_hashes": pa.array(
            [[2**64 - 1, 2], [2**64 - 1, 2, 3], [2**64 - 1, 2], None], pa.list_(pa.uint64())
        ),
        "block_size": [32, 32, 32, 32],
        "provided_session_id": ["a", "a", None, None],
        "poor_man_session_id": [1, 1, 1, 2],
        "duration_e2e_ms": [900, None, 30, 40],
        "cached_tokens_reference": [0, 64, None, 0],
        "model_name": ["m", "m", "n", "m"],
        "request_canceled": [0, 0, 0, 1],
    }
    return table | changes


def write_parquet(path: Path, **changes: object) -> Path:
    held = {name: values for name, values in columns(**changes).items() if values is not ...}
    parquet.write_table(pa.table(held), path, row_group_size=2)
    return path


def write_arrow(path: Path, **changes: object) -> Path:
    held = {name: values for name, values in columns(**changes).items() if values is not ...}
    table = pa.table(held)
    with ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=3)
    return path


@pytest.mark.parametrize("write", [write_parquet, write_arrow])
def test_the_columns(tmp_path, write):
    trace = read_log("baseten", write(tmp_path / "t"))
    assert trace.block_tokens == 32
    assert trace.provenance.epoch_ms == START_MS
    assert trace.arrival_ms.tolist() == [0, 1500, 1500, 9000]
    assert trace.input_tokens.tolist() == [70, 100, 64, 10]
    assert trace.output_tokens.tolist() == [5, 6, 7, 0]
    assert trace.num_blocks.tolist() == [2, 3, 2, 0]
    assert trace.node_parent.tolist() == [-1, 0, 1, -1, 3]
    assert trace.leaf.tolist() == [1, 2, 4, -1]
    assert trace.session.tolist() == [0, 0, 1, 2]
    assert trace.duration_ms.tolist() == [900, -1, 30, 40]
    assert trace.cached_tokens.tolist() == [0, 64, -1, 0]
    assert [trace.model_names[model] for model in trace.model] == ["m", "m", "n", "m"]
    assert findings(trace) == {
        "no_hashes": (1, "row 4: only its length is known"),
        "canceled_requests": (1, "row 4"),
        "no_output": (1, "row 4"),
    }


@pytest.mark.parametrize("write", [write_parquet, write_arrow])
@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress], ids=["gz", "zst"])
def test_packed_files(tmp_path, write, pack):
    path = tmp_path / "t.packed"
    path.write_bytes(pack(write(tmp_path / "t").read_bytes()))
    assert read_log("baseten", path).num_requests == 4


@pytest.mark.parametrize("write", [write_parquet, write_arrow])
def test_it_is_told_by_its_magic(tmp_path, write):
    assert is_matched_by(write(tmp_path / "t")) == ["baseten"]


def test_only_what_is_needed_must_be_there(tmp_path):
    names = list(columns())[4:]
    path = write_parquet(tmp_path / "t", **dict.fromkeys(names, ...))
    trace = read_log("baseten", path)
    assert not trace.has_blocks
    assert (trace.session, trace.model, trace.duration_ms) == (None, None, None)
    assert findings(trace)["no_hashes"][0] == 4


@pytest.mark.parametrize("kind", [pa.int64(), pa.int32(), pa.string()], ids=str)
def test_hashes_of_other_types(tmp_path, kind):
    rows = [[1, 2], [1, 2, 3], [1, 4], []]
    if kind == pa.string():
        rows = [[str(each) for each in row] for row in rows]
    path = write_parquet(tmp_path / "t", total_hashes=pa.array(rows, pa.list_(kind)), model_name=...)
    assert read_log("baseten", path).node_parent.tolist() == [-1, 0, 1, 0]


def test_rows_in_many_batches(tmp_path):
    count = 2000
    held = {
        "timestamp_start_unix_ms": [START_MS + n for n in range(count)],
        "input_tokens": [32] * count,
        "output_tokens": [1] * count,
        "total_hashes": [[n] for n in range(count)],
        "block_size": [32] * count,
    }
    parquet.write_table(pa.table(held), tmp_path / "t")
    trace = read_log("baseten", tmp_path / "t")
    assert trace.leaf.tolist() == list(range(count))


def test_the_size_of_the_log_and_of_the_flag(tmp_path):
    path = write_parquet(tmp_path / "t")
    assert read_log("baseten", path, block_tokens=32).block_tokens == 32
    says = ":1: block_size is 32: leave --block-tokens 16 out, and reblock the trace"
    assert refusal("baseten", path, block_tokens=16) == says
    path = write_parquet(tmp_path / "t", block_size=...)
    assert refusal("baseten", path).startswith(
        ":1: block_size is missing: add it, or give --block-tokens (3 of"
    )
    assert read_log("baseten", path, block_tokens=32).block_tokens == 32


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"input_tokens": [70.0, float("nan"), 64, 10]}, ":2: input_tokens is nan, not a whole number"),
        ({"input_tokens": [70, None, 64, 10]}, ":2: input_tokens is None, not a whole number"),
        ({"input_tokens": [70, -1, 64, 10]}, r":2: input_tokens is -1: it must lie between 0 and \d+"),
        ({"input_tokens": ["70", "1", "64", "10"]}, r":1: input_tokens is '70', .* \(4 of 4 rows .*\)"),
        ({"output_tokens": [5, 2**41, 7, 0]}, r":2: output_tokens is \d+: it must lie between 0 and \d+"),
        ({"block_size": [32, 64, 32, 32]}, ":2: block_size is 64, and 32 before: import .*"),
        (
            {"total_hashes": pa.array([[1], [None], [1], [1]], pa.list_(pa.int64()))},
            ":2: total_hashes has a gap",
        ),
        (
            {"total_hashes": [[1.5]] * 4},
            ": total_hashes is a column of list<.*double>, not of lists of hashes",
        ),
        ({"total_hashes": [1, 2, 3, 4]}, ": total_hashes is a column of int64, not of lists of hashes"),
        ({"total_hashes": [["", "a"]] * 4}, r":1: total_hashes\[0\] is empty .*"),
        ({"input_tokens": ...}, ": is no Baseten trace: it has no column input_tokens, but 'timestamp_.*'"),
    ],
    ids=lambda value: value[:60] if isinstance(value, str) else "_".join(value),
)
def test_a_bad_row(tmp_path, changes, why):
    assert re.fullmatch(why, refusal("baseten", write_parquet(tmp_path / "t", **changes)))


@pytest.mark.parametrize("write", [write_parquet, write_arrow])
@pytest.mark.parametrize("share", [0.02, 0.5, 0.9, 0.999])
def test_a_cut_file(tmp_path, write, share):
    whole = write(tmp_path / "t").read_bytes()
    path = tmp_path / "cut"
    path.write_bytes(whole[: int(share * len(whole))])
    assert re.fullmatch(r": the Parquet or Arrow file is broken: .+: copy it again", refusal("baseten", path))


def test_a_cut_packing(tmp_path):
    path = tmp_path / "t.gz"
    path.write_bytes(gzip.compress(write_parquet(tmp_path / "t").read_bytes())[:-200])
    assert "the gzip stream is broken" in refusal("baseten", path)


def test_without_pyarrow(tmp_path, monkeypatch):
    path = write_parquet(tmp_path / "t")
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.delitem(sys.modules, name)
    whole_import = builtins.__import__

    def refuse(name: str, *rest: object, **more: object) -> object:
        if name.partition(".")[0] == "pyarrow":
            raise ImportError(name)
        return whole_import(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert (
        refusal("baseten", path)
        == ": reading Parquet and Arrow needs pyarrow: pip install 'warmset[parquet]'"
    )
