"""The thirteen rows, the traffic by kind, the longest context and the five kinds of concurrency."""

from typing import get_args

from warmset.evaluation import (
    BASELINES,
    Baseline,
    ComplexityItem,
    ComplexityKind,
    Evaluation,
    MetricRow,
    TrafficKind,
    TrafficKindKey,
)
from warmset.report.document import Block, Bullets, Cell, Entry, Group, Prose, Section, Table
from warmset.report.figures_bars import hits_figure, kinds_figure
from warmset.report.figures_curves import goodput_figure, occupancy_figure, throughput_figure, ttft_figure
from warmset.report.numbers import show
from warmset.report.texts import TAG_SECTIONS
from warmset.report.voice import LOWER_IS_BETTER, Voice

_ASPECTS: tuple[ComplexityKind, ...] = get_args(ComplexityKind)
_HEADLINES = ("p95", "mean", "total", "p50")


def metrics_section(evaluation: Evaluation, voice: Voice) -> Section:
    """The thirteen rows: an overview, then each in full."""
    entries = tuple(
        _entry(index, row, evaluation, voice) for index, row in enumerate(evaluation.metrics, start=1)
    )
    overview = Table(
        ("#", *voice.heads("metrics", "measure"), *voice.baselines(), voice.say("metrics.change")),
        tuple(
            _overview_row(index, row, evaluation, voice)
            for index, row in enumerate(evaluation.metrics, start=1)
        ),
        numeric_from_index=2,
        caption=voice.say("metrics.overview"),
        key="overview",
    )
    return Section("metrics", *voice.titled("metrics"), (overview, *entries))


def _overview_row(index: int, row: MetricRow, evaluation: Evaluation, voice: Voice) -> tuple[Cell, ...]:
    name = voice.say(f"metrics.{row.key}.name")
    anchor = f"metric-{row.key}"
    if row.key == "complexity":
        counts = (_complexity_counts(evaluation.complexity.get(each, ()), voice) for each in BASELINES)
        return (Cell(str(index)), Cell(name, anchor=anchor), *counts, Cell(""))
    statistic = next((each for each in _HEADLINES if each in row.values), None) or next(
        iter(row.values), None
    )
    if statistic is None:
        return (
            Cell(str(index)),
            Cell(name, anchor=anchor),
            *(Cell("–", tone="muted") for _ in BASELINES),
            Cell(""),
        )
    values = row.values[statistic]
    label = Cell(name, _statistic(statistic, voice), voice.basis(values), anchor=anchor)
    change = voice.change(values, lower_is_better=row.key in LOWER_IS_BETTER)
    return (Cell(str(index)), label, *voice.across(values, with_note=False), change)


def _statistic(statistic: str, voice: Voice) -> str:
    return voice.texts.or_humanised("statistics", statistic)


def _entry(index: int, row: MetricRow, evaluation: Evaluation, voice: Voice) -> Entry:
    texts = f"metrics.{row.key}"
    bases = {voice.basis(values) for values in row.values.values()} or {"exact"}
    return Entry(
        key=row.key,
        row_index=index,
        title=voice.say(f"{texts}.name"),
        definition=voice.say(f"{texts}.definition"),
        values=_complexity(evaluation, voice) if row.key == "complexity" else _values(row, voice),
        gain=_gain(row, voice),
        no_gain=voice.say("metrics.no_gain") if _is_unchanged(row, voice) else "",
        holds_for=_holds_for(row.holds_for, voice),
        method=voice.say(f"{texts}.method"),
        tag="analytic" if "analytic" in bases else "exact",
    )


def _values(row: MetricRow, voice: Voice) -> Table:
    lower = row.key in LOWER_IS_BETTER
    rows = tuple(
        (
            Cell(_statistic(statistic, voice), tag=voice.basis(values)),
            *voice.across(values),
            voice.change(values, lower_is_better=lower),
        )
        for statistic, values in row.values.items()
    )
    columns = (voice.say("metrics.statistic"), *voice.baselines(), voice.say("metrics.change"))
    return Table(columns, rows, key=f"values-{row.key}")


def _is_unchanged(row: MetricRow, voice: Voice) -> bool:
    changes = {voice.change(values).text for values in row.values.values()}
    return not row.gain and changes == {voice.say("metrics.unchanged")}


def _gain(row: MetricRow, voice: Voice) -> Table | None:
    if not row.gain:
        return None
    rows = []
    for gain in row.gain:
        basis = show(gain.value, voice.texts).basis
        rows.append((Cell(voice.texts.or_humanised("gain", gain.key), tag=basis), voice.estimate(gain.value)))
    return Table((voice.say("metrics.gain"), voice.say("metrics.values")), tuple(rows), key=f"gain-{row.key}")


def _holds_for(kinds: tuple[TrafficKindKey, ...], voice: Voice) -> str:
    if not kinds:
        return voice.say("metrics.holds_for_none")
    if set(kinds) == set(get_args(TrafficKindKey)):
        return voice.say("metrics.holds_for_all")
    return voice.listed(tuple(voice.say(f"traffic.{kind}.name") for kind in kinds))


def _complexity(evaluation: Evaluation, voice: Voice) -> Table:
    rows = tuple(
        (
            Cell(voice.say(f"complexity.{aspect}")),
            *(
                Cell("", items=_items(evaluation.complexity.get(baseline, ()), aspect, voice))
                for baseline in BASELINES
            ),
        )
        for aspect in _ASPECTS
    )
    columns = (voice.say("complexity.aspect"), *voice.baselines())
    return Table(columns, rows, numeric_from_index=len(columns), key="values-complexity")


def _items(items: tuple[ComplexityItem, ...], aspect: str, voice: Voice) -> tuple[str, ...]:
    names = []
    for item in items:
        if item.kind != aspect:
            continue
        name = voice.say(f"complexity.items.{item.kind}.{item.key}")
        detail = voice.word(item.detail)
        names.append(voice.say("document.parenthesis", text=name, inner=detail) if item.detail else name)
    return tuple(names) or (voice.say("document.none"),)


def _complexity_counts(items: tuple[ComplexityItem, ...], voice: Voice) -> Cell:
    components, ports, watches, failures = (sum(item.kind == aspect for item in items) for aspect in _ASPECTS)
    rest = voice.say("complexity.counts_rest", ports=ports, watches=watches, failures=failures)
    return Cell(voice.say("complexity.counts", components=components), rest)


def traffic_section(evaluation: Evaluation, voice: Voice) -> Section:
    """What the trace holds, by kind."""
    traffic = evaluation.traffic
    kinds = Table(
        (*voice.heads("traffic", "kind", "meaning", "requests", "share", "input_tokens"), *_hit_heads(voice)),
        tuple(_kind_row(kind, evaluation, voice) for kind in traffic.kinds),
        numeric_from_index=2,
        note=voice.say("traffic.overlap"),
        key="kinds",
    )
    lead = voice.say(
        "traffic.lead",
        requests=voice.of(traffic.num_requests, "requests"),
        input_tokens=voice.of(traffic.input_tokens, "tokens"),
        output_tokens=voice.of(traffic.output_tokens, "tokens"),
        span=voice.seconds(traffic.span_s),
    )
    blocks: tuple[Block, ...] = (
        kinds,
        kinds_figure(evaluation, voice),
        _lengths(evaluation, voice),
        _facts(evaluation, voice),
    )
    return Section("traffic", voice.say("traffic.heading"), lead, blocks)


def _hit_heads(voice: Voice) -> tuple[str, ...]:
    return tuple(f"{voice.say('traffic.hit')}: {name}" for name in voice.baselines()[1:])


def _kind_row(kind: TrafficKind, evaluation: Evaluation, voice: Voice) -> tuple[Cell, ...]:
    hits = (kind.hit_tokens.get(baseline, 0) for baseline in BASELINES[1:])
    return (
        Cell(voice.say(f"traffic.{kind.kind}.name"), tag="exact"),
        Cell(voice.say(f"traffic.{kind.kind}.definition")),
        voice.counted(kind.num_requests),
        voice.shared(kind.num_requests / evaluation.traffic.num_requests),
        voice.counted(kind.input_tokens),
        *(
            voice.shared(hit / kind.input_tokens) if kind.input_tokens else Cell("–", tone="muted")
            for hit in hits
        ),
    )


def _lengths(evaluation: Evaluation, voice: Voice) -> Table:
    traffic = evaluation.traffic
    rows = tuple(
        (
            Cell(voice.say(f"traffic.{name}")),
            *(
                voice.counted(each)
                for each in (round(lengths.mean), lengths.p50, lengths.p90, lengths.p99, lengths.longest)
            ),
        )
        for name, lengths in (("input", traffic.input_lengths), ("output", traffic.output_lengths))
    )
    heads = (*voice.heads("statistics", "mean", "p50", "p90", "p99"), voice.say("traffic.longest"))
    return Table((voice.say("traffic.length"), *heads), rows, caption=voice.say("traffic.lengths"))


def _facts(evaluation: Evaluation, voice: Voice) -> Group:
    traffic = evaluation.traffic
    rate = traffic.requests_per_s
    facts = [
        voice.say("traffic.fact_at_once")
        if rate is None
        else voice.say("traffic.fact_rate", rate=voice.of(rate, "requests_per_s")),
        voice.say(
            "traffic.fact_blocks",
            refs=voice.of(traffic.block_refs, "blocks"),
            unique=voice.of(traffic.unique_blocks, "blocks"),
            block_tokens=voice.of(traffic.block_tokens, "tokens"),
        ),
    ]
    if traffic.clock_step_ms > 1000:
        facts.append(voice.say("traffic.fact_clock", step=voice.of(traffic.clock_step_ms, "ms")))
    return Group(voice.say("traffic.facts"), "", (Bullets(tuple(facts)),))


def curves_section(evaluation: Evaluation, voice: Voice) -> Section:
    """Throughput against load, HBM against hit rate, and the longest context."""
    drawers = (hits_figure, throughput_figure, goodput_figure, ttft_figure, occupancy_figure)
    figures = tuple(drawer(evaluation, voice) for drawer in drawers)
    return Section("curves", *voice.titled("curves"), (*figures, _context(evaluation, voice)))


def _context(evaluation: Evaluation, voice: Voice) -> Group:
    rows = tuple(
        (
            Cell(voice.baseline(limit.baseline)),
            Cell(voice.of(limit.longest_tokens, "tokens"), value=limit.longest_tokens),
            Cell(voice.say(f"context.{limit.limited_by}")),
        )
        for limit in evaluation.context_limits
    )
    columns = (voice.say("reading.baseline"), *voice.heads("context", "longest", "limited_by"))
    table = Table(columns, rows, text_columns=frozenset({2}), key="context")
    return Group(*voice.titled("context"), (table,))


def concurrency_section(evaluation: Evaluation, voice: Voice) -> Section:
    """The five kinds of concurrency."""
    rows = tuple(
        (
            Cell(voice.say(f"concurrency.{row.key}.name"), tag=voice.basis(row.values)),
            *voice.across(row.values),
            Cell(voice.say(f"concurrency.{row.key}.change")),
            Cell(voice.say(f"concurrency.{row.key}.driver")),
        )
        for row in evaluation.concurrency
    )
    columns = (
        voice.say("concurrency.kind"),
        *voice.baselines(),
        *voice.heads("concurrency", "change", "driver"),
    )
    table = Table(columns, rows, text_columns=frozenset({4, 5}), key="concurrency")
    return Section("concurrency", *voice.titled("concurrency"), (table,))


def reading_section(evaluation: Evaluation, voice: Voice) -> Section:
    """The three baselines, the tags and the intervals."""
    nodes = voice.of(evaluation.reference_nodes, "nodes")
    source = voice.say(f"reading.reference_{evaluation.reference_nodes_source}")
    baselines = Table(
        voice.heads("reading", "baseline", "meaning"),
        tuple(
            (Cell(voice.baseline(each), tone="strong"), Cell(_definition(each, voice))) for each in BASELINES
        ),
        numeric_from_index=2,
        key="baselines",
    )
    tags = tuple(
        (Cell("", tag=name), Cell(voice.say(f"{section}.{name}_hint")))
        for name, section in TAG_SECTIONS.items()
    )
    notes = ("basis", "intervals", "units", "unknown")
    blocks: tuple[Block, ...] = (
        baselines,
        Prose(voice.say("reading.reference", nodes=nodes, source=source)),
        Table(voice.heads("reading", "tag", "meaning"), tags, numeric_from_index=2, key="tags"),
        Bullets(voice.heads("reading", *notes)),
    )
    return Section("reading", *voice.titled("reading"), blocks)


def _definition(baseline: Baseline, voice: Voice) -> str:
    return voice.say(f"baselines.{baseline}.definition")
