"""Small frozen chart specs, and the ECharts option each becomes.

Colours are names of CSS variables (`@engine`) that the page resolves, so one option serves light, dark and
paper. Every number that a reader can see was formatted in Python: axes carry their ticks as text, points
carry their tooltip.
"""

import json
from dataclasses import dataclass
from typing import Any, Literal

Option = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Tick:
    """A place on an axis and what is written there."""

    value: float
    text: str


@dataclass(frozen=True, slots=True)
class Axis:
    """A numeric axis from its first tick to its last, or beyond where `low` and `high` say so."""

    title: str
    ticks: tuple[Tick, ...]
    scale: Literal["value", "log"] = "value"
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a line: where it lies, and its two numbers as text; `None` where one is not known."""

    place: tuple[float, float | None]
    x_text: str
    y_text: str


@dataclass(frozen=True, slots=True)
class Line:
    """A named line."""

    name: str
    color: str
    points: tuple[Point, ...]
    dash: Literal["solid", "dashed", "dotted"] = "solid"
    symbol: str = "circle"
    marks_only: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """A straight line across the chart, at a value of one axis."""

    axis: Literal["x", "y"]
    value: float
    text: str
    color: str = "ink-2"
    dash: Literal["solid", "dashed", "dotted"] = "solid"
    lift: bool = False
    """Whether its label steps aside for a neighbour's."""


@dataclass(frozen=True, slots=True)
class Band:
    """A shaded stretch of the x axis."""

    low: float
    high: float
    text: str
    color: str


@dataclass(frozen=True, slots=True)
class LineChart:
    """Lines over a numeric axis."""

    key: str
    label: str
    x_axis: Axis
    y_axis: Axis
    lines: tuple[Line, ...]
    rules: tuple[Rule, ...] = ()
    bands: tuple[Band, ...] = ()


@dataclass(frozen=True, slots=True)
class Bar:
    """One part of every bar."""

    name: str
    color: str
    values: tuple[float, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BarChart:
    """Lying bars, stacked."""

    key: str
    label: str
    categories: tuple[str, ...]
    axis: Axis
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """From one number to another in each category; `None` where one is not known."""

    name: str
    color: str
    ends: tuple[tuple[float | None, float | None], ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RangeChart:
    """Categories down, ranges across, one lane for each name."""

    key: str
    label: str
    categories: tuple[str, ...]
    axis: Axis
    ranges: tuple[Range, ...]


Chart = LineChart | BarChart | RangeChart


def option(chart: Chart) -> Option:
    """The ECharts option of a chart."""
    match chart:
        case LineChart():
            parts = _line_option(chart)
        case BarChart():
            parts = _bar_option(chart)
        case RangeChart():
            parts = _range_option(chart)
    return {"animation": False, "textStyle": {"fontFamily": "@sans"}, **parts}


def embedded(chart: Chart) -> str:
    """The option as JSON that is safe inside a script element, whatever the names in it."""
    text = json.dumps(option(chart), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _line_option(chart: LineChart) -> Option:
    series = [_line_series(line) for line in chart.lines]
    if series:
        series[0] |= _annotations(chart)
    named = [line.name for line in chart.lines if line.name]
    return {
        "grid": {"left": 8, "right": 28, "top": 76, "bottom": 30}
        | {"outerBoundsMode": "same", "outerBoundsContain": "axisLabel"},
        "legend": _legend(named),
        "tooltip": {"trigger": "axis", "formatter": "#points"} | _TOOLTIP,
        "xAxis": _axis(chart.x_axis)
        | {"nameLocation": "middle", "nameGap": 30, "splitLine": {"show": False}},
        "yAxis": _axis(chart.y_axis)
        | {"axisLine": {"show": False}, "nameGap": 18}
        | {"nameTextStyle": {"color": "@ink-2", "fontSize": 12, "align": "left"}},
        "series": series,
    }


def _line_series(line: Line) -> Option:
    data = [{"value": point.place, "at": point.x_text, "text": point.y_text} for point in line.points]
    color = f"@{line.color}"
    base: Option = {"name": line.name, "data": data, "symbol": line.symbol, "itemStyle": {"color": color}}
    if line.marks_only:
        label = {"show": True, "position": "right", "distance": 7, "formatter": "#at", "color": "@ink"}
        return base | {
            "type": "scatter",
            "symbolSize": 9,
            "label": label | {"fontSize": 11, "offset": [0, 11]},
            "z": 5,
        }
    many = len(line.points) > 40
    return base | {
        "type": "line",
        "showSymbol": not many,
        "symbolSize": 6,
        "lineStyle": {"color": color, "width": 2.25, "type": line.dash},
        "connectNulls": False,
        "emphasis": {"disabled": True},
    }


def _annotations(chart: LineChart) -> Option:
    rules = [_rule(rule) for rule in chart.rules]
    areas = [
        [
            {"xAxis": band.low, "name": band.text, "itemStyle": {"color": f"@{band.color}"}},
            {"xAxis": band.high},
        ]
        for band in chart.bands
    ]
    label = {"position": "insideTop", "distance": 6, "color": "@ink-2", "fontSize": 11, "formatter": "{b}"}
    quiet = {"silent": True, "animation": False}
    return {
        "markLine": quiet | {"symbol": "none", "data": rules},
        "markArea": quiet | {"data": areas, "label": label},
    }


def _rule(rule: Rule) -> Option:
    across = rule.axis == "y"
    label = {
        "formatter": "{b}",
        "color": f"@{rule.color}",
        "fontSize": 11,
        "position": "insideStartTop" if across else "end",
        "distance": 4 if across else (20 if rule.lift else 5),
    }
    line = {"color": f"@{rule.color}", "width": 1.25, "type": rule.dash}
    return {f"{rule.axis}Axis": rule.value, "name": rule.text, "label": label, "lineStyle": line}


def _bar_option(chart: BarChart) -> Option:
    series = [
        {
            "type": "bar",
            "stack": "all",
            "name": bar.name,
            "barWidth": "58%",
            "itemStyle": {"color": f"@{bar.color}", "borderColor": "@page", "borderWidth": 1},
            "emphasis": {"disabled": True},
            "data": [
                {"value": value, "text": text} for value, text in zip(bar.values, bar.texts, strict=True)
            ],
        }
        for bar in chart.bars
    ]
    return _across(chart.categories, chart.axis, [bar.name for bar in chart.bars]) | {
        "tooltip": {"trigger": "axis", "axisPointer": {"type": "shadow"}, "formatter": "#points"} | _TOOLTIP,
        "series": series,
    }


def _range_option(chart: RangeChart) -> Option:
    lanes = [0.24 * (index - (len(chart.ranges) - 1) / 2) for index in range(len(chart.ranges))]
    places = list(range(len(chart.categories)))
    y_axis = {
        "type": "value",
        "min": -0.5,
        "max": len(places) - 0.5,
        "inverse": True,
        "axisTick": {"show": False, "customValues": places},
        "axisLine": {"show": False},
        "splitLine": {"show": False},
        "axisLabel": {"customValues": places, "color": "@ink", "fontSize": 12, "formatter": "#ticks"}
        | {"ticks": [[place, name] for place, name in zip(places, chart.categories, strict=True)]},
    }
    return _across(chart.categories, chart.axis, [each.name for each in chart.ranges]) | {
        "yAxis": y_axis,
        "tooltip": {"trigger": "item", "formatter": "#point"} | _TOOLTIP,
        "series": [_range_series(each, lane, chart) for each, lane in zip(chart.ranges, lanes, strict=True)],
    }


def _range_series(each: Range, lane: float, chart: RangeChart) -> Option:
    color = f"@{each.color}"
    data: list[Option | str] = []
    for index, (low, high) in enumerate(each.ends):
        facts = {"at": chart.categories[index], "text": each.texts[index]}
        hollow = {"itemStyle": {"color": "@page", "borderColor": color, "borderWidth": 2}}
        if low is not None:
            data.append({"value": [low, index + lane]} | facts | hollow)
        if high is not None:
            data.append({"value": [high, index + lane]} | facts)
        data.append("-")
    return {
        "type": "line",
        "name": each.name,
        "data": data,
        "symbol": "circle",
        "symbolSize": 10,
        "itemStyle": {"color": color, "borderColor": color, "borderWidth": 2},
        "lineStyle": {"color": color, "width": 2},
        "connectNulls": False,
        "emphasis": {"disabled": True},
    }


_TOOLTIP: Option = {
    "confine": True,
    "backgroundColor": "@raised",
    "borderColor": "@rule",
    "padding": [8, 12],
} | {"textStyle": {"color": "@ink", "fontSize": 12}}


def _across(categories: tuple[str, ...], axis: Axis, names: list[str]) -> Option:
    return {
        "grid": {"left": 8, "right": 28, "top": 44, "bottom": 30}
        | {"outerBoundsMode": "same", "outerBoundsContain": "axisLabel"},
        "legend": _legend(names),
        "xAxis": _axis(axis)
        | {"nameLocation": "middle", "nameGap": 30, "axisLine": {"show": False, "onZero": False}},
        "yAxis": {
            "type": "category",
            "data": list(categories),
            "inverse": True,
            "axisTick": {"show": False},
            "axisLine": {"lineStyle": {"color": "@rule"}},
            "axisLabel": {"color": "@ink", "fontSize": 12},
        },
    }


def _legend(names: list[str]) -> Option:
    return {
        "show": len(names) > 1,
        "data": list(dict.fromkeys(names)),
        "top": 0,
        "left": 0,
        "itemWidth": 18,
        "itemHeight": 10,
        "textStyle": {"color": "@ink", "fontSize": 12},
    }


def _axis(axis: Axis) -> Option:
    places = [tick.value for tick in axis.ticks]
    return {
        "type": axis.scale,
        "name": axis.title,
        "nameTextStyle": {"color": "@ink-2", "fontSize": 12},
        "nameLocation": "end",
        "min": axis.low if axis.low is not None else places[0],
        "max": axis.high if axis.high is not None else places[-1],
        "axisLabel": {"customValues": places, "color": "@ink-2", "fontSize": 11, "hideOverlap": True}
        | {"formatter": "#ticks", "ticks": [[tick.value, tick.text] for tick in axis.ticks]},
        "axisTick": {"customValues": places, "show": False},
        "axisLine": {"lineStyle": {"color": "@rule"}},
        "splitLine": {"lineStyle": {"color": "@hair"}},
        "minorTick": {"show": False},
        "minorSplitLine": {"show": False},
    }
