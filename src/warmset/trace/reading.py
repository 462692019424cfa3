"""From names of files to a `Trace`: which logs, which format, and what ties them together."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from warmset.errors import TraceFormatError
from warmset.trace.builder import TraceBuilder
from warmset.trace.forest import Provenance, Trace
from warmset.trace.options import ReadOptions
from warmset.trace.readers import Detected, detect, format_named
from warmset.trace.source import Input, find_inputs
from warmset.trace.tally import Tally

DEFAULT = ReadOptions()


class Logs(NamedTuple):
    """Logs of one format, the empty ones left out and counted in the tally."""

    inputs: list[Input]
    found: Detected
    tally: Tally
    name: str


def read_trace(
    names: Sequence[str | Path],
    format_name: str | None = None,
    options: ReadOptions = DEFAULT,
    provenance: Provenance | None = None,
) -> Trace:
    """Read logs of one format, given as files, folders, patterns or `-`, into one trace.

    Raises: InputError or TraceFormatError in one line where something cannot be used.
    """
    logs = find_logs(names, format_name, options.bad_share)
    return finish(logs.found.format.read(logs.inputs, options, logs.tally), logs, provenance)


def find_logs(names: Sequence[str | Path], format_name: str | None, bad_share: float) -> Logs:
    """The logs that the names stand for, and their one format.

    Raises: InputError where a name stands for nothing; TraceFormatError where no format fits, formats differ
    or all logs are empty.
    """
    inputs = find_inputs([str(name) for name in names])
    tally = Tally(bad_share)
    forced = None if format_name is None else format_named(format_name)
    kept: list[tuple[Input, Detected]] = []
    for source in inputs:
        head = source.head()  # one at a time: hundreds of files have hundreds of starts
        if not head.start.strip():
            tally.note("empty_files", source.label)
            continue
        kept.append((source, forced or detect(source.label, head)))
        (first, first_found), (_, found) = kept[0], kept[-1]
        if found.name != first_found.name:
            raise TraceFormatError(
                f"{source.label}: is {found.name}, but {first.label} is {first_found.name}: "
                "import them apart, then warmset trace merge"
            )
    if not kept:
        raise TraceFormatError(f"{inputs[0].label}: holds no requests")
    return Logs([source for source, _ in kept], kept[0][1], tally, _name_of(inputs))


def finish(builder: TraceBuilder, logs: Logs, provenance: Provenance | None = None) -> Trace:
    """The trace of what was read.

    Raises: TraceFormatError where the logs hold no requests or too many bad rows.
    """
    builder.tally.check()
    if not builder.num_requests:
        place = logs.inputs[0].label if len(logs.inputs) == 1 else logs.name
        raise TraceFormatError(f"{place}: holds no requests")
    named = provenance or Provenance(name=logs.name)
    return builder.build(replace(named, source=named.source or logs.found.format.TITLE))


def _name_of(inputs: Sequence[Input]) -> str:
    first = inputs[0]
    if len(inputs) == 1:
        return first.label if first.is_stdin else first.path.name
    return f"{first.path.parent.name or '.'}: {len(inputs)} files"
