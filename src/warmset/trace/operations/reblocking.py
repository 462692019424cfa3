"""Larger blocks: exact, and with what they lose."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from warmset.errors import Finding, InputError
from warmset.trace import kernel
from warmset.trace.builder import renumbered
from warmset.trace.forest import MAX_BLOCK_TOKENS, NO_NODE, Trace

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Coverage:
    """What the blocks of a trace cover, and what a cache that never evicts hits in them.

    A hit is a block in the leading run of blocks that earlier requests had; its tokens are those of the input
    that it covers.
    """

    block_tokens: int
    unique_blocks: int
    block_refs: int
    input_tokens: int
    covered_tokens: int
    """In some block; the rest is in no block and never hits."""
    partial_tokens: int
    """In last blocks that the prompt does not fill: only an equal prompt hits them."""
    hit_tokens: int


@dataclass(frozen=True, slots=True)
class Reblocked:
    """A trace in larger blocks, and what that changes."""

    trace: Trace
    before: Coverage
    after: Coverage


def reblock(trace: Trace, block_tokens: int) -> Reblocked:
    """The same prompts in blocks of `block_tokens`, a multiple of the trace's own.

    A large block is the run of small ones from a multiple of its size on, known by the last of them; what is
    left of a prompt is a partial last block, which an equal prompt shares. So a match ends at a multiple, or
    at the end of an equal prompt. Where the small blocks leave the end of a prompt out, as logs of full
    blocks do, so do the large ones: what a partial block would hold is not in the trace.

    Raises: InputError for a size that is not a multiple: what lies inside a block is not in the trace.
    """
    if not 1 <= block_tokens <= MAX_BLOCK_TOKENS or block_tokens % trace.block_tokens:
        raise InputError(
            f"--block-tokens {block_tokens}: it must be a multiple of the trace's {trace.block_tokens}, "
            "as what lies inside a block is not in the trace"
        )
    times = block_tokens // trace.block_tokens
    before = coverage(trace)
    if times == 1:
        return Reblocked(trace, before, before)
    parent, leaf = _coarse(trace, times)
    node_parent, leaf = renumbered(parent, leaf)
    node_depth = kernel.depths(node_parent)
    coarse = replace(
        trace,
        block_tokens=block_tokens,
        node_parent=node_parent,
        node_depth=node_depth,
        leaf=leaf,
        num_blocks=np.where(leaf >= 0, node_depth[leaf], 0).astype(np.int32)
        if node_depth.size
        else np.zeros_like(trace.num_blocks),
    )
    after = coverage(coarse)
    if trace.has_blocks:
        coarse = replace(coarse, findings=(*trace.findings, _changed(before, after)))
    return Reblocked(coarse, before, after)


def coverage(trace: Trace) -> Coverage:
    """What the blocks of a trace cover, and the hits of a cache that never evicts."""
    everyone = np.arange(trace.num_requests)
    known = kernel.known_blocks(trace.node_parent, trace.leaf, trace.num_blocks)
    covered = trace.tokens_to_depth(everyone, trace.num_blocks)
    is_partial = trace.num_blocks.astype(np.int64) * trace.block_tokens > trace.input_tokens
    return Coverage(
        block_tokens=trace.block_tokens,
        unique_blocks=trace.num_nodes,
        block_refs=trace.block_refs,
        input_tokens=int(trace.input_tokens.sum()),
        covered_tokens=int(covered.sum()),
        partial_tokens=int((trace.input_tokens % trace.block_tokens)[is_partial].sum()),
        hit_tokens=int(trace.tokens_to_depth(everyone, known).sum()),
    )


def _changed(before: Coverage, after: Coverage) -> Finding:
    what = (
        f"from {before.block_tokens} to {after.block_tokens} tokens a block: of {before.input_tokens:,} "
        f"input tokens a cache that never evicts hits {after.hit_tokens:,} instead of {before.hit_tokens:,}"
    )
    return Finding("reblocked", 1, what)


def _coarse(trace: Trace, times: int) -> tuple[Int32s, Int32s]:
    """Parents over the small vertices that end a large block, and over copies of those that end a prompt.

    A vertex inside a large block that ends some prompt becomes a partial last block of its own, after the
    vertices of full ones: it must not be taken for the full block that another prompt makes of it. A prompt
    that its small blocks do not cover ends with its last full large block.
    """
    above = kernel.ancestor_at_multiple(trace.node_parent, trace.node_depth, times)
    ends_full = trace.node_depth % times == 0
    is_whole = trace.num_blocks.astype(np.int64) * trace.block_tokens >= trace.input_tokens
    leaf = trace.leaf.copy()
    ends_inside = leaf >= 0
    ends_inside[ends_inside] = ~ends_full[leaf[ends_inside]]
    partial = np.unique(leaf[ends_inside & is_whole])
    copy_of = np.full(trace.num_nodes, NO_NODE, dtype=np.int32)
    copy_of[partial] = trace.num_nodes + np.arange(partial.size, dtype=np.int32)
    leaf[ends_inside & is_whole] = copy_of[leaf[ends_inside & is_whole]]
    cut = ends_inside & ~is_whole
    leaf[cut] = above[leaf[cut]]
    return np.concatenate([above, above[partial]]).astype(np.int32), leaf
