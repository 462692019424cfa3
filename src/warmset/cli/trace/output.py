"""What every verb that makes a trace does with it: write it, and say in a few lines what it is."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warmset.errors import Finding, InputError

if TYPE_CHECKING:
    from warmset.trace import Trace


def check_target(path: Path, *, force: bool, inputs: Sequence[str] = ()) -> None:
    """Refuse a file that is there, before work is spent on it; and, `force` or not, one of the inputs.

    Raises: InputError where the file must not be written, or its folder is not there.
    """
    try:
        is_folder, is_there, has_folder = path.is_dir(), path.exists(), path.parent.is_dir()
    except OSError as error:
        raise InputError(f"--out {path!s:.100}: cannot be written: {error.strerror or error}") from error
    if is_folder:
        raise InputError(f"--out {path}: is a folder: name a file in it")
    if is_there and not force:
        raise InputError(f"--out {path}: is there already: give another name, or --force to replace it")
    if is_there and any(Path(name).is_file() and path.samefile(name) for name in inputs):
        raise InputError(f"--out {path}: is one of the logs to read: give another name")
    if not has_folder:
        raise InputError(f"--out {path}: there is no folder {path.parent}")


def summary_of(trace: "Trace") -> dict[str, Any]:
    """What a trace is, in a few numbers; what its log does not say is `None`."""
    return {
        "name": trace.provenance.name,
        "source": trace.provenance.source,
        "requests": trace.num_requests,
        "span_ms": trace.span_ms,
        "block_tokens": trace.block_tokens,
        "block_refs": trace.block_refs if trace.has_blocks else None,
        "unique_blocks": trace.num_nodes if trace.has_blocks else None,
        "input_tokens": int(trace.input_tokens.sum()),
        "output_tokens": int(trace.output_tokens.sum()),
        "sessions": None if trace.session is None else int(trace.session.max()) + 1,
        "assumptions": list(trace.provenance.assumptions),
        "findings": [
            {"code": finding.code, "count": finding.count, "first_example": finding.first_example}
            for finding in trace.findings
        ],
    }


def save(trace: "Trace", path: Path, *, as_json: bool, more: Mapping[str, Any] | None = None) -> None:
    """Write a trace, and say what it is: numbers on stdout, what was odd or assumed on stderr.

    As JSON all goes to stdout, `more` with it.
    """
    from warmset.trace import write_wst

    write_wst(trace, path)
    summary = {"out": str(path), **summary_of(trace), **(more or {})}
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(summary).decode())
        return
    from warmset.units import format_seconds

    shared = (
        f"{trace.block_refs:,} references to {trace.num_nodes:,} distinct blocks "
        f"of {trace.block_tokens} tokens"
        if trace.has_blocks
        else "lengths only: what prompts share is not in the log"
    )
    sessions = "" if summary["sessions"] is None else f" in {summary['sessions']:,} sessions"
    click.echo(
        f"{path}: {trace.num_requests:,} requests{sessions} over {format_seconds(trace.span_ms / 1000)}, "
        f"{summary['input_tokens']:,} input and {summary['output_tokens']:,} output tokens; {shared}"
    )
    print_notes(trace.findings, trace.provenance.assumptions)


def print_notes(findings: Sequence[Finding], assumptions: Sequence[str] = ()) -> None:
    """What was odd and what was assumed, on stderr."""
    for assumption in assumptions:
        click.echo(f"assumed: {assumption}", err=True)
    for finding in findings:
        click.echo(f"note: {finding.code}: {finding.count:,} ({finding.first_example})", err=True)
