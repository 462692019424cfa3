"""The command line in this process: what it prints where, and the code that it leaves with."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.scenarios import chat_rows, write_log
from warmset.cli import main


class Ended(NamedTuple):
    code: int
    out: str
    err: str


Warmset = Callable[..., Ended]


@pytest.fixture
def warmset(capsys: pytest.CaptureFixture[str]) -> Warmset:
    """Runs `warmset` with these words."""

    def run(*words: object) -> Ended:
        with pytest.raises(SystemExit) as exit_:
            main([str(word) for word in words])
        sys.stdout.flush()
        captured = capsys.readouterr()
        code = exit_.value.code
        assert isinstance(code, int)
        return Ended(code, captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty sessions of three turns, 31 to 33 blocks long."""
    folder = tmp_path_factory.mktemp("log")
    return write_log(folder / "chat.jsonl", chat_rows(sessions=20, turns=3, blocks=31, gap_ms=1000))
