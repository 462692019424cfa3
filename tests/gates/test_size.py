"""Small files and small functions. A function's docstring does not count: prose may be as long as it must."""

import ast

from tests.gates.source import PACKAGE, Function, functions, modules

MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 80
MAX_P90_FUNCTION_LINES = 35


def code_lines(function: Function) -> int:
    lines = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function) is not None:
        docstring = function.body[0]
        lines -= docstring.end_lineno - docstring.lineno + 1
    return lines


def test_no_file_is_too_long():
    lengths = {path: len((PACKAGE / path).read_text(encoding="utf-8").splitlines()) for path in modules()}
    assert {path: lines for path, lines in lengths.items() if lines > MAX_FILE_LINES} == {}


def test_no_function_is_too_long():
    lengths = {place: code_lines(function) for place, function in functions()}
    assert {place: lines for place, lines in lengths.items() if lines > MAX_FUNCTION_LINES} == {}


def test_nine_of_ten_functions_are_short():
    lengths = sorted(code_lines(function) for _, function in functions())
    assert lengths[int(0.9 * len(lengths))] <= MAX_P90_FUNCTION_LINES
