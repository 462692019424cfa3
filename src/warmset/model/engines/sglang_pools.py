"""The token pools of SGLang for models without DeepSeek V4's compressed entries.

One pool of whole width, or one for full layers and one for layers with a window.
Source: SGLang 0.5.23 srt/model_executor/pool_configurator.py (DefaultPoolConfigurator,
HybridSWAPoolConfigurator, SWARequestCapPoolConfigurator).
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from warmset.model.engines.sglang_layers import LayerRow, index_row_bytes, served_family
from warmset.model.engines.sglang_plan import (
    SOURCE,
    Question,
    TokenPlan,
    check_window,
    request_cap_tokens,
    rows_words,
)
from warmset.model.engines.sglang_state import requests_per_rank
from warmset.model.engines.sglang_types import Pool
from warmset.model.spec import Latent, ModelSpec
from warmset.model.step import Step

SWA_RATIO = Fraction(4, 5)
INKLING_SWA_RATIO = Fraction(1, 10)


def stage_plan(question: Question, rows: Sequence[LayerRow]) -> TokenPlan:
    """The pools of a stage with these layers.

    Raises: InfeasibleError when not a page, or no request with its window, fits.
    """
    if any(row.side == "swa" for row in rows):
        return _windowed_plan(question, rows)
    return _plain_plan(question, rows)


def _plain_plan(question: Question, rows: Sequence[LayerRow]) -> TokenPlan:
    """One row for each token in every layer. Index keys are on every DCP rank for the tokens of all."""
    dcp = question.placement.decode_context_parallel
    kv = sum(row.kv_bytes for row in rows)
    index = sum(row.index_bytes for row in rows) * (dcp if _is_latent(question.spec) else 1)
    draft = _draft_bytes(question, kv, index, len(rows))
    cell = kv + index + draft
    if not cell:
        return _plan_without_rows(question)
    tokens = question.capped(question.budget_bytes // cell)
    if tokens < 1:
        raise question.no_room(Fraction(cell))
    allocated = tokens + question.page_tokens
    keys = allocated * sum(row.key_bytes for row in rows)
    pool = Pool("full", len(rows), tokens, Fraction(cell), allocated * (kv + index), keys)
    steps = (
        Step("KV of a token", rows_words(question, rows), f"{kv:,} B", f"{SOURCE}, _compute_cell_size"),
        *_index_steps(rows, index, dcp),
        *_draft_steps(question, draft),
        question.tokens_step(f"{question.budget_bytes:,} // {cell:,}", tokens),
    )
    return TokenPlan(tokens, Fraction(cell), (pool,), 0, steps)


def _is_latent(spec: ModelSpec) -> bool:
    return any(isinstance(cache.entry, Latent) for layer in spec.layers for cache in layer.caches)


def _draft_bytes(question: Question, kv: int, index: int, num_layers: int) -> int:
    """EAGLE and MTP drafts, taken to be as wide as the model's layers; all their DSA layers own an index."""
    num_drafts = question.settings.num_draft_layers
    if not num_drafts or not num_layers:
        return 0
    if not index or not _is_latent(question.spec):
        return (kv + index) * num_drafts // num_layers
    own_index = index_row_bytes(question.spec, question.layout) * num_drafts
    return (kv * num_drafts // num_layers + own_index) * question.placement.decode_context_parallel


def _index_steps(rows: Sequence[LayerRow], index: int, decode_context_parallel: int) -> tuple[Step, ...]:
    owners = [row.index_bytes for row in rows if row.index_bytes]
    if not owners:
        return ()
    words = f"{len(owners)} owning layers × {owners[0]:,} × {decode_context_parallel} DCP ranks"
    return (
        Step("index keys of a token", words, f"{index:,} B", f"{SOURCE}, _compute_dsa_indexer_cell_size"),
    )


def _draft_steps(question: Question, draft: int) -> tuple[Step, ...]:
    if not draft:
        return ()
    words = f"{question.settings.num_draft_layers} draft layers as wide as the model's"
    return (Step("drafts of a token", words, f"{draft:,} B", SOURCE),)


def _plan_without_rows(question: Question) -> TokenPlan:
    """No layer keeps tokens: as many as the user says, or one context."""
    settings = question.settings
    limit = settings.max_total_tokens or settings.context_tokens or question.spec.max_context_tokens or 0
    tokens = question.aligned(limit)
    step = Step("max_total_num_tokens", "no layer keeps tokens: the context length", f"{tokens:,}", SOURCE)
    return TokenPlan(tokens, Fraction(0), (), 0, (step,))


class _Widths(NamedTuple):
    """Bytes of a token in the layers of each kind and in the drafts beside them."""

    full: int
    swa: int
    full_drafts: int
    swa_drafts: int
    wide_drafts: int
    """Of drafts with a window that have as many rows as the full pool (Inkling)."""

    @property
    def full_side(self) -> int:
        return self.full + self.full_drafts + self.wide_drafts

    @property
    def swa_side(self) -> int:
        return self.swa + self.swa_drafts


def _windowed_plan(question: Question, rows: Sequence[LayerRow]) -> TokenPlan:
    """A pool for full layers and one for layers with a window: of a fixed ratio, or capped by requests."""
    widths = _widths(question, rows)
    if not widths.full:
        return _all_windowed_plan(question, rows, widths)
    if _is_capped(question):
        swa_tokens = request_cap_tokens(
            question, requests_per_rank(question.placement, question.settings) or 1
        )
        fixed = swa_tokens * widths.swa_side
        cell = Fraction(widths.full_side)
        tokens = question.capped(int((question.budget_bytes - fixed) // cell))
        words = f"({question.budget_bytes:,} - {swa_tokens:,} × {widths.swa_side:,}) // {widths.full_side:,}"
        swa_words = "the most that max_running_requests hold, as there is no radix cache"
    else:
        ratio = _swa_ratio(question)
        fixed = 0
        cell = widths.full_side + ratio * widths.swa_side
        tokens = question.capped(int(question.budget_bytes // cell))
        swa_tokens = question.aligned(int(tokens * ratio))
        words = f"{question.budget_bytes:,} // ({widths.full_side:,} + {ratio} × {widths.swa_side:,})"
        swa_words = f"{tokens:,} × swa_full_tokens_ratio {ratio}, whole pages"
    if tokens < 1:
        raise question.no_room(cell, fixed)
    if not fixed:
        check_window(question, swa_tokens, _swa_ratio(question))
    pools = _two_pools(question, rows, widths, tokens, swa_tokens)
    sizes = f"full {widths.full_side:,} B, windowed {widths.swa_side:,} B"
    steps = (
        Step("KV of a token", rows_words(question, rows), sizes, SOURCE),
        question.tokens_step(words, tokens),
        Step("window pool", swa_words, f"{swa_tokens:,} tokens", SOURCE),
    )
    return TokenPlan(tokens, cell, pools, 0, steps)


def _all_windowed_plan(question: Question, rows: Sequence[LayerRow], widths: _Widths) -> TokenPlan:
    """Every layer of the stage has a window: the pool's own tokens are the total, and no ratio applies."""
    cell = Fraction(widths.full_side + widths.swa_side)
    tokens = question.capped(int(question.budget_bytes // cell))
    if tokens < 1:
        raise question.no_room(cell)
    pools = _two_pools(question, rows, widths._replace(swa_drafts=int(cell) - widths.swa), 0, tokens)
    steps = (
        Step("KV of a token", rows_words(question, rows), f"windowed {cell} B", SOURCE),
        question.tokens_step(f"{question.budget_bytes:,} // {cell}", tokens),
    )
    return TokenPlan(tokens, cell, pools[1:], 0, steps)


def _two_pools(
    question: Question, rows: Sequence[LayerRow], widths: _Widths, tokens: int, swa_tokens: int
) -> tuple[Pool, Pool]:
    page = question.page_tokens
    keys = {side: sum(row.key_bytes for row in rows if row.side == side) for side in ("full", "swa")}
    counts = {side: sum(row.side == side for row in rows) for side in ("full", "swa")}
    full_rows, swa_rows = tokens + page, swa_tokens + page
    return (
        Pool(
            "full",
            counts["full"],
            tokens,
            Fraction(widths.full_side),
            full_rows * widths.full,
            full_rows * keys["full"],
        ),
        Pool(
            "swa",
            counts["swa"],
            swa_tokens,
            Fraction(widths.swa_side),
            swa_rows * widths.swa,
            swa_rows * keys["swa"],
        ),
    )


def _widths(question: Question, rows: Sequence[LayerRow]) -> _Widths:
    full = [row.kv_bytes + row.index_bytes for row in rows if row.side == "full"]
    swa = [row.kv_bytes for row in rows if row.side == "swa"]
    num_drafts = question.settings.num_draft_layers
    num_windowed = min(
        num_drafts,
        sum(
            1
            for layer in question.spec.mtp_layers
            if any(cache.reach in {"sliding", "chunked"} for cache in layer.caches)
        ),
    )
    swa_drafts = num_windowed * swa[0]
    full_drafts = (num_drafts - num_windowed) * (full[0] if full else 0)
    if served_family(question.spec).startswith("inkling"):
        return _Widths(sum(full), sum(swa), full_drafts, 0, swa_drafts)
    return _Widths(sum(full), sum(swa), full_drafts, swa_drafts, 0)


def _is_capped(question: Question) -> bool:
    return question.settings.radix_strategy == "off" and question.settings.max_running_requests is not None


def _swa_ratio(question: Question) -> Fraction:
    if question.settings.swa_full_tokens_ratio is not None:
        return question.settings.swa_full_tokens_ratio
    return INKLING_SWA_RATIO if served_family(question.spec).startswith("inkling") else SWA_RATIO
