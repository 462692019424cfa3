"""KV bytes of 102 published configs, against figures that come from outside this code.

kv_bytes.csv names the source of each: papers, engine logs and tests, or the engines' own code. kv_detail.csv
has the parts of each: as engines store them in bf16 and in fp8, windows, states, and whole sequences.
"""

import csv
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from warmset.model import (
    growth_bytes_per_token,
    kv_bytes,
    kv_layout,
    load_model,
    sequence_bytes,
    shipped_models,
)
from warmset.model.families import Recurrence
from warmset.model.kv_bytes import state_bytes
from warmset.model.recurrent import with_recurrent_bits

BF16, FP8 = kv_layout("bf16"), kv_layout("fp8")
ALL_BF16 = kv_layout("bf16", "bf16")
LENGTHS = (4096, 32768, 131072)
PATHS = {shipped.path.name: shipped.path for shipped in shipped_models()}

# The class in kv_bytes.csv -> the words that we have for it.
CLASSES = {
    "MHA": {"MHA"},
    "GQA": {"GQA"},
    "MQA": {"MQA"},
    "MLA": {"MLA"},
    "per-layer GQA (NAS)": {"GQA"},
    "GQA + CLA": {"GQA + cross-layer sharing"},
    "MLA + DSA": {"MLA + DSA"},
    "MLA + DSA (shared indexers)": {"MLA + DSA"},
    "sparse-indexed GQA (M3)": {"GQA + sparse index"},
    "V4 compressed (CSA/HCA)": {"compressed (CSA/HCA)"},
    "V4.1 compressed + cross-layer KV sources": {"compressed (CSA/HCA)"},
    "SWA hybrid": {"GQA + sliding window", "MQA + sliding window"},
    "SWA hybrid, K/V dims differ": {"GQA + sliding window"},
    "SWA all layers": {"GQA + sliding window", "MHA + sliding window"},
    "SWA hybrid + cross-layer KV sharing": {
        "GQA + sliding window + cross-layer sharing",
        "MQA + sliding window + cross-layer sharing",
    },
    "SWA hybrid + short conv": {"GQA + sliding window + short convolution"},
    "chunked-local + global GQA": {"GQA + chunked-local"},
    "short-conv hybrid": {"GQA + short convolution"},
    "lightning-attention hybrid": {"GQA + lightning attention"},
    "GDN hybrid": {"GQA + GDN"},
    "GDN + sparse-indexed GQA (QSA)": {"GQA + sparse index + GDN"},
    "KDA + MLA hybrid": {"MLA + KDA"},
    "KDA + MLA/DSA hybrid": {"MLA + DSA + KDA"},
    "Mamba1 hybrid": {"GQA + Mamba1"},
    "Mamba2 hybrid": {"GQA + Mamba2"},
    "Mamba2 parallel hybrid": {"GQA + Mamba2"},
    "SSM only (Mamba1)": {"Mamba1"},
    "SSM only (Mamba2)": {"Mamba2"},
    "cross-attention VLM": {"GQA + cross-attention"},
    "encoder-decoder": {"MHA + cross-attention"},
}

# The files whose config was not seen in the original. The expected figure follows from the file exactly;
# the released checkpoint may differ.
UNCERTAIN = {
    "stepfun-ai--Step-3.7-Flash.json": "a simplified copy: windowed layers may have other head counts",
    "thinkingmachines--Inkling.json": "a test fixture of teilomillet/kvfit: layer counts are illustrative",
    "inclusionAI--Ling-3.0-Flash.json": "defaults of the configuration class in transformers",
    "tencent--Hy4-preview.json": "defaults of the configuration class in transformers",
}


def table(name):
    with Path(__file__).with_name(name).open(encoding="utf-8", newline="") as file:
        return {row["file"]: row for row in csv.DictReader(file)}


GOLDEN, DETAIL = table("kv_bytes.csv"), table("kv_detail.csv")


@cache
def spec_of(file):
    return load_model(str(PATHS[file]))


def marked(rows):
    return [pytest.param(row, id=file.removesuffix(".json")) for file, row in rows.items()]


def test_every_shipped_config_has_its_rows():
    assert len(GOLDEN) == 102
    assert set(GOLDEN) == set(DETAIL) == set(PATHS)
    assert set(UNCERTAIN) < set(GOLDEN)
    assert {row["class"] for row in GOLDEN.values()} == set(CLASSES)


@pytest.mark.parametrize("row", marked(GOLDEN))
def test_growth_and_constant(row):
    spec = spec_of(row["file"])
    kv = kv_bytes(spec, BF16)
    assert kv.growth_bytes_per_token == growth_bytes_per_token(spec, BF16)
    assert kv.growth_bytes_per_token == int(row["expected"]), row["source_of_expected"]
    assert kv.constant_bytes_per_sequence + kv.cross_bytes_per_input == int(row["constant"])
    layers_per_count = (
        2 if spec.model_type == "longcat_flash" else 1
    )  # LongCat counts pairs: 28 are 56 caches
    assert spec.num_layers == layers_per_count * int(row["layers"])


@pytest.mark.parametrize("row", marked(GOLDEN))
def test_class(row):
    assert spec_of(row["file"]).cache_class in CLASSES[row["class"]]


@pytest.mark.parametrize("row", marked(DETAIL))
def test_parts(row):
    spec = spec_of(row["file"])
    kv = kv_bytes(spec, BF16)
    assert kv.growth_bytes_per_token == Fraction(row["growth_B_per_token_engine_bf16"])
    assert growth_bytes_per_token(spec, ALL_BF16) == Fraction(row["growth_all_bf16_incl_index"])
    # V4-Pro's 5,511.4375 stands there with three decimals.
    assert round(growth_bytes_per_token(spec, FP8), 3) == Fraction(row["growth_fp8_engine"])
    assert kv.window_bytes_per_token == int(row["swa_slope_B_per_token"])
    assert kv.window_tokens == int(row["swa_window_tokens"] or 0)
    at_full_window = sum(span * size for span, size in kv.windows.items())
    assert at_full_window == int(row["swa_bytes_at_full_window"] or 0)
    assert kv.state_bytes_per_sequence == int(row["recurrent_state_B_per_seq"])
    assert kv.cross_bytes_per_input == int(row["cross_attention_B_per_seq"])
    assert kv.mtp_bytes_per_token == int(row["mtp_extra_B_per_token"])


WHISPER = "openai--whisper-large-v3.json"
"""Its decoder ends at 448 tokens, so the table has no sequences of it."""


@pytest.mark.parametrize("row", marked({file: row for file, row in DETAIL.items() if file != WHISPER}))
@pytest.mark.parametrize("tokens", LENGTHS)
def test_sequences(row, tokens):
    assert sequence_bytes(spec_of(row["file"]), tokens, BF16) == int(row[f"seq_bytes_L{tokens}_bf16"])


def test_a_whole_transcript_beside_its_audio():
    # 448 tokens of 32 layers x 20 heads x 2 x 64 in bf16, and 245,760,000 bytes of one clip (1,500 frames).
    assert sequence_bytes(spec_of(WHISPER), 448, BF16) == 448 * 163_840 + 245_760_000


WITH_RECURRENCE = {file: row for file, row in DETAIL.items() if row["recurrent_state_other_dtype_B"]}


@pytest.mark.parametrize("row", marked(WITH_RECURRENCE))
def test_states_of_the_other_number_format(row):
    """fp32 where the default is 16 bits, and the reverse. The table leaves out the tail ring of an index."""
    spec = spec_of(row["file"])
    parts = [part for layer in spec.layers for part in layer.states]
    is_fp32 = {part.bits == 32 for part in parts if part.role == "recurrent"}
    assert len(is_fp32) == 1
    other = with_recurrent_bits(spec.layers, 16 if is_fp32.pop() else 32)
    kept = (part for layer in other for part in layer.states if part.role != "tail")
    assert state_bytes(kept) == int(row["recurrent_state_other_dtype_B"])


def test_every_model_with_a_recurrence_is_among_those():
    kinds = set(get_args(Recurrence)) - {"short convolution"}
    assert set(WITH_RECURRENCE) == {
        file for file in GOLDEN if kinds & set(spec_of(file).cache_class.split(" + "))
    }


def test_the_index_beside_the_repository_is_the_same(shared):
    with (shared / "model-configs" / "INDEX.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["file"]: row for row in csv.DictReader(file)}
    columns = {
        "class": "class",
        "layers": "layers",
        "expected": "expected_kv_bytes_per_token_bf16",
        "constant": "constant_bytes_per_seq",
        "source_of_expected": "source_of_expected",
    }
    assert list(rows) == list(GOLDEN)
    assert [
        (file, ours)
        for file, row in GOLDEN.items()
        for ours, theirs in columns.items()
        if row[ours] != rows[file][theirs]
    ] == []
    marks = ("UNCERTAIN", "from class defaults")
    assert {file for file, row in rows.items() if any(mark in row["notes"] for mark in marks)} < set(
        UNCERTAIN
    )


def test_the_details_beside_the_repository_are_the_same(shared):
    # Compared as text: a checkout of this repository has no carriage returns, the table beside it does.
    ours = Path(__file__).with_name("kv_detail.csv").read_text(encoding="utf-8")
    theirs = (shared / "model-configs" / "EXPECTED-DETAIL.csv").read_text(encoding="utf-8")
    assert ours.splitlines() == theirs.splitlines()
