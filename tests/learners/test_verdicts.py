"""Hypotheses as data: each client judges as the hypothesis itself would."""

import json
from typing import Any

import numpy as np
import pytest

from local_dp.errors import RefusedError
from local_dp.interaction import run
from local_dp.learners.examples import error_rate
from local_dp.learners.moments import Centres, LinearModel
from local_dp.learners.tabular import HYPOTHESES, Verdict, verdict
from local_dp.learners.tasks import tasks
from local_dp.oracles.statistical.oracles import ExactOracle
from local_dp.queries.numbers import STEPS
from local_dp.queries.registry import QUERIES
from local_dp.records import Records

TASKS = tasks()


@pytest.mark.parametrize("name", TASKS)
def test_a_verdict_is_the_hypothesiss_own(name: str) -> None:
    """For every learner, the share of right verdicts is one minus its hypothesis's error, exactly; of a model or centres, the mean square error in [0, 1]."""
    population = TASKS[name].population(1, 0)
    hypothesis = run(TASKS[name].learner.algorithm(), ExactOracle(population))
    query = verdict(hypothesis)
    assert QUERIES.build(query.name, query.params()) == query
    assert query.judged == hypothesis
    law = population.law(query)
    if query.classifies:
        assert law[1] == pytest.approx(1 - error_rate(hypothesis, population))
    elif isinstance(hypothesis, LinearModel):
        error = population.shares @ (np.clip(hypothesis.predict(population.kinds), -1, 1) - population.kinds["y"]) ** 2 / 4
        assert law @ np.arange(STEPS + 1) / STEPS == pytest.approx(error, abs=1 / STEPS)
    else:
        assert isinstance(hypothesis, Centres)
        points = np.stack([population.kinds["x0"], population.kinds["x1"]])[:, None, :] - np.array(hypothesis.points).T[:, :, None]
        nearest = (points**2).sum(axis=0).min(axis=0)
        assert law @ np.arange(STEPS + 1) / STEPS == pytest.approx(population.shares @ nearest / 8, abs=1 / STEPS)


def test_every_hypothesis_has_a_verdict() -> None:
    """The hypotheses of all learners are among those that can be judged."""
    assert {type(run(task.learner.algorithm(), ExactOracle(task.population(1, 0)))).__name__ for task in TASKS.values()} == HYPOTHESES.keys()


@pytest.mark.parametrize(("kind", "hypothesis"), [
    ("Halfspace", '{"weights": []}'), ("Halfspace", '{"weights": ["1"]}'), ("Halfspace", '{"weights": [NaN]}'), ("Halfspace", ""), ("Halfspace", "[" * 10**5),
    ("Polynomial", '{"sets": [[0]], "coefficients": [1, 2]}'), ("BayesRule", '{"prior": 0.5, "yes": [[0.5], [0.5, 0.5]]}'), ("Centres", '{"points": []}'),
    ("Centres", '{"points": [[1], [1, 2]]}'), ("Tree", '{"leaves": 3}'), ("LinearModel", '{"weights": [Infinity]}'), ("Oracle", "{}"), ("Halfspace", 3),
])  # fmt: skip
def test_what_is_no_hypothesis_is_refused_with_a_code(kind: str, hypothesis: Any) -> None:
    """A text that is no hypothesis of its kind never reaches a record."""
    with pytest.raises(RefusedError):
        QUERIES.build("verdict", {"kind": kind, "hypothesis": hypothesis})


def test_a_tie_is_a_no() -> None:
    """A score of exactly 0 predicts -1 on the wire as at the server."""
    query = Verdict("Halfspace", json.dumps({"weights": [1.0, -1.0]}))
    records = Records({"x0": np.array([0.5, 0.5]), "x1": np.array([0.5, 0.5]), "y": np.array([1.0, -1.0])})
    assert query.values(records).tolist() == [0, 1]
