"""Settings as text, their limits, where values come from, and what every generator must have."""

import json

import numpy as np
import pytest

from warmset.errors import InputError
from warmset.trace import write_wst
from warmset.trace.synth import GENERATORS, Limits, configured, parameters
from warmset.trace.synth.long_documents import LongDocuments
from warmset.trace.synth.openclaw import OpenClaw

ALL_PRESETS = [(name, preset) for name, each in GENERATORS.items() for preset in each.PRESETS]
SMALL = Limits(num_requests=300)


def generated(name, preset="default", settings=None, *, seed=1, limits=SMALL, block_tokens=16):
    generator = configured(GENERATORS[name], preset, settings)
    return generator.generate(np.random.default_rng(seed), limits, block_tokens, preset)


@pytest.mark.parametrize(("name", "preset"), ALL_PRESETS)
def test_every_preset_makes_a_trace_that_says_how(name, preset):
    trace = generated(name, preset)
    assert 1 <= trace.num_requests <= 300
    assert np.array_equal(trace.num_blocks, trace.input_tokens // 16)
    assert (trace.output_tokens >= 1).all()
    assert (trace.duration_ms >= 0).all()
    assert trace.findings == ()
    told = json.loads(trace.provenance.source.removeprefix("generated, "))
    assert (told["generator"], told["preset"]) == (name, preset)
    assert set(told["parameters"]) == set(GENERATORS[name].__struct_fields__)
    assert {name for names in told["basis"].values() for name in names} == set(told["parameters"])


@pytest.mark.parametrize(("name", "preset"), ALL_PRESETS)
def test_every_parameter_says_what_it_is_and_where_its_value_is_from(name, preset):
    for row in parameters(configured(GENERATORS[name], preset), preset):
        assert row.text
        assert row.basis in {"published", "fitted", "assumed"}
        assert bool(row.source) == (row.basis != "assumed")


@pytest.mark.parametrize("name", GENERATORS)
def test_requests_go_on_only_after_the_answer_before(name):
    trace = generated(name, limits=Limits(num_requests=2000))
    if trace.previous is None:
        assert trace.think_ms is None
        return
    follows = np.flatnonzero(trace.previous >= 0)
    before = trace.previous[follows]
    end_ms = trace.arrival_ms[before] + trace.duration_ms[before]
    assert follows.size
    assert np.array_equal(trace.arrival_ms[follows] - end_ms, trace.think_ms[follows])
    assert (trace.think_ms[follows] >= 0).all()


@pytest.mark.parametrize("name", GENERATORS)
def test_the_same_seed_gives_the_same_bytes(name, tmp_path):
    def written(file_name, seed):
        write_wst(generated(name, seed=seed), tmp_path / file_name)
        return (tmp_path / file_name).read_bytes()

    assert written("one.wst", 1) == written("again.wst", 1)
    if GENERATORS[name].NAME != "chat":  # whose lengths and times are fixed by default
        assert written("one.wst", 1) != written("other.wst", 2)


def test_limits_cut_where_they_say():
    assert generated("openclaw", limits=Limits(num_requests=123)).num_requests == 123
    hour = generated("one-shot", limits=Limits(duration_ms=3_600_000))
    assert hour.arrival_ms[-1] < 3_600_000
    assert hour.num_requests == pytest.approx(5.53 * 3600, rel=0.05)


def test_no_limit_at_all_is_the_usual_one():
    trace = configured(GENERATORS["rag"]).generate(np.random.default_rng(1), Limits())
    assert trace.num_requests == 10_000


@pytest.mark.parametrize(
    ("text", "value"), [("2min", 120.0), ("90", 90.0), ("1_000", 1000.0), ("500ms", 0.5)]
)
def test_times_may_have_a_unit(text, value):
    assert configured(OpenClaw, settings={"think_p90_s": text, "think_p50_s": "100ms"}).think_p90_s == value


def test_every_kind_of_value_can_be_set():
    wait = "1,2,3,4,5,6,7,8,9,10"
    assert configured(GENERATORS["coding-agent"], settings={"wait_s": wait}).wait_s == tuple(
        float(value) for value in range(1, 11)
    )
    chosen = configured(OpenClaw, settings={"reasoning": "false", "reset": "daily", "num_users": "3"})
    assert (chosen.reasoning, chosen.reset, chosen.num_users) == (False, "daily", 3)
    basis = {row.name: row.basis for row in parameters(chosen)}
    assert basis["num_users"] == "chosen"
    assert basis["window_tokens"] == "published"


def test_a_preset_gives_its_own_source():
    rows = {
        row.name: row
        for row in parameters(
            configured(GENERATORS["agentic-code"], "inference-day-2026"), "inference-day-2026"
        )
    }
    assert rows["num_groups"].value == 100
    assert rows["num_groups"].source.endswith("inference-day-2026.json")
    assert rows["global_tokens"].source.endswith("models.py")


@pytest.mark.parametrize(
    ("name", "settings", "says"),
    [
        ("openclaw", {"num_user": "3"}, "did you mean num_users?"),
        ("openclaw", {"zzz": "3"}, "it has num_users, users_per_agent"),
        ("openclaw", {"num_users": "0"}, "a whole number of at least 1"),
        ("openclaw", {"num_users": "-2"}, "a whole number of at least 1"),
        ("openclaw", {"num_users": "2.5"}, "a whole number"),
        ("openclaw", {"break_share": "1.5"}, "at most 1"),
        ("openclaw", {"break_share": "nan"}, "a number of at least 0 and at most 1"),
        ("openclaw", {"think_p50_s": "0"}, "above 0"),
        ("openclaw", {"think_p50_s": "inf"}, "--set think_p50_s=inf"),
        ("openclaw", {"think_p50_s": "3 parsecs"}, "'parsecs' is not one of"),
        ("openclaw", {"reset": "weekly"}, "one of none, daily"),
        ("openclaw", {"reasoning": "perhaps"}, "true or false"),
        ("openclaw", {"window_tokens": "40_000"}, "compaction must come well above"),
        ("openclaw", {"think_p50_s": "10min"}, "think_p50_s 600 is above think_p90_s 180"),
        ("openclaw", {"short_turn_share": "0.9"}, "add up to more than 1"),
        ("one-shot", {"input_p50_tokens": "9000"}, "they must ascend"),
        ("rag", {"chunks_per_query": "100", "num_documents": "10"}, "only 80 chunks"),
        ("coding-agent", {"wait_s": "1,2"}, "10 numbers"),
        ("coding-agent", {"wait_s": "10,9,8,7,6,5,4,3,2,1"}, "never descend"),
        ("coding-agent", {"compaction_tokens": "9000"}, "above scaffold_tokens"),
        ("agentic-code", {"most_tokens": "40000"}, "the shared layers alone are 52000"),
        ("agentic-code", {"growth_mean_tokens": "100"}, "is below growth_p50_tokens"),
        ("chat", {"num_users": "4000000", "num_waves": "2"}, "at most"),
    ],
)
def test_a_wrong_value_is_refused_in_one_line(name, settings, says):
    with pytest.raises(InputError) as error:
        configured(GENERATORS[name], settings=settings)
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_an_unknown_preset_is_refused():
    with pytest.raises(InputError, match="did you mean tiled"):
        configured(LongDocuments, "tile")


def test_a_corpus_too_hot_for_its_query_is_refused():
    with pytest.raises(InputError, match="hardly ever found"):
        generated("rag", settings={"zipf_factor": "30", "chunks_per_query": "9"})


def test_blocks_hold_something_and_something_comes():
    with pytest.raises(InputError, match="at least 1 token"):
        generated("chat", block_tokens=0)
    with pytest.raises(InputError, match="longer --duration"):
        generated(
            "openclaw", settings={"num_users": "1", "cron_runs_per_day": "0"}, limits=Limits(duration_ms=1)
        )
