"""Points of `fit.csv`: constants may be chosen on them."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal, NamedTuple

import numpy as np

from benchmarks.published import (
    DECODE_BAR,
    PREFILL_BAR,
    Engine,
    Engines,
    Family,
    LeftOut,
    Point,
    Row,
    at_once,
    closed_loop,
    engines,
    mooncake,
    numbers,
    point,
    short,
    spec_of,
)
from warmset.errors import UnsupportedModelError
from warmset.scenario import KvLayoutName, WeightFormat


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
    if run.times.spec.num_moe_layers:
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
