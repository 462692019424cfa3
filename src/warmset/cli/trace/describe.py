"""`warmset trace describe`: what a trace holds, in numbers with their definitions."""

from typing import TYPE_CHECKING

import click

from warmset.cli.trace.options import block_tokens_option, json_option

if TYPE_CHECKING:
    from warmset.reuse.describe import Description


@click.command("describe", short_help="Count what a trace holds: lengths, arrivals, reuse, sessions.")
@click.argument("trace")
@block_tokens_option
@click.option(
    "--active-window",
    default="5min",
    show_default=True,
    metavar="SECONDS",
    help="A session with a request in the last 300 (or 5min) is active; an open one without is dormant.",
)
@json_option
def command(trace: str, block_tokens: int | None, active_window: str, *, as_json: bool) -> None:
    """Lengths, arrivals, reuse, popularity, working sets and sessions of TRACE.

    TRACE is a .wst, a log, or `mooncake-conversation`. What it does not tell is n/a, with the reason. Hits
    are those of a cache that never evicts; `warmset curve` has them at every capacity.
    """
    from warmset.cli.trace.durations import milliseconds

    active_window_s = milliseconds(active_window, "--active-window") / 1000  # before a large trace is read
    from warmset.reuse.describe import describe
    from warmset.trace import open_trace

    described = describe(open_trace(trace, block_tokens), active_window_s)
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(described).decode())
        return
    _print(trace, described)


def _print(name: str, described: "Description") -> None:
    from warmset.cli.trace.describe_tables import print_tables
    from warmset.cli.trace.output import print_notes

    print_tables(name, described)
    print_notes(described.findings, described.assumptions)
