"""What write-through does to flash: rated bytes = writes a day x capacity x 365 x warranty years."""

import pytest

from warmset.economics import flash_hours, wear_of

TB = 10**12
YEAR_H = 8760


@pytest.mark.parametrize(
    ("writes_per_day", "hours"),
    [(0, 5 * YEAR_H), (0.5, 5 * YEAR_H), (1, 5 * YEAR_H), (2, 2.5 * YEAR_H), (50, 0.1 * YEAR_H)],
    ids=["nothing_written", "below_rating", "at_rating", "double", "fifty"],
)
def test_age_or_wear_whichever_comes_first(writes_per_day, hours):
    rate = writes_per_day * 10 * TB / 86_400
    assert flash_hours(10 * TB, rate, 1.0, 5, 5) == pytest.approx(hours)


def test_a_better_rating_and_a_longer_warranty_live_longer():
    rate = 10 * 10 * TB / 86_400
    assert flash_hours(10 * TB, rate, 3.0, 5, 5) == pytest.approx(3 * flash_hours(10 * TB, rate, 1.0, 5, 5))
    assert flash_hours(10 * TB, rate, 1.0, 3, 5) == pytest.approx(0.6 * flash_hours(10 * TB, rate, 1.0, 5, 5))


def test_used_longer_than_its_warranty():
    assert flash_hours(10 * TB, 1.0, 1.0, 3, 6) == 6 * YEAR_H


def test_wear_in_numbers():
    rates = tuple(writes * 10 * TB / 86_400 for writes in (1, 2, 4))
    wear = wear_of(10 * TB, rates, (1, 1, 3), 5)
    daily, writes, life = wear.written_bytes_per_day, wear.drive_writes_per_day, wear.years_of_life
    assert (daily.low, daily.mid, daily.high) == pytest.approx((10 * TB, 20 * TB, 40 * TB))
    assert (writes.low, writes.mid, writes.high) == pytest.approx((1, 2, 4))
    # Worst rating under most writes, best rating under fewest.
    assert (life.low, life.mid, life.high) == pytest.approx((5 / 4, 5 / 2, 15))


def test_nothing_written_has_no_end_of_life():
    life = wear_of(10 * TB, (0.0, 0.0, 0.0), (1, 1, 1), 5).years_of_life
    assert (life.mid, life.note) == (None, "nothing_written")


def test_perhaps_nothing_written_is_open_ended():
    life = wear_of(10 * TB, (0.0, 1e9, 2e9), (1, 1, 1), 5).years_of_life
    assert life.high is None
    assert life.low < life.mid
