"""The product's own assumptions: what a scenario that says nothing gets, with the reason."""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

import msgspec

from warmset.facts import Fact


def default(name: str) -> Fact:
    """One assumption by its name in `defaults.toml`.

    Raises: KeyError when there is none, which is a bug of ours and not a user's mistake.

    >>> default("block_tokens").value
    16.0
    """
    return defaults()[name]


@cache
def defaults() -> Mapping[str, Fact]:
    """Every assumption, in the order of the file."""
    text = files(__package__).joinpath("defaults.toml").read_text(encoding="utf-8")
    return MappingProxyType(msgspec.toml.decode(text, type=dict[str, Fact]))
