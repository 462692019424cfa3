"""Logs of ids or lengths only, read by a format whether or not it is among the detected ones."""

import importlib
import json
from pathlib import Path

import pytest

from warmset.errors import InputError
from warmset.trace import ReadOptions, Trace
from warmset.trace.readers import Detected
from warmset.trace.reading import Logs, finish
from warmset.trace.source import find_inputs
from warmset.trace.tally import Tally

DATA = Path(__file__).parents[1] / "data" / "traces"
FORMATS = ("mooncake", "bailian", "kvcache_ai", "dynamo", "baseten", "azure", "burstgpt", "lmcache_lookup")


def format_of(name: str):
    """The module of a format."""
    return importlib.import_module(f"warmset.trace.readers.{name}")


def read_log(name: str, *paths: Path, **options: object) -> Trace:
    """The trace of these files."""
    choices = ReadOptions(**options)
    inputs = find_inputs([str(path) for path in paths])
    tally = Tally(choices.bad_share)
    module = format_of(name)
    logs = Logs(inputs, Detected(name, module), tally, str(paths[0]))
    return finish(module.read(inputs, choices, tally), logs)


def findings(trace: Trace) -> dict[str, tuple[int, str]]:
    """How often and where first something odd was found."""
    return {finding.code: (finding.count, finding.first_example) for finding in trace.findings}


def refusal(name: str, *paths: Path, **options: object) -> str:
    """The one line that refuses these files, without the name of the first."""
    with pytest.raises(InputError) as caught:
        read_log(name, *paths, **options)
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 700
    return text.removeprefix(str(paths[0]))


def write_lines(path: Path, *rows: object) -> Path:
    """One JSON text or raw line a line."""
    texts = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


def is_matched_by(path: Path) -> list[str]:
    """The formats that take a file for their own."""
    (source,) = find_inputs([str(path)])
    head = source.head()
    return [name for name in FORMATS if format_of(name).matches(head)]
