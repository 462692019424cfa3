"""Closed loops in Mooncake's schema: whole prompts of Dynamo, and AIPerf's turns of new input only."""

import re

import pytest

from tests.support.row_logs import DATA, findings, is_matched_by, read_log, refusal, write_lines

FOLDER = DATA / "dynamo"
DELAYED = (
    "Turns with a delay and no time ({} of them) are taken to arrive that long after the turn before, as if "
    "answers took no time."
)
PARTS = (
    "Later turns hold new input only: a prompt is taken to be the turns and answers before it and the new "
    "input, and answers to be shared by no two sessions."
)


def turn(session: object = "s", **changes: object) -> dict[str, object]:
    return {"session_id": session, "input_length": 600, "output_length": 9, "hash_ids": [1, 2]} | changes


def test_whole_prompts():
    """Counted by hand; names of fields as in Dynamo's schema, and their aliases."""
    trace = read_log("dynamo", FOLDER / "whole_prompts.jsonl")
    assert trace.block_tokens == 512
    assert trace.arrival_ms.tolist() == [1000, 1251, 1500, 3251]
    assert trace.input_tokens.tolist() == [1024, 1300, 512, 1536]
    assert trace.output_tokens.tolist() == [100, 50, 10, 5]
    assert trace.node_parent.tolist() == [-1, 0, 1, 1]
    assert trace.leaf.tolist() == [1, 2, 0, 3]
    assert trace.session.tolist() == [0, 0, 1, 0]
    assert trace.previous.tolist() == [-1, 0, -1, 1]
    assert trace.think_ms.tolist() == [-1, 251, -1, 2000]
    assert trace.provenance.assumptions == (DELAYED.format(2),)
    assert findings(trace) == {
        "assumed_arrivals": (2, "line 3: no time: it comes its delay after the turn before")
    }


def test_new_input_only():
    """Counted by hand. In blocks of 512, prompts and where they end:

    sess-1: 1200 | +300+100 = 1600 = 3 full and 64 | +36+512 = 2148 = 4 full and 100
    sess-2: 1100 | +50+30 = 1180 = 2 full and 156
    Blocks 0 and 1 are full in both first turns; what follows an answer belongs to its session.
    """
    trace = read_log("dynamo", FOLDER / "new_input_only.jsonl")
    assert trace.arrival_ms.tolist() == [0, 500, 510, 2450, 2550]
    assert trace.input_tokens.tolist() == [1200, 1100, 1180, 1600, 2148]
    assert trace.num_blocks.tolist() == [3, 3, 3, 4, 5]
    assert trace.node_parent.tolist() == [-1, 0, 1, 1, 1, 1, 5, 5, 7]
    assert trace.leaf.tolist() == [2, 3, 4, 6, 8]
    assert trace.previous.tolist() == [-1, -1, 1, 0, 3]
    assert trace.think_ms.tolist() == [-1, -1, 10, 2450, 100]
    assert trace.provenance.assumptions == (DELAYED.format(3), PARTS)
    assert set(findings(trace)) == {"assumed_arrivals"}


def test_a_closed_loop_without_times():
    trace = read_log("dynamo", FOLDER / "closed_loop.jsonl", session_gap_ms=60_000)
    assert trace.arrival_ms.tolist() == [0, 500, 60_000]
    assert trace.session.tolist() == [0, 0, 1]
    assert trace.think_ms.tolist() == [-1, 500, -1]
    clock, delayed = sorted(trace.provenance.assumptions)
    assert delayed == DELAYED.format(1)
    assert clock == ("The log has no common clock: sessions are taken to start 60 s apart, in file order.")


@pytest.mark.parametrize("name", ["whole_prompts.jsonl", "new_input_only.jsonl", "closed_loop.jsonl"])
def test_it_is_told_by_its_rows(name):
    assert is_matched_by(FOLDER / name) == ["dynamo"]


@pytest.mark.parametrize(
    ("row", "names"),
    [
        ({"timestamp": 0, "input_length": 9, "hash_ids": [1]}, ["mooncake"]),
        ({"timestamp": 0, "input_length": 9, "hash_ids": [1], "delay": 5}, ["dynamo"]),
        ({"input_length": 9, "hash_ids": [1]}, ["dynamo"]),
        ({"timestamp": 0, "input_length": 9, "output_length": 4}, ["dynamo"]),
        ({"created_time": 0, "input_tokens": 9, "output_tokens": 4, "hash_ids": [1]}, ["dynamo"]),
        ({"input_tokens": 9, "output_tokens": 4, "model": "m"}, []),
        ({"text_input": "hello", "output_length": 4, "delay": 4}, []),
        ({"messages": [], "input_length": 4, "delay": 4}, []),
        ({"input_length": 9, "hash_ids": [1], "block_size": 16}, ["kvcache_ai"]),
    ],
    ids=repr,
)
def test_what_belongs_to_whom(tmp_path, row, names):
    assert is_matched_by(write_lines(tmp_path / "t", row)) == names


def test_the_log_may_say_that_prompts_are_whole(tmp_path):
    rows = [turn(context_mode="message_array_with_responses", timestamp=n, hash_ids=[n, 9]) for n in range(3)]
    path = write_lines(tmp_path / "t", *rows)
    assert read_log("dynamo", path).input_tokens.tolist() == [600, 600, 600]


def test_the_log_may_say_that_turns_are_parts(tmp_path):
    rows = [turn(context_mode="deltas_without_responses", timestamp=n) for n in range(3)]
    path = write_lines(tmp_path / "t", *rows)
    assert read_log("dynamo", path).input_tokens.tolist() == [600, 1209, 1818]


@pytest.mark.parametrize(
    ("lengths", "inputs"),
    [([(300, 40), (150, 20)], [300, 490]), ([(300, 40), (340, 20)], [300, 340])],
    ids=["shorter", "grown"],
)
def test_lengths_alone_show_whether_turns_are_parts(tmp_path, lengths, inputs):
    rows = [
        {"session_id": "s", "input_length": given, "output_length": answer, "delay": 2}
        for given, answer in lengths
    ]
    trace = read_log("dynamo", write_lines(tmp_path / "t", *rows))
    assert trace.input_tokens.tolist() == inputs
    assert not trace.has_blocks
    assert set(findings(trace)) == {"assumed_arrivals"}


def test_a_compacted_prompt_among_whole_ones(tmp_path):
    ids = [[1, 2], [1, 2, 3], [7, 2], [7, 2, 8], [7, 2, 8, 9]]
    rows = [
        turn(timestamp=n, delay=1, hash_ids=each, input_length=512 * len(each)) for n, each in enumerate(ids)
    ]
    trace = read_log("dynamo", write_lines(tmp_path / "t", *rows))
    assert trace.num_blocks.tolist() == [2, 3, 2, 3, 4]


def test_parts_of_exactly_one_block(tmp_path):
    """No partial block: the next turn has all blocks of the one before."""
    rows = [turn(input_length=512, output_length=512, hash_ids=[n], delay=1) for n in range(3)]
    trace = read_log("dynamo", write_lines(tmp_path / "t", *rows))
    assert trace.num_blocks.tolist() == [1, 3, 5]
    assert trace.node_parent.tolist() == [-1, 0, 1, 2, 3]


def test_an_answer_of_unknown_length(tmp_path):
    rows = [turn(output_length=None, timestamp=0, delay=3)]
    assert findings(read_log("dynamo", write_lines(tmp_path / "t", *rows)))["unknown_output"][0] == 1


def test_neither_times_nor_sessions(tmp_path):
    rows = [turn(None), turn(None)]
    trace = read_log("dynamo", write_lines(tmp_path / "t", *rows))
    assert trace.arrival_ms.tolist() == [0, 0]
    assert trace.provenance.assumptions == (
        "The log has neither times nor sessions: all requests are taken to arrive at once, in file order.",
    )


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([turn(input_length=None)], "1: input_length is missing"),
        ([turn(input_length=-1)], r"1: input_length is -1: it must lie between 0 and \d+"),
        ([turn(output_length=2**60)], r"1: output_length is \d+: it must lie between 0 and \d+"),
        ([turn(delay=-1)], r"1: delay is -1: it must lie between 0 and \d+"),
        ([turn(delay=1e300)], r"1: delay is 1e\+300: it must lie between 0 and \d+"),
        ([turn(timestamp=-1)], r"1: timestamp is -1: it must lie between 0 and \d+"),
        ([turn(timestamp="0")], "1: Expected .*timestamp.*"),
        ([turn(hash_ids=[1.5])], "1: Expected .*hash_ids.*"),
        ([turn(messages=[])], "1: holds text, among rows of lengths: import the rows with text apart"),
        (
            [turn(), turn(timestamp=4)],
            "2: has a timestamp, and the first row has none: give all sessions one",
        ),
        (
            [turn(timestamp=4), turn("other")],
            "2: has no timestamp, and goes on from no turn that has one: give it one",
        ),
        (
            [turn(), turn(None)],
            "2: session_id must be on all rows or on none where there are no timestamps",
        ),
        (
            [turn(timestamp=4), turn(timestamp=1_700_000_000_000)],
            "2: timestamp counts from 1970, and from the start of the log before: bring all to one",
        ),
    ],
    ids=lambda value: str(value)[-60:],
)
def test_a_bad_row(tmp_path, rows, why):
    assert re.fullmatch(f":{why}", refusal("dynamo", write_lines(tmp_path / "t", *rows)))


def test_a_block_size_that_does_not_fit_is_refused(tmp_path):
    rows = [turn(input_length=600 + n, hash_ids=list(range(38)), delay=1) for n in range(9)]
    assert refusal("dynamo", write_lines(tmp_path / "t", *rows)).endswith("try --block-tokens 16")
