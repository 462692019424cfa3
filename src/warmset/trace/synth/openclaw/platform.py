"""Gateways, agents, people, heartbeats, cron jobs and sub-agents, as processes on one clock."""

from typing import NamedTuple

from warmset.trace.synth.distributions import Random
from warmset.trace.synth.openclaw.dialogue import Dialogue, Scaffold
from warmset.trace.synth.openclaw.draws import Draws
from warmset.trace.synth.openclaw.parameters import DAY_MS, OpenClaw
from warmset.trace.synth.prompts import Prompt, Span, Texts
from warmset.trace.synth.recording import Conversation, Recorder
from warmset.trace.synth.simulation import Lane, Process, Simulation

HOUR_MS = 3600 * 1000
_RESET_MS = 4 * HOUR_MS
_MAIN, _GROUP, _CHILD, _CRON, _HEARTBEAT, _SUMMARY = (
    "main",
    "group",
    "sub-agent",
    "cron",
    "heartbeat",
    "summary",
)


class Gateway(NamedTuple):
    """Lanes that the agents of one gateway share."""

    main: Lane
    subagents: Lane
    cron: Lane


class Agent(NamedTuple):
    """An agent's place, its gateway and the text that all its sessions have."""

    agent_index: int
    gateway: Gateway
    files: Span


class Platform:
    """Everything that sends requests."""

    def __init__(self, plan: OpenClaw, rng: Random, recorder: Recorder, block_tokens: int) -> None:
        self.plan = plan
        self.draws = Draws(plan, rng)
        self.recorder = recorder
        self.block_tokens = block_tokens
        self.simulation = Simulation()
        self.texts = Texts()
        self.tools = self.texts.new(plan.tools_tokens)
        self.base = self.texts.new(plan.base_tokens)
        self.skills = self.texts.new(plan.skills_tokens)
        self.num_children = 0
        self.num_runs = 0

    def run(self) -> None:
        """Let everybody live until there are enough requests."""
        plan = self.plan
        num_agents = -(-plan.num_users // plan.users_per_agent)
        lanes = (plan.main_lane_runs, plan.subagent_lane_runs, plan.cron_lane_runs)
        gateway = Gateway(*map(Lane, lanes))
        for number in range(num_agents):
            if number % plan.agents_per_gateway == 0:
                gateway = Gateway(*map(Lane, lanes))
            first_user = number * plan.users_per_agent
            agent = Agent(number, gateway, self.texts.new(plan.agent_tokens))
            self._start_agent(agent, min(plan.users_per_agent, plan.num_users - first_user))
        self.recorder.run(self.simulation)

    def _start_agent(self, agent: Agent, num_users: int) -> None:
        files = [self.texts.new(self.plan.user_tokens) for _ in range(num_users)]
        sessions = [self._sessions(agent, user, files[user]) for user in range(num_users)]
        for dialogues in sessions:
            first_ms = self._awake(0, self.draws.rest_of_absence_ms())
            self.simulation.start(self._person(agent, dialogues), first_ms)
        self.simulation.start(
            self._heartbeats(agent, sessions[0][0], files[0]),
            round(1000 * self.plan.heartbeat_interval_s * next(self.draws.chances)),
        )
        for job in range(self.plan.cron_runs_per_day):
            self.simulation.start(self._cron(agent, job, files[0]), 0)

    # --- sessions ----------------------------------------------------------------------------------

    def _sessions(self, agent: Agent, user: int, files: Span) -> list[Dialogue]:
        """A person's sessions, the main one first; they get their history when they are first used."""
        main = "main" if user == 0 else f"direct:{user}"
        names = [main, *(f"group:{user}:{each}" for each in range(1, self.plan.sessions_per_user))]
        return [
            self._dialogue(
                f"agent:{agent.agent_index}:{name}", _MAIN if name == main else _GROUP, agent, files
            )
            for name in names
        ]

    def _dialogue(self, session: str, kind: str, agent: Agent, files: Span | None) -> Dialogue:
        talk = Conversation(session, Prompt(self.block_tokens), kind)
        return Dialogue(talk, self._scaffold(agent, files), self.plan.tool_result_cut_tokens)

    def _scaffold(self, agent: Agent, files: Span | None) -> Scaffold:
        """The layers in order; a sub-agent has no files of a person, and less base text."""
        base = self.base
        if files is None:
            base, files = base.upto(base.tokens - self.plan.child_less_tokens), Span(0, 0)
        system = (base, self.skills, agent.files, files)
        volatile = self.texts.new(self.plan.volatile_tokens)
        if self.plan.layer_order == "tools_first":
            return Scaffold((self.tools, *system, volatile), 5)
        if self.plan.layer_order == "tools_last":
            return Scaffold((*system, self.tools, volatile), 5)
        return Scaffold((*system, volatile, self.tools), 4)

    def _use(self, dialogue: Dialogue) -> None:
        """Whatever happens to a session before it is used: its past, and the reset of the night."""
        plan = self.plan
        day = 1 + (self.simulation.now_ms + round(HOUR_MS * plan.start_hours) - _RESET_MS) // DAY_MS
        if not dialogue.day and plan.starts_in_use and dialogue.talk.kind in {_MAIN, _GROUP}:
            room = plan.compaction_tokens - plan.flush_early_tokens - dialogue.tokens
            until_tokens = dialogue.tokens + round(room * next(self.draws.chances))
            share = plan.output_mean_tokens / (2 * plan.growth_p50_tokens)
            dialogue.grow_old(self.texts, self.draws.growths, until_tokens, min(share, 1.0))
        elif plan.reset == "daily" and dialogue.day != day:
            dialogue.restart()
        dialogue.day = day

    # --- runs --------------------------------------------------------------------------------------

    def _calls(self, dialogue: Dialogue, opening_tokens: int, num_calls: int, kind: str) -> Process:
        """A turn: so many calls with tools between them, then compaction if it is due."""
        plan, draws, texts = self.plan, self.draws, self.texts
        dialogue.open_turn(texts.new(opening_tokens), drops_reasoning=plan.reasoning)
        for left in range(num_calls - 1, -1, -1):
            output_tokens = next(draws.outputs)
            if not left:
                output_tokens = max(round(plan.last_output_factor * output_tokens), 1)
            reasoning_tokens = round(plan.reasoning_share * output_tokens) if plan.reasoning else 0
            yield self._send(dialogue, output_tokens, kind)
            if not left:
                dialogue.answer(texts.new(output_tokens), reasoning_tokens)
                break
            grown = texts.new(next(draws.growths))
            answer_tokens = min(output_tokens, grown.tokens)
            dialogue.add_step(grown, answer_tokens, min(reasoning_tokens, answer_tokens))
            if dialogue.tokens > plan.window_tokens:
                yield from self._compact(dialogue)
            yield self.simulation.now_ms + next(draws.tools_ms)
        if (
            dialogue.next_tokens > plan.compaction_tokens - plan.flush_early_tokens
            and not dialogue.has_flushed
        ):
            yield from self._flush(dialogue, kind)
        if dialogue.next_tokens > plan.compaction_tokens:
            yield from self._compact(dialogue)

    def _send(self, dialogue: Dialogue, output_tokens: int, kind: str) -> int:
        """A call, perhaps with a changed prefix; when its answer ends."""
        if self.draws.chance(self.plan.break_share):
            dialogue.break_prefix(self.texts.new(max(self.plan.volatile_tokens, 1)))
        return self.recorder.call(dialogue.talk, self.simulation.now_ms, output_tokens, kind)

    def _flush(self, dialogue: Dialogue, kind: str) -> Process:
        """One silent turn that lets the agent write down what it must not forget."""
        dialogue.open_turn(self.texts.new(self.plan.flush_tokens), drops_reasoning=self.plan.reasoning)
        output_tokens = next(self.draws.outputs)
        yield self._send(dialogue, output_tokens, kind)
        dialogue.answer(self.texts.new(output_tokens), 0)
        dialogue.has_flushed = True

    def _compact(self, dialogue: Dialogue) -> Process:
        """A call that quotes the history as new text, and then a shorter history."""
        summary = self.texts.new(next(self.draws.summaries))
        request = Conversation(dialogue.talk.session, Prompt(self.block_tokens), _SUMMARY)
        request.prompt.lay(self.texts.new(dialogue.quoted_tokens))
        yield self.recorder.call(request, self.simulation.now_ms, summary.tokens)
        dialogue.compact(summary, self.plan.recent_tokens)

    # --- who sends ---------------------------------------------------------------------------------

    def _person(self, agent: Agent, dialogues: list[Dialogue]) -> Process:
        """Visits of some turns each to one session, and absences."""
        draws = self.draws
        main, *others = dialogues
        other = draws.below(len(others)) if others else 0
        while True:
            dialogue = main
            if others and not draws.chance(self.plan.main_session_share):
                if draws.chance(self.plan.switch_share):
                    other = draws.below(len(others))
                dialogue = others[other]
            for left in range(next(draws.turns) - 1, -1, -1):
                yield from self._user_turn(agent, dialogue)
                if left:
                    yield self.simulation.now_ms + next(draws.thinks_ms)
            yield self._awake(self.simulation.now_ms, next(draws.absences_ms))

    def _user_turn(self, agent: Agent, dialogue: Dialogue) -> Process:
        yield dialogue.lock
        yield agent.gateway.main
        self._use(dialogue)
        num_calls, is_task = self.draws.turn_calls()
        opening_tokens = self.plan.envelope_tokens + next(self.draws.texts)
        yield from self._calls(dialogue, opening_tokens, num_calls, dialogue.talk.kind or _MAIN)
        if is_task and self.draws.chance(self.plan.subagent_turn_share):
            self._send_children(agent, dialogue)
        self.simulation.release(agent.gateway.main)
        self.simulation.release(dialogue.lock)

    def _send_children(self, agent: Agent, parent: Dialogue) -> None:
        for _ in range(min(self.draws.children(), self.plan.most_children - parent.num_children)):
            name = f"agent:{agent.agent_index}:subagent:{self.num_children}"
            child = self._dialogue(name, _CHILD, agent, None)
            if parent.next_tokens <= self.plan.fork_most_tokens and self.draws.chance(self.plan.fork_share):
                child.adopt(parent)
            self.num_children += 1
            parent.num_children += 1
            self.simulation.start(self._child(agent, parent, child), self.simulation.now_ms)

    def _child(self, agent: Agent, parent: Dialogue, child: Dialogue) -> Process:
        """A sub-agent's work, and the call of its parent that hears of it."""
        yield agent.gateway.subagents
        yield from self._calls(child, self.plan.child_task_tokens, next(self.draws.child_calls), _CHILD)
        self.simulation.release(agent.gateway.subagents)
        parent.num_children -= 1
        yield parent.lock
        yield agent.gateway.main
        yield from self._calls(parent, self.plan.announce_tokens, 1, parent.talk.kind or _MAIN)
        self.simulation.release(agent.gateway.main)
        self.simulation.release(parent.lock)

    def _heartbeats(self, agent: Agent, main: Dialogue, files: Span) -> Process:
        """One at every interval, in the main session or in a new one; skipped while the main one is busy."""
        plan, draws, simulation = self.plan, self.draws, self.simulation
        interval_ms = round(1000 * plan.heartbeat_interval_s)
        is_isolated = draws.chance(plan.heartbeat_isolated_share)
        while True:
            due_ms = simulation.now_ms + interval_ms
            if main.lock.num_free or is_isolated:
                dialogue = main
                if is_isolated:
                    dialogue = self._dialogue(
                        f"agent:{agent.agent_index}:heartbeat", _HEARTBEAT, agent, files
                    )
                yield dialogue.lock
                yield agent.gateway.main
                self._use(dialogue)
                yield from self._heartbeat(dialogue)
                simulation.release(agent.gateway.main)
                simulation.release(dialogue.lock)
            yield max(due_ms, simulation.now_ms)

    def _heartbeat(self, dialogue: Dialogue) -> Process:
        plan = self.plan
        if self.draws.chance(plan.heartbeat_task_share):
            yield from self._calls(dialogue, plan.heartbeat_tokens, next(self.draws.short_calls), _HEARTBEAT)
            return
        dialogue.open_turn(self.texts.new(plan.heartbeat_tokens), drops_reasoning=plan.reasoning)
        yield self._send(dialogue, plan.heartbeat_output_tokens, _HEARTBEAT)
        dialogue.answer(self.texts.new(plan.heartbeat_output_tokens), 0)
        if dialogue.next_tokens > plan.compaction_tokens:
            yield from self._compact(dialogue)

    def _cron(self, agent: Agent, job: int, files: Span) -> Process:
        """A job once a day, each run in a session of its own; some jobs are set to a full hour."""
        plan, draws = self.plan, self.draws
        on_the_hour = draws.chance(plan.cron_on_the_hour_share)
        minute_ms = draws.below(24) * HOUR_MS if on_the_hour else draws.below(DAY_MS)
        start_ms = round(HOUR_MS * plan.start_hours)
        due_ms = (minute_ms - start_ms) % DAY_MS
        due_ms += draws.below(max(round(1000 * plan.cron_spread_s), 1)) if on_the_hour else 0
        while True:
            yield due_ms
            yield agent.gateway.cron
            name = f"cron:{agent.agent_index}:{job}:run:{self.num_runs}"
            self.num_runs += 1
            dialogue = self._dialogue(name, _CRON, agent, files)
            opening_tokens = plan.envelope_tokens + next(draws.texts)
            yield from self._calls(dialogue, opening_tokens, plan.cron_calls, _CRON)
            self.simulation.release(agent.gateway.cron)
            due_ms += DAY_MS

    def _awake(self, from_ms: int, wait_ms: int) -> int:
        """When somebody is back who waits for so long, nights not counted."""
        plan = self.plan
        offset_ms = round(HOUR_MS * (plan.start_hours - plan.awake_from_hours))
        awake_ms = max(round(HOUR_MS * (plan.awake_until_hours - plan.awake_from_hours)), 1)
        day, since_ms = divmod(from_ms + offset_ms, DAY_MS)
        days, left_ms = divmod(min(since_ms, awake_ms) + wait_ms, awake_ms)
        return (day + days) * DAY_MS + left_ms - offset_ms
