"""What a SGLang server is told, and what it allocates in answer."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, NamedTuple

import msgspec

from warmset.errors import InputError
from warmset.model.step import Step

RadixStrategy = Literal["auto", "no_buffer", "extra_buffer", "extra_buffer_lazy", "off"]
"""`--mamba-radix-cache-strategy`; `off` is `--disable-radix-cache`."""


class SglangSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Of one server. `None` is what SGLang takes by itself for the family and the card.

    `available_bytes`: of one GPU, for KV and states together. `max_running_requests`,
    `max_mamba_cache_size` are those of the whole server, all DP ranks together. `recurrent_bits`:
    `--mamba-ssm-dtype`. `num_draft_layers`, `num_draft_tokens`: of EAGLE or MTP drafts, 0 without.
    `raw_fp8_latents`: DSA latents in fp8 take 576 bytes as the trtllm and tilelang kernels read them, not
    656; trtllm is the default on Blackwell.

    Raises: InputError when a number is not positive or a ratio is out of range.
    """

    available_bytes: int
    page_tokens: int | None = None
    context_tokens: int | None = None
    max_running_requests: int | None = None
    max_total_tokens: int | None = None
    max_mamba_cache_size: int | None = None
    mamba_full_memory_ratio: Fraction | None = None
    swa_full_tokens_ratio: Fraction | None = None
    radix_strategy: RadixStrategy = "auto"
    overlap_schedule: bool = True
    chunked_prefill_tokens: int = 8192
    recurrent_bits: int | None = None
    num_draft_layers: int = 0
    num_draft_tokens: int = 0
    is_blackwell: bool = False
    raw_fp8_latents: bool | None = None

    def __post_init__(self) -> None:
        """Refuses numbers that SGLang refuses."""
        for name in self.__struct_fields__:
            number = getattr(self, name)
            least = 0 if name in {"num_draft_layers", "num_draft_tokens"} else 1
            if isinstance(number, int) and not isinstance(number, bool) and number < least:
                raise InputError(f"{name}={number}: it must be at least {least}")
        if self.mamba_full_memory_ratio is not None and self.mamba_full_memory_ratio <= 0:
            raise InputError(f"mamba_full_memory_ratio={self.mamba_full_memory_ratio}: it must be above 0")
        if self.swa_full_tokens_ratio is not None and not 0 < self.swa_full_tokens_ratio <= 1:
            raise InputError(
                f"swa_full_tokens_ratio={self.swa_full_tokens_ratio}: it must be above 0 and at most 1"
            )

    @property
    def is_speculative(self) -> bool:
        """Whether a draft is verified in each step."""
        return bool(self.num_draft_layers or self.num_draft_tokens)


class Pool(NamedTuple):
    """Rows for tokens on one rank.

    `bytes_per_token` is what the budget is charged, drafts included. `logged_bytes` is what the log line
    counts: the layers of the model alone, and one page more. `key_bytes`: the part of keys where keys and
    values lie apart.
    """

    name: Literal["full", "swa", "compressed"]
    num_layers: int
    tokens: int
    bytes_per_token: Fraction
    logged_bytes: int
    key_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        """Bytes charged for the rows."""
        return -(-self.tokens * self.bytes_per_token.numerator // self.bytes_per_token.denominator)

    @property
    def log_text(self) -> str:
        """As the log prints it; its GB are GiB."""
        if not self.key_bytes:
            return f"#tokens: {self.tokens}, KV size: {gib(self.logged_bytes)} GB"
        return (
            f"#tokens: {self.tokens}, K size: {gib(self.key_bytes)} GB, "
            f"V size: {gib(self.logged_bytes - self.key_bytes)} GB"
        )


class StatePool(NamedTuple):
    """Slots for recurrent and convolution states on one rank (`max_mamba_cache_size`); one more is allocated.

    `draft_bytes`: states kept for each draft token. `num_slots_per_request`: those a running request may
    hold.
    """

    num_slots: int
    slot_bytes: int
    num_slots_per_request: int
    draft_bytes: int

    @property
    def total_bytes(self) -> int:
        """All slots, the spare one and those of drafts."""
        return (self.num_slots + 1) * self.slot_bytes + self.draft_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SglangPools:
    """What SGLang allocates on each rank, and the limits that follow.

    `cell_bytes`: bytes of the budget for one token of `max_total_num_tokens`. With PP the pools are those
    of the stage that has the least room, `stage_index`. `request_tokens`: what requests of one DP rank can
    fill together, the DCP ranks' rows taken together; `cluster_tokens`: of all DP ranks. `fixed_bytes`:
    what does not grow with tokens besides the states (compressor states of V4).
    """

    available_bytes: int
    page_tokens: int
    kv_cache_dtype: str
    cell_bytes: Fraction
    max_total_num_tokens: int
    pools: tuple[Pool, ...]
    state_pool: StatePool | None
    fixed_bytes: int
    stage_index: int
    max_running_requests: int
    request_tokens: int
    cluster_tokens: int
    steps: tuple[Step, ...]

    @property
    def used_bytes(self) -> int:
        """All pools together; never above `available_bytes`."""
        states = self.state_pool.total_bytes if self.state_pool else 0
        return sum(pool.total_bytes for pool in self.pools) + states + self.fixed_bytes

    @property
    def log_lines(self) -> tuple[str, ...]:
        """The lines about pools, as the log of one rank prints them."""
        return tuple(pool.log_text for pool in self.pools)


def gib(size_bytes: int) -> str:
    """In GiB with two decimals, which SGLang calls GB."""
    return f"{size_bytes / 2**30:.2f}"
