"""The thirteen rows: each quantity under every baseline, and in numbers where its gain comes from."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from warmset.evaluate.case import Case
from warmset.evaluate.fleet import FleetRange, exact_by_baseline, hit_tokens, total_hit_tokens
from warmset.evaluation import (
    BASELINES,
    Baseline,
    ByBaseline,
    ConcurrencyRow,
    MetricKey,
    MetricRow,
    NamedEstimate,
    TrafficKind,
    TrafficKindKey,
)
from warmset.facts import exact
from warmset.model import prefill_flops
from warmset.serving import ServingOutcome

Bools = npt.NDArray[np.bool_]

HOT_SHARE = 0.5
"""A request is hot if an unlimited cache would hit at least this share of its prompt."""
NOTICEABLE = 0.01
"""A kind of traffic gains if its median TTFT falls by at least this share."""
LONG_CONTEXT_TOKENS = 200_000
KINDS: tuple[TrafficKindKey, ...] = ("first", "multi_turn", "shared_prefix", "repeated", "beyond_32k")


def traffic_kinds(fleet: FleetRange) -> tuple[TrafficKind, ...]:
    """Each kind of requests that the trace holds, with its hits and its TTFT under every baseline."""
    inputs = fleet.inputs
    found = []
    for kind in KINDS:
        mask: Bools = getattr(inputs.kinds, kind)
        if not mask.any():
            continue
        found.append(
            TrafficKind(
                kind=kind,
                num_requests=int(mask.sum()),
                input_tokens=int(inputs.trace.input_tokens[mask].sum()),
                hit_tokens={
                    baseline: int(hit_tokens(fleet.expected, baseline, fleet.reference_nodes)[mask].sum())
                    for baseline in BASELINES
                },
                ttft_p50_s=fleet.at_reference("s", _ttft(0.5, mask)),
                ttft_p95_s=fleet.at_reference("s", _ttft(0.95, mask)),
            )
        )
    return tuple(found)


def metric_rows(fleet: FleetRange, kinds: tuple[TrafficKind, ...]) -> tuple[MetricRow, ...]:
    """All thirteen, in the order of the report."""
    gains = _Gains(fleet)
    faster = tuple(
        kind.kind for kind in kinds if _falls(kind.ttft_p50_s.engine.mid, kind.ttft_p50_s.tiered.mid)
    )
    reusing = tuple(kind.kind for kind in kinds if kind.hit_tokens["tiered"] > kind.hit_tokens["engine"])
    every = tuple(kind.kind for kind in kinds)
    cold, hot = cold_requests(fleet), hot_requests(fleet)
    ttft_gain = (gains.tokens_hit, gains.gpu_seconds_saved, gains.load_seconds, gains.queue_seconds_saved)

    def row(
        key: MetricKey,
        values: dict[str, ByBaseline],
        gain: tuple[NamedEstimate, ...],
        holds_for: tuple[TrafficKindKey, ...],
    ) -> MetricRow:
        return MetricRow(key=key, values=values, gain=gain, holds_for=holds_for)

    return (
        row("ttft", _quantiles(fleet, None), ttft_gain, faster),
        row("tpot", {"p50": _tpot(fleet, 0.5), "p95": _tpot(fleet, 0.95)}, (gains.gpu_seconds_saved,), every),
        row("prefill_flops", {"mean": _flops(fleet)}, (gains.tokens_hit, gains.flops_avoided), reusing),
        row(
            "goodput", {"total": _goodput(fleet)}, (gains.gpu_seconds_saved, gains.queue_seconds_saved), every
        ),
        row("hbm_per_request", _hbm_per_request(fleet), (gains.bytes_loaded, gains.bytes_written), reusing),
        row("max_concurrency", {"per_node": hbm_bound_concurrency(fleet)}, (), every),
        row(
            "sustainable_concurrency",
            {"per_node": sustainable_concurrency(fleet)},
            (gains.gpu_seconds_saved, gains.queue_seconds_saved),
            every,
        ),
        row("active_decodes", {"per_node": active_decodes(fleet)}, (gains.gpu_seconds_saved,), every),
        row("sessions_held", {"per_node": sessions_held(fleet)}, (gains.bytes_written,), reusing),
        row("throughput", {"total": _throughput(fleet)}, (gains.tokens_hit, gains.flops_avoided), every),
        row("cold_ttft", _quantiles(fleet, cold), (gains.queue_seconds_saved,), ("first",)),
        row("hot_ttft", _quantiles(fleet, hot), ttft_gain, reusing),
        row("complexity", {}, (), every),
    )


def cold_requests(fleet: FleetRange) -> Bools:
    """Requests with nothing to hit but what all share, whatever the cache: the same under every baseline."""
    return fleet.inputs.kinds.first


def hot_requests(fleet: FleetRange) -> Bools:
    """Requests of whose prompt an unlimited cache would hit half or more: the same under every baseline."""
    profile = fleet.inputs.profile
    return np.asarray(
        profile.hit_tokens_per_request() >= HOT_SHARE * np.maximum(profile.trace.input_tokens, 1)
    )


def concurrency_rows(fleet: FleetRange) -> tuple[ConcurrencyRow, ...]:
    """The five kinds of concurrency, per node."""
    return (
        ConcurrencyRow(key="hbm_bound", values=hbm_bound_concurrency(fleet)),
        ConcurrencyRow(key="active_on_gpu", values=active_decodes(fleet)),
        ConcurrencyRow(key="total_in_system", values=sessions_held(fleet)),
        ConcurrencyRow(key="stable_under_load", values=sustainable_concurrency(fleet)),
        ConcurrencyRow(key="at_200k_context", values=context_concurrency(fleet, LONG_CONTEXT_TOKENS)),
    )


class _Gains:
    """What the lower tiers do, in numbers: `tiered` against `engine`, reference nodes, whole trace."""

    def __init__(self, fleet: FleetRange) -> None:
        self._fleet = fleet
        hits = total_hit_tokens(fleet)
        self.tokens_hit = NamedEstimate(
            key="tokens_hit", value=exact(hits["tiered"] - hits["engine"], "tokens")
        )
        flops = {baseline: total_flops(fleet, baseline) for baseline in ("engine", "tiered")}
        self.flops_avoided = NamedEstimate(
            key="flops_avoided", value=exact(flops["engine"] - flops["tiered"], "flops")
        )
        self.gpu_seconds_saved = self._named("gpu_seconds_saved", self._engine_seconds_saved)
        self.load_seconds = self._named("load_seconds", self._mean_load_s)
        self.queue_seconds_saved = self._named("queue_seconds_saved", self._queue_seconds_saved)
        loaded = sum(fleet.expected.loaded_bytes(fleet.reference_nodes))
        self.bytes_loaded = NamedEstimate(key="bytes_loaded", value=exact(loaded, "bytes"))
        written = fleet.expected.written_bytes("tiered", fleet.reference_nodes)
        self.bytes_written = NamedEstimate(key="bytes_written", value=exact(written, "bytes"))

    def _named(self, key: str, of: Callable[[Case], float]) -> NamedEstimate:
        return NamedEstimate(key=key, value=self._fleet.estimate("s", of))

    def _outcomes(self, case: Case) -> tuple[ServingOutcome, ServingOutcome]:
        nodes = self._fleet.reference_nodes
        return case.outcome("engine", nodes), case.outcome("tiered", nodes)

    def _engine_seconds_saved(self, case: Case) -> float:
        engine, tiered = self._outcomes(case)
        busy = engine.prefill_busy_ratio - tiered.prefill_busy_ratio
        gpus = self._fleet.inputs.scenario.hardware.gpus_per_engine
        return busy * engine.num_engines * engine.span_s * gpus

    def _mean_load_s(self, case: Case) -> float:
        _, tiered = self._outcomes(case)
        loading = case.hits("tiered", self._fleet.reference_nodes).lower_tokens.sum(axis=1) > 0
        return float(tiered.load_s[loading].mean()) if loading.any() else 0.0

    def _queue_seconds_saved(self, case: Case) -> float:
        engine, tiered = self._outcomes(case)
        return float((engine.wait_s - tiered.wait_s).mean())


def total_flops(fleet: FleetRange, baseline: Baseline) -> float:
    """Prefill FLOPs of all requests of the trace on the reference nodes."""
    workload = fleet.inputs.workload
    cached = np.minimum(
        hit_tokens(fleet.expected, baseline, fleet.reference_nodes), workload.input_tokens - 1
    )
    return float(prefill_flops(fleet.inputs.spec, workload.input_tokens - cached, cached).total.sum())


def _falls(before: float | None, after: float | None) -> bool:
    return before is not None and after is not None and after < (1 - NOTICEABLE) * before


def _ttft(share: float, mask: Bools | None) -> Callable[[ServingOutcome], float]:
    return lambda outcome: outcome.ttft_quantile_s(share, mask)


def _quantiles(fleet: FleetRange, mask: Bools | None) -> dict[str, ByBaseline]:
    if mask is not None and not mask.any():
        return {}
    return {
        "p50": fleet.at_reference("s", _ttft(0.5, mask)),
        "p95": fleet.at_reference("s", _ttft(0.95, mask)),
    }


def _tpot(fleet: FleetRange, share: float) -> ByBaseline:
    return fleet.at_reference("s", lambda outcome: outcome.tpot_quantile_s(share), missing="no_second_token")


def _flops(fleet: FleetRange) -> ByBaseline:
    requests = fleet.inputs.trace.num_requests
    return exact_by_baseline(
        "flops", {baseline: total_flops(fleet, baseline) / requests for baseline in BASELINES}
    )


def _goodput(fleet: FleetRange) -> ByBaseline:
    slo = fleet.inputs.scenario.slo
    return fleet.at_reference(
        "requests_per_s", lambda outcome: outcome.goodput_requests_per_s(slo.ttft_s, slo.tpot_s)
    )


def _throughput(fleet: FleetRange) -> ByBaseline:
    return fleet.at_sustainable("tokens_per_s", lambda outcome: outcome.throughput_tokens_per_s)


def mean_request_tokens(fleet: FleetRange) -> float:
    """Mean tokens of a request when its answer is complete: total over total."""
    workload = fleet.inputs.workload
    return float((workload.input_tokens + workload.output_tokens).sum() / workload.input_tokens.size)


def _hbm_per_request(fleet: FleetRange) -> dict[str, ByBaseline]:
    """HBM of an active request, and where the KV of a dormant session lies between its turns."""
    active = mean_request_tokens(fleet) * fleet.inputs.engine_bytes_per_token
    stored = {baseline: _stored_share(fleet, baseline) for baseline in BASELINES}
    session = session_bytes(fleet)
    return {
        "active": exact_by_baseline("bytes", dict.fromkeys(BASELINES, active)),
        "parked_hbm": exact_by_baseline("bytes", {b: stored[b][0] * session for b in BASELINES}),
        "parked_below": exact_by_baseline("bytes", {b: stored[b][1] * session for b in BASELINES}),
    }


def _stored_share(fleet: FleetRange, baseline: Baseline) -> tuple[float, float]:
    """Shares of the distinct KV of the trace that HBM and the lower tiers of the reference nodes can hold."""
    stack = fleet.expected.stack(baseline, fleet.reference_nodes)
    distinct = fleet.inputs.trace.num_nodes
    if stack is None or distinct == 0:
        return 0.0, 0.0
    in_hbm = min(stack.reach_blocks[0] / distinct, 1.0)
    anywhere = min(stack.reach_blocks[-1] / distinct, 1.0)
    return in_hbm, anywhere - in_hbm


def session_bytes(fleet: FleetRange) -> float:
    """Distinct KV of one session, copies for tensor parallelism included."""
    return fleet.inputs.trace.num_nodes / fleet.inputs.sessions.total * fleet.inputs.block_bytes


def hbm_bound_concurrency(fleet: FleetRange) -> ByBaseline:
    """Requests whose whole KV fits in the HBM of a node at once: a cache does not change it."""
    tokens = mean_request_tokens(fleet)
    engines = fleet.inputs.scenario.hardware.engines_per_node
    return fleet.by_baseline("concurrency", lambda case, _: case.pool_tokens_per_engine * engines / tokens)


def sustainable_concurrency(fleet: FleetRange) -> ByBaseline:
    """Requests in the system of a node, waiting ones included, at the highest load within the SLO."""
    return fleet.at_sustainable("concurrency", lambda outcome: outcome.in_system / fleet.reference_nodes)


def active_decodes(fleet: FleetRange) -> ByBaseline:
    """Requests that decode at once on a node at the highest load within the SLO."""
    engines = fleet.inputs.scenario.hardware.engines_per_node
    return fleet.at_sustainable("concurrency", lambda outcome: outcome.active_decodes_per_engine * engines)


def sessions_held(fleet: FleetRange) -> ByBaseline:
    """Sessions whose KV a node holds somewhere: those in service, and those parked in a cache."""
    blocks = fleet.inputs.trace.num_nodes / fleet.inputs.sessions.total

    def held(case: Case, baseline: Baseline) -> float | None:
        stack = case.stack(baseline, 1)
        if stack is None:
            return case.outcome(baseline, fleet.reference_nodes).in_system / fleet.reference_nodes
        return stack.reach_blocks[-1] / blocks

    return fleet.by_baseline("sessions", held)


def context_concurrency(fleet: FleetRange, tokens: int) -> ByBaseline:
    """Sessions of one length whose KV a node can hold; active are no more than fit in HBM (`none`)."""
    engines = fleet.inputs.scenario.hardware.engines_per_node
    note = "" if tokens <= fleet.inputs.max_context_tokens else "beyond_model_context"

    def held(case: Case, baseline: Baseline) -> float:
        active = case.pool_tokens_per_engine // tokens * engines
        stack = case.stack(baseline, 1)
        reach_tokens = 0 if stack is None else stack.reach_blocks[-1] * fleet.inputs.trace.block_tokens
        return float(max(active, reach_tokens // tokens))

    return fleet.by_baseline("concurrency", held, note)
