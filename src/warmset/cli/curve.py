"""`warmset curve`: token hits of a trace at every capacity and time to live, exactly."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warmset.errors import InputError

if TYPE_CHECKING:
    from warmset.reuse import ReuseProfile
    from warmset.trace import Trace

DEFAULT_TTLS_S = (60, 300, 600, 1800, 3600)
NUM_DEFAULT_CAPACITIES = 16
MOST = 10**15
"""No capacity in blocks and no time in seconds is larger."""


@click.command("curve", short_help="Count the hits of a trace at every capacity and time to live.")
@click.argument("trace")
@click.option("--block-tokens", type=int, help="Tokens that one hash id covers.  [default: the log's own]")
@click.option("--capacity-blocks", help="Capacities, as 1000,3000,…  [default: a geometric range]")
@click.option("--ttl", "ttl_s", help="Sliding times to live in seconds, as 60,600,…  [default: 60 to 3600]")
@click.option(
    "--measure-from",
    type=float,
    default=0.0,
    show_default=True,
    help="Share of the requests that only warm the cache, such as 0.5.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    trace: str,
    block_tokens: int | None,
    capacity_blocks: str | None,
    ttl_s: str | None,
    measure_from: float,
    *,
    as_json: bool,
) -> None:
    """Hit tokens of TRACE (a .wst, a log, or `mooncake-conversation`) at each capacity and time to live.

    Exact for LRU with tails evicted before heads. A hit is a block present at lookup with all its ancestors;
    the token hit rate is hit tokens over input tokens. The working set counts distinct blocks in consecutive
    windows from the first arrival on.
    """
    if not 0 <= measure_from < 1:
        raise InputError(f"--measure-from {measure_from}: it must be at least 0 and below 1")
    capacities = None if capacity_blocks is None else _numbers(capacity_blocks, "--capacity-blocks")
    ttls = list(DEFAULT_TTLS_S) if ttl_s is None else _numbers(ttl_s, "--ttl")
    from warmset.cli.trace.output import print_notes
    from warmset.reuse import profile_reuse
    from warmset.trace import open_trace

    opened = open_trace(trace, block_tokens)
    print_notes(opened.findings, opened.provenance.assumptions)
    if not opened.has_blocks and opened.input_tokens.any():
        raise InputError(f"{trace}: the log has lengths only, and what prompts share is unknown")
    profile = profile_reuse(opened, measure_from)
    result = _result(opened, profile, capacities, ttls)
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(result).decode())
    else:
        _print_table(trace, result)


def _numbers(text: str, flag: str) -> list[int]:
    numbers = []
    for part in text.split(","):
        try:
            number = int(part)
        except ValueError as error:
            raise InputError(f"{flag} {text}: {part!r} is not a whole number") from error
        if not 1 <= number <= MOST:
            raise InputError(f"{flag} {text}: {number} must be at least 1 and at most {MOST}")
        numbers.append(number)
    return numbers


def _result(
    trace: "Trace", profile: "ReuseProfile", capacities: list[int] | None, ttls: list[int]
) -> dict[str, Any]:
    from warmset.reuse import WINDOWS_S, window_blocks

    measured = profile.measured_tokens
    unlimited = profile.unlimited
    points = capacities if capacities is not None else _default_capacities(profile)
    return {
        "requests": trace.num_requests,
        "block_refs": trace.block_refs,
        "unique_blocks": trace.num_nodes,
        "input_tokens": int(trace.input_tokens.sum()),
        "measured_tokens": measured,
        "unlimited": {
            "hit_blocks": unlimited.blocks,
            "hit_tokens": unlimited.tokens,
            "token_hit": _share(unlimited.tokens, measured),
        },
        "points": [_point(profile, capacity) for capacity in points],
        "ttl": [_ttl(profile, ttl) for ttl in ttls],
        "working_set": [
            {"window_s": window, "mean_blocks": blocks.mean_blocks, "max_blocks": blocks.max_blocks}
            for window in WINDOWS_S
            for blocks in (window_blocks(profile, window * 1000),)
        ],
        "assumptions": list(trace.provenance.assumptions),
    }


def _default_capacities(profile: "ReuseProfile") -> list[int]:
    import numpy as np

    from warmset.reuse import capacity_curve

    most = max(capacity_curve(profile).most_blocks, 1)
    return sorted({int(capacity) for capacity in np.geomspace(1, most, NUM_DEFAULT_CAPACITIES).round()})


def _point(profile: "ReuseProfile", capacity: int) -> dict[str, Any]:
    hits = profile.hits(capacity)
    return {
        "policy": "lru",
        "capacity_blocks": capacity,
        "hit_blocks": hits.blocks,
        "hit_tokens": hits.tokens,
        "token_hit": _share(hits.tokens, profile.measured_tokens),
    }


def _ttl(profile: "ReuseProfile", ttl_s: int) -> dict[str, int]:
    hits = profile.hits(ttl_ms=ttl_s * 1000)
    return {"ttl_s": ttl_s, "hit_blocks": hits.blocks, "hit_tokens": hits.tokens}


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _print_table(trace: str, result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print(
        f"{Path(trace).name}: {result['requests']:,} requests, {result['block_refs']:,} block references, "
        f"{result['unique_blocks']:,} distinct blocks, {result['input_tokens']:,} input tokens",
        highlight=False,
    )
    table = Table("capacity, blocks", "hit blocks", "hit tokens", "token hit rate", title="LRU, tails first")
    for point in [*result["points"], {"capacity_blocks": None, **result["unlimited"]}]:
        capacity = "unlimited" if point["capacity_blocks"] is None else f"{point['capacity_blocks']:,}"
        table.add_row(
            capacity, *_hit_cells(point["hit_blocks"], point["hit_tokens"], result["measured_tokens"])
        )
    console.print(table)
    table = Table("sliding TTL, s", "hit blocks", "hit tokens", "token hit rate", title="unlimited capacity")
    for row in result["ttl"]:
        cells = _hit_cells(row["hit_blocks"], row["hit_tokens"], result["measured_tokens"])
        table.add_row(f"{row['ttl_s']:,}", *cells)
    console.print(table)
    table = Table("window, s", "mean blocks", "max blocks", title="working set, consecutive windows")
    for row in result["working_set"]:
        table.add_row(f"{row['window_s']:,}", f"{row['mean_blocks']:,.0f}", f"{row['max_blocks']:,}")
    console.print(table)


def _hit_cells(blocks: int, tokens: int, measured: int) -> tuple[str, str, str]:
    share = _share(tokens, measured)
    return f"{blocks:,}", f"{tokens:,}", "n/a" if share is None else f"{100 * share:.2f} %"
