"""`warmset catalog`: the models, accelerators and media that Warmset knows, each figure with its source."""

from collections.abc import Iterator
from typing import Literal, get_args

import click

from warmset.errors import InputError

Kind = Literal["models", "accelerators", "media"]
Row = dict[str, str]


@click.command("catalog", short_help="Show what is known of models, accelerators and media, with sources.")
@click.argument("kind", type=click.Choice(get_args(Kind)))
@click.argument("words", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(kind: Kind, words: tuple[str, ...], *, as_json: bool) -> None:
    """List models, accelerators or media; with WORDS, only the rows in which all of them stand.

    A figure without a value is listed to say that none was found: empty is not zero.
    """
    find = {"models": _models, "accelerators": _accelerators, "media": _media}[kind]
    rows = [row for row in find() if _holds(row, words)]
    if not rows:
        raise InputError(f"no row of {kind} holds {' '.join(words)!r}: try fewer words")
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(rows).decode())
        return
    (_print_models if kind == "models" else _print_figures)(rows)


def _print_models(rows: list[Row]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for column in list(rows[0])[:-1]:  # where a config was found is in the JSON
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in list(row.values())[:-1]))
    Console().print(table)


def _print_figures(rows: list[Row]) -> None:
    """A heading for each thing, below it a line for each figure: value, unit, origin, source, note."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console()
    heading = None
    for row in rows:
        name, *_ = row.values()
        if name != heading:
            heading = name
            console.print(Text(name, style="bold"))
        value = f"{row['value']} {row['unit']}" if row["value"] else "not known"
        conditions = f", {row['conditions']}" if row.get("conditions") else ""
        source = f"   [{row['origin']}: {row['source']}]" if row["source"] else ""
        note = f"; {row['note']}" if row["note"] else ""
        console.print(Padding(Text(f"{row['figure']} = {value}{conditions}{source}{note}"), (0, 0, 0, 2)))


def _models() -> Iterator[Row]:
    from warmset.model import growth_bytes_per_token, kv_layout, load_model, num_parameters, shipped_models
    from warmset.model.size import exact_number
    from warmset.units import format_count

    for shipped in shipped_models():
        spec = load_model(str(shipped.path))
        growth = exact_number(growth_bytes_per_token(spec, kv_layout("bf16")))
        yield {
            "model": shipped.model,
            "cache class": spec.cache_class,
            "layers": f"{spec.num_layers}",
            "parameters": format_count(num_parameters(spec)),
            "growth in bf16, bytes per token": f"{growth:,}",
            "source of the config": shipped.source,
        }


def _accelerators() -> Iterator[Row]:
    from warmset.catalog.tables import accelerator_rows

    for row in accelerator_rows():
        spread = "" if row.low is None or row.high is None else f" ({row.low:g} to {row.high:g})"
        yield {
            "accelerator": row.accelerator,
            "figure": row.field,
            "value": f"{row.value}{spread}",
            "unit": row.unit,
            "origin": row.origin or "unknown",
            "source": f"{row.source} {row.date}".strip(),
            "note": row.note,
        }


def _media() -> Iterator[Row]:
    from warmset.catalog.tables import medium_rows

    for row in medium_rows():
        yield {
            "medium": row.medium,
            "tier": row.tier,
            "figure": row.field,
            "value": "" if row.value is None else f"{row.value:g}",
            "unit": row.unit,
            "conditions": row.conditions,
            "origin": row.origin or "unknown",
            "source": f"{row.source} {row.date}".strip(),
            "note": row.note,
        }


def _holds(row: Row, words: tuple[str, ...]) -> bool:
    text = " ".join(row.values()).casefold()
    return all(word.casefold() in text for word in words)
