"""Times of one engine, worked out by hand (see `tests/support/engines.py`), and how they scale."""

import numpy as np
import pytest

from tests.support.engines import FREE, engine


def prefill_s(times, new, cached=0):
    return float(times.prefill_compute_s(np.array([new]), np.array([cached]))[0])


@pytest.mark.parametrize(
    ("new", "cached", "gemm", "attention", "hit_s"),
    [
        (100, 0, 100_200, 10 * 100 * 101, 0.0),
        (10, 90, 10_200, 10 * (2 * 10 * 90 + 110), 90e-4),
        (1, 0, 1_200, 20, 0.0),
        (1, 999, 1_200, 10 * (2 * 999 + 2), 999e-4),
    ],
    ids=["cold", "nine_tenths_cached", "one_token", "last_token_only"],
)
def test_prefill(new, cached, gemm, attention, hit_s):
    assert prefill_s(engine(), new, cached) == pytest.approx(gemm / 1e6 + attention / 1e6 + hit_s, rel=1e-12)


def test_each_part_of_the_prefill_has_its_own_rate():
    assert prefill_s(engine(attention_flops_per_s=FREE), 100) == pytest.approx(0.1002)
    assert prefill_s(engine(gemm_flops_per_s=FREE), 100) == pytest.approx(0.101)
    assert prefill_s(engine(gemm_flops_per_s=2e6, attention_flops_per_s=4e6), 100) == pytest.approx(
        0.0501 + 0.02525
    )


@pytest.mark.parametrize(("num_gpus", "ring"), [(2, 1.0), (4, 1.5), (8, 1.75)])
def test_all_reduce_of_a_ring(num_gpus, ring):
    alone = prefill_s(engine(), 100)
    together = prefill_s(engine(num_gpus, all_reduce_bytes_per_s=1e5), 100)
    assert together - alone == pytest.approx(ring * 100 * 40 / 1e5)


def test_cached_tokens_are_not_reduced():
    with_link, alone = engine(2, all_reduce_bytes_per_s=1e5), engine()
    assert prefill_s(with_link, 10, 90) - prefill_s(alone, 10, 90) == pytest.approx(10 * 40 / 1e5)


def test_the_scale_brackets_computing_and_not_the_hit():
    plain, slow = engine(), engine(prefill_scale_ratio=1.5)
    assert prefill_s(slow, 10, 90) - 90e-4 == pytest.approx(1.5 * (prefill_s(plain, 10, 90) - 90e-4))


def test_startup_is_no_gpu_time():
    assert prefill_s(engine(prefill_startup_s=7.0), 100) == prefill_s(engine(), 100)


def test_columns_are_requests_one_by_one():
    times = engine()
    new, cached = np.array([100, 10, 1]), np.array([0, 90, 999])
    each = [prefill_s(times, int(n), int(c)) for n, c in zip(new, cached, strict=True)]
    assert times.prefill_compute_s(new, cached).tolist() == pytest.approx(each)


@pytest.mark.parametrize(
    ("batch", "context", "step_s"),
    [
        (1, 0, 0.004 + 0.001 + 0.002),
        (1, 100, 0.004 + 0.001 + 0.002 + 100 * 20 / 2e6),
        (32, 100_000, 0.004 + 0.001 + 0.002 + 1.0),  # a dense model reads the same weights for every batch
    ],
)
def test_decode_step(batch, context, step_s):
    assert engine().decode_step_s(batch, context) == pytest.approx(step_s, rel=1e-12)


def test_the_decode_scale_covers_the_whole_step():
    assert engine(decode_scale_ratio=1.8).decode_step_s(3, 500) == pytest.approx(
        1.8 * engine().decode_step_s(3, 500)
    )


def test_double_bandwidth_halves_its_own_term_only():
    slow, fast = engine(), engine(kv_bytes_per_s=4e6)
    assert fast.kv_read_s(500) == pytest.approx(slow.kv_read_s(500) / 2)
    assert fast.weight_read_s(1) == slow.weight_read_s(1)
    weights = engine(weight_bytes_per_s=2.52e6)
    assert weights.weight_read_s(1) == pytest.approx(slow.weight_read_s(1) / 2)
    assert weights.kv_read_s(500) == slow.kv_read_s(500)


def test_kv_term_is_linear_in_the_context():
    assert engine().kv_read_s(1000) == pytest.approx(10 * engine().kv_read_s(100))
    assert engine().kv_read_s(0) == 0


def test_long_prompts_cost_their_square_and_a_cached_prefix_most_of_it():
    times = engine(gemm_flops_per_s=FREE, hbm_hit_s_per_token=0.0)
    assert prefill_s(times, 20_000) / prefill_s(times, 10_000) == pytest.approx(4, rel=1e-3)
    # The tail still attends to everything: half cached saves a quarter of the pairs, not a half.
    assert prefill_s(times, 10_000, 10_000) / prefill_s(times, 20_000) == pytest.approx(0.75, rel=1e-3)
