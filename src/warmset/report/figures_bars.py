"""Bars and ranges, each with its table: who serves the tokens, what an hour costs, TTFT by traffic."""

from warmset.evaluation import BASELINES, Baseline, Evaluation, TierName
from warmset.report.axes import linear_axis, time_axis
from warmset.report.charts import Bar, BarChart, Range, RangeChart
from warmset.report.document import Cell, Figure, Table
from warmset.report.numbers import show
from warmset.report.voice import Voice

_TIERS: tuple[TierName, ...] = ("hbm", "dram", "nvme", "remote")
_COLORS = {
    "accelerators": "c1",
    "servers": "c2",
    "dram": "c3",
    "nvme": "c4",
    "remote": "c5",
    "power": "c6",
    "operations": "c7",
}


def hits_figure(evaluation: Evaluation, voice: Voice) -> Figure:
    """Who serves the prompt tokens under each baseline."""
    total = evaluation.traffic.input_tokens or 1
    bars = tuple(
        Bar(
            voice.say(f"tiers.{name}"),
            name,
            tuple(count / total for count in tokens),
            tuple(f"{voice.ratio(count / total)} · {voice.of(count, 'tokens')}" for count in tokens),
        )
        for name, tokens in _tokens_by_tier(evaluation)
    )
    title = voice.say("curves.hits_title")
    chart = BarChart(
        "hits",
        title,
        voice.baselines(),
        linear_axis(voice.say("curves.tokens"), [1.0], voice.ticks("ratio")),
        bars,
    )
    rows = tuple(
        (
            Cell(voice.say(f"tiers.{name}"), tag="exact"),
            *(Cell(voice.ratio(count / total), voice.of(count, "tokens"), value=count) for count in tokens),
        )
        for name, tokens in _tokens_by_tier(evaluation)
    )
    table = Table((voice.say("capacity.tier"), *voice.baselines()), rows)
    return Figure("hits", title, voice.say("curves.hits_reading"), (chart,), table)


def _tokens_by_tier(evaluation: Evaluation) -> list[tuple[str, list[int]]]:
    """Tokens under each baseline, by the tier that served them; the last row is what nobody served."""
    by_tier = {row.tier: row.hit_tokens for row in evaluation.tier_traffic}
    parts: list[tuple[str, list[int]]] = [
        (tier, [by_tier[tier].get(baseline, 0) for baseline in BASELINES])
        for tier in _TIERS
        if tier in by_tier
    ]
    served = [sum(tokens[index] for _, tokens in parts) for index in range(len(BASELINES))]
    return [*parts, ("recomputed", [evaluation.traffic.input_tokens - tokens for tokens in served])]


def costs_figure(evaluation: Evaluation, voice: Voice) -> Figure:
    """Hourly cost by line under each baseline."""
    economics = evaluation.economics
    unit = f"{economics.currency}_per_hour"
    bars = tuple(
        Bar(
            voice.say(f"cost_lines.{line.key}"),
            _COLORS.get(line.key, "c7"),
            tuple(show(line.values.of(baseline), voice.texts).value or 0.0 for baseline in BASELINES),
            tuple(voice.inline(line.values.of(baseline)) for baseline in BASELINES),
        )
        for line in economics.cost_lines
    )
    sums = [sum(bar.values[index] for bar in bars) for index in range(len(BASELINES))]
    title = voice.say("economics.cost_title")
    chart = BarChart("costs", title, voice.baselines(), linear_axis(title, sums, voice.ticks(unit)), bars)
    rows = [
        (Cell(voice.say(f"cost_lines.{line.key}")), *voice.across(line.values))
        for line in economics.cost_lines
    ]
    rows.append(
        (Cell(voice.say("economics.total"), tone="strong"), *voice.across(economics.cost_per_hour, "strong"))
    )
    table = Table((voice.say("economics.line"), *voice.baselines()), tuple(rows), total_row=True, key="costs")
    return Figure("costs", title, voice.say("economics.cost_reading"), (chart,), table)


def kinds_figure(evaluation: Evaluation, voice: Voice) -> Figure:
    """TTFT from P50 to P95 by kind of traffic."""
    kinds = [kind for kind in evaluation.traffic.kinds if kind.num_requests]
    names = tuple(voice.say(f"traffic.{kind.kind}.name") for kind in kinds)
    ranges = tuple(_ttft_range(evaluation, baseline, voice) for baseline in BASELINES)
    times = [value for each in ranges for pair in each.ends for value in pair if value]
    title = voice.say("curves.kinds_title")
    chart = RangeChart(
        "kinds", title, names, time_axis(voice.say("metrics.ttft.short"), times, voice.ticks("s")), ranges
    )
    columns = (
        f"{name} {voice.say(f'statistics.{each}')}" for name in voice.baselines() for each in ("p50", "p95")
    )
    rows = tuple(
        (
            Cell(name),
            *(
                voice.estimate(each.of(baseline))
                for baseline in BASELINES
                for each in (kind.ttft_p50_s, kind.ttft_p95_s)
            ),
        )
        for name, kind in zip(names, kinds, strict=True)
    )
    table = Table((voice.say("traffic.kind"), *columns), rows)
    return Figure("kinds", title, voice.say("curves.kinds_reading"), (chart,), table)


def _ttft_range(evaluation: Evaluation, baseline: Baseline, voice: Voice) -> Range:
    shown = [
        (show(kind.ttft_p50_s.of(baseline), voice.texts), show(kind.ttft_p95_s.of(baseline), voice.texts))
        for kind in evaluation.traffic.kinds
        if kind.num_requests
    ]
    return Range(
        voice.baseline(baseline),
        baseline,
        tuple((low.value, high.value) for low, high in shown),
        tuple(f"P50 {low.text} · P95 {high.text}" for low, high in shown),
    )
