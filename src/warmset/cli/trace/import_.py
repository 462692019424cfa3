"""`warmset trace import`: logs of any known format into one `.wst`."""

import math
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import click

from warmset.errors import InputError

if TYPE_CHECKING:
    from warmset.trace import ReadOptions, Trace


@click.command("import", short_help="Read request logs into a .wst trace.")
@click.argument("inputs", nargs=-1, metavar="IN...")
@click.option("--out", type=click.Path(path_type=Path), help="The .wst file to write.")
@click.option("--force", is_flag=True, help="Replace the file that is there.")
@click.option("--format", "format_name", help="Take the logs for this format; without, told by content.")
@click.option("--formats", "list_formats", is_flag=True, help="List the formats and stop.")
@click.option("--block-tokens", type=int, help="Tokens that one id covers, or that text is cut into.")
@click.option(
    "--tokenizer",
    type=click.Path(path_type=Path),
    help="tokenizer.json, or a model folder with one; its chat template is used where it has one.",
)
@click.option(
    "--chars-per-token",
    type=float,
    help="For text without a tokenizer.  [default: measured on rows with usage, else 4, assumed]",
)
@click.option(
    "--session-gap",
    "session_gap_s",
    type=float,
    default=60.0,
    show_default=True,
    help="Seconds between starts of sessions that share no clock.",
)
@click.option(
    "--max-bad-rows",
    "bad_share",
    type=float,
    default=0.01,
    show_default=True,
    help="Share of rows that may be unusable before the import fails.",
)
@click.option("--ray", "on_ray", is_flag=True, help="Import on a Ray cluster that is there, a part a file.")
@click.option("--ray-address", help="The cluster, HOST:PORT.  [default: the one that this machine is in]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    *,
    inputs: tuple[str, ...],
    out: Path | None,
    format_name: str | None,
    block_tokens: int | None,
    tokenizer: Path | None,
    chars_per_token: float | None,
    session_gap_s: float,
    bad_share: float,
    on_ray: bool,
    ray_address: str | None,
    force: bool,
    list_formats: bool,
    as_json: bool,
) -> None:
    """Read IN (files, folders, patterns, - for stdin; plain, .gz or .zst) of one format into one trace.

    No text is kept: prompts become numbers of distinct blocks, told apart by hashes under a secret that is
    made for this import and kept nowhere. Rows that cannot be used are counted, and too many fail the import.
    """
    if list_formats:
        _print_formats()
        return
    if not inputs:
        raise InputError("no log given: name files, folders, patterns, or - for stdin")
    if out is None:
        raise InputError("--out is missing: name the .wst file to write")
    from warmset.cli.trace.output import check_target, save
    from warmset.trace import ReadOptions

    check_target(out, force=force, inputs=inputs)
    if not math.isfinite(session_gap_s):
        raise InputError(f"--session-gap {session_gap_s}: it must be a number of seconds")
    options = ReadOptions(
        block_tokens=block_tokens,
        chars_per_token=chars_per_token,
        tokenizer=tokenizer,
        hash_key=secrets.token_bytes(32),
        session_gap_ms=round(1000 * session_gap_s),
        bad_share=bad_share,
    )
    address = "auto" if ray_address is None and on_ray else ray_address
    trace = _read(inputs, format_name, options, address)
    save(trace, out, as_json=as_json)


def _read(
    inputs: tuple[str, ...], format_name: str | None, options: "ReadOptions", ray_address: str | None
) -> "Trace":
    if ray_address is None:
        from warmset.trace import read_trace

        return read_trace(inputs, format_name, options)
    from warmset.cli.trace.ray_import import read_on_ray

    return read_on_ray(inputs, format_name, options, ray_address)


def _print_formats() -> None:
    from warmset.trace.readers import FORMATS, format_named

    width = max(len(name) for name in FORMATS)
    for name in FORMATS:
        click.echo(f"{name:<{width}}  {format_named(name).format.TITLE}")
