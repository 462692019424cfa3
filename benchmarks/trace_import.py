"""How fast logs are read and what that costs in memory; and what the trace's own file costs against Arrow.

Run as `python -m benchmarks.trace_import`, which `make bench` does too. What is timed is `read_trace`: from
the packed file to a `Trace` in memory. Memory is the largest resident size of a process of its own.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.support.weka import WEKA_ALL, WEKA_SAMPLE
from warmset.trace import Trace, read_trace, read_wst, sample_trace, write_wst

SHARED = Path(__file__).parents[2] / "shared"
BAR_SECONDS = 6.0
BAR_GIB = 1.0
_MEASURE = """
import json, resource, sys, time
from warmset.trace import read_trace
start = time.perf_counter()
trace = read_trace([sys.argv[1]])
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([seconds, peak * (1 if sys.platform == "darwin" else 1024), trace.num_requests,
    trace.block_refs, trace.num_nodes]))
"""


class Import(NamedTuple):
    seconds: float
    peak_bytes: int
    requests: int
    refs: int
    nodes: int


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3, help="timed runs of each measurement (default 3)")
    runs = parser.parse_args().runs
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
    print(f"{platform.system()}, {os.cpu_count()} cores; {versions}")
    print_imports(runs)
    print_peer(runs)
    print_files(runs)


# --- imports ---------------------------------------------------------------------------------------


def print_imports(runs: int) -> None:
    print(f"\nImport, each in a process of its own; medians of {runs} runs, kernels compiled before")
    print(
        f"{'log':<30}{'unpacked':>10}{'requests':>10}{'references':>13}{'blocks':>11}{'time':>9}{'peak':>10}"
    )
    with resources.as_file(
        resources.files("warmset.trace") / "data/mooncake/conversation_trace.jsonl.gz"
    ) as path:
        import_once(path)
        print_import("Mooncake conversation", path, runs)
    for name, file in (("WEKA, 49 sessions", WEKA_SAMPLE), ("WEKA, 710 sessions", WEKA_ALL)):
        if (SHARED / file).is_file():
            import_once(SHARED / file)
            whole = print_import(name, SHARED / file, runs)
            if file == WEKA_ALL:
                print_bars(whole)
        else:
            print(f"{name:<30} not here: it lies in ../shared, beside the repository")


def import_once(path: Path) -> Import:
    ended = subprocess.run(
        [sys.executable, "-c", _MEASURE, os.fspath(path)], capture_output=True, check=True, text=True
    )
    return Import(*json.loads(ended.stdout))


def print_import(name: str, path: Path, runs: int) -> Import:
    imports = [import_once(path) for _ in range(runs)]
    seconds = statistics.median(each.seconds for each in imports)
    peak_bytes = max(each.peak_bytes for each in imports)
    median = imports[0]._replace(seconds=seconds, peak_bytes=peak_bytes)
    print(
        f"{name:<30}{unpacked_bytes(path) / 1e6:>7,.0f} MB{median.requests:>10,}{median.refs:>13,}"
        f"{median.nodes:>11,}{seconds:>7.2f} s{peak_bytes / 2**20:>6,.0f} MiB"
    )
    return median


def unpacked_bytes(path: Path) -> int:
    from warmset.trace.source import Input

    with Input(path).opened() as stream:
        return sum(iter(lambda: len(stream.read(2**20)), 0))


def print_bars(whole: Import) -> None:
    gib = whole.peak_bytes / 2**30
    for reached, what in (
        (whole.seconds <= BAR_SECONDS, f"the 460 MB WEKA file in {BAR_SECONDS:g} s: {whole.seconds:.2f} s"),
        (gib <= BAR_GIB, f"and in {BAR_GIB:g} GiB: {gib:.2f} GiB"),
    ):
        print(f"  {'reached' if reached else 'MISSED':<10}{what}")


def print_peer(runs: int) -> None:
    """Against the reader of kvcache-simulator, on the shipped trace, in turn."""
    try:
        from kvcache_sim.trace import parse_trace_file
    except ImportError:
        print("\nNot compared: kvcache-simulator is not installed (pip install kvcache-simulator==0.1.3)")
        return
    with resources.as_file(
        resources.files("warmset.trace") / "data/mooncake/conversation_trace.jsonl.gz"
    ) as path:
        theirs, ours = [], []
        for _ in range(runs):
            theirs.append(timed(lambda: parse_trace_file(path, block_size=512)))
            ours.append(timed(lambda: read_trace([path])))
    ratio = statistics.median(theirs) / statistics.median(ours)
    print(
        "\nReading the Mooncake conversation trace: "
        f"kvcache-simulator {1e3 * statistics.median(theirs):,.0f} ms, "
        f"Warmset {1e3 * statistics.median(ours):,.0f} ms, {ratio:.1f} times as fast"
    )


# --- the trace's own file --------------------------------------------------------------------------


def print_files(runs: int) -> None:
    path = SHARED / WEKA_ALL
    trace = read_trace([path]) if path.is_file() else sample_trace()
    print(
        f"\nOne trace as a file, {trace.num_nodes:,} blocks and {trace.num_requests:,} requests; "
        f"medians of {runs} runs"
    )
    print(f"{'form':<34}{'size':>10}{'write':>10}{'open':>10}{'open, read all':>16}")
    with tempfile.TemporaryDirectory(prefix="warmset-bench-") as folder:
        place = Path(folder)
        print_file(".wst: NPY columns, mapped", place / "t.wst", runs, trace, write_wst, open_wst)
        print_file("NPZ, deflated", place / "t.npz", runs, trace, write_deflated, open_npz)
        try:
            import pyarrow as pa
        except ImportError:
            print("Arrow: not compared, pyarrow is not installed")
            return
        print(f"pyarrow {pa.__version__}:")
        for packing in (None, "lz4", "zstd"):
            name = f"Arrow IPC, {packing or 'mapped'}"
            write = lambda trace, path, packing=packing: write_arrow(trace, path, packing)  # noqa: E731
            print_file(name, place / f"t.{packing}.arrow", runs, trace, write, open_arrow)


Columns = dict[str, np.ndarray]


def print_file(
    name: str,
    path: Path,
    runs: int,
    trace: Trace,
    write: Callable[[Trace, Path], None],
    open_: Callable[[Path], Columns],
) -> None:
    writes = statistics.median(timed(lambda: write(trace, path)) for _ in range(runs))
    opens = statistics.median(timed(lambda: open_(path)) for _ in range(runs))
    reads = statistics.median(
        timed(lambda: [column.sum() for column in open_(path).values()]) for _ in range(runs)
    )
    print(
        f"{name:<34}{path.stat().st_size / 1e6:>7,.1f} MB{1e3 * writes:>7,.1f} ms"
        f"{1e3 * opens:>7,.1f} ms{1e3 * reads:>13,.1f} ms"
    )


def columns_of(trace: Trace) -> Columns:
    names = ("node_parent", "node_depth", "arrival_ms", "input_tokens", "output_tokens", "leaf", "num_blocks")
    return {name: getattr(trace, name) for name in names}


def open_wst(path: Path) -> Columns:
    return columns_of(read_wst(path))


def write_deflated(trace: Trace, path: Path) -> None:
    np.savez_compressed(path, **columns_of(trace))


def open_npz(path: Path) -> Columns:
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def write_arrow(trace: Trace, path: Path, packing: str | None) -> None:
    """Two tables, of blocks and of requests, one after the other."""
    import pyarrow as pa

    columns = columns_of(trace)
    options = pa.ipc.IpcWriteOptions(compression=packing)
    for suffix, names in (("nodes", list(columns)[:2]), ("requests", list(columns)[2:])):
        table = pa.table({name: columns[name] for name in names})
        with pa.ipc.new_file(f"{path}.{suffix}", table.schema, options=options) as file:
            file.write_table(table)
    path.write_bytes(b"\0" * sum(Path(f"{path}.{suffix}").stat().st_size for suffix in ("nodes", "requests")))


def open_arrow(path: Path) -> Columns:
    import pyarrow as pa

    columns: Columns = {}
    for suffix in ("nodes", "requests"):
        table = pa.ipc.open_file(pa.memory_map(f"{path}.{suffix}")).read_all()
        columns |= {
            name: table.column(name).combine_chunks().to_numpy(zero_copy_only=False)
            for name in table.column_names
        }
    return columns


def timed(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
