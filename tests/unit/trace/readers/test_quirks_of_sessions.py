"""Quirks of real logs that concern sessions, by their numbers in section 6 of the trace facts.

Those of ids and files are in `test_quirks_of_ids.py`.
"""

import json
from pathlib import Path

import pytest

from tests.support.traces import make_trace, mooncake_row, prompts, read_mooncake, write_rows
from warmset.errors import TraceFormatError
from warmset.trace import Provenance, TraceBuilder, read_trace
from warmset.trace.answers import answer_hits, find_answers
from warmset.trace.lint import lint_ids


def weka_session(name: str, *requests: dict, block_size: int = 64) -> dict:
    return {"id": name, "block_size": block_size, "hash_id_scope": "local", "requests": list(requests)}


def weka_request(t: float, *ids: int, out: int = 10, **more: object) -> dict:
    return {"t": t, "type": "n", "in": 64 * len(ids), "out": out, "hash_ids": list(ids)} | more


def codes(report) -> set[str]:
    return {finding.code for finding in report.findings}


def test_8_ids_of_one_session_say_nothing_in_another(tmp_path):
    path = write_rows(
        tmp_path / "t",
        weka_session("a", weka_request(0, 1, 2), weka_request(5, 1, 2, 3)),
        weka_session("b", weka_request(0, 1, 2)),
    )
    trace = read_trace([path])
    # 1 2 3 of session a, 1 2 of session b; "b" starts a minute after "a".
    assert trace.num_nodes == 5
    assert trace.arrival_ms.tolist() == [0, 5_000, 60_000]
    assert trace.leaf.tolist() == [1, 2, 4]
    assert trace.session.tolist() == [0, 0, 1]
    assert any("no common clock" in assumption for assumption in trace.provenance.assumptions)


def test_10_a_partial_last_block_is_shared_by_an_equal_prompt_alone(tmp_path):
    path = write_rows(
        tmp_path / "t",
        mooncake_row(timestamp=0, session_id="s", input_length=600, hash_ids=[0, 1]),
        mooncake_row(timestamp=1, session_id="s", input_length=600, hash_ids=[0, 1]),
        mooncake_row(timestamp=2, session_id="s", input_length=1100, hash_ids=[0, 2, 3]),
    )
    trace = read_mooncake(path)
    assert trace.leaf.tolist() == [1, 1, 3]
    answers = find_answers(trace)
    # The third prompt goes on from the second: 512 tokens are known as a block, 88 more were in its last one.
    hits = answer_hits(trace, answers)
    assert hits.blocks_tokens == 600 + 512
    assert hits.with_partial_block_tokens == 600 + 600


def test_11_an_answer_comes_back_as_new_ids_but_is_cached():
    builder = TraceBuilder(4)
    builder.add(arrival_ms=0, input_tokens=8, output_tokens=4, ids=[1, 2], session="s")
    builder.add(arrival_ms=9, input_tokens=16, output_tokens=1, ids=[1, 2, 3, 4], session="s")
    trace = builder.build(Provenance(name="two turns"))
    hits = answer_hits(trace, find_answers(trace))
    assert (hits.input_tokens, hits.blocks_tokens, hits.with_answer_tokens) == (24, 8, 12)


def test_14_requests_of_a_helper_count_from_its_marker(tmp_path):
    marker = {"t": 10.0, "type": "subagent", "requests": [weka_request(0.5, 9), weka_request(2.0, 9, 8)]}
    path = write_rows(tmp_path / "t", weka_session("a", weka_request(0, 1), marker, weka_request(20, 1, 2)))
    trace = read_trace([path])
    assert trace.arrival_ms.tolist() == [0, 10_500, 12_000, 20_000]
    assert [trace.kind_names[kind] for kind in trace.kind] == ["main", "sub-agent", "sub-agent", "main"]
    assert trace.previous.tolist() == [-1, -1, 1, 0]


def test_15_duplicate_sessions_are_named():
    turns = [weka_request(5 * n, *range(1, n + 2), out=n + 1) for n in range(4)]
    builder = TraceBuilder(64)
    for copy in range(2):
        for turn in turns:
            builder.add(
                arrival_ms=round(1000 * turn["t"]) + 60_000 * copy,
                input_tokens=turn["in"],
                output_tokens=turn["out"],
                ids=turn["hash_ids"],
                scope=copy,
                session=copy,
            )
    assert "duplicate_sessions" in codes(lint_ids(builder.build(Provenance(name="twice"))))
    assert "duplicate_sessions" not in codes(lint_ids(make_trace(prompts([1], [1, 2], [3]))))


def test_16_a_prompt_may_shrink():
    builder = TraceBuilder(4)
    for arrival_ms, ids in ((0, range(1, 21)), (1, range(1, 31)), (2, (1, 2, 3, 99))):
        builder.add(
            arrival_ms=arrival_ms, input_tokens=4 * len(ids), output_tokens=1, ids=list(ids), session="s"
        )
    trace = builder.build(Provenance(name="compacted"))
    assert "compaction" in codes(lint_ids(trace))


def test_19_what_a_provider_cached_is_not_what_could_be_reused(tmp_path):
    event = [
        {"event_type": "user_message", "timestamp": "2026-06-01T05:40:20.151Z", "source": "user.message"}
    ]
    rounds = [
        {
            "provider": "claude",
            "session_id": "s",
            "round_index": number,
            "round_id": f"r{number}",
            "model": "m",
            "input_tokens_total": total,
            "prefix_tokens": cached,
            "newly_append_tokens": total - cached,
            "output_tokens": 16,
            "timing_events": [{**event[0], "timestamp": f"2026-06-01T05:4{number}:20.000Z"}],
        }
        for number, (total, cached) in enumerate([(320, 0), (640, 0), (960, 320)])
    ]
    trace = read_trace([write_rows(tmp_path / "t", *rounds)])
    assert trace.cached_tokens.tolist() == [0, 0, 320]
    # Each prompt goes on from the one before: 320 and 640 tokens could have been there, whatever was.
    known = [0, 320 // 16, 640 // 16]
    depths = [int(trace.node_depth[leaf]) for leaf in trace.leaf]
    assert depths == [20, 40, 60]
    assert trace.num_nodes == sum(depths) - sum(known)


@pytest.mark.parametrize(
    "row",
    [
        {"captureData": {"endpointInput": {"data": "{}", "encoding": "JSON"}}, "eventMetadata": {}},
        {"nodes": [{"id": "a", "depends_on": []}], "edges": []},
    ],
    ids=["sagemaker", "dag"],
)
def test_20_formats_that_are_not_read_are_refused_and_not_guessed(tmp_path, row):
    path = Path(tmp_path / "t.jsonl")
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    with pytest.raises(TraceFormatError, match="no request log that is known; --format takes one of"):
        read_trace([path])
