"""Economics, assumptions, findings, method and words."""

from typing import get_args

from msgspec.structs import replace

from warmset.evaluation import Assumption, AssumptionGroup, Evaluation
from warmset.facts import Fact
from warmset.report.document import Block, Bullets, Cell, Group, Section, Table
from warmset.report.figures_bars import costs_figure
from warmset.report.numbers import show_fact
from warmset.report.voice import Voice

_TERMS = ("kv", "prefill", "block", "hit", "slo", "goodput", "working_set", "inclusive", "parked", "payback")


def economics_section(evaluation: Evaluation, voice: Voice) -> Section:
    """Nodes, cost, payback and wear."""
    economics = evaluation.economics
    columns = (voice.say("economics.quantity"), *voice.baselines())
    rows = tuple(
        (Cell(voice.say(f"economics.{name}"), tag=voice.basis(values)), *voice.across(values))
        for name, values in (
            ("nodes", economics.nodes),
            ("nodes_exact", economics.nodes_exact),
            ("utilization", evaluation.utilization),
        )
    )
    nodes = Table(columns, rows, key="nodes")
    per_million = (
        Cell(voice.say("economics.per_million"), tag=voice.basis(economics.cost_per_million_tokens)),
        *voice.across(voice.bare(economics.cost_per_million_tokens, economics.currency), "strong"),
    )
    blocks: tuple[Block, ...] = (
        Group(voice.say("economics.nodes_title"), "", (nodes,)),
        costs_figure(evaluation, voice),
        Table(columns, (per_million,), key="per-million"),
        _payback(evaluation, voice),
        *_wear(evaluation, voice),
    )
    return Section("economics", *voice.titled("economics"), blocks)


def _payback(evaluation: Evaluation, voice: Voice) -> Group:
    economics = evaluation.economics
    rows = tuple(
        (Cell(voice.say(f"economics.{name}"), tag=number.basis), voice.estimate(number, "strong"))
        for name, number in (
            ("added_capex", economics.added_capex),
            ("saving", economics.saving_per_hour),
            ("payback", economics.payback_years),
        )
    )
    table = Table(voice.heads("economics", "quantity", "value"), rows, key="payback")
    return Group(voice.say("economics.payback_title"), "", (table,))


def _wear(evaluation: Evaluation, voice: Voice) -> tuple[Group, ...]:
    wear = evaluation.economics.wear
    if wear is None:
        return ()
    rows = tuple(
        (Cell(voice.say(f"economics.{name}"), tag=number.basis), voice.estimate(number))
        for name, number in (
            ("written_per_day", wear.written_bytes_per_day),
            ("drive_writes", wear.drive_writes_per_day),
            ("life", wear.years_of_life),
        )
    )
    table = Table(voice.heads("economics", "quantity", "value"), rows, key="wear")
    return (Group(*voice.titled("economics", "wear_title", "wear_reading"), (table,)),)


def assumptions_section(evaluation: Evaluation, voice: Voice) -> Section:
    """Every input with its provenance."""
    groups = tuple(
        Group(voice.say(f"assumptions.groups.{name}"), "", (_assumptions(found, name, voice),))
        for name in get_args(AssumptionGroup)
        if (found := [each for each in evaluation.assumptions if each.group == name])
    )
    return Section("assumptions", *voice.titled("assumptions"), groups)


def _assumptions(assumptions: list[Assumption], group: str, voice: Voice) -> Table:
    rows = []
    for each in assumptions:
        number = show_fact(_as_people_say_it(each), voice.texts)
        name = voice.texts.or_humanised("assumptions.keys", each.key)
        remarks = filter(None, (each.fact.date, voice.note_of(each.key, each.fact)))
        source = Cell(voice.source_of(each.fact), voice.say("document.item_separator").join(remarks))
        rows.append(
            (
                Cell(name, "" if each.fact.origin == "given" else each.key),
                Cell(number.text, number.interval, value=number.value),
                Cell("", tag=each.fact.origin),
                source,
            )
        )
    columns = voice.heads("assumptions", "input", "value", "origin", "source")
    return Table(columns, tuple(rows), text_columns=frozenset({2, 3}), key=f"assumptions-{group}")


def _as_people_say_it(assumption: Assumption) -> Fact:
    """Ratios that multiply something are said as factors, not as percent."""
    if assumption.fact.unit == "ratio" and (assumption.key == "pue" or assumption.key.endswith("_scale")):
        return replace(assumption.fact, unit="factor")
    return assumption.fact


def findings_section(evaluation: Evaluation, voice: Voice) -> Section:
    """What the reader repaired, skipped or noticed."""
    rows = tuple(
        (
            Cell(voice.texts.or_humanised("findings.codes", finding.code)),
            voice.counted(finding.count),
            Cell(finding.first_example),
        )
        for finding in evaluation.findings
    )
    columns = voice.heads("findings", "finding", "count", "example")
    table = Table(columns, rows, text_columns=frozenset({2}), key="findings")
    blocks: tuple[Block, ...] = (table,) if rows else (Bullets((voice.say("findings.none"),)),)
    assumed = evaluation.traffic.assumptions
    if assumed:
        title = voice.titled("findings", "assumed_title", "assumed_reading")
        blocks = (Group(*title, (Bullets(assumed),)), *blocks)
    return Section("findings", *voice.titled("findings"), blocks)


def method_section(evaluation: Evaluation, voice: Voice) -> Section:
    """How it was computed, and what could make it wrong."""
    span = voice.seconds(evaluation.traffic.span_s)
    block_tokens = voice.of(evaluation.traffic.block_tokens, "tokens")
    limits = (
        "limit_analytic",
        "limit_span",
        "limit_outputs",
        "limit_blocks",
        f"limit_routing_{evaluation.traffic.routing}",
        "limit_one_model",
    )
    how = Bullets(voice.heads("method", "how_hits", "how_serving", "how_money"))
    sentences = tuple(voice.say(f"method.{name}", span=span, block_tokens=block_tokens) for name in limits)
    blocks: tuple[Block, ...] = (
        Group(voice.say("method.how_title"), "", (how,)),
        Group(voice.say("method.limits_title"), "", (Bullets(sentences),)),
    )
    return Section("method", *voice.titled("method"), blocks)


def glossary_section(voice: Voice) -> Section:
    """The words of the report."""
    rows = tuple(
        (
            Cell(voice.say(f"glossary.terms.{term}.term"), tone="strong"),
            Cell(voice.say(f"glossary.terms.{term}.meaning")),
        )
        for term in _TERMS
    )
    table = Table(voice.heads("glossary", "term", "meaning"), rows, numeric_from_index=2, key="glossary")
    return Section("glossary", voice.say("glossary.heading"), "", (table,))
