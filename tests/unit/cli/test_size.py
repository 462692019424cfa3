"""`warmset size`: the contract of its JSON, and its table."""

import json
import re

import pytest

from warmset.model.shipped import find_shipped

KEYS = [
    "model",
    "cache_class",
    "num_layers",
    "kv_layout",
    "kv",
    "sequence_bytes",
    "cached_prefix_bytes",
    "parameters",
    "active_parameters",
    "weight_format",
    "weight_bytes",
    "prefill_flops",
    "decode_step",
    "per_gpu",
    "engine",
    "notes",
]
KV_KEYS = [
    "growth_bytes_per_token",
    "window_bytes_per_token",
    "window_tokens",
    "state_bytes_per_sequence",
    "cross_bytes_per_input",
    "mtp_bytes_per_token",
]
PLAIN = [
    ("Qwen3-235B-A22B", "bf16", 192_512),
    ("Qwen3-235B-A22B", "fp8", 96_256),
    ("DeepSeek-V3", "bf16", 70_272),  # arXiv 2505.09343, table 1
    ("Meta-Llama-3.1-405B", "bf16", 516_096),  # the same table
    ("Qwen2.5-72B-Instruct", "bf16", 327_680),  # the same table
]


@pytest.mark.parametrize(("model", "kv", "growth"), PLAIN)
def test_json_of_a_plain_model(warmset, model, kv, growth):
    ended = warmset("size", model, "--tokens", "1,4096,131072", "--kv-layout", kv, "--json")
    assert (ended.code, ended.err) == (0, "")
    found = json.loads(ended.out)
    assert list(found) == KEYS
    assert list(found["kv"]) == KV_KEYS
    assert list(found["kv"].values())[:5] == [growth, 0, 0, 0, 0]
    expected = {str(n): n * growth for n in (1, 4096, 131_072)}
    assert found["sequence_bytes"] == found["cached_prefix_bytes"] == expected
    assert found["engine"] is None


# shared/model-configs/EXPECTED-DETAIL.csv: growth, window, its tokens, state, cross, MTP, 4,096 tokens.
HYBRIDS = {
    "Qwen3.5-27B": (65_536, 0, 0, 153_944_064, 0, 4_096, 422_379_520),
    "gemma-3-27b-it": (81_920, 425_984, 1024, 0, 0, 0, 771_751_936),
    "DeepSeek-V4-Flash": (6_229, 44_032, 128, 12_206_080, 0, 0, 43_356_160),
    "Llama-3.2-90B-Vision-Instruct": (327_680, 0, 0, 0, 524_615_680, 0, 1_866_792_960),
}


@pytest.mark.parametrize("model", HYBRIDS)
def test_json_of_a_hybrid(warmset, model):
    found = json.loads(warmset("size", model, "--tokens", "4096", "--json").out)
    assert (*found["kv"].values(), found["sequence_bytes"]["4096"]) == HYBRIDS[model]


def test_several_models_make_a_list(warmset):
    found = json.loads(warmset("size", "Qwen3-8B", "Qwen3-0.6B", "--json").out)
    assert [size["model"] for size in found] == ["Qwen/Qwen3-8B", "Qwen/Qwen3-0.6B"]


def test_growth_that_is_not_whole_is_exact(warmset):
    found = json.loads(warmset("size", "DeepSeek-V4-Flash", "--kv-layout", "fp8", "--json").out)
    assert found["kv"]["growth_bytes_per_token"] == 3850.25  # EXPECTED-DETAIL.csv


def test_a_snapshot_every_784_tokens(warmset):
    words = ["size", "Qwen3.5-27B", "--tokens", "784", "--snapshot-tokens", "784", "--json"]
    found = json.loads(warmset(*words).out)
    # kv-physics.md, section 8: 261,893 bytes per cached token.
    assert found["cached_prefix_bytes"]["784"] // 784 == 261_893


def test_a_lower_tier_may_have_another_layout(warmset):
    words = [
        "size",
        "Qwen3-8B",
        "--tokens",
        "4096",
        "--kv-layout",
        "fp8",
        "--cached-layout",
        "bf16",
        "--json",
    ]
    found = json.loads(warmset(*words).out)
    assert found["cached_prefix_bytes"]["4096"] == 2 * found["sequence_bytes"]["4096"] == 4096 * 147_456


def test_states_in_another_format(warmset):
    words = ["size", "Qwen3.5-27B", "--state-dtype", "bf16", "--json"]
    # EXPECTED-DETAIL.csv, recurrent_state_other_dtype_B.
    assert json.loads(warmset(*words).out)["kv"]["state_bytes_per_sequence"] == 78_446_592


def test_one_gpu_of_several(warmset):
    found = json.loads(warmset("size", "Qwen3-235B-A22B", "--tp", "8", "--tokens", "1", "--json").out)
    gpu = found["per_gpu"]
    assert gpu["num_gpus"] == 8
    assert gpu["growth_bytes_per_token"] == 192_512 // 4  # 4 KV heads, each on two GPUs
    assert gpu["replication_factor"] == 2


VLLM_LOG = {  # user log of Qwen3.8-27B-FP8, which has the geometry of Qwen3.5-27B: kv-physics.md, section 8
    "num_blocks": 208,
    "pool_tokens": 302_921,
}


def test_an_engine_as_its_log_has_it(warmset):
    budget = 208 * 25_690_112
    words = ["--tp", "2", "--kv-layout", "fp8", "--engine", "vllm", "--max-model-len", "131072"]
    words += [
        "--kv-cache-memory",
        f"{budget}B",
        "--max-num-batched-tokens",
        "8192",
        "--vllm-release",
        "0.30.0",
    ]
    found = json.loads(warmset("size", "Qwen3.5-27B", *words, "--json").out)["engine"]
    assert {key: found[key] for key in VLLM_LOG} == VLLM_LOG
    assert f"{found['max_concurrency']:.2f}" == "2.31"
    assert found["least_pool_tokens"] == found["most_pool_tokens"]


def test_an_engine_on_a_gpu_has_a_range(warmset):
    words = ["size", "Qwen3-8B", "--engine", "vllm", "--gpu", "H200", "--json"]
    found = json.loads(warmset(*words).out)["engine"]
    assert found["least_pool_tokens"] < found["pool_tokens"] < found["most_pool_tokens"]
    gib = (found["most_pool_tokens"] - found["least_pool_tokens"]) * 147_456 / 2**30
    assert gib == pytest.approx(2, abs=0.01)  # overheads of 1 and 3 GiB


def test_sglang_as_its_log_has_it(warmset):
    words = ["--tp", "8", "--dp-attention", "8", "--engine", "sglang"]
    words += ["--kv-cache-memory", f"{1_230_416 * 70_272}B"]
    found = json.loads(warmset("size", "DeepSeek-R1", *words, "--json").out)["engine"]
    assert found["pool_tokens"] == 1_230_416  # sglang#7055
    assert any("80.53" in line for line in found["log_lines"])


def test_weights_that_do_not_fit_name_what_would(warmset):
    ended = warmset("size", "DeepSeek-R1", "--tp", "2", "--engine", "vllm", "--gpu", "H200")
    assert (ended.code, ended.out) == (3, "")
    assert "weights take 314 GiB of each GPU at tensor_parallel=2" in ended.err
    assert "tensor_parallel=8 fits" in ended.err


def test_explain_prints_formulas_with_numbers_and_sources(warmset):
    ended = warmset("size", "gemma-3-4b-it", "--explain", "--tokens", "4096")
    out = " ".join(ended.out.split())
    assert "29 layers x [4 KV heads x (256 + 256) in bf16: 4,096 bytes]" in out
    assert "num_key_value_heads=4 (default of the model type)" in out
    assert "sliding_window=1024" in out
    assert "docs/method.md" in out


def test_json_explains_only_when_asked(warmset):
    words = ["size", "Qwen3-8B", "--engine", "vllm", "--gpu", "H200", "--json"]
    plain, explained = json.loads(warmset(*words).out), json.loads(warmset(*words, "--explain").out)
    assert "steps" not in plain
    assert "steps" not in plain["engine"]
    assert {"label", "formula", "result", "source"} == set(explained["steps"][0])
    assert explained["engine"]["steps"]


def test_a_cached_fp8_checkpoint_is_noted(warmset):
    assert "asks for an fp8 KV cache" in " ".join(warmset("size", "Gemma-4-31B-IT-NVFP4").out.split())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--tp", "3"], "32 heads cannot be split over tensor_parallel=3"),
        (["--tp", "0"], "tensor_parallel=0"),
        (["--pp", "99"], "pipeline_parallel=99 is more than its layers"),
        (["--dcp", "2"], "decode_context_parallel=2"),
        (["--batch", "0"], "--batch 0"),
        (["--kv-layout", "fp8_ds_mla"], "fp8_ds_mla"),
        (["--snapshot-tokens", "0"], "snapshot_tokens=0"),
        (["--engine", "vllm"], "name the GPU"),
        (["--engine", "vllm", "--gpu", "H200", "--gpu-memory-utilization", "2"], "above 0 and at most 1"),
        (["--engine", "vllm", "--gpu", "H200", "--gpu-memory-utilization", "most"], "most"),
        (["--engine", "vllm", "--gpu", "Z9000"], "Z9000"),
        (["--engine", "vllm", "--kv-cache-memory", "10"], "no unit"),
    ],
)
def test_options_that_are_refused(warmset, words, says):
    ended = warmset("size", "Qwen3-8B", *words)
    assert (ended.code, ended.out) == (2, "")
    assert says in ended.err
    assert ended.err.count("\n") == 1


def test_a_config_file_and_its_folder(warmset, tmp_path):
    config = tmp_path / "config.json"
    config.write_bytes(find_shipped("Qwen3-8B").path.read_bytes())
    by_name = json.loads(warmset("size", "Qwen3-8B", "--json").out)
    for place in (config, tmp_path):
        found = json.loads(warmset("size", place, "--json").out)
        assert found == by_name | {"model": found["model"], "notes": found["notes"]}
        assert found["model"] == tmp_path.name


def test_table(warmset):
    ended = warmset("size", "Qwen3-8B", "--tokens", "4096")
    assert ended.code == 0
    for text in ("Qwen3-8B", "GQA", "147,456", "4,096", "603,979,776", "576 MiB"):
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
        ('{"model_type": "zamba2", "num_hidden_layers": 2}', "zamba2"),
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


def test_weights_of_an_unstated_format_are_unknown_not_zero(warmset):
    found = json.loads(warmset("size", "Kimi-K3", "--tokens", "4096", "--json").out)
    assert found["kv"]["growth_bytes_per_token"] == 27_648  # INDEX.csv
    assert found["weight_bytes"] is found["weight_format"] is found["per_gpu"]["weight_bytes"] is None
    assert found["decode_step"]["4096"]["weight_bytes"] is None
    assert any("give --weights" in note for note in found["notes"])
    given = json.loads(warmset("size", "Kimi-K3", "--weights", "int4", "--tokens", "1", "--json").out)
    assert given["weight_bytes"] > 10**12
    assert warmset("size", "Kimi-K3", "--engine", "vllm", "--gpu", "B300", "--tp", "8").code == 2


def test_a_quantisation_nobody_knows_is_refused(warmset, tmp_path):
    config = json.loads(find_shipped("Qwen3-8B").path.read_bytes())
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config | {"quantization_config": {"quant_method": "magic"}}), encoding="utf-8")
    ended = warmset("size", path)
    assert (ended.code, ended.out) == (2, "")
    assert "'magic'" in ended.err
    assert ended.err.count("\n") == 1


@pytest.mark.parametrize(
    ("quantization", "found"),
    [
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": {"weights": {"num_bits": 8, "type": "float"}}},
            },
            "fp8",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"g": {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}},
            },
            "int4_g32",
        ),
        ({"quant_method": "awq", "bits": 4}, "int4"),
        ({"quant_method": "gptq", "bits": 8}, "int8"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "int4"),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
    ],
)
def test_formats_as_checkpoints_state_them(warmset, tmp_path, quantization, found):
    config = json.loads(find_shipped("Qwen3-8B").path.read_bytes())
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config | {"quantization_config": quantization}), encoding="utf-8")
    assert json.loads(warmset("size", path, "--json").out)["weight_format"] == found


def test_explained_sums_add_up(warmset):
    """Every sequence and prefill step is arithmetic that gives its own result."""
    words = ["size", "gemma-3-27b-it", "Qwen3.5-27B", "whisper-large-v3", "DeepSeek-V3"]
    for size in json.loads(warmset(*words, "--tokens", "448,4096", "--explain", "--json").out):
        steps = [step for step in size["steps"] if step["label"].startswith(("sequence of", "prefill of"))]
        assert len(steps) == 4
        for step in steps:
            terms = re.sub(r" of [a-z][a-z ]*", "", step["formula"].replace(",", "").replace(" x ", " * "))
            terms = re.sub(r"min\((\d+) (\d+)\)", r"min(\1, \2)", terms)
            assert eval(terms, {"min": min}) == int(re.sub(r"\D", "", step["result"])), step  # noqa: S307


def test_a_snapshot_of_nothing_is_refused_with_an_engine_too(warmset):
    words = ["--engine", "vllm", "--gpu", "H200", "--snapshot-tokens", "0"]
    ended = warmset("size", "Qwen3.5-27B", *words)
    assert (ended.code, ended.out) == (2, "")
    assert "snapshot_tokens=0" in ended.err


def test_a_context_of_nothing_is_refused_by_physics(warmset):
    ended = warmset("size", "Qwen3-8B", "--gpu", "H200", "--max-model-len", "0")
    assert (ended.code, ended.out) == (2, "")


def test_memory_for_kv_is_not_ignored_by_physics(warmset):
    found = json.loads(warmset("size", "Qwen3-8B", "--kv-cache-memory", "10GiB", "--json").out)
    assert found["engine"]["pool_tokens"] == 10 * 2**30 // 147_456


@pytest.mark.parametrize(
    "words",
    [["--max-model-len", "4096"], ["--overhead", "1GiB"], ["--no-hybrid-manager"], ["--prefix-caching"]],
)
def test_options_of_an_engine_are_not_dropped(warmset, words):
    ended = warmset("size", "Qwen3-8B", *words)
    assert (ended.code, ended.out) == (2, "")
    assert f"{words[0]} says nothing without an engine's memory" in ended.err


@pytest.mark.parametrize(("flag", "blocks"), [("--prefix-caching", 341), ("--no-prefix-caching", 338)])
def test_what_a_request_reserves(warmset, flag, blocks):
    """kv-physics.md, section 8: Qwen3.8-27B, of the same geometry, at 262,144 tokens in blocks of 784."""
    words = [
        "--engine",
        "vllm",
        "--vllm-release",
        "0.30.0",
        "--max-model-len",
        "262144",
        flag,
        "--tokens",
        "1",
    ]
    words += ["--kv-cache-memory", f"{342 * 51_380_224}B"]
    found = json.loads(warmset("size", "Qwen3.5-27B", *words, "--json").out)["engine"]
    assert (found["block_tokens"], found["num_blocks"], found["request_blocks"]) == (784, 342, blocks)
    assert (found["in_flight_tokens"], found["num_state_slots"]) == (16_384, 342)
