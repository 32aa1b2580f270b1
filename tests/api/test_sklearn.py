"""The learners in the form of scikit-learn: its own checks, labels of every kind, and what a fit
costs each client."""

import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from local_dp.errors import InputError
from local_dp.sklearn import FitError, LocalClassifier, LocalKMeans, LocalRegressor
from tests.support.wrong import wrong as wrong_twin

# so many people like the rows of a check
MANY: dict[str, Any] = {"tier": "aggregate", "clients": 10**8, "resample": True}
ESTIMATORS: dict[str, Callable[..., Any]] = {
    "classifier": lambda **how: LocalClassifier(
        parameters={"steps": 12}, bounds=(-2, 2), random_state=0, **how
    ),
    "regressor": lambda **how: LocalRegressor(
        bounds=(-2, 2), target_bounds=(-4, 4), random_state=0, **how
    ),
    "k-means": lambda **how: LocalKMeans(bounds=(-2, 2), random_state=0, **how),
}


def failed(estimator: Any) -> dict[str, str]:
    """The checks of scikit-learn that the estimator fails, and the error of each."""
    from sklearn.utils.estimator_checks import check_estimator

    results = check_estimator(estimator, on_fail=None, on_skip=None)
    assert len(results) > 40
    # needs SCIPY_ARRAY_API in the environment
    assert {each["check_name"] for each in results if each["status"] == "skipped"} <= {
        "check_array_api_input"
    }
    return {
        each["check_name"]: repr(each["exception"])
        for each in results
        if each["status"] == "failed"
    }


@pytest.mark.slow(only=("classifier", "regressor"))
@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_checks_of_scikit_learn_pass(name: str) -> None:
    """With a hundred million clients like the rows of each check, none is excepted."""
    assert failed(ESTIMATORS[name](options=MANY)) == {}


def places(count: int = 3) -> tuple[Any, Any]:
    """Points around three places, and the place of each."""
    generator = np.random.default_rng(1)
    place = np.arange(600) % count
    return np.array([[-0.7, -0.6], [0.7, -0.6], [0.0, 0.8]])[place] + generator.normal(
        size=(600, 2)
    ) / 8, place


@wrong_twin(
    "local_dp.sklearn:LocalClassifier.fit",
    "y == each",
    "y > 0",
    "the labels 1 and 2 are one class, in silence",
    at="(1, 2)",
)
@pytest.mark.parametrize(
    "labels", [(0, 1), (1, 2), (-2, -1), ("no", "yes"), ("a", "b", "c")], ids=str
)
def test_labels_of_any_kind_are_learned(labels: tuple[Any, ...]) -> None:
    """Each class is learned as a label of its own: "above 0" would make one class of 1 and 2, and
    of -2 and -1."""
    X, place = places(len(labels))
    y = np.array(labels)[place]
    model = LocalClassifier(
        bounds=(-1, 1), parameters={"steps": 8}, options=MANY, random_state=3
    ).fit(X, y)
    assert model.classes_.tolist() == sorted(labels)
    assert len(model.results_) == (1 if len(labels) == 2 else len(labels))
    assert model.score(X, y) > 0.95
    assert model.decision_function(X).shape == ((600,) if len(labels) == 2 else (600, len(labels)))


@wrong_twin(
    "local_dp.sklearn:_Private._learn",
    "np.array_split(chance.permutation(len(X)), len(labels))",
    "[chance.permutation(len(X)) for _ in labels]",
    "of k classes, each client spends k times epsilon",
)
def test_each_client_answers_once() -> None:
    """The rules of three classes divide the clients among them, and none spends more than
    epsilon."""
    X, y = places()
    how: dict[str, Any] = {
        "bounds": (-1, 1),
        "parameters": {"steps": 2},
        "options": {"notice": str},
    }
    model = LocalClassifier(epsilon=2.0, random_state=1, **how).fit(X, y)
    runs = [result.to_dict() for result in model.results_]
    assert all(
        run["table"]["rows"] == 200
        and run["clients"]["asked"] <= 200
        and run["max_epsilon_spent"] <= 2.0
        for run in runs
    )
    assert len({run["seed"] for run in runs}) == 3
    again = LocalClassifier(epsilon=2.0, random_state=1, **how).fit(X, y)
    assert np.array_equal(again.decision_function(X), model.decision_function(X))


def test_a_private_fit_takes_nothing_from_the_values() -> None:
    """It needs the classes, takes no seed, and no number or label is an error."""
    X, y = places(2)
    X[0, 0], X[1, 0], y[1] = np.nan, np.inf, 9
    how: dict[str, Any] = {
        "bounds": (-1, 1),
        "parameters": {"steps": 2},
        "options": {"private": True, "notice": str},
    }
    model = LocalClassifier(classes=[0, 1], **how).fit(X, y)
    assert model.results_[0].to_dict()["private"] is True
    line = LocalRegressor(bounds=(-1, 1), target_bounds=(0, 1), options=how["options"]).fit(
        X, np.where(y == 9, np.nan, y)
    )
    assert line.results_[0].to_dict()["parameters"]["missing"] == "exclude"
    for wrong, words in (
        (LocalClassifier(**how), "list the labels"),
        (LocalClassifier(classes=[0, 1], random_state=1, **how), "takes no seed"),
    ):
        with pytest.raises(FitError, match=words):
            wrong.fit(X, y)
    for model, words in (
        (LocalClassifier(classes=[0, 1]), "contains NaN"),
        (LocalRegressor(), "contains NaN"),
    ):
        with pytest.raises(ValueError, match=words):
            model.fit(X, y)
    with pytest.raises(FitError, match="not among the 2 classes"):
        LocalClassifier(classes=[0, 1]).fit(np.nan_to_num(X), y)


def test_a_line_and_centres_are_learned_in_their_units() -> None:
    """The prediction is a number of the target's scale within its bounds; the centres and their
    clusters are those of the points."""
    X, place = places()
    y = 100 + 20 * X[:, 0] - 10 * X[:, 1]
    line = LocalRegressor(
        bounds={"x0": (-1, 1), "x1": (-1, 1)}, target_bounds=(60, 140), options=MANY, random_state=1
    ).fit(X, y)
    assert line.score(X, y) > 0.9
    assert line.predict(np.array([[50.0, -50.0]])).max() <= 140
    centres = LocalKMeans(3, bounds=(-1, 1), options=MANY, random_state=1).fit(X)
    true = np.array([X[place == each].mean(axis=0) for each in range(3)])
    assert np.abs(centres.cluster_centers_[:, None] - true).max(axis=2).min(axis=0).max() < 0.1
    assert centres.score(X) == pytest.approx(
        -((X - centres.cluster_centers_[centres.labels_]) ** 2).sum()
    )


def test_bounds_go_by_the_names_of_the_frame() -> None:
    """Also where a name is no word, so that the rule calls the columns x0 and x1; and texts are no
    classes of numbers, nor in private."""
    import pandas

    X, y = places(2)
    frame = pandas.DataFrame(X, columns=["age (years)", "x0"])
    bounds = {"age (years)": (-1, 1), "x0": (-1, 1)}
    model = LocalClassifier(
        bounds=bounds, parameters={"steps": 2}, options=MANY, random_state=1
    ).fit(frame, y)
    assert model.results_[0].to_dict()["result"]["bounds"] == {"x0": [-1.0, 1.0], "x1": [-1.0, 1.0]}
    for options in (MANY, {"private": True}):
        with pytest.raises(FitError, match=r"both as texts|not among the 2 classes"):
            LocalClassifier(classes=[0, 1], bounds=(-1, 1), options=options).fit(X, y.astype(str))


def test_bad_input_is_one_line_and_a_value_error() -> None:
    X, y = places(2)
    for model, words in (
        (LocalClassifier(), "too few to learn"),
        (LocalClassifier("forests"), "no learner 'forests'"),
        (LocalClassifier(options={"teir": "hosts"}), "no parameter 'teir'; did you mean 'tier'"),
        (LocalClassifier(bounds={"x0": 3}), r"give \(low, high\)"),
        (LocalClassifier(options={"seed": 1}), "give it as random_state"),
        (LocalKMeans(0, bounds=(-1, 1)), "k is 0"),
    ):
        with pytest.raises(InputError, match=words) as error:
            model.fit(X, y)
        assert isinstance(error.value, ValueError)


def test_scikit_learn_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it only `local_dp.sklearn` is missing, and says what to install."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "sklearn"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "local_dp.sklearn")
    with pytest.raises(ImportError, match=r"pip install 'local-dp\[examples\]'"):
        importlib.import_module("local_dp.sklearn")
