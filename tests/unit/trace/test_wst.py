"""`.wst`: all that a trace holds goes in and comes out, and nothing else is taken for one."""

import struct
import zipfile
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.traces import make_trace, prompts, workloads
from tests.support.wst import column, is_mapped, members, npy, pack, with_column, with_header
from warmset.errors import Finding, InputError
from warmset.trace import Provenance, Trace, TraceBuilder, read_wst, sample_trace, write_wst
from warmset.trace.forest import OPTIONAL_COLUMNS
from warmset.trace.wst import read_header, starts_like_wst

COLUMNS = (
    *("node_parent", "node_depth", "arrival_ms", "input_tokens", "output_tokens", "leaf", "num_blocks"),
    *OPTIONAL_COLUMNS,
)


def full_trace() -> Trace:
    """Every column, every field of the provenance, findings and names."""
    builder = TraceBuilder(16, times_are_epoch=True, assumptions=["Four characters are a token."])
    for number in range(6):
        builder.add(
            arrival_ms=1_750_000_000_000 + 10 * number,
            input_tokens=40 + number,
            output_tokens=number,
            ids=[1, 2, number % 3],
            session=f"s{number % 2}",
            kind=["main", "cron"][number % 2],
            model="模型",
            key=number,
            previous_key=number - 2 if number > 1 else None,
            think_ms=number - 1,
            duration_ms=5 * number,
            cached_tokens=16 * (number % 2),
        )
    builder.tally.note("no_output", "log:1: “odd”", 3)
    provenance = Provenance(
        name="n", source="s", licence="l", citation="c “q”", epoch_ms=None, assumptions=("Assumed.",)
    )
    return builder.build(provenance)


def lengths_only() -> Trace:
    return make_trace(prompts([], []))


TRACES = {"full": full_trace, "lengths_only": lengths_only, "bare": lambda: make_trace(prompts([1, 2], [1]))}


def assert_same(found: Trace, expected: Trace) -> None:
    for field in fields(Trace):
        one, other = getattr(found, field.name), getattr(expected, field.name)
        if isinstance(other, np.ndarray):
            assert one.dtype == other.dtype, field.name
            assert one.tolist() == other.tolist(), field.name
        else:
            assert one == other, field.name


@pytest.fixture
def path(tmp_path) -> Path:
    """A file of every column."""
    write_wst(full_trace(), tmp_path / "t.wst")
    return tmp_path / "t.wst"


def refusal(path: Path) -> str:
    """The one line that says what is wrong with this file."""
    with pytest.raises(InputError) as caught:
        read_wst(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    assert len(text) < 500
    return text.removeprefix(f"{path}: ")


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# --- there and back --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TRACES)
def test_round_trip(tmp_path, name):
    trace = TRACES[name]()
    write_wst(trace, tmp_path / "t.wst")
    assert_same(read_wst(tmp_path / "t.wst"), trace)


@given(workloads(), st.sets(st.sampled_from(sorted(OPTIONAL_COLUMNS))))
def test_round_trip_of_any_trace(tmp_path_factory, requests, without):
    full = make_trace(requests)
    known = {name: np.full(full.num_requests, -1, dtype) for name, dtype in OPTIONAL_COLUMNS.items()}
    trace = replace(full, **{name: values for name, values in known.items() if name not in without})
    path = tmp_path_factory.mktemp("wst") / "t.wst"
    write_wst(trace, path)
    assert_same(read_wst(path), trace)


def test_the_sample_comes_back(tmp_path):
    trace = sample_trace()
    write_wst(trace, tmp_path / "t.wst")
    assert_same(read_wst(tmp_path / "t.wst"), trace)
    assert (tmp_path / "t.wst").stat().st_size < 3 * 10**6


def test_numbers_of_64_bits_come_back(tmp_path):
    builder = TraceBuilder(2**20)
    builder.add(arrival_ms=-(2**53), input_tokens=2**40, output_tokens=2**40, duration_ms=2**53)
    builder.add(arrival_ms=2**53, input_tokens=0, output_tokens=0)
    trace = builder.build(Provenance(name="t"))
    write_wst(trace, tmp_path / "t.wst")
    assert_same(read_wst(tmp_path / "t.wst"), trace)


def test_what_was_read_can_be_written_over_itself(path):
    trace = read_wst(path)
    before = path.read_bytes()
    write_wst(trace, path)
    assert path.read_bytes() == before
    assert_same(trace, full_trace())


# --- the file --------------------------------------------------------------------------------------


def test_columns_are_mapped_aligned_and_read_only(path):
    trace = read_wst(path)
    for name in COLUMNS:
        values = getattr(trace, name)
        assert is_mapped(values), name
        assert values.flags.aligned, name
        assert not values.flags.writeable, name


def test_columns_are_npy_files_that_numpy_reads(path):
    trace = full_trace()
    with np.load(path) as archive:
        assert sorted(archive.files) == sorted([*COLUMNS, "header.json"])
        for name in COLUMNS:
            assert archive[name].tolist() == getattr(trace, name).tolist()


def test_only_the_columns_that_are_known_are_written(tmp_path):
    write_wst(lengths_only(), tmp_path / "t.wst")
    required = [f"{name}.npy" for name in COLUMNS if name not in OPTIONAL_COLUMNS]
    assert list(members(tmp_path / "t.wst")) == ["header.json", *required]


def test_the_header_is_read_alone(path):
    header = read_header(path)
    trace = full_trace()
    assert (header.schema_version, header.block_tokens) == (1, 16)
    assert (header.num_requests, header.num_nodes) == (6, 5)
    assert header.provenance == trace.provenance
    assert header.findings == trace.findings
    assert (header.kind_names, header.model_names) == (("main", "cron"), ("模型",))
    assert header.columns == COLUMNS
    parts = members(path)
    pack(path, {"header.json": parts["header.json"]})
    assert read_header(path) == header


def test_the_same_trace_gives_the_same_bytes(tmp_path):
    write_wst(full_trace(), tmp_path / "a.wst")
    write_wst(full_trace(), tmp_path / "b.wst")
    assert (tmp_path / "a.wst").read_bytes() == (tmp_path / "b.wst").read_bytes()
    with zipfile.ZipFile(tmp_path / "a.wst") as archive:
        assert {info.date_time for info in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_columns_that_do_not_lie_in_one_piece_are_written_as_they_read(tmp_path):
    trace = make_trace(prompts([1, 2], [1], [3]))
    doubled = np.repeat(trace.input_tokens, 2)[::2]
    assert not doubled.flags.c_contiguous
    write_wst(replace(trace, input_tokens=doubled), tmp_path / "t.wst")
    assert_same(read_wst(tmp_path / "t.wst"), trace)


def test_a_wst_is_told_by_its_start(tmp_path, path):
    assert starts_like_wst(path)
    other = tmp_path / "other"
    for content in (b"", b"PK\x03\x04", b'{"a": 1}', path.read_bytes()[:30]):
        other.write_bytes(content)
        assert not starts_like_wst(other)
    assert not starts_like_wst(tmp_path / "none")
    assert not starts_like_wst(tmp_path)
    pack(other, {"a.npy": b"1"})
    assert not starts_like_wst(other)


# --- writing ---------------------------------------------------------------------------------------


def test_a_file_that_is_there_is_replaced_whole(path):
    opened = read_wst(path)
    write_wst(lengths_only(), path)
    assert_same(read_wst(path), lengths_only())
    assert_same(opened, full_trace())  # what was opened before still reads the file that was
    assert files_in(path.parent) == ["t.wst"]


def test_a_write_that_fails_leaves_what_was_there(path, monkeypatch):
    before = path.read_bytes()

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(zipfile.ZipFile, "writestr", fail)
    with pytest.raises(InputError, match=r"t\.wst: cannot be written: No space left on device$"):
        write_wst(lengths_only(), path)
    assert path.read_bytes() == before
    assert files_in(path.parent) == ["t.wst"]


@pytest.mark.parametrize("place", ["none/t.wst", "folder", "file/t.wst", "x" * 300])
def test_a_place_where_nothing_can_be_written(tmp_path, place):
    (tmp_path / "folder" / "full").mkdir(parents=True)
    (tmp_path / "file").touch()
    with pytest.raises(InputError) as caught:
        write_wst(lengths_only(), tmp_path / place)
    assert str(caught.value).startswith(f"{tmp_path / place}: cannot be written: ")
    assert files_in(tmp_path) == ["file", "folder"]


def test_a_header_that_could_not_be_read_is_not_written(tmp_path):
    trace = replace(lengths_only(), findings=(Finding("odd", 1, "x" * 2**20),))
    with pytest.raises(InputError, match="cannot be written: "):
        write_wst(trace, tmp_path / "t.wst")
    assert files_in(tmp_path) == []


# --- files that are refused ------------------------------------------------------------------------

AGAIN = ": import the log again"


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04", b"PK\x05\x06" + b"\0" * 17])
def test_not_a_zip(tmp_path, content):
    (tmp_path / "t.wst").write_bytes(content)
    text = refusal(tmp_path / "t.wst")
    assert text.startswith("is no whole .wst file: ")
    assert text.endswith(AGAIN)


def test_another_zip(tmp_path):
    says = f"is a zip file, but no .wst: it has no header.json as a .wst has it{AGAIN}"
    assert refusal(pack(tmp_path / "t.wst", {"a.npy": npy(np.arange(3))})) == says
    (tmp_path / "t.wst").write_bytes(b"PK\x05\x06" + b"\0" * 18)
    assert refusal(tmp_path / "t.wst") == says


def test_no_file(tmp_path):
    assert refusal(tmp_path / "t.wst") == "cannot be read: No such file or directory"
    assert refusal(tmp_path) == "cannot be read: Is a directory"


def test_a_file_that_was_cut_anywhere(path):
    whole = path.read_bytes()
    for size in range(0, len(whole), 37):
        path.write_bytes(whole[:size])
        assert refusal(path).endswith(AGAIN)


OTHER_HEADERS: list[tuple[dict[str, Any], str]] = [
    ({"schema_version": 2}, "has schema 2, and this version reads 1: import the log again"),
    ({"schema_version": 0}, "has schema 0, and this version reads 1: import the log again"),
    ({"schema_version": ...}, "has schema None, and this version reads 1: import the log again"),
    ({"schema_version": "1"}, "has schema '1', and this version reads 1: import the log again"),
    ({"schema_version": "x" * 10_000}, "has schema 'xxx"),
    ({"more": 1}, "its header cannot be read: Object contains unknown field `more`"),
    ({"block_tokens": ...}, "its header cannot be read: Object missing required field `block_tokens`"),
    ({"block_tokens": 0}, "its header does not hold together"),
    ({"block_tokens": -16}, "its header does not hold together"),
    ({"block_tokens": 2**70}, "its header does not hold together"),
    ({"block_tokens": 1.5}, "its header cannot be read: Expected `int`, got `float`"),
    ({"num_requests": 5}, "its columns do not hold together"),
    ({"num_requests": 7}, "its columns do not hold together"),
    ({"num_requests": 0}, "its columns do not hold together"),
    ({"num_requests": -1}, "its columns do not hold together"),
    ({"num_requests": 2**70}, "its columns do not hold together"),
    ({"num_nodes": 4}, "its columns do not hold together"),
    ({"num_nodes": 6}, "its columns do not hold together"),
    ({"columns": []}, "its header does not hold together"),
    ({"columns": [*COLUMNS, "colour"]}, "its header does not hold together"),
    ({"columns": [*COLUMNS, "leaf"]}, "its header does not hold together"),
    ({"columns": COLUMNS[1:]}, "its header does not hold together"),
    ({"columns": [*COLUMNS[:-1], "../x"]}, "its header does not hold together"),
    ({"kind_names": ["main"]}, "its columns do not hold together"),
    ({"kind_names": []}, "its columns do not hold together"),
    ({"model_names": []}, "its columns do not hold together"),
    (
        {"findings": [{"code": "a", "count": 0, "first_example": ""}]},
        "its header cannot be read: finding",
    ),
    ({"provenance": {}}, "its header cannot be read: Object missing required field `name`"),
    ({"provenance": None}, "its header cannot be read: Expected `object`, got `null`"),
]


@pytest.mark.parametrize(
    ("changes", "says"),
    OTHER_HEADERS,
    ids=[f"{number}_{next(iter(changes))}" for number, (changes, _) in enumerate(OTHER_HEADERS)],
)
def test_another_header(path, changes, says):
    pack(path, with_header(members(path), **changes))
    text = refusal(path)
    assert text.startswith(says)
    assert text.endswith(AGAIN)


@pytest.mark.parametrize(
    "header",
    [b"", b"{", b"[]", b"null", b"1", b'"x"', b"\xff", b'{"schema_version": "\xff"}', b"[" * 100_000],
)
def test_a_header_that_is_no_header(path, header):
    pack(path, members(path) | {"header.json": header})
    assert refusal(path).startswith(("its header cannot be read: ", "has schema "))


def test_a_header_too_large(path):
    pack(path, members(path) | {"header.json": b" " * (2**20 + 1)})
    assert "header.json" in refusal(path)


def test_a_header_whose_bytes_changed(path):
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"block_tokens":16', b'"block_tokens":15', 1))
    assert refusal(path).startswith("its header cannot be read: ")


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_is_missing(path, name):
    parts = members(path)
    del parts[f"{name}.npy"]
    pack(path, parts)
    assert refusal(path) == f"its column {name} is broken{AGAIN}"


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize(
    "change",
    [lambda c: c[:-1], lambda c: np.append(c, c[-1]), lambda c: c[:0]],
    ids=["short", "long", "empty"],
)
def test_a_column_of_another_length(path, name, change):
    keep_type = with_column(members(path), name, lambda values: change(values).astype(values.dtype))
    pack(path, keep_type)
    assert refusal(path).endswith(AGAIN)


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize(
    "dtype", ["<i2", ">i8", ">i4", "<u8", "<u4", "<f8", "<f4", "other_int", "bool", "U2", "M8[ms]", "i4,i4"]
)
def test_a_column_of_another_type(path, name, dtype):
    def changed(values: np.ndarray) -> np.ndarray:
        other = "<i8" if values.dtype == np.int32 else "<i4"
        return np.zeros(values.size, dtype=other if dtype == "other_int" else dtype)

    pack(path, with_column(members(path), name, changed))
    assert refusal(path) == f"its column {name} is broken{AGAIN}"


@pytest.mark.parametrize("compression", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_columns_that_are_compressed(path, compression):
    pack(path, members(path), compression)
    assert refusal(path).endswith(AGAIN)


def npy_with(header: str, version: tuple[int, int] = (1, 0), size: int | None = None) -> bytes:
    text = header.encode("latin1") + b"\n"
    return b"\x93NUMPY" + bytes(version) + struct.pack("<H", size or len(text)) + text + b"\0" * 48


NO_COLUMNS = [
    b"",
    b"\x93NUMPY",
    b"\x93NUMPY\x01\x00",
    b"\x93NUMPY\x01\x00\xff\xff",
    b"not npy" * 10,
    npy_with("{'descr': '<i8', 'fortran_order': False, 'shape': (6,), }", (2, 0)),
    npy_with("{'descr': '<i8', 'fortran_order': False, 'shape': (6,), }", (9, 9)),
    npy_with("{'descr': '<i8', 'fortran_order': False, 'shape': (6,), }" + " " * 60_000),
    npy_with("{'descr': '<i8', 'fortran_order': False, 'shape': (6,), }", size=40),
    npy_with("{'descr': '<i8', 'fortran_order': False, 'shape': (-1,), }"),
    npy_with("{'descr': '<i8', 'fortran_order': False, 'shape': (6, 1), }"),
    npy_with("{'descr': '<i8', 'fortran_order': False, 'shape': (), }"),
    npy_with("{'descr': '<i8', 'fortran_order': False, 'shape': (9999999999999999999999,), }"),
    npy_with("{'descr': '<i8', 'fortran_order': False, 'shape': (6L,), }"),
    npy_with("{'descr': '<i8', 'fortran_order': False, 'shape': (True,), }"),
    npy_with("{b'descr': '<i8', 'fortran_order': False, 'shape': (6,), }"),
    npy_with("{[]: '<i8', 'fortran_order': False, 'shape': (6,), }"),
    npy_with("{'descr': '<i8', 'fortran_order': False, 'shape': (6,"),
    npy_with("{'descr': '|O', 'fortran_order': False, 'shape': (6,), }"),
    npy_with("-" * 900 + "1"),
    npy_with("(" * 900),
    npy_with("  x\n y\n  '''"),
    npy_with("\0"),
]


@pytest.mark.parametrize("content", NO_COLUMNS, ids=map(str, range(len(NO_COLUMNS))))
def test_a_member_that_is_no_column(path, content):
    pack(path, members(path) | {"arrival_ms.npy": content})
    assert refusal(path).endswith(AGAIN)


def at(place: int, value: int) -> Any:
    def changed(values: np.ndarray) -> np.ndarray:
        values[place] = value
        return values

    return changed


# The full trace: nodes 1 ─ 2 ─ 0, 1, 2 with parents -1 0 1 1 1; leaves 2 3 4 2 3 4; three blocks each.
def test_the_forest_of_the_full_trace():
    trace = full_trace()
    assert trace.node_parent.tolist() == [-1, 0, 1, 1, 1]
    assert trace.leaf.tolist() == [2, 3, 4, 2, 3, 4]
    assert trace.num_blocks.tolist() == [3] * 6


BROKEN_COLUMNS: list[tuple[str, Any]] = [
    ("node_parent", at(0, 0)),
    ("node_parent", at(1, 1)),
    ("node_parent", at(1, 4)),
    ("node_parent", at(1, 2**31 - 1)),
    ("node_parent", at(4, -2)),
    ("node_parent", at(4, -(2**31))),
    ("node_parent", at(4, -1)),
    ("node_parent", at(4, 2)),
    ("node_depth", at(0, 0)),
    ("node_depth", at(3, 2)),
    ("node_depth", lambda depth: depth + 1),
    ("leaf", at(0, 5)),
    ("leaf", at(0, -2)),
    ("leaf", at(0, 2**31 - 1)),
    ("leaf", at(0, -(2**31))),
    ("leaf", at(0, -1)),
    ("leaf", at(0, 1)),
    ("num_blocks", at(0, 2)),
    ("num_blocks", at(0, 0)),
    ("num_blocks", at(0, -3)),
    ("arrival_ms", at(1, 25)),
    ("arrival_ms", lambda times: times[::-1].copy()),
    ("arrival_ms", at(0, 2**63 - 1)),
    ("arrival_ms", at(5, -(2**63))),
    ("input_tokens", at(2, -1)),
    ("output_tokens", at(2, -1)),
    ("input_tokens", at(2, 2**60)),
    ("session", at(0, 6)),
    ("session", at(0, -2)),
    ("previous", at(0, 6)),
    ("previous", at(0, -2)),
    ("previous", at(3, 3)),
    ("kind", at(0, 2)),
    ("kind", at(0, -2)),
    ("model", at(0, 1)),
    ("think_ms", at(0, -2)),
    ("duration_ms", at(0, -2)),
    ("cached_tokens", at(0, -2)),
]


@pytest.mark.parametrize(
    ("name", "change"),
    BROKEN_COLUMNS,
    ids=[f"{number}_{name}" for number, (name, _) in enumerate(BROKEN_COLUMNS)],
)
def test_columns_that_do_not_hold_together(path, name, change):
    parts = members(path)
    assert column(parts, name).tolist() == getattr(full_trace(), name).tolist()
    pack(path, with_column(parts, name, change))
    assert refusal(path) == f"its columns do not hold together{AGAIN}"


def test_requests_without_blocks_among_those_with(tmp_path):
    trace = make_trace(prompts([], [1], [], [1, 2]))
    write_wst(trace, tmp_path / "t.wst")
    assert_same(read_wst(tmp_path / "t.wst"), trace)
    parts = members(tmp_path / "t.wst")
    pack(tmp_path / "t.wst", with_column(parts, "num_blocks", at(0, 1)))
    assert refusal(tmp_path / "t.wst") == f"its columns do not hold together{AGAIN}"


def test_a_column_in_the_place_of_another(path):
    """The directory of the archive points to a column that is whole, but not the one that it names."""
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        offsets = {info.filename: info.header_offset for info in archive.infolist()}
    place = content.rfind(b"input_tokens.npy")  # in the central directory, 46 bytes into its entry
    entry = place - 46
    assert content[entry : entry + 4] == b"PK\x01\x02"
    content[entry + 42 : entry + 46] = struct.pack("<I", offsets["output_tokens.npy"])
    path.write_bytes(content)
    assert refusal(path) == f"its column input_tokens is broken{AGAIN}"


# --- damage at random ------------------------------------------------------------------------------


def assert_holds_together(trace: Trace) -> None:
    """What everything after a reader relies on, said without the code under test."""
    assert trace.num_requests > 0
    assert trace.block_tokens >= 1
    depth: list[int] = []
    for node, parent in enumerate(trace.node_parent.tolist()):
        assert -1 <= parent < node
        depth.append(1 + (depth[parent] if parent >= 0 else 0))
    assert trace.node_depth.tolist() == depth
    assert trace.arrival_ms.tolist() == sorted(trace.arrival_ms.tolist())
    for leaf, blocks in zip(trace.leaf.tolist(), trace.num_blocks.tolist(), strict=True):
        assert blocks == (depth[leaf] if 0 <= leaf < trace.num_nodes else 0)
        assert leaf >= -1
    assert min(*trace.input_tokens.tolist(), *trace.output_tokens.tolist()) >= 0
    limits = {
        "session": trace.num_requests,
        "previous": trace.num_requests,
        "kind": len(trace.kind_names),
        "model": len(trace.model_names),
    }
    for name in OPTIONAL_COLUMNS:
        values = getattr(trace, name)
        if values is not None:
            assert values.size == trace.num_requests
            assert all(-1 <= value < limits.get(name, 2**63) for value in values.tolist())


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "t.wst"
    write_wst(full_trace(), path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def damaged(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("damaged") / "t.wst"


def read_if_it_can_be(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)  # another file: what is mapped must not change under a trace
    path.write_bytes(content)
    try:
        trace = read_wst(path)
    except InputError as error:
        text = str(error)
    else:
        assert_holds_together(trace)
        return
    assert text.startswith(f"{path}: ")
    assert "\n" not in text


@settings(max_examples=1500)
@given(data=st.data())
def test_changed_bytes_are_refused_or_harmless(whole, damaged, data):
    content = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    read_if_it_can_be(damaged, bytes(content))


def test_each_byte_of_the_frame_changed(whole, damaged):
    """Every byte that is no value of a column."""
    values = set()
    with zipfile.ZipFile(damaged.parent / "w", "w"):
        pass
    (damaged.parent / "w").write_bytes(whole)
    with zipfile.ZipFile(damaged.parent / "w") as archive:
        for info in archive.infolist()[1:]:
            size = info.file_size
            end = whole.index(b"\x93NUMPY", info.header_offset) + size
            values.update(range(end - size + 128, end))
    frame = [place for place in range(len(whole)) if place not in values]
    assert len(frame) > 1000
    for place in frame:
        content = bytearray(whole)
        content[place] ^= (0x01, 0x80, 0xFF, 0x20)[place % 4]
        read_if_it_can_be(damaged, bytes(content))


@settings(max_examples=200)
@given(data=st.data())
def test_bytes_taken_out_or_put_in(whole, damaged, data):
    place = data.draw(st.integers(0, len(whole)))
    size = data.draw(st.integers(0, 200))
    more = data.draw(st.binary(max_size=80))
    read_if_it_can_be(damaged, whole[:place] + more + whole[place + size :])


def test_bytes_before_and_behind_the_archive(whole, damaged):
    """As a zip file with a start of its own: the columns are found where they lie."""
    for content in (b"#!/bin/sh\n" + whole, whole + b"\n"):
        read_if_it_can_be(damaged, content)


def test_a_failed_read_names_only_the_place(path):
    assert "模型" in members(path)["header.json"].decode()
    pack(path, with_header(members(path), kind_names=[5]))
    assert "模型" not in refusal(path)
