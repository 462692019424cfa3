"""Facts by key and corner, and the price of a node's accelerators."""

import pytest

from tests.support.scenarios import assume, scenario_with
from warmset.catalog import default, defaults, find_accelerator, gpu_price, module_price, rental_prices
from warmset.errors import ScenarioError
from warmset.evaluate.facts_used import (
    LESS_IS_FAVOURABLE,
    MORE_IS_FAVOURABLE,
    FactBook,
    accelerators_price,
    collect_facts,
    given_assumptions,
    group_of,
    in_currency,
)
from warmset.facts import Fact

FACTS = {
    "nvme_read_bytes_per_s": Fact(value=2, low=1, high=3, unit="bytes/s", origin="assumed", source="test"),
    "nvme_latency_s": Fact(value=2, low=1, high=3, unit="s", origin="assumed", source="test"),
    "gemm_efficiency": Fact(value=2, low=1, high=3, unit="ratio", origin="assumed", source="test"),
}


@pytest.mark.parametrize(
    ("key", "unfavourable", "favourable"),
    [("nvme_read_bytes_per_s", 1, 3), ("nvme_latency_s", 3, 1), ("gemm_efficiency", 2, 2)],
    ids=["more_is_better", "less_is_better", "does_not_vary"],
)
def test_corners(key, unfavourable, favourable):
    book = FactBook(FACTS)
    assert book.at(key, "expected") == 2
    assert (book.at(key, "unfavourable"), book.at(key, "favourable")) == (unfavourable, favourable)


def test_only_what_was_asked_for_is_an_assumption():
    book = FactBook(FACTS)
    assert book.assumptions() == ()
    assert book.has("nvme_latency_s")
    book.fact("gemm_efficiency")
    book.at("nvme_latency_s", "expected")
    assert [(a.key, a.group) for a in book.assumptions()] == [
        ("gemm_efficiency", "serving"),
        ("nvme_latency_s", "tiers"),
    ]


def test_a_missing_fact_says_how_to_give_it():
    with pytest.raises(
        ScenarioError, match=r"give one with --assume gpu_power_w=VALUE or in \[assume.gpu_power_w\]"
    ):
        FactBook(FACTS).fact("gpu_power_w")


def test_what_varies_exists_and_varies_one_way():
    assert not MORE_IS_FAVOURABLE & LESS_IS_FAVOURABLE
    of_the_gpu = {key for key in MORE_IS_FAVOURABLE if key.startswith("gpu_")} - set(defaults())
    assert (MORE_IS_FAVOURABLE | LESS_IS_FAVOURABLE) - of_the_gpu <= set(defaults())


@pytest.mark.parametrize(
    ("key", "group"),
    [
        ("gpu_memory_bytes", "hardware"),
        ("gpu_power_w", "prices"),
        ("gpu_memory_utilization", "serving"),
        ("dram_price", "prices"),
        ("depreciation_years", "prices"),
        ("nvme_warranty_years", "prices"),
        ("cny_per_usd", "prices"),
        ("nvme_read_bytes_per_s", "tiers"),
        ("tier_usable_share", "tiers"),
        ("decode_startup_s", "serving"),
    ],
)
def test_groups(key, group):
    assert group_of(key) == group


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("H200", module_price("H200").value, "quote for a module of eight"),
        ("H100", 8 * gpu_price("H100").value, "quote for one card"),
        ("B300", 550_000, "quote for a server of eight"),
        (
            "MI300X",
            8 * 5 * 8760 * min(rent.value for rent in rental_prices("MI300X")),
            "no purchase quote: lowest rent",
        ),
    ],
    ids=["module", "card", "server", "rent"],
)
def test_price_of_eight(name, value, says):
    price = accelerators_price(name, 8, defaults())
    assert price.value == pytest.approx(value)
    assert price.note.startswith(says)
    assert price.unit.endswith(" per node")


def test_fewer_gpus_cost_their_share():
    assert accelerators_price("H200", 2, defaults()).value == pytest.approx(module_price("H200").value / 4)


def test_a_price_nobody_quoted():
    assert accelerators_price("L20", 8, defaults()) is None
    scenario = scenario_with({"hardware": {"gpu": "L20"}}, assume(accelerators_price_per_node=400_000))
    book = collect_facts(scenario, find_accelerator("L20"))
    assert book.fact("accelerators_price_per_node").unit == "CNY per node"


def test_prices_in_the_currency_of_the_report():
    book = collect_facts(scenario_with({}), find_accelerator("H200"))
    rate = default("cny_per_usd").value
    assert in_currency(book, "dram_price", "USD").value == default("dram_price").value
    assert in_currency(book, "dram_price", "CNY").value == pytest.approx(default("dram_price").value * rate)
    assert in_currency(book, "base_server_price", "USD").value == pytest.approx(100_000 / rate)


def test_what_the_user_decided_is_listed():
    given = {assumption.key: assumption.fact for assumption in given_assumptions(scenario_with({}))}
    assert {fact.origin for fact in given.values()} == {"given"}
    assert given["dram_capacity"].value == 2**40
    assert (given["slo_ttft"].value, given["slo_ttft"].unit) == (5.0, "s")
