"""One prompt, one answer, nothing shared: the traffic that no cache helps."""

from typing import Annotated, ClassVar

import numpy as np

from warmset.errors import InputError
from warmset.trace.builder import TraceBuilder
from warmset.trace.synth.distributions import Lognormal, arrival_stream, whole_stream
from warmset.trace.synth.parameters import Generator, Preset, assumed, published
from warmset.trace.synth.prompts import Prompt, Texts
from warmset.trace.synth.recording import Limits, Recorder, Service

_AZURE = "Azure LLM inference trace 2023 (Splitwise), quantiles and rate counted from its files"


class OneShot(Generator, frozen=True, kw_only=True):
    """Prompts that share nothing but perhaps a system prompt."""

    NAME: ClassVar[str] = "one-shot"
    TITLE: ClassVar[str] = "single prompts that share nothing"
    USUAL: ClassVar[Limits] = Limits(num_requests=10_000)
    NOTES: ClassVar[tuple[str, ...]] = (
        "Lengths are lognormal through the median and the 90th percentile; input and output are independent.",
    )
    PRESETS: ClassVar = {
        "default": Preset("lengths and rate of Azure's conversations of 2023", {}),
        "azure-2023-code": Preset(
            "lengths, rate and bursts of Azure's code completions of 2023",
            {
                "requests_per_s": 2.57,
                "interarrival_cv_factor": 13.2,
                "input_p50_tokens": 1469,
                "input_p90_tokens": 5188,
                "input_most_tokens": 7437,
                "output_p50_tokens": 13,
                "output_p90_tokens": 55,
                "output_most_tokens": 1899,
            },
            _AZURE,
        ),
    }

    requests_per_s: Annotated[float, published("rate", _AZURE, gt=0)] = 5.53
    interarrival_cv_factor: Annotated[
        float, published("spread of gaps over mean, Gamma; 1: Poisson", _AZURE, gt=0)
    ] = 1.09
    input_p50_tokens: Annotated[int, published("prompt without system prompt, median", _AZURE, ge=1)] = 1020
    input_p90_tokens: Annotated[int, published("its 90th percentile", _AZURE, ge=1)] = 2735
    input_most_tokens: Annotated[int, published("the longest", _AZURE, ge=1)] = 14_050
    output_p50_tokens: Annotated[int, published("answer, median", _AZURE, ge=1)] = 129
    output_p90_tokens: Annotated[int, published("its 90th percentile", _AZURE, ge=1)] = 424
    output_most_tokens: Annotated[int, published("the longest", _AZURE, ge=1)] = 1000
    system_tokens: Annotated[int, assumed("system prompt that all share", ge=0)] = 0
    prefill_tokens_per_s: Annotated[float, assumed("prompt tokens that the server reads", gt=0)] = 10_000.0
    decode_tokens_per_s: Annotated[float, assumed("tokens that the server writes in an answer", gt=0)] = 50.0

    def service(self) -> Service:
        """How long answers take."""
        return Service(self.prefill_tokens_per_s, self.decode_tokens_per_s)

    def fill(self, rng: np.random.Generator, limits: Limits, block_tokens: int) -> TraceBuilder:
        """Prompts until there are enough."""
        recorder = Recorder(block_tokens, self.service(), limits)
        texts = Texts()
        prompt = Prompt(block_tokens)
        prompt.lay(texts.new(self.system_tokens))
        head = prompt.mark()
        inputs = whole_stream(
            rng, Lognormal.from_p90(self.input_p50_tokens, self.input_p90_tokens, 1, self.input_most_tokens)
        )
        outputs = whole_stream(
            rng,
            Lognormal.from_p90(self.output_p50_tokens, self.output_p90_tokens, 1, self.output_most_tokens),
        )
        for now_ms in arrival_stream(rng, self.requests_per_s, self.interarrival_cv_factor):
            if recorder.is_over(now_ms):
                break
            prompt.rewind(head)
            prompt.lay(texts.new(next(inputs)))
            recorder.single(prompt, now_ms, next(outputs), self.NAME)
        return recorder.builder

    def __post_init__(self) -> None:
        """Refuse quantiles that cross."""
        for what in ("input", "output"):
            p50, p90, most = (getattr(self, f"{what}_{each}_tokens") for each in ("p50", "p90", "most"))
            if not p50 <= p90 <= most:
                raise InputError(
                    f"{what}_p50_tokens {p50}, {what}_p90_tokens {p90}, {what}_most_tokens {most}: "
                    "they must ascend"
                )
