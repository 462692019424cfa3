"""`warmset trace export`: a trace in the format of another tool."""

import sys
from pathlib import Path

import click

from warmset.cli.trace.options import block_tokens_option, json_option

_STDOUT = "-"


@click.command("export", short_help="Write a trace in the format of another tool.")
@click.argument("trace")
@click.option("--to", "target", required=True, help="mooncake, bailian, aiperf or kvcache-simulator.")
@click.option("--out", default=_STDOUT, help="The file, .gz or .zst by its name.  [default: stdout]")
@click.option("--force", is_flag=True, help="Replace the file that is there.")
@click.option(
    "--closed-loop",
    is_flag=True,
    help="For aiperf: turns of a session wait for the answer before them, and have no time of their own.",
)
@block_tokens_option
@json_option
def command(
    *,
    trace: str,
    target: str,
    out: str,
    force: bool,
    closed_loop: bool,
    block_tokens: int | None,
    as_json: bool,
) -> None:
    """Write TRACE as JSON lines. Block ids are its own numbers; read again, it gives the same trace.

    What the format has no field for is named on stderr.
    """
    from warmset.cli.trace.output import check_target

    path = None if out == _STDOUT else Path(out)
    if path is not None:
        check_target(path, force=force)
    from warmset.trace import open_trace
    from warmset.trace.writers import export_trace

    opened = open_trace(trace, block_tokens)
    written = export_trace(opened, target, path, sys.stdout.buffer, closed_loop=closed_loop)
    if as_json:
        import msgspec

        result = {
            "out": out,
            "rows": written.num_rows,
            "left_out": written.left_out,
            "hints": written.hints,
        }
        click.echo(msgspec.json.encode(result).decode(), err=path is None)
        return
    if path is not None:
        click.echo(f"{path}: {written.num_rows:,} rows of {target}")
    notes = (f"{target} has no field for {', '.join(written.left_out)}",) if written.left_out else ()
    if notes or written.hints:
        click.echo(f"note: {'; '.join((*notes, *written.hints))}", err=True)
