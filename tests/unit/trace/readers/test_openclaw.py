"""OpenClaw transcripts: the hand-written samples as openclaw.md counts them, and variants of them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from tests.support.text_logs import counts
from tests.support.traces import write_rows
from tests.support.transcripts import Row, blocks_in, read, rows_in, same_requests, sample, shared_tokens
from warmset.errors import TraceFormatError
from warmset.trace import ReadOptions
from warmset.trace.forest import UNKNOWN


@pytest.fixture
def first(shared: Path) -> list[Row]:
    return rows_in(sample(shared, 1))


@pytest.fixture
def second(shared: Path) -> list[Row]:
    return rows_in(sample(shared, 2))


# --- the samples, as openclaw.md counts them -------------------------------------------------------


def test_first_sample(shared: Path) -> None:
    trace = read(sample(shared, 1))
    assert trace.num_requests == 7
    assert trace.input_tokens.tolist() == [15829, 16062, 16145, 16237, 16411, 15819, 15908]
    assert trace.input_tokens.sum() == 112_411
    assert trace.cached_tokens is not None
    assert trace.cached_tokens.sum() == 62_406
    assert trace.output_tokens.tolist() == [148, 61, 44, 8, 118, 71, 5]
    assert counts(trace) == {"delivery_copies": 1, "failed_calls": 1, "unlogged_summary_calls": 1}
    assert trace.model_names == ("claude-sonnet-4-6",)


def test_times_of_the_first_sample(shared: Path) -> None:
    trace = read(sample(shared, 1))
    assert trace.duration_ms is not None
    assert trace.think_ms is not None
    assert trace.previous is not None
    # entry 09:00:04.310 and message 09:00:00.150; the next message 09:00:04.390
    assert trace.provenance.epoch_ms == 1777885200150
    assert trace.arrival_ms[:2].tolist() == [0, 4240]
    assert trace.duration_ms[0] == 4160
    assert trace.think_ms[:2].tolist() == [UNKNOWN, 80]
    # the retry after an error waits from the heartbeat's answer, 09:30:01.930, to 10:12:45.410
    assert trace.think_ms[4] == 42 * 60_000 + 43_480
    assert trace.previous.tolist() == [-1, 0, 1, 2, 3, 4, 5]


def test_what_prompts_of_the_first_sample_share(shared: Path) -> None:
    """Each prompt goes on from the one before; after the compaction, only the scaffold stays.

    By hand: 174 tokens came with the prompt before it, 8 of an answer and 166 for texts of 28 and 21 tokens
    at four characters each; so the kept message has 166 - 94 = 72. The compaction leaves, of 15,819 tokens:
    summary 37, kept message 72 and answer 118, new message 15; so 15,577 of scaffold.
    """
    trace = read(sample(shared, 1))
    grown = [blocks_in(tokens) for tokens in (0, 15829, 16062, 16145, 16237)]
    assert shared_tokens(trace) == [*grown, blocks_in(15577), blocks_in(15819)]


def test_prompts_share_at_least_what_a_provider_read_from_its_cache(shared: Path) -> None:
    for number in (1, 2):
        trace = read(sample(shared, number))
        assert trace.cached_tokens is not None
        for possible, cached in list(zip(shared_tokens(trace), trace.cached_tokens, strict=True))[1:]:
            assert possible >= blocks_in(cached)


def test_second_sample(shared: Path) -> None:
    trace = read(sample(shared, 2))
    assert trace.input_tokens.tolist() == [9536, 9673, 9746, 9504]
    assert trace.input_tokens.sum() == 38_459
    assert trace.cached_tokens is not None
    assert trace.cached_tokens.sum() == 35_392
    assert counts(trace) == {"aborted_calls": 1, "torn_lines": 1}
    assert trace.kind_names == ("sub-agent",)


def test_a_rewind_shares_what_stood_before_it(shared: Path) -> None:
    trace = read(sample(shared, 2))
    assert trace.previous is not None
    assert trace.previous.tolist() == [-1, 0, 0, 2]
    # the first answer and both tool results: all of the second prompt
    assert shared_tokens(trace)[2] == blocks_in(9673)


def test_a_reset_keeps_the_scaffold_only(shared: Path) -> None:
    """The last reply starts a new window; its message is the projected one, 61 characters or 16 tokens."""
    trace = read(sample(shared, 2))
    assert shared_tokens(trace)[3] == blocks_in(9504 - 16)


def test_assumptions_are_stated(shared: Path) -> None:
    stated = " ".join(read(sample(shared, 1)).provenance.assumptions)
    for word in ("system prompts", "share", "4 characters a token", "0 of 1 sessions"):
        assert word in stated


# --- versions and files ----------------------------------------------------------------------------


def as_version_1(rows: list[Row]) -> list[Row]:
    """Linear, without ids; a compaction names the entry that it keeps by its place, the header being 0."""
    place = {row["id"]: number for number, row in enumerate(rows)}
    old = []
    for row in rows:
        plain = {key: value for key, value in row.items() if key not in {"version", "parentId"}}
        if row["type"] == "session":
            plain |= {"provider": "anthropic", "modelId": "claude-sonnet-4-6", "thinkingLevel": "low"}
        else:
            del plain["id"]
        if "firstKeptEntryId" in plain:
            plain["firstKeptEntryIndex"] = place[plain.pop("firstKeptEntryId")]
        old.append(plain)
    return old


def as_version_2(rows: list[Row]) -> list[Row]:
    """A hidden message of an extension is a message of its own role."""
    old = []
    for row in rows:
        changed = dict(row)
        if row["type"] == "session":
            changed["version"] = 2
        if row["type"] == "custom_message":
            changed["type"] = "message"
            changed["message"] = {"role": "hookMessage", "content": row["content"]}
        old.append(changed)
    return old


@pytest.mark.parametrize("older", [as_version_1, as_version_2])
def test_older_versions_give_the_same_trace(
    older: Callable[[list[Row]], list[Row]], shared: Path, first: list[Row], tmp_path: Path
) -> None:
    path = write_rows(tmp_path / "old.jsonl", *older(first))
    same_requests(read(path), read(sample(shared, 1)))


@pytest.mark.parametrize(
    "name",
    ["a.jsonl.reset.2026-05-04T10-20-00.000Z", "a.jsonl.deleted.2026-05-04T10-20-00.000Z", "a-topic-7.jsonl"],
)
def test_archived_transcripts_are_read(name: str, shared: Path, tmp_path: Path) -> None:
    plain = sample(shared, 1).read_bytes()
    (tmp_path / name).write_bytes(plain)
    (tmp_path / f"{name}.zst").write_bytes(zstandard.compress(plain))
    for path in (tmp_path / name, tmp_path / f"{name}.zst"):
        same_requests(read(path), read(sample(shared, 1)))


def test_a_folder_counts_copies_and_skips_them(shared: Path, tmp_path: Path) -> None:
    sessions = tmp_path / ".openclaw" / "agents" / "main" / "sessions"
    sessions.mkdir(parents=True)
    for name in ("a.jsonl", "a.checkpoint.1.jsonl", "a.corrupt-1-x.jsonl"):
        (sessions / name).write_bytes(sample(shared, 1).read_bytes())
    (tmp_path / ".openclaw" / "openclaw.json").write_text('{"agents": {}}')
    trace = read(*sorted(path for path in tmp_path.rglob("*") if path.is_file()))
    assert trace.num_requests == 7
    assert counts(trace)["copied_files"] == 2
    assert counts(trace)["other_files"] == 1


def test_a_fork_repeats_calls_and_goes_on_from_them(first: list[Row], tmp_path: Path) -> None:
    """Two calls of the fork are in the first file; its own one goes on from the second of them."""
    header = first[0] | {"id": "00000000-fork"}
    message = {"role": "user", "content": "Which are paid?", "timestamp": 1777885300000}
    asked = {
        "type": "message",
        "id": "f0000001",
        "parentId": "a0000009",
        "timestamp": "2026-05-04T09:01:40.000Z",
    }
    answered = json.loads(json.dumps(first[10])) | {
        "id": "f0000002",
        "parentId": "f0000001",
        "timestamp": "2026-05-04T09:01:50.000Z",
    }
    answered["message"]["timestamp"] = 1777885301000
    original = write_rows(tmp_path / "1.jsonl", *first)
    fork = write_rows(tmp_path / "2.jsonl", header, *first[1:10], asked | {"message": message}, answered)
    trace = read(original, fork)
    assert trace.num_requests == 8
    assert counts(trace)["copied_calls"] == 2
    assert trace.previous is not None
    assert trace.session is not None
    # in order of time: the fork's call comes after the three of 09:00
    assert trace.previous.tolist() == [-1, 0, 1, 1, 2, 4, 5, 6]
    assert trace.session.tolist() == [0, 0, 0, 1, 0, 0, 0, 0]
    # its answer above and the tool's result: as in the third prompt
    assert shared_tokens(trace)[3] >= blocks_in(16062)


def test_sessions_of_an_agent_share_their_scaffold(first: list[Row], tmp_path: Path) -> None:
    """Both first prompts hold 15,829 tokens, the second 23 + 25 = 48 of them in messages."""
    other = json.loads(json.dumps(first[:6]))
    other[0]["id"] = "another"
    for row in other[1:]:
        row["id"] = f"c{row['id'][1:]}"
        row["parentId"] = row["parentId"] and f"c{row['parentId'][1:]}"
        row["timestamp"] = row["timestamp"].replace("2026-05-04", "2026-05-05")
    other[4]["message"]["content"][0]["text"] += "x" * 100
    other[5]["message"]["timestamp"] += 24 * 3600 * 1000
    paths = [write_rows(tmp_path / "1.jsonl", *first), write_rows(tmp_path / "2.jsonl", *other)]
    trace = read(*paths)
    # 189 characters: 48 tokens
    assert shared_tokens(trace)[-1] == blocks_in(15829 - 48)


def test_the_index_names_traffic_and_bounds_what_sessions_share(shared: Path, tmp_path: Path) -> None:
    header = rows_in(sample(shared, 1))[0]
    entry = {
        "sessionId": header["id"],
        "updatedAt": 1777889650900,
        "systemPromptReport": {"systemPrompt": {"chars": 32_000}, "tools": {"schemaChars": 16_000}},
    }
    (tmp_path / "sessions.json").write_text(json.dumps({"agent:main:telegram:group:-100": entry}))
    (tmp_path / "a.jsonl").write_bytes(sample(shared, 1).read_bytes())
    trace = read(tmp_path / "a.jsonl", tmp_path / "sessions.json")
    assert trace.kind_names == ("group",)
    assert "1 of 1 sessions" in " ".join(trace.provenance.assumptions)
    assert shared_tokens(trace)[1] == blocks_in(15829)


# --- quirk 16 of trace-facts: prompts shrink -------------------------------------------------------


def call(number: int, parent: int, prompt: int, cache_read: int, output: int = 10) -> Row:
    return {
        "type": "message",
        "id": f"{number:08x}",
        "parentId": f"{parent:08x}",
        "timestamp": f"2026-05-04T09:00:{number:02}.500Z",
        "message": {
            "role": "assistant",
            "content": [{"type": "text", "text": "Yes."}],
            "provider": "vllm",
            "model": "m",
            "usage": {
                "input": prompt - cache_read,
                "output": output,
                "cacheRead": cache_read,
                "cacheWrite": 0,
            },
            "stopReason": "stop",
            "timestamp": 1777885200000 + 1000 * number,
        },
    }


def said(number: int, parent: int | None, text: str) -> Row:
    return {
        "type": "message",
        "id": f"{number:08x}",
        "parentId": None if parent is None else f"{parent:08x}",
        "timestamp": f"2026-05-04T09:00:{number:02}.000Z",
        "message": {"role": "user", "content": text},
    }


HEADER = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-05-04T09:00:00.000Z", "cwd": "/"}


@pytest.mark.parametrize(
    ("cache_read", "kept_tokens"),
    [
        pytest.param(960, 960, id="what the cache had"),
        pytest.param(0, 1000 - 100, id="what stood before the last turn: 400 characters of 1,000 tokens"),
    ],
)
def test_a_shorter_prompt_keeps_only_its_start(cache_read: int, kept_tokens: int, tmp_path: Path) -> None:
    path = write_rows(
        tmp_path / "a.jsonl",
        HEADER,
        said(1, None, "x" * 400),
        call(2, 1, 1000, 0),
        said(3, 2, "y" * 40),
        call(4, 3, 980, cache_read),
        said(5, 4, "z" * 40),
        call(6, 5, 1100, 0),
    )
    trace = read(path)
    assert counts(trace)["shrinking_prompts"] == 1
    assert shared_tokens(trace) == [0, blocks_in(kept_tokens), blocks_in(980)]


def test_counters_of_a_cache_decide_nothing_else(tmp_path: Path) -> None:
    """Quirk 19: a provider's cache forgets; the prompt goes on all the same."""
    path = write_rows(
        tmp_path / "a.jsonl",
        HEADER,
        said(1, None, "x"),
        call(2, 1, 1000, 992),
        said(3, 2, "y"),
        call(4, 3, 1100, 16),
    )
    trace = read(path)
    assert trace.cached_tokens is not None
    assert trace.cached_tokens.tolist() == [992, 16]
    assert shared_tokens(trace)[1] == blocks_in(1000)


def test_a_provider_that_reports_no_cache_is_unknown(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "a.jsonl", HEADER, said(1, None, "x"), call(2, 1, 1000, 0))
    trace = read(path)
    assert trace.cached_tokens is None
    assert counts(trace) == {"no_cache_report": 1}


def test_another_model_shares_nothing(tmp_path: Path) -> None:
    other = call(4, 3, 1100, 0)
    other["message"]["model"] = "n"
    back = call(6, 5, 1200, 0)
    path = write_rows(
        tmp_path / "a.jsonl",
        HEADER,
        said(1, None, "x"),
        call(2, 1, 1000, 0),
        said(3, 2, "y"),
        other,
        said(5, 4, "z"),
        back,
    )
    trace = read(path)
    assert shared_tokens(trace) == [0, 0, blocks_in(1000)]
    assert trace.model_names == ("m", "n")


# --- what cannot be used ---------------------------------------------------------------------------


def test_a_line_that_is_broken_is_a_bad_row(first: list[Row], tmp_path: Path) -> None:
    lines = [json.dumps(row) for row in first]
    lines[6] = lines[6][:40]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(lines))
    with pytest.raises(TraceFormatError, match=rf"^{path}:7: not valid JSON"):
        read(path)
    trace = read(path, bad_share=0.1)
    assert trace.num_requests == 7
    assert counts(trace)["bad_rows"] == 1
    assert counts(trace)["lost_parents"] == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"input": -5}, r":3: usage has -5 tokens of input: it must lie between 0 and"),
        ({"output": 2**41}, r":3: usage has 2199023255552 tokens of output"),
        ({"input": "many"}, r":3: usage: Expected `int \| null`, got `str`"),
    ],
)
def test_numbers_that_none_can_have(change: Row, message: str, tmp_path: Path) -> None:
    row = call(2, 1, 1000, 0)
    row["message"]["usage"] |= change
    path = write_rows(tmp_path / "a.jsonl", HEADER, said(1, None, "x"), row)
    with pytest.raises(TraceFormatError, match=message):
        read(path)


def test_times_in_no_known_form(tmp_path: Path) -> None:
    row = call(2, 1, 1000, 0)
    row["timestamp"] = row["message"]["timestamp"] = "yesterday"
    path = write_rows(tmp_path / "a.jsonl", HEADER, said(1, None, "x"), row)
    with pytest.raises(TraceFormatError, match=r":3: has no time"):
        read(path)


def test_ids_follow_the_key_of_the_import_and_nothing_else(shared: Path) -> None:
    path = sample(shared, 1)
    one = read(path, options=ReadOptions(hash_key=b"one"))
    same_requests(one, read(path, options=ReadOptions(hash_key=b"two")))


def test_no_text_of_a_transcript_reaches_findings(shared: Path) -> None:
    for number in (1, 2):
        for finding in read(sample(shared, number)).findings:
            assert "invoice" not in finding.first_example.lower()
            assert "vendor" not in finding.first_example.lower()
