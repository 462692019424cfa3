"""`.wst` files taken apart and put together again, with something changed."""

import io
import json
import mmap
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Members = dict[str, bytes]


def members(path: Path) -> Members:
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def pack(path: Path, parts: Members, compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in parts.items():
            archive.writestr(zipfile.ZipInfo(name), content, compression)
    return path


def npy(column: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.save(content, column)
    return content.getvalue()


def column(parts: Members, name: str) -> np.ndarray:
    return np.load(io.BytesIO(parts[f"{name}.npy"]))


def with_header(parts: Members, **changes: Any) -> Members:
    """Other fields in the header; `...` takes one out."""
    header = json.loads(parts["header.json"]) | changes
    kept = {field: value for field, value in header.items() if value is not ...}
    return parts | {"header.json": json.dumps(kept).encode()}


def with_column(parts: Members, name: str, change: Callable[[np.ndarray], np.ndarray]) -> Members:
    return parts | {f"{name}.npy": npy(change(column(parts, name)))}


def is_mapped(values: np.ndarray) -> bool:
    """Whether the bytes of an array lie in a mapped file."""
    base: Any = values
    while isinstance(base, np.ndarray | memoryview):
        base = base.base if isinstance(base, np.ndarray) else base.obj
    return isinstance(base, mmap.mmap)
