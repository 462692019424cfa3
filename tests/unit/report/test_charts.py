import json
import math

import pytest

from tests.support import evaluations
from warmset.report.axes import linear_axis, log_axis, time_axis
from warmset.report.charts import Bar, BarChart, RangeChart, embedded, option
from warmset.report.document import Figure, Group
from warmset.report.sections import build_document

PLAIN = evaluations.evaluation()


def figures(evaluation, language="en"):
    def inside(blocks):
        for block in blocks:
            if isinstance(block, Figure):
                yield block
            elif isinstance(block, Group):
                yield from inside(block.blocks)

    return {
        figure.key: figure
        for section in build_document(evaluation, language).sections
        for figure in inside(section.blocks)
    }


def test_every_figure_has_charts_and_a_table():
    found = figures(PLAIN)
    assert set(found) == {"hits", "throughput", "goodput", "ttft", "occupancy", "kinds", "hit-curve", "costs"}
    assert all(figure.charts and figure.table.rows for figure in found.values())


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("case", ["evaluation", "saturated", "with_unknowns", "not_worth_it", "hostile"])
def test_options_are_plain_json(case, language):
    for figure in figures(getattr(evaluations, case)(), language).values():
        for chart in figure.charts:
            text = embedded(chart)
            assert "<" not in text
            assert json.loads(text)["series"]


def test_a_name_cannot_close_the_script():
    bar = Bar("</script><script>alert(1)</script>", "hbm", (1.0,), ("\u2028",))
    text = embedded(BarChart("k", "l", ("c",), linear_axis("", [1.0], str), (bar,)))
    assert "</script" not in text
    assert json.loads(text)["series"][0]["name"] == bar.name


def test_missing_points_are_gaps_and_say_so():
    figure = figures(evaluations.saturated())["ttft"]
    none = figure.charts[0].lines[0]
    assert {point.place[1] for point in none.points} == {None}
    assert {point.y_text for point in none.points} == {"n/a"}
    assert "without end" in figure.reading


def test_hit_curve_marks_tiers_bands_and_working_sets():
    (chart,) = figures(PLAIN)["hit-curve"].charts
    assert [rule.text for rule in chart.rules] == ["HBM", "DRAM", "NVMe", "No limit: 37.4\u00a0%"]
    assert [band.text for band in chart.bands] == ["flat start", "rise", "plateau"]
    assert [point.x_text for point in chart.lines[1].points] == ["1 min", "10 min", "60 min"]
    assert all(left.high == right.low for left, right in zip(chart.bands, chart.bands[1:], strict=False))


def test_the_table_holds_the_numbers_of_the_curve():
    table = figures(PLAIN)["hit-curve"].table
    assert [row[2].value for row in table.rows] == [point.token_hit_ratio for point in PLAIN.reuse.points]


def test_tokens_by_tier_and_recomputed_add_up():
    (chart,) = figures(PLAIN)["hits"].charts
    for index in range(3):
        assert math.isclose(sum(bar.values[index] for bar in chart.bars), 1.0)


def test_ranges_leave_out_what_is_not_known():
    (chart,) = figures(PLAIN)["kinds"].charts
    assert isinstance(chart, RangeChart)
    gap = option(chart)["series"][0]["data"][2]
    assert gap == "-"


@pytest.mark.parametrize(
    ("values", "last"), [([7.2], 8.0), ([0.0], 1.0), ([], 1.0), ([math.inf, 3.0], 3.0), ([1e12], 1e12)]
)
def test_linear_axis_holds_its_values(values, last):
    axis = linear_axis("", values, str)
    assert (axis.ticks[0].value, axis.ticks[-1].value) == (0.0, last)


@pytest.mark.parametrize("make", [log_axis, time_axis])
@pytest.mark.parametrize("values", [[], [0.0], [5.0], [1e-9, 1e13], [2.0, 3.0]])
def test_log_axes_have_ticks_for_anything(make, values):
    axis = make("", values, str)
    assert axis.ticks
    assert axis.low is not None
    assert axis.high is not None
    assert 0 < axis.low < axis.high
