"""A handler that catches everything hides bugs: only the outermost frame of a program has one."""

import ast

from tests.gates.source import modules

# The command line's outermost frame, a job of the page, a worker of the store.
OUTERMOST = ("cli/", "web/", "store/")
CATCH_ALL = {"Exception", "BaseException"}


def catches_all(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or bool(
        CATCH_ALL & {n.id for n in ast.walk(handler.type) if isinstance(n, ast.Name)}
    )


def test_only_outermost_frames_catch_everything():
    places = [
        f"{path}:{node.lineno}"
        for path, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ExceptHandler) and catches_all(node)
    ]
    assert [place for place in places if not place.startswith(OUTERMOST)] == []
    for folder in OUTERMOST:
        assert len([place for place in places if place.startswith(folder)]) <= 1, places
