"""Exact prompts of OpenClaw: cache traces and trajectories, made by hand from the source's own types."""

from pathlib import Path

from tests.support.text_logs import counts, prompts_in
from tests.support.traces import write_rows
from tests.support.transcripts import Row, read, sample
from warmset.trace import ReadOptions

ASKED = {"role": "user", "content": [{"type": "text", "text": "what is left"}]}
ANSWERED = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "look"},
        {"type": "toolCall", "id": "t1", "name": "read", "arguments": {"path": "a"}},
    ],
    "usage": {"input": 10, "output": 7, "cacheRead": 20, "cacheWrite": 0},
    "timestamp": 1777885200150,
}
RESULT = {"role": "toolResult", "toolCallId": "t1", "content": [{"type": "text", "text": "plants"}]}
LAST = {
    "role": "assistant",
    "content": [{"type": "text", "text": "the plants"}],
    "usage": {"input": 4, "output": 3, "cacheRead": 36, "cacheWrite": 2},
    "timestamp": 1777885201150,
}


def stage(name: str, second: int, **fields: object) -> Row:
    return {
        "ts": f"2026-05-04T09:00:{second:02}.100Z",
        "seq": second,
        "stage": name,
        "runId": "r",
        "sessionId": "s",
        "sessionKey": "agent:main:main",
        "provider": "vllm",
        "modelId": "m",
    } | fields


def cache_trace(tmp_path: Path) -> Path:
    return write_rows(
        tmp_path / "cache-trace.jsonl",
        stage("session:loaded", 0, messages=[]),
        stage("stream:context", 0, system="be brief", messages=[ASKED]),
        stage("stream:context", 1, system="be brief", messages=[ASKED, ANSWERED, RESULT]),
        stage("session:after", 2, messages=[ASKED, ANSWERED, RESULT, LAST]),
    )


def test_a_cache_trace_has_a_prompt_a_call(tmp_path: Path) -> None:
    prompts, tally = prompts_in("openclaw", cache_trace(tmp_path))
    assert tally.rows == 4
    assert [prompt.arrival_ms for prompt in prompts] == [1777885200100, 1777885201100]
    assert [prompt.input_tokens for prompt in prompts] == [30, 42]
    assert [prompt.output_tokens for prompt in prompts] == [7, 3]
    assert [prompt.cached_tokens for prompt in prompts] == [20, 36]
    assert [prompt.answer for prompt in prompts] == ["", "the plants"]
    assert [prompt.kind for prompt in prompts] == ["main", "main"]
    assert prompts[1].previous_key == prompts[0].key
    assert prompts[1].messages[0] == {"role": "system", "content": "be brief"}
    assert prompts[1].messages[2]["tool_calls"] == [
        {"id": "t1", "type": "function", "function": {"name": "read", "arguments": '{"path":"a"}'}}
    ]
    assert prompts[1].messages[3]["role"] == "tool"


def test_a_cache_trace_alone_is_read_as_text(tmp_path: Path) -> None:
    """system, be brief, user, what is left and line ends: 34 characters; the second starts with them."""
    trace = read(cache_trace(tmp_path), options=ReadOptions(block_tokens=17, chars_per_token=1))
    assert trace.num_requests == 2
    assert trace.num_blocks[0] == 2
    assert trace.num_nodes == trace.num_blocks[1]


def test_exact_prompts_beside_transcripts_are_counted(shared: Path, tmp_path: Path) -> None:
    trace = read(sample(shared, 1), cache_trace(tmp_path))
    assert trace.num_requests == 7
    assert counts(trace)["exact_prompts"] == 1


def test_transcripts_have_no_prompts(shared: Path) -> None:
    assert prompts_in("openclaw", sample(shared, 1))[0] == []


def test_calls_without_an_answer_are_kept(tmp_path: Path) -> None:
    path = write_rows(
        tmp_path / "cache-trace.jsonl",
        stage("stream:context", 0, system="be brief", messages=[ASKED]),
        stage("stream:context", 1, system="be brief", messages=[ASKED]),
    )
    prompts, _ = prompts_in("openclaw", path)
    assert [prompt.output_tokens for prompt in prompts] == [None, None]


def test_rows_without_messages_are_counted(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "cache-trace.jsonl", stage("stream:context", 0, messageCount=4))
    prompts, tally = prompts_in("openclaw", path)
    assert prompts == []
    assert counts(tally) == {"no_text": 1}


# --- trajectories ----------------------------------------------------------------------------------


def event(name: str, **data: object) -> Row:
    return {
        "traceSchema": "openclaw-trajectory",
        "schemaVersion": 1,
        "source": "runtime",
        "type": name,
        "ts": "2026-05-04T09:00:00.100Z",
        "seq": 1,
        "sessionId": "s",
        "runId": "r",
        "modelId": "m",
        "data": data,
    }


TOOL = {"name": "read", "description": "reads", "parameters": {"type": "object"}}
COMPILED = event(
    "context.compiled", systemPrompt="be brief", prompt="what is left", messages=[], tools=[TOOL]
)


def test_a_trajectory_has_a_prompt_an_answer(tmp_path: Path) -> None:
    """Answers from before the run are history, not calls."""
    old = LAST | {"timestamp": 1777885100000}
    path = write_rows(
        tmp_path / "s.trajectory.jsonl",
        event("session.started"),
        COMPILED,
        event("model.completed", messagesSnapshot=[old, ASKED, ANSWERED, RESULT, LAST]),
    )
    prompts, _ = prompts_in("openclaw", path)
    assert [prompt.arrival_ms for prompt in prompts] == [1777885200150, 1777885201150]
    assert [prompt.input_tokens for prompt in prompts] == [30, 42]
    assert [len(prompt.messages) for prompt in prompts] == [3, 5]
    assert prompts[0].tools == [{"type": "function", "function": TOOL}]
    assert prompts[1].previous_key == prompts[0].key


def test_events_that_were_cut_are_counted(tmp_path: Path) -> None:
    cut = {"truncated": True, "reason": "trajectory-array-size-limit", "originalLength": 90}
    path = write_rows(
        tmp_path / "s.trajectory.jsonl",
        COMPILED,
        event("model.completed", messagesSnapshot=[ASKED, ANSWERED, cut]),
        event("context.compiled", truncated=True, originalBytes=300_000, limitBytes=262_144),
    )
    prompts, tally = prompts_in("openclaw", path)
    assert len(prompts) == 1
    assert counts(tally) == {"cut_events": 2}


def test_a_run_without_its_end_has_the_prompt_that_it_started_with(tmp_path: Path) -> None:
    prompts, _ = prompts_in("openclaw", write_rows(tmp_path / "s.trajectory.jsonl", COMPILED))
    assert [message["content"] for message in prompts[0].messages] == ["be brief", "what is left"]
    assert prompts[0].input_tokens is None
