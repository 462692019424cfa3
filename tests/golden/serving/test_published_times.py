"""Predicted times against published ones that no constant was chosen on (`shared/published/validate.csv`)."""

import numpy as np
import pytest

from tests.support.scenarios import scenario_with
from warmset.catalog import find_accelerator
from warmset.evaluate.engine import engine_times, load_path
from warmset.evaluate.facts_used import collect_facts
from warmset.model import load_model
from warmset.scenario import ModelChoice
from warmset.serving import EngineTimes, LoadPath
from warmset.serving.latency import EngineRates

# Qwen3-235B-A22B-Instruct-2507, bf16, TP8 on 8 x H20-3e, one request at a time, KV transfer included
# (kvcache-ai/Mooncake docs, performance/sglang/sglang-benchmark-results-v1.md, 2026-07; rows mcsg-001 to
# mcsg-033).
TTFT_MS = {
    128: 129.21,
    256: 125.76,
    512: 133.91,
    1024: 125.84,
    2048: 172.05,
    4096: 304.02,
    8192: 591.14,
    16384: 1305.15,
    32768: 3260.14,
}


def qwen3_235b_on_h20(corner) -> EngineTimes:
    book = collect_facts(scenario_with({}), find_accelerator("H20-3e"))
    return engine_times(
        load_model("Qwen3-235B-A22B"), ModelChoice(weights="bf16", kv="bf16"), 8, book, corner
    )


@pytest.mark.parametrize("tokens", TTFT_MS)
def test_the_interval_holds_a_ttft_that_nobody_fitted(tokens):
    ends = []
    for corner in ("favourable", "expected", "unfavourable"):
        times = qwen3_235b_on_h20(corner)
        busy_s = float(times.prefill_compute_s(np.array([tokens]), np.array([0]))[0])
        ends.append(1000 * (busy_s + times.rates.prefill_startup_s))
    low, middle, high = ends
    assert low <= TTFT_MS[tokens] <= high
    # Tolerance: the middle is within 60 % of the measurement at every length, startup included.
    assert middle == pytest.approx(TTFT_MS[tokens], rel=0.6)


@pytest.mark.parametrize(
    ("tokens", "hbm_hit_ms", "dram_hit_ms"), [(1024, 42, 57), (65536, 111, 272)], ids=["1k", "64k"]
)
def test_a_dram_hit_costs_its_copy_and_a_fixed_part(tokens, hbm_hit_ms, dram_hit_ms):
    """One card; 6.44 GB of KV at 64k, raw copy 53.7 GB/s (published vLLM 0.18 and UCM runs on H20).

    Tolerance: 5 % of the difference, plus the half millisecond to which both are printed.
    """
    book = collect_facts(scenario_with({"hardware": {"gpu": "H20-96G"}}), find_accelerator("H20-96G"))
    per_token = 6_440_000_000 // 65536
    rates = dict.fromkeys(EngineRates.__dataclass_fields__, 1.0)
    one_card = EngineTimes(load_model("Qwen3-8B"), "bf16", 1, per_token, EngineRates(**rates))
    path: LoadPath = load_path("dram", one_card, per_token, 0.0, book, "expected")
    predicted_ms = 1000 * (path.fixed_s + tokens * path.bytes_per_token / path.bytes_per_s)
    assert predicted_ms == pytest.approx(dram_hit_ms - hbm_hit_ms, rel=0.05, abs=0.7)
