"""`warmset trace`: logs into traces, and what can be known of them and done with them."""

import click

from warmset.cli.lazy import LazyGroup

MODULES = {
    "import": "warmset.cli.trace.import_",
    "describe": "warmset.cli.trace.describe",
    "synth": "warmset.cli.trace.synth",
    "lint": "warmset.cli.trace.lint",
    "slice": "warmset.cli.trace.slice",
    "scale": "warmset.cli.trace.scale",
    "merge": "warmset.cli.trace.merge",
    "reblock": "warmset.cli.trace.reblock",
    "export": "warmset.cli.trace.export",
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
