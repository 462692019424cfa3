"""The parts of the answer that only tell what was given: model, node, traffic, and what each tier did."""

import numpy as np
import numpy.typing as npt

from warmset.evaluate.fleet import FleetRange
from warmset.evaluate.inputs import Inputs
from warmset.evaluation import (
    HardwareSummary,
    LengthQuantiles,
    ModelSummary,
    TierName,
    TierTraffic,
    TrafficKind,
    TrafficSummary,
)
from warmset.model import active_parameters, num_parameters, weight_bytes
from warmset.serving.outcome import arrival_span_s
from warmset.stats import quantile


def model_summary(inputs: Inputs) -> ModelSummary:
    """The model as it is deployed."""
    spec, choice = inputs.spec, inputs.scenario.model
    return ModelSummary(
        name=spec.name,
        cache_class=spec.cache_class,
        num_layers=spec.num_layers,
        kv_layout=choice.kv,
        weight_format=choice.weights,
        growth_bytes_per_token=inputs.logical_bytes_per_token,
        node_bytes_per_token=inputs.engine_bytes_per_token,
        num_parameters=num_parameters(spec),
        num_active_parameters=active_parameters(spec),
        weight_bytes=weight_bytes(spec, choice.weights),
        max_context_tokens=inputs.max_context_tokens,
    )


def hardware_summary(inputs: Inputs) -> HardwareSummary:
    """One node."""
    hardware = inputs.scenario.hardware
    return HardwareSummary(
        accelerator=inputs.accelerator_name,
        num_gpus=hardware.gpus_per_node,
        tensor_parallel=hardware.gpus_per_engine,
        hbm_bytes_per_gpu=int(inputs.book.fact("gpu_memory_bytes").value),
    )


def traffic_summary(inputs: Inputs, kinds: tuple[TrafficKind, ...]) -> TrafficSummary:
    """What the trace holds, as logged."""
    trace, workload = inputs.trace, inputs.workload
    span_s = trace.span_ms / 1000
    return TrafficSummary(
        name=trace.provenance.name,
        source=trace.provenance.source,
        licence=trace.provenance.licence,
        citation=trace.provenance.citation,
        block_tokens=trace.block_tokens,
        num_requests=trace.num_requests,
        span_s=span_s,
        requests_per_s=trace.num_requests / arrival_span_s(workload.arrival_s) if span_s > 0 else None,
        clock_step_ms=inputs.clock_step_ms,
        routing=inputs.scenario.traffic.routing,
        block_refs=trace.block_refs,
        unique_blocks=trace.num_nodes,
        input_tokens=int(trace.input_tokens.sum()),
        output_tokens=int(trace.output_tokens.sum()),
        input_lengths=_lengths(trace.input_tokens),
        output_lengths=_lengths(trace.output_tokens),
        kinds=kinds,
        assumptions=trace.provenance.assumptions,
    )


def _lengths(tokens: npt.NDArray[np.int64]) -> LengthQuantiles:
    return LengthQuantiles(
        mean=float(tokens.sum()) / tokens.size,
        p50=int(quantile(tokens, 0.5)),
        p90=int(quantile(tokens, 0.9)),
        p99=int(quantile(tokens, 0.99)),
        longest=int(tokens.max()),
    )


def tier_traffic(fleet: FleetRange) -> tuple[TierTraffic, ...]:
    """Hits, loads and writes of each tier over the trace, expected, on the reference nodes."""
    case, nodes = fleet.expected, fleet.reference_nodes
    engine_hits, tiered_hits = case.hits("engine", nodes), case.hits("tiered", nodes)
    written = case.written_bytes("tiered", nodes)
    in_hbm = int(engine_hits.hbm_tokens.sum()), int(tiered_hits.hbm_tokens.sum())
    rows = [_tier_row("hbm", *in_hbm, loaded_bytes=0, written_bytes=0)]
    lower_hits = tiered_hits.lower_tokens.sum(axis=0).tolist()
    for budget, tokens, loaded in zip(case.budgets[1:], lower_hits, case.loaded_bytes(nodes), strict=True):
        rows.append(_tier_row(budget.tier, 0, tokens, loaded_bytes=loaded, written_bytes=written))
    return tuple(rows)


def _tier_row(
    tier: TierName, engine_tokens: int, tiered_tokens: int, *, loaded_bytes: int, written_bytes: int
) -> TierTraffic:
    return TierTraffic(
        tier=tier,
        hit_tokens={"none": 0, "engine": engine_tokens, "tiered": tiered_tokens},
        loaded_bytes={"none": 0, "engine": 0, "tiered": loaded_bytes},
        written_bytes={"none": 0, "engine": 0, "tiered": written_bytes},
    )
