"""Evaluations that several tests look at, each made once: the built-in scenario and small ones."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from tests.support.cases import SMALL
from tests.support.scenarios import ONE_GPU, scenario_with, trace_of, write_log
from warmset.evaluate import evaluate
from warmset.evaluation import Evaluation
from warmset.scenario import load_scenario

BUILT_IN = "built_in"


@pytest.fixture(scope="session")
def evaluated(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Evaluation]:
    """The evaluation of one case by its name."""
    folder: Path = tmp_path_factory.mktemp("logs")

    @cache
    def of(name: str) -> Evaluation:
        if name == BUILT_IN:
            return evaluate(load_scenario(None))
        rows, *changes = SMALL[name]
        log = write_log(folder / f"{name}.jsonl", rows)
        return evaluate(scenario_with(ONE_GPU, trace_of(log), *changes))

    return of


@pytest.fixture(params=[BUILT_IN, *SMALL])
def evaluation(request: pytest.FixtureRequest, evaluated: Callable[[str], Evaluation]) -> Evaluation:
    """Every case in turn: what must hold of any evaluation."""
    return evaluated(request.param)
