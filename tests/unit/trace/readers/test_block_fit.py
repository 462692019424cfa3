"""The block size against the rows: refused, replaced or doubted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmset.errors import TraceFormatError
from warmset.trace import TraceBuilder
from warmset.trace.readers.block_fit import BlockFit, _best_size, settle_block_size


def fit_of(*rows: tuple[int, int]) -> BlockFit:
    """Of ids and tokens of each row."""
    fit = BlockFit("log")
    for number, (num_ids, tokens) in enumerate(rows, start=1):
        fit.add(number, num_ids, tokens)
    return fit


def noted(builder: TraceBuilder) -> dict[str, tuple[int, str]]:
    return {finding.code: (finding.count, finding.first_example) for finding in builder.tally.findings()}


def fitting(size: int, rows: list[tuple[int, int]]) -> int:
    """Rows with as many ids as full blocks, or one more for what is left."""
    return sum(num_ids in {tokens // size, -(-tokens // size)} for num_ids, tokens in rows)


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 60)), min_size=1, max_size=12))
def test_no_size_fits_more_rows(rows):
    """Against every size there is; a power of two may fit a fiftieth fewer."""
    num_ids, tokens = np.array(rows, dtype=np.int64).T
    size, count = _best_size(num_ids, tokens)
    assert count >= 0.98 * max(fitting(each, rows) for each in range(1, 130))
    assert fitting(size, rows) == count


def test_another_size_that_fits_nearly_all_rows_is_suggested():
    rows = [(-(-tokens // 32), tokens) for tokens in range(40, 4000, 40)]
    says = r"^log: \d+ of 99 rows have another number .* than 512-token blocks need: try --block-tokens 32$"
    with pytest.raises(TraceFormatError, match=says):
        settle_block_size([fit_of(*rows)], TraceBuilder(512), None)
    with pytest.raises(TraceFormatError, match=says):
        settle_block_size([fit_of(*rows)], TraceBuilder(512), 512)


UNRELATED = [(3, 340), (4, 20), (9, 352), (2, 500), (30, 96), (11, 11)]
"""59 ids for 1,319 tokens: 22.4 an id, and no size fits them."""


def test_ids_that_no_size_fits_are_kept_and_the_likely_size_is_assumed():
    builder = TraceBuilder(512)
    settle_block_size([fit_of(*UNRELATED)], builder, None)
    assert builder.block_tokens == 16
    (assumption,) = builder.assumptions
    assert assumption == (
        "The log does not say what an id covers, and no size fits all its rows: 16 tokens are assumed, from "
        "the number of ids."
    )
    found = noted(builder)
    count, detail = found["odd_block_size"]
    assert count == 1
    assert detail == (
        "6 of 6 rows have another number of ids than 512-token blocks need; there are 22.4 input tokens an id"
    )
    assert found["short_hash_ids"] == (3, "line 1: 3 ids for 340 tokens, expected 22")
    assert found["long_hash_ids"] == (3, "line 2: 4 ids for 20 tokens, expected 2")


def test_a_size_that_was_given_is_kept_and_doubted():
    builder = TraceBuilder(512)
    settle_block_size([fit_of(*UNRELATED)], builder, 512)
    assert builder.block_tokens == 512
    assert builder.assumptions == []
    assert "odd_block_size" in noted(builder)


def test_rows_without_ids_or_tokens_say_nothing():
    builder = TraceBuilder(16)
    settle_block_size([fit_of(), fit_of((0, 0)), fit_of((0, 9_000)), fit_of((5, 0))], builder, None)
    assert builder.block_tokens == 16
    assert set(noted(builder)) == {"short_hash_ids", "long_hash_ids"}


def test_full_blocks_only():
    builder = TraceBuilder(16)
    fit_of((1, 31), (2, 31)).note_mismatches(16, builder.tally, full_blocks_only=True)
    assert noted(builder) == {"long_hash_ids": (1, "line 2: 2 ids for 31 tokens, expected 1")}
