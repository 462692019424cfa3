"""Options that the verbs of `warmset trace` share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

Command = Callable[..., Any]

seed_option = click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of what is drawn at random."
)
block_tokens_option = click.option(
    "--block-tokens", type=int, help="Tokens that one id of the log covers.  [default: the log's own]"
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def out_options(command: Command) -> Command:
    """`--out`, `--force` and `--json` of a verb that writes a trace."""
    for option in (
        json_option,
        click.option("--force", is_flag=True, help="Replace the file that is there."),
        click.option("--out", type=click.Path(path_type=Path), required=True, help="The .wst file to write."),
    ):
        command = option(command)
    return command
