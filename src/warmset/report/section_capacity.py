"""Capacity planning, and the curve that it rests on."""

from warmset.evaluation import BASELINES, Evaluation, TierBudget
from warmset.report.document import Block, Bullets, Cell, Group, Prose, Section, Table
from warmset.report.figures_curves import hit_curve_figure
from warmset.report.numbers import show_fact
from warmset.report.voice import Voice
from warmset.units import format_bytes_binary


def hit_curve_section(evaluation: Evaluation, voice: Voice) -> Section:
    """Token hit rate against capacity."""
    reuse = evaluation.reuse
    lead = voice.say(
        "hit_curve.lead",
        rise=voice.size(_block_bytes(evaluation) * reuse.rise_start_blocks),
        plateau=voice.size(_block_bytes(evaluation) * reuse.plateau_start_blocks),
    )
    unlimited = voice.say(
        "hit_curve.unlimited",
        ratio=voice.ratio(reuse.unlimited_token_hit_ratio),
        tokens=voice.of(reuse.unlimited_hit_tokens, "tokens"),
    )
    sentences = [unlimited]
    if reuse.blocks_used_once_ratio is not None:
        sentences.append(voice.say("hit_curve.used_once", share=voice.ratio(reuse.blocks_used_once_ratio)))
    blocks: tuple[Block, ...] = (
        hit_curve_figure(evaluation, voice),
        Bullets(tuple(sentences)),
        _boundaries(evaluation, voice),
        _working_sets(evaluation, voice),
        *_routing(evaluation, voice),
    )
    return Section("hit-curve", voice.say("hit_curve.heading"), lead, blocks)


def _block_bytes(evaluation: Evaluation) -> int:
    """Bytes of a block as the capacity axis counts them."""
    last = evaluation.reuse.points[-1] if evaluation.reuse.points else None
    if last is None or not last.capacity_blocks:
        return evaluation.model.growth_bytes_per_token * evaluation.traffic.block_tokens
    return last.capacity_bytes // last.capacity_blocks


def _boundaries(evaluation: Evaluation, voice: Voice) -> Table:
    rows = tuple(
        (
            Cell(voice.say(f"tiers.{end.tier}"), tag="exact"),
            voice.sized(end.capacity_bytes),
            voice.counted(end.capacity_blocks),
            voice.shared(end.token_hit_ratio),
        )
        for end in evaluation.reuse.boundaries
    )
    columns = voice.heads("hit_curve", "tier", "capacity", "capacity_blocks", "hit_ratio")
    return Table(columns, rows, caption=voice.say("hit_curve.boundaries"), key="boundaries")


def _working_sets(evaluation: Evaluation, voice: Voice) -> Table:
    rows = tuple(
        (
            Cell(
                voice.window(each.window_s),
                "" if each.window_fits_trace else voice.say("hit_curve.beyond_trace"),
            ),
            Cell(voice.size(each.mean_bytes), voice.of(each.mean_blocks, "blocks"), value=each.mean_bytes),
            Cell(voice.size(each.max_bytes), voice.of(each.max_blocks, "blocks"), value=each.max_bytes),
        )
        for each in evaluation.reuse.working_sets
    )
    columns = voice.heads("hit_curve", "window", "mean", "max")
    return Table(columns, rows, caption=voice.say("hit_curve.working_sets"), key="working-sets")


def _routing(evaluation: Evaluation, voice: Voice) -> tuple[Table, ...]:
    by_routing = evaluation.reuse.token_hit_by_routing
    if not by_routing:
        return ()
    rows = tuple(
        (
            Cell(voice.say(f"hit_curve.routing_{routing}"), tag="exact"),
            *(voice.shared(hits.get(baseline, 0.0)) for baseline in BASELINES),
        )
        for routing, hits in by_routing.items()
    )
    columns = (voice.say("hit_curve.router"), *voice.baselines())
    return (Table(columns, rows, caption=voice.say("hit_curve.routing"), key="routing"),)


def capacity_section(evaluation: Evaluation, voice: Voice) -> Section:
    """How big each tier should be."""
    blocks: tuple[Block, ...] = (
        Prose(_bytes_per_token(evaluation, voice)),
        _recommended(evaluation, voice),
        _session_sizes(evaluation, voice),
        _session_counts(evaluation, voice),
        _dedup(evaluation, voice),
        _ttl(evaluation, voice),
        _budgets(evaluation, voice),
        _overheads(evaluation, voice),
    )
    return Section("capacity", *voice.titled("capacity"), blocks)


def _bytes_per_token(evaluation: Evaluation, voice: Voice) -> str:
    model = evaluation.model
    copies = model.node_bytes_per_token != model.growth_bytes_per_token
    key = "capacity.bytes_per_token" if copies else "capacity.bytes_per_token_single"
    layout = voice.texts.joined([name.upper() for name in (model.cache_class, model.kv_layout) if name])
    return voice.say(
        key,
        growth=_both_units(model.growth_bytes_per_token, voice),
        node=_both_units(model.node_bytes_per_token, voice),
        model=model.name,
        layout=layout,
        num_layers=model.num_layers,
        tensor_parallel=evaluation.hardware.tensor_parallel,
    )


def _both_units(size_bytes: int, voice: Voice) -> str:
    return voice.say(
        "document.parenthesis", text=voice.size(size_bytes), inner=format_bytes_binary(size_bytes)
    )


def _recommended(evaluation: Evaluation, voice: Voice) -> Group:
    currency = evaluation.economics.currency
    rows = tuple(
        (
            Cell(voice.say(f"tiers.{each.tier}")),
            voice.sized(each.given_bytes),
            _recommended_size(each.recommended_bytes, voice),
            Cell(voice.say(f"recommended.{each.reason}")),
            _or_missing(each.token_hit_ratio, "ratio", voice),
            _or_missing(each.net_value_per_hour, f"{currency}_per_hour", voice),
        )
        for each in evaluation.capacity.recommended
    )
    columns = voice.heads("capacity", "tier", "given", "recommended", "reason", "hit_at_size", "net_value")
    table = Table(columns, rows, text_columns=frozenset({3}), key="recommended")
    return _group(voice, "recommended", table)


def _or_missing(number: float | None, unit: str, voice: Voice) -> Cell:
    if number is None:
        return voice.missing(voice.say("notes.slo_not_met"))
    return Cell(voice.of(number, unit), value=number)


def _recommended_size(size_bytes: int | None, voice: Voice) -> Cell:
    if size_bytes is None:
        return voice.missing(voice.say("notes.slo_not_met"))
    text = voice.size(size_bytes) if size_bytes else voice.say("capacity.no_size")
    return Cell(text, tone="strong", value=size_bytes)


def _group(voice: Voice, name: str, *blocks: Block) -> Group:
    return Group(*voice.titled("capacity", f"{name}_title", f"{name}_reading"), blocks)


def _session_sizes(evaluation: Evaluation, voice: Voice) -> Group:
    rows = tuple(
        (
            Cell(f"P{each.percentile}", tag="exact"),
            voice.counted(each.tokens),
            voice.sized(each.logical_bytes),
            voice.sized(each.hbm_bytes),
        )
        for each in evaluation.capacity.session_sizes
    )
    columns = voice.heads("capacity", "percentile", "tokens", "logical_bytes", "hbm_bytes")
    return _group(voice, "sessions", Table(columns, rows, key="session-sizes"))


def _session_counts(evaluation: Evaluation, voice: Voice) -> Group:
    plan = evaluation.capacity
    rows = tuple(
        (
            Cell(voice.window(each.window_s)),
            _in_window(each.mean_sessions, "count", voice),
            voice.counted(each.max_sessions),
            voice.counted(each.mean_active),
            _in_window(each.mean_dormant, "count", voice),
            _in_window(
                each.mean_dormant / each.mean_sessions
                if each.mean_sessions and each.mean_dormant is not None
                else None,
                "ratio",
                voice,
            ),
        )
        for each in plan.session_counts
    )
    columns = voice.heads(
        "capacity", "window", "mean_sessions", "max_sessions", "mean_active", "mean_dormant", "dormant_share"
    )
    source = voice.say(
        f"capacity.counts_source_{plan.session_source}",
        sessions=voice.of(plan.num_sessions, "sessions"),
        turns=voice.of(plan.mean_turns, "count"),
    )
    return _group(voice, "counts", Table(columns, rows, note=source, key="session-counts"))


def _in_window(number: float | None, unit: str, voice: Voice) -> Cell:
    """A mean over windows; missing where no such window fits in the trace."""
    if number is None:
        return voice.missing(voice.say("capacity.beyond_trace"))
    return Cell(voice.of(number, unit), value=number)


def _dedup(evaluation: Evaluation, voice: Voice) -> Group:
    rows = tuple(
        (
            Cell(voice.window(each.window_s), tag="exact"),
            voice.sized(each.logical_bytes),
            voice.sized(each.physical_bytes),
            voice.shared(1 - each.physical_bytes / each.logical_bytes) if each.logical_bytes else Cell("–"),
        )
        for each in evaluation.capacity.dedup
    )
    columns = voice.heads("capacity", "window", "logical", "physical", "saved")
    return _group(voice, "dedup", Table(columns, rows, key="dedup"))


def _ttl(evaluation: Evaluation, voice: Voice) -> Group:
    windows = evaluation.capacity.ttl_windows
    rows = tuple(
        (
            Cell(
                voice.window(each.ttl_s), "" if each.window_fits_trace else voice.say("capacity.beyond_trace")
            ),
            voice.shared(each.token_hit_ratio),
            voice.sized(each.mean_bytes) if each.mean_bytes is not None else _in_window(None, "bytes", voice),
            voice.estimate(each.max_bytes),
            Cell(voice.listed(tuple(voice.say(f"tiers.{tier}") for tier in each.fits))),
        )
        for each in windows
    )
    columns = voice.heads("capacity", "ttl", "hit", "mean_bytes", "max_bytes", "fits")
    beyond = any(not each.window_fits_trace for each in windows)
    note = voice.say("capacity.beyond_trace_note") if beyond else ""
    return _group(voice, "ttl", Table(columns, rows, text_columns=frozenset({4}), note=note, key="ttl"))


def _budgets(evaluation: Evaluation, voice: Voice) -> Group:
    return _group(voice, "budgets", *(_budget(budget, voice) for budget in evaluation.tier_budgets))


def _budget(budget: TierBudget, voice: Voice) -> Table:
    rows = []
    for line in budget.lines:
        fact = line.fact
        rests = Cell(voice.say("capacity.arithmetic"), tone="muted")
        if fact is not None:
            number = show_fact(fact, voice.texts)
            rests = Cell(number.inline(voice.texts), voice.source_of(fact), fact.origin)
        rows.append((Cell(voice.say(f"budget.{line.key}")), _budget_size(line.size_bytes, voice), rests))
    blocks = voice.say(
        "capacity.usable_blocks",
        blocks=voice.of(budget.usable_blocks, "blocks"),
        size=voice.size(budget.bytes_per_block),
    )
    usable = Cell(voice.size(budget.usable_bytes), tone="strong", value=budget.usable_bytes)
    rows.append((Cell(voice.say("capacity.usable"), tone="strong"), usable, Cell(blocks)))
    note = (
        ""
        if budget.tier == "hbm"
        else voice.say("capacity.inclusive" if budget.inclusive else "capacity.exclusive")
    )
    return Table(
        voice.heads("capacity", "line", "size", "rests_on"),
        tuple(rows),
        text_columns=frozenset({2}),
        caption=voice.say(f"tiers.{budget.tier}"),
        note=note,
        total_row=True,
        key=f"budget-{budget.tier}",
    )


def _budget_size(size_bytes: int, voice: Voice) -> Cell:
    """With the binary size under it where that is the round one."""
    binary = format_bytes_binary(abs(size_bytes))
    number, _, unit = binary.partition(" ")
    is_round = unit in {"GiB", "TiB"} and abs(size_bytes) % 2**30 == 0 and "." not in number
    return Cell(voice.size(size_bytes), binary if is_round else "", value=size_bytes)


def _overheads(evaluation: Evaluation, voice: Voice) -> Group:
    rows = tuple(
        (
            Cell(voice.say(f"tiers.{each.tier}")),
            Cell(voice.say(f"overheads.{each.key}")),
            Cell("–", tone="muted") if each.size_bytes is None else voice.sized(each.size_bytes),
            voice.shared(each.share_ratio),
        )
        for each in evaluation.capacity.overheads
    )
    columns = voice.heads("capacity", "tier", "overhead", "size", "share")
    return _group(voice, "overheads", Table(columns, rows, numeric_from_index=2, key="overheads"))
