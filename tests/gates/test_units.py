"""A number says its unit: every public parameter or field that is an int or a float ends in a unit word.

Names that need none are listed with their reason in unit_allowlist.txt.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.gates.source import modules

ALLOWLIST = Path(__file__).with_name("unit_allowlist.txt")
NUMBERS = {"int", "float"}
UNITS = {
    # quantities
    *(
        "bytes",
        "tokens",
        "blocks",
        "nodes",
        "requests",
        "refs",
        "sessions",
        "layers",
        "heads",
        "flops",
        "bits",
    ),
    # time
    *("ns", "us", "ms", "s", "hours", "days", "years"),
    # pure numbers: of one, of a hundred
    *("ratio", "share", "factor", "percent", "percentile"),
    # money and power
    *("usd", "cny", "w", "kw", "kwh"),
    # places and sizes in arrays
    *("index", "depth", "size", "digits", "seed"),
}
# After `per`, the unit is singular: usd_per_hour, bytes_per_token, reads_per_s.
PER_UNITS = {unit.removesuffix("s") for unit in UNITS} | {
    "s",
    "us",
    "ms",
    "gb",
    "tb",
    "gpu",
    "engine",
    "rank",
}


def has_unit(name: str) -> bool:
    words = name.lower().split("_")
    return words[0] == "num" or words[-1] in UNITS or ("per" in words[1:-1] and words[-1] in PER_UNITS)


def is_number(annotation: ast.expr | None) -> bool:
    """Whether it is int or float, perhaps with None; a container names its unit where it is filled."""
    match annotation:
        case ast.Name(id=name):
            return name in NUMBERS
        case ast.BinOp(op=ast.BitOr(), left=left, right=right):
            sides = [
                side for side in (left, right) if not (isinstance(side, ast.Constant) and side.value is None)
            ]
            return all(map(is_number, sides))
    return False


def is_public(node: ast.AST) -> bool:
    return not getattr(node, "name", "").startswith("_")


def numbers_in(body: list[ast.stmt]) -> Iterator[tuple[int, str]]:
    """Line and name of each public number, through public classes; not into functions."""
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if is_public(node) or node.name == "__init__":
                arguments = node.args
                for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                    if is_number(argument.annotation):
                        yield argument.lineno, argument.arg
            case ast.ClassDef() if is_public(node):
                yield from numbers_in(node.body)
            case ast.AnnAssign(target=ast.Name(id=name)) if not name.startswith("_") and is_number(
                node.annotation
            ):
                yield node.lineno, name


def allowed_names() -> dict[tuple[str, str], str]:
    """Reason by file (`*`: any) and name, from lines such as `model/x.py depth: why`."""
    lines = ALLOWLIST.read_text(encoding="utf-8").splitlines()
    entries = (line.partition(":") for line in lines if line and not line.startswith("#"))
    return {
        (path, name): reason.strip()
        for place, _, reason in entries
        for path, *names in [place.split()]
        for name in names
    }


def names_without_unit() -> dict[tuple[str, str], int]:
    """First line by file and name."""
    found = [(path, line, name) for path, tree in modules().items() for line, name in numbers_in(tree.body)]
    return {(path, name): line for path, line, name in reversed(found) if not has_unit(name)}


def test_every_number_has_a_unit():
    allowed = allowed_names()
    unknown = [
        f"{path}:{line} {name}"
        for (path, name), line in names_without_unit().items()
        if (path, name) not in allowed and ("*", name) not in allowed
    ]
    assert unknown == []


def test_allowlist_has_reasons_and_no_leftovers():
    allowed = allowed_names()
    assert [place for place, reason in allowed.items() if not reason] == []
    found = names_without_unit().keys()
    assert allowed.keys() - found - {("*", name) for _, name in found} == set()


def test_the_lint_itself():
    source = """
def f(size_bytes: int, speed: float, *, limit: float | None = None, name: str = "", flag: int | str = 0): ...
def _hidden(speed: float): ...
class Row:
    ttft_s: float
    price_usd_per_hour: float
    num_layers: int
    weight: int
    sizes: list[int]
    def at(self, capacity: int) -> float: ...
"""
    found = [name for _, name in numbers_in(ast.parse(source).body) if not has_unit(name)]
    assert found == ["speed", "limit", "weight", "capacity"]
