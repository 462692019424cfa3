"""Scenarios from nested tables, and small request logs that are made for one question each."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.support.traces import mooncake_row, write_rows
from warmset.scenario import Scenario, scenario_from_tree

LOG_BLOCK_TOKENS = 512
CHEAP_TIERS = {
    "dram_price": 0.01,
    "nvme_price": 0.01,
    "staff_fte": 0.0,
    "dram_power_w_per_gb": 0.0,
    "nvme_power_w_per_drive": 0.0,
}
"""Prices under which tiers cost next to nothing."""

ONE_GPU = {
    "model": {"name": "Qwen3-32B", "weights": "fp8", "kv": "bf16"},
    "hardware": {"gpu": "H20-96G", "gpus_per_node": 1, "max_nodes": 16},
    "tiers": {"dram": "512GiB", "nvme": "2TB"},
    "slo": {"ttft": "30s", "tpot": "100ms"},
}
"""A dense model on nodes of one GPU: a pool of a few hundred 512-token blocks, quick to evaluate."""


def scenario_with(*changes: dict[str, Any]) -> Scenario:
    """The dataclass defaults with tables laid over them, the later ones over the earlier ones."""
    tree: dict[str, Any] = {}
    for change in changes:
        tree = _laid_over(tree, change)
    return scenario_from_tree(tree, "test")


def assume(**values: float) -> dict[str, Any]:
    """The table `[assume]`, each with a value and no range."""
    return {"assume": {key: {"value": value} for key, value in values.items()}}


def trace_of(path: Path | str, **more: object) -> dict[str, Any]:
    """The table `[traffic]` for a log."""
    return {"traffic": {"trace": str(path), **more}}


def as_toml(tree: dict[str, Any]) -> str:
    """Tables of one level as a TOML file."""
    lines = [f"{name} = {value!r}" for name, value in tree.items() if not isinstance(value, dict)]
    for name, table in tree.items():
        if isinstance(table, dict):
            lines.extend([f"[{name}]", *(f"{field} = {value!r}" for field, value in table.items())])
    return "\n".join(lines) + "\n"


def write_log(path: Path, rows: Iterable[dict[str, object]]) -> Path:
    """A Mooncake JSONL."""
    return write_rows(path, *rows)


def row(arrival_ms: int, ids: list[int], output: int = 64) -> dict[str, object]:
    """One request whose blocks are all full."""
    tokens = len(ids) * LOG_BLOCK_TOKENS
    return mooncake_row(timestamp=arrival_ms, input_length=tokens, output_length=output, hash_ids=ids)


def unique_rows(requests: int, blocks: int, gap_ms: int, output: int = 64) -> list[dict[str, object]]:
    """Prompts that share nothing at all."""
    return [
        row(number * gap_ms, list(range(number * blocks, (number + 1) * blocks)), output)
        for number in range(requests)
    ]


def chat_rows(
    sessions: int, turns: int, blocks: int, gap_ms: int, output: int = 64
) -> list[dict[str, object]]:
    """Sessions that take turns in strict rotation, each turn one block longer than the last.

    So a block comes back after all other sessions had their turn: the reuse distance is the sum of all
    sessions, and a cache that holds less hits nothing.
    """
    most = blocks + turns
    return [
        row(
            (turn * sessions + session) * gap_ms,
            list(range(session * most, session * most + blocks + turn)),
            output,
        )
        for turn in range(turns)
        for session in range(sessions)
    ]


def _laid_over(tree: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    both = {**tree}
    for name, value in change.items():
        inner = both.get(name)
        both[name] = (
            _laid_over(inner, value) if isinstance(inner, dict) and isinstance(value, dict) else value
        )
    return both
