"""The result tree on its own: JSON both ways, and what does not fit is refused with its place."""

import json

import msgspec
import pytest

from tests.support.evaluations import evaluation, with_unknowns
from warmset.evaluation import BASELINES, ByBaseline, from_json, to_json
from warmset.facts import exact


@pytest.mark.parametrize("made", [evaluation, with_unknowns])
def test_json_there_and_back(made):
    assert from_json(to_json(made())) == made()


def test_json_is_indented_and_keeps_every_digit():
    text = to_json(evaluation(reference_nodes=7)).decode()
    assert '\n  "reference_nodes": 7,\n' in text
    values = ByBaseline(none=exact(0.1 + 0.2, "s"), engine=exact(1 / 3, "s"), tiered=exact(1e-300, "s"))
    assert msgspec.json.decode(msgspec.json.encode(values), type=ByBaseline) == values


def test_each_baseline_has_its_own():
    values = ByBaseline(none=exact(1, "s"), engine=exact(2, "s"), tiered=exact(3, "s"))
    assert [values.of(baseline).mid for baseline in BASELINES] == [1, 2, 3]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"verdict": {"decision": "perhaps", "reasons": [], "would_change": []}}, r"\$\.verdict\.decision"),
        ({"reference_nodes": None}, r"\$\.reference_nodes"),
        ({"surprise": 1}, "surprise"),
    ],
    ids=["unknown_choice", "missing_number", "unknown_field"],
)
def test_what_does_not_fit(change, path):
    tree = json.loads(to_json(evaluation())) | change
    with pytest.raises(msgspec.ValidationError, match=path):
        from_json(json.dumps(tree).encode())
