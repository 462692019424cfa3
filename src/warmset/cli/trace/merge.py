"""`warmset trace merge`: several traces as one."""

from pathlib import Path

import click

from warmset.cli.trace.options import block_tokens_option, out_options


@click.command("merge", short_help="Join traces on one clock.")
@click.argument("traces", nargs=-1, required=True)
@out_options
@click.option("--offset", "offsets", multiple=True, help="When each trace starts, as 0s; one for each.")
@block_tokens_option
def command(
    *,
    traces: tuple[str, ...],
    out: Path,
    force: bool,
    as_json: bool,
    offsets: tuple[str, ...],
    block_tokens: int | None,
) -> None:
    """Join TRACES: by the wall clock where all have it, otherwise all starting together.

    Prefixes that traces have in common are not matched: import their logs together for that.
    """
    from warmset.cli.trace.durations import milliseconds
    from warmset.cli.trace.output import check_target, save

    check_target(out, force=force)
    from warmset.trace import open_trace
    from warmset.trace.operations import merge_traces

    offsets_ms = [milliseconds(offset, "--offset") for offset in offsets] or None
    save(merge_traces([open_trace(name, block_tokens) for name in traces], offsets_ms), out, as_json=as_json)
