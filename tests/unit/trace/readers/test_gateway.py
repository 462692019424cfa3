import json
from pathlib import Path

import pytest

from tests.support.text_logs import (
    DATA,
    FIRST,
    NUM_BLOCKS,
    NUM_NODES,
    SECOND,
    counts,
    detected,
    prompts_in,
    read_log,
    write_lines,
)
from warmset.errors import TraceFormatError
from warmset.trace import ReadOptions

USAGE = {"prompt_tokens": 27, "completion_tokens": 2}
ANSWER = {"model": "m", "choices": [{"message": {"role": "assistant", "content": "hi"}}], "usage": USAGE}


def body(messages=FIRST) -> dict:
    return {"model": "m", "messages": messages}


def one(tmp_path: Path, row: dict, name: str = "log.jsonl"):
    (prompt,), _ = prompts_in("gateway", write_lines(tmp_path / name, row))
    return prompt


# --- fixtures counted by hand ----------------------------------------------------------------------


def test_json_lines():
    log = DATA / "gateway" / "requests.jsonl"
    assert detected(log) == ["gateway"]
    trace = read_log("gateway", log)
    assert trace.provenance.epoch_ms == 1_772_107_200_000  # date -u -d 2026-02-26T12:00:00Z +%s
    assert trace.arrival_ms.tolist() == [0, 1500]
    assert trace.num_blocks.tolist() == NUM_BLOCKS
    assert trace.num_nodes == NUM_NODES
    assert trace.input_tokens.tolist() == [27, 50]
    assert trace.output_tokens.tolist() == [2, 3]
    assert trace.duration_ms.tolist() == [900, 400]
    assert trace.cached_tokens.tolist() == [-1, 24]
    assert trace.session.tolist() == [0, 0]
    assert trace.model_names == ("m-1",)
    assert counts(trace) == {"other_calls": 1, "failed_calls": 1}


def test_csv_with_line_ends_in_cells():
    log = DATA / "gateway" / "requests.csv"
    assert detected(log) == ["gateway"]
    trace = read_log("gateway", log)
    assert trace.arrival_ms.tolist() == [0, 1500]
    assert (trace.num_blocks.tolist(), trace.num_nodes) == (NUM_BLOCKS, NUM_NODES)
    assert trace.input_tokens.tolist() == [27, 50]
    assert trace.output_tokens.tolist() == [2, 3]
    assert counts(trace) == {}


def test_a_batch_arrives_at_once():
    log = DATA / "gateway" / "batch.jsonl"
    assert detected(log) == ["gateway"]
    trace = read_log("gateway", log)
    assert trace.arrival_ms.tolist() == [0, 0]
    assert trace.num_blocks.tolist() == NUM_BLOCKS
    assert trace.provenance.epoch_ms is None
    assert trace.provenance.assumptions[-1].startswith("A batch file has no times")


def test_responses_api():
    log = DATA / "gateway" / "responses_api.jsonl"
    assert detected(log) == ["gateway"]
    trace = read_log("gateway", log)
    assert trace.arrival_ms.tolist() == [0, 1500, 3000]
    # The third sent only what is new; the server holds the rest, so its blocks are not known.
    assert trace.num_blocks.tolist() == [*NUM_BLOCKS, 0]
    assert trace.num_nodes == NUM_NODES
    assert trace.input_tokens.tolist() == [27, 50, 70]
    assert trace.previous.tolist() == [-1, -1, 1]
    assert counts(trace) == {"stored_conversations": 1, "no_text": 1}


def test_a_batch_among_logs_with_times_is_refused():
    with pytest.raises(TraceFormatError, match=r"batch\.jsonl: is a batch without times"):
        read_log("gateway", DATA / "gateway" / "requests.jsonl", DATA / "gateway" / "batch.jsonl")


# --- where things lie ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "row",
    [
        {"request": {"body": body()}, "response": {"body": ANSWER}},
        {"request": body(), "response": ANSWER},
        {"request": json.dumps(body()), "response": json.dumps(ANSWER)},
        {"request": {"body": json.dumps(body())}, "response": {"body": json.dumps(ANSWER)}},
        {"request_body": body(), "response_body": ANSWER},
        {"body": body(), "output": ANSWER},
        {"input": body(), "output": ANSWER},
        {"input": FIRST, "output": ANSWER},
        {**body(), "response": ANSWER},
        {**body(), "output": "hi", "usage": USAGE},
        {**body(), "output": "hi", "promptTokens": 27, "completionTokens": 2},
        {"model": "m", "messages": json.dumps(FIRST), "completion": "hi", "usage": json.dumps(USAGE)},
        {"providerRequest": {"json": body()}, "providerResponse": {"json": ANSWER}},
        {"payload": body(), "response": ANSWER},
        {"payload": json.dumps(body()), "response": ANSWER},
        {"request": {"model": "m", "system": "be brief", "messages": FIRST[1:]}, "response": ANSWER},
    ],
)
def test_a_request_is_found_wherever_it_lies(tmp_path: Path, row):
    log = write_lines(tmp_path / "log.jsonl", {"timestamp": "2026-02-26T12:00:00Z", **row})
    assert detected(log) == ["gateway"]
    (prompt,), tally = prompts_in("gateway", log)
    assert [(m["role"], m["content"]) for m in prompt.messages] == [(m["role"], m["content"]) for m in FIRST]
    assert (prompt.input_tokens, prompt.output_tokens, prompt.answer) == (27, 2, "hi")
    assert (tally.rows, tally.bad) == (1, 0)


@pytest.mark.parametrize("name", ["a.json", "page.json", "line.json"])
def test_documents_hold_rows_too(tmp_path: Path, name):
    rows = [
        {"time": "2026-02-26T12:00:00Z", "request": body(each), "response": ANSWER}
        for each in (FIRST, SECOND)
    ]
    document = rows if name == "a.json" else {"data": rows, "total": 2}
    log = tmp_path / name
    log.write_text(json.dumps(document, indent=None if name == "line.json" else 1))
    assert detected(log) == ["gateway"]
    assert read_log("gateway", log).num_blocks.tolist() == NUM_BLOCKS


def test_a_first_line_longer_than_a_head(tmp_path: Path):
    long = [{"role": "user", "content": "x" * 2**21}]
    rows = [{"ts": 1772107200 + each, "request": body(long), "response": ANSWER} for each in range(2)]
    log = write_lines(tmp_path / "log.jsonl", *rows)
    assert detected(log) == ["gateway"]
    assert read_log("gateway", log).num_requests == 2


def test_a_first_csv_row_longer_than_a_head(tmp_path: Path):
    log = tmp_path / "log.csv"
    cell = json.dumps(body([{"role": "user", "content": "x" * 2**21}])).replace('"', '""')
    log.write_text(f'time,request\n1772107200,"{cell}"\n')
    assert detected(log) == ["gateway"]
    assert read_log("gateway", log).num_blocks.tolist() == [2**18 + 1]  # "user\n", the text and "\n"


@pytest.mark.parametrize(
    "form", [lambda stream: stream, lambda stream: {"status": 200, "body": stream}], ids=["bare", "body"]
)
@pytest.mark.parametrize(
    "events",
    [
        [
            {"id": "c", "model": "m", "choices": [{"delta": {"role": "assistant", "content": "h"}}]},
            {"id": "c", "choices": [{"delta": {"content": "i"}}]},
            {"id": "c", "choices": [], "usage": USAGE},
        ],
        [{"choices": [{"text": "h"}]}, {"choices": [{"text": "i"}], "usage": USAGE}],
        [
            {"type": "response.created", "response": {"id": "resp_1", "output": []}},
            {"type": "response.output_text.delta", "delta": "hi"},
            {
                "type": "response.completed",
                "response": {"output": [{"type": "message", "content": [{"text": "hi"}]}], "usage": USAGE},
            },
        ],
    ],
    ids=["chat", "completion", "responses"],
)
def test_streams_add_up(tmp_path: Path, events, form):
    stream = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    prompt = one(tmp_path, {"ts": 1772107200, "request": body(), "response": form(stream)})
    assert (prompt.answer, prompt.input_tokens, prompt.output_tokens) == ("hi", 27, 2)


@pytest.mark.parametrize(
    ("request_", "text", "input_tokens"),
    [
        ({"prompt": "abc", "model": "m"}, "abc", 27),
        ({"prompt": ["abc"], "model": "m"}, "abc", 27),
        ({"prompt": [5, 6, 7], "model": "m"}, None, 3),
    ],
)
def test_completions(tmp_path: Path, request_, text, input_tokens):
    response = {"choices": [{"text": "hi"}], "usage": USAGE}
    prompt = one(tmp_path, {"ts": 1772107200, "request": request_, "response": response})
    assert (prompt.text, prompt.answer, prompt.input_tokens) == (text, "hi", input_tokens)


def test_several_prompts_in_one_call_are_several_requests(tmp_path: Path):
    row = {"ts": 1772107200, "request": {"prompt": ["abc", "de"]}, "response": {"usage": USAGE}}
    prompts, tally = prompts_in("gateway", write_lines(tmp_path / "log.jsonl", row))
    assert [(prompt.text, prompt.input_tokens) for prompt in prompts] == [("abc", None), ("de", None)]
    assert counts(tally) == {"split_calls": 1}


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 30, "prompt_tokens_details": {"cached_tokens": 20}}, (30, 20)),
        ({"input_tokens": 30, "input_tokens_details": {"cached_tokens": 20}}, (30, 20)),
        # Anthropic counts what was read from and written to its cache apart
        ({"input_tokens": 5, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 5}, (30, 20)),
        # LiteLLM adds Anthropic's names to OpenAI's sums
        ({"prompt_tokens": 30, "cache_read_input_tokens": 20, "cache_creation_input_tokens": 5}, (30, 20)),
        ({"prompt_tokens": 30, "prompt_cache_hit_tokens": 20}, (30, 20)),  # DeepSeek
        ({"prompt_tokens": "30.0"}, (30, None)),
    ],
)
def test_usage_of_several_providers(tmp_path: Path, usage, expected):
    prompt = one(tmp_path, {"ts": 1772107200, "request": body(), "response": {"usage": usage}})
    assert (prompt.input_tokens, prompt.cached_tokens) == expected


@pytest.mark.parametrize(
    "row",
    [
        {"conversation_id": "c"},
        {"metadata": {"session_id": "c"}},
        {"metadata": '{"session_id": "c"}'},
        {"request_properties": {"Helicone-Session-Id": "c"}},
        {"request": {**body(), "metadata": {"conversation_id": "c"}}},
        {"headers": {"X-Session-Id": "c"}},
    ],
)
def test_sessions(tmp_path: Path, row):
    assert one(tmp_path, {"ts": 1772107200, "request": body(), **row}).session == "c"


@pytest.mark.parametrize(
    ("row", "arrival_ms", "duration_ms"),
    [
        ({"created_at": "2026-02-26T12:00:00Z", "latency_ms": 12.4}, 1_772_107_200_000, 12),
        ({"start_time": 1772107200.25, "end_time": 1772107201.5}, 1_772_107_200_250, 1250),
        ({"Request Date": "2026-02-26 12:00:00+00"}, 1_772_107_200_000, None),
        ({"request": {**body(), "createdAt": "2026-02-26T12:00:00Z"}}, 1_772_107_200_000, None),
        ({"response": {**ANSWER, "created": 1772107200}}, 1_772_107_200_000, None),
        ({"start_time": 1772107200, "end_time": 1772107100}, 1_772_107_200_000, None),
    ],
)
def test_times(tmp_path: Path, row, arrival_ms, duration_ms):
    prompt = one(tmp_path, {"request": body(), **row})
    assert (prompt.arrival_ms, prompt.duration_ms) == (arrival_ms, duration_ms)


# --- what cannot be used ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"request": body()}, "no time of arrival: give each row a timestamp"),
        ({"ts": 12, "request": body()}, "ts is 12: a time must be ISO 8601, or count seconds"),
        ({"ts": 1772107200, "request": {"messages": ["no"]}}, "message 1 of the request is not an object"),
        (
            {"ts": 1772107200, "messages": [{"role": "user"}, {"role": {}}]},
            "the role of message 2 is not a text",
        ),
        ({"ts": 1772107200, "request": {"prompt": [{}]}}, "prompt is neither a text"),
        ({"ts": 1772107200}, "holds neither the text of a prompt nor a count of its tokens"),
        (
            {"ts": 1772107200, "request": body(), "usage": {"prompt_tokens": -1}},
            "prompt_tokens is not a number of tokens: it must lie between 0 and",
        ),
        (
            {"ts": 1772107200, "request": body(), "usage": {"prompt_tokens": "NaN"}},
            "prompt_tokens is not a number of tokens",
        ),
        (
            {"ts": 1772107200, "request": body(), "usage": {"prompt_tokens": 2**41}},
            "prompt_tokens is not a number of tokens",
        ),
        (
            {"ts": 1772107200, "request": body(), "usage": {"prompt_tokens": 1, "cached_tokens": 2}},
            "2 cached tokens of 1",
        ),
        ([], "not a JSON object"),
    ],
)
def test_unusable_rows_say_where_and_why(tmp_path: Path, row, why):
    good = {"ts": 1772107200, "request": body(), "response": ANSWER}
    log = write_lines(tmp_path / "log.jsonl", good, row)
    with pytest.raises(TraceFormatError, match=r"log\.jsonl:2: ") as error:
        read_log("gateway", log)
    assert why in str(error.value)
    trace = read_log("gateway", log, bad_share=0.5)
    assert (trace.num_requests, counts(trace)["bad_rows"]) == (1, 1)


def test_mixed_units_of_time_are_bad_rows(tmp_path: Path):
    rows = [{"ts": time, "request": body(), "response": ANSWER} for time in (1772107200, 1772107201000)]
    with pytest.raises(TraceFormatError, match="ts is in milliseconds, and in seconds before"):
        read_log("gateway", write_lines(tmp_path / "log.jsonl", *rows))


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ({"request": body(), "response": {"status": 500}}, "failed_calls"),
        ({"request": body(), "status": "failure"}, "failed_calls"),
        ({"request": body(), "error": "timeout"}, "failed_calls"),
        ({"request": body(), "response": {"error": {"message": "no"}}}, "failed_calls"),
        ({"request": {"model": "e", "input": "x"}, "path": "/v1/embeddings"}, "other_calls"),
        ({"request": {"model": "e", "input": "x", "url": "/v1/moderations"}}, "other_calls"),
    ],
)
def test_calls_that_generate_nothing_are_counted(tmp_path: Path, row, code):
    prompts, tally = prompts_in("gateway", write_lines(tmp_path / "log.jsonl", {"ts": 1772107200, **row}))
    assert prompts == []
    assert (tally.bad, counts(tally)) == (0, {code: 1})


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("redacted-by-litellm", "redacted_text"),
        ("be ... (litellm_truncated skipped 900 chars) ... brief", "cut_text"),
    ],
)
def test_text_that_was_not_sent_counts_for_its_length_only(tmp_path: Path, content, code):
    row = {"ts": 1772107200, "request": body([{"role": "user", "content": content}]), "response": ANSWER}
    trace = read_log("gateway", write_lines(tmp_path / "log.jsonl", row))
    assert (trace.input_tokens.tolist(), trace.has_blocks) == ([27], False)
    assert counts(trace) == {code: 1, "no_text": 1}


def test_halves_of_surrogate_pairs_are_replaced(tmp_path: Path):
    log = tmp_path / "log.jsonl"
    log.write_text('{"ts": 1772107200, "prompt": "ab\\ud83d", "completion": "x"}\n')
    (prompt,), tally = prompts_in("gateway", log)
    assert (prompt.text, counts(tally)) == ("ab?", {"broken_characters": 1})


def test_broken_csv_rows_are_counted(tmp_path: Path):
    log = tmp_path / "log.csv"
    log.write_bytes(
        b"time,prompt,completion\r\n1772107200,a b,c\r\n1772107201,x\r\n\r\n1772107202,\xff,c\r\n"
    )
    assert detected(log) == ["gateway"]
    with pytest.raises(TraceFormatError, match=r"log\.csv:3: has 2 cells under 3 columns"):
        read_log("gateway", log)
    trace = read_log("gateway", log, bad_share=0.5)
    assert trace.num_requests == 2
    assert counts(trace) == {"bad_rows": 1, "blank_lines": 1, "broken_characters": 1}


@pytest.mark.parametrize(
    "text",
    [
        "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,4808,10\r\n",
        '{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [1]}\n',
        '{"type": "user", "parentUuid": null, "message": {"role": "user", "content": "x"}}\n',
        '{"runId": "1", "stage": "stream:context", "messages": [{"role": "user", "content": "x"}]}\n',
        '{"role": "user", "content": "x"}\n',
        "nothing\n",
        "a,b\n1,2\n",
        "\0\0",
    ],
)
def test_other_logs_are_not_of_this_format(tmp_path: Path, text):
    log = tmp_path / "log"
    log.write_text(text)
    assert detected(log) == []


def test_defaults_are_blocks_of_16_tokens():
    trace = read_log("gateway", DATA / "gateway" / "requests.jsonl", options=ReadOptions(chars_per_token=1))
    assert (trace.block_tokens, trace.num_blocks.tolist()) == (16, [2, 4])
