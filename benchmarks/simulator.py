"""KVCache.AI's kvcache-simulator (Apache-2.0) on a trace that its own reader has parsed, without its JSON."""

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from kvcache_sim.trace import TraceData

# Its default memory budgets, 1 to 16,384 GiB, with DeepSeek-V3.2 in 512-token blocks: 24.417 blocks a GiB.
CAPACITIES = tuple(int(24.417287630402384 * 2**doubling) for doubling in range(15))
WARM_UP_SHARE = 0.5


class Prepared(NamedTuple):
    """A parsed trace as the files that its C++ program reads, and the command up to the capacities."""

    folder: tempfile.TemporaryDirectory[str]
    command: list[str]
    trace: "TraceData"


class Sweep(NamedTuple):
    seconds: float
    hit_tokens: dict[int, int]
    """By capacity in blocks; a capacity that was not full before the measured half has none."""


def why_missing() -> str | None:
    """What keeps it from running here, if anything."""
    try:
        from kvcache_sim import cpp_backend
    except ImportError:
        return "kvcache-simulator is not installed (pip install kvcache-simulator==0.1.3)"
    try:
        cpp_backend.ensure_cpp_simulator()
    except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
        return f"kvcache-simulator does not compile here: {error}"
    return None


def prepare(path: Path, block_tokens: int) -> Prepared:
    """Parse a trace with its reader and write the arrays that its program loads: none of this is timed."""
    from kvcache_sim import cpp_backend
    from kvcache_sim.trace import parse_trace_file

    trace = parse_trace_file(path, block_size=block_tokens)
    folder = tempfile.TemporaryDirectory(prefix="warmset-bench-")
    # There is no public way to time the program without the Python around it.
    files = cpp_backend._write_binary_trace(trace, Path(folder.name))  # noqa: SLF001
    command = [
        *(str(cpp_backend.ensure_cpp_simulator()), "--policy", "batch", "--policies", "lru"),
        *("--ids", os.fspath(files.ids), "--tokens", os.fspath(files.tokens)),
        *("--request-ends", os.fspath(files.request_ends), "--request-count", str(trace.request_count)),
        *("--total-blocks", str(len(trace.ids))),
        *("--warmup-requests", str(int(trace.request_count * WARM_UP_SHARE)), "--capacities"),
    ]
    return Prepared(folder, command, trace)


def run_program(prepared: Prepared, capacities: tuple[int, ...]) -> Sweep:
    """One run of its C++ program: start, load the arrays, build its trie, then LRU at each capacity.

    Without capacities it stops before the LRU; the difference is the sweep alone.
    """
    command = [*prepared.command, ",".join(map(str, capacities))]
    start = time.perf_counter()
    output = subprocess.run(command, capture_output=True, check=True).stdout
    seconds = time.perf_counter() - start
    points = json.loads(output)["points"]
    return Sweep(
        seconds,
        {
            point["cacheBlocks"]: point["lru"]["hitTokens"]
            for point in points
            if point["lru"]["measurementStartRequest"] >= 0
        },
    )


def run_from_parsed_trace(prepared: Prepared) -> float:
    """Seconds of its Python call on the parsed trace: write the arrays, run the program, read the answer."""
    from kvcache_sim import cpp_backend

    start = time.perf_counter()
    cpp_backend.run_cpp_sweep(
        prepared.trace,
        capacities=list(CAPACITIES),
        policies=["lru"],
        warmup_requests=int(prepared.trace.request_count * WARM_UP_SHARE),
    )
    return time.perf_counter() - start
