"""Multi-round chat: users with a long history of their own under a shared system prompt.

After production-stack's and LMBenchmark's multi-round-qa: a user sends a question every users / rate seconds
and never before the answer to the last; users join one after another, so that their rounds are spread out.
"""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np

from warmset.errors import InputError
from warmset.trace.builder import TraceBuilder
from warmset.trace.synth.distributions import Geometric, Lognormal, whole_stream
from warmset.trace.synth.parameters import Generator, Preset, assumed, published
from warmset.trace.synth.prompts import Prompt, Span, Texts
from warmset.trace.synth.recording import Conversation, Limits, Recorder, Service
from warmset.trace.synth.simulation import Process, Simulation

_STACK = "production-stack, benchmarks/multi-round-qa"
_LMBENCHMARK = "LMBenchmark"
_SWEPT = ("requests_per_s",)


class _Wanted(NamedTuple):
    """What one user sends."""

    opening: tuple[Span, ...]
    num_rounds: int
    questions: Iterator[int]
    answers: Iterator[int]


class Chat(Generator, frozen=True, kw_only=True):
    """Multi-round chat."""

    NAME: ClassVar[str] = "chat"
    TITLE: ClassVar[str] = "multi-round chat with a history for each user and a shared system prompt"
    NOTES: ClassVar[tuple[str, ...]] = ("Chat templates add no tokens.",)
    PRESETS: ClassVar = {
        "default": Preset("multi-round-qa on a cluster: 320 users, 10 rounds", {}),
        "multi-round-qa-320x10": Preset("the same", {}),
        "multi-round-qa-260x20": Preset(
            "multi-round-qa: 260 users, 20 rounds", {"num_users": 260, "num_rounds": 20}, _STACK
        ),
        "multi-round-qa-15x20": Preset(
            "multi-round-qa on a single GPU: 15 users, 20 rounds",
            {"num_users": 15, "num_rounds": 20, "requests_per_s": 0.5},
            f"{_STACK}/run_single.sh",
            _SWEPT,
        ),
        "multi-round-qa-readme": Preset(
            "multi-round-qa's README example: 10 users, 5 rounds, 0.5 requests a second",
            {"num_users": 10, "num_rounds": 5, "history_tokens": 2000, "requests_per_s": 0.5},
            f"{_STACK}/README.md",
        ),
        "lmbenchmark-short": Preset(
            "LMBenchmark, short input and output",
            {"system_tokens": 0, "history_tokens": 256, "answer_p50_tokens": 20, "requests_per_s": 15.0},
            _LMBENCHMARK,
        ),
        "lmbenchmark-long": Preset(
            "LMBenchmark, long input and short output",
            {"num_users": 15, "num_rounds": 20, "requests_per_s": 0.1},
            f"{_LMBENCHMARK}, long_input_short_output_run.sh",
        ),
        "sharegpt": Preset(
            "ShareGPT-like: short questions, long answers, LMBenchmark's rate",
            {
                "num_users": 100,
                "num_rounds": 4,
                "rounds": "geometric",
                "requests_per_s": 1.34,
                "system_tokens": 0,
                "history_tokens": 0,
                "question_p50_tokens": 90,
                "question_sigma": 1.08,
                "answer_p50_tokens": 205,
                "answer_sigma": 1.0,
            },
            "rate: LMBenchmark; means of 161 and 338 tokens: Kwon et al., SOSP 2023, figure 11",
            (
                "num_users",
                "num_rounds",
                "rounds",
                "system_tokens",
                "history_tokens",
                "question_sigma",
                "answer_sigma",
            ),
        ),
    }

    num_users: Annotated[int, published("users at a time", f"{_STACK}/run.sh", ge=1)] = 320
    num_waves: Annotated[
        int, assumed("times that the users are there; 2: each is followed by another", ge=1)
    ] = 1
    num_rounds: Annotated[int, published("rounds of a user", f"{_STACK}/run.sh", ge=1)] = 10
    rounds: Annotated[
        Literal["fixed", "geometric"],
        published("whether all users have `num_rounds`, or that many on average", f"{_STACK}/run.sh"),
    ] = "fixed"
    requests_per_s: Annotated[
        float, assumed("rate of all users together; the benchmark sweeps 0.1 to 4.1", gt=0)
    ] = 2.1
    system_tokens: Annotated[int, published("system prompt that all share", f"{_STACK}/run.sh", ge=0)] = 1000
    history_tokens: Annotated[int, published("history of each user", f"{_STACK}/run.sh", ge=0)] = 20_000
    question_p50_tokens: Annotated[
        int, assumed("question, median; the benchmark's sentence is about as long", ge=1)
    ] = 20
    question_sigma: Annotated[float, published("its spread; 0: all alike", f"{_STACK}/run.sh", ge=0)] = 0.0
    answer_p50_tokens: Annotated[int, published("answer, median", f"{_STACK}/run.sh", ge=1)] = 100
    answer_sigma: Annotated[float, published("its spread; 0: all alike", f"{_STACK}/run.sh", ge=0)] = 0.0
    prefill_tokens_per_s: Annotated[float, assumed("prompt tokens that the server reads", gt=0)] = 10_000.0
    decode_tokens_per_s: Annotated[float, assumed("tokens that the server writes in an answer", gt=0)] = 50.0

    def service(self) -> Service:
        """How long answers take."""
        return Service(self.prefill_tokens_per_s, self.decode_tokens_per_s)

    def fill(self, rng: np.random.Generator, limits: Limits, block_tokens: int) -> TraceBuilder:
        """All users' rounds."""
        recorder = Recorder(block_tokens, self.service(), limits)
        simulation = Simulation()
        texts = Texts()
        system = texts.new(self.system_tokens)
        questions = whole_stream(rng, Lognormal(self.question_p50_tokens, self.question_sigma, least=1))
        answers = whole_stream(rng, Lognormal(self.answer_p50_tokens, self.answer_sigma, least=1))
        rounds = whole_stream(rng, Geometric(self.num_rounds))
        between_users_ms = 1000 * max(self.num_rounds - 1, 1) / self.requests_per_s
        for user in range(self.num_users * self.num_waves):
            conversation = Conversation(f"user:{user}", Prompt(block_tokens), "chat")
            opening = (system, texts.new(self.history_tokens))
            num_rounds = self.num_rounds if self.rounds == "fixed" else next(rounds)
            wanted = _Wanted(opening, num_rounds, questions, answers)
            process = self._user(simulation, recorder, texts, conversation, wanted)
            simulation.start(process, round(user * between_users_ms))
        recorder.run(simulation)
        return recorder.builder

    def _user(
        self,
        simulation: Simulation,
        recorder: Recorder,
        texts: Texts,
        conversation: Conversation,
        wanted: "_Wanted",
    ) -> Process:
        conversation.prompt.lay_all(list(wanted.opening))
        gap_ms = round(1000 * self.num_users / self.requests_per_s)
        for _ in range(wanted.num_rounds):
            began_ms = simulation.now_ms
            conversation.prompt.lay(texts.new(next(wanted.questions)))
            output_tokens = next(wanted.answers)
            end_ms = recorder.call(conversation, began_ms, output_tokens)
            conversation.prompt.lay(texts.new(output_tokens))
            yield max(began_ms + gap_ms, end_ms)

    def __post_init__(self) -> None:
        """Refuse rounds that cannot be."""
        if self.num_users * self.num_waves > 2**22:
            raise InputError(
                f"num_users × num_waves is {self.num_users * self.num_waves:,}: at most 4,194,304"
            )
