"""Working sets: consecutive windows, and what a sliding time to live keeps."""

import pytest

from tests.oracles.list_lru import Request
from tests.support.traces import make_trace
from warmset.reuse import ResidentBlocks, WindowBlocks, profile_reuse, resident_blocks, window_blocks


def profile_at(*timed: tuple[int, tuple[int, ...]]):
    return profile_reuse(make_trace([Request(ms, ids, 4 * len(ids)) for ms, ids in timed]))


def test_windows_count_a_block_once_each():
    profile = profile_at((100, (1, 2)), (104, (1, 2, 3)), (110, (1,)), (131, (9,)))
    # [100, 110): 1 2 3   [110, 120): 1   [120, 130): none   [130, 140): 9
    assert window_blocks(profile, 10) == WindowBlocks(5 / 4, 3, 4)


def test_one_window_holds_the_trace():
    profile = profile_at((0, (1, 2)), (9, (1, 3)))
    assert window_blocks(profile, 10) == WindowBlocks(3.0, 3, 1)


def test_a_block_stays_up_to_and_including_its_time_to_live():
    profile = profile_at((0, (1,)), (10, (2,)), (30, (3,)))
    # 0..10: 1, at 10: 1 2, 11..20: 2, 21..29: none, at 30: 3. Mean over [10, 30): 2, then 1 for 10 ms.
    assert resident_blocks(profile, 10) == ResidentBlocks((2 * 1 + 1 * 10) / 20, 2, window_fits_trace=True)


def test_a_touch_renews():
    profile = profile_at((0, (1,)), (8, (1,)), (16, (1,)))
    assert resident_blocks(profile, 8) == ResidentBlocks(1.0, 1, window_fits_trace=True)
    assert resident_blocks(profile, 7) == ResidentBlocks(1.0, 1, window_fits_trace=True)
    assert resident_blocks(profile, 6).mean_blocks == pytest.approx(8 / 10)


def test_a_window_longer_than_the_trace_says_so():
    profile = profile_at((0, (1,)), (10, (2,)))
    assert resident_blocks(profile, 60) == ResidentBlocks(1.0, 2, window_fits_trace=False)


def test_a_trace_of_one_moment():
    profile = profile_at((5, (1, 2)), (5, (1, 3)))
    assert resident_blocks(profile, 60) == ResidentBlocks(3.0, 3, window_fits_trace=False)
    assert resident_blocks(profile, 0) == ResidentBlocks(3.0, 3, window_fits_trace=True)
    assert window_blocks(profile, 60) == WindowBlocks(3.0, 3, 1)


def test_no_blocks_at_all():
    profile = profile_at((0, ()), (10, ()))
    assert resident_blocks(profile, 5) == ResidentBlocks(0.0, 0, window_fits_trace=True)
    assert window_blocks(profile, 5) == WindowBlocks(0.0, 0, 3)


def test_windows_between_two_far_requests_cost_nothing():
    """A broken clock may put one request millions of years away: its windows are counted, not stored."""
    trace = make_trace([Request(0, (1, 2), 8), Request(2**50, (1,), 4)])
    blocks = window_blocks(profile_reuse(trace), 1000)
    assert blocks.num_windows == 2**50 // 1000 + 1
    assert blocks.max_blocks == 2
    assert blocks.mean_blocks == pytest.approx(3 / (2**50 // 1000 + 1))
