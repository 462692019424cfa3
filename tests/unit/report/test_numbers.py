import math

import pytest

from warmset.facts import Estimate, exact, unknown
from warmset.report.numbers import NBSP, format_change, format_interval, format_value, format_window, show
from warmset.report.texts import Texts

EN, ZH = Texts("en"), Texts("zh")

VALUES = [
    (3.2, "s", "3.20 s", "3.20 s"),
    (42.3, "ms", "42.3 ms", "42.3 ms"),
    (3537, "s", "59.0 min", "59.0 分钟"),
    (192_512, "bytes", "193 kB", "193 kB"),
    (192_512, "bytes_per_token", "193 kB/token", "193 kB/token"),
    (4.8e12, "bytes/s", "4.80 TB/s", "4.80 TB/秒"),
    (1.42e14, "bytes_per_day", "142 TB/day", "142 TB/天"),
    (512, "tokens", "512 tokens", "512 token"),
    (144_793_823, "tokens", "145 M tokens", "145 M token"),
    (1, "blocks", "1 block", "1 块"),
    (12_031, "requests", "12,031 requests", "12,031 个请求"),
    (1, "nodes", "1 node", "1 个节点"),
    (3, "nodes", "3 nodes", "3 个节点"),
    (3.4015, "requests_per_s", "3.40 req/s", "3.40 请求/秒"),
    (42_100, "tokens_per_s", "42,100 tok/s", "42,100 token/秒"),
    (6.2e14, "flops", "620 TFLOP", "620 TFLOP"),
    (148e12, "FLOP/s", "148 TFLOP/s", "148 TFLOP/秒"),
    (0.373624, "ratio", "37.4 %", "37.4 %"),
    (2.1, "years", "2.10 years", "2.10 年"),
    (515_000, "CNY", "515,000 CNY", "515,000 CNY"),
    (-38.6, "CNY_per_hour", "−38.60 CNY/h", "−38.60 CNY/小时"),
    (0.42, "USD_per_million_tokens", "0.42 USD per million tokens", "0.42 USD/百万 token"),
    (17.6, "USD per GB", "17.60 USD/GB", "17.60 USD/GB"),
    (4.6, "per_day", "4.60 per day", "每天 4.60 次"),
    (173, "concurrency", "173", "173"),
    (2, "times", "× 2", "2 倍"),
    (400, "W", "400 W", "400 W"),
    (7, "furlongs", "7 furlongs", "7 furlongs"),
]


@pytest.mark.parametrize(("value", "unit", "en", "zh"), VALUES, ids=[f"{v[0]} {v[1]}" for v in VALUES])
def test_value_with_its_unit(value, unit, en, zh):
    assert format_value(value, unit, EN).replace(NBSP, " ") == en
    assert format_value(value, unit, ZH).replace(NBSP, " ") == zh


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.00001, "ratio", "< 0.1 %"),
        (0.001, "CNY_per_hour", "< 0.01 CNY/h"),
        (-0.001, "CNY", "> −0.01 CNY"),
        (0.0, "ratio", "0.0 %"),
        (0.0, "CNY", "0.00 CNY"),
    ],
)
def test_small_is_not_printed_as_zero(value, unit, text):
    assert format_value(value, unit, EN).replace(NBSP, " ") == text


def test_number_and_unit_stay_on_one_line():
    assert " " not in format_value(144_793_823, "tokens", EN)


@pytest.mark.parametrize(
    ("mid", "low", "high", "unit", "text"),
    [
        (3.2, 2.4, 4.1, "s", "2.40–4.10"),
        (0.9, 0.7, 1.4, "s", "700 ms–1.40 s"),
        (0.9, 0.7, 0.95, "s", "700–950"),
        (-5.0, -8.0, 2.0, "CNY", "−8.00 to 2.00"),
        (2.1, 1.2, None, "years", "1.20 years or more"),
        (2.1, None, 4.0, "years", "up to 4 years"),
        (2.1, 1.2, math.inf, "years", "1.20 years or more"),
        (2.1, 2.1, 2.1, "years", ""),
        (2.1, None, None, "years", ""),
        (0.37, 0.3701, 0.3702, "ratio", ""),
    ],
)
def test_interval(mid, low, high, unit, text):
    assert format_interval(mid, low, high, unit, EN).replace(NBSP, " ") == text


def test_exact_has_no_interval():
    shown = show(exact(0.5, "ratio"), EN)
    assert (shown.interval, shown.basis) == ("", "exact")


def test_interval_in_a_sentence():
    estimate = Estimate(mid=3.2, low=2.4, high=4.1, unit="s")
    assert show(estimate, EN).inline(EN).replace(NBSP, " ") == "3.20 s (2.40–4.10)"
    assert show(estimate, ZH).inline(ZH).replace(NBSP, " ") == "3.20 s（2.40–4.10）"


@pytest.mark.parametrize(
    ("note", "en", "zh"),
    [
        ("saturated", "n/a (the queue grows without end)", "无数据（队列无限增长）"),
        ("not in any catalog", "n/a (not in any catalog)", "无数据（not in any catalog）"),
        ("", "n/a (not known)", "无数据（原因未知）"),
    ],
)
def test_unknown_says_why(note, en, zh):
    assert show(unknown("s", note), EN).text == en
    assert show(unknown("s", note), ZH).text == zh


def test_infinite_is_not_a_number():
    assert show(Estimate(mid=math.inf, unit="s"), EN).value is None


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (6.8, 3.2, "−52.9 %"),
        (2.8, 3.4, "+21.4 %"),
        (173, 6390, "× 36.9"),
        (2.0, 3.98, "+99.0 %"),
        (2.0, 4.0, "× 2"),
        (173, 173, "unchanged"),
    ],
)
def test_change(before, after, text):
    change = format_change(exact(before, "s"), exact(after, "s"), EN)
    assert change is not None
    assert change[0] == text


@pytest.mark.parametrize(("before", "after"), [(None, 1.0), (1.0, None), (0.0, 1.0)])
def test_no_change_without_both_numbers(before, after):
    assert format_change(Estimate(mid=before, unit="s"), Estimate(mid=after, unit="s"), EN) is None


@pytest.mark.parametrize(
    ("window_s", "text"), [(60, "1 min"), (3600, "60 min"), (21_600, "6 h"), (86_400, "1 d"), (90, "90 s")]
)
def test_window(window_s, text):
    assert format_window(window_s, EN) == text
