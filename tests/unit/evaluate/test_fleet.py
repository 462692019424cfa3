"""Intervals out of corners, open where a corner has no value."""

import pytest

from warmset.evaluate.fleet import interval, under_each
from warmset.facts import exact


def estimate(unfavourable, expected, favourable):
    values = {"unfavourable": unfavourable, "expected": expected, "favourable": favourable}
    found = interval(values, "test", "note", "missing")
    return found.low, found.mid, found.high, found.note


@pytest.mark.parametrize(
    ("corners", "found"),
    [
        ((9, 6, 5), (5, 6, 9, "note")),
        ((5, 6, 9), (5, 6, 9, "note")),
        ((5, 6, 4), (4, 6, 6, "note")),
        ((6, 6, 6), (6, 6, 6, "note")),
        ((None, 6, 5), (5, 6, None, "missing")),
        ((None, 6, 9), (None, 6, 9, "missing")),
        ((None, 6, 6), (None, 6, None, "missing")),
        ((9, None, 5), (None, None, None, "missing")),
        ((None, None, 5), (None, None, None, "missing")),
    ],
    ids=[
        "worse_is_more",
        "worse_is_less",
        "both_ends_below",
        "no_width",
        "open_above",
        "open_below",
        "open_both_ways",
        "no_middle",
        "favourable_alone",
    ],
)
def test_interval(corners, found):
    assert estimate(*corners) == found


def test_under_each_baseline():
    values = under_each(lambda baseline: exact(len(baseline), "letters"))
    assert (values.none.mid, values.engine.mid, values.tiered.mid) == (4, 6, 6)
    assert values.of("engine") == values.engine
