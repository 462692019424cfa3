"""How SGLang plans the pools of DeepSeek V4 and V4.1 on one pipeline stage.

Source: SGLang 0.5.23 srt/model_executor/pool_configurator.py, DSV4PoolConfigurator;
srt/arg_groups/model_overrides/deepseek_v4.py and srt/arg_groups/deepseek_v4_hook.py for the defaults.
"""

from fractions import Fraction
from typing import NamedTuple

from warmset.errors import InputError
from warmset.model.engines.sglang_layers import served_family
from warmset.model.engines.sglang_plan import (
    SOURCE,
    Question,
    TokenPlan,
    check_window,
    request_cap_tokens,
    window_tokens,
)
from warmset.model.engines.sglang_state import requests_per_rank
from warmset.model.engines.sglang_types import Pool
from warmset.model.engines.sglang_v4 import (
    V4Layers,
    V4Rates,
    entry_size,
    fixed_state_bytes,
    low_ratio_padding_bytes,
    v4_layers,
    v4_rates,
)
from warmset.model.step import Step

PAGE_TOKENS = 256
MAX_RUNNING_REQUESTS = 256
SWA_RATIO = Fraction(1, 10)
PREFIX_TAILS_PER_REQUEST = 4


class _Windows(NamedTuple):
    """The window pool: a ratio of the full pool, or so many tokens."""

    ratio: Fraction
    cap_tokens: int | None


def stage_plan(question: Question, stage: range) -> TokenPlan:
    """The pools of a stage.

    Formula: tokens = (available - compressor states - capped windows) // (compressed + ratio·window), whole
    pages.

    Raises: InputError when the page is not a multiple of 128 or the stage owns no entries; InfeasibleError
    when no request fits.
    """
    if question.page_tokens % 128:
        raise InputError(f"page_tokens={question.page_tokens}: DeepSeek V4 needs a multiple of 128")
    spec, settings = question.spec, question.settings
    layers = v4_layers(spec, stage)
    num_drafts = max(settings.num_draft_tokens, settings.num_draft_layers)
    is_v41_layout = settings.is_blackwell
    rates = v4_rates(
        layers,
        entry_size(spec),
        question.page_tokens,
        num_draft_tokens=num_drafts,
        is_v41_layout=is_v41_layout,
    )
    windows = _windows(question)
    fixed = fixed_state_bytes(layers, entry_size(spec), _requests(question), num_drafts)
    capped_bytes = Fraction((windows.cap_tokens or 0) * rates.swa)
    cell = rates.compressed + (0 if windows.cap_tokens is not None else windows.ratio * rates.swa)
    if not cell:
        raise InputError(
            f"{spec.name}: pipeline_parallel={question.placement.pipeline_parallel} makes a stage without "
            "compressed entries of its own, which SGLang cannot size: choose fewer stages"
        )
    left = question.budget_bytes - fixed - capped_bytes
    tokens = _tokens_that_fit(question, layers, cell, left, is_v41_layout=is_v41_layout)
    if tokens < 1:
        raise question.no_room(cell, fixed + int(capped_bytes))
    swa_tokens = windows.cap_tokens
    if swa_tokens is None:
        swa_tokens = question.aligned(int(tokens * windows.ratio))
        check_window(question, swa_tokens, windows.ratio)
    padding = low_ratio_padding_bytes(layers, tokens, question.page_tokens, is_v41_layout=is_v41_layout)
    return TokenPlan(
        tokens,
        cell,
        _pools(layers, rates, tokens, swa_tokens),
        fixed + int(padding),
        _steps(question, layers, rates, windows, fixed, cell, tokens, swa_tokens),
    )


def _requests(question: Question) -> int:
    requests = requests_per_rank(question.placement, question.settings)
    return requests or max(1, MAX_RUNNING_REQUESTS // question.placement.dp_attention)


def _windows(question: Question) -> _Windows:
    """Without a given ratio V4 takes 0.1, and V4.1 what running requests and cached prefixes hold."""
    settings = question.settings
    if settings.swa_full_tokens_ratio is not None:
        return _Windows(settings.swa_full_tokens_ratio, None)
    if served_family(question.spec) == "deepseek_v4":
        return _Windows(SWA_RATIO, None)
    tails = 0 if settings.radix_strategy == "off" else PREFIX_TAILS_PER_REQUEST * _requests(question)
    headroom = tails * (window_tokens(question.spec) + question.page_tokens)
    cap = request_cap_tokens(question, _requests(question)) + headroom
    return _Windows(SWA_RATIO, -(-cap // question.page_tokens) * question.page_tokens)


def _tokens_that_fit(
    question: Question, layers: V4Layers, cell: Fraction, left: Fraction, *, is_v41_layout: bool
) -> int:
    page = question.page_tokens
    tokens = question.capped(max(0, int(left / cell)))
    while (
        tokens > 0
        and tokens * cell + low_ratio_padding_bytes(layers, tokens, page, is_v41_layout=is_v41_layout) > left
    ):
        tokens -= page
    return tokens


def _pools(layers: V4Layers, rates: V4Rates, tokens: int, swa_tokens: int) -> tuple[Pool, Pool]:
    owners = sum(layers.owners.values())
    return (
        Pool("compressed", owners, tokens, rates.compressed, int(tokens * rates.compressed)),
        Pool("swa", layers.num_layers, swa_tokens, rates.swa, int(swa_tokens * rates.swa)),
    )


def _steps(
    question: Question,
    layers: V4Layers,
    rates: V4Rates,
    windows: _Windows,
    fixed: int,
    cell: Fraction,
    tokens: int,
    swa_tokens: int,
) -> tuple[Step, ...]:
    owners = ", ".join(f"{count} at {ratio}" for ratio, count in sorted(layers.owners.items()))
    capped = windows.cap_tokens is not None
    swa_words = "running requests and cached prefixes at most" if capped else f"{tokens:,} × {windows.ratio}"
    left = f"{question.budget_bytes:,} - {fixed:,}"
    if capped:
        left += f" - {swa_tokens:,} × {float(rates.swa):,.2f}"
    return (
        Step(
            "compressed KV of a token",
            f"layers by ratio: {owners}",
            f"{float(rates.compressed):,.2f} B",
            SOURCE,
        ),
        Step("window KV of a token", f"{layers.num_layers} layers", f"{float(rates.swa):,.2f} B", SOURCE),
        Step(
            "compressor states", f"{_requests(question):,} requests and a spare one", f"{fixed:,} B", SOURCE
        ),
        question.tokens_step(f"({left}) // {float(cell):,.2f}", tokens),
        Step("window pool", swa_words, f"{swa_tokens:,} tokens", SOURCE),
    )
