"""The tables of `warmset trace describe`."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from warmset.reuse.definitions import definition_of
from warmset.reuse.describe import Description
from warmset.reuse.popularity import BODY_RANK, TOP_PERCENTS
from warmset.units import format_count, format_percent, format_seconds

Format = Callable[[float], str]

_MOMENTS = 12
"""Steps of the table of sessions over time; the JSON has more."""
_UNITS: dict[str, tuple[str, Format]] = {
    "input": ("tokens", format_count),
    "output": ("tokens", format_count),
    "sessions.turns": ("requests", format_count),
    "sessions.turn_gaps": ("s", format_seconds),
    "sessions.think_times": ("s", format_seconds),
    "sessions.context.all_requests": ("tokens", format_count),
    "sessions.context.at_last_request": ("tokens", format_count),
    "sessions.context.longest_of_session": ("tokens", format_count),
    "reuse.reuse_times": ("s", format_seconds),
    "popularity.life_span": ("s", format_seconds),
}
_SPREADS = {
    "input": "input tokens",
    "output": "output tokens",
    "reuse.reuse_times": "re-use time",
    "popularity.life_span": "life span of blocks",
    "sessions.turns": "turns per session",
    "sessions.turn_gaps": "gap between turns",
    "sessions.think_times": "think time",
    "sessions.context.all_requests": "context, all requests",
    "sessions.context.at_last_request": "context at last request",
    "sessions.context.longest_of_session": "context at its longest",
}


_BASIS_OF = {
    "sessions.num_sessions": "sessions.basis",
    "sessions.think_times": "sessions.think_times.basis",
    "generated_tokens.num_continuations": "generated_tokens.basis",
}
_BASES = {
    "named": "named",
    "linked": "linked",
    "inferred": "inferred",
    "previous": "linked",
    "session": "of the same session",
    "think_ms": "as logged",
    "gap_minus_duration": "gap less duration",
    "gap": "whole gap",
}


class _Row(NamedTuple):
    """One line: a number, or two or three that belong together and share a definition, the first one's."""

    title: str
    paths: tuple[str, ...]
    format: Format
    between: str = " / "


def _two_digits(number: float) -> str:
    return f"{number:.2f}"


_ARRIVALS = (
    _Row("span", ("arrivals.span_s",), format_seconds),
    _Row("requests/s", ("arrivals.requests_per_s",), format_count),
    _Row(
        "requests in 1 s: P99 / most",
        ("arrivals.p99_requests_per_s", "arrivals.max_requests_per_s"),
        format_count,
    ),
    _Row("inter-arrival CV", ("arrivals.inter_arrival_cv_ratio",), format_count),
    _Row("clock step, ms", ("arrivals.clock_step_ms",), format_count),
)
_REUSE = (
    _Row("block references", ("reuse.block_refs",), format_count),
    _Row("unique blocks", ("reuse.unique_blocks",), format_count),
    _Row("block hit rate", ("reuse.block_hit_ratio",), format_percent),
    _Row("token hit rate", ("reuse.token_hit_ratio",), format_percent),
    _Row("mean of request hit rates", ("reuse.mean_of_request_block_hit_ratio",), format_percent),
    _Row("requests hitting > 1 block", ("reuse.requests_over_one_block_ratio",), format_percent),
    _Row("80 % of re-uses within", ("reuse.reuse_times.p80_s",), format_seconds),
)
_GENERATED = (
    _Row("token hit rate", ("generated_tokens.token_hit_ratio",), format_percent),
    _Row("… with partial blocks", ("generated_tokens.with_partial_block_token_hit_ratio",), format_percent),
    _Row("… and with answers", ("generated_tokens.with_answer_token_hit_ratio",), format_percent),
    _Row("continuations", ("generated_tokens.num_continuations",), format_count),
)
_POPULARITY = (
    _Row("blocks used once", ("popularity.used_once_ratio",), format_percent),
    *(
        _Row(
            f"top {percent} %: refs / re-uses",
            (f"popularity.top.{place}.refs_ratio", f"popularity.top.{place}.reuse_ratio"),
            format_percent,
        )
        for place, percent in enumerate(TOP_PERCENTS)
    ),
    _Row("Zipf alpha, R2", ("popularity.zipf.alpha", "popularity.zipf.r_squared_ratio"), _two_digits, ", "),
    _Row(
        f"… from rank {BODY_RANK}",
        ("popularity.zipf_body.alpha", "popularity.zipf_body.r_squared_ratio"),
        _two_digits,
        ", ",
    ),
)
_SESSIONS = (
    _Row("sessions", ("sessions.num_sessions",), format_count),
    _Row("duplicate sessions", ("sessions.duplicate_sessions",), format_count),
    *(
        _Row(
            f"{state} at once: mean / most",
            (f"sessions.activity.mean_{state}_sessions", f"sessions.activity.max_{state}_sessions"),
            format_count,
        )
        for state in ("open", "active", "dormant")
    ),
    _Row("active within", ("sessions.activity.active_window_s",), format_seconds),
    _Row("dormant share of time", ("sessions.activity.dormant_time_ratio",), format_percent),
)
_NUMBERS = (_ARRIVALS, _REUSE, _GENERATED, _POPULARITY, _SESSIONS)


def print_tables(name: str, described: Description) -> None:
    """Everything on stdout."""
    console = Console(highlight=False)
    console.print(
        f"{Path(name).name}: {described.num_requests:,} requests, {described.input_tokens:,} input and "
        f"{described.output_tokens:,} output tokens, blocks of {described.block_tokens:,} tokens"
    )
    console.print(_numbers(described))
    console.print(_spreads(described))
    for path, title in _SPREADS.items():
        console.print(f"{title}: {_explained(described, path)}")
    for table in _small_tables(described):
        console.print(table)


def _numbers(described: Description) -> Table:
    table = Table("number", "value", "what it is, or why it is not known")
    table.columns[1].justify = "right"
    for rows in _NUMBERS:
        for row in rows:
            values = [_at(described, path) for path in row.paths]
            texts = ["n/a" if value is None else row.format(value) for value in values]
            missing = values.index(None) if None in values else 0
            text = "n/a" if set(texts) == {"n/a"} else row.between.join(texts)
            table.add_row(row.title, text, _explained(described, row.paths[missing]))
        table.add_section()
    return table


def _spreads(described: Description) -> Table:
    table = Table("", "mean", "P50", "P90", "P99", "max", title="quantiles; defined below")
    for column in table.columns[1:]:
        column.justify = "right"
    for path, title in _SPREADS.items():
        unit, to_text = _UNITS[path]
        around = _at(described, path)
        cells = [getattr(around, f"{name}_{unit}", None) for name in ("mean", "p50", "p90", "p99", "max")]
        missing = "n/a" if around is None else "–"
        table.add_row(title, *(missing if cell is None else to_text(cell) for cell in cells))
    return table


def _small_tables(described: Description) -> Iterable[Table]:
    if described.working_sets:
        table = _right(Table("window", "mean blocks", "max blocks", "windows", title="working set"))
        for row in described.working_sets:
            cells = (f"{row.mean_blocks:,.0f}", f"{row.max_blocks:,}", f"{row.num_windows:,}")
            table.add_row(format_seconds(row.window_s), *cells)
        table.caption = definition_of("working_sets")
        yield table
    if described.sessions:
        yield _over_time(described)
    if described.reported_cache:
        table = _right(Table("kind", "requests", "input tokens", "cached", "share", title="provider's cache"))
        for kind, share in (
            ("all", described.reported_cache.of_all),
            *described.reported_cache.of_kind.items(),
        ):
            ratio = "n/a" if share.token_hit_ratio is None else format_percent(share.token_hit_ratio)
            counts = (share.num_requests, share.input_tokens, share.cached_tokens)
            table.add_row(kind, *(f"{count:,}" for count in counts), ratio)
        table.caption = definition_of("reported_cache")
        yield table


def _over_time(described: Description) -> Table:
    assert described.sessions is not None
    over_time = described.sessions.activity.over_time
    table = _right(
        Table("at", "open", "active", "dormant", title=f"{described.sessions.basis} sessions over time")
    )
    step = max((len(over_time.at_s) - 1) // _MOMENTS, 1)
    columns = (over_time.open_sessions, over_time.active_sessions, over_time.dormant_sessions)
    for place in range(0, len(over_time.at_s), step):
        table.add_row(format_seconds(over_time.at_s[place]), *(f"{column[place]:,}" for column in columns))
    return table


def _right(table: Table) -> Table:
    for column in table.columns[1:]:
        column.justify = "right"
    return table


def _at(described: Description, path: str) -> Any:  # noqa: ANN401 - whatever stands there
    """The value at a path, or `None` where that or something around it is."""
    value: Any = described
    for part in path.split("."):
        if value is None:
            return None
        value = value[int(part)] if part.isdecimal() else getattr(value, part)
    return value


def _explained(described: Description, path: str) -> str:
    """The definition of what is there, or why it is not; of what can be got in several ways, in which."""
    field = re.sub(r"\.\d+", "", path)
    if _at(described, path) is None:
        while field not in described.unknown:
            field = field.rpartition(".")[0]
        return described.unknown[field]
    told = definition_of(field)
    return f"{told}; here: {_BASES[_at(described, _BASIS_OF[field])]}" if field in _BASIS_OF else told
