"""The queue, the decode steps and the outcomes against slow and obvious ones, on random input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.queue import Job, area_in_system, serve_in_turn, steps_until
from tests.support.engines import FREE, engine, fleet, hits, workload
from warmset.serving import LoadPath, RequestHits, serve
from warmset.serving.queueing import assign_and_load, decode_until, prefill_in_turn

# Halves, so that sums are exact and ties happen.
halves = st.integers(0, 12).map(lambda number: number / 2)


@st.composite
def job_lists(draw) -> list[Job]:
    tiers = draw(st.integers(1, 3))
    gaps = draw(st.lists(halves, min_size=1, max_size=14))
    return [
        Job(
            float(arrival_s),
            draw(halves.filter(bool)),
            tuple(draw(st.one_of(st.just(0.0), halves)) for _ in range(tiers)),
            draw(halves),
        )
        for arrival_s in np.cumsum(gaps)
    ]


@st.composite
def served(draw):
    """A workload on engines with tiers, its hits, and what became of it."""
    requests = draw(st.integers(1, 30))
    arrivals = np.cumsum(draw(st.lists(halves, min_size=requests, max_size=requests)))
    counts = st.lists(st.integers(1, 400), min_size=requests, max_size=requests)
    inputs, outputs = np.array(draw(counts)), np.array(draw(counts)) - 1
    shares = draw(st.lists(st.tuples(*[st.floats(0, 1)] * 2), min_size=requests, max_size=requests))
    hbm = np.array([int(share[0] * tokens) for share, tokens in zip(shares, inputs, strict=True)])
    lower = np.array([int(share[1] * left) for share, left in zip(shares, inputs - hbm, strict=True)])
    path = LoadPath(20, draw(st.sampled_from([2e3, 20e3, 2e6])), 0.013)
    engines = draw(st.sampled_from([(1, 1), (2, 1), (3, 2)]))
    work, found = workload(arrivals, inputs, outputs), hits(requests, hbm, lower)
    when_faster = draw(st.booleans())
    cluster = fleet(engine(), *engines, path, recompute_when_faster=when_faster)
    return work, found, cluster, serve(work, found, cluster)


@given(job_lists(), st.sampled_from([(1, 1), (2, 1), (2, 2), (5, 2), (6, 3)]))
def test_the_compiled_queue_is_the_slow_one(jobs, engines):
    arrivals, prefills, fixed = (
        np.array([getattr(job, column) for job in jobs]) for column in ("arrival_s", "prefill_s", "fixed_s")
    )
    loads = np.array([job.load_s for job in jobs])
    engine_of, ready = assign_and_load(arrivals, prefills, loads, fixed, *engines)
    start = prefill_in_turn(np.argsort(ready, kind="stable"), engine_of, ready, prefills, engines[0])
    slow = serve_in_turn(jobs, *engines)
    assert engine_of.tolist() == [row.engine for row in slow]
    assert ready.tolist() == [row.ready_s for row in slow]
    assert start.tolist() == [row.start_s for row in slow]


@given(
    st.lists(st.tuples(halves, halves.filter(bool)), min_size=1, max_size=8),
    st.integers(0, 60),
    st.sampled_from([1.0, 4.0, 10.0]),
    st.sampled_from([0.5, 1.0]),
)
def test_decode_steps_read_backwards(gaps_and_lengths, wanted, free_rate, busy_rate):
    """When the steps of an answer are done, from every end of a prefill: against walking edge by edge."""
    busy, now = [], 0.0
    for gap, length in gaps_and_lengths:
        busy.append((now + gap, now + gap + length))
        now += gap + length
    starts, ends = (np.array(column, dtype=float) for column in zip(*busy, strict=True))
    turns, steps = np.arange(len(busy)), np.full(len(busy), wanted)
    found = decode_until(turns, np.zeros_like(turns), starts, ends, steps, free_rate, busy_rate, 1)
    slow = [steps_until(end_s, wanted, busy, free_rate, busy_rate) for end_s in ends]
    assert found.tolist() == pytest.approx(slow)


@given(served())
def test_engines_decode_for_themselves(case):
    """Several engines at once give what each gives alone."""
    work, *_ = case
    draw = np.random.default_rng(work.arrival_s.size)
    engine = draw.integers(0, 3, work.arrival_s.size)
    start = np.cumsum(draw.random(work.arrival_s.size)) * 3
    end = start + draw.random(work.arrival_s.size) * 0.2
    order, steps = np.argsort(start), np.maximum(work.output_tokens, 1)
    together = decode_until(order, engine, start, end, steps, 10.0, 2.0, 3)
    for number in range(3):
        here = np.flatnonzero(engine == number)
        alone = decode_until(
            np.arange(here.size), np.zeros_like(here), start[here], end[here], steps[here], 10.0, 2.0, 1
        )
        assert together[here].tolist() == pytest.approx(alone.tolist())


@given(served())
def test_times_add_up(case):
    work, _, _, outcome = case
    assert (outcome.wait_s >= 0).all()
    assert (outcome.load_s >= 0).all()
    assert (outcome.ttft_s > outcome.load_s + outcome.wait_s).all()
    decodes = work.output_tokens > 1
    assert np.isnan(outcome.tpot_s).tolist() == (~decodes).tolist()
    assert (outcome.tpot_s[decodes] > 0).all()
    decode_s = outcome.tpot_s[decodes] * (work.output_tokens[decodes] - 1)
    assert (outcome.e2e_s - outcome.ttft_s)[decodes].tolist() == pytest.approx(decode_s.tolist())
    assert (outcome.e2e_s == outcome.ttft_s)[~decodes].all()


@given(served())
def test_littles_law(case):
    work, _, _, outcome = case
    area = area_in_system(work.arrival_s.tolist(), (work.arrival_s + outcome.e2e_s).tolist())
    assert outcome.in_system * outcome.span_s == pytest.approx(area)


@given(served())
def test_no_more_decode_at_once_than_there_are(case):
    work, _, cluster, outcome = case
    assert 0 <= outcome.active_decodes_per_engine * cluster.num_engines <= work.arrival_s.size + 1e-9


@given(served(), st.floats(0, 1))
def test_more_hits_never_raise_the_prefill_work(case, share):
    """Computing a token costs more than finding it in the cache, on this engine as on any worth a cache."""
    work, found, cluster, outcome = case
    fewer = RequestHits((found.hbm_tokens * share).astype(np.int64), found.lower_tokens)
    always = fleet(cluster.engine, cluster.num_nodes, cluster.engines_per_node, *cluster.paths)
    assert (
        serve(work, found, always).prefill_busy_ratio <= serve(work, fewer, always).prefill_busy_ratio + 1e-12
    )
    assert outcome.prefill_busy_ratio >= serve(work, found, always).prefill_busy_ratio - 1e-12


@given(served())
def test_without_hits_every_baseline_is_none(case):
    work, _, cluster, _ = case
    requests = work.arrival_s.size
    nothing = serve(work, hits(requests, 0, 0), cluster)
    none = serve(work, hits(requests), fleet(cluster.engine, cluster.num_nodes, cluster.engines_per_node))
    assert nothing.e2e_s.tolist() == none.e2e_s.tolist()


@given(served())
def test_faster_hardware_in_every_respect_halves_every_time(case):
    """Twice every rate, half every fixed time, arrivals twice as fast: the same picture, half as long."""
    work, found, cluster, outcome = case
    rates = cluster.engine.rates
    fast = engine(
        gemm_flops_per_s=2 * rates.gemm_flops_per_s,
        attention_flops_per_s=2 * rates.attention_flops_per_s,
        weight_bytes_per_s=2 * rates.weight_bytes_per_s,
        kv_bytes_per_s=2 * rates.kv_bytes_per_s,
        hbm_hit_s_per_token=rates.hbm_hit_s_per_token / 2,
        prefill_startup_s=rates.prefill_startup_s / 2,
        decode_startup_s=rates.decode_startup_s / 2,
        decode_layers_s=rates.decode_layers_s / 2,
    )
    paths = [LoadPath(p.bytes_per_token, 2 * p.bytes_per_s, p.fixed_s / 2) for p in cluster.paths]
    faster = serve(
        work.sped_up(2.0),
        found,
        fleet(
            fast,
            cluster.num_nodes,
            cluster.engines_per_node,
            *paths,
            recompute_when_faster=cluster.recompute_when_faster,
        ),
    )
    if np.ptp(work.arrival_s) > 0:  # requests that come all at once have no rate to double
        assert (2 * faster.e2e_s).tolist() == pytest.approx(outcome.e2e_s.tolist())


@given(st.integers(1, 60), st.integers(1, 3))
def test_free_decode_leaves_prefill_alone(requests, nodes):
    work = workload(np.arange(requests) * 0.1, 100, 50)
    found = serve(work, hits(requests), fleet(engine(kv_bytes_per_s=FREE), nodes))
    busy_s = found.ttft_s - found.wait_s - 0.5
    assert busy_s.tolist() == pytest.approx([0.2012] * requests)
