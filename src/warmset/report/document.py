"""What a report is made of, before it becomes HTML or Markdown: plain strings in a frozen tree.

Everything here is text as a person reads it. Renderers escape it; nothing in it is markup.
"""

from dataclasses import dataclass, field
from typing import Literal

from warmset.report.charts import Chart
from warmset.report.texts import Language

Tone = Literal["", "better", "worse", "muted", "strong"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: a text, a line under it, a tag beside it, or a list."""

    text: str
    detail: str = ""
    tag: str = ""
    tone: Tone = ""
    value: float | None = None
    items: tuple[str, ...] = ()
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table; numeric columns are set right."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    numeric_from_index: int = 1
    text_columns: frozenset[int] = frozenset()
    caption: str = ""
    note: str = ""
    total_row: bool = False
    key: str = ""


@dataclass(frozen=True, slots=True)
class Prose:
    """A paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list of sentences."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """One or more charts that share a heading, and the table that holds their numbers."""

    key: str
    title: str
    reading: str
    charts: tuple[Chart, ...]
    table: Table


@dataclass(frozen=True, slots=True)
class Entry:
    """One of the thirteen rows in full."""

    key: str
    row_index: int
    title: str
    definition: str
    values: Table
    gain: Table | None
    no_gain: str
    holds_for: str
    method: str
    tag: str


@dataclass(frozen=True, slots=True)
class Group:
    """A titled part of a section."""

    title: str
    reading: str
    blocks: tuple["Block", ...]


Block = Prose | Bullets | Table | Figure | Entry | Group


@dataclass(frozen=True, slots=True)
class Section:
    """A chapter of the report."""

    key: str
    title: str
    lead: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Tile:
    """A key number: the tiered cache large, the other baselines beside it."""

    key: str
    label: str
    text: str
    detail: str
    tag: str
    beside: tuple[tuple[str, str], ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class VerdictView:
    """The decision in words."""

    decision: str
    label: str
    sentence: str
    reasons: tuple[str, ...]
    would_change: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report in one language."""

    language: Language
    title: str
    subtitle: str
    verdict: VerdictView
    tiles: tuple[Tile, ...]
    sections: tuple[Section, ...]
    footer: tuple[str, ...] = field(default=())
