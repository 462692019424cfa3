"""Numbers that carry what they rest on."""

from typing import Literal

import msgspec

Origin = Literal["measured", "published", "vendor", "assumed", "given"]
"""Where an input comes from.

`measured`: somebody ran it and says how. `published`: a paper, a price list, a press quote.
`vendor`: the maker's own figure. `assumed`: an analogy, or arithmetic that the note explains.
`given`: the user decided it in the scenario.
"""

Basis = Literal["exact", "analytic"]
"""How a result was made: `exact` arithmetic on the trace and the config, or the `analytic` serving model."""


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """An input number with its origin, and its range where one is known."""

    value: float
    unit: str
    origin: Origin
    source: str
    date: str = ""
    low: float | None = None
    high: float | None = None
    note: str = ""

    def __post_init__(self) -> None:
        """A range that does not hold its own value is a typing error in a catalog."""
        if not self.least <= self.value <= self.most:
            raise ValueError(f"{self.value} {self.unit} lies outside its range {self.low} to {self.high}")

    @property
    def least(self) -> float:
        """The low end, or the value itself where no range is known."""
        return self.value if self.low is None else self.low

    @property
    def most(self) -> float:
        """The high end, or the value itself where no range is known."""
        return self.value if self.high is None else self.high


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A result with its interval; `None` where it is not known, never zero.

    `note` is the key under which each language explains the number, or why there is none.
    """

    mid: float | None
    low: float | None = None
    high: float | None = None
    unit: str
    basis: Basis = "analytic"
    note: str = ""

    def __post_init__(self) -> None:
        """An interval must hold its middle."""
        if self.mid is None:
            return
        if (self.low is not None and self.low > self.mid) or (self.high is not None and self.high < self.mid):
            raise ValueError(f"interval {self.low} to {self.high} does not hold {self.mid} {self.unit}")


def exact(value: float, unit: str, note: str = "") -> Estimate:
    """A result without an interval because it was counted."""
    return Estimate(mid=value, low=value, high=value, unit=unit, basis="exact", note=note)


def unknown(unit: str, note: str) -> Estimate:
    """A result that cannot be had, with the reason."""
    return Estimate(mid=None, unit=unit, note=note)
