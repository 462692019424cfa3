"""From names of files to a lint report: text where the format has it, ids and lengths where not."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from warmset.errors import Finding, TraceFormatError
from warmset.trace.encode import CharacterEncoder, Encoder, TokenizerEncoder
from warmset.trace.lint.findings import LintReport
from warmset.trace.lint.ids import lint_ids, structure_findings
from warmset.trace.lint.text import lint_text
from warmset.trace.lint.worth import Int64s
from warmset.trace.options import DEFAULT_TEXT_BLOCK_TOKENS, ReadOptions
from warmset.trace.prompt import Prompt
from warmset.trace.readers import Prompts
from warmset.trace.reading import Logs, find_logs, finish
from warmset.trace.tally import Tally
from warmset.trace.text_reading import first_prompts, has_text, measured_ratio


class Linted(NamedTuple):
    """A report, and what the reader counted on the way."""

    report: LintReport
    notes: tuple[Finding, ...]


def lint_logs(names: Sequence[str | Path], format_name: str | None, options: ReadOptions) -> Linted:
    """Lint logs of one format, given as files, folders, patterns or `-`.

    Raises: InputError or TraceFormatError in one line where something cannot be used.
    """
    logs = find_logs(names, format_name, options.bad_share)
    prompts = logs.found.prompts()
    if prompts is None or not _has_any_text(logs, prompts):
        trace = finish(logs.found.format.read(logs.inputs, options, logs.tally), logs)
        return Linted(lint_ids(trace), trace.findings)
    block_tokens = options.block_tokens or DEFAULT_TEXT_BLOCK_TOKENS
    encoder, assumption = _encoder(_pass(logs, prompts, Tally(bad_share=1)), options, block_tokens)

    def encode(prompt: Prompt) -> tuple[Int64s, int]:
        encoded = encoder.encode(prompt)
        return encoded.ids, encoded.input_tokens

    tallies = [logs.tally]

    def read() -> Iterator[Prompt]:
        tally = tallies.pop() if tallies else Tally(bad_share=1)
        return _pass(logs, prompts, tally)

    report = lint_text(read, encode, block_tokens, logs.name, assumption, structure_findings)
    return Linted(report, tuple(logs.tally.findings()))


def _has_any_text(logs: Logs, prompts: Prompts) -> bool:
    return any(has_text(prompt) for source in logs.inputs for prompt in prompts(source, Tally(bad_share=1)))


def _pass(logs: Logs, prompts: Prompts, tally: Tally) -> Iterator[Prompt]:
    """All prompts of all files once; what has neither text nor a length is dropped.

    Raises: TraceFormatError at the end where too many rows were bad, or there were no prompts.
    """
    num_prompts = 0
    for source in logs.inputs:
        for prompt in prompts(source, tally):
            if not has_text(prompt) and prompt.input_tokens is None:
                tally.drop(prompt.place, "holds neither the text of a prompt nor a count of its tokens")
                continue
            num_prompts += 1
            yield prompt
    tally.check()
    if not num_prompts:
        raise TraceFormatError(f"{logs.name}: holds no requests")


def _encoder(
    prompts: Iterator[Prompt], options: ReadOptions, block_tokens: int
) -> tuple[Encoder, tuple[str, ...]]:
    """What cuts the text as an import of the log would, and what it assumes."""
    tally = Tally(bad_share=1)
    if options.tokenizer is not None:
        tokenizer = TokenizerEncoder(options.tokenizer, block_tokens, options.hash_key, tally)
        return tokenizer, ()
    if options.chars_per_token is not None:
        figure = options.chars_per_token
        assumption = f"Tokens are counted at {figure:g} characters each, as given."
    else:
        figure, assumption = measured_ratio(list(first_prompts(prompts)), tally)
    return CharacterEncoder(figure, block_tokens, options.hash_key), (assumption,)
