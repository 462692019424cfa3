"""What the token pools of SGLang are planned from, and what such a plan holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

from warmset.errors import InfeasibleError
from warmset.model.engines.sglang_layers import (
    SPLIT_BY_ALL_RANKS,
    WINDOW_WITHOUT_ITSELF,
    LayerRow,
    Ranks,
    served_family,
)
from warmset.model.engines.sglang_types import Pool, SglangSettings
from warmset.model.layouts import KvLayout
from warmset.model.placement import Placement
from warmset.model.spec import ModelSpec
from warmset.model.step import Step

SOURCE = "SGLang 0.5.23 model_executor/pool_configurator.py"

EVICTION_INTERVAL_TOKENS = 128
"""SGLANG_SWA_EVICTION_INTERVAL."""


class TokenPlan(NamedTuple):
    """The pools of one pipeline stage; `tokens` is `max_total_num_tokens`."""

    tokens: int
    cell_bytes: Fraction
    pools: tuple[Pool, ...]
    fixed_bytes: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a server is to allocate; `budget_bytes` is what the states left, `page_tokens` is settled."""

    spec: ModelSpec
    layout: KvLayout
    placement: Placement
    settings: SglangSettings
    budget_bytes: int
    page_tokens: int

    @property
    def ranks(self) -> Ranks:
        """The placement as attention sees it."""
        is_split = served_family(self.spec) in SPLIT_BY_ALL_RANKS
        return Ranks(
            self.placement.attention_parallel, 1 if is_split else self.placement.decode_context_parallel
        )

    @property
    def raw_fp8_latents(self) -> bool:
        """Whether fp8 latents of DSA are stored without scales."""
        raw = self.settings.raw_fp8_latents
        return (self.settings.is_blackwell if raw is None else raw) and self.layout.keys == "fp8"

    def aligned(self, tokens: int) -> int:
        """Whole pages."""
        return tokens // self.page_tokens * self.page_tokens

    def capped(self, tokens: int) -> int:
        """Whole pages, at most `max_total_tokens`."""
        return self.aligned(min(self.aligned(tokens), self.settings.max_total_tokens or tokens))

    def no_room(self, cell_bytes: Fraction, fixed_bytes: int = 0) -> InfeasibleError:
        """That not a page fits."""
        needed = fixed_bytes - (-self.page_tokens * cell_bytes.numerator // cell_bytes.denominator)
        return InfeasibleError(
            f"{self.spec.name}: SGLang needs {needed:,} bytes of one GPU for a page of {self.page_tokens} "
            f"tokens, available {self.budget_bytes:,}: give {needed - self.budget_bytes:,} bytes more (raise "
            "mem_fraction_static) or split the model over more GPUs"
        )

    def tokens_step(self, formula: str, tokens: int) -> Step:
        """How the budget becomes tokens."""
        limit = self.settings.max_total_tokens
        words = f", at most {limit:,}" if limit else ""
        return Step(
            "max_total_num_tokens",
            f"{formula}, whole pages of {self.page_tokens}{words}",
            f"{tokens:,}",
            SOURCE,
        )


def window_tokens(spec: ModelSpec) -> int:
    """The longest window or chunk of the model, as SGLang counts it."""
    spans = [cache.span_tokens for layer in spec.layers for cache in layer.caches]
    less = 1 if served_family(spec) in WINDOW_WITHOUT_ITSELF else 0
    return max(spans) - less


def request_cap_tokens(question: Question, num_requests: int) -> int:
    """Window rows that running requests can hold at worst, chunks of prefill in flight included.

    Formula: requests·(window + 128·D + page + decode) + chunks·chunk + page, D draft tokens or 1; decode: a
    page, or 2·D with drafts (D without overlap); two chunks with overlap, else one.
    Source: srt/model_executor/pool_configurator.py, compute_swa_request_cap.
    """
    settings = question.settings
    chunks = 2 if settings.overlap_schedule else 1
    drafts = settings.num_draft_tokens
    decode = chunks * drafts if drafts else question.page_tokens
    each = (
        window_tokens(question.spec)
        + EVICTION_INTERVAL_TOKENS * (drafts or 1)
        + question.page_tokens
        + decode
    )
    cap = num_requests * each + chunks * settings.chunked_prefill_tokens + question.page_tokens
    return -(-cap // question.page_tokens) * question.page_tokens


def check_window(question: Question, swa_tokens: int, ratio: Fraction) -> None:
    """Refuses a window pool that holds no request.

    Raises: InfeasibleError with the tokens that one needs.
    """
    floor = window_tokens(question.spec) + question.page_tokens
    if swa_tokens <= floor:
        raise InfeasibleError(
            f"{question.spec.name}: the window pool needs more than {floor:,} tokens to admit a request, "
            f"available {swa_tokens:,} ({ratio} of the full pool): raise swa_full_tokens_ratio or give the "
            "KV more memory"
        )


def rows_words(question: Question, rows: Sequence[LayerRow]) -> str:
    """Layers and bytes in words: `61 × 1,152`."""
    kinds: dict[tuple[str, int], int] = {}
    for row in rows:
        kinds[row.side, row.kv_bytes] = kinds.get((row.side, row.kv_bytes), 0) + 1
    sums = " + ".join(f"{count} × {size:,}" for (_, size), count in kinds.items())
    return f"{sums} (attention TP {question.ranks.attention_parallel})"
