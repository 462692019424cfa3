"""`warmset trace reblock`: larger blocks."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warmset.cli.trace.options import out_options

if TYPE_CHECKING:
    from warmset.trace.operations import Coverage


@click.command("reblock", short_help="Give a trace larger blocks, and say what is lost.")
@click.argument("trace")
@out_options
@click.option("--block-tokens", type=int, required=True, help="A multiple of the trace's own.")
def command(*, trace: str, out: Path, force: bool, as_json: bool, block_tokens: int) -> None:
    """Put the prompts of TRACE into larger blocks, as an engine or a tier with larger chunks sees them.

    What is lost is counted, before and after: distinct blocks, tokens in partial last blocks, tokens in no
    block, and the hit tokens of a cache that never evicts.
    """
    from warmset.cli.trace.output import check_target, save

    check_target(out, force=force)
    from warmset.trace import open_trace
    from warmset.trace.operations import reblock

    result = reblock(open_trace(trace), block_tokens)
    numbers = {"before": _numbers(result.before), "after": _numbers(result.after)}
    save(result.trace, out, as_json=as_json, more=numbers)
    if not as_json:
        for when, blocks in (("before", result.before), ("after", result.after)):
            click.echo(_line(when, blocks))


def _numbers(blocks: "Coverage") -> dict[str, Any]:
    return {
        "block_tokens": blocks.block_tokens,
        "unique_blocks": blocks.unique_blocks,
        "block_refs": blocks.block_refs,
        "partial_tokens": blocks.partial_tokens,
        "uncovered_tokens": blocks.input_tokens - blocks.covered_tokens,
        "hit_tokens": blocks.hit_tokens,
        "token_hit_ratio": blocks.hit_tokens / blocks.input_tokens if blocks.input_tokens else None,
    }


def _line(when: str, blocks: "Coverage") -> str:
    hit = f"{100 * blocks.hit_tokens / blocks.input_tokens:.2f} %" if blocks.input_tokens else "n/a"
    return (
        f"{when + ':':<8}{blocks.unique_blocks:,} distinct blocks of {blocks.block_tokens} tokens, "
        f"{blocks.partial_tokens:,} tokens in partial blocks, "
        f"{blocks.input_tokens - blocks.covered_tokens:,} in none; "
        f"a cache that never evicts hits {blocks.hit_tokens:,} tokens ({hit})"
    )
