"""The rows of the table of `warmset size`: what is there, what is left out, and the numbers in them."""

import pytest


def rows(ended):
    """Cells by label of a table of one model; the last one of each label."""
    assert ended.code == 0
    lines = [line.strip("│┃ ").split("│") for line in ended.out.splitlines() if line.startswith("│")]
    return {cells[0].strip(): cells[-1].strip() for cells in lines}


@pytest.fixture
def table(warmset, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *words: rows(warmset("size", *words))


def test_a_plain_model_on_one_gpu(table):
    found = table("Qwen3-8B", "--tokens", "4096")
    assert found["growth, bytes per token"] == "147,456"
    assert found["sequence of 4,096 tokens"] == "603,979,776 (576 MiB)"
    assert found["cached prefix of 4,096 tokens"] == "the same"
    left_out = ("active", "windows, bytes per token", "state per sequence", "cross-attention per input")
    left_out += ("drafts (MTP), bytes per token", "on the fullest GPU: weights", "engine", "requests at once")
    assert not set(left_out) & set(found)


def test_a_cached_prefix_of_its_own_size(table):
    found = table("Qwen3-8B", "--tokens", "4096", "--kv", "fp8", "--cached-layout", "bf16")
    assert found["sequence of 4,096 tokens"] == "301,989,888 (288 MiB)"
    assert found["cached prefix of 4,096 tokens"] == "603,979,776 (576 MiB)"


def test_rows_of_hybrids(table):
    # EXPECTED-DETAIL.csv: states and MTP of Qwen3.5-27B, windows of gemma-3-27b-it.
    found = table("Qwen3.5-27B", "--tokens", "1")
    assert found["state per sequence"] == "153,944,064 (147 MiB)"
    assert found["drafts (MTP), bytes per token"] == "4,096"
    assert table("gemma-3-27b-it")["windows, bytes per token"] == "425,984 up to 1,024 tokens"
    assert "active" in table("Mixtral-8x7B-v0.1")


def test_a_decode_step_reads_weights_and_kv(table):
    # Qwen3-8B at 131,072 tokens: 18 GiB of KV, and 8.19 B - 151,936 x 4,096 weights of two bytes.
    assert ", 32.1 GiB read" in table("Qwen3-8B", "--tokens", "131072")["decode step at 131,072 tokens"]
    unknown = table("Kimi-K3", "--tokens", "4096")
    assert unknown["decode step at 4,096 tokens"].endswith("of KV read")
    assert not {"weights", "on the fullest GPU: weights"} & set(unknown)


def test_one_gpu_of_several(table):
    found = table("Qwen3-235B-A22B", "--tp", "8", "--tokens", "4096")
    assert found["growth, bytes per token"] == "48,128"  # 192,512 / 4: four KV heads, each on two GPUs
    assert found["KV of all GPUs over the model's"] == "2x"
    assert found["sequence of 4,096 tokens"] == "197,132,288 (188 MiB)"


def test_an_engine_with_and_without_a_range(table):
    words = ("Qwen3-8B", "--tokens", "1", "--engine", "vllm", "--max-model-len", "4096")
    given = table(*words, "--kv-cache-memory", f"{1000 * 16 * 147_456}B")
    assert given["tokens in the pool"] == "16,000"
    assert (given["blocks"], given["tokens per block"]) == ("1,000", "16")
    assert given["requests at once"] == "3.91 of 4,096 tokens"  # 16,000 / 4,096
    assert given["engine"] == "vLLM 0.33.0, KV in bf16"
    assert "to" in table(*words, "--gpu", "H200")["tokens in the pool"]
