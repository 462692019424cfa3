"""Curves, each with its table: hit rate against capacity, goodput and TTFT against load, HBM against hits."""

from collections.abc import Iterable
from math import isfinite

from warmset.evaluation import BASELINES, Baseline, Evaluation, LoadPoint
from warmset.report.axes import linear_axis, log_axis, time_axis
from warmset.report.charts import Band, Line, LineChart, Point, Rule
from warmset.report.document import Cell, Figure, Table
from warmset.report.voice import Voice

SYMBOLS: dict[Baseline, str] = {"none": "triangle", "engine": "rect", "tiered": "circle"}


FLAT_SHARE = 0.02
"""The drawing starts this far below the rise; the table starts at one block."""


def hit_curve_figure(evaluation: Evaluation, voice: Voice) -> Figure:
    """Token hit rate against capacity, tiers and working sets marked."""
    reuse = evaluation.reuse
    points = _curve_points(evaluation, voice)
    marks = _working_set_marks(evaluation, points, voice)
    ends = [float(end.capacity_bytes) for end in reuse.boundaries]
    reached = [point.place[0] for point in (*points, *marks)]
    name = voice.say("hit_curve.hit_ratio")
    chart = LineChart(
        key="hit-curve",
        label=voice.say("hit_curve.title"),
        x_axis=log_axis(voice.say("hit_curve.capacity"), [*reached, *ends], voice.size),
        y_axis=linear_axis(name, [reuse.unlimited_token_hit_ratio * 1.12], voice.ticks("ratio"), 1.0),
        lines=(
            Line(name, "tiered", points),
            Line(voice.say("hit_curve.working_sets"), "ink", marks, symbol="diamond", marks_only=True),
        ),
        rules=_tier_rules(evaluation, voice),
        bands=_bands(evaluation, points, voice),
    )
    return Figure(
        "hit-curve", *voice.titled("hit_curve", "title", "reading"), (chart,), _curve_table(evaluation, voice)
    )


def _curve_points(evaluation: Evaluation, voice: Voice) -> tuple[Point, ...]:
    """The curve from its flat start on, drawn level to the last tier's end."""
    reuse = evaluation.reuse
    points = [
        _curve_point(point.capacity_bytes, point.capacity_blocks, point.token_hit_ratio, voice)
        for point in reuse.points
        if point.capacity_blocks >= FLAT_SHARE * reuse.rise_start_blocks and point.capacity_bytes > 0
    ]
    last = max(reuse.boundaries, key=lambda end: end.capacity_bytes, default=None)
    if points and last is not None and last.capacity_bytes > points[-1].place[0]:
        points.append(_curve_point(last.capacity_bytes, last.capacity_blocks, last.token_hit_ratio, voice))
    return tuple(points)


def _curve_point(size_bytes: int, num_blocks: int, hit_ratio: float, voice: Voice) -> Point:
    at = f"{voice.size(size_bytes)} · {voice.of(num_blocks, 'blocks')}"
    return Point((size_bytes, hit_ratio), at, voice.ratio(hit_ratio))


def _curve_table(evaluation: Evaluation, voice: Voice) -> Table:
    rows = tuple(
        (
            Cell(voice.size(point.capacity_bytes)),
            voice.counted(point.capacity_blocks),
            voice.shared(point.token_hit_ratio),
            voice.counted(point.hit_tokens),
        )
        for point in evaluation.reuse.points
    )
    return Table(voice.heads("hit_curve", "capacity", "capacity_blocks", "hit_ratio", "hit_tokens"), rows)


def _working_set_marks(evaluation: Evaluation, curve: tuple[Point, ...], voice: Voice) -> tuple[Point, ...]:
    return tuple(
        Point(
            (each.mean_bytes, _height(curve, each.mean_bytes)),
            voice.window(each.window_s),
            f"{voice.window(each.window_s)} · {voice.size(each.mean_bytes)}",
        )
        for each in evaluation.reuse.working_sets
        if each.mean_bytes > 0
    )


def _tier_rules(evaluation: Evaluation, voice: Voice) -> tuple[Rule, ...]:
    reuse = evaluation.reuse
    ceiling = voice.say("hit_curve.ceiling", ratio=voice.ratio(reuse.unlimited_token_hit_ratio))
    ends = sorted((end for end in reuse.boundaries if end.capacity_bytes), key=lambda end: end.capacity_bytes)
    rules = (
        Rule("x", end.capacity_bytes, voice.say(f"tiers.{end.tier}"), end.tier, lift=index % 2 == 1)
        for index, end in enumerate(ends)
    )
    return (*rules, Rule("y", reuse.unlimited_token_hit_ratio, ceiling, "ink-2", "dashed"))


def _bands(evaluation: Evaluation, points: tuple[Point, ...], voice: Voice) -> tuple[Band, ...]:
    reuse = evaluation.reuse
    if not points or not reuse.points[-1].capacity_blocks:
        return ()
    block_bytes = reuse.points[-1].capacity_bytes / reuse.points[-1].capacity_blocks
    first, last = (
        points[0].place[0],
        max(points[-1].place[0], *(end.capacity_bytes for end in reuse.boundaries), 0),
    )
    rise, plateau = (blocks * block_bytes for blocks in (reuse.rise_start_blocks, reuse.plateau_start_blocks))
    flat_text, rise_text, plateau_text = voice.heads("hit_curve", "flat", "rise", "plateau")
    bands = (
        Band(first, rise, flat_text, "band-1"),
        Band(rise, plateau, rise_text, "band-2"),
        Band(plateau, last, plateau_text, "band-1"),
    )
    return tuple(band for band in bands if band.low < band.high)


def _height(curve: Iterable[Point], x: float) -> float:
    """The curve at `x`, straight between its points."""
    below_x, below_y = 0.0, 0.0
    for point in curve:
        here_x, here_y = point.place[0], point.place[1] or 0.0
        if here_x >= x:
            share = (x - below_x) / (here_x - below_x) if here_x > below_x else 1.0
            return below_y + share * (here_y - below_y)
        below_x, below_y = here_x, here_y
    return below_y


def goodput_figure(evaluation: Evaluation, voice: Voice) -> Figure:
    """Goodput against offered load."""
    per_s = voice.ticks("requests_per_s")
    loads = evaluation.load_curve
    lines = _load_lines(
        {each: [load.goodput_requests_per_s.get(each) for load in loads] for each in BASELINES},
        "requests_per_s",
        evaluation,
        voice,
    )
    offered = [load.offered_requests_per_s for load in loads]
    most = max(offered, default=1.0)
    y_axis = linear_axis(voice.say("curves.goodput"), [1.15 * value for value in _known_values(lines)], per_s)
    end = min(most, y_axis.ticks[-1].value)
    diagonal = tuple(Point((x, x), per_s(x), per_s(x)) for x in (0.0, end))
    chart = LineChart(
        "goodput",
        voice.say("curves.goodput_title"),
        linear_axis(voice.say("curves.offered"), offered, per_s, most),
        y_axis,
        (*lines, Line(voice.say("curves.offered"), "ink-3", diagonal, "dotted", "none")),
        _as_recorded(evaluation, voice),
    )
    reading = voice.say("curves.goodput_reading", nodes=voice.of(evaluation.reference_nodes, "nodes"))
    table = _load_table("goodput", lines, evaluation, voice)
    return Figure("goodput", voice.say("curves.goodput_title"), reading, (chart,), table)


def throughput_figure(evaluation: Evaluation, voice: Voice) -> Figure:
    """Token throughput against offered load: where it levels off, the engines do all they can."""
    loads = evaluation.load_curve
    lines = _load_lines(
        {each: [load.throughput_tokens_per_s.get(each) for load in loads] for each in BASELINES},
        "tokens_per_s",
        evaluation,
        voice,
    )
    offered = [load.offered_requests_per_s for load in loads]
    per_s = voice.ticks("requests_per_s")
    chart = LineChart(
        "throughput",
        voice.say("curves.throughput_title"),
        linear_axis(voice.say("curves.offered"), offered, per_s, max(offered, default=1.0)),
        linear_axis(voice.say("curves.throughput"), _known_values(lines), voice.ticks("tokens_per_s")),
        lines,
        _as_recorded(evaluation, voice),
    )
    table = _load_table("throughput", lines, evaluation, voice)
    return Figure(
        "throughput", *voice.titled("curves", "throughput_title", "throughput_reading"), (chart,), table
    )


def ttft_figure(evaluation: Evaluation, voice: Voice) -> Figure:
    """TTFT P95 against offered load."""
    loads, slo_s = evaluation.load_curve, evaluation.slo.ttft_s
    lines = _load_lines(
        {each: [load.ttft_p95_s.get(each) for load in loads] for each in BASELINES}, "s", evaluation, voice
    )
    offered = [load.offered_requests_per_s for load in loads]
    limit = Rule("y", slo_s, voice.say("curves.slo", value=voice.seconds(slo_s)), "ink-2", "dashed")
    # The curve is that of P95; a limit on another quantile is not comparable with it.
    slo = (limit,) if evaluation.slo.percentile == 95 else ()
    chart = LineChart(
        "ttft-load",
        voice.say("curves.ttft_title"),
        linear_axis(
            voice.say("curves.offered"), offered, voice.ticks("requests_per_s"), max(offered, default=1.0)
        ),
        time_axis(voice.say("curves.ttft"), [*_known_values(lines), slo_s], voice.ticks("s")),
        lines,
        (*slo, *_as_recorded(evaluation, voice)),
    )
    reading_key = "ttft_reading" if slo else "ttft_reading_plain"
    title, reading = voice.titled("curves", "ttft_title", reading_key)
    if len(_known_values(lines)) < len(loads) * len(lines):
        reading += voice.say("document.sentence_separator") + voice.say("curves.ttft_missing")
    return Figure("ttft", title, reading, (chart,), _load_table("ttft", lines, evaluation, voice))


def _load_lines(
    values: dict[Baseline, list[float | None]], unit: str, evaluation: Evaluation, voice: Voice
) -> tuple[Line, ...]:
    return tuple(
        Line(
            voice.baseline(baseline),
            baseline,
            tuple(
                _load_point(load, value, unit, voice)
                for load, value in zip(evaluation.load_curve, values[baseline], strict=True)
            ),
            symbol=SYMBOLS[baseline],
        )
        for baseline in BASELINES
    )


def _load_point(load: LoadPoint, value: float | None, unit: str, voice: Voice) -> Point:
    cell = _known_cell(value, unit, voice)
    at = voice.of(load.offered_requests_per_s, "requests_per_s")
    return Point((load.offered_requests_per_s, cell.value), at, cell.text)


def _known_cell(value: float | None, unit: str, voice: Voice) -> Cell:
    """A number of the load curve; it is missing where the queue grows without end."""
    if value is None or not isfinite(value):
        return voice.missing(voice.say("curves.saturated"))
    return Cell(voice.of(value, unit), value=value)


def _known_values(lines: tuple[Line, ...]) -> list[float]:
    heights = (height for line in lines for _, height in (point.place for point in line.points))
    return [height for height in heights if height is not None]


def _as_recorded(evaluation: Evaluation, voice: Voice) -> tuple[Rule, ...]:
    return tuple(
        Rule("x", load.offered_requests_per_s, voice.say("curves.as_recorded"), "ink-2", "dotted")
        for load in evaluation.load_curve
        if load.load_factor == 1
    )


def _load_table(
    quantity: str,
    lines: tuple[Line, ...],
    evaluation: Evaluation,
    voice: Voice,
) -> Table:
    names = (
        f"{voice.say(f'curves.{quantity}')}{voice.say('document.label_separator')}{line.name}"
        for line in lines
    )
    rows = tuple(
        (
            Cell(voice.of(load.load_factor, "factor")),
            Cell(voice.of(load.offered_requests_per_s, "requests_per_s")),
            *(Cell(line.points[index].y_text, value=line.points[index].place[1]) for line in lines),
        )
        for index, load in enumerate(evaluation.load_curve)
    )
    return Table((*voice.heads("curves", "load_factor", "offered"), *names), rows)


def occupancy_figure(evaluation: Evaluation, voice: Voice) -> Figure:
    """HBM that KV fills against token hit rate."""
    curve = evaluation.occupancy_curve
    ratios = [point.token_hit_ratio for point in curve]
    sizes: dict[Baseline, list[int | None]] = {
        "engine": [point.engine_hbm_bytes for point in curve],
        "tiered": [point.tiered_hbm_bytes for point in curve],
    }
    lines = tuple(_occupancy_line(each, ratios, of_baseline, voice) for each, of_baseline in sizes.items())
    title, reading = voice.titled("curves", "occupancy_title", "occupancy_reading")
    chart = LineChart(
        "occupancy",
        title,
        linear_axis(voice.say("curves.hit_ratio"), ratios, voice.ticks("ratio"), 1.0),
        log_axis(voice.say("curves.hbm_bytes"), _known_values(lines), voice.size),
        lines,
    )
    rows = tuple(
        (voice.shared(ratio), *(_occupied_cell(sizes[each][index], voice) for each in sizes))
        for index, ratio in enumerate(ratios)
    )
    table = Table((voice.say("curves.hit_ratio"), *(line.name for line in lines)), rows)
    return Figure("occupancy", title, reading, (chart,), table)


def _occupancy_line(baseline: Baseline, ratios: list[float], sizes: list[int | None], voice: Voice) -> Line:
    cells = [_occupied_cell(size, voice) for size in sizes]
    points = (
        Point((ratio, cell.value), voice.ratio(ratio), cell.text)
        for ratio, cell in zip(ratios, cells, strict=True)
    )
    return Line(voice.baseline(baseline), baseline, tuple(points), symbol=SYMBOLS[baseline])


def _occupied_cell(size_bytes: int | None, voice: Voice) -> Cell:
    """HBM for a hit rate; missing above what the tiers of the plan reach."""
    if size_bytes is None:
        return voice.missing(voice.say("curves.out_of_reach"))
    return voice.sized(size_bytes)
