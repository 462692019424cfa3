"""No figure without source, date and origin. A row without a figure is kept, to say that none is known."""

import csv
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.gates.source import PACKAGE

CATALOG = PACKAGE / "catalog"
# As exact as the source: a day, a month, a year; or the word that it says none.
DATED = re.compile(r"\b20\d\d\b|\bundated\b")
MADE_BY = ("source", "date", "origin")


def figures() -> Iterator[tuple[str, dict[str, object]]]:
    for path in sorted(CATALOG.iterdir()):
        match path.suffix:
            case ".csv":
                yield from csv_figures(path)
            case ".toml":
                tables = tomllib.loads(path.read_text(encoding="utf-8"))
                yield from ((f"{path.name}: {name}", row) for name, row in tables.items())


def csv_figures(path: Path) -> Iterator[tuple[str, dict[str, object]]]:
    with path.open(encoding="utf-8", newline="") as file:
        for row in (reader := csv.DictReader(file)):
            if any(row.get(column) for column in ("low", "value", "high")):
                yield f"{path.name}:{reader.line_num}", row


def test_every_figure_has_source_date_and_origin():
    rows = list(figures())
    assert rows
    missing = [(place, part) for place, row in rows for part in MADE_BY if not row.get(part)]
    assert missing == []
    assert [(place, row["date"]) for place, row in rows if not DATED.search(str(row["date"]))] == []


def test_every_model_config_names_its_source():
    with (CATALOG / "models" / "models.csv").open(encoding="utf-8", newline="") as file:
        sources = {row["file"]: row["source_of_config"] for row in csv.DictReader(file)}
    assert set(sources) == {path.name for path in (CATALOG / "models").glob("*.json")}
    assert [name for name, source in sources.items() if not source] == []
