"""Times as logs write them: ISO 8601, or a number since 1970 whose unit shows in its size."""

import math
import re
from datetime import UTC, datetime, timedelta
from typing import Any

from warmset.trace.readers.log_rows import UnusableRowError
from warmset.trace.tally import Tally

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")
_COUNTED_IN = (
    # from, below, unit, units in a millisecond: 1973 to 5138
    (10**8, 10**11, "seconds", 1e-3),
    (10**11, 10**14, "milliseconds", 1),
    (10**14, 10**17, "microseconds", 10**3),
    (10**17, 10**20, "nanoseconds", 10**6),
)
SMALLEST_EPOCH = 10**8
"""A number below is no time since 1970 that a log of a language model could hold."""


class Clock:
    """Times of one file in whole milliseconds since 1970.

    A field that starts in one unit stays in it: a row in another one is unusable.
    """

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._unit: dict[str, str] = {}

    def milliseconds(self, value: Any, field: str, place: str) -> int:  # noqa: ANN401 - whatever a log holds
        """One time.

        Raises: UnusableRowError where it is none, or not in the unit of the rows before.
        """
        if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
            return self._from_iso(value.strip(), field, place)
        number = _number(value, field)
        for least, most, unit, per_millisecond in _COUNTED_IN:
            if least <= number < most:
                if self._unit.setdefault(field, unit) != unit:
                    raise UnusableRowError(
                        f"{field} is in {unit}, and in {self._unit[field]} before: bring all rows to one unit"
                    )
                return _whole(number, per_millisecond)
        raise UnusableRowError(
            f"{field} is {number}: a time must be ISO 8601, or count seconds or their fractions since 1970"
        )

    def _from_iso(self, text: str, field: str, place: str) -> int:
        try:
            time = datetime.fromisoformat(text)
        except ValueError as error:
            raise UnusableRowError(
                f"{field} is no time: it must be ISO 8601, or a number since 1970"
            ) from error
        if time.tzinfo is None:
            self._tally.note("no_time_zone", f"{place}: {field} is taken as UTC")
            time = time.replace(tzinfo=UTC)
        return (time - _EPOCH) // _MILLISECOND


def _number(value: Any, field: str) -> float:  # noqa: ANN401 - whatever a log holds
    if isinstance(value, str):
        text = value.strip()
        number: float = int(text) if text.lstrip("+-").isdigit() else float(text)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        number = value
    else:
        raise UnusableRowError(f"{field} is no time: it must be ISO 8601, or a number since 1970")
    if not math.isfinite(number):
        raise UnusableRowError(f"{field} is {number}: it must be a time")
    return number


def _whole(number: float, per_millisecond: float) -> int:
    """Whole milliseconds: exact below for integers, the nearest for fractions of a second."""
    if isinstance(number, int):
        return number * 1000 if per_millisecond < 1 else number // int(per_millisecond)
    return round(number / per_millisecond)
