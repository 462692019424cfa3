"""Small logs with text, whose tokens can be counted by hand: a line is a block of 16 tokens."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from warmset.trace.lint import LintFinding, LintReport, lint_text
from warmset.trace.prompt import Prompt, pieces

BLOCK_TOKENS = 16
LINE = 64
"""Characters of a line, with its end: one block."""


def encode(prompt: Prompt) -> tuple[list[int], int]:
    """Texts of a prompt one after the other, a token for every four characters."""
    text = "".join(piece.text for piece in pieces(prompt))
    cuts = range(0, len(text), LINE)
    digests = (
        hashlib.blake2b(text[cut : cut + LINE].encode(), digest_size=8, key=b"test").digest() for cut in cuts
    )
    return [int.from_bytes(digest, "little", signed=True) for digest in digests], -(-len(text) // 4)


def line(start: str) -> str:
    """A line of one block that starts so."""
    assert len(start) < LINE
    return f"{start:.<{LINE - 1}}\n"


def lines(name: str, count: int) -> str:
    """So many different lines, the same for the same name."""
    return "".join(line(f"{name} {chr(ord('a') + number)}") for number in range(count))


def say(role: str, text: str, **more: object) -> dict[str, Any]:
    return {"role": role, "content": text, **more}


def tool(name: str, blocks: int, **more: object) -> dict[str, Any]:
    """A tool whose JSON is so many blocks long."""
    made = {"type": "function", "function": {"name": name, "description": "", **more}}
    missing = blocks * LINE - len(json.dumps(made, separators=(",", ":"), ensure_ascii=False))
    made["function"]["description"] = (f"does {name} " * LINE)[:missing]
    return made


def turns(count: int) -> list[dict[str, Any]]:
    """A conversation up to its user turn of this number: a line each."""
    messages = [say("user", lines("question one", 1))]
    for number in range(1, count):
        messages += [say("assistant", lines(f"answer {'abcdefg'[number]}", 1))]
        messages += [say("user", lines(f"question {'abcdefg'[number]}", 1))]
    return messages


def log(*prompts: Sequence[dict[str, Any]] | str, **common: Any) -> list[Prompt]:
    """One session, a prompt a second; lists of a `common` field go one to each prompt."""
    made = []
    for number, sent in enumerate(prompts):
        fields: dict[str, Any] = {"session": "one"}
        for name, value in common.items():
            fields[name] = value[number] if isinstance(value, tuple) else value
        fields |= {"text": sent} if isinstance(sent, str) else {"messages": list(sent)}
        made.append(Prompt(place=f"log:{number + 1}", arrival_ms=1000 * number, **fields))
    return made


def linted(prompts: Sequence[Prompt]) -> LintReport:
    return lint_text(lambda: iter(prompts), encode, BLOCK_TOKENS)


def only_finding(report: LintReport) -> LintFinding:
    (finding,) = report.findings
    return finding
