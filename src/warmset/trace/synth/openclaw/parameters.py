"""Parameters of an OpenClaw-like agent platform; default: a healthy layout of September 2026, window of 128k.

Source of all: the OpenClaw note of 2026-11-29, section 5. What is `published` there comes from OpenClaw's
documentation, from issues of openclaw/openclaw (as #137257), or from measured telemetry of one person's three
tasks (GT: chus-chus/blogpost_agentic_workloads @ 2077dff).
Check on the visits: awake 15 hours a day, absences of this spread and visits of 4 turns come to about 4
visits a day and to about 200 calls an agent, as #143017 reports.
"""

from typing import Annotated, ClassVar, Literal

from warmset.errors import InputError
from warmset.trace.builder import TraceBuilder
from warmset.trace.synth.distributions import Random
from warmset.trace.synth.parameters import Generator, Preset, assumed, published
from warmset.trace.synth.recording import Limits, Recorder, Service

DAY_MS = 24 * 3600 * 1000

_DOC = "OpenClaw documentation, 2026-08-22"
_GT = "GT: telemetry of OpenClaw 2026.3.2, 988 calls"
_PI = "Pi sessions (pi-mono fixtures) and Pi's session code"
_LAYERS = "OpenClaw note, sections 2 and 5"
_LOW = {
    "tools_tokens": 4000, "base_tokens": 2400, "skills_tokens": 500, "agent_tokens": 1500, "user_tokens": 250,
    "volatile_tokens": 50, "envelope_tokens": 40, "cron_runs_per_day": 0, "break_share": 0.0,
}  # fmt: skip
_HIGH = {
    "tools_tokens": 30_000, "base_tokens": 5500, "skills_tokens": 4500, "agent_tokens": 10_000,
    "user_tokens": 5000, "volatile_tokens": 800, "envelope_tokens": 200, "cron_runs_per_day": 40,
    "break_share": 0.06,
}  # fmt: skip
_RANGE_ASSUMED = ("user_tokens", "volatile_tokens", "envelope_tokens", "cron_runs_per_day")


class OpenClaw(Generator, frozen=True, kw_only=True):
    """People and their agents on OpenClaw gateways."""

    NAME: ClassVar[str] = "openclaw"
    TITLE: ClassVar[str] = (
        "agent platform: layered prompts, tool rounds, open sessions, heartbeats, cron, compaction"
    )
    USUAL: ClassVar[Limits] = Limits(duration_ms=DAY_MS)
    NOTES: ClassVar[tuple[str, ...]] = (
        "An answer comes back in the next prompt as far as the growth drawn for it reaches.",
        "Reasoning stands first in an answer; where it is dropped, what follows it moves and is read again.",
        "A prefix break lasts: the prompt keeps its new volatile part until the next break.",
        "Heartbeats and their answers stay in the history.",
    )
    PRESETS: ClassVar = {
        "default": Preset("healthy layout of September 2026 on a self-hosted engine", {}),
        "low": Preset(
            "every range at its low end: a lean scaffold, no cron, no breaks", _LOW, _LAYERS, _RANGE_ASSUMED
        ),
        "high": Preset(
            "every range at its high end: many tools, 40 cron runs, 6 % breaks",
            _HIGH,
            _LAYERS,
            _RANGE_ASSUMED,
        ),
        "tools-first": Preset(
            "tools rendered before the system text", {"layer_order": "tools_first"}, "#137257"
        ),
        "broken-prefix": Preset(
            "6 % of calls re-read their history", {"break_share": 0.06}, "#143017: 5.8 %"
        ),
        "daily-reset": Preset(
            "sessions start anew at 04:00", {"reset": "daily"}, f"{_DOC}: default until 2026-07-19"
        ),
        "plain-model": Preset("a model without reasoning", {"reasoning": False}, _LAYERS),
    }

    num_users: Annotated[int, assumed("people", ge=1, le=10**6)] = 20
    users_per_agent: Annotated[int, assumed("people who share an agent's prompt files", ge=1)] = 1
    agents_per_gateway: Annotated[int, assumed("agents under one set of concurrency caps", ge=1)] = 10
    sessions_per_user: Annotated[
        int,
        published("sessions that a person keeps open, the main one included", "source document 4.2", ge=1),
    ] = 10
    main_session_share: Annotated[float, assumed("visits to the main session", ge=0, le=1)] = 0.6
    switch_share: Annotated[
        float, assumed("other visits that turn to another session than last time", ge=0, le=1)
    ] = 0.15
    starts_in_use: Annotated[
        bool, assumed("whether sessions have a history when the trace starts, of any length up to compaction")
    ] = True

    tools_tokens: Annotated[int, published("tool schemas", f"{_LAYERS}, #137257", ge=0)] = 7500
    base_tokens: Annotated[int, published("base system text", "run report, #14785", ge=0)] = 2600
    skills_tokens: Annotated[int, published("skills list", f"run report, {_DOC}", ge=0)] = 1500
    agent_tokens: Annotated[
        int, published("an agent's AGENTS, SOUL, IDENTITY", f"{_DOC}: templates", ge=0)
    ] = 3000
    user_tokens: Annotated[int, assumed("a person's USER, MEMORY", ge=0)] = 1500
    volatile_tokens: Annotated[int, assumed("a session's own part of the system text", ge=0)] = 300
    layer_order: Annotated[
        Literal["tools_last", "tools_first", "tools_after_volatile"],
        published("tools_last: base, skills, agent, user, tools, volatile", "#137257, #137371"),
    ] = "tools_last"

    envelope_tokens: Annotated[int, assumed("around a user's text", ge=0)] = 80
    text_p50_tokens: Annotated[int, published("a user's text, median", f"{_PI}: 20", ge=1)] = 25
    text_p90_tokens: Annotated[int, published("its 90th percentile", f"{_PI}: 51 to 93", ge=1)] = 120
    short_turn_share: Annotated[float, assumed("user turns of 1 to 3 calls", ge=0, le=1)] = 0.55
    task_turn_share: Annotated[float, assumed("user turns of some calls; the rest are long", ge=0, le=1)] = (
        0.35
    )
    task_turn_p50_calls: Annotated[float, published("calls of these, median", f"{_GT}; {_PI}", ge=1)] = 6.0
    task_turn_sigma: Annotated[float, published("their spread", f"{_GT}; {_PI}", ge=0)] = 0.9
    long_turn_p50_calls: Annotated[float, published("calls of a long turn, median", _GT, ge=1)] = 35.0
    long_turn_sigma: Annotated[float, assumed("their spread", ge=0)] = 0.5
    most_calls: Annotated[int, published("calls of any turn, at most", f"{_GT}: 87", ge=1)] = 90
    growth_p50_tokens: Annotated[int, published("what a call adds, its last answer included", _GT, ge=1)] = (
        500
    )
    growth_p90_tokens: Annotated[int, published("its 90th percentile", f"{_GT}: 2,946", ge=1)] = 2950
    growth_most_tokens: Annotated[int, published("its limit", f"{_DOC}: cap of tool results", ge=1)] = 16_000
    output_mean_tokens: Annotated[float, published("answer, inverse Gaussian", f"{_GT}: 378", gt=0)] = 380.0
    output_shape_tokens: Annotated[float, published("its shape", "blogpost_agentic_workloads", gt=0)] = 145.0
    output_least_tokens: Annotated[int, published("its lower limit", _LAYERS, ge=1)] = 15
    last_output_factor: Annotated[float, assumed("times as long at the end of a turn", gt=0)] = 1.5

    fast_tool_share: Annotated[float, published("tools that take 20 to 100 ms", _GT, ge=0, le=1)] = 0.65
    slow_tool_share: Annotated[float, published("tools that take 10 s or more", _GT, ge=0, le=1)] = 0.04
    tool_p50_s: Annotated[float, assumed("wait for the others, median", gt=0)] = 0.7
    tool_p90_s: Annotated[float, assumed("its 90th percentile", gt=0)] = 4.0
    slow_tool_tail_factor: Annotated[
        float, assumed("P(over t) = (10 s / t) ^ this; 1.8 meets GT's P99 of 21.6 s", gt=0)
    ] = 1.8
    slow_tool_most_s: Annotated[float, assumed("the longest wait for a tool", gt=10)] = 600.0
    think_p50_s: Annotated[
        float, published("between turns, median", f"{_GT}: 21 s; {_PI}: 44 to 58 s", gt=0)
    ] = 35.0
    think_p90_s: Annotated[float, published("its 90th percentile", f"{_PI}: 154 to 211 s", gt=0)] = 180.0
    absence_p50_s: Annotated[float, assumed("between visits, nights not counted, median", gt=0)] = 1500.0
    absence_p90_s: Annotated[float, assumed("its 90th percentile", gt=0)] = 21_600.0
    turns_per_visit: Annotated[float, assumed("user turns, geometric mean", ge=1)] = 4.0
    awake_from_hours: Annotated[float, assumed("people come from this hour of the day", ge=0, lt=24)] = 8.0
    awake_until_hours: Annotated[float, assumed("and to this one", gt=0, le=24)] = 23.0
    start_hours: Annotated[float, assumed("hour of the day at which the trace starts", ge=0, lt=24)] = 8.0

    heartbeat_interval_s: Annotated[float, published("an agent's heartbeats", _DOC, gt=0)] = 1800.0
    heartbeat_tokens: Annotated[int, assumed("what a heartbeat adds to the prompt", ge=1)] = 120
    heartbeat_output_tokens: Annotated[int, assumed("HEARTBEAT_OK", ge=1)] = 8
    heartbeat_task_share: Annotated[float, assumed("heartbeats with something to do", ge=0, le=1)] = 0.05
    heartbeat_isolated_share: Annotated[
        float, assumed("agents whose heartbeats start afresh instead of reading the history", ge=0, le=1)
    ] = 0.3
    cron_runs_per_day: Annotated[int, assumed("an agent's jobs, within #15225 and #31946", ge=0)] = 6
    cron_calls: Annotated[int, assumed("calls of a run", ge=1)] = 4
    cron_on_the_hour_share: Annotated[float, assumed("jobs set to full hours", ge=0, le=1)] = 0.5
    cron_spread_s: Annotated[float, published("within which these start", _DOC, ge=0)] = 300.0

    subagent_turn_share: Annotated[float, assumed("task and long turns that send sub-agents", ge=0, le=1)] = (
        0.1
    )
    most_children: Annotated[int, published("sub-agents at work for a session", _DOC, ge=1)] = 5
    children_mean: Annotated[float, assumed("sub-agents sent at once, at least 1", ge=1)] = 2.5
    child_p50_calls: Annotated[float, published("calls of a sub-agent, median", _GT, ge=1)] = 17.0
    child_p90_calls: Annotated[float, published("their 90th percentile", _GT, ge=1)] = 29.0
    child_task_tokens: Annotated[int, assumed("what a sub-agent is told", ge=1)] = 300
    child_less_tokens: Annotated[
        int, published("base text that sub-agents do without", f"{_GT}, medians", ge=0)
    ] = 700
    fork_share: Annotated[float, assumed("sub-agents that start from their parent's history", ge=0, le=1)] = (
        0.1
    )
    fork_most_tokens: Annotated[int, published("longest history that is forked", _DOC, ge=0)] = 100_000
    announce_tokens: Annotated[int, assumed("what a child's end adds to the parent", ge=1)] = 500

    window_tokens: Annotated[int, published("context window", f"{_DOC}: self-hosted examples", ge=1)] = (
        128_000
    )
    reserve_tokens: Annotated[int, published("compaction comes at window - reserve", _DOC, ge=0)] = 20_000
    flush_early_tokens: Annotated[int, published("memory is flushed so far below", _DOC, ge=0)] = 4000
    flush_tokens: Annotated[int, assumed("what the flush turn adds", ge=1)] = 150
    summary_least_tokens: Annotated[
        int, published("summary, at least", f"{_PI}: 900 to 1,100 seen", ge=1)
    ] = 1000
    summary_most_tokens: Annotated[int, assumed("and at most", ge=1)] = 4000
    tool_result_cut_tokens: Annotated[int, published("tool results in a summary call", _PI, ge=0)] = 500
    recent_tokens: Annotated[int, published("history that compaction keeps", f"{_DOC}, #81816", ge=0)] = (
        20_000
    )
    reset: Annotated[Literal["none", "daily"], published("whether sessions start anew at 04:00", _DOC)] = (
        "none"
    )
    break_share: Annotated[
        float, assumed("calls that change the end of the scaffold; #143017: 5.8 %", ge=0, le=1)
    ] = 0.01
    reasoning: Annotated[bool, published("whether a user turn drops the reasoning of the last one", _GT)] = (
        True
    )
    reasoning_share: Annotated[float, assumed("of an answer", ge=0, le=1)] = 0.6

    main_lane_runs: Annotated[int, published("main runs at once on a gateway", f"{_DOC}: 8 to 16", ge=1)] = 8
    subagent_lane_runs: Annotated[int, published("sub-agents at once", _DOC, ge=1)] = 8
    cron_lane_runs: Annotated[int, published("cron runs at once", _DOC, ge=1)] = 8
    prefill_tokens_per_s: Annotated[float, assumed("prompt tokens that the server reads", gt=0)] = 10_000.0
    decode_tokens_per_s: Annotated[float, assumed("tokens that the server writes in an answer", gt=0)] = 60.0

    @property
    def scaffold_tokens(self) -> int:
        """System text and tools of a main session."""
        return (
            self.tools_tokens
            + self.base_tokens
            + self.skills_tokens
            + self.agent_tokens
            + self.user_tokens
            + self.volatile_tokens
        )

    @property
    def compaction_tokens(self) -> int:
        """The prompt at which history is compacted."""
        return self.window_tokens - self.reserve_tokens

    def service(self) -> Service:
        """How long answers take."""
        return Service(self.prefill_tokens_per_s, self.decode_tokens_per_s)

    def fill(self, rng: Random, limits: Limits, block_tokens: int) -> TraceBuilder:
        """Everybody's traffic until there is enough."""
        from warmset.trace.synth.openclaw.platform import Platform

        recorder = Recorder(block_tokens, self.service(), limits)
        Platform(self, rng, recorder, block_tokens).run()
        return recorder.builder

    def __post_init__(self) -> None:
        """Refuse what contradicts itself."""
        kept_tokens = self.scaffold_tokens + self.summary_most_tokens + self.recent_tokens
        if self.compaction_tokens - self.flush_early_tokens <= kept_tokens:
            raise InputError(
                f"window_tokens {self.window_tokens} less reserve_tokens {self.reserve_tokens} leaves "
                f"{self.compaction_tokens}: compaction must come well above what it keeps, scaffold "
                f"{self.scaffold_tokens} + summary {self.summary_most_tokens} + recent {self.recent_tokens}"
            )
        for low, high in (
            ("text_p50_tokens", "text_p90_tokens"),
            ("growth_p50_tokens", "growth_p90_tokens"),
            ("tool_p50_s", "tool_p90_s"),
            ("think_p50_s", "think_p90_s"),
            ("absence_p50_s", "absence_p90_s"),
            ("child_p50_calls", "child_p90_calls"),
            ("summary_least_tokens", "summary_most_tokens"),
            ("awake_from_hours", "awake_until_hours"),
            ("children_mean", "most_children"),
            ("child_less_tokens", "base_tokens"),
        ):
            if getattr(self, low) > getattr(self, high):
                raise InputError(f"{low} {getattr(self, low):g} is above {high} {getattr(self, high):g}")
        for one, other in (("short_turn_share", "task_turn_share"), ("fast_tool_share", "slow_tool_share")):
            if getattr(self, one) + getattr(self, other) > 1 + 1e-9:
                raise InputError(f"{one} and {other} add up to more than 1")
