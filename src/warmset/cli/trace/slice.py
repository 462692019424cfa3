"""`warmset trace slice`: part of a trace."""

from pathlib import Path

import click

from warmset.cli.trace.options import block_tokens_option, out_options, seed_option


@click.command("slice", short_help="Keep part of a trace: a time, sessions, kinds, models.")
@click.argument("trace")
@out_options
@click.option("--from", "since", default="0s", show_default=True, help="Since the first arrival, as 10min.")
@click.option("--to", "until", help="The first moment that is left out, as 1h; seconds without a unit.")
@click.option("--sessions", "num_sessions", type=int, help="So many sessions, drawn at random.")
@click.option("--first-sessions", type=int, help="So many sessions, those that start first.")
@click.option("--session", "sessions", type=int, multiple=True, help="A session by number; may be repeated.")
@click.option("--kind", "kinds", multiple=True, help="A kind of traffic; may be repeated.")
@click.option("--model", "models", multiple=True, help="A model; may be repeated.")
@seed_option
@block_tokens_option
def command(
    *,
    trace: str,
    out: Path,
    force: bool,
    as_json: bool,
    since: str,
    until: str | None,
    num_sessions: int | None,
    first_sessions: int | None,
    sessions: tuple[int, ...],
    kinds: tuple[str, ...],
    models: tuple[str, ...],
    seed: int,
    block_tokens: int | None,
) -> None:
    """Keep the requests of TRACE that meet all conditions given; the slice starts at time 0.

    Sessions are chosen among those that the other conditions leave, and cut where these cut them.
    """
    from warmset.cli.trace.durations import milliseconds
    from warmset.cli.trace.output import check_target, save

    check_target(out, force=force)
    import numpy as np

    from warmset.trace import open_trace
    from warmset.trace.operations import Slice, slice_trace

    wanted = Slice(
        from_ms=milliseconds(since, "--from"),
        to_ms=None if until is None else milliseconds(until, "--to"),
        num_sessions=num_sessions,
        first_sessions=first_sessions,
        sessions=sessions,
        kinds=kinds,
        models=models,
    )
    part = slice_trace(open_trace(trace, block_tokens), wanted, np.random.default_rng(seed))
    save(part, out, as_json=as_json)
