"""The common half of every format with text: prompts in, a builder of blocks out."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain

from warmset.trace.builder import TraceBuilder, under_model
from warmset.trace.encode import CharacterEncoder, Encoder, TokenizerEncoder, plain_text
from warmset.trace.forest import UNKNOWN
from warmset.trace.options import DEFAULT_TEXT_BLOCK_TOKENS, ReadOptions
from warmset.trace.prompt import Prompt
from warmset.trace.source import Input
from warmset.trace.tally import Tally

ASSUMED_CHARS_PER_TOKEN = 4.0
MEASURED_REQUESTS = 1000
MEASURED_CHARACTERS = 64 * 2**20
_LEAST, _MOST = 0.5, 12.0
"""What text comes to in any language; outside of this a log does not hold all that was sent."""

Prompts = Callable[[Input, Tally], Iterator[Prompt]]


def read_prompts(
    prompts: Prompts, inputs: Sequence[Input], options: ReadOptions, tally: Tally
) -> TraceBuilder:
    """All requests of all files, their text cut into blocks and forgotten.

    Arrivals are taken to count from 1970; a format whose times do not, says so on the builder.

    Raises: InputError where the tokenizer cannot be used.
    """
    block_tokens = options.block_tokens or DEFAULT_TEXT_BLOCK_TOKENS
    builder = TraceBuilder(block_tokens, tally, ids_are_content=True, times_are_epoch=True)
    incoming = (prompt for source in inputs for prompt in prompts(source, tally))
    taker = _Taker(builder)
    if options.tokenizer is not None:
        tokenizer = TokenizerEncoder(options.tokenizer, block_tokens, options.hash_key, tally)
        if not tokenizer.has_template:
            builder.assumptions.append(
                "No chat template lies beside the tokenizer: messages are joined, each under its role."
            )
        taker.take_all(incoming, tokenizer)
        return builder
    held: list[Prompt] = []
    chars_per_token = options.chars_per_token
    if chars_per_token is None:
        held = list(first_prompts(incoming))
        chars_per_token, assumption = measured_ratio(held, tally)
    else:
        assumption = f"Tokens are counted at {chars_per_token:g} characters each, as given."
    builder.assumptions.append(assumption)
    encoder = CharacterEncoder(chars_per_token, block_tokens, options.hash_key)
    taker.take_all(chain(held, incoming), encoder)
    return builder


def has_text(prompt: Prompt) -> bool:
    """Whether the log holds what was sent; an empty completion counts."""
    return prompt.text is not None or bool(prompt.messages) or bool(prompt.tools)


class _Taker:
    """Prompts into the builder, and what was odd about them."""

    def __init__(self, builder: TraceBuilder) -> None:
        self._builder = builder
        self._tally = builder.tally

    def take_all(self, prompts: Iterator[Prompt], encoder: Encoder) -> None:
        for prompt in prompts:
            self._take(prompt, encoder)

    def _take(self, prompt: Prompt, encoder: Encoder) -> None:
        ids, input_tokens = None, prompt.input_tokens
        if has_text(prompt):
            ids, input_tokens, text_tokens = encoder.encode(prompt)
            if abs(input_tokens - text_tokens) > self._builder.block_tokens:
                self._tally.note(
                    "other_token_count",
                    f"{prompt.place}: {input_tokens} input tokens in the log, {text_tokens} by its text",
                )
        elif input_tokens is None:
            self._tally.drop(prompt.place, "holds neither the text of a prompt nor a count of its tokens")
            return
        else:
            self._tally.note("no_text", f"{prompt.place}: only its length is known")
        if not input_tokens:
            self._tally.note("empty_prompts", prompt.place)
        self._builder.add(
            arrival_ms=prompt.arrival_ms,
            input_tokens=input_tokens,
            output_tokens=self._output_tokens(prompt, encoder),
            ids=None if ids is None else under_model(ids, prompt.model),
            session=prompt.session,
            kind=prompt.kind,
            model=prompt.model,
            key=prompt.key,
            previous_key=prompt.previous_key,
            think_ms=_or_unknown(prompt.think_ms),
            duration_ms=_or_unknown(prompt.duration_ms),
            cached_tokens=_or_unknown(prompt.cached_tokens),
        )

    def _output_tokens(self, prompt: Prompt, encoder: Encoder) -> int:
        """As the server counted; else what the answer comes to; else 0, and noted."""
        if prompt.output_tokens is not None:
            return prompt.output_tokens
        if not prompt.answer:
            self._tally.note("no_output", f"{prompt.place}: its answer is taken as empty")
        return encoder.count_tokens(prompt.answer)


def first_prompts(prompts: Iterator[Prompt]) -> Iterator[Prompt]:
    """Enough prompts to measure on, and never more text than memory should hold."""
    characters = 0
    for count, prompt in enumerate(prompts, start=1):
        yield prompt
        characters += len(plain_text(prompt)) + len(prompt.answer)
        if count >= MEASURED_REQUESTS or characters >= MEASURED_CHARACTERS:
            return


def measured_ratio(prompts: Sequence[Prompt], tally: Tally) -> tuple[float, str]:
    """Characters a token, to two decimals, and what to say of the figure."""
    counted = [prompt for prompt in prompts if prompt.input_tokens and has_text(prompt)]
    characters = sum(len(plain_text(prompt)) for prompt in counted)
    if characters:
        tokens = sum(prompt.input_tokens or 0 for prompt in counted)
        figure = round(characters / tokens, 2)
        if _LEAST <= figure <= _MOST:
            return figure, (
                f"Tokens are counted at {figure:g} characters each, measured on {len(counted):,} rows that "
                "report usage."
            )
        tally.note("odd_chars_per_token", f"{characters:,} characters for {tokens:,} tokens of usage")
    figure = ASSUMED_CHARS_PER_TOKEN
    return figure, f"No tokenizer was given: tokens are assumed to be {figure:g} characters each."


def _or_unknown(value: int | None) -> int:
    return UNKNOWN if value is None else value
