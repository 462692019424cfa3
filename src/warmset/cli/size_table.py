"""The sizes of models side by side in the terminal."""

from collections.abc import Callable

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from warmset.model.size import ModelSize, SizeQuestion
from warmset.units import format_bytes_binary, format_count, format_flops

Cell = Callable[[ModelSize], str]


def print_sizes(sizes: list[ModelSize], question: SizeQuestion) -> None:
    """One column a model; rows that say nothing of any of them are left out."""
    console = Console()
    table = Table()
    table.add_column(Text(f"physics in {question.kv_layout.name}"))
    for size in sizes:
        table.add_column(Text(size.model), justify="right", overflow="fold")
    for section in (_model_rows(), _kv_rows(), _length_rows(question), _gpu_rows(question), _engine_rows()):
        rows = [(label, [cell(size) for size in sizes]) for label, cell in section]
        for label, cells in rows:
            if any(cells):
                table.add_row(label, *(cell or "-" for cell in cells))
        table.add_section()
    console.print(table)
    for size in sizes:
        notes = size.notes + (size.engine.notes if size.engine else ())
        for note in notes:
            console.print(Text(f"{size.model}: {note}"))


def print_steps(sizes: list[ModelSize]) -> None:
    """How each number was made: what was read, then formula, result and source of every step."""
    console = Console()
    for size in sizes:
        steps = size.steps + (size.engine.steps if size.engine else ())
        console.print()
        console.print(Text(size.model, style="bold"))
        for source in dict.fromkeys(step.source for step in steps if not step.formula):
            read = [
                f"{step.label}={step.result}" for step in steps if not step.formula and step.source == source
            ]
            console.print(Padding(Text(f"{source}: {', '.join(read)}"), (0, 0, 0, 2)))
        for step in steps:
            if step.formula:
                console.print(Padding(Text(f"{step.label} = {step.result}"), (0, 0, 0, 2)))
                console.print(Padding(Text(f"{step.formula}   [{step.source}]", style="dim"), (0, 0, 0, 6)))


def _model_rows() -> list[tuple[str, Cell]]:
    return [
        ("cache class", lambda size: size.cache_class),
        ("layers", lambda size: f"{size.num_layers}"),
        ("parameters", lambda size: format_count(size.num_parameters)),
        (
            "active",
            lambda size: (
                ""
                if size.num_active_parameters == size.num_parameters
                else format_count(size.num_active_parameters)
            ),
        ),
        (
            "weights",
            lambda size: (
                ""
                if size.weight_bytes is None
                else f"{format_bytes_binary(size.weight_bytes)} in {size.weight_format}"
            ),
        ),
    ]


def _kv_rows() -> list[tuple[str, Cell]]:
    return [
        ("growth, bytes per token", lambda size: _number(size.kv.growth_bytes_per_token)),
        (
            "windows, bytes per token",
            lambda size: (
                f"{size.kv.window_bytes_per_token:,} up to {size.kv.window_tokens:,} tokens"
                if size.kv.window_tokens
                else ""
            ),
        ),
        ("state per sequence", lambda size: _bytes(size.kv.state_bytes_per_sequence)),
        ("cross-attention per input", lambda size: _bytes(size.kv.cross_bytes_per_input)),
        (
            "drafts (MTP), bytes per token",
            lambda size: _number(size.kv.mtp_bytes_per_token) if size.kv.mtp_bytes_per_token else "",
        ),
    ]


def _length_rows(question: SizeQuestion) -> list[tuple[str, Cell]]:
    return [row for length in question.lengths for row in _rows_of_length(str(length), f"{length:,} tokens")]


def _rows_of_length(length: str, words: str) -> list[tuple[str, Cell]]:
    return [
        (f"sequence of {words}", lambda size: _bytes(size.sequence_bytes[length])),
        (f"cached prefix of {words}", lambda size: _cached(size, length)),
        (f"prefill of {words}", lambda size: format_flops(size.prefill_flops[length])),
        (f"decode step at {words}", lambda size: _decode(size, length)),
    ]


def _cached(size: ModelSize, length: str) -> str:
    same = size.cached_prefix_bytes[length] == size.sequence_bytes[length]
    return "the same" if same else _bytes(size.cached_prefix_bytes[length])


def _decode(size: ModelSize, length: str) -> str:
    step = size.decode_step[length]
    if step.weight_bytes is None:
        return f"{format_flops(step.flops)}, {format_bytes_binary(step.kv_bytes)} of KV read"
    return f"{format_flops(step.flops)}, {format_bytes_binary(step.weight_bytes + step.kv_bytes)} read"


def _gpu_rows(question: SizeQuestion) -> list[tuple[str, Cell]]:
    if question.placement.num_gpus == 1 and question.engine is None:
        return []
    rows: list[tuple[str, Cell]] = [
        (
            "on the fullest GPU: weights",
            lambda size: (
                "" if size.per_gpu.weight_bytes is None else format_bytes_binary(size.per_gpu.weight_bytes)
            ),
        ),
        ("growth, bytes per token", lambda size: _number(size.per_gpu.growth_bytes_per_token)),
        ("state per sequence", lambda size: _bytes(size.per_gpu.state_bytes_per_sequence)),
        ("KV of all GPUs over the model's", lambda size: f"{size.per_gpu.replication_factor:g}x"),
    ]
    return rows + [_gpu_sequence_row(length) for length in question.lengths]


def _gpu_sequence_row(length: int) -> tuple[str, Cell]:
    return f"sequence of {length:,} tokens", lambda size: _bytes(size.per_gpu.sequence_bytes[str(length)])


def _engine_rows() -> list[tuple[str, Cell]]:
    return [
        ("engine", lambda size: f"{size.engine.name}, KV in {size.engine.kv_layout}" if size.engine else ""),
        (
            "memory for KV",
            lambda size: format_bytes_binary(size.engine.available_bytes) if size.engine else "",
        ),
        ("tokens per block", lambda size: f"{size.engine.block_tokens:,}" if size.engine else ""),
        ("blocks", lambda size: f"{size.engine.num_blocks:,}" if size.engine else ""),
        ("blocks of a request", lambda size: _engine_count(size, "request_blocks")),
        ("tokens in flight", lambda size: _engine_count(size, "in_flight_tokens")),
        ("state slots", lambda size: _engine_count(size, "num_state_slots")),
        ("tokens in the pool", _pool_tokens),
        (
            "requests at once",
            lambda size: (
                f"{size.engine.max_concurrency:.2f} of {size.engine.context_tokens:,} tokens"
                if size.engine
                else ""
            ),
        ),
        ("in the log", lambda size: "\n".join(size.engine.log_lines) if size.engine else ""),
    ]


def _engine_count(size: ModelSize, field: str) -> str:
    count = getattr(size.engine, field, None)
    return "" if count is None else f"{count:,}"


def _pool_tokens(size: ModelSize) -> str:
    engine = size.engine
    if engine is None:
        return ""
    if engine.least_pool_tokens == engine.most_pool_tokens:
        return f"{engine.pool_tokens:,}"
    return f"{engine.pool_tokens:,} ({engine.least_pool_tokens:,} to {engine.most_pool_tokens:,})"


def _bytes(size_bytes: int) -> str:
    return f"{size_bytes:,} ({format_bytes_binary(size_bytes)})" if size_bytes else ""


def _number(value: float) -> str:
    return f"{value:,}"
