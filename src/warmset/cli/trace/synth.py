"""`warmset trace synth`: traffic made up from published or assumed parameters."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warmset.errors import InputError

if TYPE_CHECKING:
    from warmset.trace.synth import Generator, Limits

DEFAULT_SEED = 1
_MOST_REQUESTS = 10**9


@click.command("synth", short_help="Generate traffic.")
@click.argument("generator", required=False)
@click.option("--preset", default="default", show_default=True, help="Named parameters; see --list.")
@click.option(
    "--set", "settings", multiple=True, metavar="NAME=VALUE", help="Set a parameter; may be given again."
)
@click.option(
    "--seed", type=int, default=DEFAULT_SEED, show_default=True, help="The same seed gives the same trace."
)
@click.option("--duration", help="Stop after so long, as 1h.  [default: the generator's]")
@click.option("--requests", "num_requests", type=int, help="Stop after so many requests.")
@click.option("--block-tokens", type=int, default=16, show_default=True, help="Tokens that one block covers.")
@click.option("--out", type=click.Path(path_type=Path), help="The .wst file to write.")
@click.option("--force", is_flag=True, help="Replace the file that is there.")
@click.option("--list", "list_all", is_flag=True, help="List generators and presets, and stop.")
@click.option(
    "--show-parameters", is_flag=True, help="Print each parameter and where its value is from, and stop."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    *,
    generator: str | None,
    preset: str,
    settings: tuple[str, ...],
    seed: int,
    duration: str | None,
    num_requests: int | None,
    block_tokens: int,
    out: Path | None,
    force: bool,
    list_all: bool,
    show_parameters: bool,
    as_json: bool,
) -> None:
    """Make up the traffic of GENERATOR and write it as a trace.

    Conversations are closed loops: the next request waits for the answer, and then for a person or a tool.
    How long an answer takes is assumed from a service rate. All parameters stand in the trace's provenance.
    """
    if list_all:
        _print_generators(as_json=as_json)
        return
    chosen = _configured(generator, preset, settings)
    if show_parameters:
        _print_parameters(chosen, preset, as_json=as_json)
        return
    if out is None:
        raise InputError("--out is missing: name the .wst file to write")
    if seed < 0:
        raise InputError(f"--seed {seed}: it must not be negative")
    import numpy as np

    from warmset.cli.trace.output import check_target, save
    from warmset.trace.synth import with_seed

    check_target(out, force=force)
    limits = _limits(chosen, duration, num_requests)
    trace = with_seed(chosen.generate(np.random.default_rng(seed), limits, block_tokens, preset), seed)
    save(trace, out, as_json=as_json)


def _configured(name: str | None, preset: str, settings: tuple[str, ...]) -> "Generator":
    import difflib

    from warmset.trace.synth import GENERATORS, configured

    if name is None:
        raise InputError(f"no generator given: {', '.join(GENERATORS)}")
    if name not in GENERATORS:
        close = difflib.get_close_matches(name, GENERATORS, n=1)
        ending = f"did you mean {close[0]}?" if close else f"there are {', '.join(GENERATORS)}"
        raise InputError(f"generator {name}: there is none of this name: {ending}")
    values: dict[str, str] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise InputError(f"--set {setting}: write NAME=VALUE")
        if key.strip() in values:
            raise InputError(f"--set {key.strip()}: given twice")
        values[key.strip()] = value
    return configured(GENERATORS[name], preset, values)


def _limits(generator: "Generator", duration: str | None, num_requests: int | None) -> "Limits":
    from warmset.trace.synth import Limits
    from warmset.units import parse_seconds

    if duration is None and num_requests is None:
        return generator.USUAL
    if num_requests is not None and not 1 <= num_requests <= _MOST_REQUESTS:
        raise InputError(f"--requests {num_requests}: it must be at least 1 and at most {_MOST_REQUESTS:,}")
    duration_ms = None if duration is None else round(1000 * parse_seconds(duration))
    if duration_ms is not None and duration_ms < 1:
        raise InputError(f"--duration {duration}: it must be at least 1ms")
    return Limits(num_requests, duration_ms)


def _print_generators(*, as_json: bool) -> None:
    from warmset.trace.synth import GENERATORS

    if as_json:
        _print_json(
            {
                name: {
                    "title": each.TITLE,
                    "presets": {preset: values.title for preset, values in each.PRESETS.items()},
                }
                for name, each in GENERATORS.items()
            }
        )
        return
    for name, each in GENERATORS.items():
        click.echo(f"{name}: {each.TITLE}")
        width = max(map(len, each.PRESETS))
        for preset, values in each.PRESETS.items():
            click.echo(f"  {preset:<{width}}  {values.title}")


def _print_parameters(generator: "Generator", preset: str, *, as_json: bool) -> None:
    from warmset.trace.synth import parameters

    rows = list(parameters(generator, preset))
    if as_json:
        _print_json(
            {
                "generator": generator.NAME,
                "preset": preset,
                "parameters": [row._asdict() for row in rows],
            }
        )
        return
    from rich.console import Console
    from rich.table import Table

    table = Table("parameter", "value", "basis", "meaning", title=f"{generator.NAME}, preset {preset}")
    for row in rows:
        basis = f"{row.basis} ({row.source})" if row.source else row.basis
        table.add_row(row.name, _text_of(row.value), basis, row.text)
    Console().print(table, highlight=False)


def _text_of(value: Any) -> str:  # noqa: ANN401 - whatever a parameter holds
    if isinstance(value, tuple):
        return ", ".join(f"{each:,g}" for each in value)
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,}" if isinstance(value, int | float) else str(value)


def _print_json(told: dict[str, Any]) -> None:
    import msgspec

    click.echo(msgspec.json.encode(told).decode())
