"""What is read off an outcome, on columns written by hand."""

import numpy as np
import pytest

from tests.oracles.queue import area_in_system
from warmset.serving import ServingOutcome
from warmset.serving.outcome import arrival_span_s

NAN = float("nan")


def outcome(**changes):
    columns = {
        "arrival_s": [0.0, 1.0, 2.0, 3.0],
        "ttft_s": [0.5, 0.6, 2.0, 0.4],
        "tpot_s": [0.05, NAN, 0.02, 0.20],
        "e2e_s": [1.5, 0.6, 3.0, 2.4],
        "load_s": [0.0, 0.1, 0.0, 0.0],
        "wait_s": [0.0, 0.0, 1.5, 0.0],
    } | changes
    return ServingOutcome(
        **{name: np.array(values) for name, values in columns.items()},
        input_tokens=np.array([100, 200, 300, 400]),
        output_tokens=np.array([21, 1, 51, 11]),
        num_engines=1,
        prefill_busy_ratio=0.5,
        active_decodes_per_engine=1.0,
        hbm_demand_ratio=0.1,
    )


@pytest.mark.parametrize(
    ("arrivals", "span_s"),
    [([0.0, 1.0, 2.0, 3.0], 4.0), ([5.0, 9.0], 8.0), ([3.0], 1.0), ([2.0, 2.0, 2.0], 1.0)],
    ids=["even", "two", "one", "at_once"],
)
def test_span_goes_one_mean_gap_past_the_last_arrival(arrivals, span_s):
    assert arrival_span_s(np.array(arrivals)) == span_s


def test_rates():
    found = outcome()
    assert (found.span_s, found.offered_requests_per_s) == (4.0, 1.0)
    # The last answer is done at 3 + 2.4 s.
    assert found.throughput_tokens_per_s == pytest.approx((1000 + 84) / 5.4)
    # The queue is empty before the span is over: then the span counts.
    quick = outcome(e2e_s=[0.1, 0.1, 0.1, 0.1])
    assert quick.throughput_tokens_per_s == pytest.approx(1084 / 4.0)


@pytest.mark.parametrize(
    ("ttft_s", "tpot_s", "met"),
    [
        (1.0, 0.1, [True, True, False, False]),
        (0.5, 0.1, [True, False, False, False]),
        (9.0, 0.2, [True, True, True, True]),
        (9.0, 0.01, [False, True, False, False]),
        (0.1, 9.0, [False, False, False, False]),
    ],
)
def test_goodput_counts_who_met_both(ttft_s, tpot_s, met):
    assert outcome().meets(ttft_s, tpot_s).tolist() == met
    assert outcome().goodput_requests_per_s(ttft_s, tpot_s) == sum(met) / 4.0


def test_little():
    found = outcome()
    departures = (found.arrival_s + found.e2e_s).tolist()
    assert found.in_system * found.span_s == pytest.approx(
        area_in_system(found.arrival_s.tolist(), departures)
    )


def test_quantiles_over_all_and_over_some():
    found = outcome()
    assert found.ttft_quantile_s(0.5) == 0.5
    assert found.ttft_quantile_s(0.95) == 2.0
    assert found.ttft_quantile_s(0.5, np.array([False, True, True, False])) == 0.6
    with pytest.raises(ValueError, match="no values"):
        found.ttft_quantile_s(0.5, np.zeros(4, bool))


def test_tpot_leaves_out_answers_of_one_token():
    assert outcome().tpot_quantile_s(0.5) == 0.05
    assert outcome().tpot_quantile_s(1.0) == 0.20
    assert outcome(tpot_s=[NAN] * 4).tpot_quantile_s(0.5) is None
