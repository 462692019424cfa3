"""Groups of verbs that are imported when they are called, so that `--help` stays light."""

import importlib
from collections.abc import Mapping
from typing import Any

import click


class LazyGroup(click.Group):
    """A group whose verbs are modules, each with a `command`."""

    def __init__(self, *args: Any, modules: Mapping[str, str], **options: Any) -> None:  # noqa: ANN401 - click's
        super().__init__(*args, **options)
        self._modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which a user needs them."""
        del ctx
        return list(self._modules)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The verb's own `command`, or none: click then says what it did not understand."""
        del ctx
        if cmd_name not in self._modules:
            return None
        command: click.Command = importlib.import_module(self._modules[cmd_name]).command
        return command
