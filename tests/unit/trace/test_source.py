"""Where logs come from: what a name stands for, and what the bytes of a file are once unpacked."""

import csv
import gzip
import io
import os
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
import zstandard

from warmset.errors import InputError, TraceFormatError
from warmset.trace import source
from warmset.trace.reading import find_logs
from warmset.trace.source import Input, find_inputs

TEXT = b'{"a": 1}\n{"a": 2}\r\n\n{"a": 3}'
LINES = [(1, b'{"a": 1}\n'), (2, b'{"a": 2}\r\n'), (3, b"\n"), (4, b'{"a": 3}')]
BOM = b"\xef\xbb\xbf"
LONG = b"".join(b"%d %s\n" % (n, b"%x" % (n * 2654435761 % 2**32)) for n in range(100_000))


def gz(*parts: bytes) -> bytes:
    return b"".join(gzip.compress(part, mtime=0) for part in parts)


def zst(*parts: bytes) -> bytes:
    return b"".join(zstandard.compress(part) for part in parts)


def zst_without_size(content: bytes) -> bytes:
    """As a pipe writes it: the frame does not say how long it is."""
    packer = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    return packer.compress(content) + packer.flush()


PACKINGS = {
    "plain": TEXT,
    "gz": gz(TEXT),
    "zst": zst(TEXT),
    "zst_without_size": zst_without_size(TEXT),
    "gz_members": gz(TEXT[:5], TEXT[5:], b""),
    "zst_frames": zst(TEXT[:5], b"", TEXT[5:], b""),
    "gz_empty_first": gz(b"", TEXT),
    "zst_empty_first": zst(b"", TEXT),
}


def write(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def refusal(function, *arguments, error: type[InputError] = TraceFormatError) -> str:
    """The one line that says what is wrong."""
    with pytest.raises(InputError) as caught:
        function(*arguments)
    assert type(caught.value) is error
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 500
    return text


def read_lines(one: Input) -> list[tuple[int, bytes]]:
    return list(one.lines())


# --- what is in a file -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", PACKINGS)
@pytest.mark.parametrize("file_name", ["log.jsonl", "log.gz", "log.zst"])
def test_content_tells_the_packing_and_not_the_name(tmp_path, name, file_name):
    one = Input(write(tmp_path / file_name, PACKINGS[name]))
    for _ in range(2):  # as often as needed
        assert read_lines(one) == LINES
        assert one.whole() == TEXT
        assert [row["a"] for row in one.head().rows] == [1, 2, 3]
    assert one.label == str(tmp_path / file_name)
    assert not one.is_stdin


@pytest.mark.parametrize("pack", [bytes, gz, zst, zst_without_size], ids=["plain", "gz", "zst", "pipe"])
def test_a_long_file_comes_out_whole(tmp_path, pack):
    one = Input(write(tmp_path / "log", pack(LONG)))
    assert one.whole() == LONG
    numbers, lines = zip(*one.lines(), strict=True)
    assert b"".join(lines) == LONG
    assert numbers == tuple(range(1, 100_001))


@pytest.mark.parametrize("pack", [bytes, gz, zst], ids=["plain", "gz", "zst"])
def test_a_byte_order_mark_is_no_content(tmp_path, pack):
    one = Input(write(tmp_path / "log", pack(BOM + TEXT)))
    assert read_lines(one) == LINES
    assert one.whole() == TEXT
    assert one.head().start == TEXT


def test_a_mark_within_the_text_stays(tmp_path):
    content = b'{"a": 1}\n' + BOM + b'{"a": 2}\n'
    one = Input(write(tmp_path / "log", content))
    assert read_lines(one)[1] == (2, BOM + b'{"a": 2}\n')


@pytest.mark.parametrize("content", [b"", gz(b""), zst(b""), zst(b"", b""), BOM])
def test_an_empty_file_has_no_lines(tmp_path, content):
    one = Input(write(tmp_path / "log", content))
    assert read_lines(one) == []
    assert one.whole() == b""
    head = one.head()
    assert (head.start, head.rows, head.document, head.columns) == (b"", (), None, ())


def cuts(whole: bytes) -> list[int]:
    """Places to cut a file: in its header, in its middle, just before its end."""
    return [5, 8, 11, 16, len(whole) // 3, len(whole) // 2, len(whole) - 9, len(whole) - 4, len(whole) - 1]


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
@pytest.mark.parametrize("cut", range(9))
@pytest.mark.parametrize("before", [False, True], ids=["first", "second"])
def test_a_stream_that_ends_early_is_refused(tmp_path, kind, cut, before):
    pack = gz if kind == "gzip" else zst
    whole = pack(LONG)
    content = (pack(TEXT + b"\n") if before else b"") + whole[: cuts(whole)[cut]]
    one = Input(write(tmp_path / "log", content))
    says = rf": the {kind} stream is broken: .+: copy the file again, or unpack what is there and read that"
    assert re.fullmatch(re.escape(str(one.path)) + r":\d+" + says, refusal(read_lines, one))
    assert re.fullmatch(re.escape(str(one.path)) + says, refusal(one.whole))


@pytest.mark.parametrize("pack", [gz, zst], ids=["gz", "zst"])
def test_a_broken_stream_says_after_which_line(tmp_path, pack):
    whole = pack(LONG)
    one = Input(write(tmp_path / "log", whole[: len(whole) // 2]))
    read = []
    with pytest.raises(TraceFormatError) as caught:
        read.extend(one.lines())
    line = int(re.match(r":(\d+): ", str(caught.value).removeprefix(str(one.path))).group(1))
    assert 1 < line < 100_000


@pytest.mark.parametrize(
    "content",
    [
        gz(TEXT) + b"more",
        gz(TEXT)[:-8] + b"\0" * 8,
        gz(TEXT)[:2] + b"\0" + gz(TEXT)[3:],
        zst(TEXT) + b"more",
        zst(TEXT)[:5] + b"\xff" * 8 + zst(TEXT)[13:],
        b"\x28\xb5\x2f\xfd" + b"\xff" * 40,
        b"\x1f\x8b" + b"\xff" * 40,
    ],
    ids=["gz_more", "gz_checksum", "gz_method", "zst_more", "zst_body", "zst_noise", "gz_noise"],
)
def test_a_damaged_stream_is_refused(tmp_path, content):
    one = Input(write(tmp_path / "log", content))
    for read in (read_lines, Input.whole, Input.head):
        assert "stream is broken" in refusal(read, one)


def test_a_long_window_of_zstd_is_read(tmp_path):
    """`zstd --long=27` and more: what people pack logs of gigabytes with."""
    parameters = zstandard.ZstdCompressionParameters(window_log=28, enable_ldm=True)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    content = packer.compress(LONG) + packer.flush()
    assert Input(write(tmp_path / "log", content)).whole() == LONG


def test_a_line_is_read_up_to_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "MAX_LINE_BYTES", 2**20)
    fits = b" " * (2**20 - 1) + b"\n"
    one = Input(write(tmp_path / "log", b"{}\n" + fits + b" " + fits + b"{}\n"))
    taken = []
    with pytest.raises(TraceFormatError) as caught:
        taken.extend(text for _, text in one.lines())
    assert taken == [b"{}\n", fits]
    says = ":3: the line is longer than 1 MiB: write one request a line, without attachments"
    assert str(caught.value) == f"{one.path}{says}"


def test_a_line_of_50_mb_is_refused_as_it_is(tmp_path):
    one = Input(write(tmp_path / "log.gz", gz(b"{}\n" + b"x" * 50_000_000)))
    assert refusal(read_lines, one).startswith(f"{one.path}:2: the line is longer than 32 MiB: ")


def test_a_document_is_read_up_to_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "MAX_DOCUMENT_BYTES", 2**20)
    assert len(Input(write(tmp_path / "fits", b" " * 2**20)).whole()) == 2**20
    one = Input(write(tmp_path / "more", zst(b" " * (2**20 + 1))))
    says = ": the document is larger than 1 MiB: split it, or write one record a line"
    assert refusal(one.whole) == f"{one.path}{says}"


# --- the start of a file ---------------------------------------------------------------------------


def head_of(tmp_path, content: bytes):
    return Input(write(tmp_path / "log", content)).head()


def test_rows_of_objects(tmp_path):
    head = head_of(tmp_path, b"\n".join(b'{"n": %d}' % n for n in range(50)))
    assert [row["n"] for row in head.rows] == list(range(20))
    assert head.document is None


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (b'{"n": 1}\nnot json\n[1]\n{"n": 2}\n{"n": 3', [{"n": 1}, {"n": 2}]),
        (b'\n  \n{"n": 1}', [{"n": 1}]),
        (b'not json\n{"n": 1}', []),
        (b'[1]\n{"n": 1}', []),
        (b'7\n{"n": 1}', []),
        (b'{"n": 1}\r\n{"n": 2}\r\n', [{"n": 1}, {"n": 2}]),
        (b'{"n": "\xff"}\n{"n": 1}', []),
        (b"[" * 200_000, []),
    ],
    ids=[
        "odd_lines_later",
        "blank_first",
        "text_first",
        "list_first",
        "number_first",
        "crlf",
        "latin",
        "deep",
    ],
)
def test_rows_where_the_first_line_is_an_object(tmp_path, content, rows):
    assert list(head_of(tmp_path, content).rows) == rows


@pytest.mark.parametrize(
    ("content", "document"),
    [
        (b'{\n  "a": [1,\n 2]\n}\n', {"a": [1, 2]}),
        (b'[\n {"a": 1}\n]', [{"a": 1}]),
        (b'[{"a": 1}]', [{"a": 1}]),
        (b'{\n "a": 1', None),
        (b"time,tokens\n1,2\n", None),
        (b"7", None),
        (b'{\n "a": "' + b"x" * 2**20 + b'"}', None),
    ],
    ids=["object", "list", "list_in_a_line", "cut", "csv", "number", "larger_than_a_head"],
)
def test_a_document_over_several_lines(tmp_path, content, document):
    head = head_of(tmp_path, content)
    assert head.rows == ()
    assert head.document == document


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        (
            b"TIMESTAMP,ContextTokens,GeneratedTokens\r\n1,2,3",
            ("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
        ),
        (b'time, "a, b" ,c\n1', ("time", '"a', 'b"', "c")),
        (b'"a, b",c\n1', ("a, b", "c")),
        (BOM + b"time,n", ("time", "n")),
        (b"\xff,a\n", ()),
        (b"\n1,2\n", ()),
    ],
    ids=["plain", "quote_inside", "quoted", "mark", "latin", "blank_first"],
)
def test_a_csv_header(tmp_path, content, columns):
    assert head_of(tmp_path, content).columns == columns


@pytest.mark.parametrize("pack", [bytes, gz, zst], ids=["plain", "gz", "zst"])
def test_only_the_start_is_looked_at(tmp_path, pack):
    content = b'{"n": 1}\n' * 10 + b"x" * 2**21
    head = head_of(tmp_path, pack(content))
    assert head.start == content[: 2**20]
    assert len(head.rows) == 10


@pytest.fixture
def usual_csv_limit():
    """Readers of CSV logs raise it, for the whole process."""
    before = csv.field_size_limit(131_072)
    yield
    csv.field_size_limit(before)


@pytest.mark.usefixtures("usual_csv_limit")
def test_a_field_longer_than_csv_takes(tmp_path):
    assert head_of(tmp_path, b"a" * 300_000 + b",b\n").columns == ()


def test_a_first_line_longer_than_the_start(tmp_path):
    head = head_of(tmp_path, b'{"n": "' + b"x" * 2**20 + b'"}\n{"n": 1}\n')
    assert (head.rows, head.document) == ((), None)
    assert head.start.startswith(b'{"n": "xxx')


# --- what a name stands for ------------------------------------------------------------------------


def found(*names: object) -> list[str]:
    return [str(one.path) for one in find_inputs([str(name) for name in names])]


@pytest.fixture
def folder(tmp_path):
    for name in ("b.jsonl", "a.jsonl", "c.txt", "deep/er/d.jsonl", ".hidden", ".git/config", "deep/.x/y"):
        write(tmp_path / "logs" / name, TEXT)
    (tmp_path / "logs" / "empty").mkdir()
    return tmp_path / "logs"


def test_files_keep_their_order(folder):
    assert found(folder / "b.jsonl", folder / "a.jsonl") == [str(folder / "b.jsonl"), str(folder / "a.jsonl")]


def test_a_folder_is_all_that_is_in_it_but_what_is_hidden(folder):
    names = ["a.jsonl", "b.jsonl", "c.txt", "deep/er/d.jsonl"]
    assert found(folder) == [str(folder / name) for name in names]
    assert found(f"{folder}/") == found(folder)


def test_a_folder_below_a_hidden_one_is_visible(tmp_path):
    path = write(tmp_path / ".openclaw" / "agents" / "a.jsonl", TEXT)
    assert found(tmp_path / ".openclaw" / "agents") == [str(path)]
    assert found(tmp_path / ".openclaw") == [str(path)]


def test_a_hidden_file_is_read_where_it_is_named(folder):
    assert found(folder / ".hidden") == [str(folder / ".hidden")]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.jsonl", ["a.jsonl", "b.jsonl"]),
        ("?.txt", ["c.txt"]),
        ("[ab].jsonl", ["a.jsonl", "b.jsonl"]),
        ("**/*.jsonl", ["a.jsonl", "b.jsonl", "deep/er/d.jsonl"]),
        ("*", ["a.jsonl", "b.jsonl", "c.txt"]),
        ("*/*/*", ["deep/er/d.jsonl"]),
    ],
)
def test_a_pattern_is_the_files_that_match(folder, monkeypatch, pattern, names):
    assert found(folder / pattern) == [str(folder / name) for name in names]
    monkeypatch.chdir(folder)
    assert found(pattern) == names


def test_a_file_whose_name_looks_like_a_pattern(tmp_path):
    path = write(tmp_path / "log[1].jsonl", TEXT)
    assert found(path) == [str(path)]


def test_what_is_named_twice_is_read_once(folder):
    names = ["b.jsonl", "a.jsonl", "c.txt", "deep/er/d.jsonl"]
    assert found(folder / "b.jsonl", folder, folder / "*") == [str(folder / name) for name in names]


@pytest.mark.parametrize("name", ["none.jsonl", "*.csv", "nowhere/*", "deep*", "x" * 5000, "a\0b", "broken"])
def test_a_name_that_stands_for_nothing(folder, name):
    (folder / "broken").symlink_to(folder / "gone")
    text = refusal(found, folder / name[:5000], error=InputError)
    assert "cannot be read: " in text or "there is no such file or folder, and no file matches it" in text


def test_an_empty_name_is_no_folder(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert "no such file" in refusal(find_inputs, [""], error=InputError)


def test_a_folder_of_nothing(folder):
    says = f"{folder}/empty: cannot be read: the folder holds no files"
    assert refusal(found, folder / "empty", error=InputError) == says
    write(folder / "empty" / ".DS_Store", b"")
    assert refusal(found, folder / "empty", error=InputError) == says


def test_a_file_that_goes_away(folder):
    (one,) = find_inputs([str(folder / "c.txt")])
    (folder / "c.txt").unlink()
    says = f"{folder}/c.txt: cannot be read: No such file or directory"
    for read in (read_lines, Input.whole, Input.head):
        assert refusal(read, one, error=InputError) == says


def test_a_file_without_permission(tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    says = f"{tmp_path}/t: cannot be read: Permission denied"
    assert refusal(Input(tmp_path / "t").head, error=InputError) == says


def test_a_pipe_with_a_name_cannot_be_read_twice(tmp_path):
    """It is refused at once and not waited for to no end: what comes by a pipe goes to stdin."""
    os.mkfifo(tmp_path / "pipe")
    writer = subprocess.Popen(
        [sys.executable, "-c", "import sys; open(sys.argv[1], 'wb').write(b'{}')", tmp_path / "pipe"],
        stderr=subprocess.DEVNULL,
    )
    try:
        text = refusal(Input(tmp_path / "pipe").head, error=InputError)
    finally:
        writer.wait(10)
    assert text.startswith(f"{tmp_path}/pipe: cannot be read: ")


# --- stdin -----------------------------------------------------------------------------------------


class Stdin:
    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)


@pytest.mark.parametrize("name", PACKINGS)
def test_stdin_is_read_as_often_as_a_file(monkeypatch, name):
    monkeypatch.setattr(sys, "stdin", Stdin(PACKINGS[name]))
    (one,) = find_inputs(["-"])
    assert one.is_stdin
    assert one.label == "stdin"
    for _ in range(2):
        assert len(one.head().rows) == 3
        assert read_lines(one) == LINES
        assert one.whole() == TEXT


def test_stdin_named_twice_is_read_once(monkeypatch):
    monkeypatch.setattr(sys, "stdin", Stdin(TEXT))
    (one,) = find_inputs(["-", "-"])
    assert one.whole() == TEXT


def test_stdin_among_files(folder, monkeypatch):
    monkeypatch.setattr(sys, "stdin", Stdin(TEXT))
    first, second, third = find_inputs([str(folder / "b.jsonl"), "-", str(folder / "a.jsonl")])
    assert [first.label, second.label, third.label] == [f"{folder}/b.jsonl", "stdin", f"{folder}/a.jsonl"]


def test_a_broken_stream_from_stdin(monkeypatch):
    monkeypatch.setattr(sys, "stdin", Stdin(gz(LONG)[:1000]))
    (one,) = find_inputs(["-"])
    assert refusal(read_lines, one).startswith("stdin:")


def test_a_closed_stdin(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    assert refusal(find_inputs, ["-"], error=InputError) == "stdin: cannot be read: it is closed"


def test_a_real_pipe(tmp_path):
    script = (
        "from warmset.trace.source import find_inputs\n"
        "one, = find_inputs(['-'])\n"
        "assert len(one.head().rows) == 3\n"
        "print(one.label, len(list(one.lines())), len(one.whole()))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], input=gz(TEXT), capture_output=True, timeout=60, check=False
    )
    assert (run.stdout, run.stderr) == (b"stdin 4 %d\n" % len(TEXT), b"")


# --- many files at once ----------------------------------------------------------------------------


def test_the_starts_of_many_files_are_not_kept(tmp_path):
    """Upstream has a file a session: telling the format of hundreds must not cost a MiB and more for each."""
    ids = ", ".join(map(str, range(1, 30_000)))
    row = f'{{"timestamp": 0, "input_length": 9, "output_length": 1, "hash_ids": [{ids}]}}\n'.encode()
    for number in range(40):
        write(tmp_path / f"{number:02}.jsonl", row)
    find_logs([tmp_path], None, 0.01)  # imports, once
    tracemalloc.start()
    logs = find_logs([tmp_path], None, 0.01)
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(logs.inputs) == 40
    assert most_bytes < 16 * 2**20
