"""`warmset evaluate`: flags over the scenario, where things are printed, and what is refused."""

import json
from pathlib import Path

import pytest

from tests.support.scenarios import ONE_GPU, as_toml, scenario_with
from tests.support.traces import mooncake_row, write_rows
from warmset.catalog import accelerator_names
from warmset.cli.evaluate import STAGES, _changed
from warmset.evaluation import from_json
from warmset.scenario import load_scenario, parse_scenario

SMALL_NODE = ("--model", "Qwen3-8B", "--gpu", "H20-96G", "--gpus", "1", "--dram", "64GiB", "--nvme", "1TB")
FLAGS = (
    "trace",
    "block_tokens",
    "model",
    "gpu",
    "gpus",
    "tensor_parallel",
    "nodes",
    "dram",
    "nvme",
    "remote",
)


def changed(**given):
    return _changed(load_scenario(None), dict.fromkeys(FLAGS) | {"assumed": ()} | given)


# --- flags -------------------------------------------------------------------------------------------


def test_no_flags_change_nothing():
    assert changed() == load_scenario(None)


@pytest.mark.parametrize(
    ("given", "section", "field", "value"),
    [
        ({"trace": "t.jsonl"}, "traffic", "trace", "t.jsonl"),
        ({"block_tokens": 16}, "traffic", "block_tokens", 16),
        ({"gpu": "H200"}, "hardware", "gpu", "H200"),
        ({"nodes": 3}, "hardware", "nodes", 3),
        ({"gpus": 4}, "hardware", "gpus_per_node", 4),
        ({"gpus": 4}, "hardware", "tensor_parallel", None),
        ({"gpus": 4, "tensor_parallel": 2}, "hardware", "tensor_parallel", 2),
        ({"tensor_parallel": 4}, "hardware", "gpus_per_node", 8),
        ({"dram": "2TiB"}, "tiers", "dram", "2TiB"),
        ({"remote": "5TB"}, "tiers", "remote", "5TB"),
        ({"model": "Qwen3-8B"}, "model", "name", "Qwen3-8B"),
        ({"model": "Qwen3-8B"}, "model", "max_context_tokens", None),
        ({"gpu": "H200"}, "model", "max_context_tokens", 131_072),
    ],
)
def test_a_flag_changes_its_field(given, section, field, value):
    assert getattr(getattr(changed(**given), section), field) == value


def test_assumptions_from_flags():
    assumed = changed(assumed=("dram_price=20", " nvme_price = 3.5")).assume
    assert {key: value.value for key, value in assumed.items()} == {"dram_price": 20.0, "nvme_price": 3.5}


def test_every_stage_has_its_words():
    from warmset.evaluate import evaluate

    told = []
    with pytest.raises(Exception, match="nowhere"):
        evaluate(scenario_with({"traffic": {"trace": "nowhere"}}), told.append)
    assert told == ["traffic"]
    assert told[0] in STAGES


# --- output ------------------------------------------------------------------------------------------


def test_print_scenario_reads_back_as_the_default(warmset):
    ended = warmset("evaluate", "--print-scenario")
    assert (ended.code, ended.err) == (0, "")
    assert parse_scenario(ended.out, "printed") == load_scenario(None)


def test_gpu_list(warmset):
    ended = warmset("evaluate", "--gpu", "list")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == list(accelerator_names())


def test_json_is_all_that_stdout_carries(warmset, log, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ended = warmset("evaluate", "--trace", log, *SMALL_NODE, "--json")
    assert ended.code == 0
    found = from_json(ended.out.encode())
    assert json.loads(ended.out)["schema"] == found.schema
    assert (found.traffic.name, found.model.name, found.hardware.num_gpus) == (log.name, "Qwen/Qwen3-8B", 1)
    assert "Traceback" not in ended.err
    assert list(tmp_path.iterdir()) == []


def test_a_scenario_file_with_flags_over_it(warmset, log, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(as_toml(ONE_GPU | {"name": "ours", "currency": "USD"}), encoding="utf-8")
    ended = warmset("evaluate", path, "--trace", log, "--dram", "0GB", "--assume", "nvme_price=9", "--json")
    found = from_json(ended.out.encode())
    assert (found.scenario_name, found.economics.currency) == ("ours", "USD")
    assert [budget.tier for budget in found.tier_budgets] == ["hbm", "nvme"]
    price = next(a.fact for a in found.assumptions if a.key == "nvme_price")
    assert (price.value, price.origin) == (9.0, "given")


def test_progress_goes_to_stderr_and_the_answer_to_stdout(warmset, log, tmp_path):
    out = tmp_path / "deep" / "report"
    ended = warmset("evaluate", "--trace", log, *SMALL_NODE, "--out", out)
    assert ended.code == 0
    assert {path.name for path in out.iterdir()} == {"report.html", "report.md", "evaluation.json"}
    assert "written: " in ended.err
    assert "written: " not in ended.out
    assert "TTFT P95" in ended.out
    from_json((out / "evaluation.json").read_bytes())


@pytest.mark.parametrize("model", ["Qwen3-8B", "Llama-3_3-Nemotron-Super-49B-v1"])
def test_plain_classes_have_tried_times(warmset, log, model):
    assert "untried_times" not in evaluation_findings(warmset, log, model)


def test_times_of_other_classes_are_said_to_be_untried(warmset, log):
    assert "untried_times" in evaluation_findings(warmset, log, "MiniMax-M3")


def evaluation_findings(warmset, log, model):
    ended = warmset("evaluate", "--trace", log, "--model", model, "--gpus", "8", "--json")
    assert ended.code == 0, ended.err
    return {finding["code"] for finding in json.loads(ended.out)["findings"]}


# --- refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--gpu", "H9000"], "accelerator 'H9000' is not in the catalog: the nearest names are"),
        (["--model", "Qwen9"], "model 'Qwen9' is not known"),
        (["--model", "Jamba-1.5-Mini"], "GQA + Mamba1: evaluate plans tiers for models whose whole KV grows"),
        (["--model", "gpt-oss-20b"], "for the bytes of this one run `warmset size`"),
        (["--dram", "512"], "--dram: size '512' has no unit"),
        (["--nvme", "14 terabytes"], "--nvme: size '14 terabytes'"),
        (["--gpus", "0"], "--gpus is 0"),
        (["--tensor-parallel", "3"], "--tensor-parallel is 3: it must divide"),
        (["--nodes", "0"], "--nodes is 0"),
        (["--assume", "dram_price"], "--assume dram_price: write KEY=NUMBER"),
        (["--assume", "dram_price=cheap"], "--assume dram_price=cheap: write KEY=NUMBER"),
        (["--assume", "dram_prize=1"], "[assume.dram_prize]: no such assumption"),
        (["--assume", "chunk_tokens=0"], "[assume.chunk_tokens]: 0.0 tokens: it must be at least 1"),
        (["--assume", "gemm_efficiency=nan"], "[assume.gemm_efficiency]: nan ratio"),
        (["--remote", "1TB"], "no figure for remote_price_per_tb in the catalog: give one with --assume"),
        (["nowhere.toml"], "nowhere.toml: cannot be read"),
    ],
)
def test_one_line_that_says_what_and_where(warmset, log, words, says):
    ended = warmset("evaluate", "--trace", log, *words, "--json")
    assert (ended.code, ended.out) == (2, "")
    *progress, error = ended.err.splitlines()
    assert error.startswith("warmset: ")
    assert says in error
    assert not any(line.startswith(("warmset: ", "Traceback", " ")) for line in progress)


def test_a_model_that_does_not_fit_is_three(warmset, log):
    ended = warmset("evaluate", "--trace", log, "--model", "Qwen3-235B-A22B", "--gpus", "1", "--json")
    assert (ended.code, ended.out) == (3, "")
    assert "the weights leave no room for KV" in ended.err


def test_a_scenario_with_a_mistake_names_file_and_field(warmset, tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("[slo]\nttfd = '5s'\n", encoding="utf-8")
    ended = warmset("evaluate", path)
    assert ended.err == f"warmset: {path}: unknown field slo.ttfd; did you mean slo.ttft?\n"
    assert ended.code == 2


def test_nothing_to_serve(warmset, tmp_path):
    path = write_rows(tmp_path / "t.jsonl", *[mooncake_row(input_length=0, hash_ids=[])] * 3)
    ended = warmset("evaluate", "--trace", path, "--json")
    assert ended.code == 2
    assert "no request has any input tokens" in ended.err
    assert ended.err.count("\n") == 1


def test_a_file_where_the_report_should_go(warmset, log, tmp_path):
    in_the_way: Path = tmp_path / "report"
    in_the_way.write_text("mine", encoding="utf-8")
    ended = warmset("evaluate", "--trace", log, *SMALL_NODE, "--out", in_the_way)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"warmset: --out {in_the_way}: {in_the_way} is a file, not a folder\n"
    assert in_the_way.read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(("model", "halves"), [("Qwen3-8B", True), ("DeepSeek-V3.2", False)])
def test_fp8_is_advised_where_it_halves(warmset, log, model, halves):
    """V3.2 takes 48,068 bytes a token in fp8 and 78,324 in bf16 (EXPECTED-DETAIL.csv): not half."""
    ended = warmset("evaluate", "--trace", log, "--model", model, "--gpus", "8", "--json")
    would_change = json.loads(ended.out)["verdict"]["would_change"]
    assert ("fp8_kv" in {reason["key"] for reason in would_change}) is halves
