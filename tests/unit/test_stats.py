"""Nearest-rank quantiles and ratios of totals."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmset.stats import quantile


@pytest.mark.parametrize(
    ("share", "value"),
    [(0.0, 15), (0.05, 15), (0.30, 20), (0.40, 20), (0.50, 35), (0.95, 50), (1.0, 50)],
)
def test_nearest_rank(share, value):
    # The worked example of https://en.wikipedia.org/wiki/Percentile, nearest-rank method.
    assert quantile([35, 20, 15, 50, 40], share) == value


@pytest.mark.parametrize(
    ("percentile", "size"), [(7, 100), (55, 100), (56, 25), (68, 75), (81, 300), (95, 20), (99, 100)]
)
def test_a_whole_rank_stays_whole_in_floating_point(percentile, size):
    # 0.07 * 100 is 7.000000000000001 as a float; the 7th of 100 values is meant.
    assert quantile(np.arange(1, size + 1), percentile / 100) == percentile * size / 100


@given(st.lists(st.integers(-1000, 1000), min_size=1), st.integers(1, 100))
def test_at_least_the_share_does_not_exceed_it_and_nothing_smaller_will_do(values, percentile):
    found = quantile(values, percentile / 100)
    assert found in values
    share = Fraction(percentile, 100)
    assert sum(value <= found for value in values) >= share * len(values)
    assert sum(value < found for value in values) < share * len(values)


def test_quantile_does_not_reorder_its_input():
    column = np.array([3.0, 1.0, 2.0])
    quantile(column, 0.5)
    assert column.tolist() == [3.0, 1.0, 2.0]


@pytest.mark.parametrize("empty", [[], np.zeros(0)])
def test_no_values_have_no_quantile(empty):
    with pytest.raises(ValueError, match="no values"):
        quantile(empty, 0.5)
