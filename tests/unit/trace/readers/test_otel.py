import json
from pathlib import Path

import pytest

from tests.support.text_logs import (
    DATA,
    FIRST,
    NUM_BLOCKS,
    NUM_NODES,
    counts,
    detected,
    prompts_in,
    read_log,
    write_lines,
)
from warmset.errors import TraceFormatError

START = {
    "span_id": "a",
    "trace_id": "t",
    "start_time": "2026-02-26T12:00:00Z",
    "end_time": "2026-02-26T12:00:01Z",
}
TEXT = json.dumps(FIRST)


def span(attributes: dict, **fields) -> dict:
    return {**START, "attributes": {"gen_ai.operation.name": "chat", **attributes}, **fields}


def one(tmp_path: Path, attributes: dict, **fields):
    (prompt,), _ = prompts_in("otel", write_lines(tmp_path / "spans.jsonl", span(attributes, **fields)))
    return prompt


@pytest.mark.parametrize("name", ["otlp.json", "otlp_lines.jsonl"])
def test_otlp(name):
    """The child comes first, as spans are written when they end; agents and web calls are no model calls."""
    log = DATA / "otel" / name
    assert detected(log) == ["otel"]
    trace = read_log("otel", log)
    assert trace.provenance.epoch_ms == 1_772_107_200_000
    assert trace.arrival_ms.tolist() == [0, 1500]
    assert trace.duration_ms.tolist() == [900, 400]
    assert (trace.num_blocks.tolist(), trace.num_nodes) == (NUM_BLOCKS, NUM_NODES)
    assert trace.input_tokens.tolist() == [27, 50]
    assert trace.cached_tokens.tolist() == [-1, 24]
    assert trace.previous.tolist() == [-1, 0]
    assert trace.session.tolist() == [0, 0]
    assert counts(trace) == {"other_spans": 2}


@pytest.mark.parametrize(
    "shape",
    [lambda spans: {"spans": spans}, lambda spans: spans, lambda spans: [{"spans": spans}]],
    ids=["collection", "list", "list of collections"],
)
@pytest.mark.parametrize("indent", [None, 1])
def test_collections(tmp_path: Path, shape, indent):
    log = tmp_path / "spans.json"
    log.write_text(json.dumps(shape([span({"gen_ai.input.messages": TEXT})]), indent=indent))
    trace = read_log("otel", log)
    assert trace.num_blocks.tolist() == NUM_BLOCKS[:1]


def test_a_span_a_line_as_the_console_exporter_has_it(tmp_path: Path):
    row = {
        "name": "chat",
        "context": {"trace_id": "0x1", "span_id": "0x2"},
        "parent_id": None,
        "start_time": "2026-02-26T12:00:00.000000Z",
        "attributes": {"gen_ai.operation.name": "chat", "gen_ai.input.messages": TEXT},
    }
    log = write_lines(tmp_path / "spans.jsonl", row)
    assert detected(log) == ["otel"]
    (prompt,), _ = prompts_in("otel", log)
    assert (prompt.key, prompt.session) == ("0x1/0x2", "0x1")


@pytest.mark.parametrize(
    "attributes",
    [
        {
            "gen_ai.usage.input_tokens": 30,
            "gen_ai.usage.output_tokens": 4,
            "gen_ai.usage.cache_read.input_tokens": 20,
        },
        {
            "gen_ai.usage.prompt_tokens": 30,
            "gen_ai.usage.completion_tokens": 4,
            "gen_ai.usage.cache_read_input_tokens": 20,
        },
        {
            "gen_ai.usage.input_tokens": "30",
            "gen_ai.usage.output_tokens": "4",
            "gen_ai.usage.input_tokens.cached": "20",
        },
    ],
)
def test_usage_old_and_new(tmp_path: Path, attributes):
    prompt = one(tmp_path, attributes)
    assert (prompt.input_tokens, prompt.output_tokens, prompt.cached_tokens) == (30, 4, 20)


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai.input.messages": FIRST},
        {"gen_ai.input.messages": TEXT},
        {"gen_ai.input.messages": [json.dumps(message) for message in FIRST]},
        {
            "gen_ai.system_instructions": json.dumps([{"type": "text", "content": "be brief"}]),
            "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "hello"}]}],
        },
        {
            "gen_ai.prompt.1.role": "user",
            "gen_ai.prompt.1.content": "hello",
            "gen_ai.prompt.0.role": "system",
            "gen_ai.prompt.0.content": "be brief",
        },
        {"gen_ai.prompt": TEXT},
    ],
)
def test_messages_old_and_new(tmp_path: Path, attributes):
    assert [dict(message) for message in one(tmp_path, attributes).messages] == FIRST


def test_messages_in_an_event(tmp_path: Path):
    events = [
        {"name": "gen_ai.client.inference.operation.details", "attributes": {"gen_ai.input.messages": TEXT}}
    ]
    assert [dict(message) for message in one(tmp_path, {}, events=events).messages] == FIRST


def test_parts_become_calls_results_and_reasoning(tmp_path: Path):
    messages = [
        {"role": "user", "parts": [{"type": "text", "content": "a"}, {"type": "text", "content": "b"}]},
        {
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "content": "think"},
                {"type": "tool_call", "id": "1", "name": "f", "arguments": {"x": 1}},
            ],
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "1", "response": "rain"}]},
        {"role": "user", "parts": [{"type": "uri", "modality": "image", "uri": "u"}]},
    ]
    tools = [{"type": "function", "name": "f"}]
    prompt = one(tmp_path, {"gen_ai.input.messages": messages, "gen_ai.tool.definitions": json.dumps(tools)})
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}
    assert [dict(message) for message in prompt.messages] == [
        {"role": "user", "content": "a\nb"},
        {"role": "assistant", "content": "", "reasoning_content": "think", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "rain"},
        {"role": "user", "content": [{"type": "uri", "modality": "image", "uri": "u"}]},
    ]
    assert list(prompt.tools) == tools


def test_answers(tmp_path: Path):
    output = [{"role": "assistant", "parts": [{"type": "text", "content": "hi"}], "finish_reason": "stop"}]
    assert one(tmp_path, {"gen_ai.output.messages": output, "gen_ai.usage.input_tokens": 1}).answer == "hi"


def test_names(tmp_path: Path):
    attributes = {
        "gen_ai.conversation.id": "c",
        "gen_ai.agent.name": "planner",
        "gen_ai.request.model": "asked",
        "gen_ai.response.model": "answered",
    }
    prompt = one(tmp_path, attributes, parent_span_id="not here")
    assert (prompt.session, prompt.kind, prompt.model) == ("c", "planner", "answered")
    assert (prompt.key, prompt.previous_key) == ("t/a", None)


def test_spans_without_messages_are_lengths_only(tmp_path: Path):
    trace = read_log("otel", write_lines(tmp_path / "s.jsonl", span({"gen_ai.usage.input_tokens": 30})))
    assert (trace.input_tokens.tolist(), trace.has_blocks) == ([30], False)
    assert counts(trace) == {"no_text": 1, "no_output": 1}


def test_operations_that_are_none_of_a_model(tmp_path: Path):
    operations = ["invoke_agent", "execute_tool", "embeddings", "create_agent", "retrieval"]
    rows = [span({"gen_ai.operation.name": name, "gen_ai.usage.input_tokens": 9}) for name in operations]
    prompts, tally = prompts_in("otel", write_lines(tmp_path / "s.jsonl", *rows))
    assert (prompts, counts(tally), tally.rows) == ([], {"other_spans": 5}, 5)


def test_failed_calls_without_an_answer_are_counted(tmp_path: Path):
    row = span({"gen_ai.input.messages": TEXT}, status={"code": 2, "message": "no"})
    prompts, tally = prompts_in("otel", write_lines(tmp_path / "s.jsonl", row))
    assert (prompts, counts(tally)) == ([], {"failed_calls": 1})


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (span({}, start_time=None), r"s\.jsonl:2, span 1: the span has no start time"),
        (span({"gen_ai.input.messages": 3}), r"s\.jsonl:2, span 1: gen_ai\.input\.messages is not a list"),
        (span({"gen_ai.input.messages": [3]}), r"s\.jsonl:2, span 1: a message of the span is not an object"),
        (span({"gen_ai.usage.input_tokens": -3}), r"gen_ai\.usage\.input_tokens is not a number of tokens"),
        ({"x": 1}, r"s\.jsonl:2, span 1: no span"),
        (span({"gen_ai.input.messages": [{"role": 3}]}), r"span 1: the role of message 1 is not a text"),
    ],
)
def test_unusable_spans_say_where_and_why(tmp_path: Path, row, why):
    log = write_lines(tmp_path / "s.jsonl", span({"gen_ai.input.messages": TEXT}), row)
    with pytest.raises(TraceFormatError, match=why):
        read_log("otel", log)
