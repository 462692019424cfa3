"""Figures of storage media and links, in SI units."""

from warmset.catalog.tables import MediumRow, medium_rows
from warmset.facts import Fact

SI_UNITS = {
    "GB/s": ("bytes/s", 1e9),
    "GiB/s": ("bytes/s", 2.0**30),
    "TiB/s": ("bytes/s", 2.0**40),
    "Gbit/s": ("bytes/s", 1e9 / 8),
    "TB": ("bytes", 1e12),
    "TiB": ("bytes", 2.0**40),
    "MiB": ("bytes", 2.0**20),
    "kIOPS": ("operations/s", 1e3),
    "ms": ("s", 1e-3),
    "us": ("s", 1e-6),
    "ns": ("s", 1e-9),
}


def find_medium(medium: str, field: str, conditions: str | None = None) -> Fact | None:
    """One figure of `media.csv` in SI units; `conditions`, as printed there, where it has several.

    Returns `None` where the row exists and no figure was found.

    Raises: KeyError when not exactly one row fits, which is a bug of ours.

    >>> find_medium("RAID0 of 4 Gen4 TLC", "read").value
    24800000000.0
    """
    rows = [row for row in medium_rows() if row.medium == medium and row.field == field]
    fitting = [row for row in rows if conditions in {None, row.conditions}]
    if len(fitting) != 1:
        raise KeyError((medium, field, [row.conditions for row in rows]))
    return _fact(fitting[0])


def _fact(row: MediumRow) -> Fact | None:
    if row.value is None or row.origin is None:
        return None
    quantity, _, basis = row.unit.partition(" ")
    unit, factor = SI_UNITS.get(quantity, (quantity, 1.0))
    return Fact(
        value=row.value * factor,
        unit=f"{unit} {basis}".strip(),
        origin=row.origin,
        source=row.source,
        date=row.date,
        note="; ".join(text for text in (row.conditions, row.note) if text),
    )
