from pathlib import Path

import pytest

from tests.support.text_logs import DATA, counts, detected, read_log, write_lines
from warmset.errors import TraceFormatError

ROW = {"timestamp": 1772107200000000, "session_id": "s", "input": "abc", "output": "d"}


def test_rows_are_sorted_and_counted_in_whole_milliseconds():
    log = DATA / "lmcache_agent" / "agent.jsonl"
    assert detected(log) == ["lmcache_agent"]
    trace = read_log("lmcache_agent", log)
    # 10 characters, 17 that start with them, and none; in blocks of 8, which share the first.
    assert trace.provenance.epoch_ms == 1_772_107_200_000  # 999 µs later is the same millisecond
    assert trace.arrival_ms.tolist() == [0, 1500, 2000]
    assert trace.input_tokens.tolist() == [10, 17, 0]
    assert trace.output_tokens.tolist() == [5, 2, 0]
    assert trace.num_blocks.tolist() == [2, 3, 0]
    assert trace.num_nodes == 4
    assert trace.session.tolist() == [0, 0, 1]
    assert counts(trace) == {"empty_prompts": 1, "no_output": 1}


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({**ROW, "timestamp": None}, r"Expected `.*` - at `\$\.timestamp`"),
        ({**ROW, "timestamp": 5}, "timestamp is 5: a time must be"),
        ({**ROW, "input": 5}, r"at `\$\.input`"),
        ({"input": "abc"}, "missing required field `timestamp`"),
    ],
)
def test_unusable_rows_say_where_and_why(tmp_path: Path, row, why):
    with pytest.raises(TraceFormatError, match=rf"log\.jsonl:2: .*{why}"):
        read_log("lmcache_agent", write_lines(tmp_path / "log.jsonl", ROW, row))


def test_a_request_in_input_is_a_gateway_log(tmp_path: Path):
    row = {**ROW, "input": '{"model": "m", "messages": [{"role": "user", "content": "x"}]}'}
    assert detected(write_lines(tmp_path / "log.jsonl", row)) == ["gateway"]
