"""The command line: one file per verb, imported only when it is called."""

import sys
import traceback
from typing import Any

import click

import warmset
from warmset.cli.lazy import LazyGroup
from warmset.errors import WarmsetError

MODULES = {
    "evaluate": "warmset.cli.evaluate",
    "curve": "warmset.cli.curve",
    "size": "warmset.cli.size",
    "catalog": "warmset.cli.catalog",
    "trace": "warmset.cli.trace",
}


@click.group(
    cls=LazyGroup,
    modules=MODULES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(warmset.__version__, "--version", prog_name="warmset")
@click.option("--traceback", "_", is_flag=True, help="Show where an error was raised.")
def group(*, _: bool) -> None:
    """Decide on, size and prove a tiered KV cache for LLM inference.

    Results go to stdout, progress and notes to stderr. Exit codes: 0 ok, 1 a bug of ours, 2 bad input,
    3 it does not fit.
    """


def main(args: list[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    words = (sys.argv[1:] if args is None else args) or ["--help"]
    # `--traceback` is accepted anywhere, as people add it at the end of what just failed.
    wants_traceback = "--traceback" in words
    words = [word for word in words if word != "--traceback"]
    sys.exit(_run(words, wants_traceback=wants_traceback))


def _run(words: list[str], *, wants_traceback: bool) -> int:
    try:
        outcome: Any = group.main(words, prog_name="warmset", standalone_mode=False)
    except click.exceptions.Abort:
        click.echo("warmset: stopped", err=True)
        return 130
    except click.ClickException as error:
        return _tell(error.format_message(), 2, wants_traceback=wants_traceback)
    except WarmsetError as error:
        return _tell(str(error), error.exit_code, wants_traceback=wants_traceback)
    except SystemExit:
        # How click and rich leave when whoever read our output has seen enough and closed the pipe.
        return 0
    except Exception as error:  # noqa: BLE001 - the outermost frame: whatever it is, one line and a code
        text = f"a bug of ours: {type(error).__name__}: {error} (try --traceback)"
        return _tell(text, 1, wants_traceback=wants_traceback)
    return outcome if isinstance(outcome, int) else 0


def _tell(text: str, exit_code: int, *, wants_traceback: bool) -> int:
    """Say in one line what went wrong, below where it was raised if that was asked for."""
    if wants_traceback:
        traceback.print_exc()
    click.echo(f"warmset: {' '.join(text.split())}", err=True)
    return exit_code
