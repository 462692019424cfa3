"""The curve of all capacities."""

import pytest

from tests.oracles.list_lru import Request
from tests.support.traces import make_trace, prompts
from warmset.reuse import CapacityCurve, Hits, capacity_curve, profile_reuse


def curve_of(requests: list[Request], measure_from: float = 0.0) -> CapacityCurve:
    return capacity_curve(profile_reuse(make_trace(requests), measure_from))


def test_one_entry_for_each_capacity():
    curve = curve_of(prompts([1, 2, 3], [8, 9], [1, 2]))
    assert curve.hit_blocks.tolist() == [0, 0, 0, 1, 2]
    assert curve.hit_tokens.tolist() == [0, 0, 0, 4, 8]
    assert (curve.most_blocks, curve.measured_tokens) == (4, 28)


def test_a_partial_last_block_counts_what_is_left_of_the_input():
    curve = curve_of([Request(0, (1, 2, 3), 9), Request(1, (1, 2, 3), 9)])
    assert curve.hit_tokens.tolist() == [0, 4, 8, 9]


def test_blocks_past_the_end_of_the_input_count_no_tokens():
    curve = curve_of([Request(0, (1, 2, 3), 5), Request(1, (1, 2, 3), 5)])
    assert curve.hit_blocks.tolist() == [0, 1, 2, 3]
    assert curve.hit_tokens.tolist() == [0, 4, 5, 5]


@pytest.mark.parametrize(("capacity", "blocks"), [(-5, 0), (0, 0), (3, 1), (4, 2), (5, 2), (10**15, 2)])
def test_capacities_outside_the_curve(capacity, blocks):
    curve = curve_of(prompts([1, 2, 3], [8, 9], [1, 2]))
    assert curve.at(capacity) == Hits(blocks, 4 * blocks)
    assert curve.token_hit_ratio(capacity) == 4 * blocks / 28


def test_capacity_for_tokens():
    curve = curve_of(prompts([1, 2, 3], [8, 9], [1, 2]))
    wanted = (-1, 0, 1, 4, 5, 8, 9)
    assert [curve.capacity_for_tokens(tokens) for tokens in wanted] == [0, 0, 3, 3, 4, 4, None]


@pytest.mark.parametrize("measure_from", [0.0, 0.5, 1.0])
def test_a_trace_without_reuse(measure_from):
    curve = curve_of(prompts([1], [2], [3]), measure_from)
    assert curve.hit_blocks.tolist() == [0]
    assert curve.at(7) == Hits(0, 0)
    assert curve.token_hit_ratio(7) == 0


def test_no_measured_tokens():
    curve = curve_of(prompts([], []))
    assert curve.measured_tokens == 0
    assert curve.token_hit_ratio(1) == 0
