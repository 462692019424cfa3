"""The configs that come with Warmset, found by name."""

import csv
import difflib
import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from warmset.errors import ScenarioError

FOLDER = Path(str(files("warmset") / "catalog" / "models"))
MOST_SUGGESTIONS = 5


class ShippedModel(NamedTuple):
    """A shipped config.json."""

    model: str
    path: Path
    source: str
    """Where the config was found."""


@cache
def shipped_models() -> tuple[ShippedModel, ...]:
    """All shipped configs, by `organisation/name`."""
    with (FOLDER / "models.csv").open(encoding="utf-8", newline="") as file:
        return tuple(
            ShippedModel(row["model"], FOLDER / row["file"], row["source_of_config"])
            for row in csv.DictReader(file)
        )


def find_shipped(name: str) -> ShippedModel:
    """The one shipped config that a name means.

    Raises: ScenarioError when none or several have that name, with the nearest names.
    """
    wanted, words = name.lower(), _words(name)
    models = shipped_models()
    found: list[ShippedModel] = []
    for found in (
        [shipped for shipped in models if shipped.model.lower() == wanted],
        [shipped for shipped in models if _bare(shipped.model) == wanted],
        [shipped for shipped in models if words and words <= _words(shipped.model)],
    ):
        if len(found) == 1:
            return found[0]
    if found:
        raise ScenarioError(f"model {name!r} could be {_either([shipped.model for shipped in found])}")
    raise ScenarioError(
        f"model {name!r} is not known: give the path of its config.json, or did you mean "
        f"{_either(_nearest(wanted))}?"
    )


def _bare(model: str) -> str:
    return model.lower().rpartition("/")[2]


def _words(name: str) -> set[str]:
    return {word for word in re.split(r"[-_/ ]+", name.lower()) if word}


def _nearest(wanted: str) -> list[str]:
    by_bare_name = {_bare(shipped.model): shipped.model for shipped in shipped_models()}
    near = difflib.get_close_matches(_bare(wanted), by_bare_name, n=3, cutoff=0.0)
    return [by_bare_name[match] for match in near]


def _either(models: list[str]) -> str:
    shown = models[:MOST_SUGGESTIONS]
    more = len(models) - len(shown)
    if more:
        return f"{', '.join(shown)} or one of {more} more"
    return " or ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
