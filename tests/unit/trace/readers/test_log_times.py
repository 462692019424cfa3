import pytest

from tests.support.text_logs import counts
from warmset.trace.readers.log_rows import UnusableRowError
from warmset.trace.readers.log_times import Clock
from warmset.trace.tally import Tally

NOON_MS = 1_772_107_200_000  # date -u -d 2026-02-26T12:00:00Z +%s


@pytest.mark.parametrize(
    ("value", "expected_ms"),
    [
        ("2026-02-26T12:00:00Z", NOON_MS),
        ("2026-02-26T12:00:00.1234567Z", NOON_MS + 123),  # seven decimals, as Azure writes
        ("2026-02-26T14:00:00.5+02:00", NOON_MS + 500),
        ("2026-02-26 12:00:00.999999+00", NOON_MS + 999),  # PostgreSQL
        ("2026-02-26T12:00:00", NOON_MS),
        (1772107200, NOON_MS),
        (1772107200.376, NOON_MS + 376),
        (" 1772107200.376 ", NOON_MS + 376),
        (1772107200376, NOON_MS + 376),
        (1772107200376.9, NOON_MS + 377),
        (1772107200376797, NOON_MS + 376),
        (1772107200376797123, NOON_MS + 376),
        (" 1772107200376797123", NOON_MS + 376),  # GMI: nanoseconds as text
        (1.7721072e9, NOON_MS),
        ("1.7721072e9", NOON_MS),
    ],
)
def test_the_unit_shows_in_the_size(value, expected_ms):
    assert Clock(Tally()).milliseconds(value, "t", "log:1") == expected_ms


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("noon", "t is no time: it must be ISO 8601, or a number since 1970"),
        ("", "t is no time"),
        (None, "t is no time"),
        (True, "t is no time"),
        ([1], "t is no time"),
        (0, "t is 0: a time must be ISO 8601, or count"),
        (-1772107200, "t is -1772107200: a time must"),
        (10**20, "a time must"),
        ("9" * 400 + ".5", "t is inf: it must be a time"),
    ],
)
def test_what_is_no_time(value, why):
    with pytest.raises(UnusableRowError, match=why):
        Clock(Tally()).milliseconds(value, "t", "log:1")


def test_a_field_keeps_its_unit_and_others_have_their_own():
    clock = Clock(Tally())
    assert clock.milliseconds(1772107200, "start", "log:1") == NOON_MS
    assert clock.milliseconds(1772107200000, "end", "log:1") == NOON_MS
    with pytest.raises(UnusableRowError, match="start is in milliseconds, and in seconds before"):
        clock.milliseconds(1772107200000, "start", "log:2")


def test_times_without_a_zone_are_counted():
    tally = Tally()
    Clock(tally).milliseconds("2026-02-26T12:00:00", "t", "log:1")
    assert counts(tally) == {"no_time_zone": 1}
