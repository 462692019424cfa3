"""The three fact tables as rows. An empty cell is `None`, or "" where the cell is text: never zero."""

import csv
from functools import cache
from importlib.resources import files
from typing import TypeVar

import msgspec

from warmset.facts import Origin


class AcceleratorRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One field of one accelerator; `value` is text because memory types and link names are."""

    accelerator: str
    vendor: str
    field: str
    value: str = ""
    low: float | None = None
    high: float | None = None
    unit: str
    source: str = ""
    date: str = ""
    origin: Origin | None = None
    second_source: str = ""
    second_value: str = ""
    note: str = ""


class MediumRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One figure of one medium, under its conditions."""

    medium: str
    tier: str
    field: str
    value: float | None = None
    unit: str
    conditions: str = ""
    source: str = ""
    date: str = ""
    origin: Origin | None = None
    note: str = ""


class PriceRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One quote, in the currency it was quoted in.

    `accelerator` and `scope` (gpu, module, server, rental) are set on the rows that price an accelerator.
    """

    category: str
    item: str
    accelerator: str = ""
    scope: str = ""
    low: float | None = None
    value: float | None = None
    high: float | None = None
    unit: str
    currency: str = ""
    region: str = ""
    date: str = ""
    source: str = ""
    origin: Origin | None = None
    note: str = ""


Row = TypeVar("Row", AcceleratorRow, MediumRow, PriceRow)


@cache
def accelerator_rows() -> tuple[AcceleratorRow, ...]:
    return _read("accelerators.csv", AcceleratorRow)


@cache
def medium_rows() -> tuple[MediumRow, ...]:
    return _read("media.csv", MediumRow)


@cache
def price_rows() -> tuple[PriceRow, ...]:
    return _read("prices.csv", PriceRow)


def _read(filename: str, kind: type[Row]) -> tuple[Row, ...]:
    text = files(__package__).joinpath(filename).read_text(encoding="utf-8")
    filled = (
        {column: cell for column, cell in row.items() if cell} for row in csv.DictReader(text.splitlines())
    )
    return tuple(msgspec.convert(row, type=kind, strict=False) for row in filled)
