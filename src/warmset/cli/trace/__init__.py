"""`warmset trace`: logs into traces, and what can be known of them and done with them."""

import click

from warmset.cli.lazy import LazyGroup

MODULES = {
    "import": "warmset.cli.trace.import_",
    "lint": "warmset.cli.trace.lint",
}


@click.group(
    "trace",
    cls=LazyGroup,
    modules=MODULES,
    short_help="Read, describe, lint, generate, cut and export traffic.",
)
def command() -> None:
    """Request logs of any known format, and the traces that they become.

    A TRACE is a .wst file, a log that `import` reads, or `mooncake-conversation`, which ships.
    """
