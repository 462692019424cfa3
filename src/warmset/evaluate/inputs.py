"""Everything that an evaluation works on, gathered once from a scenario."""

from dataclasses import dataclass
from math import ceil

import numpy as np

from warmset.catalog import find_accelerator
from warmset.errors import Finding, ScenarioError, UnsupportedModelError
from warmset.evaluate.facts_used import FactBook, collect_facts
from warmset.model import (
    ModelSpec,
    growth_bytes_per_token,
    growth_bytes_per_token_per_gpu,
    kv_bytes,
    kv_layout,
    load_model,
)
from warmset.reuse import CapacityCurve, ReuseProfile, capacity_curve, profile_reuse
from warmset.reuse.kinds import RequestKinds, Sessions, request_kinds, sessions
from warmset.scenario import Scenario
from warmset.serving import Workload
from warmset.trace import Trace, open_trace
from warmset.trace.clock import spread_arrivals

CLASSES_WITH_TRIED_TIMES = {"MHA", "GQA", "MQA", "MLA"}


@dataclass(frozen=True, slots=True)
class Inputs:
    """Scenario, model, traffic and facts, and what is exactly known of the traffic's reuse."""

    scenario: Scenario
    spec: ModelSpec
    max_context_tokens: int
    """Of the deployment; `spec` keeps what the config says."""
    book: FactBook
    accelerator_name: str
    trace: Trace
    profile: ReuseProfile
    curve: CapacityCurve
    kinds: RequestKinds
    sessions: Sessions
    workload: Workload
    clock_step_ms: int
    findings: tuple[Finding, ...]

    @property
    def logical_bytes_per_token(self) -> int:
        """KV of one token, stored once."""
        return ceil(growth_bytes_per_token(self.spec, kv_layout(self.scenario.model.kv)))

    @property
    def bytes_per_token_per_gpu(self) -> int:
        """KV of one token on each GPU of an engine."""
        tensor_parallel = self.scenario.hardware.gpus_per_engine
        return growth_bytes_per_token_per_gpu(self.spec, kv_layout(self.scenario.model.kv), tensor_parallel)

    @property
    def engine_bytes_per_token(self) -> int:
        """KV of one token on all GPUs of an engine, copies included."""
        return self.bytes_per_token_per_gpu * self.scenario.hardware.gpus_per_engine

    @property
    def block_bytes(self) -> int:
        """One full block of the trace in HBM, copies included."""
        return self.engine_bytes_per_token * self.trace.block_tokens


def gather_inputs(scenario: Scenario) -> Inputs:
    """Read the model and the trace, and take the one pass over it.

    Raises: an InputError in one line for whatever cannot be used.
    """
    accelerator = find_accelerator(scenario.hardware.gpu)
    spec = load_model(scenario.model.name)
    _refuse_unless_all_grows(spec, scenario)
    book = collect_facts(scenario, accelerator)
    trace = open_trace(scenario.traffic.trace, scenario.traffic.block_tokens)
    if int(trace.input_tokens.sum()) == 0:
        raise ScenarioError(
            f"{scenario.traffic.trace}: no request has any input tokens; there is nothing to serve"
        )
    if not trace.has_blocks:
        raise ScenarioError(
            f"{scenario.traffic.trace}: the log has lengths only, and what prompts share is unknown: "
            "warmset trace describe tells what such a log can; an evaluation needs block ids or text"
        )
    trace = trace.sped_up(scenario.traffic.load_factor)
    profile = profile_reuse(trace)
    arrivals = spread_arrivals(trace)
    seconds = (arrivals.arrival_ms - arrivals.arrival_ms[0]) / 1000
    context_tokens = scenario.model.max_context_tokens or spec.max_context_tokens
    if context_tokens is None:
        raise ScenarioError(f"{spec.name}: the config names no context length: set model.max_context_tokens")
    findings = [*trace.findings]
    if arrivals.finding is not None:
        findings.append(arrivals.finding)
    findings.extend(_beyond_context(trace, context_tokens))
    findings.extend(_untried_times(spec))
    return Inputs(
        scenario=scenario,
        spec=spec,
        max_context_tokens=context_tokens,
        book=book,
        accelerator_name=accelerator.name,
        trace=trace,
        profile=profile,
        curve=capacity_curve(profile),
        kinds=request_kinds(profile),
        sessions=sessions(profile),
        workload=Workload(seconds, np.maximum(trace.input_tokens, 1), trace.output_tokens),
        clock_step_ms=arrivals.clock_step_ms,
        findings=tuple(findings),
    )


def _refuse_unless_all_grows(spec: ModelSpec, scenario: Scenario) -> None:
    """Tiers are planned in bytes per cached token, so far the same for every token of a sequence."""
    kv = kv_bytes(spec, kv_layout(scenario.model.kv))
    if kv.windows or kv.state_bytes_per_sequence or kv.cross_bytes_per_input:
        raise UnsupportedModelError(
            f"{spec.name}: {spec.cache_class}: evaluate plans tiers for models whose whole KV grows with the "
            "sequence; for the bytes of this one run `warmset size`"
        )


def _untried_times(spec: ModelSpec) -> tuple[Finding, ...]:
    """The latency model was held against published times of plain attention only; see docs/accuracy.md."""
    if spec.cache_class in CLASSES_WITH_TRIED_TIMES:
        return ()
    example = f"{spec.name}: {spec.cache_class}"
    return (Finding("untried_times", 1, example),)


def _beyond_context(trace: Trace, max_context_tokens: int) -> tuple[Finding, ...]:
    length = trace.input_tokens + trace.output_tokens
    beyond = np.flatnonzero(length > max_context_tokens)
    if beyond.size == 0:
        return ()
    first = int(beyond[0])
    example = f"request {first + 1}: {int(length[first])} tokens, the deployment takes {max_context_tokens}"
    return (Finding("beyond_context", int(beyond.size), example),)
