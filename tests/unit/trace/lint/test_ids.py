"""Traces without text: what ids, lengths, times and sessions show, counted by hand. Blocks: 128 tokens."""

import numpy as np
import pytest

from warmset.trace import Provenance, TraceBuilder
from warmset.trace.lint import HitRate, MissShare, lint_ids
from warmset.trace.lint.paths import known_blocks, reuse_ages_ms, shared_blocks

B = 128
SECOND = 1000


def trace_of(*rows, block_tokens=B, **common):
    """Rows of (session, ids) or (session, ids, more), a second apart."""
    builder = TraceBuilder(block_tokens)
    for number, (session, ids, *more) in enumerate(rows):
        fields = {
            "arrival_ms": number * SECOND,
            "input_tokens": len(ids) * B,
            "output_tokens": 1,
            "ids": ids,
            "session": session,
            **common,
        }
        builder.add(**(fields | (more[0] if more else {})))
    return builder.build(Provenance(name="test"))


def finding(report, code):
    (found,) = [each for each in report.findings if each.code == code]
    return found


def codes(trace):
    return [each.code for each in lint_ids(trace).findings]


def test_a_conversation_that_only_grows():
    report = lint_ids(trace_of(("a", [1, 2]), ("a", [1, 2, 3]), ("a", [1, 2, 3, 4])))
    assert report.findings == ()
    assert report.before == HitRate(9 * B, 5 * B)
    assert set(report.misses) == {MissShare("session_start", 2 * B), MissShare("appended", 2 * B)}


def test_a_turn_that_changes_inside():
    report = lint_ids(trace_of(("a", [1, 2, 3, 4]), ("a", [1, 9, 8, 7, 6]), ("a", [1, 9, 8, 7, 6, 5])))
    found = finding(report, "prefix_break")
    assert (found.count, found.num_total) == (1, 2)
    assert (found.depth_tokens, found.depth_share) == (B, 1 / 5)
    assert found.lost_tokens == 3 * B
    assert found.before == HitRate(15 * B, 6 * B)
    assert found.after == report.after_all == HitRate(15 * B, 9 * B)
    assert found.example == "request 2 keeps 1 of the 4 blocks of request 1, and has 5"
    assert {share.code: share.miss_tokens // B for share in report.misses} == {
        "session_start": 4,
        "prefix_break": 3,
        "appended": 2,
    }


def test_what_another_request_had_is_not_lost():
    """The third turn parts from the second and goes on from the first."""
    trace = trace_of(("a", [1, 2, 3, 4]), ("a", [1, 9, 8, 7]), ("a", [1, 2, 3, 4, 5]))
    assert finding(lint_ids(trace), "prefix_break").lost_tokens == 3 * B


def test_a_partly_filled_last_block_is_no_break():
    trace = trace_of(("a", [1, 2, 3], {"input_tokens": 2 * B + 100}), ("a", [1, 2, 4, 5]))
    assert codes(trace) == ["dropped_prefix"]  # 2 of 3 blocks are kept


def test_a_compaction_is_no_break():
    ids = list(range(1, 21))
    report = lint_ids(trace_of(("a", ids), ("a", [1, 2, *range(30, 40)])))
    assert [each.code for each in report.findings] == ["shrinking_prompts", "dropped_prefix", "compaction"]
    found = finding(report, "compaction")
    assert (found.count, found.num_total, found.depth_tokens, found.lost_tokens) == (1, 1, 2 * B, 0)
    assert MissShare("dropped", 10 * B) in report.misses
    assert finding(report, "shrinking_prompts").example.startswith("the largest step leaves out 40 %")


def test_helpers_are_held_against_themselves():
    builder = TraceBuilder(B)
    rows = [("m1", None, [1, 2]), ("s1", None, [7, 8]), ("m2", "m1", [1, 2, 3]), ("s2", "s1", [7, 8, 9])]
    for number, (key, previous, ids) in enumerate(rows):
        builder.add(
            arrival_ms=number,
            input_tokens=len(ids) * B,
            output_tokens=1,
            ids=ids,
            session="a",
            key=key,
            previous_key=previous,
        )
    report = lint_ids(builder.build(Provenance(name="test")))
    assert [each.code for each in report.findings] == ["dropped_prefix"]
    assert report.findings[0].example.endswith("; 0 where helpers are held against themselves")
    assert report.after_all is None


# --- sessions --------------------------------------------------------------------------------------


def local(name, *lengths, scope, outputs=None):
    """A session with ids of its own that grows through these numbers of blocks."""
    return [
        (
            name,
            list(range(length)),
            {"scope": scope, "output_tokens": (outputs or lengths)[turn]},
        )
        for turn, length in enumerate(lengths)
    ]


def test_copies_of_sessions_with_ids_of_their_own():
    trace = trace_of(
        *local("a", 2, 3, 4, scope=1),
        *local("b", 2, 3, 4, scope=2),
        *local("c", 2, 3, 4, scope=3, outputs=[2, 3, 5]),
        *local("d", 2, 3, 4, scope=4),
    )
    found = finding(lint_ids(trace), "duplicate_sessions")
    assert (found.count, found.num_total, found.counted, found.confidence) == (2, 4, "sessions", "likely")
    assert found.example == "1 groups; session 2 repeats session 1"


def test_copies_of_sessions_with_shared_ids():
    turns = ([1, 2], [1, 2, 3], [1, 2, 3, 4])
    other = ([1, 5], [1, 5, 3], [1, 5, 3, 4])
    rows = [(name, ids) for name, each in (("a", turns), ("b", other), ("c", turns)) for ids in each]
    found = finding(lint_ids(trace_of(*rows)), "duplicate_sessions")
    assert (found.count, found.confidence) == (1, "certain")
    assert found.example.endswith("session 3 repeats session 1")


def test_sessions_that_start_alike():
    rows = [
        *local("a", 2, 3, 4, 5, 6, 9, scope=1),
        *local("b", 2, 3, 4, 5, 6, 8, scope=2),
        *local("c", 2, 3, 4, 5, 7, 8, scope=3),
        *local("d", 2, 3, 4, 5, scope=4),
    ]
    found = finding(lint_ids(trace_of(*rows)), "forks")
    assert (found.count, found.num_total) == (2, 4)


def test_ids_of_one_session_used_for_all():
    rows = [(f"s{number}", list(range(length))) for number, length in enumerate((5, 9, 3, 7, 12, 6))]
    found = finding(lint_ids(trace_of(*rows)), "local_ids")
    assert (found.count, found.num_total) == (5, 6)
    spread = [
        (f"s{number}", [*range(length), 100 + number]) for number, length in enumerate((5, 9, 3, 7, 12))
    ]
    assert "local_ids" not in codes(trace_of(*spread))


# --- clocks and sizes ------------------------------------------------------------------------------


def test_a_coarse_clock():
    rows = [(None, [number], {"arrival_ms": number // 3 * 3000, "session": None}) for number in range(30)]
    found = finding(lint_ids(trace_of(*rows)), "coarse_clock")
    assert (found.count, found.example) == (30, "10 different arrivals, none closer than 3 s")
    fine = [(None, [number], {"arrival_ms": number // 3 * 100}) for number in range(30)]
    assert "coarse_clock" not in codes(trace_of(*fine))


def test_gaps_exactly_on_a_time_to_live():
    times = [0, 60_000, 120_000, 180_001, 240_001, 300_001, 360_001]
    rows = [("a", [1, 2], {"arrival_ms": time_ms}) for time_ms in times]
    found = finding(lint_ids(trace_of(*rows)), "gaps_on_ttl")
    assert (found.count, found.num_total, found.example) == (5, 6, "5 re-uses after exactly 60 s")


@pytest.mark.parametrize(("block_tokens", "is_found"), [(16, True), (110, False), (128, False), (512, True)])
def test_a_block_size_that_does_not_fit(block_tokens, is_found):
    trace = trace_of(*[("a", list(range(10)))] * 3, block_tokens=block_tokens)
    assert ("block_size" in codes(trace)) is is_found
    if is_found:
        found = finding(lint_ids(trace), "block_size")
        assert found.example == f"ids cover 128 tokens each (median), read as {block_tokens}; 128 is usual"


def test_ids_that_name_content():
    trace = trace_of(("a", [1, 2, 3]), ("b", [4, 2, 5]))
    found = finding(lint_ids(trace), "content_ids")
    assert (found.count, found.counted, found.confidence) == (6, "ids", "certain")


def test_prompts_without_reuse():
    trace = trace_of((None, [1, 2]), (None, [1, 3]), (None, [1, 2, 4]))
    report = lint_ids(trace)
    found = finding(report, "no_reuse")
    assert (found.count, found.example.split(";")[0]) == (2, f"{4 * B} input tokens")
    assert not report.sees_turns
    assert report.misses == (MissShare("new_text", 4 * B),)


def test_tokens_that_no_id_covers():
    trace = trace_of(("a", [1, 2], {"input_tokens": 2 * B + 50}))
    assert MissShare("uncovered", 50) in lint_ids(trace).misses


def test_lengths_only():
    report = lint_ids(trace_of(*[(None, [], {"input_tokens": 100})] * 3))
    assert (report.findings, report.misses) == ((), ())
    assert report.before == HitRate(300, 0)


# --- walks -----------------------------------------------------------------------------------------


def test_walks_on_a_trace_that_was_cut():
    """`only` keeps the numbers of the whole forest: known blocks are counted anew."""
    trace = trace_of(("a", [1, 2, 3]), ("b", [1, 2, 4]), ("a", [1, 2, 3, 5]), ("b", [1, 7]))
    assert known_blocks(trace).tolist() == [0, 2, 3, 1]
    later = trace.only(np.array([1, 2, 3]))
    assert known_blocks(later).tolist() == [0, 2, 1]
    assert shared_blocks(trace, np.array([0, 1, 0]), np.array([2, 3, 1])).tolist() == [3, 1, 2]
    assert reuse_ages_ms(trace, known_blocks(trace)).tolist() == [-1, 1000, 2000, 1000]
