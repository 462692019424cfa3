"""Draws against the quantiles that were asked for: a fixed seed, and room for another one."""

from itertools import islice, pairwise

import numpy as np
import pytest

from warmset.trace.synth.distributions import (
    Geometric,
    InverseGaussian,
    Lognormal,
    Mixture,
    Pareto,
    Quantiles,
    Uniform,
    Zipf,
    arrival_stream,
    stream,
    whole_stream,
)

MANY = 40_000


def drawn(distribution, seed=7):
    return distribution.draw(np.random.default_rng(seed), MANY)


@pytest.mark.parametrize(("p50", "p90"), [(500, 2950), (25, 120), (35, 180), (1500, 21_600)])
def test_lognormal_meets_median_and_p90(p50, p90):
    assert np.percentile(drawn(Lognormal.from_p90(p50, p90)), (50, 90)) == pytest.approx((p50, p90), rel=0.06)


def test_lognormal_meets_median_and_mean():
    values = drawn(Lognormal.from_mean(1800, 3500))
    assert np.median(values) == pytest.approx(1800, rel=0.04)
    assert values.mean() == pytest.approx(3500, rel=0.06)


def test_lognormal_without_spread_is_its_median():
    assert set(drawn(Lognormal(100, 0.0))) == {100.0}


def test_lognormal_keeps_within_its_limits():
    values = drawn(Lognormal(500, 1.4, least=400, most=600))
    assert (values.min(), values.max()) == (400, 600)


def test_inverse_gaussian_meets_mean_and_variance():
    # variance = mean³ / shape = 380³ / 145
    values = drawn(InverseGaussian(380, 145))
    assert values.mean() == pytest.approx(380, rel=0.05)
    assert values.std() == pytest.approx((380**3 / 145) ** 0.5, rel=0.12)


def test_pareto_has_its_tail_and_its_cut():
    # P(over 20) = (10 / 20) ^ 1.8 = 0.287
    values = drawn(Pareto(10, 1.8, 600))
    assert values.min() >= 10
    assert values.max() <= 600
    assert (values > 20).mean() == pytest.approx(0.287, abs=0.015)


def test_geometric_meets_its_mean():
    values = drawn(Geometric(4))
    assert values.min() == 1
    assert values.mean() == pytest.approx(4, rel=0.04)


def test_quantiles_are_met():
    values = drawn(Quantiles((0, 10, 50, 90, 100), (1, 8, 17, 128, 1900)))
    assert np.percentile(values, (10, 50, 90)) == pytest.approx((8, 17, 128), rel=0.12)
    assert values.min() >= 1
    assert values.max() <= 1900


def test_mixture_takes_its_shares():
    values = drawn(Mixture((0.65, 0.04), (Uniform(0, 1), Uniform(10, 11), Uniform(2, 3))))
    shares = [((values >= low) & (values <= low + 1)).mean() for low in (0, 10, 2)]
    assert shares == pytest.approx([0.65, 0.04, 0.31], abs=0.015)


def test_zipf_weights_fall_with_the_place():
    # three places with weights 1, 1/2, 1/3: shares 6/11, 3/11, 2/11
    counts = np.bincount(drawn(Zipf(3, 1.0)).astype(int))
    assert counts / MANY == pytest.approx([6 / 11, 3 / 11, 2 / 11], abs=0.015)


def test_zipf_without_skew_is_even():
    assert np.bincount(drawn(Zipf(4, 0.0)).astype(int)) / MANY == pytest.approx([0.25] * 4, abs=0.015)


@pytest.mark.parametrize("cv", [1.0, 4.0])
def test_arrivals_have_rate_and_spread(cv):
    times = list(islice(arrival_stream(np.random.default_rng(3), 2.0, cv), MANY))
    gaps = np.diff(times)
    assert gaps.min() >= 0
    assert gaps.mean() == pytest.approx(500, rel=0.1)
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.1)


def test_streams_are_the_draws_and_never_end():
    values = list(islice(stream(np.random.default_rng(1), Uniform(0, 1)), 5000))
    again = list(islice(stream(np.random.default_rng(1), Uniform(0, 1)), 5000))
    assert values == again
    assert all(one != other for one, other in pairwise(values))
    whole = list(islice(whole_stream(np.random.default_rng(1), Uniform(0.5, 3.5), 1000), 5000))
    assert all(isinstance(value, int) for value in whole)
    assert 500 <= min(whole) <= max(whole) <= 3500
