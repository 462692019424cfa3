"""Every reserve of a tier is a line; the lines add up; what is left is counted in blocks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmset.errors import InfeasibleError
from warmset.facts import Fact
from warmset.tiers import ChunkFormat, HbmReserves, TierReserves, hbm_budget, lower_tier_budget

GB = 10**9


def fact(value, unit="ratio"):
    return Fact(value=value, unit=unit, origin="assumed", source="test")


def hbm(weight_bytes=40 * GB, rounding=0.0, *, gpus=1, memory=100 * GB, block=GB):
    reserves = HbmReserves(fact(memory), fact(0.9), fact(5 * GB), weight_bytes, rounding)
    return hbm_budget(
        gpus,
        reserves,
        utilization_ratio=0.9,
        memory_bytes_per_gpu=memory,
        activation_bytes_per_gpu=5 * GB,
        kv_bytes_per_block=block,
    )


CHUNKS = ChunkFormat(chunk_tokens=256, ranks=1, bytes_per_rank=4096, alignment_bytes=4096)


def lower(capacity, *, metadata=0, staging=0, usable=0.75, chunks=CHUNKS, block_tokens=512, inclusive=True):
    return lower_tier_budget(
        "dram",
        capacity,
        TierReserves(fact(usable), metadata, staging),
        chunks,
        usable_ratio=usable,
        block_tokens=block_tokens,
        inclusive=inclusive,
        capacity_fact=fact(capacity, "bytes"),
    )


def lines(budget):
    return {line.key: line.size_bytes for line in budget.lines}


# --- HBM -----------------------------------------------------------------------------------------------


def test_hbm_by_hand():
    budget = hbm(rounding=0.02)
    assert lines(budget) == {
        "hbm_total": 100 * GB,
        "utilization_reserve": -10 * GB,
        "weights": -40 * GB,
        "activation_reserve": -5 * GB,
        "block_rounding": -900_000_000,
    }
    assert (budget.usable_bytes, budget.usable_blocks) == (44_100_000_000, 44)


def test_reserves_count_for_every_gpu():
    budget = hbm(weight_bytes=320 * GB, gpus=8)
    assert lines(budget)["activation_reserve"] == -40 * GB
    assert budget.usable_bytes == 8 * 45 * GB


@pytest.mark.parametrize("weights", [85 * GB - GB + 1, 85 * GB, 500 * GB])
def test_weights_that_leave_no_room(weights):
    with pytest.raises(InfeasibleError) as error:
        hbm(weight_bytes=weights)
    needed = f"{(weights + 16 * GB) / GB:.0f} GB needed, 100 GB of HBM on 1 GPUs"
    assert needed in str(error.value)
    assert "use more GPUs per node, a larger tensor_parallel or smaller weights" in str(error.value)
    assert error.value.exit_code == 3


def test_room_for_one_block_is_enough():
    assert hbm(weight_bytes=84 * GB).usable_blocks == 1


# --- lower tiers ---------------------------------------------------------------------------------------


def test_a_lower_tier_by_hand():
    chunks = ChunkFormat(chunk_tokens=256, ranks=2, bytes_per_rank=3072, alignment_bytes=4096)
    budget = lower(100_000, metadata=10_000, staging=10_000, usable=0.75, chunks=chunks)
    assert lines(budget) == {
        "tier_total": 100_000,
        "metadata": -10_000,
        "staging": -10_000,
        "watermark_reserve": -20_000,
        "alignment": -15_000,
    }
    # A block of two chunks of two objects of 4096 bytes; alignment is inside them already.
    assert (budget.usable_bytes, budget.bytes_per_block, budget.usable_blocks) == (45_000, 16_384, 3)


def test_reserves_that_are_nothing_have_no_line():
    assert lines(lower(1000)).keys() == {"tier_total", "watermark_reserve", "alignment"}


@pytest.mark.parametrize(
    ("metadata", "staging"),
    [(2000, 0), (0, 2000), (600, 600), (1000, 5)],
    ids=["index", "buffer", "both", "all"],
)
def test_a_tier_smaller_than_its_reserves_holds_nothing(metadata, staging):
    budget = lower(1000, metadata=metadata, staging=staging)
    assert (budget.usable_bytes, budget.usable_blocks) == (0, 0)
    assert sum(lines(budget).values()) == 0


@given(
    st.integers(1, 10**15),
    st.integers(0, 10**13),
    st.integers(0, 10**13),
    st.floats(0.01, 1.0),
    st.integers(1, 10**7),
    st.sampled_from([1, 512, 4096]),
)
def test_lines_add_up_and_blocks_fit(capacity, metadata, staging, usable, per_rank, alignment):
    chunks = ChunkFormat(256, 8, per_rank, alignment)
    budget = lower(capacity, metadata=metadata, staging=staging, usable=usable, chunks=chunks)
    assert sum(lines(budget).values()) == budget.usable_bytes >= 0
    assert lines(budget)["tier_total"] == capacity
    assert all(size <= 0 for key, size in lines(budget).items() if key != "tier_total")
    # The bytes of the blocks, alignment left out, fit into what is usable.
    payload = budget.usable_blocks * 2 * 8 * per_rank
    assert payload <= budget.usable_bytes + 2 * 8 * per_rank


@given(st.integers(0, 80 * GB), st.floats(0, 0.9), st.integers(1, 8))
def test_hbm_lines_add_up(weights, rounding, gpus):
    budget = hbm(weights * gpus, rounding, gpus=gpus)
    assert sum(lines(budget).values()) == budget.usable_bytes >= 0
    assert budget.usable_blocks == budget.usable_bytes // budget.bytes_per_block


# --- chunks --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("per_rank", "alignment", "aligned"), [(4096, 4096, 4096), (4097, 4096, 8192), (1, 4096, 4096), (5, 1, 5)]
)
def test_objects_start_on_a_boundary(per_rank, alignment, aligned):
    assert ChunkFormat(256, 3, per_rank, alignment).aligned_bytes_per_rank == aligned
    assert ChunkFormat(256, 3, per_rank, alignment).chunk_bytes == 3 * aligned


@pytest.mark.parametrize(
    ("block_tokens", "size"), [(256, 4096), (512, 8192), (16, 256), (100, 1600), (1, 16), (257, 4112)]
)
def test_a_block_that_is_no_whole_number_of_chunks_takes_its_share(block_tokens, size):
    assert CHUNKS.block_bytes(block_tokens) == size


def test_shares_of_a_chunk_are_rounded_up():
    assert ChunkFormat(256, 1, 100, 1).block_bytes(1) == 1
    assert ChunkFormat(256, 1, 257, 1).block_bytes(1) == 2
