"""`warmset size`: KV bytes of a model, exactly."""

from typing import Any, get_args

import click

from warmset.errors import InputError
from warmset.scenario import KvLayoutName

DEFAULT_TOKENS = "4096,32768,131072"


@click.command("size", short_help="Size the KV cache of a model, to the byte.")
@click.argument("model")
@click.option("--tokens", default=DEFAULT_TOKENS, show_default=True, help="Lengths of the sequences.")
@click.option(
    "--kv",
    type=click.Choice(get_args(KvLayoutName)),
    default="bf16",
    show_default=True,
    help="Format of KV.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(model: str, tokens: str, kv: KvLayoutName, *, as_json: bool) -> None:
    """Bytes of the KV cache of MODEL: a config.json, a folder that holds one, or a shipped name.

    MHA, GQA, MQA and MLA are sized to the byte; other cache classes are refused by name.
    """
    lengths = [_length(part, tokens) for part in tokens.split(",")]
    from warmset.model import growth_bytes_per_token, load_model, sequence_bytes

    spec = load_model(model)
    result: dict[str, Any] = {
        "kv": {
            "growth_bytes_per_token": growth_bytes_per_token(spec, kv),
            "window_bytes_per_token": 0,
            "window_tokens": 0,
            "state_bytes_per_sequence": 0,
        },
        "sequence_bytes": {str(length): sequence_bytes(spec, length, kv) for length in lengths},
    }
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode(result).decode())
    else:
        _print_table(f"{spec.name}: {spec.cache_class}, {spec.num_layers} layers, KV in {kv}", result)


def _length(part: str, text: str) -> int:
    try:
        length = int(part)
    except ValueError as error:
        raise InputError(f"--tokens {text}: {part!r} is not a whole number") from error
    if length < 0:
        raise InputError(f"--tokens {text}: {length} must be 0 or more")
    return length


def _print_table(title: str, result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    from warmset.units import format_bytes, format_bytes_binary

    table = Table("sequence, tokens", "bytes", "decimal", "binary", title=title)
    growth = result["kv"]["growth_bytes_per_token"]
    for length, size in [("each token", growth), *result["sequence_bytes"].items()]:
        label = length if length == "each token" else f"{int(length):,}"
        table.add_row(label, f"{size:,}", format_bytes(size), format_bytes_binary(size))
    Console().print(table)
