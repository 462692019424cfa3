"""One TOML file becomes a validated `Scenario`: everything that the user decides."""

import difflib
import tomllib
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import msgspec

from warmset.errors import InputError, ScenarioError
from warmset.units import format_bytes, parse_bytes, parse_seconds

MAX_SCENARIO_BYTES = 2**20
KINDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "object": "a table"}
MOST_NODES = 4096
"""More nodes than one trace can keep busy; a larger fleet is a multiple of this one."""
MAX_TIER_BYTES = 10**18

WeightFormat = Literal["bf16", "fp16", "fp8", "int8", "int4"]
KvLayoutName = Literal["bf16", "fp16", "fp8", "int8"]
Currency = Literal["CNY", "USD"]
LoadPolicy = Literal["always", "when_faster"]
Number = TypeVar("Number", int, float)
RoutingChoice = Literal["prefix", "round_robin"]


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every part of a scenario has in common."""


class ModelChoice(_Section, frozen=True, kw_only=True):
    """The model, and how its weights and its KV are stored."""

    name: str = "Qwen3-235B-A22B"
    weights: WeightFormat = "fp8"
    kv: KvLayoutName = "bf16"
    max_context_tokens: int | None = None
    """Of the deployment; `None` takes the config's own."""


class TrafficChoice(_Section, frozen=True, kw_only=True):
    """The request log to plan for."""

    trace: str = "mooncake-conversation"
    block_tokens: int | None = None
    """That one id of the log covers; `None` takes the log's own, or what its format usually has."""
    load_factor: float = 1.0
    routing: RoutingChoice = "prefix"


class HardwareChoice(_Section, frozen=True, kw_only=True):
    """One node, and the limits of the search for how many."""

    gpu: str = "H20-141G"
    gpus_per_node: int = 8
    tensor_parallel: int | None = None
    """`None`: all GPUs of the node."""
    max_nodes: int = 64
    nodes: int | None = None

    @property
    def gpus_per_engine(self) -> int:
        """GPUs that hold one copy of the weights."""
        return self.gpus_per_node if self.tensor_parallel is None else self.tensor_parallel

    @property
    def engines_per_node(self) -> int:
        """Engines that share a node."""
        return self.gpus_per_node // self.gpus_per_engine


class TierChoice(_Section, frozen=True, kw_only=True):
    """The tiers below HBM, for each node."""

    dram: str = "1TiB"
    nvme: str = "14TB"
    remote: str = "0GB"
    inclusive: bool = True
    load: LoadPolicy = "always"

    def capacity_bytes(self, tier: Literal["dram", "nvme", "remote"]) -> int:
        """Given size of one tier of one node."""
        return parse_bytes({"dram": self.dram, "nvme": self.nvme, "remote": self.remote}[tier])


class SloChoice(_Section, frozen=True, kw_only=True):
    """What the service promises to `percentile` percent of its requests."""

    ttft: str = "5s"
    tpot: str = "60ms"
    percentile: int = 95

    @property
    def ttft_s(self) -> float:
        """Time to the first token, at most."""
        return parse_seconds(self.ttft)

    @property
    def tpot_s(self) -> float:
        """Time per output token after the first, at most."""
        return parse_seconds(self.tpot)


class Assumed(_Section, frozen=True, kw_only=True):
    """A constant or a price that the user sets."""

    value: float
    low: float | None = None
    high: float | None = None


class Scenario(_Section, frozen=True, kw_only=True):
    """Model, traffic, hardware, tiers, SLO and assumptions of one evaluation."""

    name: str = "Agent and chat platform"
    currency: Currency = "CNY"
    model: ModelChoice = ModelChoice()
    traffic: TrafficChoice = TrafficChoice()
    hardware: HardwareChoice = HardwareChoice()
    tiers: TierChoice = TierChoice()
    slo: SloChoice = SloChoice()
    assume: dict[str, Assumed] = {}


def default_scenario_text() -> str:
    """The built-in scenario with its comments: a complete file to start from."""
    return (resources.files("warmset") / "default_scenario.toml").read_text(encoding="utf-8")


def load_scenario(path: Path | None) -> Scenario:
    """Read and check a scenario file; `None` is the built-in one.

    Raises: ScenarioError in one line with file, field and what is allowed.
    """
    if path is None:
        return parse_scenario(default_scenario_text(), "built-in scenario")
    try:
        if path.stat().st_size > MAX_SCENARIO_BYTES:
            raise ScenarioError(f"{path}: larger than {MAX_SCENARIO_BYTES} bytes; is this a scenario?")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise ScenarioError(f"{path}: is not UTF-8 text; a scenario is a TOML file") from error
    return parse_scenario(text, str(path))


def parse_scenario(text: str, where: str) -> Scenario:
    """A checked scenario out of TOML text; `where` names it in errors."""
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{where}: is not TOML: {error}") from error
    return scenario_from_tree(tree, where)


def scenario_from_tree(tree: dict[str, Any], where: str) -> Scenario:
    """A checked scenario out of nested tables."""
    _refuse_unknown_fields(tree, Scenario, where, "")
    try:
        scenario = msgspec.convert(tree, Scenario)
    except msgspec.ValidationError as error:
        raise ScenarioError(f"{where}: {_explained(str(error), tree)}") from error
    check_scenario(scenario, where)
    return scenario


def _explained(problem: str, tree: dict[str, Any]) -> str:
    """What is wrong with a value, and what may stand there instead."""
    text, _, place = problem.partition(" - at `$.")
    path = place.rstrip("`").split(".")
    if not place or "[" in place:
        return problem
    section: Any = Scenario
    value: Any = tree
    for name in path:
        section = {field.name: field.type for field in msgspec.structs.fields(section)}.get(name)
        value = value.get(name) if isinstance(value, dict) else None
        if not (isinstance(section, type) and issubclass(section, msgspec.Struct)):
            break
    if choices := [str(choice) for choice in get_args(section) if isinstance(choice, str)]:
        return f"{'.'.join(path)} is {value!r}: it must be one of {', '.join(choices)}"
    if section is str:
        return f"{'.'.join(path)} is {value!r}: it must be text in quotes, a size or a duration with its unit"
    wanted = text.partition("`")[2].partition("`")[0].removesuffix(" | null")
    return f"{'.'.join(path)} is {value!r}: it must be {KINDS.get(wanted, wanted)}"


def check_scenario(scenario: Scenario, where: str) -> None:
    """Refuse values that no evaluation could use.

    Raises: ScenarioError that names the field, the value and what is allowed.
    """
    hardware, slo = scenario.hardware, scenario.slo
    if scenario.traffic.block_tokens is not None:
        _at_least(where, "traffic.block_tokens", scenario.traffic.block_tokens, 1)
    _above_zero(where, "traffic.load_factor", scenario.traffic.load_factor)
    _at_least(where, "hardware.gpus_per_node", hardware.gpus_per_node, 1)
    for field, nodes in (("max_nodes", hardware.max_nodes), ("nodes", hardware.nodes)):
        if nodes is not None and not 1 <= nodes <= MOST_NODES:
            raise ScenarioError(f"{where}: hardware.{field} is {nodes}: it must be 1 to {MOST_NODES}")
    if hardware.gpus_per_engine < 1 or hardware.gpus_per_node % hardware.gpus_per_engine:
        raise ScenarioError(
            f"{where}: hardware.tensor_parallel is {hardware.gpus_per_engine}: it must divide "
            f"hardware.gpus_per_node, which is {hardware.gpus_per_node}"
        )
    if scenario.model.max_context_tokens is not None:
        _at_least(where, "model.max_context_tokens", scenario.model.max_context_tokens, 1)
    if not 1 <= slo.percentile <= 100:
        raise ScenarioError(f"{where}: slo.percentile is {slo.percentile}: it must lie between 1 and 100")
    for tier in ("dram", "nvme", "remote"):
        size = _parsed(where, f"tiers.{tier}", parse_bytes, getattr(scenario.tiers, tier))
        if size > MAX_TIER_BYTES:
            raise ScenarioError(
                f"{where}: tiers.{tier} is {size} bytes: it must be at most {format_bytes(MAX_TIER_BYTES)}"
            )
    for field in ("ttft", "tpot"):
        limit = _parsed(where, f"slo.{field}", parse_seconds, getattr(slo, field))
        _above_zero(where, f"slo.{field}", limit)


def _parsed(where: str, field: str, parse: Callable[[str], Number], text: str) -> Number:
    try:
        return parse(text)
    except InputError as error:
        raise ScenarioError(f"{where}: {field}: {error}") from error


def _at_least(where: str, field: str, value: int, least: int) -> None:
    if value < least:
        raise ScenarioError(f"{where}: {field} is {value}: it must be at least {least}")


def _above_zero(where: str, field: str, value: float) -> None:
    if not 0 < value < float("inf"):
        raise ScenarioError(f"{where}: {field} is {value}: it must be above 0")


def _refuse_unknown_fields(
    tree: dict[str, Any], section: type[msgspec.Struct], where: str, path: str
) -> None:
    """Name the field that is not known, and the nearest one that is."""
    known = {field.name: field.type for field in msgspec.structs.fields(section)}
    for name, value in tree.items():
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {path}{near[0]}?" if near else f"known here: {', '.join(known)}"
            raise ScenarioError(f"{where}: unknown field {path}{name}; {hint}")
        inner = known[name]
        if isinstance(value, dict) and isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            _refuse_unknown_fields(value, inner, where, f"{path}{name}.")
