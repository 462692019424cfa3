"""Requests in, in any order; a trace out: every column, what is unknown, and parts that join."""

import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.prefix_forest import PrefixForest
from warmset.errors import TraceFormatError
from warmset.trace import Provenance, Trace, TraceBuilder
from warmset.trace.builder import Added
from warmset.trace.forest import OPTIONAL_COLUMNS, UNKNOWN
from warmset.trace.tally import Tally

NAMED = Provenance(name="test")
COLUMNS = (
    *("node_parent", "node_depth", "arrival_ms", "input_tokens", "output_tokens", "leaf", "num_blocks"),
    *OPTIONAL_COLUMNS,
)


def add(builder: TraceBuilder, arrival_ms: int = 0, **more: Any) -> Added:
    return builder.add(**{"arrival_ms": arrival_ms, "input_tokens": 8, "output_tokens": 1, **more})


def built(*rows: dict[str, Any], **options: Any) -> Trace:
    builder = TraceBuilder(4, **options)
    for row in rows:
        add(builder, **row)
    return builder.build(NAMED)


def listed(trace: Trace) -> dict[str, list[int] | None]:
    columns = {name: getattr(trace, name) for name in COLUMNS}
    return {name: None if column is None else column.tolist() for name, column in columns.items()}


def found(trace: Trace) -> dict[str, tuple[int, str]]:
    return {finding.code: (finding.count, finding.first_example) for finding in trace.findings}


# --- columns ---------------------------------------------------------------------------------------


def test_every_column():
    trace = built(
        {
            "arrival_ms": 70,
            "input_tokens": 9,
            "output_tokens": 3,
            "ids": [5, 6],
            "session": "s",
            "kind": "main",
            "model": "m",
            "key": "second",
            "previous_key": "first",
            "think_ms": 30,
            "duration_ms": 20,
            "cached_tokens": 4,
        },
        {
            "arrival_ms": 20,
            "input_tokens": 4,
            "output_tokens": 2,
            "ids": [5],
            "session": "s",
            "kind": "cron",
            "model": "n",
            "key": "first",
            "duration_ms": 10,
            "cached_tokens": 0,
        },
    )
    assert listed(trace) == {
        "node_parent": [-1, 0],
        "node_depth": [1, 2],
        "arrival_ms": [20, 70],
        "input_tokens": [4, 9],
        "output_tokens": [2, 3],
        "leaf": [0, 1],
        "num_blocks": [1, 2],
        "session": [0, 0],
        "previous": [-1, 0],
        "kind": [1, 0],
        "model": [1, 0],
        "think_ms": [-1, 30],
        "duration_ms": [10, 20],
        "cached_tokens": [0, 4],
    }
    assert (trace.kind_names, trace.model_names) == (("main", "cron"), ("m", "n"))
    assert trace.findings == ()
    assert trace.provenance == NAMED
    assert trace.block_tokens == 4


def test_types_of_columns():
    row = {
        "ids": [1],
        "session": 1,
        "kind": "k",
        "model": "m",
        "think_ms": 1,
        "duration_ms": 1,
        "cached_tokens": 1,
    }
    trace = built({"key": 1} | row, {"previous_key": 1} | row)
    int32s = {"node_parent", "node_depth", "leaf", "num_blocks", "session", "previous", "kind", "model"}
    for name in COLUMNS:
        assert getattr(trace, name).dtype == (np.int32 if name in int32s else np.int64), name


def test_what_no_row_says_is_no_column():
    trace = built({}, {"arrival_ms": 5})
    assert [name for name in OPTIONAL_COLUMNS if getattr(trace, name) is not None] == []
    assert (trace.kind_names, trace.model_names) == ((), ())
    assert not trace.has_blocks
    assert listed(trace)["leaf"] == [-1, -1]


@pytest.mark.parametrize(
    ("field", "value", "number"),
    [
        *[("think_ms", 0, 0), ("duration_ms", 0, 0), ("cached_tokens", 0, 0)],
        *[("kind", "main", 0), ("model", "m", 0)],
    ],
)
def test_one_row_that_knows_makes_a_column(field, value, number):
    """Zero is a value; what is not known is not zero."""
    trace = built({}, {field: value}, {})
    assert listed(trace)[field] == [UNKNOWN, number, UNKNOWN]
    assert [name for name in OPTIONAL_COLUMNS if getattr(trace, name) is not None] == [field]
    assert trace.findings == ()


def test_a_trace_of_no_requests():
    with pytest.raises(ValueError, match="no requests"):
        TraceBuilder(4).build(NAMED)


def test_too_many_bad_rows():
    builder = TraceBuilder(4)
    builder.tally.rows = 50
    builder.tally.drop("log:3", "input is missing")
    add(builder)
    with pytest.raises(TraceFormatError, match=r"^log:3: input is missing$"):
        builder.build(NAMED)


def test_findings_of_the_tally_join():
    tally = Tally()
    tally.rows = 200
    tally.drop("log:3", "input is missing")
    tally.note("no_output", "log:4")
    trace = built({}, tally=tally)
    assert found(trace) == {"bad_rows": (1, "log:3: input is missing"), "no_output": (1, "log:4")}


def test_assumptions_join_the_provenance():
    builder = TraceBuilder(4, assumptions=["Four characters are a token."])
    add(builder)
    trace = builder.build(Provenance(name="test", assumptions=("Times are UTC.",)))
    assert trace.provenance.assumptions == ("Times are UTC.", "Four characters are a token.")


# --- order -----------------------------------------------------------------------------------------


def test_ties_keep_the_order_of_adding():
    trace = built(*({"arrival_ms": ms, "input_tokens": n} for n, ms in enumerate([5, 3, 5, 3, 9, 1])))
    assert trace.arrival_ms.tolist() == [1, 3, 3, 5, 5, 9]
    assert trace.input_tokens.tolist() == [5, 1, 3, 0, 2, 4]


def test_blocks_are_numbered_by_first_use_in_order_of_arrival():
    trace = built(
        {"arrival_ms": 9, "ids": [7, 8, 9]},
        {"arrival_ms": 2, "ids": [1]},
        {"arrival_ms": 5, "ids": []},
        {"arrival_ms": 2, "ids": [7, 2]},
    )
    #   1        7 ─ 2         0      1 ─ 2
    #              └ 8 ─ 9              └ 3 ─ 4
    assert trace.node_parent.tolist() == [-1, -1, 1, 1, 3]
    assert trace.leaf.tolist() == [0, 2, -1, 4]
    assert trace.num_blocks.tolist() == [1, 2, 0, 3]
    assert trace.node_depth.tolist() == [1, 1, 2, 2, 3]


def test_add_says_what_was_there():
    builder = TraceBuilder(4)
    assert add(builder, ids=[1, 2, 3]) == (0, 0)
    assert add(builder, ids=[1, 2, 4]) == (1, 2)
    assert add(builder, ids=[1, 2, 4]) == (2, 3)
    assert add(builder, ids=[2]) == (3, 0)
    assert add(builder, ids=[1, 2, 3], scope=1) == (4, 0)
    assert add(builder, ids=[1, 2, 3], scope=1).known_blocks == 3
    assert add(builder) == (6, 0)
    assert builder.num_requests == 7


# --- ids -------------------------------------------------------------------------------------------

EDGES = [0, -1, 1, -2, 2**31 - 1, 2**31, -(2**31), 2**32, 2**53 + 1, 2**63 - 1, -(2**63), -(2**63) + 1]


@pytest.mark.parametrize("kind", [list, tuple, np.array, lambda ids: np.array([ids, ids]).T[:, 0]])
def test_an_id_is_any_whole_number_of_64_bits(kind):
    trace = built({"ids": kind(EDGES)}, {"ids": kind(EDGES)}, {"ids": kind(EDGES[::-1])})
    assert trace.num_nodes == 2 * len(EDGES)
    assert trace.leaf.tolist() == [11, 11, 23]
    assert found(trace).keys() == {"content_ids"}


def test_each_of_them_is_another_block():
    trace = built(*({"ids": [identity]} for identity in EDGES + EDGES))
    assert trace.num_nodes == len(EDGES)
    assert trace.leaf.tolist() == [*range(len(EDGES)), *range(len(EDGES))]
    assert trace.findings == ()


@pytest.mark.parametrize("identity", [2**63, -(2**63) - 1])
def test_a_larger_one_is_the_readers_to_refuse(identity):
    with pytest.raises(OverflowError):
        built({"ids": [identity]})


def test_ids_of_content_are_chained_and_counted():
    rows = [{"ids": [1, 2]}, {"ids": [3, 2]}, {"ids": [1, 2]}]
    trace = built(*rows)
    assert trace.num_nodes == 4
    says = "ids follow different predecessors; chained into prefix ids"
    assert found(trace) == {"content_ids": (6, says)}
    assert found(built(*rows, ids_are_content=True)) == {}


def test_ids_of_scopes_never_match():
    rows = [{"ids": [1, 2], "scope": 1}, {"ids": [1, 2], "scope": 2}, {"ids": [1], "scope": 2}]
    trace = built(*rows, {"ids": [1, 2]})
    assert trace.node_parent.tolist() == [-1, 0, -1, 2, -1, 4]
    assert trace.leaf.tolist() == [1, 3, 2, 5]
    assert trace.findings == ()


def test_an_id_in_two_places_of_one_scope_is_of_content():
    assert found(built({"ids": [1, 2], "scope": 1}, {"ids": [2], "scope": 2})) == {}
    assert found(built({"ids": [1, 2], "scope": 1}, {"ids": [2], "scope": 1})).keys() == {"content_ids"}


@pytest.mark.parametrize("shape", ["long", "wide", "deep_again", "scopes"])
def test_growth_past_the_first_room(shape):
    """From 1,024 vertices to 20,000: in one prompt, over many, with prompts that end where room ends."""
    rows: list[tuple[list[int], int]] = {
        "long": [(list(range(20_000)), 0), (list(range(20_000)), 0)],
        "wide": [([n], 0) for n in range(20_000)] * 2,
        "deep_again": [(list(range(n)), 0) for n in (1023, 1024, 1025, 2047, 2048, 2049, 5000, 4097, 9000)],
        "scopes": [([n % 7, n % 11, n], n % 3) for n in range(6_000)] * 2,
    }[shape]
    builder, forest = TraceBuilder(4), PrefixForest()
    expected = []
    for ids, scope in rows:
        if shape in {"long", "deep_again"}:
            continue
        leaf, known = forest.add(ids, scope)
        expected.append(leaf)
        assert add(builder, ids=ids, scope=scope).known_blocks == known
    if shape in {"long", "deep_again"}:  # one chain: a block is its depth
        most = 0
        for ids, _ in rows:
            assert add(builder, ids=ids).known_blocks == min(most, len(ids))
            most = max(most, len(ids))
            expected.append(len(ids) - 1)
    trace = builder.build(NAMED)
    assert trace.leaf.tolist() == expected
    assert trace.num_nodes == max(expected) + 1


def test_memory_grows_with_distinct_blocks_and_not_with_references():
    ids = np.arange(10_000)
    builder = TraceBuilder(4)
    add(builder, ids=ids)
    tracemalloc.start()
    for _ in range(1000):  # ten million references
        add(builder, ids=ids)
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most_bytes < 2**20
    trace = builder.build(NAMED)
    assert (trace.num_nodes, trace.block_refs) == (10_000, 10_010_000)


# --- names -----------------------------------------------------------------------------------------


def test_sessions_are_numbered_in_order_of_arrival():
    rows = [(9, "a"), (1, "c"), (5, "b"), (2, "a"), (1, "c"), (7, "d")]
    trace = built(*({"arrival_ms": ms, "session": name} for ms, name in rows))
    assert listed(trace)["session"] == [0, 0, 1, 2, 3, 1]


def test_a_name_may_be_a_number():
    trace = built({"session": 7}, {"session": "7"}, {"session": 7}, {"session": -1})
    assert listed(trace)["session"] == [0, 1, 0, 2]
    assert trace.findings == ()


@pytest.mark.parametrize("unnamed", [0, 1, 2])
def test_sessions_of_some_rows_only_are_left_out_and_counted(unnamed):
    rows: list[dict[str, Any]] = [{"session": "a"}, {"session": "b"}, {"session": "a"}]
    del rows[unnamed]["session"]
    trace = built(*rows)
    assert trace.session is None
    assert found(trace) == {"unnamed_sessions": (1, "rows without a session; sessions are left out")}


def test_kinds_and_models_keep_the_order_of_the_log():
    trace = built(
        {"arrival_ms": 3, "kind": "main", "model": "x"},
        {"arrival_ms": 1, "kind": "sub-agent"},
        {"arrival_ms": 2, "kind": "main", "model": "y"},
    )
    assert (trace.kind_names, trace.model_names) == (("main", "sub-agent"), ("x", "y"))
    assert listed(trace)["kind"] == [1, 0, 0]
    assert listed(trace)["model"] == [UNKNOWN, 1, 0]


# --- the request before ----------------------------------------------------------------------------


def test_previous_by_key_in_any_order():
    trace = built(
        {"arrival_ms": 30, "key": "c", "previous_key": "b"},
        {"arrival_ms": 10, "key": "a"},
        {"arrival_ms": 20, "key": "b", "previous_key": "a"},
        {"arrival_ms": 40, "previous_key": "a"},
        {"arrival_ms": 5},
    )
    assert trace.arrival_ms.tolist() == [5, 10, 20, 30, 40]
    assert listed(trace)["previous"] == [-1, -1, 1, 2, 1]
    assert trace.findings == ()


def test_a_number_and_its_text_are_two_keys():
    trace = built({"key": 1}, {"key": "1"}, {"previous_key": 1}, {"previous_key": "1"})
    assert listed(trace)["previous"] == [-1, -1, 0, 1]


def test_lost_previous_requests_are_counted():
    trace = built(
        {"key": "a", "previous_key": "gone"},
        {"key": "b", "previous_key": "a"},
        {"key": "c", "previous_key": "c"},
        {"previous_key": "z"},
    )
    assert listed(trace)["previous"] == [-1, 0, -1, -1]
    assert found(trace) == {"lost_previous": (3, "row 1 goes on from 'gone', which is not there")}


def test_a_key_of_any_length_is_told_in_a_line():
    example = found(built({"previous_key": "long\n" * 100_000}))["lost_previous"][1]
    assert len(example) < 200
    assert "\n" not in example


def test_no_previous_request_is_there():
    assert built({"key": "a", "previous_key": "gone"}).previous is None


def test_of_two_requests_with_one_key_the_later_row_counts():
    trace = built({"key": "a"}, {"key": "a"}, {"previous_key": "a"})
    assert listed(trace)["previous"] == [-1, -1, 1]


# --- clocks ----------------------------------------------------------------------------------------

EPOCH_MS = 1_750_000_000_000


def test_times_since_1970():
    trace = built({"arrival_ms": EPOCH_MS + 500}, {"arrival_ms": EPOCH_MS}, times_are_epoch=True)
    assert trace.arrival_ms.tolist() == [0, 500]
    assert trace.provenance.epoch_ms == EPOCH_MS


def test_other_times_stay():
    trace = built({"arrival_ms": 700}, {"arrival_ms": 200})
    assert trace.arrival_ms.tolist() == [200, 700]
    assert trace.provenance.epoch_ms is None


def test_sessions_without_a_common_clock():
    trace = built(
        {"arrival_ms": 0, "session": "a", "input_tokens": 1},
        {"arrival_ms": 250, "session": "a", "input_tokens": 2},
        {"arrival_ms": 0, "session": "b", "input_tokens": 3},
        {"arrival_ms": 5, "session": "b", "input_tokens": 4},
        {"arrival_ms": 0, "session": "c", "input_tokens": 5},
        session_gap_ms=100,
    )
    assert trace.arrival_ms.tolist() == [0, 100, 105, 200, 250]
    assert trace.input_tokens.tolist() == [1, 3, 4, 5, 2]
    assert listed(trace)["session"] == [0, 1, 1, 2, 0]
    assert trace.provenance.assumptions == (
        "The log has no common clock: sessions are taken to start 0.1 s apart, in file order.",
    )


def test_sessions_may_start_together():
    rows = [{"session": name, "arrival_ms": ms} for name in "abc" for ms in (0, 10)]
    trace = built(*rows, session_gap_ms=0)
    assert trace.arrival_ms.tolist() == [0, 0, 0, 10, 10, 10]
    assert "0 s apart" in trace.provenance.assumptions[0]


# --- parts -----------------------------------------------------------------------------------------


def test_another_block_size_is_refused():
    says = r"^blocks of 64 tokens among blocks of 16.*: import the logs of each block size apart$"
    with pytest.raises(TraceFormatError, match=says):
        TraceBuilder(16).absorb(TraceBuilder(64))


def test_assumptions_of_parts_are_told_once():
    first, second = TraceBuilder(4, assumptions=["A.", "B."]), TraceBuilder(4, assumptions=["B.", "C."])
    first.absorb(second)
    assert first.assumptions == ["A.", "B.", "C."]


NAMES = st.one_of(st.none(), st.sampled_from(["a", "b", 1]))
KEYS = st.one_of(st.none(), st.integers(0, 6))
AMOUNTS = st.integers(-1, 3)
ROWS = st.fixed_dictionaries(
    {
        "arrival_ms": st.integers(0, 9),
        "input_tokens": st.integers(0, 20),
        "output_tokens": st.integers(0, 3),
        "ids": st.one_of(st.none(), st.lists(st.sampled_from([0, 1, 2, 2**63 - 1, -(2**63)]), max_size=6)),
        "scope": st.integers(0, 2),
        "session": NAMES,
        "kind": st.one_of(st.none(), st.sampled_from(["main", "cron"])),
        "model": st.one_of(st.none(), st.sampled_from(["m", "n"])),
        "key": KEYS,
        "previous_key": KEYS,
        "think_ms": AMOUNTS,
        "duration_ms": AMOUNTS,
        "cached_tokens": AMOUNTS,
    }
)
PARTS = st.lists(st.lists(ROWS, max_size=8), min_size=1, max_size=5).filter(any)


@given(PARTS, st.sampled_from([None, 0, 7]), st.booleans())
def test_absorbing_parts_is_reading_all_in_one(parts, session_gap_ms, are_nested):
    """Whatever the parts hold, and whether they are absorbed one by one or as parts of parts."""

    def builder_of(rows: list[dict[str, Any]], first_scope: int) -> TraceBuilder:
        builder = TraceBuilder(4, session_gap_ms=session_gap_ms)
        for row in rows:
            scope = row["scope"] and row["scope"] + first_scope
            builder.tally.rows += 1
            builder.tally.note("seen", f"{row['arrival_ms']}")
            add(builder, **row | {"scope": scope})
        return builder

    one = TraceBuilder(4, session_gap_ms=session_gap_ms)
    first_scope = 0
    for rows in parts:
        for row in rows:
            one.tally.rows += 1
            one.tally.note("seen", f"{row['arrival_ms']}")
            add(one, **row | {"scope": row["scope"] and row["scope"] + first_scope})
        first_scope += max([row["scope"] for row in rows], default=0)
    builders = [builder_of(rows, 0) for rows in parts]
    if are_nested:
        while len(builders) > 1:
            builders[-2].absorb(builders.pop())
    for part in builders[1:]:
        builders[0].absorb(part)
    expected, joined = one.build(NAMED), builders[0].build(NAMED)
    assert listed(joined) == listed(expected)
    assert joined.findings == expected.findings
    assert (joined.kind_names, joined.model_names) == (expected.kind_names, expected.model_names)
    assert joined.provenance == expected.provenance


@given(PARTS)
def test_a_builder_that_absorbed_takes_more(parts):
    one, joined = TraceBuilder(4), TraceBuilder(4)
    for rows in parts:
        part = TraceBuilder(4)
        for row in rows:
            add(part, **row | {"scope": 0})
            add(one, **row | {"scope": 0})
        joined.absorb(part)
        for row in rows:
            assert add(joined, **row | {"scope": 0}).known_blocks == len(row["ids"] or [])
            add(one, **row | {"scope": 0})
    assert listed(joined.build(NAMED)) == listed(one.build(NAMED))


@given(PARTS)
def test_a_builder_comes_through_a_pickle(parts):
    """As through a store of objects, where columns arrive that can only be read."""

    def sent(builder: TraceBuilder) -> TraceBuilder:
        buffers: list[pickle.PickleBuffer] = []
        packed = pickle.dumps(builder, protocol=5, buffer_callback=buffers.append)
        return pickle.loads(packed, buffers=[bytes(buffer) for buffer in buffers])  # noqa: S301 - our own

    one, joined = TraceBuilder(4), TraceBuilder(4)
    for rows in parts:
        part, again = TraceBuilder(4), TraceBuilder(4)
        for row in rows:
            add(part, **row)
            add(again, **row)
        joined.absorb(sent(part))
        joined = sent(joined)
        one.absorb(again)
    add(joined, ids=[1, 2, 3], scope=1)
    add(one, ids=[1, 2, 3], scope=1)
    assert listed(joined.build(NAMED)) == listed(one.build(NAMED))


@pytest.mark.parametrize("num_nodes", [0, 1, 1023, 1024, 1025, 5000])
def test_a_builder_of_any_size_comes_through_a_pickle(num_nodes):
    builder = TraceBuilder(4)
    add(builder, ids=range(num_nodes))
    sent = pickle.loads(pickle.dumps(builder))  # noqa: S301 - our own
    assert add(sent, ids=range(num_nodes + 10)).known_blocks == num_nodes
    assert sent.build(NAMED).num_nodes == num_nodes + 10


def test_large_parts_join():
    rng = np.random.default_rng(seed=4)
    prompts = [rng.integers(0, 9, size=rng.integers(1, 12)) for _ in range(9_000)]
    one, joined = TraceBuilder(4), TraceBuilder(4)
    for start in range(0, 9_000, 3_000):
        part = TraceBuilder(4)
        for number, ids in enumerate(prompts[start : start + 3_000]):
            add(part, number, ids=ids, session=number % 50)
            add(one, number, ids=ids, session=number % 50)
        joined.absorb(part)
    expected = one.build(NAMED)
    assert expected.num_nodes > 20_000
    assert listed(joined.build(NAMED)) == listed(expected)
