"""`.wst`: Warmset's own file of a trace, a zip with one `.npy` a column and a `header.json`.

Columns lie unpacked in the archive: opening one maps it into memory. They are checked once, as the file may
come from anywhere, and then paged in as they are used; the header alone is read without them.
"""

import io
import mmap
import os
import re
import reprlib
import struct
import zipfile
from pathlib import Path
from typing import IO

import msgspec
import numpy as np
import numpy.typing as npt

from warmset.errors import Finding, InputError, TraceFormatError
from warmset.trace.forest import (
    MAX_BLOCK_TOKENS,
    MAX_TOKENS,
    NO_NODE,
    OPTIONAL_COLUMNS,
    UNKNOWN,
    Provenance,
    Trace,
)

SCHEMA_VERSION = 1
SUFFIX = ".wst"
_HEADER = "header.json"
_MAX_HEADER_BYTES = 2**20
_MAX_NPY_HEADER_BYTES = 2**10
_LOCAL_HEADER_BYTES = 30
_ALIGNED_BYTES = 64
"""Values start at multiples of this, so that a mapped column is as good as one in memory."""
_PADDING = 0x5357
"""Tag of an extra field of the archive that only takes up room."""
_NPY_START = b"\x93NUMPY\x01\x00"
_NPY_HEADER = re.compile(rb"\{'descr': '(<i[48])', 'fortran_order': False, 'shape': \((\d{1,18}),\), \} *\n")
_FIXED_TIME = (1980, 1, 1, 0, 0, 0)
"""The time of every member, so that one trace gives the same bytes whenever it is written."""

_NODE_COLUMNS = {"node_parent": np.int32, "node_depth": np.int32}
_REQUEST_COLUMNS: dict[str, type[np.integer]] = {
    "arrival_ms": np.int64,
    "input_tokens": np.int64,
    "output_tokens": np.int64,
    "leaf": np.int32,
    "num_blocks": np.int32,
}


class Header(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a `.wst` says of itself; read without its columns."""

    schema_version: int
    block_tokens: int
    num_requests: int
    num_nodes: int
    provenance: Provenance
    columns: tuple[str, ...]
    kind_names: tuple[str, ...] = ()
    model_names: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


def starts_like_wst(path: Path) -> bool:
    """Whether a file is there and starts as a `.wst` does."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            start = file.read(_LOCAL_HEADER_BYTES + len(_HEADER))
    except OSError as error:
        raise InputError(f"{reprlib.repr(str(path))}: cannot be read: {error.strerror or error}") from error
    return start.startswith(b"PK\x03\x04") and start.endswith(_HEADER.encode())


def write_wst(trace: Trace, path: Path) -> None:
    """Write a trace; a file that is there is replaced only once the new one is whole.

    Raises: InputError where the file cannot be written.
    """
    optional = [name for name in OPTIONAL_COLUMNS if getattr(trace, name) is not None]
    header = Header(
        schema_version=SCHEMA_VERSION,
        block_tokens=trace.block_tokens,
        num_requests=trace.num_requests,
        num_nodes=trace.num_nodes,
        provenance=trace.provenance,
        columns=(*_NODE_COLUMNS, *_REQUEST_COLUMNS, *optional),
        kind_names=trace.kind_names,
        model_names=trace.model_names,
        findings=trace.findings,
    )
    text = msgspec.json.encode(header)
    if len(text) > _MAX_HEADER_BYTES:
        raise InputError(
            f"{path}: cannot be written: names, assumptions and findings come to {len(text)} bytes, "
            f"and may have {_MAX_HEADER_BYTES}"
        )
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            try:
                _write_members(file, text, {name: getattr(trace, name) for name in header.columns})
                draft.replace(path)
            finally:
                draft.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error


def _write_members(file: IO[bytes], header: bytes, columns: dict[str, npt.NDArray[np.integer]]) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(_HEADER, _FIXED_TIME), header)
        for name, values in columns.items():
            column = io.BytesIO()
            np.lib.format.write_array(column, np.ascontiguousarray(values), allow_pickle=False)
            archive.writestr(_aligned(f"{name}.npy", file.tell()), column.getbuffer())


def _aligned(name: str, offset: int) -> zipfile.ZipInfo:
    """A member at this place of the file, with room behind its name."""
    member = zipfile.ZipInfo(name, _FIXED_TIME)
    room = -(offset + _LOCAL_HEADER_BYTES + len(name) + 4) % _ALIGNED_BYTES
    member.extra = struct.pack("<HH", _PADDING, room) + bytes(room)
    return member


def read_header(path: Path) -> Header:
    """What a `.wst` says of itself: provenance, counts and findings, without its columns.

    Raises: InputError where it cannot be opened, TraceFormatError where it is not a `.wst` of this schema.
    """
    with _archive(path) as archive:
        return _header(archive, path)


def read_wst(path: Path) -> Trace:
    """The trace, its columns mapped from the file.

    Raises: InputError where it cannot be opened, TraceFormatError where it is broken or of another schema.
    """
    with _archive(path) as archive:
        header = _header(archive, path)
        columns = {name: _mapped(archive, path, name) for name in header.columns}
    _check(header, columns, path)
    return Trace(
        provenance=header.provenance,
        block_tokens=header.block_tokens,
        kind_names=header.kind_names,
        model_names=header.model_names,
        findings=header.findings,
        **columns,  # type: ignore[arg-type]
    )


def _archive(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
    except _BROKEN_ZIP as error:
        raise TraceFormatError(f"{path}: is no whole .wst file: {error}: import the log again") from error


_BROKEN_ZIP = (zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, EOFError, struct.error)
"""What `zipfile` raises for an archive that is none, or holds what no `.wst` does, such as a password."""


def _header(archive: zipfile.ZipFile, path: Path) -> Header:
    member = archive.NameToInfo.get(_HEADER)
    if member is None or member.file_size > _MAX_HEADER_BYTES or member.compress_type != zipfile.ZIP_STORED:
        raise TraceFormatError(
            f"{path}: is a zip file, but no .wst: it has no {_HEADER} as a .wst has it: import the log again"
        )
    try:
        text = archive.read(member)
        schema = msgspec.json.decode(text).get("schema_version")
        if schema != SCHEMA_VERSION:
            raise TraceFormatError(
                f"{path}: has schema {reprlib.repr(schema)}, and this version reads {SCHEMA_VERSION}: "
                "import the log again"
            )
        header = msgspec.json.decode(text, type=Header)
    except (msgspec.DecodeError, AttributeError, OSError, *_BROKEN_ZIP) as error:
        raise TraceFormatError(f"{path}: its header cannot be read: {error}: import the log again") from error
    required = {*_NODE_COLUMNS, *_REQUEST_COLUMNS}
    if (
        not required <= set(header.columns) <= required | set(OPTIONAL_COLUMNS)
        or len(set(header.columns)) < len(header.columns)
        or not 1 <= header.block_tokens <= MAX_BLOCK_TOKENS
    ):
        raise TraceFormatError(f"{path}: its header does not hold together: import the log again")
    return header


def _mapped(archive: zipfile.ZipFile, path: Path, name: str) -> npt.NDArray[np.integer]:
    """One column, mapped where it lies."""
    expected = np.dtype((_NODE_COLUMNS | _REQUEST_COLUMNS | OPTIONAL_COLUMNS)[name])
    try:
        with path.open("rb") as file:
            return _column(file, archive.getinfo(f"{name}.npy"), expected)
    except (KeyError, ValueError, OSError) as error:
        raise TraceFormatError(f"{path}: its column {name} is broken: import the log again") from error


def _column(file: IO[bytes], member: zipfile.ZipInfo, dtype: np.dtype[np.integer]) -> npt.NDArray[np.integer]:
    """The values of a member as `_write_members` wrote it. Its header is matched and never evaluated.

    Raises: ValueError where it is anything else.
    """
    name = member.filename.encode()
    file.seek(member.header_offset)
    local = file.read(_LOCAL_HEADER_BYTES + len(name))
    if local[:4] != b"PK\x03\x04" or local[_LOCAL_HEADER_BYTES:] != name:
        raise ValueError("no member of this name")
    start = file.seek(sum(struct.unpack_from("<HH", local, 26)) + member.header_offset + _LOCAL_HEADER_BYTES)
    magic = file.read(len(_NPY_START) + 2)
    header_bytes = int.from_bytes(magic[len(_NPY_START) :], "little")
    if not magic.startswith(_NPY_START) or header_bytes > _MAX_NPY_HEADER_BYTES:
        raise ValueError("no .npy")
    found = _NPY_HEADER.fullmatch(file.read(header_bytes))
    offset = file.tell()
    if found is None or found[1].decode() != dtype.str:
        raise ValueError("another type")
    num_values = int(found[2])
    end = offset + num_values * dtype.itemsize
    if (
        end > os.fstat(file.fileno()).st_size
        or end - start != member.file_size
        or member.compress_type != zipfile.ZIP_STORED
    ):
        raise ValueError("another size")
    if not num_values:
        return np.empty(0, dtype=dtype)
    first = offset - offset % mmap.ALLOCATIONGRANULARITY
    view = mmap.mmap(file.fileno(), end - first, access=mmap.ACCESS_READ, offset=first)
    return np.frombuffer(view, dtype=dtype, count=num_values, offset=offset - first)


def _check(header: Header, columns: dict[str, npt.NDArray[np.integer]], path: Path) -> None:
    """Refuse columns that a kernel could not walk safely."""
    sizes = {name: header.num_nodes if name in _NODE_COLUMNS else header.num_requests for name in columns}
    parent, leaf, arrival_ms = columns["node_parent"], columns["leaf"], columns["arrival_ms"]
    whole = all(column.size == sizes[name] for name, column in columns.items())
    if (
        not whole
        or not header.num_requests
        or (
            parent.size
            and (parent.min() < NO_NODE or np.any(parent >= np.arange(parent.size, dtype=np.int32)))
        )
        or not NO_NODE <= leaf.min() <= leaf.max() < header.num_nodes
        or np.any(arrival_ms[1:] < arrival_ms[:-1])
        or not _values_fit(header, columns)
        or not _paths_fit(columns)
    ):
        raise TraceFormatError(f"{path}: its columns do not hold together: import the log again")


def _values_fit(header: Header, columns: dict[str, npt.NDArray[np.integer]]) -> bool:
    """Whether names are there, amounts are possible, and no request goes on from itself."""
    limits = {
        "kind": len(header.kind_names),
        "model": len(header.model_names),
        "previous": header.num_requests,
        "session": header.num_requests,
    }
    previous = columns.get("previous")
    return (
        all(
            UNKNOWN <= columns[name].min() <= columns[name].max() < limits.get(name, 2**63)
            for name in OPTIONAL_COLUMNS
            if name in columns
        )
        and all(
            0 <= columns[name].min() <= columns[name].max() <= MAX_TOKENS
            for name in ("input_tokens", "output_tokens")
        )
        and (previous is None or not np.any(previous == np.arange(previous.size, dtype=np.int32)))
    )


def _paths_fit(columns: dict[str, npt.NDArray[np.integer]]) -> bool:
    """Whether depths follow from parents, and the blocks of each request from its leaf."""
    parent, depth, leaf = columns["node_parent"], columns["node_depth"], columns["leaf"]
    above = np.where(parent >= 0, depth[parent], 0) if parent.size else depth
    has_blocks = leaf >= 0
    expected = np.where(has_blocks, depth[leaf], 0) if depth.size else np.zeros_like(leaf)
    return bool(
        (not parent.size or np.array_equal(depth, above + 1))
        and np.array_equal(columns["num_blocks"], expected)
    )
