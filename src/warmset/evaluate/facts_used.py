"""The inputs of one evaluation: catalog facts and what the user set, and which of them were used."""

import difflib
from collections.abc import Mapping
from math import isfinite
from typing import Literal, get_args

import msgspec

from warmset.catalog import (
    Accelerator,
    convert,
    defaults,
    gpu_price,
    module_price,
    rental_prices,
    server_price,
)
from warmset.errors import ScenarioError
from warmset.evaluation import Assumption, AssumptionGroup
from warmset.facts import Fact
from warmset.scenario import Assumed, Scenario
from warmset.units import HOURS_PER_YEAR

Corner = Literal["unfavourable", "expected", "favourable"]
CORNERS: tuple[Corner, ...] = ("unfavourable", "expected", "favourable")

GPU_FIELDS = {
    "gpu_memory_bytes": "memory_bytes_per_gpu",
    "gpu_memory_bandwidth": "memory_bandwidth",
    "gpu_bf16_flops": "bf16_flops",
    "gpu_fp8_flops": "fp8_flops",
    "gpu_int8_ops": "int8_ops",
    "gpu_link_bytes_per_s": "link_bytes_per_s",
    "gpu_host_link_bytes_per_s": "host_link_bytes_per_s",
    "gpu_host_copy_bytes_per_s": "host_copy_bytes_per_s",
    "gpu_power_w": "power_w",
}

MORE_IS_FAVOURABLE = frozenset(
    {
        "gpu_memory_bytes",
        "gpu_memory_utilization",
        "gpu_host_copy_bytes_per_s",
        "host_copy_usable_share",
        "host_dram_ceiling_bytes_per_s",
        "tier_usable_share",
        "nvme_read_bytes_per_s",
        "nvme_write_bytes_per_s",
        "nvme_mixed_read_ratio",
        "remote_read_bytes_per_s",
        "nvme_dwpd",
    }
)
LESS_IS_FAVOURABLE = frozenset(
    {
        "prefill_time_scale",
        "mla_prefill_time_scale",
        "decode_time_scale",
        "moe_decode_time_scale",
        "prefill_startup_s",
        "moe_prefill_startup_s",
        "hbm_hit_s_per_token",
        "dram_hit_fixed_s",
        "nvme_latency_s",
        "remote_latency_s",
        "activation_reserve_bytes_per_gpu",
    }
)
"""Facts that vary together between the corners of an interval. The efficiencies do not: the two time scales
carry the error of the whole latency model, and varying its parts too would count it twice."""


MAY_BE_ZERO = (
    "price",
    "staff",
    "power",
    "latency",
    "startup",
    "fixed",
    "per_layer",
    "hbm_hit",
    "reserve",
    "per_chunk",
)
"""Words of the facts that can be nothing at all. Any other is divided by, or has no meaning at zero."""
AT_MOST_ONE = ("share", "utilization", "mixed_read")
"""Words of the facts that are a part of a whole."""
WHOLE_UNITS = frozenset({"bytes", "tokens", "drives"})


class FactBook:
    """Facts by key. What is asked for is remembered, so that the report lists what the answer rests on."""

    def __init__(self, facts: Mapping[str, Fact]) -> None:
        self._facts = dict(facts)
        self._used: dict[str, Fact] = {}

    def fact(self, key: str) -> Fact:
        """One fact.

        Raises: ScenarioError when nothing was found for it; the message says how to give it.
        """
        if key not in self._facts:
            raise ScenarioError(
                f"no figure for {key} in the catalog: give one with --assume {key}=VALUE or in [assume.{key}]"
            )
        self._used[key] = self._facts[key]
        return self._facts[key]

    def has(self, key: str) -> bool:
        """Whether there is a figure."""
        return key in self._facts

    def at(self, key: str, corner: Corner) -> float:
        """A fact's value at one corner of the interval."""
        fact = self.fact(key)
        if corner == "expected" or key not in MORE_IS_FAVOURABLE | LESS_IS_FAVOURABLE:
            return fact.value
        return fact.most if (corner == "favourable") == (key in MORE_IS_FAVOURABLE) else fact.least

    def assumptions(self) -> tuple[Assumption, ...]:
        """What was used, by group."""
        listed = (Assumption(key=key, group=group_of(key), fact=fact) for key, fact in self._used.items())
        order = get_args(AssumptionGroup)
        return tuple(sorted(listed, key=lambda assumption: order.index(assumption.group)))


def group_of(key: str) -> AssumptionGroup:
    """The part of the answer that a fact belongs to."""
    if any(word in key for word in ("price", "staff", "years", "cny_per", "pue", "power", "dwpd")):
        return "prices"
    if key.startswith("gpu_") and key != "gpu_memory_utilization":
        return "hardware"
    if key.startswith(("nvme", "remote", "dram", "tier", "host", "chunk", "metadata", "index", "alignment")):
        return "tiers"
    return "serving"


def collect_facts(scenario: Scenario, accelerator: Accelerator) -> FactBook:
    """Defaults, the accelerator's own figures, its price, and over them what the scenario sets.

    Raises: ScenarioError when `[assume]` names a key that does not exist.
    """
    facts = dict(defaults())
    for key, field in GPU_FIELDS.items():
        fact: Fact | None = getattr(accelerator, field)
        if fact is not None:
            facts[key] = fact
    if (price := accelerators_price(accelerator.name, scenario.hardware.gpus_per_node, facts)) is not None:
        facts["accelerators_price_per_node"] = price
    settable = {*facts, *GPU_FIELDS, "accelerators_price_per_node", "remote_price_per_tb"}
    for key, assumed in scenario.assume.items():
        if key not in settable:
            near = ", ".join(difflib.get_close_matches(key, settable, n=3, cutoff=0.4)) or "none is near"
            raise ScenarioError(
                f"[assume.{key}]: no such assumption; nearest: {near} (the report lists all of them)"
            )
        facts[key] = _given(key, assumed, facts.get(key), scenario)
    return FactBook(facts)


def _given(key: str, assumed: Assumed, replaced: Fact | None, scenario: Scenario) -> Fact:
    unit = _unit_of_new(key, scenario.currency) if replaced is None else replaced.unit
    for number in (assumed.value, assumed.low, assumed.high):
        if number is not None:
            _check_given(key, number, unit)
    try:
        return Fact(
            value=assumed.value,
            low=assumed.low,
            high=assumed.high,
            unit=unit,
            origin="given",
            source="scenario",
        )
    except ValueError as error:
        raise ScenarioError(f"[assume.{key}]: {error}") from error


def _unit_of_new(key: str, currency: str) -> str:
    """Unit of a figure that the catalog does not have."""
    if "price" in key:
        return f"{currency} per {'TB' if key.endswith('tb') else 'node'}"
    units = {"gpu_memory_bytes": "bytes", "gpu_power_w": "W"}
    arithmetic = {"gpu_bf16_flops", "gpu_fp8_flops", "gpu_int8_ops"}
    return units.get(key, "FLOP/s" if key in arithmetic else "bytes/s")


def _check_given(key: str, number: float, unit: str) -> None:
    if not isfinite(number) or number < 0:
        raise ScenarioError(f"[assume.{key}]: {number} {unit}: it must be a number of 0 or more")
    if any(word in key for word in AT_MOST_ONE) and number > 1:
        raise ScenarioError(f"[assume.{key}]: {number} {unit}: it must be at most 1")
    if any(word in key for word in MAY_BE_ZERO):
        return
    if number == 0 or (unit in WHOLE_UNITS and number < 1):
        least = "at least 1" if unit in WHOLE_UNITS else "above 0"
        raise ScenarioError(f"[assume.{key}]: {number} {unit}: it must be {least}")


def accelerators_price(name: str, num_gpus: int, facts: Mapping[str, Fact]) -> Fact | None:
    """Price of the accelerators of a node, in the currency of the quote; `None` where nobody quoted one.

    A module of eight is preferred, then a server less the base server, then single cards, then rent over the
    depreciation time; the note says which.
    """
    if (module := module_price(name)) is not None:
        return _scaled(module, num_gpus / 8, "quote for a module of eight")
    if (server := server_price(name)) is not None:
        return _scaled(
            server, num_gpus / 8, "quote for a server of eight, which holds more than the accelerators"
        )
    if (card := gpu_price(name)) is not None:
        return _scaled(card, num_gpus, "quote for one card")
    rents = rental_prices(name)
    if not rents:
        return None
    hours = facts["depreciation_years"].value * HOURS_PER_YEAR
    cheapest = min(rents, key=lambda rent: rent.value)
    return _scaled(
        cheapest, num_gpus * hours, "no purchase quote: lowest rent, paid over the depreciation time"
    )


def _scaled(price: Fact, factor: float, how: str) -> Fact:
    return msgspec.structs.replace(
        price,
        value=price.value * factor,
        low=None if price.low is None else price.low * factor,
        high=None if price.high is None else price.high * factor,
        unit=f"{price.unit.split()[0]} per node",
        note="; ".join(text for text in (how, price.note) if text),
    )


def in_currency(book: FactBook, key: str, currency: str) -> Fact:
    """A price in the currency of the report."""
    fact = book.fact(key)
    if fact.unit.split()[0] == currency:
        return fact
    return convert(fact, currency, book.fact("cny_per_usd"))


def given_assumptions(scenario: Scenario) -> tuple[Assumption, ...]:
    """What the user decided, as inputs beside the others."""

    def given(key: str, group: AssumptionGroup, value: float, unit: str) -> Assumption:
        fact = Fact(value=value, unit=unit, origin="given", source="scenario")
        return Assumption(key=key, group=group, fact=fact)

    slo, hardware, tiers = scenario.slo, scenario.hardware, scenario.tiers
    return (
        given("load_factor", "workload", scenario.traffic.load_factor, "times"),
        given("slo_ttft", "workload", slo.ttft_s, "s"),
        given("slo_tpot", "workload", slo.tpot_s, "s"),
        given("gpus_per_node", "hardware", hardware.gpus_per_node, "GPUs"),
        given("tensor_parallel", "hardware", hardware.gpus_per_engine, "GPUs"),
        given("dram_capacity", "tiers", tiers.capacity_bytes("dram"), "bytes"),
        given("nvme_capacity", "tiers", tiers.capacity_bytes("nvme"), "bytes"),
        given("remote_capacity", "tiers", tiers.capacity_bytes("remote"), "bytes"),
    )
