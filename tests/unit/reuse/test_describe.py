"""`describe`: what is known, why the rest is not, and that every number is defined."""

from dataclasses import fields, is_dataclass, replace

import msgspec
import numpy as np
import pytest
from hypothesis import given

from tests.oracles.description import reuse_times_ms, unlimited_hits, use_of_blocks
from tests.oracles.list_lru import Request, hit_tokens, in_order
from tests.support.traces import BLOCK_TOKENS, make_trace, prompts, workloads
from warmset.reuse.definitions import DEFINITIONS, definition_of
from warmset.reuse.describe import REASONS, SCHEMA, describe
from warmset.trace import Trace

LENGTHS_ONLY = {"reuse", "popularity", "working_sets", "generated_tokens"}


def lengths_only(**columns: list[int]) -> Trace:
    trace = make_trace([Request(ms, (), 100) for ms in (0, 1000, 3000)])
    return replace(trace, **{name: np.array(column, np.int32) for name, column in columns.items()})


def copies() -> Trace:
    """Three sessions of three requests each: the second copies the first under its own ids."""
    requests = [
        Request(
            1000 * session + turn, (10 * session, *range(10 * session + 1, 10 * session + turn + 1)), size
        )
        for session, sizes in enumerate([(4, 8, 12), (4, 8, 12), (4, 8, 11)])
        for turn, size in enumerate(sizes)
    ]
    return replace(make_trace(requests), session=np.repeat([0, 1, 2], 3).astype(np.int32))


def leaves(value, path=""):
    """Paths and values of all leaves, without the places of lists and the keys of mappings."""
    if is_dataclass(value):
        for each in fields(value):
            yield from leaves(getattr(value, each.name), f"{path}.{each.name}".lstrip("."))
    elif isinstance(value, tuple | dict):
        for entry in value.values() if isinstance(value, dict) else value:
            yield from leaves(entry, path)
    else:
        yield path, value


# --- by hand and against plain counting --------------------------------------------------------------


def test_reuse_by_hand():
    """Of 9 blocks, 4 come back: two after 10 s, two after 20 s, of which one covers 1 token."""
    requests = [
        Request(0, (1, 2), 8),
        Request(10_000, (1, 2, 3), 12),
        Request(30_000, (1, 2), 5),
        Request(40_000, (8, 9), 8),
    ]
    found = describe(make_trace(requests)).reuse
    assert (found.block_refs, found.unique_blocks, found.hit_blocks, found.hit_tokens) == (9, 5, 4, 13)
    assert found.block_hit_ratio == 4 / 9
    assert found.token_hit_ratio == 13 / 33
    assert found.mean_of_request_block_hit_ratio == pytest.approx((0 + 2 / 3 + 1 + 0) / 4)
    assert found.requests_over_one_block_ratio == 0.5
    assert (found.reuse_times.p50_s, found.reuse_times.p99_s) == (15.0, 20.0)


@given(workloads())
def test_reuse_is_that_of_plain_lists(requests):
    trace = make_trace(requests)
    found = describe(trace)
    hits = unlimited_hits(requests)
    ordered = in_order(requests)
    if not any(request.ids for request in requests):
        assert set(found.unknown) >= LENGTHS_ONLY
        return
    assert found.reuse.unique_blocks == len(use_of_blocks(requests))
    assert found.reuse.hit_blocks == sum(hits)
    assert found.reuse.hit_tokens == sum(hit_tokens(requests, hits, BLOCK_TOKENS))
    shares = [hit / len(each.ids) for hit, each in zip(hits, ordered, strict=True) if each.ids]
    assert found.reuse.mean_of_request_block_hit_ratio == pytest.approx(np.mean(shares))
    assert found.reuse.requests_over_one_block_ratio == pytest.approx(np.mean([hit > 1 for hit in hits]))
    ages = reuse_times_ms(requests)
    assert (found.reuse.reuse_times is None) == (not ages)
    if ages:
        times = found.reuse.reuse_times
        told = [times.p50_s, times.p80_s, times.p90_s, times.p99_s]
        assert told == pytest.approx(np.quantile(ages, [0.5, 0.8, 0.9, 0.99]) / 1000)


def test_a_part_of_a_trace_counts_its_own_blocks():
    trace = make_trace(prompts([1, 2, 3], [1], [1, 4]))
    found = describe(trace.only(np.array([1, 2])))
    assert (found.reuse.unique_blocks, found.reuse.hit_blocks) == (2, 1)
    assert found.popularity.used_once_ratio == 0.5
    assert found.working_sets[0].max_blocks == 2


# --- sessions ----------------------------------------------------------------------------------------


def test_sessions_are_named_linked_or_inferred():
    requests = prompts([9], [1, 2], [1, 2, 3], [1, 2, 3, 4])
    trace = make_trace(requests)
    inferred = describe(trace).sessions
    assert (inferred.basis, inferred.num_sessions, inferred.duplicate_sessions) == ("inferred", 2, None)
    linked = describe(replace(trace, previous=np.array([-1, -1, 1, -1], np.int32))).sessions
    assert (linked.basis, linked.num_sessions, linked.turns.max_requests) == ("linked", 3, 2)
    named = describe(replace(trace, session=np.array([0, 1, 2, 3], np.int32))).sessions
    assert (named.basis, named.num_sessions, named.duplicate_sessions) == ("named", 4, 0)


def test_copied_sessions_are_counted_and_look_alikes_are_not():
    assert describe(copies()).sessions.duplicate_sessions == 1


def test_the_active_window_is_a_choice():
    trace = replace(make_trace(prompts([1], [1, 2], gap_ms=10_000)), session=np.array([0, 0], np.int32))
    assert describe(trace).sessions.activity.dormant_time_ratio == 0.0
    found = describe(trace, active_window_s=4.0).sessions.activity
    assert (found.active_window_s, found.dormant_time_ratio) == (4.0, 0.6)


# --- what is not known -------------------------------------------------------------------------------


def test_lengths_only_tell_lengths_and_arrivals_and_nothing_of_reuse():
    found = describe(lengths_only())
    assert found.input.mean_tokens == 100
    assert found.arrivals.requests_per_s == 1.0
    assert {name for name in found.unknown if "." not in name} == {
        *LENGTHS_ONLY,
        "sessions",
        "reported_cache",
    }
    assert all(getattr(found, name) is None for name in (*LENGTHS_ONLY, "sessions"))


def test_lengths_only_with_sessions_tell_of_these():
    found = describe(lengths_only(session=[0, 0, 1]))
    assert (found.sessions.num_sessions, found.sessions.turn_gaps.p50_s) == (2, 1.0)
    assert found.sessions.duplicate_sessions is None
    assert "sessions.duplicate_sessions" in found.unknown


UNKNOWING = {
    "lengths": lengths_only(),
    "linked": lengths_only(previous=[-1, 0, 1]),
    "copies": copies(),
    "no_tokens": make_trace([Request(5, (1,), 0)]),
    "nothing": make_trace([Request(5, (), 0)]),
    "all_once": make_trace(prompts(*([row] for row in range(200)))),
    "all_twice": make_trace(prompts(*([row // 2] for row in range(400)))),
    "no_cached_input": replace(
        make_trace([Request(0, (1,), 0)]), cached_tokens=np.array([0]), kind=np.array([0]), kind_names=("x",)
    ),
}


@pytest.mark.parametrize("trace", UNKNOWING.values(), ids=UNKNOWING)
def test_what_is_unknown_has_a_reason_and_what_is_known_has_none(trace):
    found = describe(trace)
    unknown = {path for path, value in leaves(found) if value is None}
    assert set(found.unknown) == unknown
    assert all(found.unknown[path] == REASONS[path] for path in unknown)


def test_every_reason_can_be_met():
    assert {path for trace in UNKNOWING.values() for path in describe(trace).unknown} == set(REASONS)


def test_every_number_is_defined_and_every_definition_is_of_a_field():
    trace = replace(copies(), cached_tokens=np.arange(9), kind=np.zeros(9, np.int32), kind_names=("main",))
    numbers = {path for path, value in leaves(describe(trace)) if isinstance(value, int | float)}
    numbers = {path for path in numbers if not path.startswith("findings.")}
    assert len(numbers) > 70
    used = set()
    for path in numbers:
        assert definition_of(path)
        around = path
        while around not in DEFINITIONS:
            around = around.rpartition(".")[0]
        used.add(around)
    known_only_elsewhere = {path for path in DEFINITIONS if path.startswith("popularity.zipf_body")}
    assert set(DEFINITIONS) - used == known_only_elsewhere


def test_a_field_without_definition_is_refused():
    with pytest.raises(KeyError, match=r"arrivals\.nothing"):
        definition_of("arrivals.nothing")


# --- JSON --------------------------------------------------------------------------------------------


def test_json_is_one_object_with_the_fields_in_order():
    found = describe(copies())
    document = msgspec.json.decode(msgspec.json.encode(found))
    assert list(document) == [each.name for each in fields(found)]
    assert document["schema"] == SCHEMA == "warmset.trace-description/1"
    assert document["sessions"]["activity"]["over_time"]["at_s"][0] == 0.0
    assert document["definitions"]["reuse.token_hit_ratio"].startswith("hit tokens over prompt tokens")
    assert document["reported_cache"] is None
    assert document["unknown"]["reported_cache"] == "the log has no counter of cached tokens"
