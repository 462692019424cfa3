"""One session's prompt: scaffold, history, and what happens to them between calls."""

from collections.abc import Iterator
from typing import NamedTuple

from warmset.trace.synth.prompts import Mark, Prompt, Span, Texts
from warmset.trace.synth.recording import Conversation
from warmset.trace.synth.simulation import Lane


class Scaffold(NamedTuple):
    """What stands before the history, and which part of it is the session's own."""

    spans: tuple[Span, ...]
    volatile_index: int

    @property
    def tokens(self) -> int:
        """Length of it all."""
        return sum(span.tokens for span in self.spans)

    def changed(self, volatile: Span) -> "Scaffold":
        """The same with another volatile part."""
        at = self.volatile_index
        return self._replace(spans=(*self.spans[:at], volatile, *self.spans[at + 1 :]))


class _Step(NamedTuple):
    """What a call of the running turn added: answer and tool result, the reasoning first."""

    span: Span
    reasoning_tokens: int


class Dialogue:
    """A session: its conversation, its history since the last compaction, and the lock of its lane."""

    def __init__(self, talk: Conversation, scaffold: Scaffold, cut_tokens: int) -> None:
        self.talk = talk
        self.scaffold = scaffold
        self.lock = Lane(1)
        self.num_children = 0
        self.day = 0
        self.has_flushed = False
        self.quoted_tokens = 0
        """Length of the history with tool results cut, as a summary call quotes it."""
        self._cut_tokens = cut_tokens
        self._answer: _Step | None = None
        self._steps: list[_Step] = []
        self._turn: Mark
        self.restart()

    @property
    def tokens(self) -> int:
        """Length of the prompt as it stands, without an answer that waits to be taken up."""
        return self.talk.prompt.tokens

    @property
    def next_tokens(self) -> int:
        """The same with the answer."""
        return self.tokens + (self._answer.span.tokens if self._answer else 0)

    def restart(self) -> None:
        """Back to the scaffold alone."""
        self._answer = None
        self.quoted_tokens = 0
        self.has_flushed = False
        self.talk.last_index = None
        self._lay(self.scaffold.spans)

    def adopt(self, parent: "Dialogue") -> None:
        """Start as a fork of a parent, whose last request it goes on from."""
        self.talk.prompt = parent.talk.prompt.fork()
        self.talk.last_index = parent.talk.last_index
        self.talk.last_end_ms = parent.talk.last_end_ms
        self.scaffold = parent.scaffold
        self.quoted_tokens = parent.quoted_tokens
        self._answer = parent._answer  # noqa: SLF001 - its own kind
        self._steps = []
        self._turn = self.talk.prompt.mark()

    def open_turn(self, text: Span, *, drops_reasoning: bool) -> None:
        """A new turn: take up the last answer, and add what starts the turn.

        Where reasoning is dropped, that of the turn before goes, and the rest of that turn moves up.
        """
        prompt = self.talk.prompt
        steps = [*self._steps, *([self._answer] if self._answer else [])]
        if drops_reasoning and any(step.reasoning_tokens for step in steps):
            if any(step.reasoning_tokens for step in self._steps):
                prompt.rewind(self._turn)
            else:
                steps = steps[len(self._steps) :]
            prompt.lay_all([step.span.after(step.reasoning_tokens) for step in steps])
            self.quoted_tokens -= sum(step.reasoning_tokens for step in steps)
        elif self._answer:
            prompt.lay(self._answer.span)
        prompt.lay(text)
        self.quoted_tokens += text.tokens
        self._answer = None
        self._steps = []
        self._turn = prompt.mark()

    def add_step(self, span: Span, answer_tokens: int, reasoning_tokens: int) -> None:
        """A call's answer and the result of its tool."""
        self._steps.append(_Step(span, reasoning_tokens))
        self.talk.prompt.lay(span)
        self.quoted_tokens += answer_tokens + min(span.tokens - answer_tokens, self._cut_tokens)

    def answer(self, span: Span, reasoning_tokens: int) -> None:
        """The answer that ends a turn; it waits for the next one."""
        self._answer = _Step(span, reasoning_tokens)
        self.quoted_tokens += span.tokens

    def break_prefix(self, volatile: Span) -> None:
        """Change the end of the scaffold under the history."""
        prompt = self.talk.prompt
        in_turn = prompt.rewind(self._turn)
        history = prompt.spans[len(self.scaffold.spans) :]
        self.scaffold = self.scaffold.changed(volatile)
        prompt.clear()
        prompt.lay_all([*self.scaffold.spans, *history])
        self._turn = prompt.mark()
        prompt.lay_all(in_turn)

    def compact(self, summary: Span, recent_tokens: int) -> None:
        """Scaffold, summary, and the last tokens of the history."""
        if self._answer:
            self.talk.prompt.lay(self._answer.span)
            self._answer = None
        history = self.talk.prompt.spans[len(self.scaffold.spans) :]
        history_tokens = sum(span.tokens for span in history)
        recent = list(_tail(history, recent_tokens))
        kept_tokens = sum(span.tokens for span in recent)
        quoted_share = self.quoted_tokens / max(history_tokens, 1)
        self._lay([*self.scaffold.spans, summary, *recent])
        self.quoted_tokens = summary.tokens + round(quoted_share * kept_tokens)
        self.has_flushed = False

    def grow_old(self, texts: Texts, growths: Iterator[int], until_tokens: int, share: float) -> None:
        """Take up a history up to a length, of calls whose quoted part has this share."""
        while self.tokens < until_tokens:
            span = texts.new(min(next(growths), until_tokens - self.tokens))
            self.talk.prompt.lay(span)
            answer_tokens = round(share * span.tokens)
            self.quoted_tokens += answer_tokens + min(span.tokens - answer_tokens, self._cut_tokens)
        self._turn = self.talk.prompt.mark()

    def _lay(self, spans: "list[Span] | tuple[Span, ...]") -> None:
        prompt: Prompt = self.talk.prompt
        prompt.clear()
        prompt.lay_all(list(spans))
        self._steps = []
        self._turn = prompt.mark()


def _tail(spans: list[Span], tokens: int) -> Iterator[Span]:
    """The last tokens of a row of spans."""
    skip = max(sum(span.tokens for span in spans) - tokens, 0)
    for span in spans:
        if skip < span.tokens:
            yield span.after(skip)
        skip = max(skip - span.tokens, 0)
