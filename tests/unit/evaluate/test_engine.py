"""From facts to rates: what is multiplied by what, on facts of the catalog."""

import pytest

from tests.support.scenarios import assume, scenario_with
from warmset.catalog import default, find_accelerator
from warmset.evaluate.engine import engine_times, load_path
from warmset.evaluate.facts_used import collect_facts
from warmset.model import load_model
from warmset.scenario import ModelChoice


def book_of(gpu="H200", **assumed):
    return collect_facts(scenario_with({"hardware": {"gpu": gpu}}, assume(**assumed)), find_accelerator(gpu))


def value(key):
    return default(key).value


def times(model="Qwen3-8B", gpus=1, weights="fp8", kv="bf16", corner="expected", **assumed):
    book = book_of(**assumed)
    return engine_times(load_model(model), ModelChoice(weights=weights, kv=kv), gpus, book, corner)


def test_rates_grow_with_the_gpus():
    one, four = times(gpus=1).rates, times(gpus=4).rates
    for rate in ("gemm_flops_per_s", "attention_flops_per_s", "weight_bytes_per_s", "kv_bytes_per_s"):
        assert getattr(four, rate) == pytest.approx(4 * getattr(one, rate))


def test_one_gpu_has_nothing_to_reduce():
    assert times(gpus=1).rates.all_reduce_bytes_per_s is None
    assert times(gpus=1).rates.decode_layers_s == 0
    assert times(gpus=2).rates.decode_layers_s == pytest.approx(
        36 * value("decode_all_reduce_s_per_layer")  # Qwen3-8B has 36 layers
    )


@pytest.mark.parametrize(
    ("weights", "peak"), [("fp8", 1979e12), ("bf16", 989e12), ("fp16", 989e12), ("int4", 989e12)]
)
def test_weights_are_multiplied_in_their_format_or_in_bf16(weights, peak):
    # H200 SXM, dense: 1,979 TFLOPS in fp8 and 989 in bf16 (NVIDIA's data sheet).
    rate = times(weights=weights).rates.gemm_flops_per_s
    assert rate == pytest.approx(peak * value("gemm_efficiency"), rel=2e-3)


def test_experts_cost_more_than_their_bytes():
    routed = times("Qwen3-235B-A22B", gpus=8).rates
    assert routed.decode_layers_s == pytest.approx(
        94 * (value("decode_all_reduce_s_per_layer") + value("decode_moe_s_per_layer"))
    )
    assert routed.prefill_startup_s == value("moe_prefill_startup_s")
    assert times().rates.prefill_startup_s == value("prefill_startup_s")


@pytest.mark.parametrize(
    ("corner", "end"), [("favourable", "least"), ("expected", "value"), ("unfavourable", "most")]
)
def test_the_time_scale_carries_the_error_of_the_model(corner, end):
    rates = times(corner=corner).rates
    assert rates.prefill_scale_ratio == getattr(default("prefill_time_scale"), end)
    assert rates.decode_scale_ratio == getattr(default("decode_time_scale"), end)


@pytest.mark.parametrize(
    ("model", "gpus", "copies"), [("Qwen3-8B", 1, 1), ("Qwen3-8B", 8, 1), ("Qwen3-235B-A22B", 8, 2)]
)
def test_kv_heads_are_copied_where_there_are_more_gpus(model, gpus, copies):
    growth = {"Qwen3-8B": 147_456, "Qwen3-235B-A22B": 192_512}[model]
    assert times(model, gpus).kv_bytes_per_token == copies * growth


# --- the ways in ---------------------------------------------------------------------------------------


def path(tier, gpus=1, stored=147_456, written=0.0, **assumed):
    return load_path(tier, times(gpus=gpus), stored, written, book_of(**assumed), "expected")


def test_dram_is_copied_over_the_links_of_all_gpus_up_to_what_the_host_gives():
    rate = value("host_copy_usable_share") * 55.43e9  # pinned copy to an H200 (ml-engineering)
    assert path("dram").bytes_per_s == pytest.approx(rate)
    assert path("dram", gpus=4).bytes_per_s == pytest.approx(4 * rate)
    assert path("dram", gpus=8).bytes_per_s == pytest.approx(value("host_dram_ceiling_bytes_per_s"))
    assert path("dram").fixed_s == value("dram_hit_fixed_s")


def test_flash_is_as_fast_as_it_reads():
    assert path("nvme", nvme_read_bytes_per_s=3e9).bytes_per_s == pytest.approx(3e9)
    assert path("nvme").fixed_s == pytest.approx(value("dram_hit_fixed_s") + value("nvme_latency_s"))
    ceiling = path("dram", gpus=8).bytes_per_s
    assert path("nvme", nvme_read_bytes_per_s=1e12, gpus=8).bytes_per_s == pytest.approx(ceiling)


def test_writes_slow_reads_as_measured():
    """Three reads beside one write leave the share of the read rate that the fact states."""
    facts = {"nvme_read_bytes_per_s": 20e9, "nvme_write_bytes_per_s": 15e9, "nvme_mixed_read_ratio": 0.4}
    assert path("nvme", **facts).bytes_per_s == pytest.approx(20e9)
    assert path("nvme", written=0.4 * 20e9 / 3, **facts).bytes_per_s == pytest.approx(8e9)
    assert 8e9 < path("nvme", written=0.1e9, **facts).bytes_per_s < 20e9


def test_a_latent_is_read_once_and_copied_to_every_gpu():
    latent = times("DeepSeek-V3", gpus=8)
    found = load_path("nvme", latent, 70_272, 0.0, book_of(nvme_read_bytes_per_s=1e12), "expected")
    assert latent.kv_bytes_per_token == 8 * 70_272
    assert found.bytes_per_s == pytest.approx(value("host_dram_ceiling_bytes_per_s") / 8)
    assert found.bytes_per_token == 70_272


def test_the_remote_pool():
    assert path("remote", remote_read_bytes_per_s=2e9).bytes_per_s == pytest.approx(2e9)
    assert path("remote").fixed_s == pytest.approx(value("dram_hit_fixed_s") + value("remote_latency_s"))
