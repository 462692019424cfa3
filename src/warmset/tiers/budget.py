"""From the size of a tier to the blocks that fit in it: every reserve is a line of its own."""

from dataclasses import dataclass
from math import ceil

from warmset.errors import InfeasibleError
from warmset.evaluation import ByteLine, TierBudget, TierName
from warmset.facts import Fact
from warmset.units import format_bytes


@dataclass(frozen=True, slots=True)
class HbmReserves:
    """What HBM holds besides KV, for all GPUs of a node.

    `rounding_ratio` is the share of the KV pool that is allocated and empty, because the last block of a
    sequence is seldom full.
    """

    memory: Fact
    utilization: Fact
    activation_per_gpu: Fact
    weight_bytes: int
    rounding_ratio: float


@dataclass(frozen=True, slots=True)
class ChunkFormat:
    """How a lower tier stores KV: chunks of tokens, one object for each GPU that keeps its own heads."""

    chunk_tokens: int
    ranks: int
    bytes_per_rank: int
    alignment_bytes: int

    @property
    def aligned_bytes_per_rank(self) -> int:
        """One object, up to the next boundary."""
        return -(-self.bytes_per_rank // self.alignment_bytes) * self.alignment_bytes

    @property
    def chunk_bytes(self) -> int:
        """One chunk, all ranks together."""
        return self.ranks * self.aligned_bytes_per_rank

    def block_bytes(self, block_tokens: int) -> int:
        """One block of the trace; a block that is not a whole number of chunks takes its share of one."""
        return -(-self.chunk_bytes * block_tokens // self.chunk_tokens)


@dataclass(frozen=True, slots=True)
class TierReserves:
    """What a lower tier cannot use for KV."""

    usable: Fact
    """Share of a tier that stays filled under its eviction watermarks."""
    metadata_bytes: int
    staging_bytes: int


def hbm_budget(
    num_gpus: int,
    reserves: HbmReserves,
    *,
    utilization_ratio: float,
    memory_bytes_per_gpu: int,
    activation_bytes_per_gpu: int,
    kv_bytes_per_block: int,
) -> TierBudget:
    """The KV pool of all GPUs of a node.

    Raises: InfeasibleError when the weights and reserves leave nothing.
    """
    total = num_gpus * memory_bytes_per_gpu
    lines = [
        ByteLine(key="hbm_total", size_bytes=total, fact=reserves.memory),
        ByteLine(
            key="utilization_reserve",
            size_bytes=-ceil(total * (1 - utilization_ratio)),
            fact=reserves.utilization,
        ),
        ByteLine(key="weights", size_bytes=-reserves.weight_bytes),
        ByteLine(
            key="activation_reserve",
            size_bytes=-num_gpus * activation_bytes_per_gpu,
            fact=reserves.activation_per_gpu,
        ),
    ]
    pool = sum(line.size_bytes for line in lines)
    if pool < kv_bytes_per_block:
        needed = total - pool + kv_bytes_per_block
        raise InfeasibleError(
            f"the weights leave no room for KV: {format_bytes(needed)} needed, {format_bytes(total)} of HBM "
            f"on {num_gpus} GPUs; use more GPUs per node, a larger tensor_parallel or smaller weights"
        )
    lines.append(ByteLine(key="block_rounding", size_bytes=-ceil(pool * reserves.rounding_ratio)))
    usable = sum(line.size_bytes for line in lines)
    return TierBudget(
        tier="hbm",
        lines=tuple(lines),
        usable_bytes=usable,
        bytes_per_block=kv_bytes_per_block,
        usable_blocks=usable // kv_bytes_per_block,
        inclusive=True,
    )


def lower_tier_budget(
    tier: TierName,
    capacity_bytes: int,
    reserves: TierReserves,
    chunks: ChunkFormat,
    *,
    usable_ratio: float,
    block_tokens: int,
    inclusive: bool,
    capacity_fact: Fact,
) -> TierBudget:
    """What a lower tier of a node holds: its size less metadata, staging, watermark and alignment."""
    alignment_share = 1 - chunks.bytes_per_rank / chunks.aligned_bytes_per_rank
    for_chunks = max(capacity_bytes - reserves.metadata_bytes - reserves.staging_bytes, 0)
    watermark = ceil(for_chunks * (1 - usable_ratio))
    alignment = ceil((for_chunks - watermark) * alignment_share)
    lines = [ByteLine(key="tier_total", size_bytes=capacity_bytes, fact=capacity_fact)]
    if reserves.metadata_bytes:
        lines.append(ByteLine(key="metadata", size_bytes=-min(reserves.metadata_bytes, capacity_bytes)))
    if reserves.staging_bytes:
        left = capacity_bytes - min(reserves.metadata_bytes, capacity_bytes)
        lines.append(ByteLine(key="staging", size_bytes=-min(reserves.staging_bytes, left)))
    lines.append(ByteLine(key="watermark_reserve", size_bytes=-watermark, fact=reserves.usable))
    lines.append(ByteLine(key="alignment", size_bytes=-alignment))
    block_bytes = chunks.block_bytes(block_tokens)
    return TierBudget(
        tier=tier,
        lines=tuple(lines),
        usable_bytes=sum(line.size_bytes for line in lines),
        bytes_per_block=block_bytes,
        # Alignment is inside a block's bytes already.
        usable_blocks=(for_chunks - watermark) // block_bytes,
        inclusive=inclusive,
    )
