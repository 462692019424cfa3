"""Coding sessions in the manner of AIPerf's agentic-code generator.

A prompt is three layers (one for all, one for a group, one for the session) and a history; each turn adds the
answer before and new text, after a short wait for a tool or a long one for a person. A session ends when it
would pass the limit, or by chance. AIPerf draws anew what lies outside its limits; here it is moved to them.
"""

from collections.abc import Iterator
from typing import Annotated, ClassVar

from warmset.errors import InputError
from warmset.trace.builder import TraceBuilder
from warmset.trace.synth.distributions import (
    Lognormal,
    Mixture,
    Random,
    Uniform,
    Zipf,
    arrival_stream,
    stream,
    whole_stream,
)
from warmset.trace.synth.parameters import Generator, Preset, assumed, published
from warmset.trace.synth.prompts import Prompt, Texts
from warmset.trace.synth.recording import Conversation, Limits, Recorder, Service
from warmset.trace.synth.simulation import Process, Simulation

_MODELS = "AIPerf, agentic_code_gen/models.py"
_LEAST_OUTPUT_TOKENS = 30
_UNLIMITED = 10**9


class AgenticCode(Generator, frozen=True, kw_only=True):
    """Sessions of layered prompts."""

    NAME: ClassVar[str] = "agentic-code"
    TITLE: ClassVar[str] = "coding sessions in layers, after AIPerf's agentic-code generator"
    PRESETS: ClassVar = {
        "default": Preset("AIPerf's own defaults", {}),
        "inference-day-2026": Preset(
            "AIPerf's inference-day-2026",
            {
                "group_tokens": 10_000,
                "num_groups": 100,
                "zipf_factor": 0.6,
                "session_mean_tokens": 15_000,
                "session_most_tokens": 50_000,
                "growth_p50_tokens": 4000,
                "growth_mean_tokens": 6000,
                "growth_most_tokens": 50_000,
                "output_p50_tokens": 800,
                "output_mean_tokens": 1000,
                "output_most_tokens": 10_000,
                "tool_wait_p50_ms": 2000,
                "tool_wait_mean_ms": 5000,
                "person_wait_p50_ms": 15_000,
                "person_wait_mean_ms": 30_000,
                "end_share": 0.05,
                "end_scaling_factor": 1.5,
                "restart_share": 0.3,
            },
            "AIPerf, agentic_code_gen/configs/inference-day-2026.json",
        ),
    }

    num_sessions: Annotated[int, assumed("sessions", ge=1)] = 200
    sessions_per_hour: Annotated[float, assumed("starts, Poisson", gt=0)] = 120.0
    global_tokens: Annotated[int, published("layer that all share", _MODELS, ge=0)] = 32_000
    group_tokens: Annotated[int, published("layer of a group (a repository)", _MODELS, ge=0)] = 20_000
    num_groups: Annotated[int, published("groups", _MODELS, ge=1, le=10**7)] = 50
    zipf_factor: Annotated[
        float, published("group k is chosen in proportion to 1 / k^this", _MODELS, ge=0)
    ] = 1.2
    session_p50_tokens: Annotated[int, published("layer of a session, median", _MODELS, ge=1)] = 5000
    session_mean_tokens: Annotated[int, published("its mean, lognormal", _MODELS, ge=1)] = 10_000
    session_most_tokens: Annotated[int, published("its limit; AIPerf has none", _MODELS, ge=1)] = _UNLIMITED
    growth_p50_tokens: Annotated[int, published("new text of a turn, median", _MODELS, ge=1)] = 1800
    growth_mean_tokens: Annotated[int, published("its mean, lognormal", _MODELS, ge=1)] = 3500
    growth_most_tokens: Annotated[int, published("its limit; AIPerf has none", _MODELS, ge=1)] = _UNLIMITED
    output_p50_tokens: Annotated[int, published("answer, median", _MODELS, ge=1)] = 300
    output_mean_tokens: Annotated[int, published("its mean, lognormal", _MODELS, ge=1)] = 500
    output_most_tokens: Annotated[int, published("its limit; AIPerf has none", _MODELS, ge=1)] = _UNLIMITED
    tool_share: Annotated[float, published("turns that follow a tool", _MODELS, ge=0, le=1)] = 0.7
    tool_wait_p50_ms: Annotated[int, published("wait for a tool, median", _MODELS, ge=1)] = 1800
    tool_wait_mean_ms: Annotated[int, published("its mean, lognormal", _MODELS, ge=1)] = 2500
    person_wait_p50_ms: Annotated[int, published("wait for a person, median", _MODELS, ge=1)] = 25_000
    person_wait_mean_ms: Annotated[int, published("its mean, lognormal", _MODELS, ge=1)] = 40_000
    end_share: Annotated[float, published("turns before which a short session ends", _MODELS, ge=0, le=1)] = (
        0.02
    )
    end_scaling_factor: Annotated[
        float, published("times as likely at the longest prompt", _MODELS, ge=1)
    ] = 2.0
    most_tokens: Annotated[int, published("prompt before which a session ends", _MODELS, ge=1)] = 200_000
    restart_share: Annotated[
        float,
        published(
            "sessions that go on under a new name after 5 to 14 turns, falling to 0", _MODELS, ge=0, le=1
        ),
    ] = 0.0
    prefill_tokens_per_s: Annotated[float, assumed("prompt tokens that the server reads", gt=0)] = 10_000.0
    decode_tokens_per_s: Annotated[float, assumed("tokens that the server writes in an answer", gt=0)] = 50.0

    def service(self) -> Service:
        """How long answers take."""
        return Service(self.prefill_tokens_per_s, self.decode_tokens_per_s)

    def fill(self, rng: Random, limits: Limits, block_tokens: int) -> TraceBuilder:
        """All sessions, or as much of them as fits."""
        recorder = Recorder(block_tokens, self.service(), limits)
        work = _Work(self, rng, recorder, block_tokens)
        starts = arrival_stream(rng, self.sessions_per_hour / 3600)
        for session, at_ms in zip(range(self.num_sessions), starts, strict=False):
            work.simulation.start(work.session(session), at_ms)
        recorder.run(work.simulation)
        return recorder.builder

    def __post_init__(self) -> None:
        """Refuse means below medians, and layers that fill the prompt."""
        for name in self.__struct_fields__:
            if "_p50_" not in name:
                continue
            mean_name = name.replace("_p50_", "_mean_")
            if getattr(self, mean_name) < getattr(self, name):
                raise InputError(
                    f"{mean_name} {getattr(self, mean_name)} is below {name} {getattr(self, name)}: "
                    "the mean of a lognormal is not"
                )
        fixed_tokens = self.global_tokens + self.group_tokens
        if fixed_tokens >= self.most_tokens:
            raise InputError(f"most_tokens {self.most_tokens}: the shared layers alone are {fixed_tokens}")


class _Work:
    """Sessions as processes."""

    def __init__(self, plan: AgenticCode, rng: Random, recorder: Recorder, block_tokens: int) -> None:
        self.plan = plan
        self.recorder = recorder
        self.block_tokens = block_tokens
        self.simulation = Simulation()
        self.texts = Texts()
        self.shared = self.texts.new(plan.global_tokens)
        self.groups = self.texts.new(plan.group_tokens * plan.num_groups)

        def lengths(what: str, least: int) -> Iterator[int]:
            p50, mean, most = (getattr(plan, f"{what}_{each}_tokens") for each in ("p50", "mean", "most"))
            return whole_stream(rng, Lognormal.from_mean(p50, mean, min(least, most), most))

        self.layers = lengths("session", 1)
        self.growths = lengths("growth", 1)
        self.outputs = lengths("output", _LEAST_OUTPUT_TOKENS)
        self.group = whole_stream(rng, Zipf(plan.num_groups, plan.zipf_factor))
        tool = Lognormal.from_mean(plan.tool_wait_p50_ms, plan.tool_wait_mean_ms)
        person = Lognormal.from_mean(plan.person_wait_p50_ms, plan.person_wait_mean_ms)
        self.waits_ms = stream(rng, Mixture((plan.tool_share,), (tool, person)))
        self.chances = stream(rng, Uniform(0, 1))

    def session(self, number: int) -> Process:
        """A session until it ends, and perhaps another that goes on from it."""
        plan = self.plan
        talk = Conversation(f"session:{number}", Prompt(self.block_tokens), self.plan.NAME)
        group = self.groups.after(next(self.group) * plan.group_tokens).upto(plan.group_tokens)
        room = plan.most_tokens - 1 - plan.global_tokens - plan.group_tokens
        talk.prompt.lay_all([self.shared, group, self.texts.new(min(next(self.layers), room))])
        falling = max(0.0, 1 - number / (0.75 * plan.num_sessions))
        restarts = next(self.chances) < plan.restart_share * falling
        left = 5 + int(10 * next(self.chances)) if restarts else -1
        while True:
            began_tokens = talk.prompt.tokens
            output_tokens = next(self.outputs)
            yield self.recorder.call(talk, self.simulation.now_ms, output_tokens)
            talk.prompt.lay(self.texts.new(output_tokens))
            left -= 1
            if left == 0 and talk.prompt.tokens < plan.most_tokens:
                talk = Conversation(f"session:{number}:restarted", talk.prompt, self.plan.NAME)
                continue
            growth_tokens = next(self.growths)
            tokens = talk.prompt.tokens + growth_tokens
            end_share = plan.end_share * (1 + (plan.end_scaling_factor - 1) * tokens / plan.most_tokens)
            if tokens >= plan.most_tokens or next(self.chances) < end_share:
                return
            talk.prompt.lay(self.texts.new(growth_tokens))
            shorter = max(0.2, 1 - 0.8 * began_tokens / plan.most_tokens)
            yield self.simulation.now_ms + round(next(self.waits_ms) * shorter)
