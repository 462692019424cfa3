"""Signatures in cached tokens (openclaw.md section 4, a to e), each in a conversation made by hand."""

import pytest

from warmset.trace import Provenance, TraceBuilder
from warmset.trace.forest import UNKNOWN
from warmset.trace.lint import HitRate, lint_ids

MINUTE = 60_000


def trace_of(cached, inputs, gaps_ms=None):
    builder = TraceBuilder(128)
    now_ms = 0
    for number, (tokens, cached_tokens) in enumerate(zip(inputs, cached, strict=True)):
        now_ms += gaps_ms[number] if gaps_ms else 1000
        builder.add(
            arrival_ms=now_ms,
            input_tokens=tokens,
            output_tokens=1,
            session="a",
            cached_tokens=cached_tokens,
        )
    return builder.build(Provenance(name="test"))


# Code: cached, input, requests that bear it, tokens that the whole prompt before would have given.
SIGNATURES = {
    "cached_constant": (
        [0, 18_683, 18_683, 18_683],
        [20_000, 135_000, 180_000, 238_000],
        2,
        (135_000 - 18_683) + (180_000 - 18_683),
    ),
    "cached_share": (
        [5_000, 6_000, 7_500, 10_000],
        [10_000, 12_000, 15_000, 20_000],
        3,
        (10_000 - 6_000) + (12_000 - 7_500) + (15_000 - 10_000),
    ),
    "cached_alternates": (
        [25_400, 14_300, 25_400, 14_300],
        [60_000, 61_000, 62_000, 63_000],
        3,
        (60_000 - 14_300) + (61_000 - 25_400) + (62_000 - 14_300),
    ),
    "cached_falls": (
        [90_000, 60_000, 40_000, 27_000],
        [100_000, 101_000, 102_000, 103_000],
        3,
        (100_000 - 60_000) + (101_000 - 40_000) + (102_000 - 27_000),
    ),
    "cached_never": ([0, 0, 0], [2_000, 3_000, 4_000], 2, 2_000 + 3_000),
}


@pytest.mark.parametrize("code", SIGNATURES)
def test_signature(code):
    cached, inputs, count, lost_tokens = SIGNATURES[code]
    (found,) = [
        each for each in lint_ids(trace_of(cached, inputs)).findings if each.code.startswith("cached")
    ]
    assert (found.code, found.count, found.lost_tokens) == (code, count, lost_tokens)
    assert found.before == HitRate(sum(inputs), sum(cached))
    assert found.baseline == "token hit rate = cached tokens that the log reports, over all input tokens"
    assert found.after == HitRate(sum(inputs), sum(cached) + lost_tokens)


def test_nothing_cached_after_a_pause():
    gaps_ms = [0, MINUTE, 6 * MINUTE, MINUTE, 90 * MINUTE]
    trace = trace_of([0, 9_000, 0, 11_000, 100], [10_000, 11_000, 12_000, 13_000, 14_000], gaps_ms)
    (found,) = [each for each in lint_ids(trace).findings if each.code.startswith("cached")]
    assert (found.code, found.count, found.lost_tokens) == ("cached_expired", 2, 11_000 + 12_900)


@pytest.mark.parametrize(
    ("cached", "inputs"),
    [
        ([0, 10_000, 12_000, 15_000], [10_000, 12_000, 15_000, 20_000]),
        ([0, 9_984, 11_904, 14_976], [10_000, 12_000, 15_000, 20_000]),
        ([0, 10_000, 10_000, 10_000], [10_000, 10_400, 10_800, 10_900]),
        ([UNKNOWN] * 4, [10_000, 12_000, 15_000, 20_000]),
        ([0, 0, 0], [100, 200, 300]),
    ],
    ids=["all of it", "whole blocks", "hardly grows", "not in the log", "too short to cache"],
)
def test_no_signature(cached, inputs):
    assert [each.code for each in lint_ids(trace_of(cached, inputs)).findings] == []
