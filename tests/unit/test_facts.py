"""Numbers that carry what they rest on."""

import math

import pytest

from warmset.facts import Estimate, Fact, exact, unknown


def fact(value, **more):
    return Fact(value=value, unit="s", origin="assumed", source="test", **more)


def test_a_range_has_ends():
    known = fact(2.0, low=1.0, high=3.0)
    assert (known.least, known.most) == (1.0, 3.0)


def test_without_a_range_the_value_is_both_ends():
    assert (fact(2.0).least, fact(2.0).most) == (2.0, 2.0)
    assert (fact(2.0, low=1.0).least, fact(2.0, low=1.0).most) == (1.0, 2.0)


@pytest.mark.parametrize(
    "ends", [{"low": 2.1}, {"high": 1.9}, {"low": 2.5, "high": 3.0}, {"low": 3.0, "high": 1.0}]
)
def test_a_range_must_hold_its_value(ends):
    with pytest.raises(ValueError, match="outside its range"):
        fact(2.0, **ends)


def test_not_a_number_is_no_fact():
    with pytest.raises(ValueError, match="outside its range"):
        fact(math.nan)


@pytest.mark.parametrize("ends", [{"low": 2.1}, {"high": 1.9}, {"low": 3.0, "high": 1.0}])
def test_an_interval_must_hold_its_middle(ends):
    with pytest.raises(ValueError, match="does not hold"):
        Estimate(mid=2.0, unit="s", **ends)


@pytest.mark.parametrize("ends", [{}, {"low": 2.0}, {"high": 2.0}, {"low": 1.0, "high": 3.0}])
def test_open_and_closed_intervals(ends):
    assert Estimate(mid=2.0, unit="s", **ends).mid == 2.0


def test_what_was_counted_has_no_width():
    counted = exact(7, "blocks")
    assert (counted.low, counted.mid, counted.high, counted.basis) == (7, 7, 7, "exact")


def test_unknown_is_none_and_says_why():
    missing = unknown("nodes", "slo_not_met")
    assert (missing.low, missing.mid, missing.high) == (None, None, None)
    assert (missing.unit, missing.note) == ("nodes", "slo_not_met")
