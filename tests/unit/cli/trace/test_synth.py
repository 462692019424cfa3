"""`warmset trace synth`: what it writes, lists and refuses."""

import json

import pytest

from warmset.trace import read_wst
from warmset.trace.synth import GENERATORS


def synth(warmset, *words):
    return warmset("trace", "synth", *words)


def test_it_writes_a_trace_and_says_what_it_is(warmset, tmp_path):
    out = tmp_path / "t.wst"
    ended = synth(warmset, "chat", "--preset", "multi-round-qa-15x20", "--out", out, "--json")
    assert ended.code == 0
    told = json.loads(ended.out)
    assert (told["requests"], told["sessions"], told["block_tokens"]) == (300, 15, 16)
    trace = read_wst(out)
    assert trace.num_requests == 300
    assert trace.provenance.source.endswith(", seed 1")
    assert trace.provenance.name == "chat/multi-round-qa-15x20 (generated)"


def test_settings_limits_and_seed_count(warmset, tmp_path):
    out = tmp_path / "t.wst"
    words = ("one-shot", "--requests", 7, "--set", "system_tokens=32", "--block-tokens", 32, "--out", out)
    assert synth(warmset, *words, "--seed", 5).code == 0
    first = out.read_bytes()
    assert synth(warmset, *words, "--seed", 5).code == 2
    assert synth(warmset, *words, "--seed", 5, "--force").code == 0
    assert out.read_bytes() == first
    assert synth(warmset, *words, "--seed", 6, "--force").code == 0
    assert out.read_bytes() != first
    trace = read_wst(out)
    assert (trace.num_requests, trace.block_tokens) == (7, 32)
    assert '"system_tokens":32' in trace.provenance.source
    assert '"chosen":["system_tokens"]' in trace.provenance.source


def test_duration_stops_it(warmset, tmp_path):
    out = tmp_path / "t.wst"
    assert synth(warmset, "openclaw", "--duration", "2h", "--set", "num_users=3", "--out", out).code == 0
    assert read_wst(out).arrival_ms[-1] < 2 * 3_600_000


def test_it_lists_generators_and_presets(warmset):
    text = synth(warmset, "--list").out
    assert all(name in text for name in GENERATORS)
    told = json.loads(synth(warmset, "--list", "--json").out)
    assert list(told) == list(GENERATORS)
    assert "inference-day-2026" in told["agentic-code"]["presets"]


def test_it_shows_parameters_with_their_basis(warmset):
    told = json.loads(synth(warmset, "openclaw", "--show-parameters", "--set", "num_users=2", "--json").out)
    rows = {row["name"]: row for row in told["parameters"]}
    assert rows["num_users"] == {
        "name": "num_users",
        "value": 2,
        "basis": "chosen",
        "source": "--set",
        "text": "people",
    }
    assert rows["heartbeat_interval_s"]["basis"] == "published"
    assert "num_users" in synth(warmset, "openclaw", "--show-parameters").out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "no generator given: chat, rag"),
        (("openclow",), "did you mean openclaw?"),
        (("zzz",), "there are chat, rag"),
        (("chat",), "--out is missing"),
        (("chat", "--preset", "nope", "--out", "t.wst"), "no such preset"),
        (("chat", "--set", "num_users", "--out", "t.wst"), "write NAME=VALUE"),
        (("chat", "--set", "num_users=1", "--set", "num_users=2", "--out", "t.wst"), "given twice"),
        (("chat", "--set", "num_user=1", "--out", "t.wst"), "did you mean num_users?"),
        (("chat", "--seed", "-1", "--out", "t.wst"), "must not be negative"),
        (("chat", "--requests", "0", "--out", "t.wst"), "at least 1"),
        (("chat", "--duration", "5", "--out", "t.wst"), "duration '5'"),
        (("chat", "--duration", "0s", "--out", "t.wst"), "at least 1ms"),
        (("chat", "--block-tokens", "0", "--out", "t.wst"), "at least 1 token"),
        (("chat", "--out", "no/folder/t.wst"), "there is no folder"),
    ],
)
def test_a_wrong_word_is_refused_in_one_line(warmset, monkeypatch, tmp_path, words, says):
    monkeypatch.chdir(tmp_path)
    ended = synth(warmset, *words)
    assert (ended.code, ended.out) == (2, "")
    assert says in ended.err
    assert ended.err.count("\n") == 1
    assert not (tmp_path / "t.wst").exists()
