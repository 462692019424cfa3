"""Where request logs come from: files, folders, patterns and stdin; plain, gzip or zstd by content."""

import codecs
import csv
import glob
import gzip
import io
import reprlib
import shutil
import sys
import tempfile
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import msgspec

from warmset.errors import InputError, TraceFormatError

STDIN = "-"
MAX_LINE_BYTES = 32 * 2**20
MAX_DOCUMENT_BYTES = 256 * 2**20
HEAD_BYTES = 2**20
_BUFFER_BYTES = 2**20
_PACKED_BYTES = 2**14
"""Read at a time of a zstd file: traces unpack to some hundred times as much."""
_SPOOLED_BYTES = 64 * 2**20
_SAMPLED_ROWS = 20
_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"

NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding a row of JSON raises."""


@dataclass(frozen=True, slots=True)
class Head:
    """The start of an unpacked file: enough to tell its format.

    `rows` are the first lines that are JSON objects, where the file has one a line; `document` is the file's
    one JSON value over several lines, where it is small enough to be here whole; `columns` a CSV header.
    """

    path: Path
    start: bytes
    rows: tuple[dict[str, Any], ...]
    document: Any
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Input:
    """One log to read, as often as needed. `label` is what messages call it."""

    path: Path
    _stdin: IO[bytes] | None = None

    @property
    def label(self) -> str:
        """What messages call it."""
        return "stdin" if self.is_stdin else str(self.path)

    @property
    def is_stdin(self) -> bool:
        """Whether it came in by a pipe."""
        return self._stdin is not None

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Number (from 1) and bytes of each line, the first without a byte-order mark; blank lines too.

        Raises: TraceFormatError for broken packing and for a line longer than `MAX_LINE_BYTES`.
        """
        number = 0
        try:
            with self.opened() as stream:
                while text := stream.readline(MAX_LINE_BYTES + 1):
                    number += 1
                    if len(text) > MAX_LINE_BYTES:
                        raise TraceFormatError(
                            f"{self.label}:{number}: the line is longer than {MAX_LINE_BYTES // 2**20} MiB: "
                            "write one request a line, without attachments"
                        )
                    text = text.removeprefix(codecs.BOM_UTF8) if number == 1 else text
                    if text:
                        yield number, text
        except _BROKEN_PACKING as error:
            raise TraceFormatError(f"{self.label}:{number + 1}: {_explain_packing(error)}") from error

    def whole(self) -> bytes:
        """All bytes of a log that is one document.

        Raises: TraceFormatError for broken packing and for one larger than `MAX_DOCUMENT_BYTES`.
        """
        try:
            with self.opened() as stream:
                content = stream.read(MAX_DOCUMENT_BYTES + 1)
        except _BROKEN_PACKING as error:
            raise TraceFormatError(f"{self.label}: {_explain_packing(error)}") from error
        if len(content) > MAX_DOCUMENT_BYTES:
            raise TraceFormatError(
                f"{self.label}: the document is larger than {MAX_DOCUMENT_BYTES // 2**20} MiB: "
                "split it, or write one record a line"
            )
        return content.removeprefix(codecs.BOM_UTF8)

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """The unpacked bytes.

        Raises: InputError where the file cannot be opened or read.
        """
        try:
            if self._stdin is not None:
                self._stdin.seek(0)
                yield _unpacked(self._stdin)
            else:
                with self.path.open("rb", _BUFFER_BYTES) as packed:
                    yield _unpacked(packed)
        except gzip.BadGzipFile:
            raise
        except OSError as error:
            raise InputError(f"{self.label}: cannot be read: {error.strerror or error}") from error

    def head(self) -> Head:
        """The start of the file, parsed as far as it can be.

        Raises: TraceFormatError where its packing is broken there.
        """
        try:
            with self.opened() as stream:
                start = stream.read(HEAD_BYTES).removeprefix(codecs.BOM_UTF8)
        except _BROKEN_PACKING:
            deque(self.lines(), maxlen=0)  # which raises with the line
            raise
        rows = _first_rows(start)
        return Head(self.path, start, rows, None if rows else _document(start), _header(start))


class _BrokenZstdError(Exception):
    pass


_BROKEN_PACKING = (EOFError, zlib.error, gzip.BadGzipFile, _BrokenZstdError)


def _explain_packing(error: Exception) -> str:
    kind = "zstd" if isinstance(error, _BrokenZstdError) else "gzip"
    return f"the {kind} stream is broken: {error}: copy the file again, or unpack what is there and read that"


def find_inputs(names: Sequence[str]) -> list[Input]:
    """The logs that the arguments name, in the order given; those of a folder or pattern sorted by name.

    Hidden files of a folder are left out. `-` stands for stdin.

    Raises: InputError for a name that is not there and for a folder without files.
    """
    paths: dict[Path, Input] = {}
    for name in names:
        if name == STDIN:
            paths.setdefault(Path(STDIN), Input(Path(STDIN), _spooled_stdin()))
            continue
        for path in _files_of(name):
            paths.setdefault(path, Input(path))
    return list(paths.values())


def _files_of(name: str) -> list[Path]:
    path = Path(name)
    try:
        is_folder, is_there = bool(name) and path.is_dir(), bool(name) and path.exists()
    except OSError as error:
        raise InputError(f"{reprlib.repr(name)}: cannot be read: {error.strerror or error}") from error
    if is_folder:
        below = sorted(inner for inner in path.rglob("*") if inner.is_file() and _is_visible(inner, path))
        if not below:
            raise InputError(f"{name}: cannot be read: the folder holds no files")
        return below
    if is_there:
        return [path]
    matched = sorted(Path(match) for match in glob.glob(name, recursive=True))  # noqa: PTH207 - absolute patterns too
    files = [match for match in matched if match.is_file()]
    if not files:
        raise InputError(
            f"{name or repr(name)}: cannot be read: there is no such file or folder, and no file matches it"
        )
    return files


def _is_visible(path: Path, folder: Path) -> bool:
    return not any(part.startswith(".") for part in path.relative_to(folder).parts)


class _Spool(tempfile.SpooledTemporaryFile[bytes]):
    """Lives as long as its `Input`, and closes with it."""

    def __del__(self) -> None:
        self.close()


def _spooled_stdin() -> IO[bytes]:
    """Stdin in a temporary file that has no name, so that it can be read twice."""
    if sys.stdin is None:
        raise InputError("stdin: cannot be read: it is closed")
    spool = _Spool(_SPOOLED_BYTES)
    shutil.copyfileobj(sys.stdin.buffer, spool)
    spool.seek(0)
    return spool


def _unpacked(packed: IO[bytes]) -> IO[bytes]:
    magic = packed.read(4)
    packed.seek(0)
    if magic[:2] == _GZIP_MAGIC:
        return gzip.GzipFile(fileobj=packed, mode="rb")  # type: ignore[return-value]
    if magic == _ZSTD_MAGIC:
        return io.BufferedReader(_Unzstd(packed), _BUFFER_BYTES)
    return packed


class _Unzstd(io.RawIOBase):
    """Frames of zstd, unpacked; one that ends early is an error and not an end."""

    def __init__(self, packed: IO[bytes]) -> None:
        import zstandard

        self._packed = packed
        self._new = zstandard.ZstdDecompressor(max_window_size=2**31).decompressobj
        self._error = zstandard.ZstdError
        self._frame = self._new()
        self._is_open = False
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - whatever can be written to
        while not self._ready:
            packed = self._frame.unused_data if self._frame.eof else b""
            packed = packed or self._packed.read(_PACKED_BYTES)
            if not packed:
                if self._is_open:
                    raise _BrokenZstdError("it ends before its frame does")
                return 0
            if self._frame.eof:
                self._frame = self._new()
            try:
                self._ready = memoryview(self._frame.decompress(packed))
            except self._error as error:
                raise _BrokenZstdError(str(error)) from error
            self._is_open = not self._frame.eof
        count = min(len(self._ready), len(buffer))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count


def _first_rows(start: bytes) -> tuple[dict[str, Any], ...]:
    """Objects of the first lines that are JSON; none if the very first line with text is not an object."""
    rows: list[dict[str, Any]] = []
    for text in start.splitlines()[:_SAMPLED_ROWS]:
        if not text.strip():
            continue
        try:
            row = msgspec.json.decode(text)
        except NOT_JSON:
            if not rows:
                return ()
            continue
        if isinstance(row, dict):
            rows.append(row)
        elif not rows:
            return ()
    return tuple(rows)


def _document(start: bytes) -> Any:  # noqa: ANN401 - any JSON value
    if len(start) == HEAD_BYTES or start.lstrip()[:1] not in {b"{", b"["}:
        return None
    try:
        return msgspec.json.decode(start)
    except NOT_JSON:
        return None


def _header(start: bytes) -> tuple[str, ...]:
    first = start.split(b"\n", 1)[0]
    try:
        return tuple(name.strip() for name in next(csv.reader([first.decode()]), []))
    except (UnicodeDecodeError, csv.Error):
        return ()
