"""What the platform draws at random, one stream a quantity."""

from math import exp
from typing import TYPE_CHECKING

from warmset.trace.synth.distributions import (
    Geometric,
    InverseGaussian,
    Lognormal,
    Mixture,
    Pareto,
    Random,
    Uniform,
    stream,
    whole_stream,
)

if TYPE_CHECKING:
    from warmset.trace.synth.openclaw.parameters import OpenClaw

_FAST_TOOL_S = (0.020, 0.100)
_SLOW_TOOL_S = 10.0
_SHORT_TURN_CALLS = (0.5, 3.5)


class Draws:
    """Streams of a plan's quantities; all of them draw from one generator, each in batches of its own."""

    def __init__(self, plan: "OpenClaw", rng: Random) -> None:
        self.chances = stream(rng, Uniform(0, 1))
        self.texts = whole_stream(
            rng, Lognormal.from_p90(plan.text_p50_tokens, plan.text_p90_tokens, least=1)
        )
        self.growths = whole_stream(
            rng,
            Lognormal.from_p90(plan.growth_p50_tokens, plan.growth_p90_tokens, 1, plan.growth_most_tokens),
        )
        self.outputs = whole_stream(
            rng, InverseGaussian(plan.output_mean_tokens, plan.output_shape_tokens, plan.output_least_tokens)
        )
        self.short_calls = whole_stream(rng, Uniform(*_SHORT_TURN_CALLS))
        most = plan.most_calls
        self.task_calls = whole_stream(
            rng, Lognormal(plan.task_turn_p50_calls, plan.task_turn_sigma, 1, most)
        )
        self.long_calls = whole_stream(
            rng, Lognormal(plan.long_turn_p50_calls, plan.long_turn_sigma, 1, most)
        )
        self.child_calls = whole_stream(
            rng, Lognormal.from_p90(plan.child_p50_calls, plan.child_p90_calls, 1, most)
        )
        other = Lognormal.from_p90(plan.tool_p50_s, plan.tool_p90_s)
        slow = Pareto(_SLOW_TOOL_S, plan.slow_tool_tail_factor, plan.slow_tool_most_s)
        tools = Mixture((plan.fast_tool_share, plan.slow_tool_share), (Uniform(*_FAST_TOOL_S), slow, other))
        self.tools_ms = whole_stream(rng, tools, 1000)
        self.thinks_ms = whole_stream(rng, Lognormal.from_p90(plan.think_p50_s, plan.think_p90_s), 1000)
        absence = Lognormal.from_p90(plan.absence_p50_s, plan.absence_p90_s)
        self.absences_ms = whole_stream(rng, absence, 1000)
        # At a moment taken at random, people are more often in a long absence: lengths times their share.
        longer = Lognormal(absence.p50 * exp(absence.sigma**2), absence.sigma)
        self._running_ms = stream(rng, longer, 1000)
        self.turns = whole_stream(rng, Geometric(plan.turns_per_visit))
        self.summaries = whole_stream(rng, Uniform(plan.summary_least_tokens, plan.summary_most_tokens))
        self._plan = plan

    def chance(self, share: float) -> bool:
        """Whether something of this share happens."""
        return next(self.chances) < share

    def rest_of_absence_ms(self) -> int:
        """What is left of an absence that runs when the trace starts."""
        return round(next(self.chances) * next(self._running_ms))

    def below(self, count: int) -> int:
        """A whole number from 0 on, below a count, all alike."""
        return min(int(count * next(self.chances)), count - 1)

    def children(self) -> int:
        """Sub-agents sent at once: 1, and each of the others with the same chance."""
        others = self._plan.most_children - 1
        share = (self._plan.children_mean - 1) / others if others else 0.0
        return 1 + sum(self.chance(share) for _ in range(others))

    def turn_calls(self) -> tuple[int, bool]:
        """Calls of a user turn, and whether it is a task."""
        drawn = next(self.chances)
        if drawn < self._plan.short_turn_share:
            return next(self.short_calls), False
        if drawn < self._plan.short_turn_share + self._plan.task_turn_share:
            return next(self.task_calls), True
        return next(self.long_calls), True
