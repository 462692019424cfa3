"""Exact prompts that OpenClaw writes when asked, or for a while: `cache-trace.jsonl`, and trajectories.

A cache trace has one row of stage `stream:context` for each model call, with its system prompt and messages;
its answer is the message that comes next in a later row of the session. A trajectory has the context that a
run started from, and at its end all messages: each answer of the run is a call.
Source: openclaw/openclaw, `src/agents/cache-trace.ts`, `src/trajectory/runtime.ts`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from warmset.trace.prompt import Message, Prompt
from warmset.trace.readers.log_rows import UnusableRowError
from warmset.trace.readers.log_times import Clock
from warmset.trace.readers.openclaw_files import SessionFacts, traffic_kind
from warmset.trace.readers.transcript import MAX_TOKENS
from warmset.trace.readers.transcript_rows import Row, lines_of, rows_of_lines
from warmset.trace.source import Input
from warmset.trace.tally import Tally

_CALL = "stream:context"
_CUT = "truncated"


def prompts(source: Input, tally: Tally) -> Iterator[Prompt]:
    """The model calls of one file, each when its answer is known."""
    reader = _Reader(tally)
    for place, row in rows_of_lines(lines_of(source), tally):
        try:
            yield from reader.take(row, place)
        except UnusableRowError as error:
            tally.drop(place, str(error))
    yield from reader.rest()


@dataclass(slots=True)
class _Started:
    """A call whose answer is not known yet, or a run whose end is not."""

    prompt: Prompt
    messages: list[Row] = field(default_factory=list)
    """As OpenClaw holds them."""


class _Reader:
    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._clock = Clock(tally)
        self._calls: dict[str, _Started] = {}
        self._runs: dict[str, _Started] = {}
        self._last_key: dict[str, str] = {}

    def take(self, row: Row, place: str) -> Iterator[Prompt]:
        """The calls that a row makes known."""
        if "traceSchema" in row:
            yield from self._take_trajectory(row, place)
        else:
            yield from self._take_cache_trace(row, place)

    def rest(self) -> Iterator[Prompt]:
        """The calls whose answer never came."""
        for started in (*self._calls.values(), *self._runs.values()):
            yield self._chained(started.prompt)

    # --- cache traces -----------------------------------------------------------------------------

    def _take_cache_trace(self, row: Row, place: str) -> Iterator[Prompt]:
        session = str(row.get("sessionId", ""))
        messages = row.get("messages")
        started = self._calls.get(session)
        if started is not None and isinstance(messages, list) and len(messages) > len(started.messages):
            answer = messages[len(started.messages)]
            if isinstance(answer, dict) and answer.get("role") == "assistant":
                del self._calls[session]
                yield self._chained(_answered(started.prompt, answer))
        if row.get("stage") != _CALL:
            return
        started = self._calls.pop(session, None)
        if started is not None:
            yield self._chained(started.prompt)
        if not isinstance(messages, list):
            self._tally.note(
                "no_text", f"{place}: messages were not recorded: set cacheTrace.includeMessages"
            )
            return
        known = [message for message in messages if isinstance(message, dict)]
        prompt = self._prompt(row, place, row.get("system"), known)
        self._calls[session] = _Started(prompt, known)

    # --- trajectories -----------------------------------------------------------------------------

    def _take_trajectory(self, row: Row, place: str) -> Iterator[Prompt]:
        run = f"{row.get('sessionId')}/{row.get('runId')}"
        data = row.get("data")
        if not isinstance(data, dict):
            return
        if data.get(_CUT) is True:
            self._tally.note("cut_events", f"{place}: its data was too long to be kept")
            return
        if row.get("type") == "context.compiled":
            started = self._runs.pop(run, None)
            if started is not None:
                yield self._chained(started.prompt)
            self._runs[run] = self._run(row, data, place)
        elif row.get("type") == "model.completed" and run in self._runs:
            yield from self._answers(self._runs.pop(run), data, place)

    def _run(self, row: Row, data: Row, place: str) -> _Started:
        messages = self._whole(data.get("messages", []), place)
        if isinstance(data.get("prompt"), str):
            messages.append({"role": "user", "content": data["prompt"]})
        tools = self._whole(data.get("providerVisibleTools") or data.get("tools") or [], place)
        prompt = self._prompt(row, place, data.get("systemPrompt"), messages)
        return _Started(replace(prompt, tools=[{"type": "function", "function": tool} for tool in tools]))

    def _answers(self, run: _Started, data: Row, place: str) -> Iterator[Prompt]:
        """A call for each answer since the run started; one with an unknown answer where there is none."""
        messages = self._whole(data.get("messagesSnapshot", []), place)
        system = [message for message in run.prompt.messages if message.get("role") == "system"]
        is_found = False
        for position, message in enumerate(messages):
            start_ms = message.get("timestamp")
            if message.get("role") != "assistant" or not isinstance(start_ms, int):
                continue
            if start_ms < run.prompt.arrival_ms or not _prompt_tokens(message):
                continue
            is_found = True
            sent = replace(
                run.prompt,
                arrival_ms=start_ms,
                messages=[*system, *map(_as_chat, messages[:position])],
                key=f"{run.prompt.key}/{position}",
            )
            yield self._chained(_answered(sent, message))
        if not is_found:
            texts = data.get("assistantTexts")
            answer = "\n".join(map(str, texts)) if isinstance(texts, list) else ""
            yield self._chained(replace(run.prompt, answer=answer))

    def _whole(self, items: Any, place: str) -> list[Row]:  # noqa: ANN401 - whatever a log holds
        """The objects of a list up to where it was cut."""
        whole: list[Row] = []
        for item in items if isinstance(items, list) else []:
            if not isinstance(item, dict) or item.get(_CUT) is True:
                self._tally.note("cut_events", f"{place}: a list of its data was too long to be kept")
                break
            whole.append(item)
        return whole

    # --- both -------------------------------------------------------------------------------------

    def _prompt(self, row: Row, place: str, system: Any, messages: Sequence[Row]) -> Prompt:  # noqa: ANN401 - any JSON value
        leading: list[Message] = [] if system is None else [{"role": "system", "content": system}]
        session = str(row.get("sessionId", ""))
        return Prompt(
            place=place,
            arrival_ms=self._clock.milliseconds(row.get("ts"), "ts", place),
            messages=[*leading, *map(_as_chat, messages)],
            session=session,
            kind=traffic_kind(SessionFacts(str(row.get("sessionKey", ""))), has_parent=False),
            model=str(row.get("modelId", "")),
            key=f"{session}/{row.get('runId')}/{row.get('seq')}",
        )

    def _chained(self, prompt: Prompt) -> Prompt:
        """A prompt that goes on from the one before it in its session."""
        session, key = str(prompt.session), str(prompt.key)
        previous = self._last_key.get(session)
        self._last_key[session] = key
        return replace(prompt, previous_key=previous)


def _answered(prompt: Prompt, answer: Row) -> Prompt:
    """A prompt with its answer, and with what the server counted."""
    usage = answer.get("usage")
    counted = usage if isinstance(usage, dict) and _prompt_tokens(answer) else {}
    text = _as_chat(answer)
    return replace(
        prompt,
        answer=str(text.get("content", "")),
        input_tokens=_prompt_tokens(answer) or None,
        output_tokens=_tokens(counted, "output") if "output" in counted else None,
        cached_tokens=_tokens(counted, "cacheRead") or None,
    )


def _prompt_tokens(answer: Row) -> int:
    usage = answer.get("usage")
    if not isinstance(usage, dict):
        return 0
    return sum(_tokens(usage, name) for name in ("input", "cacheRead", "cacheWrite"))


def _tokens(usage: Row, name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) and 0 <= value <= MAX_TOKENS else 0


def _as_chat(message: Row) -> Row:
    """A message of OpenClaw in the form of OpenAI's chat API."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    if message.get("role") == "assistant" and isinstance(content, list):
        return {
            "role": "assistant",
            "content": _joined(blocks, "text"),
            "reasoning_content": _joined(blocks, "thinking"),
            "tool_calls": [_tool_call(block) for block in blocks if _type(block) == "toolCall"],
        }
    if message.get("role") == "toolResult":
        return {"role": "tool", "tool_call_id": message.get("toolCallId"), "content": content}
    role = message.get("role")
    return {"role": role if role in {"assistant", "system"} else "user", "content": content}


def _joined(blocks: Sequence[Any], kind: str) -> str:
    return "\n".join(str(block.get(kind, "")) for block in blocks if _type(block) == kind)


def _type(block: Any) -> Any:  # noqa: ANN401 - whatever a log holds
    return block.get("type") if isinstance(block, dict) else None


def _tool_call(block: Row) -> Row:
    arguments = msgspec.json.encode(block.get("arguments")).decode()
    return {
        "id": block.get("id"),
        "type": "function",
        "function": {"name": block.get("name"), "arguments": arguments},
    }
