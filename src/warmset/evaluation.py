"""The whole answer as a frozen tree that serialises to JSON and back.

The report, the page and the command line read only this. Sentences are not in it: it holds keys and
numbers, and each language says them in its own way.
"""

from typing import Literal

import msgspec

from warmset.facts import Estimate, Fact

SCHEMA = "warmset.evaluation/1"

Baseline = Literal["none", "engine", "tiered"]
"""`none`: no reuse at all. `engine`: the engine's prefix cache in HBM. `tiered`: HBM and the lower tiers."""
BASELINES: tuple[Baseline, ...] = ("none", "engine", "tiered")

Routing = Literal["prefix", "round_robin"]
"""To the node that holds the prefix, or to the nodes in turn."""

TierName = Literal["hbm", "dram", "nvme", "remote"]

TrafficKindKey = Literal["first", "multi_turn", "shared_prefix", "repeated", "beyond_32k"]
"""Kinds of requests, read off the prefix forest.

`first`: nothing but what every request shares was seen before. `multi_turn`: continues an earlier prompt
to its end. `shared_prefix`: shares a prefix with an earlier prompt, then differs (templates, RAG documents).
`repeated`: the whole prompt was seen before. `beyond_32k`: more than 32,768 input tokens (overlaps the rest).
"""

MetricKey = Literal[
    "ttft",
    "tpot",
    "prefill_flops",
    "goodput",
    "hbm_per_request",
    "max_concurrency",
    "sustainable_concurrency",
    "active_decodes",
    "sessions_held",
    "throughput",
    "cold_ttft",
    "hot_ttft",
    "complexity",
]
ConcurrencyKey = Literal[
    "hbm_bound", "active_on_gpu", "total_in_system", "stable_under_load", "at_200k_context"
]
ComplexityKind = Literal["component", "port", "watch", "failure"]
AssumptionGroup = Literal["workload", "hardware", "model", "serving", "tiers", "prices"]
"""Parts of the answer that an input belongs to, in the order of the report."""
Decision = Literal["buy", "buy_for_latency", "marginal", "do_not_buy"]


class _Frozen(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every part of the tree has in common."""


class ByBaseline(_Frozen, frozen=True, kw_only=True):
    """One quantity under each baseline."""

    none: Estimate
    engine: Estimate
    tiered: Estimate

    def of(self, baseline: Baseline) -> Estimate:
        """The quantity under one baseline."""
        estimates: dict[Baseline, Estimate] = {
            "none": self.none,
            "engine": self.engine,
            "tiered": self.tiered,
        }
        return estimates[baseline]


class ModelSummary(_Frozen, frozen=True, kw_only=True):
    """The model and what its KV costs."""

    name: str
    cache_class: str
    num_layers: int
    kv_layout: str
    weight_format: str
    growth_bytes_per_token: int
    """Bytes one token adds to the KV of the whole model, stored once."""
    node_bytes_per_token: int
    """Bytes one token occupies on a node under its tensor parallelism, copies included."""
    num_parameters: int
    num_active_parameters: int
    weight_bytes: int
    max_context_tokens: int


class HardwareSummary(_Frozen, frozen=True, kw_only=True):
    """One node: what a replica runs on."""

    accelerator: str
    num_gpus: int
    tensor_parallel: int
    hbm_bytes_per_gpu: int


class TrafficKind(_Frozen, frozen=True, kw_only=True):
    """One kind of requests, and what the cache does for it."""

    kind: TrafficKindKey
    num_requests: int
    input_tokens: int
    hit_tokens: dict[Baseline, int]
    ttft_p50_s: ByBaseline
    ttft_p95_s: ByBaseline


class LengthQuantiles(_Frozen, frozen=True, kw_only=True):
    """Lengths in tokens; `mean` is total over total."""

    mean: float
    p50: int
    p90: int
    p99: int
    longest: int


class TrafficSummary(_Frozen, frozen=True, kw_only=True):
    """What the trace holds."""

    name: str
    source: str
    licence: str
    citation: str
    block_tokens: int
    num_requests: int
    span_s: float
    requests_per_s: float | None
    """Requests over the time their arrivals cover; `None` where they all arrive at once."""
    clock_step_ms: int
    """Median step between arrival times; above one second, arrivals were spread over the step."""
    routing: Routing = "prefix"
    """How the plan sends requests to nodes."""
    block_refs: int
    unique_blocks: int
    input_tokens: int
    output_tokens: int
    input_lengths: LengthQuantiles
    output_lengths: LengthQuantiles
    kinds: tuple[TrafficKind, ...]
    assumptions: tuple[str, ...] = ()
    """What reading the log had to assume, one sentence each: every result rests on them."""


class CurvePoint(_Frozen, frozen=True, kw_only=True):
    """Token hit rate of one LRU pool of this capacity (tails evicted before heads)."""

    capacity_blocks: int
    capacity_bytes: int
    hit_tokens: int
    token_hit_ratio: float


class TierBoundary(_Frozen, frozen=True, kw_only=True):
    """Where a tier ends on the capacity axis: all replicas together, tiers above included."""

    tier: TierName
    capacity_blocks: int
    capacity_bytes: int
    token_hit_ratio: float


class WorkingSet(_Frozen, frozen=True, kw_only=True):
    """Distinct blocks touched in consecutive windows of one length."""

    window_s: int
    mean_blocks: int
    max_blocks: int
    mean_bytes: int
    max_bytes: int
    window_fits_trace: bool


class ReuseSummary(_Frozen, frozen=True, kw_only=True):
    """How much of the prompts was seen before, and how much capacity it takes to still have it."""

    unlimited_hit_tokens: int
    unlimited_token_hit_ratio: float
    points: tuple[CurvePoint, ...]
    boundaries: tuple[TierBoundary, ...]
    rise_start_blocks: int
    """Below this capacity the pool earns less than a tenth of all there is to earn above the shared root."""
    plateau_start_blocks: int
    """From this capacity on, less than a twentieth is left to earn."""
    working_sets: tuple[WorkingSet, ...]
    token_hit_by_routing: dict[Routing, dict[Baseline, float]] = {}
    """Token hit rate on the reference nodes if the router sends prompts to the prefix's node, and if not."""
    blocks_used_once_ratio: float | None = None
    """Share of the distinct blocks that no later request touched: stored for nothing."""


class ByteLine(_Frozen, frozen=True, kw_only=True):
    """One line of a tier's budget; negative lines are subtracted."""

    key: str
    size_bytes: int
    fact: Fact | None = None
    """What the line rests on; `None` where it is exact arithmetic on the lines above it."""


class TierBudget(_Frozen, frozen=True, kw_only=True):
    """What is left of a tier of one node after every reserve."""

    tier: TierName
    lines: tuple[ByteLine, ...]
    usable_bytes: int
    bytes_per_block: int
    usable_blocks: int
    inclusive: bool
    """Whether the tier also holds what the tiers above it hold."""


class TierTraffic(_Frozen, frozen=True, kw_only=True):
    """What one tier served over the trace under the `tiered` and the `engine` baseline."""

    tier: TierName
    hit_tokens: dict[Baseline, int]
    loaded_bytes: dict[Baseline, int]
    written_bytes: dict[Baseline, int]


class NamedEstimate(_Frozen, frozen=True, kw_only=True):
    """A number with the key under which a locale names it."""

    key: str
    value: Estimate


class MetricRow(_Frozen, frozen=True, kw_only=True):
    """One of the thirteen rows.

    `values` maps a statistic (`p50`, `p95`, `mean`, `total`) to the quantity under each baseline.
    `gain` says in numbers where the difference between `engine` and `tiered` comes from.
    """

    key: MetricKey
    values: dict[str, ByBaseline]
    gain: tuple[NamedEstimate, ...]
    holds_for: tuple[TrafficKindKey, ...]


class ComplexityItem(_Frozen, frozen=True, kw_only=True):
    """Something that must be run, opened, watched or kept consistent."""

    kind: ComplexityKind
    key: str
    detail: str = ""


class ConcurrencyRow(_Frozen, frozen=True, kw_only=True):
    """One of the five kinds of concurrency, per node."""

    key: ConcurrencyKey
    values: ByBaseline


class LoadPoint(_Frozen, frozen=True, kw_only=True):
    """The reference nodes at one offered load: the trace's arrivals sped up or slowed down."""

    load_factor: float
    offered_requests_per_s: float
    goodput_requests_per_s: dict[Baseline, float]
    throughput_tokens_per_s: dict[Baseline, float]
    ttft_p95_s: dict[Baseline, float]


class OccupancyPoint(_Frozen, frozen=True, kw_only=True):
    """HBM that must be full to reach a token hit rate, all reference nodes together."""

    token_hit_ratio: float
    engine_hbm_bytes: int
    tiered_hbm_bytes: int | None
    """`None` above what the tiers of the plan reach."""


class ContextLimit(_Frozen, frozen=True, kw_only=True):
    """Longest context one request can have; its whole KV must be in HBM while it is active."""

    baseline: Baseline
    longest_tokens: int
    limited_by: Literal["model", "hbm"]


class SessionSize(_Frozen, frozen=True, kw_only=True):
    """KV of one session at a quantile of prompt plus answer length."""

    percentile: int
    tokens: int
    logical_bytes: int
    hbm_bytes: int


class SessionCount(_Frozen, frozen=True, kw_only=True):
    """Sessions seen in a trailing window; means only where such a window fits in the trace."""

    window_s: int
    mean_sessions: float | None
    max_sessions: int
    mean_active: float
    mean_dormant: float | None


class DedupRow(_Frozen, frozen=True, kw_only=True):
    """Logical bytes (every prompt on its own) and physical bytes (each block once) in windows of a length."""

    window_s: int
    logical_bytes: int
    physical_bytes: int


class TtlRow(_Frozen, frozen=True, kw_only=True):
    """What a sliding time to live keeps, and the capacity that it asks for."""

    ttl_s: int
    token_hit_ratio: float
    mean_bytes: int | None
    """`None` where no such window fits in the trace."""
    max_bytes: Estimate
    fits: tuple[TierName, ...]
    """Tiers of the plan that could hold it at its peak, all reference nodes together."""
    window_fits_trace: bool


class OverheadRow(_Frozen, frozen=True, kw_only=True):
    """A reserve, computed: bytes a node and its share of the tier.

    `chunk_tail` reserves nothing: it is the share of all prompt tokens that the tier never stores.
    """

    tier: TierName
    key: str
    size_bytes: int | None
    share_ratio: float


class RecommendedSize(_Frozen, frozen=True, kw_only=True):
    """The size that pays for a tier of one node, and why; `None` where no size keeps the SLO.

    `net_value_per_hour` is that of all recommended sizes together, against `engine`, before staff.
    """

    tier: TierName
    given_bytes: int
    recommended_bytes: int | None
    reason: str
    token_hit_ratio: float | None
    net_value_per_hour: float | None


class CapacityPlan(_Frozen, frozen=True, kw_only=True):
    """How big each tier should be, from the traffic's own depth, sessions, sharing and time."""

    session_sizes: tuple[SessionSize, ...]
    session_source: Literal["trace", "inferred"]
    num_sessions: int
    mean_turns: float
    session_counts: tuple[SessionCount, ...]
    dedup: tuple[DedupRow, ...]
    ttl_windows: tuple[TtlRow, ...]
    overheads: tuple[OverheadRow, ...]
    recommended: tuple[RecommendedSize, ...]


class CostLine(_Frozen, frozen=True, kw_only=True):
    """One line of the hourly cost."""

    key: str
    values: ByBaseline


class TierWear(_Frozen, frozen=True, kw_only=True):
    """What the write-through traffic does to the flash of one node."""

    written_bytes_per_day: Estimate
    drive_writes_per_day: Estimate
    years_of_life: Estimate


class EconomicsSummary(_Frozen, frozen=True, kw_only=True):
    """Nodes and money under each baseline, for this traffic at the SLO."""

    currency: str
    nodes: ByBaseline
    nodes_exact: ByBaseline
    """Nodes before rounding up: what a fleet of many nodes would need for this traffic."""
    cost_lines: tuple[CostLine, ...]
    cost_per_hour: ByBaseline
    cost_per_million_tokens: ByBaseline
    """Cost per hour over input and output tokens served per hour."""
    added_capex: Estimate
    saving_per_hour: Estimate
    payback_years: Estimate
    wear: TierWear | None


class Reason(_Frozen, frozen=True, kw_only=True):
    """A sentence key with the numbers and names that go into it."""

    key: str
    numbers: dict[str, Estimate] = {}
    words: dict[str, str] = {}


class Verdict(_Frozen, frozen=True, kw_only=True):
    """The decision, its reasons, and what would change it."""

    decision: Decision
    reasons: tuple[Reason, ...]
    would_change: tuple[Reason, ...]


class Assumption(_Frozen, frozen=True, kw_only=True):
    """An input that the result rests on."""

    key: str
    group: AssumptionGroup
    fact: Fact


class FindingRow(_Frozen, frozen=True, kw_only=True):
    """What a reader repaired, skipped or noticed."""

    code: str
    count: int
    first_example: str


class Slo(_Frozen, frozen=True, kw_only=True):
    """What the service promises."""

    ttft_s: float
    tpot_s: float
    percentile: int


class Evaluation(_Frozen, frozen=True, kw_only=True):
    """The answer to: is it worth it, how big, and does it hold."""

    schema: str
    warmset_version: str
    scenario_name: str
    model: ModelSummary
    hardware: HardwareSummary
    traffic: TrafficSummary
    slo: Slo
    slo_met: dict[Baseline, bool]
    reference_nodes: int
    """Nodes at which the baselines are compared: what `engine` needs, unless the scenario fixes it."""
    reference_nodes_source: Literal["engine", "given", "cap"]
    serving_method: Literal["analytic"]
    reuse: ReuseSummary
    tier_budgets: tuple[TierBudget, ...]
    tier_traffic: tuple[TierTraffic, ...]
    utilization: ByBaseline
    metrics: tuple[MetricRow, ...]
    complexity: dict[Baseline, tuple[ComplexityItem, ...]]
    concurrency: tuple[ConcurrencyRow, ...]
    load_curve: tuple[LoadPoint, ...]
    occupancy_curve: tuple[OccupancyPoint, ...]
    context_limits: tuple[ContextLimit, ...]
    capacity: CapacityPlan
    economics: EconomicsSummary
    verdict: Verdict
    assumptions: tuple[Assumption, ...]
    findings: tuple[FindingRow, ...]


def to_json(evaluation: Evaluation) -> bytes:
    """The evaluation as indented JSON; floats keep every digit."""
    return msgspec.json.format(msgspec.json.encode(evaluation), indent=2)


def from_json(text: bytes) -> Evaluation:
    """The evaluation that `to_json` wrote.

    Raises: msgspec.ValidationError with the path of the field that does not fit.
    """
    return msgspec.json.decode(text, type=Evaluation)
