"""One corner of the interval: tiers, latency model, and what the fleet does under each baseline."""

from dataclasses import dataclass, field
from math import ceil
from typing import Literal

import numpy as np

from warmset.errors import InfeasibleError
from warmset.evaluate.engine import engine_times, load_path
from warmset.evaluate.facts_used import Corner
from warmset.evaluate.inputs import Inputs
from warmset.evaluation import Baseline, Routing, TierBudget
from warmset.facts import Fact
from warmset.model import Placement, weight_bytes_per_gpu
from warmset.serving import (
    EngineTimes,
    Fleet,
    LoadPath,
    Promise,
    RequestHits,
    ServingOutcome,
    serve,
    worth_loading,
)
from warmset.serving.outcome import arrival_span_s
from warmset.serving.slo import sustainable_load_factor
from warmset.stats import quantile
from warmset.tiers import (
    ChunkFormat,
    HbmReserves,
    TierReserves,
    TierStack,
    hbm_budget,
    hit_tokens_by_tier,
    lower_tier_budget,
    stack_capacities,
)

LowerTier = Literal["dram", "nvme", "remote"]
LOWER_TIERS: tuple[LowerTier, ...] = ("dram", "nvme", "remote")


def chunk_format(inputs: Inputs) -> ChunkFormat:
    """How the lower tiers store KV: one object for each GPU's own heads, a latent once for all of them."""
    book = inputs.book
    chunk_tokens = int(book.fact("chunk_tokens").value)
    return ChunkFormat(
        chunk_tokens=chunk_tokens,
        ranks=1 if inputs.spec.is_latent else inputs.scenario.hardware.gpus_per_engine,
        bytes_per_rank=chunk_tokens * inputs.bytes_per_token_per_gpu,
        alignment_bytes=int(book.fact("alignment_bytes").value),
    )


def stored_bytes_per_token(chunks: ChunkFormat) -> int:
    """What a lower tier keeps for one token, alignment included, rounded up."""
    return -(-chunks.chunk_bytes // chunks.chunk_tokens)


@dataclass(slots=True)
class Case:
    """The fleet at one corner; outcomes are computed once and kept."""

    inputs: Inputs
    corner: Corner
    sizes: dict[LowerTier, int]
    engine: EngineTimes = field(init=False)
    chunks: ChunkFormat = field(init=False)
    budgets: tuple[TierBudget, ...] = field(init=False)
    """HBM first, then the lower tiers that exist."""
    _held: dict[tuple[Baseline, int], RequestHits] = field(init=False, default_factory=dict)
    _hits: dict[tuple[Baseline, int], RequestHits] = field(init=False, default_factory=dict)
    _outcomes: dict[tuple[Baseline, int, float], ServingOutcome] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Budgets and rates follow from the inputs."""
        self.chunks = chunk_format(self.inputs)
        scenario = self.inputs.scenario
        self.engine = engine_times(
            self.inputs.spec,
            scenario.model,
            scenario.hardware.gpus_per_engine,
            self.inputs.book,
            self.corner,
        )
        self.budgets = (
            _hbm(self.inputs, self.corner),
            *_lower(self.inputs, self.corner, self.sizes, self.chunks),
        )
        if self.pool_tokens_per_engine < 1:
            raise InfeasibleError(
                f"{self.budgets[0].usable_bytes} bytes of HBM are left for KV, not a token for each engine: "
                "use more GPUs per node, a larger tensor_parallel or smaller weights"
            )

    @property
    def promise(self) -> Promise:
        """The SLO of the scenario."""
        slo = self.inputs.scenario.slo
        return Promise(slo.ttft_s, slo.tpot_s, slo.percentile / 100)

    @property
    def pool_tokens_per_engine(self) -> int:
        """KV tokens in the HBM of one engine."""
        usable = self.budgets[0].usable_bytes // self.inputs.scenario.hardware.engines_per_node
        return usable // self.inputs.engine_bytes_per_token

    def stack(self, baseline: Baseline, num_nodes: int) -> TierStack | None:
        """The tiers that hold reusable KV under a baseline; `None` where nothing does."""
        budgets = self._budgets_of(baseline)
        return stack_capacities(budgets, num_nodes) if budgets else None

    def hits(self, baseline: Baseline, num_nodes: int) -> RequestHits:
        """Hit tokens of every request, by tier, that are loaded at the offered load."""
        key = (baseline, num_nodes)
        if key not in self._hits:
            held = self.held(baseline, num_nodes)
            fleet = self._fleet(baseline, num_nodes, load_factor=1.0)
            self._hits[key] = worth_loading(self.inputs.workload, held, fleet)
        return self._hits[key]

    def held(self, baseline: Baseline, num_nodes: int) -> RequestHits:
        """Hit tokens of every request, by tier, whether they are worth loading or not."""
        key = (baseline, num_nodes)
        if key not in self._held:
            self._held[key] = self.routed_hits(baseline, num_nodes, self.inputs.scenario.traffic.routing)
        return self._held[key]

    def routed_hits(self, baseline: Baseline, num_nodes: int, routing: Routing) -> RequestHits:
        """Hit tokens of every request under a given way of routing."""
        requests = self.inputs.trace.num_requests
        if baseline == "none":
            return RequestHits(np.zeros(requests, np.int64), np.zeros((requests, 0), np.int64))
        tokens = hit_tokens_by_tier(self.inputs.profile, self._budgets_of(baseline), num_nodes, routing)
        return RequestHits(tokens[:, 0], tokens[:, 1:])

    def _budgets_of(self, baseline: Baseline) -> tuple[TierBudget, ...]:
        return {"none": (), "engine": self.budgets[:1], "tiered": self.budgets}[baseline]

    def outcome(self, baseline: Baseline, num_nodes: int, load_factor: float = 1.0) -> ServingOutcome:
        """What becomes of the requests on so many nodes at so many times the load."""
        # Finer than the search for it, so that what is kept is found again.
        load_factor = round(load_factor, 4)
        key = (baseline, num_nodes, load_factor)
        if key not in self._outcomes:
            workload = self.inputs.workload.sped_up(load_factor)
            fleet = self._fleet(baseline, num_nodes, load_factor)
            self._outcomes[key] = serve(workload, self.held(baseline, num_nodes), fleet)
        return self._outcomes[key]

    def nodes_needed(self, baseline: Baseline) -> int | None:
        """The fewest nodes that keep the SLO at the offered load; `None` if `max_nodes` do not."""
        most = self.inputs.scenario.hardware.max_nodes

        def holds(num_nodes: int) -> bool:
            return self.promise.holds(self.outcome(baseline, num_nodes))

        if not holds(most):
            return None
        low, high = 0, most
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(middle) else (middle, high)
        return high

    def sustainable_factor(self, baseline: Baseline, num_nodes: int) -> float | None:
        """How many times the offered load these nodes carry within the SLO."""
        return sustainable_load_factor(self.promise, lambda factor: self.outcome(baseline, num_nodes, factor))

    def loaded_bytes(self, num_nodes: int) -> tuple[int, ...]:
        """KV that `tiered` loads from each lower tier over the trace, on all nodes."""
        tokens = self.hits("tiered", num_nodes).lower_tokens.sum(axis=0).tolist()
        paths = self.load_paths("tiered", num_nodes)
        return tuple(count * path.bytes_per_token for count, path in zip(tokens, paths, strict=True))

    def written_bytes(self, baseline: Baseline, num_nodes: int) -> int:
        """KV written to each lower tier over the trace, by all nodes: every whole chunk that was computed."""
        if baseline != "tiered" or len(self.budgets) == 1:
            return 0
        found, chunk = self.held(baseline, num_nodes).total_tokens, self.chunks.chunk_tokens
        chunks = np.maximum(self.inputs.trace.input_tokens // chunk - found // chunk, 0)
        return int(chunks.sum()) * self.chunks.chunk_bytes

    def written_bytes_per_s(self, baseline: Baseline, num_nodes: int, load_factor: float = 1.0) -> float:
        """KV that one node writes to each of its lower tiers."""
        span_s = self.outcome_span_s / load_factor
        return self.written_bytes(baseline, num_nodes) / span_s / num_nodes

    @property
    def outcome_span_s(self) -> float:
        """Span of the arrivals at the offered load."""
        return arrival_span_s(self.inputs.workload.arrival_s)

    def load_paths(
        self, baseline: Baseline, num_nodes: int, load_factor: float = 1.0
    ) -> tuple[LoadPath, ...]:
        """The ways into HBM from the lower tiers of a node, with their writes running beside."""
        if baseline != "tiered":
            return ()
        written = self.written_bytes_per_s(baseline, num_nodes, load_factor)
        stored = stored_bytes_per_token(self.chunks)
        return tuple(
            load_path(budget.tier, self.engine, stored, written, self.inputs.book, self.corner)
            for budget in self.budgets[1:]
        )

    def _fleet(self, baseline: Baseline, num_nodes: int, load_factor: float) -> Fleet:
        return Fleet(
            engine=self.engine,
            num_nodes=num_nodes,
            engines_per_node=self.inputs.scenario.hardware.engines_per_node,
            pool_tokens_per_engine=self.pool_tokens_per_engine,
            paths=self.load_paths(baseline, num_nodes, load_factor),
            recompute_when_faster=self.inputs.scenario.tiers.load == "when_faster",
        )


def _hbm(inputs: Inputs, corner: Corner) -> TierBudget:
    book, hardware = inputs.book, inputs.scenario.hardware
    placement = Placement(tensor_parallel=hardware.gpus_per_engine)
    weights = weight_bytes_per_gpu(inputs.spec, inputs.scenario.model.weights, placement)
    block_tokens = int(book.fact("block_tokens").value)
    tokens = inputs.trace.input_tokens + inputs.trace.output_tokens
    allocated = -(-tokens // block_tokens) * block_tokens
    return hbm_budget(
        hardware.gpus_per_node,
        HbmReserves(
            memory=book.fact("gpu_memory_bytes"),
            utilization=book.fact("gpu_memory_utilization"),
            activation_per_gpu=book.fact("activation_reserve_bytes_per_gpu"),
            weight_bytes=weights * hardware.gpus_per_node,
            rounding_ratio=float((allocated - tokens).sum() / allocated.sum()),
        ),
        utilization_ratio=book.at("gpu_memory_utilization", corner),
        memory_bytes_per_gpu=int(book.at("gpu_memory_bytes", corner)),
        activation_bytes_per_gpu=int(book.at("activation_reserve_bytes_per_gpu", corner)),
        kv_bytes_per_block=inputs.block_bytes,
    )


def _lower(
    inputs: Inputs, corner: Corner, sizes: dict[LowerTier, int], chunks: ChunkFormat
) -> tuple[TierBudget, ...]:
    """Budgets of the lower tiers that exist. The index of all of them, and what is in flight, lie in DRAM."""
    book = inputs.book
    per_chunk = (
        book.fact("metadata_bytes_per_chunk").value
        + chunks.ranks * book.fact("index_bytes_per_chunk_per_rank").value
    )
    metadata = ceil(sum(sizes.values()) / chunks.chunk_bytes * per_chunk)
    below_dram = sizes["nvme"] + sizes["remote"] > 0
    deepest = quantile(inputs.trace.input_tokens, 0.99)
    staging = ceil(deepest * stored_bytes_per_token(chunks)) * inputs.scenario.hardware.engines_per_node
    return tuple(
        lower_tier_budget(
            tier,
            sizes[tier],
            TierReserves(
                usable=book.fact("tier_usable_share"),
                metadata_bytes=metadata if tier == "dram" else 0,
                staging_bytes=staging if tier == "dram" and below_dram else 0,
            ),
            chunks,
            usable_ratio=book.at("tier_usable_share", corner),
            block_tokens=inputs.trace.block_tokens,
            inclusive=inputs.scenario.tiers.inclusive,
            capacity_fact=Fact(value=sizes[tier], unit="bytes", origin="given", source="scenario"),
        )
        for tier in LOWER_TIERS
        if sizes[tier] > 0
    )
