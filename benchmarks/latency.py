"""How far the latency model is from published measurements, family by family.

Run as `.venv/bin/python benchmarks/latency.py`. The points are not part of the repository: they are two
tables in a folder beside it. Constants may come from `fit.csv`, never from `validate.csv`.
Everything is predicted by the main job's own code: `engine_times`, `load_path`, `serve`.
"""

import argparse
import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from warmset.catalog import find_accelerator
from warmset.errors import UnsupportedModelError
from warmset.evaluate.engine import engine_times, load_path
from warmset.evaluate.facts_used import CORNERS, Corner, FactBook, collect_facts
from warmset.evaluation import TierName
from warmset.model import ModelSpec, load_model, resolve_config
from warmset.scenario import Assumed, HardwareChoice, KvLayoutName, ModelChoice, Scenario, WeightFormat
from warmset.serving import EngineTimes, Fleet, LoadPath, RequestHits, ServingOutcome, Workload, serve
from warmset.stats import quantile

PUBLISHED = Path(__file__).parents[2] / "shared" / "published"
PREFILL_BAR, DECODE_BAR = 0.138, 0.116
"""The best errors published for such formulas, on 46 prefill and 281 decode points."""

MODELS = {
    "llama2-70b": "Llama-2-70b-hf",
    "Qwen3-235B-A22B-Instruct-2507": "Qwen3-235B-A22B",
    "Qwen/Qwen3-235B-A22B-FP8": "Qwen3-235B-A22B",
    "Qwen3-Coder-480B-FP8": "Qwen3-Coder-480B-A35B-Instruct",
    "Qwen2.5-7B-Instruct-GPTQ-Int4": "Qwen2-7B-Instruct",  # the same shape
    "meta-llama/Llama-3.1-8B-Instruct": "Meta-Llama-3.1-8B",
    "nvidia/Llama-3.1-8B-Instruct-FP8": "Meta-Llama-3.1-8B",
    "meta-llama/Llama-3.1-70B": "Meta-Llama-3.1-70B",
}
"""Shipped configs of models that the tables name otherwise."""
GPUS = {"H20": "H20-96G", "H20-3e": "H20-141G", "A100-80GB": "A100-80 SXM"}
QWQ_32B: dict[str, object] = {
    "model_type": "qwen2",
    "num_hidden_layers": 64,
    "hidden_size": 5120,
    "intermediate_size": 27648,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "vocab_size": 152064,
    "use_sliding_window": False,
    "max_position_embeddings": 40960,
    "tie_word_embeddings": False,
}
"""Shape of QwQ-32B and Qwen2.5-32B as in their config.json; neither is among the shipped configs."""

MANY_TOKENS = 10**12
STEADY_REQUESTS = 256


class Row(NamedTuple):
    family: str
    model: str
    gpu: str
    num_gpus: str
    precision: str
    workload: str
    metric: str
    value: float

    @property
    def seconds(self) -> float:
        return self.value / 1000 if self.family in {"sil", "spl", "mcpd"} else self.value


class Point(NamedTuple):
    group: str
    predicted: float
    measured: float
    inside: bool
    """Whether the interval of the report, from the favourable to the unfavourable corner, holds it."""

    @property
    def ratio(self) -> float:
        return self.predicted / self.measured


class Engine(NamedTuple):
    """A model on the GPUs of one engine, with the facts that its times came from."""

    times: EngineTimes
    book: FactBook
    corner: Corner

    def path(self, tier: TierName) -> LoadPath:
        stored = self.times.kv_bytes_per_token
        if self.times.spec.latent is not None:
            stored //= self.times.num_gpus
        return load_path(tier, self.times, stored, 0.0, self.book, self.corner)


Engines = tuple[Engine, ...]
"""The same engine at every corner, in the order of `CORNERS`."""


class Family(NamedTuple):
    """Points of one kind, and what was not used of its rows."""

    title: str
    points: list[Point]
    bar: float | None = None


LeftOut = Counter[str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--published", type=Path, default=PUBLISHED, help="folder of fit.csv, validate.csv")
    folder = parser.parse_args().published
    if not all((folder / name).is_file() for name in ("fit.csv", "validate.csv")):
        print(f"No published points in {folder}: nothing to compare. They lie beside the repository.")
        return
    fit, left_out = read_rows(folder / "fit.csv"), Counter[str]()
    left_out["sil TTFT: the queueing of a closed loop is inside"] = sum(
        row.family == "sil" and row.metric.startswith("TTFT") for row in fit
    )
    left_out["other families: kernels, statistics, ratios, other accelerators"] = sum(
        row.family not in {"sil", "spl", "mcpd", "ucm"} for row in fit
    )
    print("FIT SET: constants may be chosen on these points\n")
    print_families(fit_families(fit, left_out))
    print_left_out(left_out)
    validation, left_out = read_rows(folder / "validate.csv"), Counter[str]()
    print("\nVALIDATION SET: never used to choose a constant\n")
    print_families(validation_families(validation, left_out))
    print_left_out(left_out)


# --- rows ------------------------------------------------------------------------------------------


def read_rows(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Row(
                family=row["id"].partition("-")[0],
                model=row["model"],
                gpu=row["gpu"],
                num_gpus=row["n_gpu"],
                precision=row["precision"],
                workload=row["workload"],
                metric=row["metric"],
                value=float(row["value"]),
            )
            for row in csv.DictReader(file)
            if row["notes"].startswith("[M]")
        ]


def numbers(text: str, pattern: str) -> tuple[int, ...]:
    found = re.search(pattern, text)
    assert found is not None, (text, pattern)
    return tuple(int(group) for group in found.groups())


def engines(
    model: str,
    weights: WeightFormat,
    gpu: str,
    num_gpus: int,
    assume: dict[str, float] | None = None,
    kv: KvLayoutName = "bf16",
) -> Engines:
    scenario = Scenario(
        model=ModelChoice(name=model, weights=weights, kv=kv),
        hardware=HardwareChoice(gpu=GPUS.get(gpu, gpu), gpus_per_node=num_gpus),
        assume={key: Assumed(value=value) for key, value in (assume or {}).items()},
    )
    book = collect_facts(scenario, find_accelerator(scenario.hardware.gpu))
    spec = spec_of(model)
    return tuple(
        Engine(engine_times(spec, scenario.model, num_gpus, book, corner), book, corner) for corner in CORNERS
    )


def point(group: str, runs: Engines, predict: Callable[[Engine], float], measured: float) -> Point:
    predicted = dict(zip(CORNERS, map(predict, runs), strict=True))
    inside = min(predicted.values()) <= measured <= max(predicted.values())
    return Point(group, predicted["expected"], measured, inside)


def spec_of(model: str) -> ModelSpec:
    if model in {"QwQ-32B", "Qwen2.5-32B"}:
        return resolve_config(QWQ_32B, model)
    return load_model(MODELS.get(model, model.rpartition("/")[2]))


# --- predictions -----------------------------------------------------------------------------------


def at_once(
    run: Engine, tokens: int, concurrency: int, hit_share: float = 0.0, tier: TierName | None = None
) -> float:
    """Mean TTFT of so many equal requests that arrive together at an idle engine."""
    hit = round(tokens * hit_share)
    return float(serve_equal(run, np.zeros(concurrency), tokens, 1, hit, tier).ttft_s.mean())


def closed_loop(
    run: Engine, concurrency: int, tokens: int, output: int, hit: int = 0, tier: TierName | None = None
) -> ServingOutcome:
    """Equal requests at the even rate at which `concurrency` of them are in the system (Little's law)."""
    low, high = 1e-6, 1e4
    for _ in range(40):
        rate = (low * high) ** 0.5
        outcome = serve_equal(run, np.arange(STEADY_REQUESTS) / rate, tokens, output, hit, tier)
        low, high = (rate, high) if in_system(outcome) < concurrency else (low, rate)
    return outcome


def in_system(outcome: ServingOutcome) -> float:
    """Requests in the system by their rate of completion, which stays finite where the queue grows."""
    done_s = outcome.arrival_s + outcome.e2e_s
    return float(outcome.e2e_s.mean()) * (done_s.size - 1) / float(done_s.max() - done_s.min())


def serve_equal(
    run: Engine, arrival_s: np.ndarray, tokens: int, output: int, hit: int, tier: TierName | None
) -> ServingOutcome:
    equal = np.ones(arrival_s.size, dtype=np.int64)
    paths = () if tier is None else (run.path(tier),)
    lower = np.full((arrival_s.size, len(paths)), hit, dtype=np.int64)
    fleet = Fleet(run.times, 1, 1, MANY_TOKENS, paths)
    return serve(Workload(arrival_s, tokens * equal, output * equal), RequestHits(0 * equal, lower), fleet)


# --- the fit set -----------------------------------------------------------------------------------


def fit_families(rows: list[Row], left_out: LeftOut) -> Iterator[Family]:
    yield Family("Prefill of one prompt", [*splitwise_prefill(rows, left_out), *mooncake(rows, "mcpd"),
                                           *ucm(rows, "QwQ-32B", (1,))], PREFILL_BAR)  # fmt: skip
    yield Family("Prefill, 2 to 8 prompts at once (queueing)", list(ucm(rows, "QwQ-32B", (2, 4, 8))))
    yield Family("Prefill, MLA over two nodes of 8", list(ucm(rows, "DeepSeek-V3", (1, 2, 4, 8))))
    for name, assume in SSD_RATES.items():
        points = [*ucm_hits(rows, "QwQ-32B", assume), *ucm_hits(rows, "DeepSeek-V3", assume)]
        yield Family(f"TTFT with 80 % loaded from SSD; rate not published, taken as {name}", points)
    yield from decode_families(rows, left_out)
    yield Family("Decode step, 16-bit, batch 1 to 64", list(splitwise_decode(rows)))


def decode_families(rows: list[Row], left_out: LeftOut) -> Iterator[Family]:
    """TPOT of closed loops, by the formula that the constants were chosen on and as the main job makes it."""
    found = list(silicon(rows, left_out, "by engine"))
    for what, role in DECODE_ROLES.items():
        runs = [run for run in found if run.role == role]
        bar = DECODE_BAR if role == "dense" else None
        yield Family(f"Decode, {what}; formula", points_of(runs, formula_tpot), bar)
        yield Family(f"Decode, {what}; serving model", points_of(runs, served_tpot), bar)
    for kv in ("bf16", "fp8"):
        dense = [run for run in silicon(rows, Counter(), kv) if run.role == "dense"]
        points = [found._replace(group=f"all KV taken as {kv}") for found in points_of(dense, formula_tpot)]
        yield Family(
            f"Decode, dense FP8, at most 64 at once; formula; KV as {kv} whatever the engine", points
        )


DECODE_ROLES = {
    "dense FP8, at most 64 at once": "dense",
    "dense FP8, 80 to 512 at once (chose no constant)": "dense, many",
    "MoE FP8": "routed",
    "B300 and int4 (chose no constant)": "others",
}
CHOSEN_GPUS = {"H100", "H200", "B200"}
MOST_CHOSEN = 64

SSD_RATES = {
    "the catalog's RAID0, 24.8 GB/s": {},
    "half of it, 12.4 GB/s": {"nvme_read_bytes_per_s": 12.4e9},
    "one drive, 6.9 GB/s": {"nvme_read_bytes_per_s": 6.9e9},
}


def splitwise_prefill(rows: list[Row], left_out: LeftOut) -> Iterator[Point]:
    for row in rows:
        if row.family != "spl":
            continue
        if row.model == "bloom-176b":
            left_out["spl: bloom-176b, no shipped config"] += 1
        elif row.metric == "prefill time":
            (tokens,) = numbers(row.workload, r"prompt (\d+)")
            runs = engines(row.model, "fp16", row.gpu, int(row.num_gpus))
            group = f"Llama-2-70B {row.gpu} x {row.num_gpus}"
            yield point(group, runs, partial(at_once, tokens=tokens, concurrency=1), row.seconds)


def splitwise_decode(rows: list[Row]) -> Iterator[Point]:
    for row in rows:
        if row.family == "spl" and row.model == "llama2-70b" and row.metric == "decode step time":
            tokens, batch = numbers(row.workload, r"prompt (\d+), batch (\d+)")
            runs = engines(row.model, "fp16", row.gpu, int(row.num_gpus))
            step = partial(step_of, batch=batch, context_tokens=batch * tokens)
            yield point(f"Llama-2-70B {row.gpu} x {row.num_gpus}", runs, step, row.seconds)


def step_of(run: Engine, batch: int, context_tokens: int) -> float:
    return run.times.decode_step_s(batch, context_tokens)


def mooncake(rows: list[Row], family: str) -> Iterator[Point]:
    """TTFT less the KV transfer, which is published beside it: the transfer is no part of our prefill."""
    single = {
        (row.workload, row.metric): row
        for row in rows
        if row.family == family and re.match(r"prompt \d+ tok; 1P1D", row.workload)
    }
    for (workload, metric), row in single.items():
        if not metric.startswith("TTFT"):
            continue
        transfer_s = single[workload, "KV transfer time P to D"].value / 1000
        (tokens,) = numbers(workload, r"prompt (\d+)")
        runs = engines(row.model, "bf16", row.gpu, 8)
        prefill = partial(at_once, tokens=tokens, concurrency=1)
        yield point(f"{short(row.model)} {row.gpu} x 8", runs, prefill, row.value / 1000 - transfer_s)


def ucm(rows: list[Row], model: str, concurrencies: tuple[int, ...]) -> Iterator[Point]:
    for row in rows:
        if row.family == "ucm" and row.model == model and row.workload.endswith("no cache"):
            tokens, concurrency = numbers(row.workload, r"prompt (\d+) tok; concurrency (\d+)")
            if concurrency in concurrencies:
                predict = partial(at_once, tokens=tokens, concurrency=concurrency)
                yield point(ucm_group(row), ucm_engines(row, {}), predict, row.value)


def ucm_hits(rows: list[Row], model: str, assume: dict[str, float]) -> Iterator[Point]:
    for row in rows:
        if row.family == "ucm" and row.model == model and "80% prefix hit" in row.workload:
            tokens, concurrency = numbers(row.workload, r"prompt (\d+) tok; concurrency (\d+)")
            predict = partial(at_once, tokens=tokens, concurrency=concurrency, hit_share=0.8, tier="nvme")
            yield point(ucm_group(row), ucm_engines(row, assume), predict, row.value)


def ucm_engines(row: Row, assume: dict[str, float]) -> Engines:
    weights: WeightFormat = "bf16" if row.model == "QwQ-32B" else "fp8"
    return engines(row.model, weights, row.gpu, int(row.num_gpus), assume)


def ucm_group(row: Row) -> str:
    return f"{row.model} {row.gpu} x {row.num_gpus}"


class Silicon(NamedTuple):
    """One closed-loop run of the silicon sample."""

    role: str
    group: str
    engines: Engines
    concurrency: int
    input_tokens: int
    output_tokens: int
    tpot_s: float


def silicon(rows: list[Row], left_out: LeftOut, kv: KvLayoutName | Literal["by engine"]) -> Iterator[Silicon]:
    """KV precision is not published: TensorRT-LLM's FP8 checkpoints ask for FP8, others keep 16 bits."""
    for row in rows:
        if row.family != "sil" or row.metric != "TPOT mean":
            continue
        reason = why_left_out(row)
        if reason:
            left_out[f"sil TPOT: {reason}"] += 1
            continue
        tokens, output, concurrency, num_gpus = numbers(
            row.workload, r"in (\d+) / out (\d+), concurrency (\d+), \S+ TP(\d+)"
        )
        layout: KvLayoutName = "fp8" if " trtllm " in row.workload else "bf16"
        layout = layout if kv == "by engine" else kv
        weights: WeightFormat = "int4" if row.precision == "int4" else "fp8"
        runs = engines(row.model, weights, row.gpu, num_gpus, kv=layout)
        group = f"{short(row.model)} {row.precision} {row.gpu}"
        yield Silicon(
            role_of(row, runs[0], concurrency), group, runs, concurrency, tokens, output, row.seconds
        )


def role_of(row: Row, run: Engine, concurrency: int) -> str:
    if row.gpu not in CHOSEN_GPUS or row.precision == "int4":
        return "others"
    if run.times.spec.feed_forward.num_experts:
        return "routed"
    return "dense" if concurrency <= MOST_CHOSEN else "dense, many"


def why_left_out(row: Row) -> str:
    if row.precision not in {"fp8", "int4"}:
        return {"?": "precision not stated", "fp4": "FP4 weights, not in a scenario yet"}.get(
            row.precision, f"{row.precision} runs are of models of an unsupported class"
        )
    try:
        spec_of(row.model if row.model != "zhipuai/GLM-5" else "zai-org/GLM-5")
    except UnsupportedModelError:
        return "model of an unsupported class"
    return ""


def short(model: str) -> str:
    name = model.rpartition("/")[2]
    return re.sub(r"-(Instruct|FP8|2507|A22B|GPTQ|Int4|Coder|Llama)\b", "", name.removeprefix("Meta-"))


def points_of(found: list[Silicon], tpot: Callable[[Silicon, Engine], float]) -> list[Point]:
    return [point(loop.group, loop.engines, partial(tpot, loop), loop.tpot_s) for loop in found]


def formula_tpot(loop: Silicon, run: Engine) -> float:
    """A step of the full batch, and the prefills of the others spread over one's own output tokens."""
    batch, tokens, output = loop.concurrency, loop.input_tokens, loop.output_tokens
    step = run.times.decode_step_s(batch, batch * (tokens + output / 2))
    prefill = float(run.times.prefill_compute_s(np.array([tokens]), np.array([0]))[0])
    return step + (batch - 1) * prefill / output


def served_tpot(loop: Silicon, run: Engine) -> float:
    outcome = closed_loop(run, loop.concurrency, loop.input_tokens, loop.output_tokens)
    return float(outcome.tpot_s.mean())


# --- the validation set ----------------------------------------------------------------------------


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


# --- printing --------------------------------------------------------------------------------------


def print_families(families: Iterable[Family]) -> None:
    for family in families:
        print(f"{family.title}\n  {'':<34}{'points':>8}{'MAPE':>9}{'median':>9}{'p90':>9}{'inside':>9}")
        groups: dict[str, list[Point]] = {}
        for point in family.points:
            groups.setdefault(point.group, []).append(point)
        for group, points in groups.items():
            print_line(group, points)
        if len(groups) > 1:
            print_line("all", family.points)
        if family.bar is not None:
            error = mean_error(family.points)
            met = "met" if error <= family.bar else "missed"
            print(f"  bar {family.bar:.1%}: {met} with {error:.1%}")
        print()


def print_line(name: str, points: list[Point]) -> None:
    errors = [abs(point.ratio - 1) for point in points]
    median = quantile([point.ratio for point in points], 0.5)
    inside = sum(point.inside for point in points) / len(points)
    print(
        f"  {name:<34}{len(points):>8}{mean_error(points):>9.1%}{median:>9.2f}"
        f"{quantile(errors, 0.9):>9.1%}{inside:>9.0%}"
    )


def mean_error(points: list[Point]) -> float:
    return sum(abs(point.ratio - 1) for point in points) / len(points)


def print_left_out(left_out: LeftOut) -> None:
    print("Left out")
    for reason, count in left_out.items():
        print(f"  {count:>5}  {reason}")


if __name__ == "__main__":
    main()
