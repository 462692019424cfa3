"""`warmset trace scale`: more load from the same traffic."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from warmset.cli.trace.options import block_tokens_option, out_options, seed_option
from warmset.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from warmset.trace import Trace


@click.command("scale", short_help="Make a trace faster, or clone its sessions.")
@click.argument("trace")
@out_options
@click.option("--rate", type=float, help="So many times as fast.")
@click.option(
    "--keep-gaps/--shrink-gaps",
    "keep_gaps",
    default=None,
    help="With --rate: sessions start closer together and keep their own gaps, or every gap shrinks.  "
    "[default: keep where the trace has sessions and think times]",
)
@click.option("--sessions", "sessions", type=float, help="So many times as many sessions, as 2.5 or 0.1.")
@click.option(
    "--clone-shared",
    type=click.Choice(["keep", "none"]),
    default="keep",
    show_default=True,
    help="Whether copies share the blocks that several sessions of the trace share, such as a system prompt.",
)
@seed_option
@block_tokens_option
def command(
    *,
    trace: str,
    out: Path,
    force: bool,
    as_json: bool,
    rate: float | None,
    keep_gaps: bool | None,
    sessions: float | None,
    clone_shared: str,
    seed: int,
    block_tokens: int | None,
) -> None:
    """Load TRACE more: by rate, by sessions over the same time, or by rate and then by sessions.

    A copy of a session starts at a random moment, keeps its own gaps, and ends within the trace.
    """
    from warmset.cli.trace.output import check_target, save

    check_target(out, force=force)
    if rate is None and sessions is None:
        raise InputError("nothing to do: give --rate or --sessions")
    if rate is None and keep_gaps is not None:
        raise InputError("--keep-gaps and --shrink-gaps go with --rate")
    import numpy as np

    from warmset.trace import open_trace
    from warmset.trace.operations import clone_sessions, speed_up

    scaled = open_trace(trace, block_tokens)
    if rate is not None:
        is_closed_loop = scaled.session is not None and scaled.think_ms is not None
        scaled = speed_up(scaled, rate, starts_only=is_closed_loop if keep_gaps is None else keep_gaps)
    if sessions is not None:
        generator = np.random.default_rng(seed)
        numbers = _session_numbers(scaled)
        scaled = clone_sessions(scaled, numbers, sessions, generator, share=clone_shared == "keep")
    save(scaled, out, as_json=as_json)


def _session_numbers(trace: "Trace") -> "npt.NDArray[np.int32]":
    """The sessions that the log names, or else those that the forest tells."""
    from warmset.reuse import profile_reuse
    from warmset.reuse.kinds import sessions

    if trace.session is not None:
        return trace.session
    if not trace.has_blocks:
        raise InputError("--sessions: the trace has neither sessions nor blocks to tell them by")
    click.echo(
        "note: the log names no sessions: prompts that go on from one another are taken as one", err=True
    )
    return sessions(profile_reuse(trace)).number
