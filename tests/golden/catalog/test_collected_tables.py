"""The shipped tables hold every row of the collected ones, with or without a figure."""

import csv
from collections import Counter

import pytest

from warmset.catalog.tables import accelerator_rows, medium_rows, price_rows


def collected(shared, filename):
    with (shared / "catalog" / filename).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def number(cell):
    return float(cell) if cell else None


def test_accelerators(shared):
    # The driver's own MiB replace its rounded GiB, and assumed stand-ins are added under names of their own.
    shipped = {(row.accelerator, row.field): row.value for row in accelerator_rows()}
    rows = [row for row in collected(shared, "accelerators.csv") if row["field"] != "memory_driver_gib"]
    assert [row for row in rows if shipped[row["accelerator"], row["field"]] != row["value"]] == []
    added = {field for _, field in shipped} - {row["field"] for row in rows}
    assert added == {"memory_driver", "h2d_assumed_gbs", "tdp_assumed_w"}


def test_driver_readings(shared):
    shipped = {row.accelerator: row for row in accelerator_rows() if row.field == "memory_driver"}
    for row in collected(shared, "accelerators.csv"):
        if row["field"] == "memory_driver_gib":
            reading = shipped[row["accelerator"]]
            assert bool(reading.value) == bool(row["value"])
            if reading.value:
                per_gib = {"GiB": 1, "MiB": 1024}[reading.unit]
                assert float(reading.value) / per_gib == pytest.approx(float(row["value"]), abs=0.01)


def test_media(shared):
    rows = collected(shared, "media.csv")
    expected = Counter((row["medium"], row["field"], row["conditions"], number(row["value"])) for row in rows)
    assert Counter((row.medium, row.field, row.conditions, row.value) for row in medium_rows()) == expected


def test_prices(shared):
    columns = ("value_low", "value", "value_high")
    rows = collected(shared, "prices.csv")
    expected = Counter(
        (row["item"], row["quote_date"], *(number(row[column]) for column in columns)) for row in rows
    )
    assert Counter((row.item, row.date, row.low, row.value, row.high) for row in price_rows()) == expected
