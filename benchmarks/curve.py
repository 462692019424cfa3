"""How fast the reuse curve is: block references a second, and against kvcache-simulator on the same trace.

Run as `python -m benchmarks.curve`, which is what `make bench` does. What is timed: from a `Trace` in memory
to hits at every capacity (`profile_reuse` and `capacity_curve`), on one core. Reading and parsing are not.
"""

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np

from benchmarks import simulator
from tests.support.weka import WEKA_ALL, WEKA_SAMPLE
from warmset.reuse import CapacityCurve, capacity_curve, profile_reuse
from warmset.trace import Trace, TraceBuilder, read_trace, sample_trace

SHARED = Path(__file__).parents[2] / "shared"
BAR_REFS_PER_S = 50e6
BAR_RATIO = 50
WARM_UP_RUNS = 5


class Timing(NamedTuple):
    best_s: float
    median_s: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=51, help="timed runs of each measurement (default 51)")
    parser.add_argument("--full", action="store_true", help="also the whole WEKA trace")
    options = parser.parse_args()
    stay_on_one_core()
    print_machine()
    rate = print_curves(options.runs, full=options.full)
    ratio = print_simulator(max(options.runs // 4, 5))
    print("\nBars")
    print_bar(f"every capacity at {per_second(BAR_REFS_PER_S)} on one core", rate, BAR_REFS_PER_S)
    print_bar(f"{BAR_RATIO} x faster than kvcache-simulator's C++ LRU sweep", ratio, BAR_RATIO)


# --- traces ----------------------------------------------------------------------------------------


def traces(*, full: bool) -> Iterator[tuple[str, Trace]]:
    yield "Mooncake conversation (shipped)", sample_trace()
    others = {
        "Mooncake synthetic": "traces/mooncake/synthetic_trace.jsonl.gz",
        "WEKA, 49 sessions": WEKA_SAMPLE,
    }
    if full:
        others["WEKA, 710 sessions"] = WEKA_ALL
    for name, file in others.items():
        if (SHARED / file).is_file():
            yield name, read_trace([SHARED / file])
        else:
            print(f"{name:<32} not here: it lies in ../shared, beside the repository")


# --- measuring -------------------------------------------------------------------------------------


def stay_on_one_core() -> None:
    """This process and those that it starts."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def measure(run: Callable[[], object], runs: int) -> Timing:
    for _ in range(WARM_UP_RUNS):
        run()
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return Timing(min(seconds), statistics.median(seconds))


def curve_of(trace: Trace, measure_from: float = 0.0) -> CapacityCurve:
    return capacity_curve(profile_reuse(trace, measure_from))


def ids_of(trace: Trace) -> list[np.ndarray]:
    """The ids of each request as a reader finds them, with the nodes of the trace for ids."""
    paths = []
    for leaf in trace.leaf.tolist():
        path, node = [], leaf
        while node >= 0:
            path.append(node)
            node = trace.node_parent[node]
        paths.append(np.array(path[::-1], dtype=np.int64))
    return paths


def built(trace: Trace, ids: list[np.ndarray]) -> Trace:
    """The same trace, from the ids of its requests."""
    builder = TraceBuilder(trace.block_tokens)
    columns = (trace.arrival_ms.tolist(), trace.input_tokens.tolist(), trace.output_tokens.tolist(), ids)
    for arrival_ms, input_tokens, output_tokens, path in zip(*columns, strict=True):
        builder.add(arrival_ms=arrival_ms, input_tokens=input_tokens, output_tokens=output_tokens, ids=path)
    return builder.build(trace.provenance)


# --- printing --------------------------------------------------------------------------------------


def print_machine() -> None:
    print(
        f"{processor()}, one core of {os.cpu_count()}; {platform.system()}; "
        f"Python {platform.python_version()}, NumPy {np.__version__}, Numba {numba.__version__}"
    )


def processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def print_curves(runs: int, *, full: bool) -> float:
    """References a second on the shipped trace, by the median run."""
    print(f"\nThe curve of every capacity, reading and parsing excluded; {runs} runs after {WARM_UP_RUNS}")
    headings = ("references", "capacities", "best", "median", "at best", "at median")
    print(f"{'trace':<32}" + "".join(f"{heading:>12}" for heading in headings))
    rates = []
    for name, trace in traces(full=full):
        capacities = curve_of(trace).most_blocks
        timing = measure(partial(curve_of, trace), runs)
        rates.append(trace.block_refs / timing.median_s)
        print(
            f"{name:<32}{trace.block_refs:>12,}{capacities:>12,}"
            f"{milliseconds(timing.best_s)}{milliseconds(timing.median_s)}"
            f"{per_second(trace.block_refs / timing.best_s):>12}{per_second(rates[-1]):>12}"
        )
    return rates[0]


def print_simulator(runs: int) -> float | None:
    """How many times faster than its sweep, by the median runs; `None` where it cannot run."""
    missing = simulator.why_missing()
    if missing:
        print(f"\nNot compared: {missing}")
        return None
    trace = sample_trace()
    with resources.as_file(
        resources.files("warmset.trace") / "data/mooncake/conversation_trace.jsonl.gz"
    ) as path:
        prepared = simulator.prepare(path, trace.block_tokens)
    swept = simulator.run_program(prepared, simulator.CAPACITIES)
    compare_hits(swept.hit_tokens, curve_of(trace, simulator.WARM_UP_SHARE))
    ids = ids_of(trace)
    rows: dict[str, list[float]] = {"start": [], "sweep": [], "call": [], "curve": [], "from_ids": []}
    for _ in range(runs):  # in turn, so that a busy machine slows all of them
        rows["start"].append(simulator.run_program(prepared, ()).seconds)
        rows["sweep"].append(simulator.run_program(prepared, simulator.CAPACITIES).seconds)
        rows["call"].append(simulator.run_from_parsed_trace(prepared))
        rows["curve"].append(measure(lambda: curve_of(trace, simulator.WARM_UP_SHARE), 5).median_s)
        rows["from_ids"].append(measure(lambda: curve_of(built(trace, ids)), 1).median_s)
    prepared.folder.cleanup()
    start, program, call, curve, from_ids = (statistics.median(seconds) for seconds in rows.values())
    return print_comparison(runs, Medians(program - start, call, curve, from_ids))


def compare_hits(simulated: dict[int, int], curve: CapacityCurve) -> None:
    different = {
        capacity: (tokens, curve.at(capacity).tokens)
        for capacity, tokens in simulated.items()
        if curve.at(capacity).tokens != tokens
    }
    verdict = f"but not at {different}" if different else "the same at each"
    print(f"\nkvcache-simulator: hit tokens at {len(simulated)} capacities, {verdict}")


class Medians(NamedTuple):
    sweep_s: float
    call_s: float
    curve_s: float
    from_ids_s: float


def print_comparison(runs: int, seconds: Medians) -> float:
    count = len(simulator.CAPACITIES)
    print(
        f"Medians of {runs} rounds on the shipped trace, at its {count} default budgets; "
        "JSON excluded on both sides"
    )
    print(f"{'':<58}{'simulator':>12}{'Warmset':>12}{'ratio':>10}")
    lines = [
        ("LRU alone, trie and arrays ready: its sweep, our curve", seconds.sweep_s, seconds.curve_s),
        ("  one of its capacities, our curve of all", seconds.sweep_s / count, seconds.curve_s),
        ("from parsed ids: its call, our forest and curve", seconds.call_s, seconds.from_ids_s),
    ]
    for text, theirs, ours in lines:
        print(f"{text:<58}{milliseconds(theirs)}{milliseconds(ours)}{theirs / ours:>9.1f}x")
    return seconds.sweep_s / seconds.curve_s


def print_bar(text: str, measured: float | None, bar: float) -> None:
    if measured is None:
        print(f"  not measured  {text}")
        return
    figure = per_second(measured) if bar == BAR_REFS_PER_S else f"{measured:.0f} x"
    print(f"  {'reached' if measured >= bar else 'MISSED':<12}  {text}: {figure}")


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms".rjust(12)


def per_second(references: float) -> str:
    return f"{references / 1e6:.1f} M/s"


if __name__ == "__main__":
    main()
