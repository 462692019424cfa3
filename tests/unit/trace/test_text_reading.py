import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.text_logs import BY_CHARACTER, TEXT_FORMATS, counts, read_log, write_lines
from tests.support.traces import requests_of
from warmset.errors import Finding, TraceFormatError
from warmset.trace import ReadOptions, Trace
from warmset.trace.wst import write_wst

NOON_S = 1_772_107_200
TOLD = "Zürich-Kontonummer 0815-4711-QXJ gehört Frau Ödipus"
RUN = 8


def completions(path: Path, *rows: dict[str, Any]) -> Path:
    stamped = [{"ts": NOON_S + position, **row} for position, row in enumerate(rows)]
    return write_lines(path / "log.jsonl", *stamped)


# --- characters for each token ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "chars_per_token", "assumption"),
    [
        # 30 characters are 10 tokens and 48 are 10: 78 / 20 = 3.9
        (
            [
                {"prompt": "x" * 30, "usage": {"prompt_tokens": 10}},
                {"prompt": "y" * 48, "usage": {"prompt_tokens": 10}},
                {"prompt": "no usage" * 9},
            ],
            3.9,
            "Tokens are counted at 3.9 characters each, measured on 2 rows that report usage.",
        ),
        (
            [{"prompt": "x" * 30}],
            4,
            "No tokenizer was given: tokens are assumed to be 4 characters each.",
        ),
    ],
    ids=["measured", "assumed"],
)
def test_the_figure_is_measured_where_it_can_be(tmp_path: Path, rows, chars_per_token, assumption):
    log = completions(tmp_path, *rows)
    trace = read_log("gateway", log, options=ReadOptions(block_tokens=10))
    assert trace.provenance.assumptions == (assumption,)
    expected = [-(-len(row["prompt"]) // (10 * chars_per_token)) for row in rows]
    assert trace.num_blocks.tolist() == expected


def test_a_given_figure_is_used_and_said(tmp_path: Path):
    log = completions(tmp_path, {"prompt": "x" * 30, "usage": {"prompt_tokens": 10}})
    trace = read_log("gateway", log, options=ReadOptions(block_tokens=2, chars_per_token=2.5))
    assert trace.provenance.assumptions == ("Tokens are counted at 2.5 characters each, as given.",)
    assert trace.num_blocks.tolist() == [6]


def test_a_figure_that_no_text_has_is_not_believed(tmp_path: Path):
    log = completions(tmp_path, {"prompt": "abc", "usage": {"prompt_tokens": 5000}})
    trace = read_log("gateway", log, options=ReadOptions())
    assert trace.provenance.assumptions[0].startswith("No tokenizer was given")
    assert counts(trace)["odd_chars_per_token"] == 1


def test_only_the_first_thousand_rows_are_measured(tmp_path: Path):
    rows = [{"prompt": "x" * 30, "usage": {"prompt_tokens": 10}}] * 1000
    log = completions(tmp_path, *rows, {"prompt": "y" * 3000, "usage": {"prompt_tokens": 1500}})
    trace = read_log("gateway", log, options=ReadOptions())
    assert trace.num_requests == 1001
    assert "at 3 characters each, measured on 1,000 rows" in trace.provenance.assumptions[0]


# --- what is known of a request --------------------------------------------------------------------


def test_usage_that_the_text_does_not_come_to_is_kept_and_counted(tmp_path: Path):
    usages = (30, 38, 39, 21)  # more than a block of 8 away from 30: 39 and 21
    rows = [{"prompt": "x" * 30, "usage": {"prompt_tokens": usage}} for usage in usages]
    trace = read_log("gateway", completions(tmp_path, *rows))
    assert trace.input_tokens.tolist() == list(usages)
    assert trace.num_blocks.tolist() == [4] * 4
    assert counts(trace)["other_token_count"] == 2


def test_an_answer_without_usage_is_counted_like_the_prompt(tmp_path: Path):
    log = completions(tmp_path, {"prompt": "abc", "completion": "defgh"}, {"prompt": "abc"})
    trace = read_log("gateway", log)
    assert trace.output_tokens.tolist() == [5, 0]
    assert counts(trace) == {"no_output": 1}


def test_a_tokenizer_without_a_template_says_so(tmp_path: Path):
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit

    words = ("a", "b")
    tokenizer = Tokenizer(WordLevel({word: number for number, word in enumerate(words)}, unk_token=words[0]))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    log = completions(tmp_path, {"prompt": "a b a b a", "completion": "a b"})
    trace = read_log("gateway", log, options=ReadOptions(block_tokens=2, tokenizer=tmp_path))
    assert (trace.input_tokens.tolist(), trace.output_tokens.tolist()) == ([5], [2])
    assert trace.num_blocks.tolist() == [3]
    assert trace.provenance.assumptions[0].startswith("No chat template lies beside the tokenizer")


# --- privacy ---------------------------------------------------------------------------------------


def secret_log(name: str, path: Path) -> Path:
    """A log of two requests whose texts hold the secret wherever a format has text."""
    chat = [{"role": "system", "content": TOLD}, {"role": "user", "content": TOLD * 3}]
    tool = {"type": "function", "function": {"name": TOLD, "description": TOLD}}
    answer = {
        "choices": [{"message": {"role": "assistant", "content": TOLD}}],
        "usage": {"prompt_tokens": 70},
    }
    texts = json.dumps(chat, ensure_ascii=False)
    row: dict[str, dict[str, Any]] = {
        "gateway": {"ts": NOON_S, "request": {"messages": chat, "tools": [tool]}, "response": answer},
        "litellm": {
            "call_type": "completion",
            "startTime": NOON_S,
            "endTime": NOON_S + 1,
            "messages": chat,
            "response": answer,
        },
        "otel": {
            "trace_id": "1",
            "span_id": "1",
            "startTimeUnixNano": str(NOON_S * 10**9),
            "attributes": {"gen_ai.input.messages": texts, "gen_ai.output.messages": texts},
        },
        "lmcache_agent": {
            "timestamp": NOON_S * 10**6,
            "session_id": 1,
            "input": TOLD * 4,
            "output": TOLD,
        },
        "aiperf_text": {"timestamp": 0, "text_input": TOLD * 4, "output_length": 9},
    }
    return write_lines(path / "log.jsonl", row[name], row[name])


def assert_no_trace_of(secret: str, content: bytes) -> None:
    for start in range(len(secret) - RUN + 1):
        run = secret[start : start + RUN]
        for form in (
            run.encode(),
            run.encode("utf-16-le"),
            run.encode("utf-32-le"),
            json.dumps(run)[1:-1].encode(),
        ):
            assert form not in content


@pytest.mark.parametrize("name", TEXT_FORMATS)
def test_no_text_reaches_the_trace(tmp_path: Path, name):
    trace = read_log(name, secret_log(name, tmp_path))
    assert trace.num_nodes > 10
    written = tmp_path / "trace.wst"
    write_wst(trace, written)
    assert_no_trace_of(TOLD, written.read_bytes())
    assert_no_trace_of(TOLD, repr(trace).encode())
    assert_no_trace_of(TOLD, repr(trace.findings).encode())


@pytest.mark.parametrize("name", TEXT_FORMATS)
def test_the_key_leaves_no_mark_on_the_trace(tmp_path: Path, name):
    """Ids are numbered by first use: what is written is the same for any key, so that none can be undone."""
    log = secret_log(name, tmp_path)
    written = []
    for number, key in enumerate((b"one", b"one", b"another")):
        path = tmp_path / f"{number}.wst"
        write_wst(read_log(name, log, options=replace(BY_CHARACTER, hash_key=key)), path)
        written.append(path.read_bytes())
    assert written[0] == written[1] == written[2]


BROKEN = {
    "gateway": [
        '{"ts": "%s", "prompt": "x"}',
        '{"ts": 1772107200, "messages": ["%s"]}',
        '{"ts": 1772107200, "prompt": "x", "usage": {"prompt_tokens": "%s"}}',
        '{"ts": 1772107200, "prompt": "%s',
        '["%s"]',
    ],
    "litellm": ['{"call_type": "completion", "startTime": "%s", "endTime": 1, "messages": "x"}'],
    "otel": [
        '{"span_id": "1", "start_time": "%s", "attributes": {"gen_ai.input.messages": "x"}}',
        '{"span_id": "1", "start_time": 1772107200, "attributes": {"gen_ai.input.messages": ["%s"]}}',
        '{"%s": 1}',
    ],
    "lmcache_agent": [
        '{"timestamp": "%s", "session_id": 1, "input": "x"}',
        '{"timestamp": 1772107200, "input": ["%s"]}',
    ],
    "aiperf_text": [
        '{"text_input": ["%s"]}',
        '{"text_input": "x", "timestamp": "%s"}',
        '{"messages": ["%s"]}',
    ],
}


@pytest.mark.parametrize(("name", "line"), [(name, line) for name, lines in BROKEN.items() for line in lines])
def test_no_text_reaches_a_message_about_a_bad_row(tmp_path: Path, name, line):
    log = tmp_path / "log.jsonl"
    log.write_text(secret_log(name, tmp_path).read_text() + line % TOLD + "\n", encoding="utf-8")
    with pytest.raises(TraceFormatError, match=r"log\.jsonl:3") as error:
        read_log(name, log)
    assert_no_trace_of(TOLD, str(error.value).encode())
    trace = read_log(name, log, bad_share=0.5)
    assert trace.findings[0] == Finding("bad_rows", 1, trace.findings[0].first_example)
    assert_no_trace_of(TOLD, repr(trace.findings).encode())


def test_two_imports_of_one_text_share_no_id(tmp_path: Path):
    from warmset.trace.encode import CharacterEncoder
    from warmset.trace.prompt import Prompt

    prompt = Prompt(place="", arrival_ms=0, text=TOLD)
    first, second = (set(CharacterEncoder(1, 4, key).encode(prompt).ids.tolist()) for key in (b"1", b"2"))
    assert not first & second


def test_the_forest_of_a_conversation(tmp_path: Path):
    log = completions(tmp_path, {"prompt": "abcdefgh12"}, {"prompt": "abcdefghXY"}, {"prompt": "abcdefgh12"})
    trace: Trace = read_log("gateway", log)
    assert [request.ids for request in requests_of(trace)] == [(0, 1), (0, 2), (0, 1)]
