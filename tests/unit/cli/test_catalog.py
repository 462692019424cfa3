"""`warmset catalog`: what it lists, and that nothing is listed without where it comes from."""

import json

import pytest


def test_models_are_listed_with_class_and_growth(warmset):
    rows = json.loads(warmset("catalog", "models", "--json").out)
    assert len(rows) == 102
    by_name = {row["model"]: row for row in rows}
    assert by_name["deepseek-ai/DeepSeek-V3"]["growth in bf16, bytes per token"] == "70,272"
    assert by_name["google/gemma-3-27b-it"]["cache class"] == "GQA + sliding window"
    assert all(row["source of the config"] for row in rows)


@pytest.mark.parametrize("kind", ["accelerators", "media"])
def test_every_figure_has_an_origin_and_a_source(warmset, kind):
    rows = json.loads(warmset("catalog", kind, "--json").out)
    filled = [row for row in rows if row["value"]]
    assert len(filled) > 150
    assert all(row["source"] and row["origin"] != "unknown" for row in filled)


def test_words_choose_rows(warmset):
    rows = json.loads(warmset("catalog", "accelerators", "h20-141g", "BW", "--json").out)
    assert {row["accelerator"] for row in rows} == {"H20-141G (H20-3e)"}
    assert "4800" in {row["value"] for row in rows}


def test_a_table_for_people(warmset):
    ended = warmset("catalog", "models", "whisper")
    assert ended.code == 0
    assert "cross-attention" in " ".join(ended.out.split())


def test_no_row_is_said(warmset):
    ended = warmset("catalog", "media", "punched", "cards")
    assert (ended.code, ended.out) == (2, "")
    assert "no row of media holds 'punched cards'" in ended.err
