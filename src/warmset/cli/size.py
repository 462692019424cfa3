"""`warmset size`: KV, weights and arithmetic of models, exactly; one GPU; one engine."""

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, get_args

import click

from warmset.errors import InputError
from warmset.units import parse_bytes, parse_logged_bytes

if TYPE_CHECKING:
    from warmset.model.engine_pools import EngineQuestion
    from warmset.model.layouts import KvLayout
    from warmset.model.size import ModelSize, SizeQuestion
    from warmset.model.spec import ModelSpec

DEFAULT_TOKENS = "4096,32768,131072"
Engine = Literal["physics", "vllm", "sglang"]
STATE_BITS = {"bf16": 16, "fp32": 32}
WEIGHTS = ("bf16", "fp16", "fp32", "fp8", "int8", "int4", "int4_g32", "mxfp4", "nvfp4")
ENGINE_FLAGS = {
    "gpu_memory_utilization": "--gpu-memory-utilization",
    "overhead": "--overhead",
    "max_model_len": "--max-model-len",
    "max_num_batched_tokens": "--max-num-batched-tokens",
    "prefix_caching": "--prefix-caching",
    "max_num_seqs": "--max-num-seqs",
    "speculative_tokens": "--speculative-tokens",
}
"""Options that only an engine, or a GPU, gives a meaning."""

INDEX = ("fp8", "bf16", "mxfp4")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of the command, as they were given."""

    tokens: str
    kv_layout: str | None
    index_layout: str | None
    cached_layout: str | None
    snapshot_tokens: int | None
    state_dtype: str | None
    weights: str | None
    batch: int
    tp: int
    pp: int
    dp_attention: int
    dcp: int
    engine: Engine
    gpu: str | None
    gpu_memory_utilization: str | None
    overhead: str | None
    kv_cache_memory: str | None
    max_model_len: int | None
    max_num_batched_tokens: int | None
    prefix_caching: bool | None
    hybrid_manager: bool
    max_num_seqs: int | None
    vllm_release: str
    speculative_tokens: int


@click.command("size", short_help="Size models to the byte: KV, weights, FLOPs, one GPU, one engine.")
@click.argument("models", metavar="MODEL...", nargs=-1, required=True)
@click.option("--tokens", default=DEFAULT_TOKENS, show_default=True, help="Lengths of the sequences.")
@click.option(
    "--kv-layout",
    "--kv",
    help="Format of KV: bf16 (if not given), fp8, int4_per_token_head, nvfp4, q8_0/q4_0 for keys and values.",
)
@click.option(
    "--index-layout", type=click.Choice(INDEX), help="Format of index keys; engines' own if not given."
)
@click.option("--cached-layout", help="Format of a cached prefix in lower tiers, if another one.")
@click.option("--snapshot-tokens", type=int, help="Tokens between reuse points of a cached prefix.")
@click.option("--state-dtype", type=click.Choice(list(STATE_BITS)), help="Format of recurrent states.")
@click.option(
    "--weights", type=click.Choice(WEIGHTS), help="Format of weights; the checkpoint's if not given."
)
@click.option("--batch", default=1, show_default=True, help="Sequences of a decode step.")
@click.option("--tp", default=1, show_default=True, help="Tensor parallel.")
@click.option("--pp", default=1, show_default=True, help="Pipeline parallel.")
@click.option("--dp-attention", default=1, show_default=True, help="Groups that split a TP group's requests.")
@click.option("--dcp", default=1, show_default=True, help="Decode context parallel.")
@click.option(
    "--engine",
    type=click.Choice(get_args(Engine)),
    default="physics",
    show_default=True,
    help="Whose rounding.",
)
@click.option("--gpu", help="Accelerator, such as H200; its memory then limits the engine.")
@click.option("--gpu-memory-utilization", help="Share of the memory; SGLang: --mem-fraction-static.")
@click.option(
    "--overhead", help="Activations, graphs and libraries of a GPU.  [default: 2GiB, 1 to 3 assumed]"
)
@click.option("--kv-cache-memory", help="Memory for KV on each GPU, as a log has it, instead of --gpu.")
@click.option("--max-model-len", type=int, help="Longest request; the model's context if not given.")
@click.option("--max-num-batched-tokens", type=int, help="Of one step; the engine's default if not given.")
@click.option("--prefix-caching/--no-prefix-caching", default=None, help="vLLM; its default if not given.")
@click.option(
    "--hybrid-manager/--no-hybrid-manager", default=True, help="vLLM; some KV connectors turn it off."
)
@click.option("--max-num-seqs", type=int, help="Requests at once; SGLang: --max-running-requests.")
@click.option(
    "--vllm-release",
    type=click.Choice(["0.30.0", "0.33.0"]),
    default="0.33.0",
    show_default=True,
    help="Whose rules: 0.33.0 keeps one more state for some kernels.",
)
@click.option("--speculative-tokens", default=0, show_default=True, help="Drafts of the model's MTP layers.")
@click.option(
    "--explain", is_flag=True, help="Print the formulas with the numbers in them and their sources."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON; a list for several models.")
def command(models: tuple[str, ...], *, explain: bool, as_json: bool, **options: object) -> None:
    """Size each MODEL: a shipped name, a config.json, a folder that holds one, or a repository id.

    Three answers, never mixed up: physics (what a sequence holds), one GPU (--tp, --pp, ...) and one engine
    (--engine vllm or sglang: blocks, tokens in the pool, concurrency, as the log prints them). A repository
    id is fetched only with the extra `warmset[hub]`. A config of a class that is not known is refused, never
    guessed.
    """
    from warmset.model.size import size_model

    chosen = Options(**options)  # type: ignore[arg-type] # click has checked the types
    question = _question(chosen)
    sizes = [size_model(_load(name, chosen), question) for name in models]
    if as_json:
        click.echo(_json(sizes, explain=explain))
        return
    from warmset.cli.size_table import print_sizes, print_steps

    print_sizes(sizes, question)
    if explain:
        print_steps(sizes)


def _load(name: str, options: Options) -> "ModelSpec":
    from msgspec.structs import replace

    from warmset.cli.hub import load_model_or_fetch
    from warmset.model.recurrent import with_recurrent_bits

    spec = load_model_or_fetch(name)
    if options.state_dtype is None:
        return spec
    bits = STATE_BITS[options.state_dtype]
    return replace(spec, layers=with_recurrent_bits(spec.layers, bits))


def _question(options: Options) -> "SizeQuestion":
    from warmset.model.placement import Placement
    from warmset.model.size import SizeQuestion

    layout, cached_layout = _layout(options.kv_layout, options), _layout(options.cached_layout, options)
    if options.batch < 1:
        raise InputError(f"--batch {options.batch}: give 1 or more")
    return SizeQuestion(
        lengths=tuple(_length(part, options.tokens) for part in options.tokens.split(",")),
        layout=layout,
        cached_layout=cached_layout,
        snapshot_tokens=options.snapshot_tokens,
        weights=options.weights,  # type: ignore[arg-type] # one of WEIGHTS
        batch_size=options.batch,
        placement=Placement(
            tensor_parallel=options.tp,
            pipeline_parallel=options.pp,
            dp_attention=options.dp_attention,
            decode_context_parallel=options.dcp,
        ),
        engine=_engine(options),
    )


def _layout(name: str | None, options: Options) -> "KvLayout | None":
    from warmset.model.layouts import kv_layout

    return None if name is None else kv_layout(name, options.index_layout)


def _engine(options: Options) -> "EngineQuestion | None":
    if options.engine == "physics" and options.gpu is None and options.kv_cache_memory is None:
        unused = [flag for name, flag in ENGINE_FLAGS.items() if getattr(options, name) not in {None, 0}]
        if unused or not options.hybrid_manager:
            flag = (*unused, "--no-hybrid-manager")[0]
            raise InputError(
                f"{flag} says nothing without an engine's memory: add --gpu or --kv-cache-memory"
            )
        return None
    from warmset.catalog import find_accelerator
    from warmset.model.engine_pools import EngineQuestion

    gpu = None if options.gpu is None else find_accelerator(options.gpu)
    return EngineQuestion(
        name=options.engine,
        gpu_name="" if gpu is None else gpu.name,
        memory=None if gpu is None else gpu.memory_bytes_per_gpu,
        memory_share=_share(options.gpu_memory_utilization),
        overhead_bytes=None if options.overhead is None else parse_bytes(options.overhead),
        kv_memory_bytes=None
        if options.kv_cache_memory is None
        else parse_logged_bytes(options.kv_cache_memory),
        context_tokens=options.max_model_len,
        batched_tokens=options.max_num_batched_tokens,
        prefix_caching=options.prefix_caching,
        hybrid_manager=options.hybrid_manager,
        max_running_requests=options.max_num_seqs,
        vllm_release=options.vllm_release,  # type: ignore[arg-type] # one of the choices
        num_speculative_tokens=options.speculative_tokens,
    )


def _share(text: str | None) -> Fraction | None:
    if text is None:
        return None
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError) as error:
        raise InputError(f"--gpu-memory-utilization {text}: give a number above 0 and at most 1") from error


def _length(part: str, text: str) -> int:
    try:
        length = int(part)
    except ValueError as error:
        raise InputError(f"--tokens {text}: {part!r} is not a whole number") from error
    if length < 0:
        raise InputError(f"--tokens {text}: {length} must be 0 or more")
    return length


def _json(sizes: "list[ModelSize]", *, explain: bool) -> str:
    import msgspec

    answers = [msgspec.to_builtins(size) for size in sizes]
    if not explain:
        for answer in answers:
            del answer["steps"]
            if answer["engine"] is not None:
                del answer["engine"]["steps"]
    return msgspec.json.encode(answers[0] if len(answers) == 1 else answers).decode()
