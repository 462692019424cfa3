"""Evaluation -> Document: the verdict, the key numbers, and the sections in their order."""

from typing import NamedTuple

from warmset.evaluation import BASELINES, Baseline, ByBaseline, Evaluation
from warmset.facts import Estimate, exact, unknown
from warmset.report.document import Document, Tile, VerdictView
from warmset.report.numbers import NBSP
from warmset.report.section_capacity import capacity_section, hit_curve_section
from warmset.report.section_metrics import (
    concurrency_section,
    curves_section,
    metrics_section,
    reading_section,
    traffic_section,
)
from warmset.report.section_money import (
    assumptions_section,
    economics_section,
    findings_section,
    glossary_section,
    method_section,
)
from warmset.report.texts import Language
from warmset.report.voice import Voice


class KeyTable(NamedTuple):
    """The key numbers as plain strings: column heads, and one row a quantity."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def build_document(evaluation: Evaluation, language: Language) -> Document:
    """The whole report in one language."""
    voice = Voice(language)
    return Document(
        language=language,
        title=voice.say("document.title", scenario=evaluation.scenario_name),
        subtitle=_subtitle(evaluation, voice),
        verdict=_verdict(evaluation, voice),
        tiles=_tiles(evaluation, voice),
        sections=(
            reading_section(evaluation, voice),
            metrics_section(evaluation, voice),
            traffic_section(evaluation, voice),
            curves_section(evaluation, voice),
            concurrency_section(evaluation, voice),
            capacity_section(evaluation, voice),
            hit_curve_section(evaluation, voice),
            economics_section(evaluation, voice),
            assumptions_section(evaluation, voice),
            findings_section(evaluation, voice),
            method_section(evaluation, voice),
            glossary_section(voice),
        ),
        footer=_footer(evaluation, voice),
    )


def _subtitle(evaluation: Evaluation, voice: Voice) -> str:
    traffic, slo = evaluation.traffic, evaluation.slo
    return voice.say(
        "document.subtitle",
        model=evaluation.model.name,
        num_gpus=evaluation.hardware.num_gpus,
        accelerator=evaluation.hardware.accelerator,
        weights=evaluation.model.weight_format.upper(),
        kv=evaluation.model.kv_layout.upper(),
        tensor_parallel=evaluation.hardware.tensor_parallel,
        context=voice.of(evaluation.model.max_context_tokens, "tokens"),
        trace=traffic.name,
        requests=voice.of(traffic.num_requests, "requests"),
        span=voice.seconds(traffic.span_s),
        ttft=voice.seconds(slo.ttft_s),
        tpot=voice.seconds(slo.tpot_s),
        percentile=slo.percentile,
    )


def _footer(evaluation: Evaluation, voice: Voice) -> tuple[str, ...]:
    traffic = evaluation.traffic
    footer = voice.say("document.footer", version=evaluation.warmset_version)
    if not traffic.citation:
        return footer, voice.say("document.own_log", trace=traffic.name, source=traffic.source)
    citation = voice.say(
        "document.citation",
        trace=traffic.name,
        source=traffic.source,
        licence=traffic.licence,
        citation=traffic.citation,
    )
    return footer, citation


def verdict_sentence(evaluation: Evaluation, language: Language) -> str:
    """The decision in one sentence."""
    return _sentence(evaluation, Voice(language)).replace(NBSP, " ")


def _sentence(evaluation: Evaluation, voice: Voice) -> str:
    economics = evaluation.economics
    ttft, hit = _metric(evaluation, "ttft", "p95"), hit_ratio(evaluation)
    numbers: dict[str, Estimate] = {
        "engine_nodes": economics.nodes.engine,
        "tiered_nodes": economics.nodes.tiered,
        "saving": economics.saving_per_hour,
        "payback": economics.payback_years,
        "engine_ttft": ttft.engine,
        "tiered_ttft": ttft.tiered,
        "engine_hit": hit.engine,
        "unlimited_hit": exact(evaluation.reuse.unlimited_token_hit_ratio, "ratio"),
    }
    key = _verdict_key(evaluation)
    if any(number.mid is None and voice.uses(key, name) for name, number in numbers.items()):
        key = f"{key}_plain"
    return voice.say(key, **{name: voice.short(each) for name, each in numbers.items()})


def _verdict_key(evaluation: Evaluation) -> str:
    """The sentence of a decision, or of the special case behind it."""
    decision, nodes = evaluation.verdict.decision, evaluation.economics.nodes
    engine_fails, tiered_fails = nodes.engine.mid is None, nodes.tiered.mid is None
    if decision == "do_not_buy" and engine_fails and tiered_fails:
        return "verdict.do_not_buy_unmet"
    if decision == "do_not_buy" and all(budget.tier == "hbm" for budget in evaluation.tier_budgets):
        return "verdict.do_not_buy_no_tiers"
    if decision == "buy_for_latency" and engine_fails and not tiered_fails:
        return "verdict.buy_for_latency_rescued"
    return f"verdict.{decision}"


def _verdict(evaluation: Evaluation, voice: Voice) -> VerdictView:
    verdict = evaluation.verdict
    return VerdictView(
        decision=verdict.decision,
        label=voice.say(f"verdict.label_{verdict.decision}"),
        sentence=_sentence(evaluation, voice),
        reasons=tuple(voice.sentence("reasons", reason) for reason in verdict.reasons),
        would_change=tuple(voice.sentence("would_change", reason) for reason in verdict.would_change),
    )


def hit_ratio(evaluation: Evaluation) -> ByBaseline:
    """Token hit rate under each baseline, total over total."""
    total = evaluation.traffic.input_tokens

    def of(baseline: Baseline) -> Estimate:
        if not total:
            return unknown("ratio", "no_prompt_tokens")
        return exact(sum(row.hit_tokens.get(baseline, 0) for row in evaluation.tier_traffic) / total, "ratio")

    return ByBaseline(none=of("none"), engine=of("engine"), tiered=of("tiered"))


def _metric(evaluation: Evaluation, key: str, statistic: str) -> ByBaseline:
    for row in evaluation.metrics:
        if row.key == key and statistic in row.values:
            return row.values[statistic]
    nothing = unknown("s", "not_computed")
    return ByBaseline(none=nothing, engine=nothing, tiered=nothing)


def _tiles(evaluation: Evaluation, voice: Voice) -> tuple[Tile, ...]:
    economics = evaluation.economics
    ceiling = voice.ratio(evaluation.reuse.unlimited_token_hit_ratio)
    at_nodes = voice.say("key_numbers.at_reference", nodes=voice.of(evaluation.reference_nodes, "nodes"))
    payback = voice.estimate(economics.payback_years)
    capex = voice.say("key_numbers.added_capex", amount=voice.inline(economics.added_capex))
    return (
        _tile("nodes", economics.nodes, voice),
        _tile("cost_per_hour", voice.bare(economics.cost_per_hour, economics.currency), voice),
        _tile("ttft_p95", _metric(evaluation, "ttft", "p95"), voice, at_nodes),
        _tile("hit_ratio", hit_ratio(evaluation), voice, voice.say("key_numbers.hit_ceiling", ratio=ceiling)),
        Tile(
            key="payback",
            label=voice.say("key_numbers.payback"),
            text=payback.text,
            detail=payback.detail,
            tag=economics.payback_years.basis,
            beside=(),
            note=capex,
        ),
    )


def _tile(key: str, values: ByBaseline, voice: Voice, note: str = "") -> Tile:
    number = voice.estimate(values.tiered, with_note=False)
    others: tuple[Baseline, ...] = ("engine", "none")
    return Tile(
        key=key,
        label=voice.say(f"key_numbers.{key}"),
        text=number.text,
        detail=number.detail,
        tag=values.tiered.basis,
        beside=tuple((voice.baseline(each), voice.short(values.of(each))) for each in others),
        note=note,
    )


def key_table(evaluation: Evaluation, language: Language) -> KeyTable:
    """The key numbers for a terminal."""
    voice = Voice(language)
    economics = evaluation.economics

    def row(key: str, values: ByBaseline) -> tuple[str, ...]:
        return voice.say(f"key_numbers.{key}"), *(voice.inline(values.of(baseline)) for baseline in BASELINES)

    met = (voice.say("document.yes" if evaluation.slo_met.get(each) else "document.no") for each in BASELINES)
    rows = (
        row("nodes", economics.nodes),
        row("cost_per_hour", voice.bare(economics.cost_per_hour, economics.currency)),
        row("cost_per_million_tokens", voice.bare(economics.cost_per_million_tokens, economics.currency)),
        row("ttft_p50", _metric(evaluation, "ttft", "p50")),
        row("ttft_p95", _metric(evaluation, "ttft", "p95")),
        row("hit_ratio", hit_ratio(evaluation)),
        (voice.say("key_numbers.slo_met"), *met),
        (voice.say("key_numbers.payback"), "", "", voice.inline(economics.payback_years)),
    )
    plain = tuple(tuple(text.replace(NBSP, " ") for text in each) for each in rows)
    return KeyTable((voice.say("key_numbers.metric"), *voice.baselines()), plain)
