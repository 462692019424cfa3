"""Results and inputs as text: which of the formats of `units` a unit gets, and how an interval is written."""

import math
import re
from dataclasses import dataclass

from warmset import units
from warmset.facts import Estimate, Fact
from warmset.report.texts import Texts, slug

_CURRENCY = re.compile(r"[A-Z]{3}")
_NUMBER_FIRST = re.compile(r"([-−]?[\d.,]+)(.*)", re.DOTALL)
_NONZERO = re.compile(r"[1-9]")
_ZERO = re.compile(r"(-?)0(\.0+)?")
_INSIDE = re.compile(r"(?<=[\d<]) (?=\S)|(?<=\d [kMBT]) ")
NBSP = "\u00a0"
_COUNTED = ("tokens", "blocks", "requests", "sessions", "nodes", "gpus", "years", "hours", "days")


@dataclass(frozen=True, slots=True)
class Shown:
    """A number ready to print."""

    text: str
    interval: str = ""
    basis: str = ""
    note: str = ""
    value: float | None = None

    def inline(self, texts: Texts) -> str:
        """Value and interval in one line."""
        if not self.interval:
            return self.text
        return texts("document.parenthesis", text=self.text, inner=self.interval)


def show(estimate: Estimate, texts: Texts) -> Shown:
    """A result with its interval, or why it is not known."""
    note = texts.or_else(f"notes.{estimate.note}", estimate.note)
    if estimate.mid is None or not math.isfinite(estimate.mid):
        return Shown(unknown(note, texts), basis=estimate.basis, note=note)
    return Shown(
        text=format_value(estimate.mid, estimate.unit, texts),
        interval=format_interval(estimate.mid, estimate.low, estimate.high, estimate.unit, texts),
        basis=estimate.basis,
        note=note,
        value=estimate.mid,
    )


def show_fact(fact: Fact, texts: Texts) -> Shown:
    """An input with its range."""
    return Shown(
        text=format_value(fact.value, fact.unit, texts),
        interval=format_interval(fact.value, fact.low, fact.high, fact.unit, texts),
        basis=fact.origin,
        note=fact.note,
        value=fact.value,
    )


def unknown(reason: str, texts: Texts) -> str:
    """What stands where a number cannot be had."""
    return texts("units.unknown_reason", reason=reason or texts("units.unknown_no_reason"))


def format_interval(mid: float, low: float | None, high: float | None, unit: str, texts: Texts) -> str:
    """The range of a number, without the unit where the number itself shows it.

    >>> format_interval(3.2, 2.4, 4.1, "s", Texts("en"))
    '2.40–4.10'
    """
    low, high = _finite(low), _finite(high)
    if low is None:
        end = None if high is None else format_value(high, unit, texts)
        return "" if end is None else texts("units.interval_open_low", high=end)
    if high is None:
        return texts("units.interval_open_high", low=format_value(low, unit, texts))
    return _span(
        format_value(mid, unit, texts), format_value(low, unit, texts), format_value(high, unit, texts), texts
    )


def _span(mid: str, low: str, high: str, texts: Texts) -> str:
    if low == high:
        return ""
    parts = [_NUMBER_FIRST.fullmatch(text) for text in (mid, low, high)]
    mid_unit, low_unit, high_unit = (None if part is None else part[2] for part in parts)
    if low_unit is not None and low_unit == high_unit:
        low = low.removesuffix(low_unit)
        high = high if mid_unit != high_unit else high.removesuffix(low_unit)
    return texts("units.range_signed" if "−" in low + high else "units.range", low=low, high=high)


def format_value(value: float, unit: str, texts: Texts) -> str:
    r"""A number with its unit.

    >>> format_value(12031, "requests", Texts("en"))
    '12,031\xa0requests'
    >>> format_value(0.42, "CNY_per_million_tokens", Texts("zh"))
    '0.42\xa0CNY/百万 token'
    """
    if not math.isfinite(value):
        return unknown("", texts)
    key = slug(unit)
    if texts.has(f"units.{key}"):
        return _typeset(_counted(value, key, texts), value)
    head, _, per = key.partition("_per_")
    text = _quantity(value, head, texts)
    if per:
        own = f"units.per.{per}"
        text = texts(own, n=text) if texts.has(own) else f"{text}/{per.replace('_', ' ')}"
    return _typeset(text, value)


def _quantity(value: float, head: str, texts: Texts) -> str:
    match head:
        case "s":
            return _duration(value, texts)
        case "ms":
            return _duration(value / 1000, texts)
        case "bytes":
            return units.format_bytes(value)
        case "flops" | "FLOP":
            return units.format_flops(value)
        case "ratio":
            return units.format_percent(value)
        case _ if _CURRENCY.fullmatch(head):
            return units.format_money(value, head)
        case _ if head in _COUNTED:
            return _counted(value, head, texts)
    name = texts.or_else(f"units.words.{head}", head.replace("_", " "))
    return f"{units.format_count(value)} {name}".strip()


def _duration(value: float, texts: Texts) -> str:
    number, _, unit = units.format_seconds(value).rpartition(" ")
    return f"{number} {texts.or_else(f'units.time.{unit}', unit)}"


def format_window(window_s: int, texts: Texts) -> str:
    """A window of whole minutes, hours or days.

    >>> format_window(600, Texts("en"))
    '10 min'
    """
    for unit, length_s in (("d", 86400), ("h", 3600), ("min", 60)):
        if window_s % length_s == 0 and (unit != "h" or window_s > 3600):
            return f"{window_s // length_s:,} {texts.or_else(f'units.time.{unit}', unit)}"
    return _duration(window_s, texts)


def _counted(value: float, key: str, texts: Texts) -> str:
    number = units.format_count(value)
    one = f"units.{key}_one"
    return texts(one if number == "1" and texts.has(one) else f"units.{key}", n=number)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _typeset(text: str, value: float) -> str:
    """A true minus, no line break inside, and never a bare zero for what is only small."""
    if value != 0 and not _NONZERO.search(text):
        text = _ZERO.sub(_below, text, count=1)
    return _INSIDE.sub(NBSP, text.replace("-", "−", 1) if text.startswith(("-", "> -")) else text)


def _below(zero: re.Match[str]) -> str:
    sign, decimals = zero[1], zero[2]
    return f"{'> -' if sign else '< '}{f'0{decimals[:-1]}1' if decimals else '1'}"


def format_change(before: Estimate, after: Estimate, texts: Texts) -> tuple[str, float] | None:
    """How much `after` differs from `before`, in words and as a ratio; `None` where one is not known.

    From double on a factor reads better than a percentage.
    """
    if (
        before.mid is None
        or after.mid is None
        or before.mid <= 0
        or not math.isfinite(after.mid / before.mid)
    ):
        return None
    factor = after.mid / before.mid
    if abs(factor - 1) < 0.0005:
        return texts("metrics.unchanged"), factor
    if factor >= 2:
        return texts("metrics.times", n=units.format_count(round(factor, 2))), factor
    sign = "+" if factor > 1 else "−"
    return sign + units.format_percent(abs(factor - 1)), factor
