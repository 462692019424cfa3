"""The project's files and syntax trees, for the gates."""

import ast
import os
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "src" / "warmset"
SKIPPED_FOLDERS = {".git", ".venv", "build", "dist", "node_modules", "__pycache__"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def modules() -> dict[str, ast.Module]:
    """Syntax trees by path below the package, such as `model/spec.py`."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return {
        path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in paths
    }


def functions() -> Iterator[tuple[str, Function]]:
    """Every function and method, with `path:line name`."""
    for path, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, Function):
                yield f"{path}:{node.lineno} {node.name}", node


def repository_files() -> list[Path]:
    """What a clone would hold; outside of a work tree of git, all files but the build outputs."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=REPOSITORY,
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        files = [REPOSITORY / name for name in listed.split("\0") if name]
    except (OSError, subprocess.CalledProcessError):
        files = []
        for folder, names, file_names in os.walk(REPOSITORY):
            names[:] = [name for name in names if name not in SKIPPED_FOLDERS and not name.endswith("_cache")]
            files += [Path(folder) / name for name in file_names]
    return [path for path in files if path.is_file()]
