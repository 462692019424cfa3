"""`warmset evaluate`: the main job."""

import os
from pathlib import Path
from typing import Any, Literal, get_args

import click
import msgspec

from warmset.errors import InputError, ScenarioError
from warmset.scenario import Scenario, check_scenario, default_scenario_text, load_scenario

ReportLanguage = Literal["en", "zh", "both"]
FLAGS = {
    "traffic.block_tokens": "--block-tokens",
    "hardware.gpus_per_node": "--gpus",
    "hardware.tensor_parallel": "--tensor-parallel",
    "hardware.nodes": "--nodes",
    "tiers.dram": "--dram",
    "tiers.nvme": "--nvme",
    "tiers.remote": "--remote",
}
STAGES = {
    "traffic": "reading the trace and the model",
    "fleet": "searching for the number of nodes",
    "metrics": "computing the metrics with and without the cache",
    "economics": "computing the money",
    "capacity": "sizing the tiers",
    "verdict": "weighing the verdict",
}


@click.command("evaluate", short_help="Report whether a tiered cache pays, and how big it should be.")
@click.argument("scenario_file", metavar="[SCENARIO.toml]", required=False, type=click.Path(path_type=Path))
@click.option("--trace", help="Request log: a Mooncake JSONL (.gz), or mooncake-conversation.")
@click.option("--block-tokens", type=int, help="Tokens that one hash id covers.")
@click.option("--model", help="A shipped name, a config.json, or a folder that holds one.")
@click.option("--gpu", help="Accelerator, such as H20-141G; `list` prints those in the catalog.")
@click.option("--gpus", type=int, help="GPUs of a node.")
@click.option("--tensor-parallel", type=int, help="GPUs that hold one copy of the weights.")
@click.option("--nodes", type=int, help="Compare on this many nodes instead of as many as `engine` needs.")
@click.option("--dram", help="DRAM for KV of a node, such as 1TiB; 0GB for none.")
@click.option("--nvme", help="NVMe for KV of a node, such as 14TB; 0GB for none.")
@click.option("--remote", help="A node's share of a remote pool, such as 20TB.")
@click.option(
    "--assume", "assumed", multiple=True, metavar="KEY=VALUE", help="Set an assumption; repeatable."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("report"),
    show_default=True,
    help="Folder to write.",
)
@click.option(
    "--lang",
    type=click.Choice(get_args(ReportLanguage)),
    default="en",
    show_default=True,
    help="Language of the report and of the terminal.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the evaluation as JSON and write no report.")
@click.option(
    "--print-scenario", is_flag=True, help="Print a complete scenario with comments, to start from."
)
def command(scenario_file: Path | None, **flags: Any) -> None:  # noqa: ANN401 - click's own names, checked below
    """Is a tiered KV cache worth it, how big, and what would it do: a report from real traffic.

    Without a file the built-in scenario is evaluated. Flags change single fields of the scenario; what they
    do not name keeps the scenario's value. The keys for --assume stand in the report's table of assumptions.
    """
    if flags["print_scenario"]:
        click.echo(default_scenario_text(), nl=False)
        return
    if flags["gpu"] == "list":
        from warmset.catalog import accelerator_names

        click.echo("\n".join(accelerator_names()))
        return
    scenario = _changed(load_scenario(scenario_file), flags)
    _run(scenario, flags["out"], flags["lang"], as_json=flags["as_json"])


def _run(scenario: Scenario, out: Path, language: ReportLanguage, *, as_json: bool) -> None:
    from rich.console import Console

    from warmset.evaluate import evaluate
    from warmset.evaluation import to_json

    if not as_json:
        _check_out(out)
    notes = Console(stderr=True)
    with notes.status("") as status:

        def show(step: str) -> None:
            """Animated where somebody watches, a line each where a log does."""
            status.update(step)
            if not notes.is_terminal and step != STAGES["traffic"]:
                # What can be wrong with the input shows in that stage, and its error is to stand alone.
                notes.print(f"{step} …", highlight=False)

        evaluation = evaluate(scenario, lambda stage: show(STAGES[stage]))
        if as_json:
            click.echo(to_json(evaluation).decode())
            return
        show("writing the report")
        from warmset.report import write_report

        try:
            paths = write_report(evaluation, out, ("en", "zh") if language == "both" else (language,))
        except OSError as error:
            raise InputError(f"--out {out}: cannot be written: {error.strerror or error}") from error
    from warmset.cli.tables import print_evaluation

    print_evaluation(evaluation, "en" if language == "both" else language)
    notes.print("\n".join(f"written: {path}" for path in paths), highlight=False, soft_wrap=True)


def _check_out(out: Path) -> None:
    """Refuse a folder that cannot be written before the work is done.

    Raises: InputError when a file is in the way, or the nearest folder above does not let us write.
    """
    nearest = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    if not nearest.is_dir():
        raise InputError(f"--out {out}: {nearest} is a file, not a folder")
    if not os.access(nearest, os.W_OK):
        raise InputError(f"--out {out}: {nearest} cannot be written to")


def _changed(scenario: Scenario, flags: dict[str, Any]) -> Scenario:
    """The scenario with what the flags set.

    Raises: ScenarioError when a flag's value cannot be used.
    """
    replace = msgspec.structs.replace
    traffic = _given(trace=flags["trace"], block_tokens=flags["block_tokens"])
    hardware = _given(gpu=flags["gpu"], gpus_per_node=flags["gpus"], nodes=flags["nodes"])
    if flags["gpus"] is not None or flags["tensor_parallel"] is not None:
        # Another node has another default: all of its GPUs hold one copy of the weights.
        hardware["tensor_parallel"] = flags["tensor_parallel"]
    tiers = _given(dram=flags["dram"], nvme=flags["nvme"], remote=flags["remote"])
    model = _given(name=flags["model"])
    if model:
        model["max_context_tokens"] = None
    changed = replace(
        scenario,
        traffic=replace(scenario.traffic, **traffic),
        hardware=replace(scenario.hardware, **hardware),
        tiers=replace(scenario.tiers, **tiers),
        model=replace(scenario.model, **model),
        assume={**scenario.assume, **dict(map(_assumed, flags["assumed"]))},
    )
    try:
        check_scenario(changed, "flags")
    except ScenarioError as error:
        raise ScenarioError(_in_flags(str(error))) from error
    return changed


def _in_flags(text: str) -> str:
    """An error about a field of the scenario, in the words of the flag that set it."""
    for field, flag in FLAGS.items():
        text = text.replace(f"flags: {field}", flag)
    return text


def _given(**values: Any) -> dict[str, Any]:  # noqa: ANN401 - any flag's value
    return {name: value for name, value in values.items() if value is not None}


def _assumed(text: str) -> tuple[str, Any]:
    from warmset.scenario import Assumed

    key, _, number = text.partition("=")
    try:
        return key.strip(), Assumed(value=float(number))
    except ValueError as error:
        raise ScenarioError(f"--assume {text}: write KEY=NUMBER, such as dram_price=20") from error
