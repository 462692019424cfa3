"""How fast the reuse curve is: block references a second, and against kvcache-simulator on the same trace.

Run as `python -m benchmarks.curve`, which is what `make bench` does. What is timed: from a `Trace` in memory
to hits at every capacity (`profile_reuse` and `capacity_curve`), on one core. Reading and parsing are not.
"""

import argparse
import io
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
from tests.support.weka import WEKA_SAMPLE, read_weka_sessions, weka_trace
from warmset.reuse import CapacityCurve, capacity_curve, profile_reuse
from warmset.trace import Trace, build_trace, read_mooncake, sample_trace
from warmset.trace.forest import RequestColumns

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
    parser.add_argument(
        "--full", action="store_true", help="also the whole WEKA trace (needs zstandard, 10 GB)"
    )
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
    others: dict[str, tuple[str, Callable[[Path], Trace]]] = {
        "Mooncake synthetic": ("traces/mooncake/synthetic_trace.jsonl.gz", read_mooncake),
        "WEKA, 49 sessions": (WEKA_SAMPLE, read_weka_sessions),
    }
    if full:
        others["WEKA, 710 sessions"] = (
            "traces/weka-kv-cache-tester/traces_710_sessions.jsonl.zst",
            read_full_weka,
        )
    for name, (file, read) in others.items():
        if (SHARED / file).is_file():
            yield name, read(SHARED / file)
        else:
            print(f"{name:<32} not here: it lies in ../shared, beside the repository")


def read_full_weka(path: Path) -> Trace:
    import zstandard

    with path.open("rb") as packed:
        return weka_trace(io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(packed)), path.name)


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


def columns_of(trace: Trace) -> RequestColumns:
    """The trace as a reader hands it over, with its nodes for ids."""
    paths = []
    for leaf in trace.leaf.tolist():
        path, node = [], leaf
        while node >= 0:
            path.append(node)
            node = trace.node_parent[node]
        paths.append(np.array(path[::-1], dtype=np.int64))
    return RequestColumns(
        trace.arrival_ms, trace.input_tokens, trace.output_tokens, trace.num_blocks, np.concatenate(paths)
    )


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
    columns = columns_of(trace)
    rows: dict[str, list[float]] = {"start": [], "sweep": [], "call": [], "curve": [], "from_ids": []}
    for _ in range(runs):  # in turn, so that a busy machine slows all of them
        rows["start"].append(simulator.run_program(prepared, ()).seconds)
        rows["sweep"].append(simulator.run_program(prepared, simulator.CAPACITIES).seconds)
        rows["call"].append(simulator.run_from_parsed_trace(prepared))
        rows["curve"].append(measure(lambda: curve_of(trace, simulator.WARM_UP_SHARE), 5).median_s)
        rows["from_ids"].append(
            measure(lambda: curve_of(build_trace(columns, trace.block_tokens, trace.provenance)), 1).median_s
        )
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
