"""Published measurements as points: rows of the tables, and the product's own prediction for each."""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from warmset.catalog import find_accelerator
from warmset.errors import UnsupportedModelError
from warmset.evaluate.engine import engine_times, load_path
from warmset.evaluate.facts_used import CORNERS, Corner, FactBook, collect_facts
from warmset.evaluate.inputs import CLASSES_WITH_TRIED_TIMES
from warmset.evaluation import TierName
from warmset.model import ModelSpec, load_model, resolve_config
from warmset.scenario import Assumed, HardwareChoice, KvLayoutName, ModelChoice, Scenario, WeightFormat
from warmset.serving import EngineTimes, Fleet, LoadPath, RequestHits, ServingOutcome, Workload, serve

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
        if self.times.spec.is_latent:
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
    """The model, if its attention is of a kind that the latency model was fitted on.

    Raises: UnsupportedModelError for windows, states, indexes and other classes.
    """
    if model in {"QwQ-32B", "Qwen2.5-32B"}:
        return resolve_config(QWQ_32B, model)
    spec = load_model(MODELS.get(model, model.rpartition("/")[2]))
    if spec.cache_class not in CLASSES_WITH_TRIED_TIMES:
        raise UnsupportedModelError(f"{spec.name}: times of {spec.cache_class} are not fitted")
    return spec


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


def short(model: str) -> str:
    name = model.rpartition("/")[2]
    return re.sub(r"-(Instruct|FP8|2507|A22B|GPTQ|Int4|Coder|Llama)\b", "", name.removeprefix("Meta-"))
