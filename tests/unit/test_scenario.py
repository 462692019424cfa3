"""One TOML file to a checked scenario, and every way it can be wrong."""

import math
import re
import tomllib
from pathlib import Path

import msgspec
import pytest

from tests.support.scenarios import scenario_with
from warmset.catalog import find_accelerator
from warmset.errors import ScenarioError
from warmset.evaluate.facts_used import collect_facts
from warmset.scenario import (
    MAX_SCENARIO_BYTES,
    Scenario,
    default_scenario_text,
    load_scenario,
    parse_scenario,
    scenario_from_tree,
)

OF_THE_DEPLOYMENT = {"model.max_context_tokens": 131_072, "hardware.tensor_parallel": 8}
"""What the built-in scenario sets though leaving it out means something else; its comments say what."""


def refusal(change: dict) -> str:
    with pytest.raises(ScenarioError) as error:
        scenario_from_tree(change, "mine.toml")
    text = str(error.value)
    assert text.startswith("mine.toml: ")
    assert "\n" not in text
    return text


def fields_of(section: type[msgspec.Struct], path: str = "") -> list[str]:
    """Every field a person can set, as `section.field`."""
    found = []
    for field in msgspec.structs.fields(section):
        inner = field.type
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            found.extend(fields_of(inner, f"{path}{field.name}."))
        else:
            found.append(f"{path}{field.name}")
    return found


def value_at(scenario: Scenario, path: str) -> object:
    value: object = scenario
    for name in path.split("."):
        value = getattr(value, name)
    return value


# --- the built-in scenario ---------------------------------------------------------------------------


def test_the_built_in_scenario_is_the_defaults():
    built_in, defaults = load_scenario(None), Scenario()
    differing = {
        path: value_at(built_in, path)
        for path in fields_of(Scenario)
        if value_at(built_in, path) != value_at(defaults, path)
    }
    assert differing == OF_THE_DEPLOYMENT
    lines = default_scenario_text().splitlines()
    for path in OF_THE_DEPLOYMENT:
        line = next(line for line in lines if line.startswith(f"{path.rpartition('.')[2]} ="))
        assert "left out" in line


def test_the_built_in_scenario_is_what_the_issue_names():
    scenario = load_scenario(None)
    assert (scenario.hardware.gpu, scenario.hardware.gpus_per_node) == ("H20-141G", 8)
    assert (scenario.model.name, scenario.model.weights, scenario.model.kv) == (
        "Qwen3-235B-A22B",
        "fp8",
        "bf16",
    )
    assert scenario.tiers.capacity_bytes("dram") == 2**40
    assert scenario.tiers.capacity_bytes("nvme") == 14 * 10**12
    assert scenario.tiers.capacity_bytes("remote") == 0
    assert (scenario.slo.ttft_s, scenario.slo.tpot_s, scenario.slo.percentile) == (5.0, 0.06, 95)
    assert scenario.hardware.nodes is None


def test_the_printed_scenario_is_complete():
    """With its commented lines in force, every field that there is has a place in the file."""
    tree = tomllib.loads(without_comment_marks(default_scenario_text()))
    assert tree.pop("assume")["dram_price"].keys() == {"value", "low", "high"}
    written = {
        f"{name}.{field}" for name, table in tree.items() if isinstance(table, dict) for field in table
    }
    written |= {name for name, value in tree.items() if not isinstance(value, dict)}
    assert written == set(fields_of(Scenario)) - {"assume"}


def test_the_commented_examples_work():
    scenario = parse_scenario(without_comment_marks(default_scenario_text()), "built-in scenario")
    book = collect_facts(scenario, find_accelerator(scenario.hardware.gpu))
    price = book.fact("dram_price")
    assert (price.least, price.value, price.most, price.origin) == (15, 20, 30, "given")


def without_comment_marks(text: str) -> str:
    """Commented assignments and table heads become real; prose stays a comment."""
    return re.sub(r"^# (?=\[[\w.]+\]$|\w+ = )", "", text, flags=re.MULTILINE)


# --- what is derived ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gpus", "tensor_parallel", "per_engine", "engines"), [(8, None, 8, 1), (8, 8, 8, 1), (8, 2, 2, 4)]
)
def test_engines_of_a_node(gpus, tensor_parallel, per_engine, engines):
    hardware = {"gpus_per_node": gpus}
    if tensor_parallel is not None:
        hardware["tensor_parallel"] = tensor_parallel
    chosen = scenario_with({"hardware": hardware}).hardware
    assert (chosen.gpus_per_engine, chosen.engines_per_node) == (per_engine, engines)


def test_nothing_has_to_be_written():
    assert parse_scenario("", "mine.toml") == Scenario()


def test_a_part_of_a_section_leaves_the_rest_as_it_is():
    scenario = parse_scenario('[slo]\nttft = "800ms"\n', "mine.toml")
    assert (scenario.slo.ttft_s, scenario.slo.tpot_s) == (0.8, 0.06)


# --- what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"hardware": {"gpu_per_node": 8}}, "unknown field hardware.gpu_per_node; did you mean hardware.gpu"),
        ({"slo": {"ttfd": "5s"}}, "unknown field slo.ttfd; did you mean slo.ttft?"),
        ({"hardwear": {}}, "unknown field hardwear; did you mean hardware?"),
        ({"model": {"zzz": 1}}, "unknown field model.zzz; known here: name, weights"),
        ({"assume": {"dram_price": {"valu": 1}}}, "assume"),
    ],
    ids=["near", "typo", "section", "far", "in_assume"],
)
def test_unknown_fields(change, says):
    assert says in refusal(change)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"slo": {"percentile": "95"}}, "slo.percentile is '95': it must be a whole number"),
        ({"slo": {"ttft": 5}}, "slo.ttft is 5: it must be text in quotes"),
        ({"tiers": {"inclusive": "yes"}}, "tiers.inclusive is 'yes': it must be true or false"),
        (
            {"tiers": {"load": "sometimes"}},
            "tiers.load is 'sometimes': it must be one of always, when_faster",
        ),
        (
            {"model": {"weights": "fp3"}},
            "model.weights is 'fp3': it must be one of bf16, fp16, fp8, int8, int4",
        ),
        ({"model": {"kv": "int4"}}, "model.kv is 'int4': it must be one of bf16, fp16, fp8, int8"),
        ({"hardware": {"gpus_per_node": 7.5}}, "hardware.gpus_per_node is 7.5: it must be a whole number"),
        ({"hardware": {"nodes": "6"}}, "hardware.nodes is '6': it must be a whole number"),
        (
            {"traffic": {"routing": "random"}},
            "traffic.routing is 'random': it must be one of prefix, round_robin",
        ),
        ({"traffic": "mooncake"}, "traffic is 'mooncake': it must be a table"),
        ({"currency": "EUR"}, "currency is 'EUR': it must be one of CNY, USD"),
        ({"assume": {"dram_price": 20}}, "$.assume"),
        ({"assume": {"dram_price": {"value": "20"}}}, "$.assume"),
    ],
)
def test_wrong_types_name_their_place_and_what_may_stand_there(change, says):
    assert says in refusal(change)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"slo": {"ttft": "0s"}}, "slo.ttft is 0.0: it must be above 0"),
        ({"slo": {"tpot": "-60ms"}}, "slo.tpot: duration '-60ms' cannot be read"),
        ({"slo": {"tpot": "60"}}, "slo.tpot: duration '60': unit '' is not one of"),
        ({"slo": {"ttft": "9" * 400 + "s"}}, "slo.ttft is inf"),
        ({"slo": {"percentile": 0}}, "slo.percentile is 0: it must lie between 1 and 100"),
        ({"slo": {"percentile": 101}}, "slo.percentile is 101"),
        ({"tiers": {"dram": "512"}}, "tiers.dram: size '512' has no unit: write 512B"),
        ({"tiers": {"nvme": "14 terabytes"}}, "tiers.nvme: size '14 terabytes': unit 'terabytes'"),
        ({"tiers": {"remote": "-1GB"}}, "tiers.remote: size '-1GB' cannot be read"),
        ({"tiers": {"dram": "2000PB"}}, "tiers.dram is 2000000000000000000 bytes: it must be at most"),
        ({"hardware": {"tensor_parallel": 3}}, "must divide hardware.gpus_per_node, which is 8"),
        ({"hardware": {"tensor_parallel": 16}}, "hardware.tensor_parallel is 16"),
        ({"hardware": {"tensor_parallel": 0}}, "hardware.tensor_parallel is 0"),
        ({"hardware": {"tensor_parallel": -8}}, "hardware.tensor_parallel is -8"),
        ({"hardware": {"gpus_per_node": 0}}, "hardware.gpus_per_node is 0: it must be at least 1"),
        ({"hardware": {"max_nodes": 0}}, "hardware.max_nodes is 0"),
        ({"hardware": {"nodes": 0}}, "hardware.nodes is 0"),
        ({"traffic": {"block_tokens": 0}}, "traffic.block_tokens is 0"),
        ({"traffic": {"load_factor": 0}}, "traffic.load_factor is 0"),
        ({"traffic": {"load_factor": -1.0}}, "traffic.load_factor is -1.0"),
        ({"traffic": {"load_factor": math.inf}}, "traffic.load_factor is inf"),
        ({"traffic": {"load_factor": math.nan}}, "traffic.load_factor is nan"),
        ({"model": {"max_context_tokens": 0}}, "model.max_context_tokens is 0"),
    ],
)
def test_values_that_no_evaluation_could_use(change, says):
    assert says in refusal(change)


@pytest.mark.parametrize("percentile", [1, 50, 100])
def test_percentiles_at_the_edge(percentile):
    assert scenario_with({"slo": {"percentile": percentile}}).slo.percentile == percentile


# --- files -------------------------------------------------------------------------------------------


def file_refusal(path: Path) -> str:
    with pytest.raises(ScenarioError) as error:
        load_scenario(path)
    text = str(error.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text


def test_a_file_is_read(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('name = "我们的平台"\n', encoding="utf-8")
    assert load_scenario(path).name == "我们的平台"


def test_a_missing_file(tmp_path):
    assert "cannot be read: No such file" in file_refusal(tmp_path / "none.toml")


def test_a_folder(tmp_path):
    assert "cannot be read" in file_refusal(tmp_path)


def test_not_toml(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("slo: {ttft: 5s}\n", encoding="utf-8")
    assert "is not TOML" in file_refusal(path)
    assert "line 1" in file_refusal(path)


def test_not_utf8(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes('name = "café"\n'.encode("latin-1"))
    assert "is not UTF-8 text" in file_refusal(path)


def test_too_large(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_bytes(b"#" * (MAX_SCENARIO_BYTES + 1))
    assert "larger than" in file_refusal(path)
    path.write_bytes(b"#" * MAX_SCENARIO_BYTES)
    assert load_scenario(path) == Scenario()


# --- assumptions, checked when the facts are gathered ---------------------------------------------------


def facts_with(**assumed: dict):
    scenario = scenario_with({"assume": assumed})
    return collect_facts(scenario, find_accelerator(scenario.hardware.gpu))


@pytest.mark.parametrize(
    ("key", "assumed", "says"),
    [
        ("dram_prise", {"value": 1}, "no such assumption; nearest: dram_price,"),
        ("dram_price", {"value": 20, "low": 21}, "20.0 USD per GB lies outside its range 21.0 to None"),
        ("dram_price", {"value": math.nan}, "it must be a number of 0 or more"),
        ("dram_price", {"value": math.inf}, "it must be a number of 0 or more"),
        ("dram_price", {"value": 1, "low": -1}, "it must be a number of 0 or more"),
        ("gemm_efficiency", {"value": 0}, "it must be above 0"),
        ("gemm_efficiency", {"value": -0.5}, "it must be a number of 0 or more"),
        ("depreciation_years", {"value": 0}, "it must be above 0"),
        ("prefill_time_scale", {"value": 1, "low": 0}, "it must be above 0"),
        ("chunk_tokens", {"value": 0.5}, "it must be at least 1"),
        ("nvme_drives", {"value": 0}, "it must be at least 1"),
        ("tier_usable_share", {"value": 1.5}, "it must be at most 1"),
        ("gpu_memory_utilization", {"value": 92}, "it must be at most 1"),
        ("nvme_mixed_read_ratio", {"value": 2}, "it must be at most 1"),
    ],
)
def test_assumptions_that_cannot_be(key, assumed, says):
    with pytest.raises(ScenarioError) as error:
        facts_with(**{key: assumed})
    assert str(error.value).startswith(f"[assume.{key}]: ")
    assert says in str(error.value)


@pytest.mark.parametrize(
    "key",
    [
        "dram_price",
        "staff_fte",
        "nvme_latency_s",
        "prefill_startup_s",
        "gpu_power_w",
        "metadata_bytes_per_chunk",
    ],
)
def test_assumptions_that_may_be_zero(key):
    assert facts_with(**{key: {"value": 0}}).fact(key).value == 0


def test_an_assumption_takes_the_unit_of_what_it_replaces():
    assert facts_with(nvme_price={"value": 100}).fact("nvme_price").unit == "USD per TB"
    given = facts_with(remote_price_per_tb={"value": 100}).fact("remote_price_per_tb")
    assert (given.unit, given.origin) == ("CNY per TB", "given")
