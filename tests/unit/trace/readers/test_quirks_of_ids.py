"""What real logs of ids and lengths do: the quirks of the notes on real traces (section 6), one by one."""

import gzip

import pytest
import zstandard

from tests.support.row_logs import DATA, findings, is_matched_by, read_log, refusal, write_lines
from tests.support.traces import mooncake_row

GMI_LIKE = DATA / "mooncake" / "gmi_like.jsonl"
NS = 1_712_000_000_000_000_000
CSV = "TIMESTAMP,ContextTokens,GeneratedTokens\n"


def mooncake(**changes: object) -> dict[str, object]:
    return mooncake_row(**changes)


def chat(**changes: object) -> dict[str, object]:
    return mooncake(chat_id=1, parent_chat_id=-1, hash_ids=list(range(38))) | changes


def lookup(**changes: object) -> dict[str, object]:
    return {"timestamp": 1, "chunk_size": 256, "seq_len": 600, "chunk_hashes": ["0xa", "0xb"]} | changes


# --- 1 and 2: units and starts of time -------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "epoch_ms"),
    [
        ("mooncake", [mooncake(timestamp=ms) for ms in (0, 1500)], None),
        ("mooncake", [mooncake(timestamp=1_712_000_000_000 + ms) for ms in (0, 1500)], NS // 10**6),
        ("mooncake", [mooncake(timestamp=str(NS + ns)) for ns in (0, 1_500_000_000)], NS // 10**6),
        ("bailian", [chat(timestamp=seconds) for seconds in (0.0, 1.5)], None),
        ("lmcache_lookup", [lookup(timestamp=NS // 10**9 + s) for s in (0, 1.5)], NS // 10**6),
        ("dynamo", [{"input_length": 1, "timestamp": ms} for ms in (0, 1500.4)], None),
        ("azure", [CSV + "2024-04-01 19:33:20.0000000,1,1", "2024-04-01 19:33:21.5000000,1,1"], NS // 10**6),
    ],
    ids=["ms", "epoch_ms", "ns_as_text", "float_s", "epoch_s", "float_ms", "seven_decimals"],
)
def test_1_and_2_every_unit_is_milliseconds_from_the_start(tmp_path, name, content, epoch_ms):
    trace = read_log(name, write_lines(tmp_path / "t", *content))
    assert trace.arrival_ms.tolist() == [0, 1500]
    assert trace.provenance.epoch_ms == epoch_ms


# --- 3 and 4: clocks -------------------------------------------------------------------------------


def test_3_ties_keep_file_order_and_gaps_stay_exact(tmp_path):
    times = [0, 0, 3000, 3000, 3000, 5999]
    rows = [mooncake(timestamp=ms, output_length=n) for n, ms in enumerate(times, start=1)]
    trace = read_log("mooncake", write_lines(tmp_path / "t", *rows))
    assert trace.output_tokens.tolist() == [1, 2, 3, 4, 5, 6]
    assert (trace.arrival_ms[5] - trace.arrival_ms[2]).item() == 2999


@pytest.mark.parametrize(
    ("name", "late", "early"),
    [
        ("mooncake", mooncake(timestamp=9), mooncake(timestamp=4)),
        ("bailian", chat(timestamp=9), chat(timestamp=4, chat_id=2)),
        ("lmcache_lookup", lookup(timestamp=9), lookup(timestamp=4)),
        (
            "kvcache_ai",
            {"block_size": 512, **mooncake(timestamp=9)},
            {"block_size": 512, **mooncake(timestamp=4)},
        ),
        ("azure", CSV + "2024-04-01 19:33:20,1,1", "2024-04-01 19:33:19,1,1"),
        ("burstgpt", "Timestamp,Request tokens,Response tokens\n9,1,1", "4,1,1"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isidentifier() else "",
)
def test_4_rows_out_of_order_are_sorted_and_counted(tmp_path, name, late, early):
    trace = read_log(name, write_lines(tmp_path / "t", late, early))
    assert trace.arrival_ms[0] < trace.arrival_ms[1]
    assert findings(trace)["unsorted_rows"][0] == 1


# --- 5, 6 and 7: ids -------------------------------------------------------------------------------


def test_5_a_partial_last_block_has_an_id_or_not(tmp_path):
    for name, row, found in (
        ("mooncake", mooncake(input_length=600, hash_ids=[1, 2]), set()),
        ("mooncake", mooncake(input_length=600, hash_ids=[1]), {"short_hash_ids"}),
        ("lmcache_lookup", lookup(seq_len=600), {"unknown_output"}),
    ):
        assert set(findings(read_log(name, write_lines(tmp_path / "t", row)))) == found


def test_5_ids_that_lengths_do_not_match_are_kept():
    """Counted by hand: the second row has 244 tokens more than its ids cover, the third has fewer."""
    trace = read_log("mooncake", GMI_LIKE, block_tokens=32)
    assert trace.num_requests == 4
    assert trace.num_blocks.tolist() == [3, 3, 4, 3]
    found = findings(trace)
    assert found["short_hash_ids"] == (2, "line 2: 3 ids for 340 tokens, expected 11")
    assert found["long_hash_ids"] == (1, "line 3: 4 ids for 20 tokens, expected 1")
    assert "3 of 4 rows" in found["odd_block_size"][1]


def test_6_the_block_size_is_a_choice_that_is_held_against_the_rows(tmp_path):
    rows = [
        mooncake(timestamp=n, input_length=100 * n, hash_ids=list(range(-(-100 * n // 16)))) for n in range(9)
    ]
    path = write_lines(tmp_path / "t", *rows)
    assert read_log("mooncake", path, block_tokens=16).block_tokens == 16
    assert refusal("mooncake", path).endswith("try --block-tokens 16")


def test_7_content_ids_are_chained_and_named():
    """Counted by hand: 11 follows 4000000001 and 15, 16 follows itself; thirteen ids make ten blocks."""
    trace = read_log("mooncake", GMI_LIKE, block_tokens=32)
    assert trace.node_parent.tolist() == [-1, 0, 1, 0, 3, -1, 5, 6, 7, 1]
    assert findings(trace)["content_ids"][0] == 13


def test_7_prefix_ids_are_not_taken_for_content_ids(tmp_path):
    rows = [mooncake(hash_ids=[1, 2]), mooncake(hash_ids=[1, 3]), mooncake(hash_ids=[1, 2])]
    assert read_log("mooncake", write_lines(tmp_path / "t", *rows)).findings == ()


# --- 9: ids of any writing -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "names",
    [
        (0, 1, 2),
        (1, 2, 3),
        (4_294_967_295, 17, 4_000_000_001),
        (2**64 - 1, 2**63, 2**63 - 1),
        (2**200, 2**100, -(2**100)),
        ("9f86d081884c7d65", "0000000000000001", "ffffffffffffffff"),
        ("a" * 64, "b" * 64, "c" * 64),
        (9, 5, 7),
    ],
    ids=["from_0", "from_1", "32_bit", "unsigned", "huge", "hex_16", "hex_64", "not_rising"],
)
def test_9_ids_are_names(tmp_path, names):
    first, second, third = names
    rows = [mooncake(hash_ids=[first, second]), mooncake(hash_ids=[first, third])]
    assert read_log("mooncake", write_lines(tmp_path / "t", *rows)).node_parent.tolist() == [-1, 0, 0]


# --- 12 and 13: what is empty or missing -----------------------------------------------------------


def test_12_empty_rows_are_kept_and_counted(tmp_path):
    rows = [
        mooncake(input_length=0, hash_ids=[]),
        mooncake(input_length=13, output_length=0, hash_ids=[1]),
        mooncake(input_length=13, output_length=1, hash_ids=[1]),
    ]
    trace = read_log("mooncake", write_lines(tmp_path / "t", *rows))
    assert trace.leaf.tolist() == [-1, 0, 0]
    assert findings(trace) == {"empty_prompts": (1, "line 1"), "no_output": (1, "line 2")}


def test_12_a_log_of_nothing_but_empty_prompts(tmp_path):
    row = mooncake(input_length=0, output_length=0, hash_ids=[])
    trace = read_log("mooncake", write_lines(tmp_path / "t", row, row))
    assert not trace.has_blocks


def test_13_logs_without_ids_have_lengths_and_times():
    trace = read_log("azure", DATA / "azure" / "2023.csv")
    assert (trace.num_nodes, trace.block_refs, trace.num_requests) == (0, 0, 3)
    assert trace.input_tokens.sum() == 374 + 396 + 879


def test_13_minus_one_is_no_parent(tmp_path):
    trace = read_log("bailian", write_lines(tmp_path / "t", chat()))
    assert trace.previous is None
    assert "unknown_parents" not in findings(trace)


# --- 17 and 18: files ------------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstandard.compress], ids=["plain", "gz", "zst"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["lf", "crlf"])
@pytest.mark.parametrize(
    "source",
    [
        "azure/2023.csv",
        "burstgpt/first.csv",
        "bailian/chats.jsonl",
        "dynamo/new_input_only.jsonl",
        "kvcache_ai/sglang.jsonl",
        "mooncake/gmi_like.jsonl",
    ],
)
@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "open"])
def test_17_ends_of_lines_and_packings_change_nothing(tmp_path, source, end, pack, is_closed):
    content = (DATA / source).read_bytes().replace(b"\r\n", b"\n").rstrip(b"\n").replace(b"\n", end)
    path = tmp_path / "copy"
    path.write_bytes(pack(content + (end if is_closed else b"")))
    name = source.partition("/")[0]
    copy, original = read_log(name, path), read_log(name, DATA / source)
    assert copy.arrival_ms.tolist() == original.arrival_ms.tolist()
    assert copy.input_tokens.tolist() == original.input_tokens.tolist()
    assert copy.node_parent.tolist() == original.node_parent.tolist()
    assert copy.findings == original.findings


def test_18_the_content_tells_the_format_and_not_the_name(tmp_path):
    for name in ("bailian/chats.jsonl", "azure/2024.csv", "dynamo/closed_loop.jsonl"):
        path = tmp_path / "mooncake_trace.jsonl"
        path.write_bytes((DATA / name).read_bytes())
        assert is_matched_by(path) == [name.partition("/")[0]]
