"""Points of `validate.csv`: no constant was chosen on them."""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks.latency_fit import short
from benchmarks.published import (
    MANY_TOKENS,
    PREFILL_BAR,
    Engine,
    Family,
    LeftOut,
    Point,
    Row,
    closed_loop,
    engines,
    mooncake,
    numbers,
    point,
)
from warmset.evaluation import TierName
from warmset.serving import Fleet, RequestHits, Workload, serve
from warmset.stats import quantile


def validation_families(rows: list[Row], left_out: LeftOut) -> Iterator[Family]:
    yield Family("Prefill of one prompt", list(mooncake(rows, "mcsg")), PREFILL_BAR)
    yield from cold_recovery(rows)
    yield from two_servers(rows)
    for family, reason in NOT_EXPRESSED.items():
        left_out[f"{family}: {reason}"] = sum(row.family == family for row in rows)
    left_out["mx: throughput, bandwidth, percentiles, model loading, unstated prompts"] = sum(
        row.family == "mx" and recovery_of(row) is None for row in rows
    )
    left_out["mcsg: KV bytes and transfers, tails, throughput, disaggregated pairs"] = sum(
        row.family == "mcsg"
        and not (row.metric == "TTFT" or (row.metric.endswith("mean") and "regular" in row.workload))
        for row in rows
    )


NOT_EXPRESSED = {
    "gke": "changes in percent against an HBM cache of unstated size",
    "lmmc": "model not stated",
    "lmcg": "model and GPU not stated, compressed KV",
    "lmpd": "a transfer between GPUs",
    "mc4020": "hit rates, no times",
    "mcssd": "ten rounds of growing sessions through three tiers",
    "vllmoff": "the catalog's host copy of H100 is one of them; ratios of an unstated prompt",
}

MX_GPUS = {"gpu_host_copy_bytes_per_s": 53.7e9}
"""No host link of an MI308X is in the catalog: the one of other PCIe Gen5 accelerators."""
MX_RATES = {"array": 10.2e9, "local NVMe": 6.78e9, "recompute": 0.0}
"""Peak read rates that the study measured; they are inputs here, as a user would give them."""
MX_TOKENS, MX_OUTPUT = 29_800, 64


class Recovery(NamedTuple):
    """How the sessions of a run come back, and how many are in flight on how many engines."""

    how: str
    concurrency: int
    num_engines: int


def recovery_of(row: Row) -> Recovery | None:
    if row.family != "mx" or row.model != "Qwen3-Coder-480B-FP8" or row.metric not in {"TTFT p50", "TPOT"}:
        return None
    if "shared fs" in row.workload:
        return None
    how = next(
        (how for word, how in (("NVMe-oF", "array"), ("local", "local NVMe"), ("recompute", "recompute"))
         if word in row.workload), None)  # fmt: skip
    (concurrency,) = numbers(row.workload, r"(?:concurrency|set|NVMe|recompute) (\d+)")
    return None if how is None else Recovery(how, concurrency, 2 if "TP4 x 2" in row.workload else 1)


def cold_recovery(rows: list[Row]) -> Iterator[Family]:
    found: dict[str, list[Point]] = {}
    for row in rows:
        recovery = recovery_of(row)
        if recovery is None:
            continue
        metric = "TTFT" if row.metric.startswith("TTFT") else "TPOT"
        how = "recomputed" if recovery.how == "recompute" else "loaded"
        measured = row.value if metric == "TTFT" else row.value / 1000
        group = f"480B TP{8 // recovery.num_engines} x {recovery.num_engines} {recovery.how}"
        found.setdefault(f"{metric}, closed loop, 29.8k tokens {how}, MI308X", []).append(
            recovered(group, recovery, metric, measured)
        )
    for title, points in found.items():
        yield Family(title, points)


def recovered(group: str, recovery: Recovery, metric: str, measured: float) -> Point:
    """Engines share the medium evenly, so each is served by itself at its part of the rate."""
    rate = MX_RATES[recovery.how] / recovery.num_engines
    tier: TierName | None = {"array": "remote", "local NVMe": "nvme"}.get(recovery.how)  # type: ignore[assignment]
    assume = MX_GPUS | ({f"{tier}_read_bytes_per_s": rate} if tier else {})
    runs = engines("Qwen3-Coder-480B-FP8", "fp8", "MI308X", 8 // recovery.num_engines, assume)

    def predict(run: Engine) -> float:
        concurrency = recovery.concurrency // recovery.num_engines
        hit = MX_TOKENS - 1 if tier else 0
        outcome = closed_loop(run, concurrency, MX_TOKENS, MX_OUTPUT, hit, tier)
        return quantile(outcome.ttft_s if metric == "TTFT" else outcome.tpot_s, 0.5)

    return point(group, runs, predict, measured)


def two_servers(rows: list[Row]) -> Iterator[Family]:
    """Two engines without disaggregation under Poisson arrivals; the mean over long random traffic."""
    found: dict[str, list[Point]] = {}
    for row in rows:
        if row.family != "mcsg" or "regular" not in row.workload or not row.metric.endswith("mean"):
            continue
        num_gpus, rate, tokens, output = numbers(row.workload, r"TP(\d+), rate (\d+), in (\d+)/out (\d+)")
        metric = "TTFT" if row.metric.startswith("TTFT") else "TPOT"
        predict = partial(poisson, metric=metric, rate=rate, tokens=tokens, output=output)
        runs = engines(row.model, "int4", row.gpu, num_gpus)
        found.setdefault(f"{metric}, Poisson arrivals, int4, A10", []).append(
            point(f"{short(row.model)} TP{num_gpus} x 2", runs, predict, row.value / 1000)
        )
    for title, points in found.items():
        yield Family(title, points)


def poisson(run: Engine, metric: str, rate: int, tokens: int, output: int) -> float:
    arrival_s = np.random.default_rng(0).exponential(1 / rate, 2000).cumsum()
    equal = np.ones(arrival_s.size, dtype=np.int64)
    outcome = serve(
        Workload(arrival_s, tokens * equal, output * equal),
        RequestHits(0 * equal, np.zeros((equal.size, 0), np.int64)),
        Fleet(run.times, 1, 2, MANY_TOKENS, ()),
    )
    return float((outcome.ttft_s if metric == "TTFT" else outcome.tpot_s).mean())
