import pytest

from warmset.catalog import (
    accelerator_names,
    convert,
    default,
    find_price,
    gpu_price,
    module_price,
    rental_prices,
    server_price,
    token_prices,
)
from warmset.catalog.tables import price_rows
from warmset.errors import ScenarioError
from warmset.facts import Fact

RATE = Fact(value=7.0, unit="CNY per USD", origin="given", source="test", low=6.0, high=8.0)


@pytest.mark.parametrize(
    ("accelerator", "value"), [("H20-96G", 880_000), ("H20-3e", 1_050_000), ("H200", 1_400_000)]
)
def test_module_prices(accelerator, value):
    price = module_price(accelerator)
    assert (price.value, price.unit) == (value, "CNY per 8 GPUs")


def test_a_price_nobody_quoted_is_none():
    assert module_price("H100") is None
    assert server_price("MI300X") is None
    assert gpu_price("L20") is None
    assert rental_prices("H20-96G") == ()
    assert find_price("accelerator_purchase", "B200 HGX 8-GPU server") is None


def test_server_price_is_the_list_price_and_not_an_unofficial_one():
    assert (server_price("B300").value, server_price("B300").unit) == (550_000, "USD per 8 GPUs")
    assert (server_price("H200").value, server_price("H200").unit) == (1_500_000, "CNY per 8 GPUs")


def test_gpu_price_keeps_its_range():
    price = gpu_price("H100")
    assert (price.low, price.value, price.high) == (25_000, 25_000, 40_000)


def test_rentals_are_per_gpu_hour():
    assert {quote.unit for quote in rental_prices("H200")} == {"USD per GPU-hour"}
    assert len(rental_prices("H200")) == 9


def test_the_newest_quote_wins():
    assert find_price("fx", "CNY per USD").date == "2026-07-03"
    assert find_price("nvme", "30 TB TLC enterprise SSD").value == 10950


def test_only_a_range_gives_its_middle_and_says_so():
    price = find_price("pue", "Hyperscale")
    assert (price.low, price.value, price.high, price.origin) == (1.1, pytest.approx(1.15), 1.2, "assumed")
    assert "middle" in price.note


def test_a_misspelt_item_is_our_bug():
    with pytest.raises(KeyError):
        find_price("nvme", "no such drive")


def test_priced_accelerators_are_in_the_catalog():
    assert {row.accelerator for row in price_rows()} - {""} <= set(accelerator_names())


def test_convert_keeps_the_range_and_the_basis():
    price = convert(default("dram_price"), "CNY", RATE)
    assert price.unit == "CNY per GB"
    assert (price.low, price.value, price.high) == (
        pytest.approx(12.8 * 7),
        pytest.approx(17.6 * 7),
        pytest.approx(41.7 * 7),
    )
    assert price.note.startswith("quoted in USD, converted at 7.0 CNY per USD")


def test_convert_there_and_back():
    price = module_price("H200")
    there = convert(price, "USD", RATE)
    assert (there.value, there.unit) == (pytest.approx(200_000), "USD per 8 GPUs")
    assert convert(there, "CNY", RATE).value == pytest.approx(price.value)


def test_convert_to_its_own_currency_changes_nothing():
    assert convert(module_price("H200"), "CNY", RATE) == module_price("H200")


def test_convert_refuses_a_rate_that_does_not_connect():
    yen = find_price("network", "400G active optical cable")
    with pytest.raises(ScenarioError, match="no exchange rate from JPY to CNY"):
        convert(yen, "CNY", RATE)


def test_a_cached_token_is_never_dearer_than_a_computed_one():
    prices = token_prices()
    assert len(prices) > 30
    assert all(0 < price.cached_ratio < 1 for price in prices)
