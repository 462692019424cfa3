"""WEKA sessions: clocks, sub-agents, local ids, and the real traces to the last request."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tests.support.weka import WEKA_ALL, WEKA_SAMPLE
from warmset.errors import InputError, TraceFormatError
from warmset.trace import ReadOptions, Trace, read_trace
from warmset.trace.builder import renumbered
from warmset.trace.readers import weka
from warmset.trace.readers.id_lists import cut_out
from warmset.trace.source import Input

DATA = Path(__file__).parents[3] / "data/traces/weka"


def request(t: float = 0.0, tokens: int = 128, **changes: Any) -> dict[str, Any]:
    """A good request; `...` takes a field out."""
    ids = list(range(1, 1 + max(tokens, 0) // 64))
    row = {"t": t, "type": "n", "model": "m", "in": tokens, "out": 1, "hash_ids": ids} | changes
    return {field: value for field, value in row.items() if value is not ...}


def marker(t: float, *requests: dict[str, Any]) -> dict[str, Any]:
    return {"t": t, "type": "subagent", "agent_id": "a", "requests": list(requests)}


def session(*requests: dict[str, Any], **changes: Any) -> dict[str, Any]:
    row = {"id": "s", "block_size": 64, "hash_id_scope": "local", "requests": list(requests)} | changes
    return {field: value for field, value in row.items() if value is not ...}


def write(path: Path, *sessions: object) -> Path:
    path.write_text("".join(f"{json.dumps(each)}\n" for each in sessions), encoding="utf-8")
    return path


def found(trace: Trace) -> dict[str, tuple[int, str]]:
    return {finding.code: (finding.count, finding.first_example) for finding in trace.findings}


def refusal(path: Path, **options: Any) -> str:
    """The one line that says what is wrong with this file."""
    with pytest.raises(InputError) as caught:
        read_trace([path], options=ReadOptions(**options))
    assert type(caught.value) is TraceFormatError
    text = str(caught.value)
    assert "\n" not in text
    assert len(text) < 500
    assert text.startswith(str(path))
    return text.removeprefix(str(path))


def columns(trace: Trace, *names: str) -> list[list[int]]:
    return [getattr(trace, name).tolist() for name in names]


# --- by hand ---------------------------------------------------------------------------------------


def test_two_sessions_by_hand():
    """In order of time; sessions lie a minute apart and begin with their first request, at 0.5 s and 0 s.

    a  130 in at   0        1 ─ 2           0 ─ 1
       64     at   2,500    9               2
       128    at   3,750    9 ─ 1           2 ─ 3
       200    at   9,500    1 ─ 2 ─ 3       0 ─ 1 ─ 4
    b  191    at  60,000    1 ─ 2           5 ─ 6
       63     at  62,000    none
       128    at  62,500    2 ─ 7           7 ─ 8
    """
    path = DATA / "relative.jsonl"
    trace = read_trace([path])
    assert trace.block_tokens == 64
    assert trace.arrival_ms.tolist() == [0, 2500, 3750, 9500, 60_000, 62_000, 62_500]
    assert trace.input_tokens.tolist() == [130, 64, 128, 200, 191, 63, 128]
    assert trace.output_tokens.tolist() == [10, 3, 4, 20, 0, 1, 1]
    assert trace.node_parent.tolist() == [-1, 0, -1, 2, 1, -1, 5, -1, 7]
    assert trace.leaf.tolist() == [1, 2, 3, 4, 6, -1, 8]
    assert trace.num_blocks.tolist() == [2, 1, 2, 3, 2, 0, 2]
    assert trace.session.tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert trace.previous.tolist() == [-1, -1, 1, 0, -1, 4, 5]
    assert [trace.kind_names[kind] for kind in trace.kind] == [
        *("main", "sub-agent", "sub-agent", "main"),
        *("main", "main", "main"),
    ]
    assert [trace.model_names[model] for model in trace.model] == [
        *("big", "small", "small", "big"),
        *("big", "big", "big"),
    ]
    assert trace.duration_ms.tolist() == [1500, 250, 500, -1, 2000, -1, -1]
    assert trace.think_ms.tolist() == [0, 0, 1000, 7500, 0, -1, -1]
    assert trace.cached_tokens is None
    assert trace.provenance.name == "relative.jsonl"
    assert trace.provenance.source == "WEKA kv-cache-tester sessions"
    assert trace.provenance.epoch_ms is None
    assert trace.provenance.assumptions == (
        "The log has no common clock: sessions are taken to start 60 s apart, in file order.",
    )
    content = {code: count for code, (count, _) in found(trace).items()}
    # `1` follows 9 and starts prompts of a, `2` follows 1 and starts a prompt of b: no real trace does so.
    assert content == {"no_output": 1, "content_ids": 12}
    assert found(trace)["no_output"][1].startswith(f"{path}:2")


def test_times_from_the_start_of_the_session_are_told():
    """The same four requests, with inner times that count from the session; over several lines."""
    one, other = read_trace([DATA / "absolute.json"]), read_trace([DATA / "relative.jsonl"])
    for name in ("arrival_ms", "input_tokens", "output_tokens", "num_blocks", "leaf", "previous"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()[:4], name
    assert found(one)["absolute_subagent_times"] == (1, "session 'c'")
    assert one.duration_ms.tolist() == [1500, -1, -1, -1]
    assert one.think_ms.tolist() == [-1, -1, -1, 7500]


def test_a_folder_is_read_as_its_files_in_a_row():
    trace = read_trace([DATA / "absolute.json", DATA / "relative.jsonl"])
    assert trace.session.tolist() == [0] * 4 + [1] * 4 + [2] * 3
    starts = [0, 2500, 3750, 9500]
    assert trace.arrival_ms.tolist() == [
        *starts,
        *(60_000 + ms for ms in starts),
        *(120_000, 122_000, 122_500),
    ]
    assert trace.num_nodes == 5 + 5 + 4  # no id of one session is known in another
    assert trace.provenance.name == "weka: 2 files"


# --- files -----------------------------------------------------------------------------------------


def test_a_pretty_printed_session_is_the_session(tmp_path):
    one = session(request(0), marker(1.0, request(0.5, hash_ids=[7, 8])), request(5.5, 192))
    expected = read_trace([write(tmp_path / "one.jsonl", one)])
    for indent in (0, 2, "\t"):
        for start in ("", "\n\n", "\ufeff"):
            path = tmp_path / "pretty.json"
            path.write_text(start + json.dumps(one, indent=indent) + "\n", encoding="utf-8")
            trace = read_trace([path])
            for name in ("arrival_ms", "input_tokens", "leaf", "node_parent", "previous", "kind"):
                assert columns(trace, name) == columns(expected, name), name


def test_blank_lines_between_sessions(tmp_path):
    (tmp_path / "t").write_text(
        "\n" + json.dumps(session(request())) + "\n\n \r\n" + json.dumps(session(request()))
    )
    assert read_trace([tmp_path / "t"]).session.tolist() == [0, 1]


def test_sessions_of_one_name_are_two_sessions(tmp_path):
    trace = read_trace(
        [write(tmp_path / "t", session(request(), request(1)), session(request(), request(1)))]
    )
    assert trace.session.tolist() == [0, 0, 1, 1]
    assert trace.previous.tolist() == [-1, 0, -1, 2]
    assert trace.num_nodes == 4


def test_a_gap_of_ones_own(tmp_path):
    path = write(tmp_path / "t", *(session(request(), request(1.5)) for _ in range(3)))
    trace = read_trace([path], options=ReadOptions(session_gap_ms=1000))
    assert trace.arrival_ms.tolist() == [0, 1000, 1500, 2000, 2500, 3500]
    assert trace.session.tolist() == [0, 1, 0, 2, 1, 2]
    assert "1 s apart" in trace.provenance.assumptions[0]


def test_an_empty_session_is_counted(tmp_path):
    path = write(tmp_path / "t", session(), session(request()), session())
    assert found(read_trace([path])) == {"empty_sessions": (2, f"{path}:1")}
    path = write(tmp_path / "t", session(), session())
    assert refusal(path) == ": holds no requests"


def test_a_session_of_markers_alone(tmp_path):
    path = write(tmp_path / "t", session(marker(4.0, request(0), request(2.0)), marker(9.0)))
    trace = read_trace([path])
    assert trace.arrival_ms.tolist() == [0, 2000]
    assert trace.previous.tolist() == [-1, 0]


@pytest.mark.parametrize(
    ("start", "is_weka"),
    [
        ({"hash_id_scope": "local", "requests": []}, True),
        (session(request()), True),
        (session(request(), hash_id_scope=...), True),
        (session(hash_id_scope=...), False),
        ({"timestamp": 1, "input_length": 2, "hash_ids": [1], "block_size": 64}, False),
        ({"timestamp": 1, "requests": [1], "t": 1}, False),
    ],
)
def test_what_is_taken_for_a_session(tmp_path, start, is_weka):
    for indent in (None, 2):
        path = tmp_path / "t"
        path.write_text(json.dumps(start, indent=indent))
        assert weka.matches(Input(path).head()) == is_weka


# --- sub-agents ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("requests", "arrival_s", "is_absolute"),
    [
        ([request(0), marker(5, request(0), request(3))], [0, 5, 8], False),
        ([request(0), marker(5, request(5), request(8))], [0, 5, 8], True),
        # One first request before its marker tells for the whole session.
        ([request(0), marker(5, request(9)), marker(10, request(1))], [0, 11, 14], False),
        # At time 0 both readings agree, and an empty sub-agent says nothing.
        ([marker(0, request(0), request(3)), marker(5)], [0, 3], False),
        ([request(2), marker(5, request(0.5))], [0, 3.5], False),
        ([request(2), marker(5, request(5.5))], [0, 3.5], True),
    ],
    ids=["from_marker", "from_session", "one_tells", "at_zero", "session_starts_late", "late_absolute"],
)
def test_inner_times(tmp_path, requests, arrival_s, is_absolute):
    trace = read_trace([write(tmp_path / "t", session(*requests))])
    assert trace.arrival_ms.tolist() == [1000 * second for second in arrival_s]
    assert found(trace) == ({"absolute_subagent_times": (1, "session 's'")} if is_absolute else {})


def test_each_sub_agent_is_a_conversation_of_its_own(tmp_path):
    one = session(
        request(0),
        marker(1.0, request(0), request(10)),
        request(2),
        marker(3.0, request(0), request(10)),
        request(20),
    )
    trace = read_trace([write(tmp_path / "t", one)])
    #     0 main, 1000 A, 2000 main, 3000 B, 11,000 A, 13,000 B, 20,000 main
    assert trace.arrival_ms.tolist() == [0, 1000, 2000, 3000, 11_000, 13_000, 20_000]
    assert trace.previous.tolist() == [-1, -1, 0, -1, 1, 3, 2]
    assert trace.kind.tolist() == [0, 1, 0, 1, 1, 1, 0]
    assert trace.session.tolist() == [0] * 7
    assert trace.num_nodes == 2  # one space of ids


def test_sub_agents_of_sub_agents(tmp_path):
    one = session(request(0), marker(1.0, request(0.5), marker(2.0, request(0.25)), request(4)))
    trace = read_trace([write(tmp_path / "t", one)])
    assert trace.arrival_ms.tolist() == [0, 1500, 3250, 5000]
    assert trace.previous.tolist() == [-1, -1, -1, 1]
    assert trace.kind.tolist() == [0, 1, 1, 1]


# --- requests that are odd or bad ------------------------------------------------------------------


def with_good(path: Path, odd: dict[str, Any]) -> Path:
    """A session with one odd request, after enough good ones for a bad one to be borne."""
    return write(path, session(*(request(second) for second in range(100)), odd))


@pytest.mark.parametrize(
    ("odd", "says"),
    [
        (request(100, -1), "in is missing or -1: it must be a number of tokens"),
        (request(100) | {"in": 2**41}, "in is missing or 2199023255552: it must be a number of tokens"),
        (request(100) | {"in": 10**300}, r"in is missing or 1000+\.\.\.0+: it must be a number of tokens"),
        (request(100, out=-5), "out is missing or -5: it must be a number of tokens"),
        (request(100, out=...), "out is missing or -1: it must be a number of tokens"),
        (
            request(100) | {"out": 2**63},
            "out is missing or 9223372036854775808: it must be a number of tokens",
        ),
        (request(-1), "t is -1 s: it must not lie before the session's first request"),
        (request(1e300), r"t is 1e\+300 s: .*"),
        (
            request(100, hash_ids=[1, 2**63]),
            "hash_ids holds a number that does not fit a signed 64-bit integer",
        ),
        (request(100, hash_ids=[2**63]), "hash_ids holds a number that does not fit a signed 64-bit integer"),
        (request(100, hash_ids=[-(2**63) - 1]), "hash_ids holds a number that does not fit .*"),
        (request(100, hash_ids=[2**200]), "hash_ids holds a number that does not fit .*"),
        (marker(100, request(0, -7)), "in is missing or -7: it must be a number of tokens"),
    ],
    ids=lambda value: re.sub(r"\W+", "_", f"{value!s:.60}") + str(len(str(value))),
)
def test_a_bad_request_is_dropped_and_named(tmp_path, odd, says):
    path = with_good(tmp_path / "t", odd)
    trace = read_trace([path])
    assert trace.num_requests == 100
    count, example = found(trace)["bad_rows"]
    assert count == 1
    assert re.fullmatch(rf"{re.escape(str(path))}:1, request 101: {says}", example)
    assert re.fullmatch(rf":1, request 101: {says}", refusal(path, bad_share=0.009))


def test_the_request_after_a_bad_one_goes_on_from_the_one_before(tmp_path):
    path = write(tmp_path / "t", session(request(0), request(1, out=-1), request(2)))
    trace = read_trace([path], options=ReadOptions(bad_share=0.5))
    assert trace.arrival_ms.tolist() == [0, 2000]
    assert trace.previous.tolist() == [-1, 0]


@pytest.mark.parametrize(
    ("odd", "code", "says"),
    [
        (request(100, 63), None, ""),
        (request(100, 128, hash_ids=[1]), "short_hash_ids", ": 1 ids for 128 tokens, not 2"),
        (request(100, 128, hash_ids=[]), "short_hash_ids", ": 0 ids for 128 tokens, not 2"),
        (request(100, 128, hash_ids=None), "short_hash_ids", ": 0 ids for 128 tokens, not 2"),
        (request(100, 128, hash_ids=...), "short_hash_ids", ": 0 ids for 128 tokens, not 2"),
        (request(100, 127, hash_ids=[1, 2]), "long_hash_ids", ": 2 ids for 127 tokens, not 1"),
        (request(100, out=0), "no_output", ""),
        (request(100, 0), "empty_prompts", ""),
        (request(100, api_time=-1.0), "odd_durations", ": api_time is -1 s: taken for unknown"),
        (request(100, think_time=1e300), "odd_durations", ": think_time is 1e+300 s: taken for unknown"),
        (request(100, api_time=None, think_time=None), None, ""),
    ],
    ids=map(str, range(11)),
)
def test_odd_requests_are_kept_and_counted(tmp_path, odd, code, says):
    path = with_good(tmp_path / "t", odd)
    trace = read_trace([path])
    assert trace.num_requests == 101
    assert found(trace) == ({code: (1, f"{path}:1{says}")} if code else {})
    assert trace.duration_ms is None
    assert trace.think_ms is None


@pytest.mark.parametrize("identity", [0, -1, 2**31, 2**40, 2**63 - 1, -(2**63)])
def test_an_id_is_any_whole_number_of_64_bits(tmp_path, identity):
    one = session(request(0, hash_ids=[identity, 5]), request(1, hash_ids=[identity, 6]))
    assert read_trace([write(tmp_path / "t", one)]).node_parent.tolist() == [-1, 0, 0]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"hash_id_scope": "local", ', ": the session cannot be read: "),
        ("[1]", ":2: the session cannot be read: Expected `object`, got `array`"),
        ("null", ":2: the session cannot be read: Expected `object`, got `null`"),
        (session(request(), id=5), ":2: the session cannot be read: Expected `str`, got `int` - at `$.id`"),
        (session(request(), block_size=...), ":2: the session cannot be read: Object missing required field"),
        (session(request(), block_size="64"), ":2: the session cannot be read: Expected `int`, got `str`"),
        (
            session(request(t=...)),
            ":2: the session cannot be read: Object missing required field `t` - at `$.re",
        ),
        (
            session(request(t="0")),
            ":2: the session cannot be read: Expected `float`, got `str` - at `$.requests",
        ),
        (session(request(hash_ids=["a1"])), ":2: the session cannot be read: Expected `int`, got `str`"),
        (session(request(hash_ids=[1.5])), ":2: the session cannot be read: Expected `int`, got `float`"),
        (session(request(hash_ids=7)), ":2: the session cannot be read: Expected `array | null`, got `int`"),
        (session(requests=...), ":2: the session cannot be read: Object missing required field `requests`"),
        (
            json.dumps(session(request())).replace("128", "NaN"),
            ":2: the session cannot be read: JSON is malformed",
        ),
        (json.dumps(session(request())) * 2, ":2: the session cannot be read: JSON is malformed"),
        ('{"requests":' * 5000, ":2: the session cannot be read: "),
        (session(request(), block_size=0), ":2: block_size is 0, and 64 before: import the sessions of each"),
        (
            session(request(), block_size=32),
            ":2: block_size is 32, and 64 before: import the sessions of each",
        ),
    ],
    ids=map(str, range(17)),
)
def test_a_broken_session_is_refused_with_its_place(tmp_path, line, says):
    path = write(tmp_path / "t", session(request()))
    text = line if isinstance(line, str) else json.dumps(line)
    path.write_text(path.read_text() + text + "\n")
    assert (":2" + says.removeprefix(":2")) in refusal(path)


def test_a_broken_document(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps(session(request()), indent=1)[:-1])
    assert refusal(path).startswith(": the session cannot be read: Input data was truncated")


@pytest.mark.parametrize("size", [0, -1, 2**40, 10**300])
def test_a_block_size_that_is_none(tmp_path, size):
    says = refusal(write(tmp_path / "t", session(request(), block_size=size)))
    assert re.fullmatch(r":1: block_size is [-\d.]+: it must be at least 1 and at most \d+", says)


def test_a_block_size_that_is_not_the_one_asked_for(tmp_path):
    path = write(tmp_path / "t", session(request()))
    assert read_trace([path], options=ReadOptions(block_tokens=64)).block_tokens == 64
    says = ":1: block_size is 64: leave --block-tokens 16 out, and reblock the trace"
    assert refusal(path, block_tokens=16) == says


def test_files_of_two_block_sizes(tmp_path):
    write(tmp_path / "a", session(request()))
    write(tmp_path / "b", session(), session(request(), block_size=32))
    with pytest.raises(TraceFormatError) as caught:
        read_trace([tmp_path])
    says = f"{tmp_path}/b:2: block_size is 32, and 64 before: import the sessions of each block size apart"
    assert str(caught.value) == says


# --- the real traces -------------------------------------------------------------------------------

# Sessions that are copies of an earlier one but for their name: README.md of the traces.
COPIES = {
    *("0384", "0394", "0402", "0406", "0412", "0415", "0420", "0428", "0430", "0435", "0450"),
    *("0437", "0441"),
    *("0410", "0426"),
    *("0427", "0432", "0449"),
}


def test_the_sample_is_the_published_one(shared):
    truth = json.loads((shared / "traces/ground_truth.json").read_text(encoding="utf-8"))
    expected = truth["traces"]["weka_sample"]
    trace = read_trace([shared / WEKA_SAMPLE])
    assert trace.block_tokens == expected["block_tokens"] == 64
    assert trace.num_requests == expected["requests"] == 1620
    assert trace.block_refs == expected["block_refs"] == 2_114_149
    assert trace.num_nodes == expected["unique_blocks"] == 155_286
    assert int(trace.input_tokens.sum()) == expected["input_tokens"] == 135_357_470
    assert int(trace.session.max()) + 1 == 49
    assert {code for code in found(trace) if code != "no_output"} == set()


class Whole:
    """The 710 sessions as read, and what a second look at the raw lines says of them."""

    def __init__(self, path: Path) -> None:
        self.trace = read_trace([path])
        self.names: list[str] = []
        self.num_requests = self.num_ids = self.start_elsewhere = self.markers = 0
        for _, line in Input(path).lines():
            cut = cut_out(line)
            row = msgspec.json.decode(cut.text)
            self.names.append(row["id"])
            self.markers += sum(each["type"] == "subagent" for each in row["requests"])
            lowest = min(int(ids.min()) for ids in cut.lists if ids.size)
            self.num_requests += len(cut.lists)
            self.num_ids += sum(ids.size for ids in cut.lists)
            self.start_elsewhere += sum(int(ids[0]) != lowest for ids in cut.lists if ids.size)


@pytest.fixture(scope="module")
def whole(shared) -> Whole:
    return Whole(shared / WEKA_ALL)


def test_all_sessions(whole):
    """trace-facts.md, quirks 9, 12 and 13, and the README of the traces."""
    trace = whole.trace
    assert trace.num_requests == whole.num_requests == 49_334
    assert trace.block_refs == whole.num_ids
    assert round(trace.block_refs / 10**6) == 94
    assert int(trace.session.max()) + 1 == len(whole.names) == 710
    assert {code: count for code, (count, _) in found(trace).items()} == {"no_output": 27}
    assert int((trace.duration_ms < 0).sum()) == 4_312
    assert int((trace.think_ms < 0).sum()) == 116
    assert whole.start_elsewhere == 2_474
    assert trace.kind_names == ("main", "sub-agent")


def test_a_sub_agent_starts_a_conversation(whole):
    """63 sub-agents, by trace-facts.md, quirk 14: each has a first request that goes on from none."""
    trace = whole.trace
    is_sub_agent = trace.kind == trace.kind_names.index("sub-agent")
    assert whole.markers == 63
    assert int(((trace.previous < 0) & is_sub_agent).sum()) == 63
    assert int(((trace.previous < 0) & ~is_sub_agent).sum()) == 710
    has_previous = trace.previous >= 0
    assert (trace.session[has_previous] == trace.session[trace.previous[has_previous]]).all()
    assert (trace.kind[has_previous] == trace.kind[trace.previous[has_previous]]).all()
    assert (trace.previous[has_previous] < np.flatnonzero(has_previous)).all()


def test_distinct_sessions(whole):
    """trace-facts.md, section 3, column "WEKA 692 distinct sessions"."""
    copies = [number for number, name in enumerate(whole.names) if name.removeprefix("trace_") in COPIES]
    assert len(copies) == 18
    trace = whole.trace
    kept = trace.only(np.flatnonzero(~np.isin(trace.session, copies)))
    assert kept.num_requests == 46_218
    assert kept.block_refs == 85_405_325
    assert renumbered(kept.node_parent, kept.leaf)[0].size == 3_195_527
    assert round(float(kept.input_tokens.mean())) == 118_296
    assert round(float(kept.output_tokens.mean())) == 440
    ranks = (50, 90, 99, 100)
    for percentile, input_tokens, output_tokens in zip(
        ranks, (100_446, 209_036, 505_791, 894_371), (218, 893, 3_721, 18_195), strict=True
    ):
        assert abs(np.percentile(kept.input_tokens, percentile) - input_tokens) < 1 + 1e-3 * input_tokens
        assert abs(np.percentile(kept.output_tokens, percentile) - output_tokens) < 1 + 1e-3 * output_tokens
    turns = np.unique(kept.session, return_counts=True)[1]
    assert round(float(turns.mean()), 1) == 66.8
    assert np.percentile(turns, (50, 90, 99)) == pytest.approx((44, 150, 342), rel=0.01)
