"""`warmset trace`: its verbs, and that asking for help loads none of what they work with."""

import subprocess
import sys

import pytest

from warmset.cli.trace import MODULES

SCRIPT = """
import sys
import warmset.cli
try:
    warmset.cli.main(sys.argv[1:])
except SystemExit as end:
    assert not end.code
print("LOADED", *sorted(sys.modules))
"""
HEAVY = {"numpy", "numba", "zstandard", "ray", "pyarrow", "tokenizers", "rich", "jinja2"}


@pytest.mark.parametrize(
    "words", [["trace", "--help"], *(["trace", verb, "-h"] for verb in MODULES)], ids=" ".join
)
def test_help_loads_nothing_heavy(words):
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, *words], capture_output=True, text=True, timeout=60, check=False
    )
    assert run.returncode == 0, run.stderr
    text, loaded = run.stdout.split("LOADED ")
    assert text.startswith(f"Usage: warmset {' '.join(words[:-1])} ")
    assert set(loaded.split()) & HEAVY == set()


def test_help_names_every_verb(warmset):
    ended = warmset("trace", "--help")
    assert (ended.code, ended.err) == (0, "")
    assert all(f"\n  {verb} " in ended.out for verb in MODULES)


def test_a_verb_that_is_none(warmset):
    ended = warmset("trace", "draw")
    assert (ended.code, ended.out, ended.err) == (2, "", "warmset: No such command 'draw'.\n")
