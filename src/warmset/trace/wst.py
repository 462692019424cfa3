"""`.wst`: Warmset's own file of a trace, a zip with one `.npy` a column and a `header.json`.

Columns lie unpacked in the archive: opening one maps it into memory, and nothing is read until it is used.
"""

import io
import mmap
import os
import zipfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from warmset.errors import Finding, InputError, TraceFormatError
from warmset.trace.forest import NO_NODE, OPTIONAL_COLUMNS, UNKNOWN, Provenance, Trace

SCHEMA_VERSION = 1
SUFFIX = ".wst"
_HEADER = "header.json"
_MAX_HEADER_BYTES = 2**20
_MAX_NPY_HEADER_BYTES = 2**10
_LOCAL_HEADER_BYTES = 30
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
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            start = file.read(_LOCAL_HEADER_BYTES + len(_HEADER))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror or error}") from error
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
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            _write_members(file, header, trace)
        draft.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from error
    finally:
        draft.unlink(missing_ok=True)


def _write_members(file: Any, header: Header, trace: Trace) -> None:  # noqa: ANN401 - a binary file
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(zipfile.ZipInfo(_HEADER, _FIXED_TIME), msgspec.json.encode(header))
        for name in header.columns:
            column = io.BytesIO()
            np.lib.format.write_array(column, np.ascontiguousarray(getattr(trace, name)), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", _FIXED_TIME), column.getbuffer())


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
    except zipfile.BadZipFile as error:
        raise TraceFormatError(f"{path}: is no whole .wst file: {error}: import the log again") from error


def _header(archive: zipfile.ZipFile, path: Path) -> Header:
    if _HEADER not in archive.namelist() or archive.getinfo(_HEADER).file_size > _MAX_HEADER_BYTES:
        raise TraceFormatError(f"{path}: is a zip file, but no .wst: it has no {_HEADER}")
    try:
        text = archive.read(_HEADER)
        schema = msgspec.json.decode(text).get("schema_version")
        if schema != SCHEMA_VERSION:
            raise TraceFormatError(
                f"{path}: has schema {schema}, and this version reads {SCHEMA_VERSION}: import the log again"
            )
        header = msgspec.json.decode(text, type=Header)
    except (msgspec.DecodeError, AttributeError, UnicodeDecodeError, zipfile.BadZipFile) as error:
        raise TraceFormatError(f"{path}: its header cannot be read: {error}: import the log again") from error
    required = {*_NODE_COLUMNS, *_REQUEST_COLUMNS}
    if not required <= set(header.columns) <= required | set(OPTIONAL_COLUMNS) or header.block_tokens < 1:
        raise TraceFormatError(f"{path}: its header does not hold together: import the log again")
    return header


def _mapped(archive: zipfile.ZipFile, path: Path, name: str) -> npt.NDArray[np.integer]:
    """One column, mapped where it lies."""
    broken = TraceFormatError(f"{path}: its column {name} is broken: import the log again")
    try:
        member = archive.getinfo(f"{name}.npy")
    except KeyError as error:
        raise broken from error
    if member.compress_type != zipfile.ZIP_STORED:
        raise broken
    with path.open("rb") as file:
        file.seek(member.header_offset)
        local = file.read(_LOCAL_HEADER_BYTES)
        if len(local) < _LOCAL_HEADER_BYTES:
            raise broken
        start = (
            member.header_offset
            + _LOCAL_HEADER_BYTES
            + int.from_bytes(local[26:28], "little")
            + int.from_bytes(local[28:30], "little")
        )
        file.seek(start)
        try:
            version = np.lib.format.read_magic(file)
            shape, _, dtype = np.lib.format.read_array_header_1_0(file, _MAX_NPY_HEADER_BYTES)
        except ValueError as error:
            raise broken from error
        offset = file.tell()
        holds = os.fstat(file.fileno()).st_size - offset
        if version != (1, 0) or len(shape) != 1 or not 0 <= shape[0] * dtype.itemsize <= holds:
            raise broken
        expected = (_NODE_COLUMNS | _REQUEST_COLUMNS | OPTIONAL_COLUMNS)[name]
        if dtype != np.dtype(expected):
            raise broken
        if not shape[0]:
            return np.empty(0, dtype=dtype)
        below = offset % mmap.ALLOCATIONGRANULARITY
        view = mmap.mmap(
            file.fileno(), shape[0] * dtype.itemsize + below, access=mmap.ACCESS_READ, offset=offset - below
        )
        return np.frombuffer(view, dtype=dtype, count=shape[0], offset=below)


def _check(header: Header, columns: dict[str, npt.NDArray[np.integer]], path: Path) -> None:
    """Refuse columns that a kernel could not walk safely."""
    sizes = {name: header.num_nodes if name in _NODE_COLUMNS else header.num_requests for name in columns}
    parent, leaf = columns["node_parent"], columns["leaf"]
    whole = all(column.size == sizes[name] for name, column in columns.items())
    if (
        not whole
        or not header.num_requests
        or (parent.size and (parent.min() < NO_NODE or np.any(parent >= np.arange(parent.size))))
        or not NO_NODE <= leaf.min() <= leaf.max() < header.num_nodes
        or np.any(np.diff(columns["arrival_ms"]) < 0)
        or not _names_fit(header, columns)
        or not _paths_fit(columns)
    ):
        raise TraceFormatError(f"{path}: its columns do not hold together: import the log again")


def _names_fit(header: Header, columns: dict[str, npt.NDArray[np.integer]]) -> bool:
    limits = {
        "kind": len(header.kind_names),
        "model": len(header.model_names),
        "previous": header.num_requests,
        "session": header.num_requests,
    }
    return all(
        UNKNOWN <= columns[name].min() <= columns[name].max() < limit
        for name, limit in limits.items()
        if name in columns
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
