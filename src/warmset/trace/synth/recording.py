"""What a generator sends, written down: requests into a `TraceBuilder` until there are enough."""

from dataclasses import dataclass
from typing import NamedTuple

from warmset.trace.builder import TraceBuilder
from warmset.trace.forest import UNKNOWN
from warmset.trace.synth.prompts import Prompt
from warmset.trace.synth.simulation import Simulation


class Limits(NamedTuple):
    """Where a generator stops, whichever comes first; `None` does not stop it."""

    num_requests: int | None = None
    duration_ms: int | None = None


class Service(NamedTuple):
    """How long an answer takes: what a closed loop waits for before it goes on."""

    prefill_tokens_per_s: float
    decode_tokens_per_s: float
    overhead_ms: float = 0.0

    def duration_ms(self, new_tokens: int, output_tokens: int) -> int:
        """From arrival to the end of the answer, on an idle server that kept the conversation so far."""
        return round(
            self.overhead_ms
            + 1000 * new_tokens / self.prefill_tokens_per_s
            + 1000 * output_tokens / self.decode_tokens_per_s
        )


@dataclass(slots=True)
class Conversation:
    """A prompt that goes on from call to call, and the request that stands last in it."""

    session: str
    prompt: Prompt
    kind: str | None = None
    last_index: int | None = None
    last_end_ms: int = 0


class Recorder:
    """Takes requests in order of time, and knows when there are enough."""

    def __init__(self, block_tokens: int, service: Service, limits: Limits, model: str | None = None) -> None:
        self.builder = TraceBuilder(block_tokens, ids_are_content=True)
        self._service = service
        self._limits = limits
        self._model = model

    def is_over(self, now_ms: int) -> bool:
        """Whether nothing that comes at this time is wanted any more."""
        most_requests, most_ms = self._limits
        return (most_requests is not None and self.builder.num_requests >= most_requests) or (
            most_ms is not None and now_ms >= most_ms
        )

    def run(self, simulation: Simulation) -> None:
        """Let all processes go on until there are enough requests, or nobody is left."""
        while simulation.next_ms is not None and not self.is_over(simulation.next_ms):
            simulation.step()

    def call(
        self, conversation: Conversation, now_ms: int, output_tokens: int, kind: str | None = None
    ) -> int:
        """Send a conversation's prompt as it stands; when its answer ends."""
        prompt = conversation.prompt
        duration_ms = self._service.duration_ms(prompt.tokens - prompt.kept_tokens, output_tokens)
        goes_on = conversation.last_index is not None
        row = self.builder.num_requests
        self.builder.add(
            arrival_ms=now_ms,
            input_tokens=prompt.tokens,
            output_tokens=output_tokens,
            ids=prompt.ids,
            session=conversation.session,
            kind=kind or conversation.kind,
            model=self._model,
            key=row,
            previous_key=conversation.last_index,
            think_ms=now_ms - conversation.last_end_ms if goes_on else UNKNOWN,
            duration_ms=duration_ms,
        )
        prompt.keep()
        conversation.last_index = row
        conversation.last_end_ms = now_ms + duration_ms
        return conversation.last_end_ms

    def single(self, prompt: Prompt, now_ms: int, output_tokens: int, kind: str) -> None:
        """Send a prompt that belongs to no conversation."""
        self.builder.add(
            arrival_ms=now_ms,
            input_tokens=prompt.tokens,
            output_tokens=output_tokens,
            ids=prompt.ids,
            kind=kind,
            model=self._model,
            duration_ms=self._service.duration_ms(prompt.tokens, output_tokens),
        )
