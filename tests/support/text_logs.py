"""Logs with text: read by a named format, and a request in two turns whose blocks were counted by hand."""

import importlib
import json
from pathlib import Path
from typing import Any

from warmset.trace import ReadOptions, Trace
from warmset.trace.prompt import Prompt
from warmset.trace.readers import Detected, Format
from warmset.trace.reading import Logs, finish
from warmset.trace.source import Input
from warmset.trace.tally import DEFAULT_BAD_SHARE, Tally

DATA = Path(__file__).parents[1] / "data" / "traces"
TEXT_FORMATS = ("gateway", "litellm", "otel", "lmcache_agent", "aiperf_text")

# As plain text, without a template: "system\nbe brief\nuser\nhello\n", 27 characters, and 23 more for the
# second: "assistant\nhi\nuser\nmore\n". In blocks of 8 characters: 4 and 7, of which they share 3.
FIRST = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}]
SECOND = [*FIRST, {"role": "assistant", "content": "hi"}, {"role": "user", "content": "more"}]
FIRST_CHARACTERS, SECOND_CHARACTERS = 27, 50
BLOCK_TOKENS = 8
NUM_BLOCKS = [4, 7]
NUM_NODES = 8
BY_CHARACTER = ReadOptions(block_tokens=BLOCK_TOKENS, chars_per_token=1, hash_key=b"key of this import")


def format_module(name: str) -> Format:
    module: Format = importlib.import_module(f"warmset.trace.readers.{name}")
    return module


def read_log(
    name: str, *paths: Path, options: ReadOptions = BY_CHARACTER, bad_share: float = DEFAULT_BAD_SHARE
) -> Trace:
    """Files read by one format, whatever they look like."""
    tally = Tally(bad_share)
    inputs = [Input(path) for path in paths]
    logs = Logs(inputs, Detected(name, format_module(name)), tally, "a log")
    return finish(logs.found.format.read(inputs, options, tally), logs)


def prompts_in(name: str, path: Path) -> tuple[list[Prompt], Tally]:
    tally = Tally()
    prompts = Detected(name, format_module(name)).prompts()
    assert prompts is not None
    return list(prompts(Input(path), tally)), tally


def detected(path: Path) -> list[str]:
    """Every format with text that takes a file for its own."""
    head = Input(path).head()
    return [name for name in TEXT_FORMATS if format_module(name).matches(head)]


def counts(trace_or_tally: Trace | Tally) -> dict[str, int]:
    findings = trace_or_tally.findings() if isinstance(trace_or_tally, Tally) else trace_or_tally.findings
    return {finding.code: finding.count for finding in findings}


def write_lines(path: Path, *rows: Any) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path
