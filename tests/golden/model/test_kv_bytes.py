"""KV bytes of 102 published configs, against figures that come from outside this code.

kv_bytes.csv names the source of each: papers, engine logs and tests, or the engines' own code.
"""

import csv
import json
import re
from pathlib import Path

import pytest

from warmset.errors import UnsupportedModelError
from warmset.model import (
    growth_bytes_per_token,
    growth_bytes_per_token_per_gpu,
    load_model,
    sequence_bytes,
    shipped_models,
)

SIZED = {"MHA", "GQA", "MQA", "MLA"}
PATHS = {shipped.path.name: shipped.path for shipped in shipped_models()}

# The class in kv_bytes.csv -> what the refusal must call it, and a field that it must show.
REFUSALS = {
    "SWA hybrid": ("sliding-window", "sliding_window="),
    "SWA hybrid, K/V dims differ": ("sliding-window", "hybrid_layer_pattern="),
    "SWA hybrid + cross-layer KV sharing": ("share another layer's KV", "num_kv_shared_layers="),
    "SWA hybrid + short conv": ("sliding-window", "sliding_window_size="),
    "SWA all layers": ("sliding-window", "sliding_window="),
    "chunked-local + global GQA": ("chunked-local", "attention_chunk_size=8192"),
    "short-conv hybrid": ("short-convolution", "layer_types: 22 of 30 are conv"),
    "lightning-attention hybrid": ("linear-attention", "attn_type_list="),
    "GDN hybrid": ("linear-attention", "full_attention_interval=4"),
    "GDN + sparse-indexed GQA (QSA)": ("sparse-attention", "indexer_"),
    "KDA + MLA hybrid": ("linear-attention", "linear_"),
    "KDA + MLA/DSA hybrid": ("linear-attention", "linear_attn_config="),
    "Mamba1 hybrid": ("Mamba", "mamba_d_conv="),
    "Mamba2 hybrid": ("Mamba", "mamba_"),
    "Mamba2 parallel hybrid": ("Mamba", "mamba_"),
    "SSM only (Mamba1)": ("recurrent-state", "state_size=16"),
    "SSM only (Mamba2)": ("recurrent-state", "state_size=128"),
    "MLA + DSA": ("sparse-attention", "index_topk=2048"),
    "MLA + DSA (shared indexers)": ("sparse-attention", "index_head_dim=128"),
    "sparse-indexed GQA (M3)": ("sparse-attention", "sparse_attention_config="),
    "V4 compressed (CSA/HCA)": ("compressed KV", "compress_ratios="),
    "V4.1 compressed + cross-layer KV sources": ("compressed KV", "kv_source_layer_ids="),
    "cross-attention VLM": ("cross-attention", "cross_attention_layers="),
    "encoder-decoder": ("encoder-decoder", "encoder_layers="),
    "per-layer GQA (NAS)": ("different attention", "block_configs="),
    "GQA + CLA": ("share another layer's KV", "cla_share_factor=2"),
}


def golden_rows():
    with Path(__file__).with_name("kv_bytes.csv").open(encoding="utf-8", newline="") as file:
        return [pytest.param(row, id=row["file"].removesuffix(".json")) for row in csv.DictReader(file)]


SIZED_ROWS = [row for row in golden_rows() if row.values[0]["class"] in SIZED]
REFUSED_ROWS = [row for row in golden_rows() if row.values[0]["class"] not in SIZED]


def test_the_table_covers_every_shipped_config():
    assert sorted(PATHS) == sorted(row.values[0]["file"] for row in golden_rows())
    assert (len(SIZED_ROWS), len(REFUSED_ROWS)) == (45, 57)


@pytest.mark.parametrize("row", SIZED_ROWS)
def test_growth(row):
    spec = load_model(str(PATHS[row["file"]]))
    assert spec.cache_class == row["class"]
    assert growth_bytes_per_token(spec, "bf16") == int(row["expected"]), row["source_of_expected"]


@pytest.mark.parametrize("row", REFUSED_ROWS)
def test_refusal(row):
    words, field = REFUSALS[row["class"]]
    with pytest.raises(UnsupportedModelError) as refusal:
        load_model(str(PATHS[row["file"]]))
    message = str(refusal.value)
    assert "\n" not in message
    assert words in message
    assert field in message
    shown = set(re.findall(r"[(,] ?(?:\w+\.)?(\w+)[=:]", message))
    assert shown <= keys_of(json.loads(PATHS[row["file"]].read_text(encoding="utf-8")))


def keys_of(value):
    if not isinstance(value, dict):
        return set()
    return set(value).union(*map(keys_of, value.values()))


def test_the_shared_table_is_the_same(shared):
    with (shared / "model-configs" / "INDEX.csv").open(encoding="utf-8", newline="") as file:
        expected = {
            row["file"]: (row["class"], row["expected_kv_bytes_per_token_bf16"])
            for row in csv.DictReader(file)
        }
    ours = {
        row.values[0]["file"]: (row.values[0]["class"], row.values[0]["expected"]) for row in golden_rows()
    }
    assert ours == expected


def test_whole_sequences(shared):
    with (shared / "model-configs" / "EXPECTED-DETAIL.csv").open(encoding="utf-8", newline="") as file:
        details = {row["file"]: row for row in csv.DictReader(file)}
    for row in SIZED_ROWS:
        file = row.values[0]["file"]
        spec, detail = load_model(str(PATHS[file])), details[file]
        for tokens in (4096, 32768, 131072):
            expected = int(detail[f"seq_bytes_L{tokens}_bf16"])
            assert sequence_bytes(spec, tokens, "bf16") == expected, (file, tokens)
        assert growth_bytes_per_token(spec, "fp8") == int(detail["growth_fp8_engine"]), file


@pytest.mark.parametrize(
    ("model", "tokens", "printed", "unit_bytes"),
    [
        ("DeepSeek-V3", 32768, "2196.00", 2**20),  # llama.cpp PR#11446
        ("DeepSeek-R1", 1_230_416, "80.53", 2**30),  # sglang#7055
        ("Kimi-K2.5", 262_144, "17.16", 2**30),  # unsloth PR#4757
        ("Qwen3-0.6B", 40_960, "4.38", 2**30),  # unsloth PR#4757
        ("Meta-Llama-3.1-8B", 1952 * 16, "3.81", 2**30),  # vllm#10517: 1,952 blocks
        ("Meta-Llama-3.1-70B", 1_000_000, "327680000000", 1),  # a test of NVIDIA/kvpress
    ],
)
def test_sizes_that_others_logged(model, tokens, printed, unit_bytes):
    digits = len(printed.partition(".")[2])
    assert f"{sequence_bytes(load_model(model), tokens, 'bf16') / unit_bytes:.{digits}f}" == printed


def test_sizes_per_gpu_that_others_logged():
    # KVDirect issue 2: 640 MiB on each of 8 GPUs at 16K tokens.
    llama = load_model("Meta-Llama-3.1-70B")
    assert growth_bytes_per_token_per_gpu(llama, "bf16", 8) * 16384 == 640 * 2**20
    # vllm#21348: SGLang logs 16.46 GB (GiB) for 367,404 tokens on each of 4 GPUs.
    qwen = load_model("Qwen3-235B-A22B")
    assert f"{growth_bytes_per_token_per_gpu(qwen, 'bf16', 4) * 367_404 / 2**30:.1f}" == "16.5"
