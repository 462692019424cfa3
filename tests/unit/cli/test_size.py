"""`warmset size`: the contract of its JSON, and its table."""

import json

import pytest

KV_KEYS = ["growth_bytes_per_token", "window_bytes_per_token", "window_tokens", "state_bytes_per_sequence"]


@pytest.mark.parametrize(
    ("model", "kv", "growth"),
    [
        ("Qwen3-235B-A22B", "bf16", 192_512),
        ("Qwen3-235B-A22B", "fp8", 96_256),
        ("DeepSeek-V3", "bf16", 70_272),  # arXiv 2505.09343, table 1
        ("Meta-Llama-3.1-405B", "bf16", 516_096),  # the same table
        ("Qwen2.5-72B-Instruct", "bf16", 327_680),  # the same table
    ],
)
def test_json(warmset, model, kv, growth):
    ended = warmset("size", model, "--tokens", "1,4096,131072", "--kv", kv, "--json")
    assert (ended.code, ended.err) == (0, "")
    found = json.loads(ended.out)
    assert list(found) == ["kv", "sequence_bytes"]
    assert list(found["kv"]) == KV_KEYS
    assert list(found["kv"].values()) == [growth, 0, 0, 0]
    assert found["sequence_bytes"] == {str(n): n * growth for n in (1, 4096, 131_072)}


def test_a_config_file_and_its_folder(warmset, tmp_path):
    from warmset.model.shipped import find_shipped

    config = tmp_path / "config.json"
    config.write_bytes(find_shipped("Qwen3-8B").path.read_bytes())
    by_name = warmset("size", "Qwen3-8B", "--json").out
    assert warmset("size", config, "--json").out == by_name == warmset("size", tmp_path, "--json").out


def test_table(warmset):
    ended = warmset("size", "Qwen3-8B", "--tokens", "4096")
    assert ended.code == 0
    for text in ("Qwen3-8B", "GQA", "147,456", "4,096", "603,979,776", "604 MB", "576 MiB"):
        assert text in ended.out


@pytest.mark.parametrize(
    ("tokens", "says"),
    [
        ("", "'' is not a whole number"),
        ("4k", "'4k' is not a whole number"),
        ("1,,2", "'' is not a whole number"),
        ("-1", "-1 must be 0 or more"),
        ("1.5", "'1.5' is not a whole number"),
    ],
)
def test_lengths_that_are_refused(warmset, tokens, says):
    ended = warmset("size", "Qwen3-8B", f"--tokens={tokens}")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"warmset: --tokens {tokens}: {says}\n".replace("  ", " ")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "there is no such file"),
        ("{}", "model_type"),
        ("[1, 2]", ""),
        ("not json", "JSON"),
        ('{"model_type": "mamba2", "num_hidden_layers": 2}', "mamba2"),
    ],
    ids=["missing", "empty", "list", "not_json", "unknown_class"],
)
def test_configs_that_are_refused(warmset, tmp_path, text, says):
    path = tmp_path / "config.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    ended = warmset("size", path, "--json")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("warmset: ")
    assert says in ended.err
    assert ended.err.count("\n") == 1


def test_a_model_nobody_knows(warmset):
    ended = warmset("size", "Qwen9-9B")
    assert ended.code == 2
    assert ended.err.startswith("warmset: model 'Qwen9-9B' is not known")
