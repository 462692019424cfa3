"""Text that changes by itself: clocks, ids, counters and switches, told by their form alone."""

import re
from collections.abc import Iterator
from typing import NamedTuple

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}\.?"
_WEEKDAY = r"(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?\b\.?"
_TIME = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?(?:\s?[AaPp]\.?[Mm]\b\.?)?"
_ZONE = r"\s?(?:Z\b|[+-]\d{2}:?\d{2}\b|(?:UTC|GMT)(?:[+-]\d{1,2}(?::?\d{2})?)?|[A-Z]{2,4}T\b)"
_YEAR = r"(?:19|20)\d{2}"
_DATE = (
    rf"(?:{_YEAR}[-/.]\d{{1,2}}[-/.]\d{{1,2}}|\d{{1,2}}[-/.]\d{{1,2}}[-/.](?:{_YEAR}|\d{{2}})\b"
    rf"|\d{{1,2}}(?:st|nd|rd|th)?\s{_MONTH},?\s{_YEAR}"
    rf"|{_MONTH}\s\d{{1,2}}(?:st|nd|rd|th)?(?:\s{_TIME}(?:{_ZONE})?)?,?\s{_YEAR})"
)

_FORMS = {
    "date_time": rf"(?:{_WEEKDAY},?\s)?\b{_DATE}(?:T|,?\s(?:at\s)?){_TIME}(?:{_ZONE})?",
    "date": (
        rf"(?:\b{_WEEKDAY},?\s)?\b{_DATE}"
        r"|\b(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday)\b"
    ),
    "time": rf"(?:\b{_WEEKDAY},?\s)?\b{_TIME}(?:{_ZONE})?",
    "elapsed": (
        r"(?<!\w)\+\d+(?:\.\d+)?(?:ms|s|m|h|d)\b"
        r"|\b\d+(?:\.\d+)?\s(?:milli)?(?:second|minute|hour|day|week)s?\sago\b"
    ),
    "epoch": r"\b1[4-9]\d{8}(?:\d{3}|\d{6}|\d{9})?(?:\.\d+)?\b",
    "uuid": r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b",
    "ulid": r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b",
    "named_id": r"\b[A-Za-z]{2,16}[_-](?=[A-Za-z]*\d)[A-Za-z0-9]{8,}\b",
    "hex": (
        r"\b(?:0x)?(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{8,128}\b"
        r"|\b(?=[0-9]*[A-F])(?=[A-F]*[0-9])[0-9A-F]{8,128}\b"
    ),
    "token": r"\b(?=[0-9]*[A-Za-z])(?=[A-Za-z]*[0-9])[A-Za-z0-9]{16,128}\b",
    "flag": (
        r"(?<!\S)/(?:no_)?think\b|\bdetailed thinking (?:on|off)\b|\b(?:enable_)?thinking\s*[:=]\s*[\"']?\w+"
        r"|\b[Rr]easoning(?:[ _-](?:[Ee]ffort|[Ll]evel|[Mm]ode|[Bb]udget))?\s*[:=]\s*[\"']?\w+"
        r"|\b[Tt]hinking[ _-](?:[Ee]ffort|[Ll]evel|[Mm]ode|[Bb]udget)\s*[:=]\s*[\"']?\w+"
    ),
    "number": r"\d+(?:[.,]\d+)*",
}
"""From the most particular form to the most general: the first that fits names the kind."""

_CODES = {
    "date_time": "clock",
    "date": "clock",
    "time": "clock",
    "elapsed": "clock",
    "epoch": "clock",
    "uuid": "request_id",
    "ulid": "request_id",
    "named_id": "request_id",
    "hex": "request_id",
    "token": "request_id",
    "flag": "template_flags",
    "number": "counter",
}
TITLES = {
    "date_time": "a date with a time of day",
    "date": "a date",
    "time": "a time of day",
    "elapsed": "an elapsed time",
    "epoch": "a Unix time",
    "uuid": "a UUID",
    "ulid": "a ULID",
    "named_id": "an id with a prefix",
    "hex": "a hexadecimal id",
    "token": "a random token",
    "flag": "a reasoning or thinking switch",
    "number": "a number",
}

_ANY = re.compile("|".join(f"(?P<{name}>{form})" for name, form in _FORMS.items()))
_CONTEXT_SIZE = 16
_SHOWN = "\N{REPLACEMENT CHARACTER}"


class Spot(NamedTuple):
    """A piece of text that may change by itself."""

    kind: str
    start: int
    end: int
    context: str
    """What stands before it on its line, without other such pieces: it tells this spot from others."""

    @property
    def code(self) -> str:
        """The cause that it stands for."""
        return _CODES[self.kind]


def spots(line: str) -> Iterator[Spot]:
    """All pieces of a line that may change by themselves, from left to right, none over another."""
    seen = ""
    last_end = 0
    for match in _ANY.finditer(line):
        seen = (seen + line[last_end : match.start()])[-_CONTEXT_SIZE:]
        last_end = match.end()
        yield Spot(str(match.lastgroup), match.start(), match.end(), seen)
        seen = (seen + _SHOWN)[-_CONTEXT_SIZE:]


def masked(line: str) -> str:
    """The line with one sign for each piece that may change, and without switches.

    >>> masked("[12:05] 3 of 4") == masked("[9:17] 12 of 4")
    True
    """
    parts = []
    last_end = 0
    for spot in spots(line):
        parts += [line[last_end : spot.start], "" if spot.kind == "flag" else _SHOWN]
        last_end = spot.end
    return "".join([*parts, line[last_end:]])


def spot_at(line: str, offset: int) -> Spot | None:
    """The piece that covers a place in a line, or ends there."""
    covering = [spot for spot in spots(line) if spot.start <= offset <= spot.end]
    return covering[-1] if covering else None
