"""One file per format of request logs, and how a log's format is told."""

import importlib
import reprlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from warmset.errors import InputError, TraceFormatError
from warmset.trace.builder import TraceBuilder
from warmset.trace.options import ReadOptions
from warmset.trace.prompt import Prompt
from warmset.trace.source import Head, Input
from warmset.trace.tally import Tally

Matches = Callable[[Head], bool]
Read = Callable[[Sequence[Input], ReadOptions, Tally], TraceBuilder]
Prompts = Callable[[Input, Tally], Iterator[Prompt]]


class Format(Protocol):
    """What the module of a format holds."""

    TITLE: str
    """What it is, in a few words, for `--help` and messages."""
    matches: Matches
    """Whether a file that starts like this is of the format; formats exclude one another."""
    read: Read
    """All files of an import into one builder. Bad rows are dropped into the tally, with their place."""


@dataclass(frozen=True, slots=True)
class Detected:
    """The format of a log, by name."""

    name: str
    format: Format

    def prompts(self) -> Prompts | None:
        """The format's iterator over requests with text; `None` where it has no text."""
        found: Prompts | None = getattr(self.format, "prompts", None)
        return found


FORMATS = (
    "mooncake",
    "bailian",
    "kvcache_ai",
    "dynamo",
    "baseten",
    "weka",
    "lmcache_lookup",
    "kv_events",
    "azure",
    "burstgpt",
    "otel",
    "litellm",
    "aiperf_text",
    "lmcache_agent",
    "gateway",
    "tracelab",
    "claude_code",
    "openclaw",
)
"""Modules of this folder, the more particular before the more general."""


def format_named(name: str) -> Detected:
    """The format that `--format` names.

    Raises: InputError for a name that is not one.
    """
    if name not in FORMATS:
        raise InputError(f"--format {name}: it must be one of {', '.join(FORMATS)}")
    module: Format = importlib.import_module(f"warmset.trace.readers.{name}")
    return Detected(name, module)


def detect(label: str, head: Head) -> Detected:
    """The format of a log, from its content.

    Raises: TraceFormatError with what the file starts with, where no format fits.
    """
    for name in FORMATS:
        found = format_named(name)
        if found.format.matches(head):
            return found
    raise TraceFormatError(f"{label}: {_unknown(head)}; --format takes one of {', '.join(FORMATS)}")


def _unknown(head: Head) -> str:
    if b"\0" in head.start[:4096]:
        return "a binary file, and no request log that is known"
    if head.rows:
        fields = ", ".join(list(head.rows[0])[:12])
        return f"rows with the fields {reprlib.repr(fields)} are no request log that is known"
    return "is no request log that is known"
