"""KV events: two encodings, three kinds of captures, and the requests that stores tell."""

import json
import struct
from pathlib import Path

import msgspec
import pytest

from warmset.errors import TraceFormatError
from warmset.trace import ReadOptions, read_trace
from warmset.trace.readers.kv_messages import message_end

START_S = 1_780_000_000.0


def stored(*hashes: object, parent: object = None, size: int = 16, medium: str = "GPU") -> dict:
    return {
        "type": "BlockStored",
        "block_hashes": list(hashes),
        "parent_block_hash": parent,
        "token_ids": list(range(size * len(hashes))),
        "block_size": size,
        "lora_id": None,
        "medium": medium,
    }


def removed(*hashes: object) -> dict:
    return {"type": "BlockRemoved", "block_hashes": list(hashes), "medium": "GPU"}


# Two prompts of three blocks that share two, one later turn, an eviction and its return.
EVENTS = [
    (0.0, stored(1, 2, 3)),
    (0.5, stored(4, parent=2)),
    (60.0, stored(5, 6, parent=3)),
    (60.4, stored(7, parent=6)),  # 0.4 s later where the last one ended: the same request
    (70.0, removed(7, 6)),
    (75.0, stored(6, 7, parent=5)),
]


def as_array(event: dict) -> list:
    return list(event.values())


def batches(encode=dict) -> list[list]:
    return [[START_S + seconds, [encode(event)], 0] for seconds, event in EVENTS]


def write_msgpack(path: Path, messages: list, *, prefix: bool = False) -> Path:
    packed = [msgspec.msgpack.encode(message) for message in messages]
    path.write_bytes(b"".join((struct.pack(">I", len(each)) if prefix else b"") + each for each in packed))
    return path


def write_json(path: Path, messages: list) -> Path:
    path.write_text("".join(json.dumps(message) + "\n" for message in messages), encoding="utf-8")
    return path


def frames(messages: list, first: int = 7, step: int = 1) -> list:
    return [
        [b"kv-events", struct.pack(">q", first + step * number), msgspec.msgpack.encode(message)]
        for number, message in enumerate(messages)
    ]


CAPTURES = {
    "maps": lambda path: write_msgpack(path, batches()),
    "arrays": lambda path: write_msgpack(path, batches(as_array)),
    "lengths": lambda path: write_msgpack(path, batches(), prefix=True),
    "frames": lambda path: write_msgpack(path, frames(batches())),
    "json_maps": lambda path: write_json(path, batches()),
    "json_arrays": lambda path: write_json(path, batches(as_array)),
    "json_events": lambda path: write_json(
        path, [{**event, "ts": START_S + seconds} for seconds, event in EVENTS]
    ),
    "json_objects": lambda path: write_json(
        path, [{"ts": ts, "events": events, "data_parallel_rank": 0} for ts, events, _ in batches()]
    ),
}


@pytest.mark.parametrize("capture", CAPTURES)
def test_every_capture_tells_the_same_requests(tmp_path, capture):
    trace = read_trace([CAPTURES[capture](tmp_path / "capture")])
    assert trace.block_tokens == 16
    assert trace.provenance.epoch_ms == 1_780_000_000_000
    assert trace.arrival_ms.tolist() == [0, 500, 60_000, 75_000]
    # 1 2 3 | 1 2 4 | 1 2 3 5 6 7 | the same again, after its end was evicted
    assert trace.num_blocks.tolist() == [3, 3, 6, 6]
    assert trace.input_tokens.tolist() == [48, 48, 96, 96]
    assert trace.output_tokens.tolist() == [0, 0, 0, 0]
    assert trace.node_parent.tolist() == [-1, 0, 1, 1, 2, 4, 5]
    assert trace.leaf.tolist() == [2, 3, 6, 6]
    assert trace.duration_ms.tolist() == [0, 0, 400, 0]
    assert [trace.kind_names[kind] for kind in trace.kind] == ["stored", "stored", "stored", "restored"]
    assert any("lower bound" in assumption for assumption in trace.provenance.assumptions)
    found = {finding.code: finding for finding in trace.findings}
    assert {code: finding.count for code, finding in found.items()} == {
        "removed_blocks": 2,
        "restored_blocks": 2,
    }
    assert "back after 5 s by the median" in found["restored_blocks"].first_example


def counts(trace) -> dict[str, int]:
    return {finding.code: finding.count for finding in trace.findings}


def test_lost_batches_are_counted(tmp_path):
    path = write_msgpack(tmp_path / "capture", frames(batches(), step=3))
    assert counts(read_trace([path]))["sequence_gaps"] == 2 * (len(EVENTS) - 1)


def test_what_concerns_another_cache_or_is_not_known_is_counted(tmp_path):
    events = [
        stored(1, 2),
        stored(1, 2, medium="CPU"),
        {**stored(8), "group_idx": 1},
        {"type": "BlockPondered", "block_hashes": [1]},
        {"type": "AllBlocksCleared"},
        stored(3, parent=99),
        removed(77),
    ]
    path = write_msgpack(tmp_path / "capture", [[START_S, events, None]])
    trace = read_trace([path])
    assert trace.num_requests == 2
    assert counts(trace) == {
        "other_mediums": 1,
        "other_groups": 1,
        "unknown_events": 1,
        "cleared_caches": 1,
        "unknown_parents": 1,
        "removed_before_stored": 1,
    }


def test_ranks_have_caches_of_their_own(tmp_path):
    path = write_msgpack(tmp_path / "capture", [[START_S, [stored(1, 2)], 0], [START_S, [stored(1, 2)], 1]])
    assert read_trace([path]).num_nodes == 4


@pytest.mark.parametrize("name", [2**64 - 1, -1, b"\x07" * 32])
def test_a_hash_is_a_number_or_bytes(tmp_path, name):
    path = write_msgpack(tmp_path / "capture", [[START_S, [stored(name), stored(5, parent=name)], 0]])
    trace = read_trace([path])
    assert trace.num_nodes == 2
    assert trace.leaf.tolist() == [1]


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ([[START_S, "BlockStored", 0]], "is no batch of events"),
        ([["BlockStored", [], 0]], "the time of the batch is 'BlockStored'"),
        ([[float("nan"), [stored(1)], 0]], "not a number of seconds"),
        ([[START_S, [stored()], 0]], "block_hashes is missing or empty"),
        ([[START_S, [stored(1, size=0)], 0]], "block_size is 0"),
        ([[START_S, [stored(1.5)], 0]], "which is no hash"),
        ([[START_S, [7, "BlockStored"], 0]], "is no event"),
        ([[START_S, [stored(1), stored(2, size=32)], 0]], "block_size is 32, and 16 before"),
    ],
)
def test_bad_events_are_refused_with_their_place(tmp_path, messages, says):
    path = write_msgpack(tmp_path / "capture", messages)
    with pytest.raises(TraceFormatError, match=rf"^{path}, byte 0: .*{says}"):
        read_trace([path])


def test_a_capture_that_breaks_off(tmp_path):
    path = write_msgpack(tmp_path / "capture", batches())
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    last = len(whole) - len(msgspec.msgpack.encode(batches()[-1]))
    with pytest.raises(TraceFormatError, match=rf"byte {last}: the last message is cut off"):
        read_trace([path])
    path.write_bytes(whole[:last] + b"\xc1" + whole[last + 1 :])
    with pytest.raises(TraceFormatError, match=rf"byte {last}: is no MessagePack"):
        read_trace([path])


def test_another_block_size_than_the_one_given(tmp_path):
    path = write_msgpack(tmp_path / "capture", batches())
    with pytest.raises(TraceFormatError, match=r"block_size is 16: leave --block-tokens 32 out"):
        read_trace([path], options=ReadOptions(block_tokens=32))


@pytest.mark.parametrize(
    "value",
    [
        *(None, True, 0, 127, 128, 2**16, 2**32, 2**63, -1, -32, -33, -200, -(2**20), -(2**40), 0.5),
        *("", "a" * 31, "a" * 32, "a" * 300, "a" * 70_000, b"", b"x" * 300, b"x" * 70_000),
        *([], [1] * 15, [1] * 16, [[1, {"a": [None]}]] * 70_000, {}, {str(n): n for n in range(20)}),
        {str(n): [n] for n in range(70_000)},
    ],
    ids=lambda value: f"{type(value).__name__}-{len(str(value))}-{str(value)[:4]}",
)
def test_where_a_message_ends(value):
    import numpy as np

    packed = msgspec.msgpack.encode(value)
    codes = np.frombuffer(packed + b"\x01", dtype=np.uint8)
    assert message_end(codes, 0) == len(packed)
    assert message_end(codes[: len(packed) - 1], 0) == -1
