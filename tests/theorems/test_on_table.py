"""SQ algorithms on a table: the same result as on the encoded, complete rows."""

from typing import Any

import numpy as np
import pytest

from local_dp.interaction import Adaptive, Nonadaptive, run
from local_dp.learners.tabular import TABULAR
from local_dp.oracles.statistical.oracles import ExactOracle
from local_dp.populations.finite import Finite
from local_dp.populations.table import Rows
from local_dp.queries.encoded import Encoding
from local_dp.records import Records
from local_dp.theorems.on_table import among_complete, on_table

GENERATOR = np.random.default_rng(7)
VALUES = GENERATOR.normal(size=(3, 400))
LABEL = (VALUES[0] + 0.5 * VALUES[1] + 0.3 * GENERATOR.normal(size=400) > 0).astype(float)
HOLES = GENERATOR.random(size=(4, 400)) < 0.1
TABLE = Records(dict(zip("abcz", np.where(HOLES, np.nan, np.vstack([VALUES, LABEL])), strict=True)))


def posed(name: str) -> tuple[Any, Encoding]:
    """A learner, and the table as it sees it."""
    seen = TABULAR[name]
    features = ("a",) if seen.form == "grid" else ("a", "b", "c > 0.2")
    d = len(features)
    y = (-1.0, 2.0) if seen.answer == "number" else (0.0, 0.0)
    lows, highs = (-2.0, -2.0, 0.0)[:d], (2.0, 2.0, 1.0)[:d]
    learner = seen.make(d, {"steps": 5} if name in ("local-sgd", "logistic-regression") else {})
    return learner, Encoding(
        features=features, lows=lows, highs=highs, form=seen.form, scale=seen.scale(d), constant=seen.constant,
        steps=16, label="" if seen.answer == "none" else "z", label_low=y[0], label_high=y[1],
    )  # fmt: skip


@pytest.mark.parametrize("name", TABULAR)
def test_expectations_over_complete_rows_are_exact(name: str) -> None:
    """Every learner on an exact oracle over the table with holes gives what it gives on the encoded complete rows; undivided answers give some another."""
    learner, encoding = posed(name)
    kept = encoding.present(TABLE)
    assert 0.4 < kept.mean() < 0.9
    complete = Finite(encoding.encode(TABLE.take(np.flatnonzero(kept))), [1.0] * int(kept.sum()), 1, 0)
    expected = run(learner.algorithm(), ExactOracle(complete))
    algorithm = among_complete(learner.algorithm(), encoding)
    assert isinstance(algorithm, Adaptive if learner.model() == "SQ" else Nonadaptive)
    oracle = ExactOracle(Rows(TABLE))
    assert numbers(run(algorithm, oracle)) == pytest.approx(numbers(expected), abs=1e-9)
    assert oracle.queries <= learner.queries + 1
    assert oracle.rounds <= learner.rounds
    if name in ("logistic-regression", "naive-bayes", "low-degree"):
        assert numbers(run(on_table(learner.algorithm(), encoding), ExactOracle(Rows(TABLE)))) != pytest.approx(numbers(expected), abs=1e-2)


def numbers(hypothesis: Any) -> list[float]:
    """Everything that is a number in a hypothesis."""
    if isinstance(hypothesis, (int, float)):
        return [float(hypothesis)]
    if isinstance(hypothesis, tuple):
        return [number for part in hypothesis for number in numbers(part)]
    return [] if hypothesis is None else numbers(tuple(vars(hypothesis).values()))
