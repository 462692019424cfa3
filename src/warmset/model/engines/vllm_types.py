"""What a vLLM server is told, and what it answers in its log."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

import msgspec

from warmset.errors import Finding, InputError
from warmset.model.step import Step

Capability = Literal["sm80", "sm90", "sm100", "sm120"]
"""Ampere and Ada, Hopper, Blackwell of the data centre, Blackwell of the desk: each has its kernels.

`sm80` also stands for cards of others, for which vLLM has none of the kernels that change pages.
"""

Release = Literal["0.30.0", "0.33.0"]
"""0.33.0 keeps one more state in reserve where a kernel hands out states inside a prompt, and starts blocks
on whole rows; 0.29 and 0.30 did neither, and most public block counts are of these."""

CacheKind = Literal["full", "latent", "sliding", "sliding_latent", "chunked", "state", "ring", "cross"]
"""As vLLM's classes of KVCacheSpec: a `ring` is a CircularBufferSpec, a `state` a MambaSpec."""


class VllmSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Flags of one engine. `None` is what vLLM takes by itself for the model.

    `available_bytes`: for KV on one GPU, the log's "Available KV cache memory"; one for each pipeline stage
    where they differ. `context_tokens`: `--max-model-len`. `batched_tokens`: `--max-num-batched-tokens`,
    see `default_batched_tokens`. `block_tokens`: `--block-size`. `state_block_tokens`:
    `--mamba-block-size`, which counts only without attention layers. `num_speculative_tokens`: drafts of the
    model's own MTP layers, 0 without. `hybrid_manager`: off with `--disable-hybrid-kv-cache-manager` or a
    connector without hybrid support. `max_running_requests`: `--max-num-seqs`.

    Raises: InputError when a number is not positive.
    """

    available_bytes: int | tuple[int, ...]
    context_tokens: int | None = None
    batched_tokens: int = 8192
    block_tokens: int | None = None
    state_block_tokens: int | None = None
    prefix_caching: bool | None = None
    async_scheduling: bool = True
    hybrid_manager: bool = True
    num_speculative_tokens: int = 0
    max_running_requests: int | None = None
    capability: Capability = "sm90"
    release: Release = "0.33.0"

    def __post_init__(self) -> None:
        """Refuses numbers that vLLM refuses."""
        for name in ("context_tokens", "batched_tokens", "block_tokens", "state_block_tokens"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise InputError(f"{name}={number}: it must be at least 1")
        if self.num_speculative_tokens < 0:
            raise InputError(f"num_speculative_tokens={self.num_speculative_tokens}: it must not be negative")
        if self.max_running_requests is not None and self.max_running_requests < 1:
            raise InputError(f"max_running_requests={self.max_running_requests}: it must be at least 1")


class PoolGroup(NamedTuple):
    """Layers that share one block table.

    `page_bytes`: of all its caches for one block of `block_tokens` tokens. `padding_bytes`: what a block of
    the pool has more than the group fills. `request_blocks`: of a request of the greatest length.
    """

    kind: CacheKind
    num_caches: int
    block_tokens: int
    page_bytes: int
    padding_bytes: int
    request_blocks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmPool:
    """The pool of one engine and what its log says of it.

    Every GPU keeps its share of every block; with pipeline stages `bytes_per_block` and `available_bytes`
    are those of the stage with the least room, `stage_index`. `block_tokens`: of the attention layers, after
    alignment with state pages. `snapshot_tokens`: between reusable states with prefix caching, `None` without
    states or caching. `num_state_slots`: blocks for states, which cap `--max-num-seqs`, or `None`.
    """

    available_bytes: int
    context_tokens: int
    block_tokens: int
    groups: tuple[PoolGroup, ...]
    bytes_per_block: int
    num_blocks: int
    in_flight_tokens: int
    stage_index: int
    snapshot_tokens: int | None
    num_state_slots: int | None
    findings: tuple[Finding, ...]
    steps: tuple[Step, ...]

    @property
    def blocks_per_request(self) -> int:
        """Blocks that a request of `context_tokens` may hold."""
        return sum(group.request_blocks for group in self.groups)

    @property
    def request_bytes(self) -> int:
        """Bytes of these blocks on one GPU: what vLLM says is needed to serve at least one request."""
        return self.blocks_per_request * self.bytes_per_block

    @property
    def padding_bytes(self) -> int:
        """Bytes of such a request that can hold nothing, because groups fill their blocks unevenly."""
        return sum(group.request_blocks * group.padding_bytes for group in self.groups)

    @property
    def max_concurrency_ratio(self) -> Fraction:
        """Requests of the greatest length that the pool holds at once."""
        return Fraction(self.num_blocks, self.blocks_per_request)

    @property
    def pool_tokens(self) -> int:
        """The "GPU KV cache size": the concurrency, a float as in vLLM, times the greatest length, cut off.

        Source: vLLM 0.33.0 v1/core/kv_cache_utils.py get_kv_cache_capacity.
        """
        return int(self.num_blocks / self.blocks_per_request * self.context_tokens)

    @property
    def log_line(self) -> str:
        """As the log prints it."""
        return (
            f"GPU KV cache size: {self.pool_tokens:,} tokens, Maximum concurrency for "
            f"{self.context_tokens:,} tokens per request: {self.num_blocks / self.blocks_per_request:.2f}x"
        )

    @property
    def legacy_pool_tokens(self) -> int:
        """The "GPU KV cache size" before release 0.21: blocks over groups, times the smallest block.

        Wrong for hybrids, whose groups do not take the same number of blocks (vllm#40691).
        """
        smallest_block_tokens = min(group.block_tokens for group in self.groups)
        return self.num_blocks // len(self.groups) * smallest_block_tokens
