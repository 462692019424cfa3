"""What all verbs share: help, version, exit codes, and errors in one line."""

import pytest

import warmset as package
from warmset.cli import MODULES, group
from warmset.errors import InfeasibleError, InputError


def test_help_names_every_verb(warmset):
    for words in (["--help"], ["-h"], []):
        ended = warmset(*words)
        assert (ended.code, ended.err) == (0, "")
        assert all(f"\n  {verb} " in ended.out for verb in MODULES)


@pytest.mark.parametrize("verb", MODULES)
def test_every_verb_has_help(warmset, verb):
    ended = warmset(verb, "--help")
    assert ended.code == 0
    assert ended.out.startswith(f"Usage: warmset {verb} ")


def test_version(warmset):
    assert warmset("--version").out == f"warmset, version {package.__version__}\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["sort"], "No such command 'sort'"),
        (["--quick"], "No such option '--quick'"),
        (["evaluate", "--quick"], "No such option '--quick'"),
        (["size"], "Missing argument 'MODEL...'"),
        (["curve"], "Missing argument 'TRACE'"),
        (["curve", "a", "b"], "unexpected extra argument (b)"),
        (["evaluate", "--gpus", "many"], "'many' is not a valid integer"),
        (["evaluate", "--lang", "fr"], "'fr' is not one of 'en', 'zh', 'both'"),
        (["size", "Qwen3-8B", "--kv", "int3"], "KV layout 'int3' is not known: choose one of"),
        (["evaluate", "--out"], "requires an argument"),
    ],
)
def test_words_that_are_not_understood(warmset, words, says):
    ended = warmset(*words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("warmset: ")
    assert ended.err.count("\n") == 1
    assert says in ended.err


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (
            InputError("x.jsonl:17: hash_ids is\n not a list"),
            2,
            "warmset: x.jsonl:17: hash_ids is not a list\n",
        ),
        (InfeasibleError("too big"), 3, "warmset: too big\n"),
        (ZeroDivisionError("division by zero"), 1, "warmset: a bug of ours: ZeroDivisionError: division by"),
    ],
    ids=["input", "infeasible", "bug"],
)
def test_exit_codes(warmset, monkeypatch, error, code, line):
    def fail(*_args, **_flags):
        raise error

    monkeypatch.setattr(group, "main", fail)
    ended = warmset("size", "x")
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith(line)
    assert ended.err.count("\n") == 1
    traced = warmset("--traceback", "size", "x")
    assert traced.code == code
    assert "Traceback" in traced.err
    assert traced.err.endswith(ended.err)


@pytest.mark.parametrize(
    "words", [["--traceback", "size", "nowhere.json"], ["size", "nowhere.json", "--traceback"]]
)
def test_traceback_before_or_after_the_verb(warmset, words):
    ended = warmset(*words)
    assert ended.code == 2
    assert "Traceback" in ended.err
    assert ended.err.splitlines()[-1].startswith("warmset: nowhere.json: ")


def test_traceback_of_a_usage_error(warmset):
    ended = warmset("sort", "--traceback")
    assert ended.code == 2
    assert "Traceback" in ended.err


def test_interrupted(warmset, monkeypatch):
    import click

    def stop(*_args, **_flags):
        raise click.exceptions.Abort

    monkeypatch.setattr(group, "main", stop)
    ended = warmset("size", "x")
    assert (ended.code, ended.err) == (130, "warmset: stopped\n")
