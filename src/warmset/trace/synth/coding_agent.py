"""Coding-agent sessions, fitted to the Claude Code sessions of WEKA's kv-cache-tester.

How the fit was made: the 710 sessions of `traces_710_sessions.jsonl` were read in, exact copies left out (692
sessions, 46,218 requests, 676 of them by 63 sub-agents), and these counted over the main line of requests.
Where a table has ten values, they stand at 0, 5, 10, 25, 50, 75, 90, 95, 99 and 100 %, with straight lines
between their logarithms.

* Sessions come in two kinds, told by the first prompt: fresh ones, and those that resume with 70,000 tokens
  or more (234 of 692). Resumed ones are shorter; without the two kinds, long prompts last far too long.
* New text: prompt minus the prompt before, where that is above 0 and no cut. The answer before is part of it.
* Wait: from the end of an answer to the next request. Answer time: the line through the medians of answers of
  50 to 120 tokens (3.58 s) and of 2,000 to 5,000 (45.4 s); prefill: least squares over output and new text.
* Breaks: 1.14 % of requests re-read over 2,000 tokens more than they added; half of them kept 14,976 tokens
  or more, which is what `tool_tokens` + `system_tokens` are. Every break is taken to keep just these, or the
  whole first prompt where that is shorter.
* Compaction: 0.72 % of main requests dropped over a tenth of the prompt, two thirds of them from 140,000 to
  170,000 tokens. What lies far below is `early_cut_share`. (The 2.8 % of trace-facts counts in file order,
  where sub-agents alternate with their parent.)
* `large_window_share` cannot be seen before a session grows so long; it was set to meet the P90 of prompts.
* Not fitted: growth differs between sessions (median per session P10 448, P90 1,548), longer sessions grow
  more slowly (correlation of logarithms -0.35), and the answer before goes with growth (rank correlation
  0.37). Here all are independent. The log has no common clock: `sessions_per_hour` is ours.
"""

from collections.abc import Iterator
from typing import Annotated, ClassVar, NamedTuple

from warmset.errors import InputError
from warmset.trace.builder import TraceBuilder
from warmset.trace.synth.distributions import Quantiles, Random, Uniform, arrival_stream, stream, whole_stream
from warmset.trace.synth.parameters import Generator, Preset, assumed, fitted
from warmset.trace.synth.prompts import Prompt, Span, Texts
from warmset.trace.synth.recording import Conversation, Limits, Recorder, Service
from warmset.trace.synth.simulation import Process, Simulation

_WEKA = "WEKA kv-cache-tester, 692 distinct sessions"
PERCENTS = (0.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 100.0)
"""Where the values of a table stand."""
Table = tuple[float, ...]


def _table(text: str) -> object:
    return fitted(
        f"{text}, at 0, 5, 10, 25, 50, 75, 90, 95, 99 and 100 %",
        _WEKA,
        min_length=len(PERCENTS),
        max_length=len(PERCENTS),
    )


class CodingAgent(Generator, frozen=True, kw_only=True):
    """Sessions of a coding agent."""

    NAME: ClassVar[str] = "coding-agent"
    TITLE: ClassVar[str] = "sessions of a coding agent, fitted to WEKA's Claude Code sessions"
    NOTES: ClassVar[tuple[str, ...]] = (
        "Lengths and waits within a session are drawn independently; sessions start as a Poisson process.",
    )
    PRESETS: ClassVar = {
        "default": Preset("as in the log", {}),
        "no-breaks": Preset("the same with an untouched prefix", {"break_share": 0.0}),
    }

    num_sessions: Annotated[int, assumed("sessions", ge=1)] = 100
    sessions_per_hour: Annotated[float, assumed("starts, Poisson", gt=0)] = 20.0
    scaffold_tokens: Annotated[int, fitted("tools and system prompt that all share", _WEKA, ge=0)] = 15_000
    resumed_share: Annotated[float, fitted("sessions that begin with a long history", _WEKA, ge=0, le=1)] = (
        0.338
    )
    fresh_first_tokens: Annotated[Table, _table("first prompt of the others")] = (
        6300.0, 11_900.0, 13_700.0, 17_400.0, 19_600.0, 23_700.0, 56_800.0, 65_200.0, 68_300.0, 69_700.0,
    )  # fmt: skip
    resumed_first_tokens: Annotated[Table, _table("first prompt of these")] = (
        70_600.0, 80_600.0, 88_100.0, 104_500.0, 145_200.0,
        286_800.0, 432_200.0, 566_300.0, 819_300.0, 851_900.0,
    )  # fmt: skip
    fresh_requests: Annotated[Table, _table("requests of a session that starts afresh")] = (
        3.0, 7.0, 12.0, 26.0, 66.0, 114.0, 173.0, 233.0, 348.0, 514.0,
    )  # fmt: skip
    resumed_requests: Annotated[Table, _table("requests of one that resumes")] = (
        3.0, 4.0, 4.0, 8.0, 22.0, 43.0, 68.0, 95.0, 181.0, 234.0,
    )  # fmt: skip
    growth_tokens: Annotated[Table, _table("new text of a request, the answer before included")] = (
        6.0, 154.0, 191.0, 332.0, 663.0, 1587.0, 3659.0, 6434.0, 16_640.0, 80_000.0,
    )  # fmt: skip
    output_tokens: Annotated[Table, _table("answer")] = (
        1.0, 88.0, 104.0, 138.0, 218.0, 426.0, 893.0, 1538.0, 3721.0, 18_195.0,
    )  # fmt: skip
    wait_s: Annotated[Table, _table("from the end of an answer to the next request")] = (
        1.0, 3.35, 3.93, 5.39, 9.13, 23.3, 123.5, 298.9, 1946.0, 77_590.0,
    )  # fmt: skip
    compaction_tokens: Annotated[int, fitted("a prompt above this is cut", _WEKA, ge=1)] = 155_000
    large_window_share: Annotated[
        float, fitted("sessions cut only in the larger window", _WEKA, ge=0, le=1)
    ] = 0.15
    large_compaction_tokens: Annotated[int, fitted("where these are cut", _WEKA, ge=1)] = 850_000
    early_cut_share: Annotated[float, fitted("requests that cut a shorter prompt", _WEKA, ge=0, le=1)] = (
        0.0025
    )
    cut_first_tokens: Annotated[Table, _table("prompt after a cut, scaffold included")] = (
        9900.0, 13_600.0, 21_200.0, 29_100.0, 45_500.0, 89_600.0, 120_200.0, 129_700.0, 140_000.0, 150_000.0,
    )  # fmt: skip
    break_share: Annotated[float, fitted("requests that re-read all but the scaffold", _WEKA, ge=0, le=1)] = (
        0.0114
    )
    subagent_share: Annotated[float, fitted("requests that start a sub-agent", _WEKA, ge=0, le=1)] = 0.0014
    subagent_scaffold_tokens: Annotated[int, fitted("what sub-agents share", _WEKA, ge=0)] = 9900
    subagent_task_tokens: Annotated[int, fitted("what one is told", _WEKA, ge=1)] = 400
    subagent_requests: Annotated[Table, _table("requests of a sub-agent")] = (
        3.0, 4.0, 5.0, 7.0, 11.0, 13.0, 17.0, 22.0, 24.0, 24.0,
    )  # fmt: skip
    subagent_growth_tokens: Annotated[Table, _table("its new text")] = (
        150.0, 349.0, 489.0, 926.0, 2531.0, 5751.0, 13_236.0, 22_275.0, 62_858.0, 120_121.0,
    )  # fmt: skip
    subagent_wait_s: Annotated[Table, _table("its wait")] = (
        1.0, 1.9, 2.3, 3.0, 3.9, 6.4, 29.0, 45.1, 74.6, 133.0,
    )  # fmt: skip
    overhead_ms: Annotated[float, fitted("of every answer", _WEKA, ge=0)] = 2000.0
    prefill_tokens_per_s: Annotated[float, fitted("prompt tokens that the server reads", _WEKA, gt=0)] = (
        44_150.0
    )
    decode_tokens_per_s: Annotated[float, fitted("tokens that the server writes", _WEKA, gt=0)] = 63.7

    def service(self) -> Service:
        """How long answers take."""
        return Service(self.prefill_tokens_per_s, self.decode_tokens_per_s, self.overhead_ms)

    def fill(self, rng: Random, limits: Limits, block_tokens: int) -> TraceBuilder:
        """All sessions, or as much of them as fits."""
        recorder = Recorder(block_tokens, self.service(), limits)
        simulation = Simulation()
        work = _Work(self, rng, simulation, recorder, block_tokens)
        starts = arrival_stream(rng, self.sessions_per_hour / 3600)
        for session, at_ms in zip(range(self.num_sessions), starts, strict=False):
            simulation.start(work.session(f"session:{session}"), at_ms)
        recorder.run(simulation)
        return recorder.builder

    def __post_init__(self) -> None:
        """Refuse tables that descend, and cuts that leave nothing."""
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, tuple) and (list(value) != sorted(value) or value[0] < 0):
                raise InputError(f"{name}: the values of a table start at 0 or above, and never descend")
        if min(self.compaction_tokens, self.large_compaction_tokens) <= self.scaffold_tokens:
            raise InputError(
                f"compaction_tokens {self.compaction_tokens}: must lie above scaffold_tokens "
                f"{self.scaffold_tokens}"
            )


class _Streams(NamedTuple):
    """Draws of one kind of agent."""

    growths: Iterator[int]
    waits_ms: Iterator[int]


class _Work:
    """Sessions as processes."""

    def __init__(
        self, plan: CodingAgent, rng: Random, simulation: Simulation, recorder: Recorder, block_tokens: int
    ) -> None:
        self.plan = plan
        self.simulation = simulation
        self.recorder = recorder
        self.block_tokens = block_tokens
        self.texts = Texts()
        self.scaffold = self.texts.new(plan.scaffold_tokens)
        self.subagent_scaffold = self.texts.new(plan.subagent_scaffold_tokens)

        def table(values: Table, scale_factor: float = 1.0) -> Iterator[int]:
            return whole_stream(rng, Quantiles(PERCENTS, values), scale_factor)

        self.firsts = {True: table(plan.resumed_first_tokens), False: table(plan.fresh_first_tokens)}
        self.counts = {True: table(plan.resumed_requests), False: table(plan.fresh_requests)}
        self.outputs = table(plan.output_tokens)
        self.cuts = table(plan.cut_first_tokens)
        self.chances = stream(rng, Uniform(0, 1))
        self.main = _Streams(table(plan.growth_tokens), table(plan.wait_s, 1000))
        self.subagent = _Streams(table(plan.subagent_growth_tokens), table(plan.subagent_wait_s, 1000))
        self.subagent_counts = table(plan.subagent_requests)

    def session(self, name: str) -> Process:
        """A session from its first prompt on."""
        plan = self.plan
        resumed = next(self.chances) < plan.resumed_share
        first_tokens = next(self.firsts[resumed])
        num_requests = next(self.counts[resumed])
        is_large = first_tokens > plan.compaction_tokens or next(self.chances) < plan.large_window_share
        most_tokens = plan.large_compaction_tokens if is_large else plan.compaction_tokens
        talk = Conversation(name, Prompt(self.block_tokens), "main")
        scaffold = self.scaffold.upto(first_tokens)
        self._open(talk.prompt, scaffold, first_tokens)
        for count in range(num_requests):
            if count:
                self._grow(talk.prompt, scaffold, most_tokens)
            if next(self.chances) < plan.subagent_share:
                self.simulation.start(self._subagent(name), self.simulation.now_ms)
            output_tokens = next(self.outputs)
            yield self.recorder.call(talk, self.simulation.now_ms, output_tokens)
            yield self.simulation.now_ms + next(self.main.waits_ms)

    def _subagent(self, session: str) -> Process:
        talk = Conversation(session, Prompt(self.block_tokens), "sub-agent")
        talk.prompt.lay(self.subagent_scaffold)
        talk.prompt.lay(self.texts.new(self.plan.subagent_task_tokens))
        for _ in range(next(self.subagent_counts)):
            yield self.recorder.call(talk, self.simulation.now_ms, next(self.outputs))
            talk.prompt.lay(self.texts.new(next(self.subagent.growths)))
            yield self.simulation.now_ms + next(self.subagent.waits_ms)

    def _open(self, prompt: Prompt, scaffold: Span, tokens: int) -> None:
        """The scaffold, and text of this prompt's own up to a length."""
        prompt.clear()
        prompt.lay_all([scaffold, self.texts.new(max(tokens - scaffold.tokens, 0))])

    def _grow(self, prompt: Prompt, scaffold: Span, most_tokens: int) -> None:
        """The prompt of the next request: longer, or cut, or longer and changed from the scaffold on."""
        plan = self.plan
        grown_tokens = prompt.tokens + next(self.main.growths)
        if grown_tokens > most_tokens or next(self.chances) < plan.early_cut_share:
            self._open(prompt, scaffold, min(next(self.cuts), prompt.tokens * 9 // 10))
        elif next(self.chances) < plan.break_share:
            self._open(prompt, scaffold, grown_tokens)
        else:
            prompt.lay(self.texts.new(grown_tokens - prompt.tokens))
