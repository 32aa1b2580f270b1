"""Learning on real tables: beside the same learner on exact expectations, scikit-learn without privacy, and the commoner label."""

from collections.abc import Callable

import numpy as np
import pytest

from local_dp.interaction import run
from local_dp.oracles.local.aggregate import AggregateOracle
from local_dp.populations.table import Resampled
from local_dp.protocols.learning.learn import Learn
from local_dp.protocols.surveys.policies import Launch
from local_dp.queries.questions import evaluate, parse
from local_dp.records import Records
from tests.support.inputs.tables import bounds, breast_cancer, cars, diabetes, fair

TABLES: dict[str, tuple[Callable[[], Records], str, float]] = {  # a table, its label, and by how much scikit-learn may be ahead on the rows themselves
    "cars": (cars, "Origin == 'USA'", 0.12),
    "fair": (fair, "affairs > 0", 0.03),
    "breast-cancer": (breast_cancer, "target > 0", 0.09),
    "diabetes": (diabetes, "target > 140", 0.03),
}


def compared(name: str, learner: str, given: bool, seed: int) -> tuple[float, float, float, float]:
    """The true accuracy with the clients asked for at epsilon 1, that on exact expectations, scikit-learn's and the commoner label's."""
    make, label, _ = TABLES[name]
    table = make()
    protocol = Learn(learner=learner, label=label, bounds=bounds(table) if given else (), missing="exclude").for_table(Launch(table, False))
    clients = protocol.clients(1.0)
    population = Resampled(table, clients, seed)
    lesson = run(protocol.algorithm(1.0, clients), AggregateOracle(population, np.random.default_rng(seed), 1.0))
    told = protocol.compared(lesson, population)
    return told["true_score"], told["score_on_exact_expectations"], without_privacy(table, protocol.features, label), told["true_baseline"]


def without_privacy(table: Records, features: tuple[str, ...], label: str) -> float:
    """Logistic regression's accuracy on the complete rows, standardised, in the same sense: on the rows it was fitted to."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x = np.stack([table.numbers(name) for name in features]).T
    y, kept = evaluate(parse(label), table), ~np.isnan(x).any(axis=1)
    return float(make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(x[kept], y[kept]).score(x[kept], y[kept]))


def check(name: str, learner: str, given: bool, seed: int) -> None:
    private, exact, sklearn, commoner = compared(name, learner, given, seed)
    assert abs(private - exact) <= 0.03
    assert sklearn - private <= TABLES[name][2]
    assert private > commoner + 0.02


@pytest.mark.parametrize("learner", ["logistic-regression", "local-sgd"])
def test_cars_with_missing_values(learner: str) -> None:
    """One run on the smallest table: within 3 points of exact expectations, and better than the commoner label."""
    check("cars", learner, True, 1)


def test_linear_regression_beside_least_squares() -> None:
    """On four features of diabetes, with plenty of clients, the square error is within a tenth of that of least squares without privacy."""
    table, features, clients = diabetes(), ("bmi", "bp", "s3", "s5"), 20_000_000
    protocol = Learn(learner="linear-regression", label="target", features=features, bounds=bounds(table)).for_table(Launch(table, False))
    population = Resampled(table, clients, 2)
    lesson = run(protocol.algorithm(1.0, clients), AggregateOracle(population, np.random.default_rng(2), 1.0))
    x, y = np.stack([table.numbers(name) for name in features]).T, table.numbers("target")
    from sklearn.linear_model import LinearRegression

    least = float(((LinearRegression().fit(x, y).predict(x) - y) ** 2).mean())
    error = protocol.true_score(lesson, population) * (y.max() - y.min()) ** 2
    assert least * 0.99 <= error <= 1.1 * least
    assert error < 0.7 * y.var()
