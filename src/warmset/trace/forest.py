"""The prefix forest: every distinct prefix block once, as a vertex that knows its parent."""

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from warmset.errors import Finding

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

NO_NODE = -1
"""Parent of a root, and leaf of a request without blocks."""
UNKNOWN = -1
"""What an optional column holds where a row does not say."""
MAX_BLOCK_TOKENS = 2**30
MAX_TOKENS = 2**40
"""More than any prompt or answer has: sums over all requests still fit 64 bits."""

OPTIONAL_COLUMNS: dict[str, type[np.integer]] = {
    "session": np.int32,
    "previous": np.int32,
    "kind": np.int32,
    "model": np.int32,
    "think_ms": np.int64,
    "duration_ms": np.int64,
    "cached_tokens": np.int64,
}
"""Columns of a trace that a log may lack, with their types."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a trace comes from, for the report."""

    name: str
    source: str = ""
    licence: str = ""
    citation: str = ""
    epoch_ms: int | None = None
    """Milliseconds since 1970 (UTC) of the time that the trace calls 0, where its log has absolute times."""
    assumptions: tuple[str, ...] = ()
    """What the import had to assume, one sentence each; results that rest on it repeat it."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A prefix forest and the requests that walk it, in order of arrival.

    Shapes: `node_parent`, `node_depth` have one entry a distinct block; a parent precedes its children and
    a root has depth 1. All other columns have one entry a request.
    Ties in arrival keep file order. `leaf` is the node of the last block, `NO_NODE` where a request has none.
    """

    provenance: Provenance
    block_tokens: int
    node_parent: Int32s
    node_depth: Int32s
    arrival_ms: Int64s
    input_tokens: Int64s
    output_tokens: Int64s
    leaf: Int32s
    num_blocks: Int32s
    session: Int32s | None = None
    """Number of the session of each request, where the log names the sessions of all."""
    previous: Int32s | None = None
    """The request whose conversation each goes on with, where the log says so."""
    kind: Int32s | None = None
    """Position in `kind_names`: the class of traffic (main, sub-agent, cron, …)."""
    model: Int32s | None = None
    """Position in `model_names`."""
    think_ms: Int64s | None = None
    """From the end of the previous answer to this arrival: what a closed-loop replay waits."""
    duration_ms: Int64s | None = None
    """From the arrival to the end of the answer, as the log has it."""
    cached_tokens: Int64s | None = None
    """Input tokens that the provider's cache held: with its TTL and its breaks, not what could be reused."""
    kind_names: tuple[str, ...] = ()
    model_names: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def num_requests(self) -> int:
        """Requests in the trace."""
        return int(self.arrival_ms.size)

    @property
    def num_nodes(self) -> int:
        """Distinct prefix blocks."""
        return int(self.node_parent.size)

    @property
    def has_blocks(self) -> bool:
        """Whether the log says what prompts share; without, only lengths and times are known."""
        return self.num_nodes > 0

    @property
    def block_refs(self) -> int:
        """Blocks of all requests, repeats counted."""
        return int(self.num_blocks.sum(dtype=np.int64))

    @property
    def span_ms(self) -> int:
        """From the first arrival to the last."""
        return int(self.arrival_ms[-1] - self.arrival_ms[0])

    def tokens_to_depth(self, requests: npt.NDArray[np.integer], depth: npt.NDArray[np.integer]) -> Int64s:
        """Tokens of each request that its first `depth` blocks cover: never more than its input."""
        covered: Int64s = np.minimum(depth.astype(np.int64) * self.block_tokens, self.input_tokens[requests])
        return covered

    def only(self, requests: npt.NDArray[np.integer]) -> "Trace":
        """Some of the requests, in the given order of arrival, over the same forest.

        A request whose previous one is left out has none.
        """
        place = np.full(self.num_requests, UNKNOWN, dtype=np.int32)
        place[requests] = np.arange(requests.size, dtype=np.int32)
        optional = {
            name: column[requests] for name in OPTIONAL_COLUMNS if (column := getattr(self, name)) is not None
        }
        if self.previous is not None:
            optional["previous"] = np.where(optional["previous"] >= 0, place[optional["previous"]], UNKNOWN)
        return replace(
            self,
            arrival_ms=self.arrival_ms[requests],
            input_tokens=self.input_tokens[requests],
            output_tokens=self.output_tokens[requests],
            leaf=self.leaf[requests],
            num_blocks=self.num_blocks[requests],
            **optional,
        )

    def sped_up(self, load_factor: float) -> "Trace":
        """The same requests, `load_factor` times as fast, in whole milliseconds; reuse ages shrink too."""
        if load_factor == 1:
            return self
        return replace(self, arrival_ms=np.round(self.arrival_ms / load_factor).astype(np.int64))
