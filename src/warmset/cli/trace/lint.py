"""`warmset trace lint`: what keeps traffic from re-using more, and what mending it is worth."""

import secrets
from pathlib import Path
from typing import TYPE_CHECKING

import click

from warmset.errors import InputError

if TYPE_CHECKING:
    from warmset.errors import Finding
    from warmset.trace import ReadOptions
    from warmset.trace.lint import LintFinding, LintReport


@click.command("lint", short_help="Find what breaks prefixes, and what mending it is worth.")
@click.argument("inputs", nargs=-1, metavar="TRACE|LOG...")
@click.option("--format", "format_name", help="Take the logs for this format; without, told by content.")
@click.option("--block-tokens", type=int, help="Tokens that one id covers, or that text is cut into.")
@click.option(
    "--tokenizer",
    type=click.Path(path_type=Path),
    help="tokenizer.json, or a model folder with one; its chat template is used where it has one.",
)
@click.option(
    "--chars-per-token",
    type=float,
    help="For text without a tokenizer.  [default: measured on rows with usage, else 4, assumed]",
)
@click.option(
    "--max-bad-rows",
    "bad_share",
    type=float,
    default=0.01,
    show_default=True,
    help="Share of rows that may be unusable before reading fails.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(
    *,
    inputs: tuple[str, ...],
    format_name: str | None,
    block_tokens: int | None,
    tokenizer: Path | None,
    chars_per_token: float | None,
    bad_share: float,
    as_json: bool,
) -> None:
    """Find what breaks prefixes in a .wst, in `mooncake-conversation`, or in logs (files, folders, -).

    A log with text is read several times: as it is, and with each cause mended in every prompt (a clock moved
    to the end, tools sorted, history left as it was sent), which gives what mending is worth in token hit
    rate. A trace without text shows breaks by their ids, and copies, forks, compactions and odd clocks.
    Findings are no errors: the exit code is 0. Nothing that is printed holds text of a prompt.
    """
    if not inputs:
        raise InputError("no log given: name a .wst, mooncake-conversation, files, folders, or - for stdin")
    from warmset.trace import ReadOptions

    options = ReadOptions(
        block_tokens=block_tokens,
        chars_per_token=chars_per_token,
        tokenizer=tokenizer,
        hash_key=secrets.token_bytes(32),
        bad_share=bad_share,
    )
    report, notes = _linted(inputs, format_name, options)
    if as_json:
        import msgspec

        from warmset.trace.lint import as_json as plain

        click.echo(msgspec.json.encode(plain(report)).decode())
        return
    for note in notes:
        click.echo(f"note: {note.code}: {note.count:,} ({note.first_example})", err=True)
    for assumption in report.assumptions:
        click.echo(f"assumed: {assumption}", err=True)
    _print(report)


def _linted(
    inputs: tuple[str, ...], format_name: str | None, options: "ReadOptions"
) -> "tuple[LintReport, tuple[Finding, ...]]":
    from warmset.trace.lint import lint_ids
    from warmset.trace.lint.logs import lint_logs
    from warmset.trace.sample import SAMPLE_NAME, open_trace
    from warmset.trace.source import STDIN
    from warmset.trace.wst import starts_like_wst

    first = inputs[0]
    if len(inputs) == 1 and (first == SAMPLE_NAME or (first != STDIN and starts_like_wst(Path(first)))):
        trace = open_trace(first, options.block_tokens)
        return lint_ids(trace), trace.findings
    return lint_logs(inputs, format_name, options)


# --- tables ----------------------------------------------------------------------------------------


def _print(report: "LintReport") -> None:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=False)
    console.print(
        f"{report.name}: {report.num_requests:,} requests, {report.before.input_tokens:,} input tokens",
        markup=False,
    )
    console.print(_verdict(report), markup=False)
    if report.findings:
        console.print(_table(report))
        for number, finding in enumerate(report.findings, start=1):
            console.print(_detail(number, finding), markup=False)
    for sentence in _misses(report):
        console.print(sentence, markup=False)
    console.print(f"Baseline: {report.baseline}.", markup=False)


def _verdict(report: "LintReport") -> str:
    ratio = report.before.token_hit_ratio
    before = _percent(ratio)
    if report.after_all is not None:
        fixes = "all fixes together" if report.reads_text else "no break inside conversations"
        return f"Token hit rate {before}; with {fixes} {_percent(report.after_all.token_hit_ratio)}."
    if ratio is None or not report.misses:
        return "The log has lengths and times only, or none: what prompts share is not in it."
    if report.breaks:
        return f"Token hit rate {before}; no fix was measured."
    new = _percent(1 - ratio)
    if not report.sees_turns:
        return (
            f"{before} of tokens are re-used; {new} are not, and as the log names no conversations, new text "
            "cannot be told from breaks."
        )
    return f"No break found: {before} of tokens are re-used, {new} is new text."


def _table(report: "LintReport") -> object:
    """One row a finding; columns that would be empty are left out."""
    from rich.table import Table

    rows = [_cells(number, finding) for number, finding in enumerate(report.findings, start=1)]
    used = [name for name in rows[0] if any(row[name] for row in rows)]
    table = Table()
    for name in used:
        table.add_column("" if name == "number" else name, justify="left" if name in _WORDS else "right")
    for row in rows:
        table.add_row(*(row[name] for name in used))
    return table


_WORDS = {"finding", "where"}


def _cells(number: int, finding: "LintFinding") -> dict[str, str]:
    from warmset.trace.lint.advice import TITLES

    counted = "" if finding.counted == "requests" else f" {finding.counted}"
    return {
        "number": str(number),
        "finding": TITLES[finding.code],
        "where": finding.role or "",
        "count": f"{finding.count:,} of {finding.num_total:,}{counted}",
        "depth": "" if finding.depth_share is None else _percent(finding.depth_share, digits=0),
        "sent again": f"{finding.lost_tokens:,}" if finding.lost_tokens else "",
        "gain": "" if finding.gain_ratio is None else f"{100 * finding.gain_ratio:+.2f} pt",
    }


def _detail(number: int, finding: "LintFinding") -> str:
    parts = [f"{number}. {finding.code} ({finding.confidence}): {finding.example}."]
    if finding.behind_requests:
        parts.append(f"Behind another break in {finding.behind_requests:,} of {finding.count:,}.")
    if finding.between_sessions_requests:
        parts.append(f"Between sessions in {finding.between_sessions_requests:,} of {finding.count:,}.")
    parts.append(finding.mend)
    if finding.fix is not None:
        parts.append(f"Gain {finding.origin}: {finding.fix}.")
    if finding.baseline is not None and finding.before is not None:
        before = _percent(finding.before.token_hit_ratio)
        parts.append(f"It adds to {before}, a rate of its own: {finding.baseline}.")
    return " ".join(parts)


def _misses(report: "LintReport") -> list[str]:
    from warmset.trace.lint.findings import MISS_TITLES

    total = sum(share.miss_tokens for share in report.misses)
    if not total:
        return []
    sentences = [f"Misses: {total:,} tokens, of which"]
    sentences += [
        f"  {_percent(share.miss_tokens / total):>8}  {MISS_TITLES[share.code]}" for share in report.misses
    ]
    if report.reads_text and report.unexplained_share is not None:
        sentences.append(f"No fix explains {_percent(report.unexplained_share)} of the misses.")
    return sentences


def _percent(ratio: float | None, digits: int = 1) -> str:
    return "n/a" if ratio is None else f"{100 * ratio:.{digits}f} %"
