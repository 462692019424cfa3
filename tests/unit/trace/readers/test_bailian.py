"""Bailian JSONL: chats tied to the one before, sessions from their roots."""

import re

import pytest

from tests.support.row_logs import DATA, findings, is_matched_by, read_log, refusal, write_lines

CHATS = DATA / "bailian" / "chats.jsonl"


def chat(number: int, parent: object = -1, **changes: object) -> dict[str, object]:
    row = {
        "chat_id": number,
        "parent_chat_id": parent,
        "timestamp": 0.0,
        "input_length": 20,
        "output_length": 1,
        "type": "text",
        "turn": 1,
        "hash_ids": [2 * number, 2 * number + 1],
    }
    return row | changes


def test_the_fixture():
    """Counted by hand."""
    trace = read_log("bailian", CHATS)
    assert trace.block_tokens == 16
    assert trace.arrival_ms.tolist() == [0, 500, 61_114, 90_001, 100_250]
    assert trace.input_tokens.tolist() == [40, 16, 70, 33, 5]
    assert trace.output_tokens.tolist() == [9, 4, 30, 1, 2]
    assert trace.num_blocks.tolist() == [3, 1, 5, 3, 1]
    assert trace.node_parent.tolist() == [-1, 0, 1, 1, 3, 4, 0, 6, -1]
    assert trace.leaf.tolist() == [2, 0, 5, 7, 8]
    assert trace.session.tolist() == [0, 1, 0, 0, 2]
    assert trace.previous.tolist() == [-1, -1, 0, 2, -1]
    assert [trace.kind_names[kind] for kind in trace.kind] == ["text", "search", "text", "image", "file"]
    assert findings(trace) == {"unknown_parents": (1, "line 5: chat 99 is not in the log")}
    assert trace.provenance.epoch_ms is None


def test_it_is_told_by_its_rows():
    assert is_matched_by(CHATS) == ["bailian"]


def test_a_parent_may_stand_below_its_child(tmp_path):
    rows = [chat(3, 2, timestamp=2), chat(2, 1, timestamp=1), chat(1)]
    trace = read_log("bailian", write_lines(tmp_path / "t", *rows))
    assert trace.session.tolist() == [0, 0, 0]
    assert trace.previous.tolist() == [-1, 0, 1]
    assert findings(trace) == {"unsorted_rows": (2, "line 2: timestamp 1000 after 2000")}


def test_a_parent_may_stand_in_another_file(tmp_path):
    first = write_lines(tmp_path / "1", chat(2, 1, timestamp=1))
    second = write_lines(tmp_path / "2", chat(1))
    trace = read_log("bailian", first, second)
    assert trace.previous.tolist() == [-1, 0]
    assert trace.session.tolist() == [0, 0]


def test_chats_that_share_a_lost_parent_are_one_session(tmp_path):
    trace = read_log("bailian", write_lines(tmp_path / "t", chat(1, 7), chat(2, 7), chat(3)))
    assert trace.session.tolist() == [0, 0, 1]
    assert trace.previous is None
    assert findings(trace)["unknown_parents"][0] == 2


@pytest.mark.parametrize("rows", [[(1, 1)], [(1, 2), (2, 1)], [(1, 2), (2, 3), (3, 1)]])
def test_chats_in_a_circle_come_to_an_end(tmp_path, rows):
    trace = read_log("bailian", write_lines(tmp_path / "t", *(chat(*row) for row in rows)))
    assert set(trace.session.tolist()) == {0}


def test_a_chat_that_is_there_twice_is_counted(tmp_path):
    trace = read_log("bailian", write_lines(tmp_path / "t", chat(1), chat(1)))
    assert findings(trace)["repeated_chats"] == (1, "line 2: chat 1 again")
    assert trace.num_requests == 2


@pytest.mark.parametrize("root", [-1, "-1", None], ids=repr)
def test_roots(tmp_path, root):
    trace = read_log("bailian", write_lines(tmp_path / "t", chat(1, root)))
    assert trace.previous is None
    assert trace.findings == ()


def test_a_chain_of_many_turns(tmp_path):
    rows = [chat(n, n - 1 if n else -1, timestamp=n) for n in range(3000)]
    trace = read_log("bailian", write_lines(tmp_path / "t", *rows))
    assert set(trace.session.tolist()) == {0}
    assert trace.previous.tolist() == list(range(-1, 2999))


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"chat_id": None}, "chat_id is None, neither a whole number nor text"),
        ({"chat_id": 1.5}, "chat_id is 1.5, neither a whole number nor text"),
        ({"parent_chat_id": []}, r"parent_chat_id is \[\], neither a whole number nor text"),
        ({"timestamp": "now"}, "timestamp is 'now', not a number"),
        ({"timestamp": -0.5}, r"timestamp is -0.5: it must lie between 0 and \d+"),
        ({"input_length": 1.5}, "input_length is 1.5, not a whole number"),
        ({"output_length": -1}, r"output_length is -1: it must lie between 0 and \d+"),
        ({"hash_ids": None}, "hash_ids is not a list"),
        ({"type": 3}, r"Expected .*type.*"),
    ],
)
def test_a_bad_row(tmp_path, changes, why):
    path = write_lines(tmp_path / "t", chat(1), chat(2, **changes))
    assert re.fullmatch(f":2: {why}", refusal("bailian", path))


def test_a_block_size_that_does_not_fit_is_refused():
    text = refusal("bailian", CHATS, block_tokens=512)
    assert text.endswith(
        "rows have another number of hash_ids than 512-token blocks need: try --block-tokens 16"
    )
