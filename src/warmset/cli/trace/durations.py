"""Durations on the command line: seconds, or a number and a unit."""

from warmset.errors import InputError
from warmset.units import parse_seconds

_LONGEST_MS = 2**53


def milliseconds(text: str, flag: str) -> int:
    """Whole milliseconds of `90`, `90s` or `1h`.

    Raises: InputError where it is no duration.
    """
    words = text.strip()
    try:
        duration_ms = round(1000 * parse_seconds(f"{words}s" if words[-1:].isdigit() else words))
    except InputError as error:
        raise InputError(f"{flag}: {error}") from error
    if duration_ms > _LONGEST_MS:
        raise InputError(f"{flag} {text}: it must be shorter than 250,000 years")
    return duration_ms
