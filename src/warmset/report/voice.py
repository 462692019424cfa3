"""One language speaking: texts and numbers together, as sections and figures need them."""

import re
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from warmset.catalog import defaults
from warmset.evaluation import BASELINES, Baseline, ByBaseline, Reason
from warmset.facts import Estimate, Fact
from warmset.report.document import Cell, Tone
from warmset.report.numbers import format_change, format_value, format_window, show
from warmset.report.texts import Language, Texts

_TRAILING_ZEROS = re.compile(r"\.0+(?=\D|$)|(?<=\.[1-9])0+(?=\D|$)")
NOTEWORTHY = 0.02
"""A change smaller than this is printed, but called neither better nor worse."""
LOWER_IS_BETTER = frozenset({"ttft", "tpot", "prefill_flops", "hbm_per_request", "cold_ttft", "hot_ttft"})


class Voice:
    """Texts and numbers of one language."""

    def __init__(self, language: Language) -> None:
        self.texts = Texts(language)
        self.language: Language = language

    def say(self, key: str, /, **values: object) -> str:
        """A text of the catalog."""
        return self.texts(key, **values)

    def uses(self, key: str, placeholder: str) -> bool:
        """Whether a text has a place for this value."""
        return f"{{{placeholder}}}" in self.texts.or_else(key, "")

    def of(self, value: float, unit: str) -> str:
        """A number with its unit."""
        return format_value(value, unit, self.texts)

    def size(self, size_bytes: float) -> str:
        """Bytes."""
        return self.of(size_bytes, "bytes")

    def ratio(self, ratio: float) -> str:
        """A ratio as percent."""
        return self.of(ratio, "ratio")

    def ticks(self, unit: str) -> Callable[[float], str]:
        """What prints round numbers on an axis: no zeros after the point."""
        return lambda value: _TRAILING_ZEROS.sub("", self.of(value, unit))

    def source_of(self, fact: Fact) -> str:
        """Where an input comes from; what the user gave comes from the scenario."""
        return self.say("origins.given_source") if fact.origin == "given" else fact.source

    def note_of(self, key: str, fact: Fact) -> str:
        """Why an input is what it is. Only the notes of the catalog's defaults are translated."""
        default = defaults().get(key)
        is_default = default is not None and fact.note == default.note
        return self.texts.note_of_default(key, fact.note) if is_default else fact.note

    def seconds(self, duration_s: float) -> str:
        """A duration."""
        return self.of(duration_s, "s")

    def window(self, window_s: int) -> str:
        """A window of time."""
        return format_window(window_s, self.texts)

    def counted(self, count: float) -> Cell:
        """A bare count, in a column whose head names what is counted."""
        return Cell(self.of(count, "count"), value=count)

    def sized(self, size_bytes: float) -> Cell:
        """Bytes in a cell."""
        return Cell(self.size(size_bytes), value=size_bytes)

    def shared(self, ratio: float) -> Cell:
        """A ratio in a cell."""
        return Cell(self.ratio(ratio), value=ratio)

    def baseline(self, baseline: Baseline) -> str:
        """The name of a baseline."""
        return self.say(f"baselines.{baseline}.name")

    def baselines(self) -> tuple[str, ...]:
        """The names of the baselines, in order."""
        return tuple(self.baseline(baseline) for baseline in BASELINES)

    def estimate(self, estimate: Estimate, tone: Tone = "", *, with_note: bool = True) -> Cell:
        """A result: the value, its interval under it."""
        number = show(estimate, self.texts)
        if number.value is None:
            return self.missing(number.note)
        detail = number.interval
        if number.note and with_note:
            is_open = bool(detail) and (estimate.low is None or estimate.high is None)
            key = "document.open_end" if is_open else "document.noted"
            detail = self.say(key, text=detail, note=number.note) if detail else number.note
        return Cell(number.text, detail, tone=tone, value=number.value)

    def missing(self, reason: str) -> Cell:
        """What stands where a number cannot be had: the words, the reason under them."""
        return Cell(self.say("units.unknown"), reason or self.say("units.unknown_no_reason"), tone="muted")

    def inline(self, estimate: Estimate) -> str:
        """A result in a sentence, with its interval."""
        return show(estimate, self.texts).inline(self.texts)

    def short(self, estimate: Estimate) -> str:
        """A result in a sentence, without its interval."""
        return show(estimate, self.texts).text

    def across(self, values: ByBaseline, tone: Tone = "", *, with_note: bool = True) -> tuple[Cell, ...]:
        """One cell for each baseline."""
        return tuple(self.estimate(values.of(each), tone, with_note=with_note) for each in BASELINES)

    def change(self, values: ByBaseline, *, lower_is_better: bool | None = None) -> Cell:
        """How `tiered` differs from `engine`."""
        found = format_change(values.engine, values.tiered, self.texts)
        if found is None:
            return Cell("–", tone="muted")
        text, factor = found
        if lower_is_better is None or abs(factor - 1) < NOTEWORTHY:
            return Cell(text, tone="muted", value=factor)
        return Cell(text, tone="better" if (factor < 1) == lower_is_better else "worse", value=factor)

    def basis(self, values: ByBaseline) -> str:
        """The tag of a row: analytic as soon as one of its numbers is."""
        bases = {values.of(baseline).basis for baseline in BASELINES}
        return "analytic" if "analytic" in bases else "exact"

    def sentence(self, section: str, reason: Reason) -> str:
        """A reason in words."""
        numbers = {name: self.inline(number) for name, number in reason.numbers.items()}
        words = {name: self.word(word) for name, word in reason.words.items()}
        return self.say(f"{section}.{reason.key}", **numbers, **words)

    def word(self, word: str) -> str:
        """A name of a tier or a baseline as people say it; any other word as it is."""
        for key in (f"tiers.{word}", f"baselines.{word}.name", f"traffic.{word}.name"):
            if self.texts.has(key):
                return self.say(key)
        return word

    def heads(self, section: str, *names: str) -> tuple[str, ...]:
        """Column heads from one section of the catalog."""
        return tuple(self.say(f"{section}.{name}") for name in names)

    def titled(self, section: str, title: str = "heading", lead: str = "lead") -> tuple[str, str]:
        """A heading and the sentence under it."""
        return self.say(f"{section}.{title}"), self.say(f"{section}.{lead}")

    def bare(self, values: ByBaseline, unit: str) -> ByBaseline:
        """The same numbers where the label beside them says per what they are."""
        none, engine, tiered = (replace(values.of(baseline), unit=unit) for baseline in BASELINES)
        return ByBaseline(none=none, engine=engine, tiered=tiered)

    def listed(self, names: Mapping[str, str] | tuple[str, ...]) -> str:
        """Names in one line, or the word for none."""
        return self.texts.joined(list(names)) if names else self.say("document.none")
