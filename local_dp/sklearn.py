"""Private learners in the form of scikit-learn. Each row is the record of a client, and `fit` asks
each client at most once.

`LocalClassifier`, `LocalRegressor` and `LocalKMeans` run the learners of `ldp.learn`. Privacy:
every report is epsilon-locally private. `fit` stores the runs as `results_`: each shows its rule,
and its accuracy on clients held out for that, with an interval. `predict` and `score` compute on
the given rows as they are, without privacy.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, ClusterMixin, RegressorMixin
    from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise ImportError(
        "local_dp.sklearn needs scikit-learn 1.6 or newer; install it: pip install "
        "'local-dp[examples]'"
    ) from None

from local_dp.api.function import run
from local_dp.api.result import Result
from local_dp.api.tables import ends_of
from local_dp.arrays import Floats, Ints
from local_dp.errors import InputError
from local_dp.records import Records

__all__ = ["FitError", "LocalClassifier", "LocalKMeans", "LocalRegressor"]


class FitError(InputError, ValueError):
    """An InputError that is a ValueError too, as scikit-learn expects."""


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except InputError as error:
        raise FitError(str(error)) from None


@dataclass(kw_only=True, eq=False, repr=False)
class _Private(BaseEstimator):
    """The base of the estimators: rows become records, and a learned rule is applied to rows."""

    epsilon: float = 1.0
    bounds: Any = None
    parameters: Mapping[str, object] | None = None
    held_out: float = 0.2
    options: Mapping[str, Any] | None = None
    random_state: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.random_state is None
        return tags

    @property
    def _private(self) -> bool:
        return bool((self.options or {}).get("private"))

    def _rows(self, X: Any, y: Any = "no_validation", **how: Any) -> Any:
        """Checked rows and labels. Of a private fit any number is taken, for a refusal would reveal
        one."""
        if not self._private:
            return validate_data(self, X, y, dtype=np.float64, **how)
        rows = validate_data(
            self, X, dtype=np.float64, ensure_all_finite=False, reset=how.get("reset", True)
        )
        if isinstance(y, str):
            return rows
        labels = column_or_1d(y)
        check_consistent_length(rows, labels)
        return rows, labels

    @property
    def _names(self) -> list[str]:
        """The columns of the table: the names of a frame, where they can be columns beside the
        label; else x0, x1, ..."""
        names = [str(name) for name in getattr(self, "feature_names_in_", [])]
        plain = (
            names
            and len(set(names)) == len(names)
            and all(map(str.isidentifier, names))
            and _LABEL not in names
        )
        return names if plain else [f"x{place}" for place in range(self.n_features_in_)]

    @property
    def _bounds(self) -> dict[str, tuple[float, float]]:
        """The public bounds of each column; those of no column, where clients find them."""
        if self.bounds is None:
            return {}
        if isinstance(self.bounds, Mapping):
            names = dict(
                zip(map(str, getattr(self, "feature_names_in_", [])), self._names, strict=False)
            )
            return {
                names.get(str(name), str(name)): ends_of(ends) for name, ends in self.bounds.items()
            }
        ends = np.broadcast_to(
            np.asarray(self.bounds, dtype=np.float64), (len(self._names), 2)
        ).tolist()
        return {name: ends_of(pair) for name, pair in zip(self._names, ends, strict=True)}

    def _learn(self, X: Floats, labels: list[Any], label: str, **parameters: Any) -> None:
        """Learns each column of labels from clients of its own: equal parts of the rows, dealt at
        random. Raises FitError."""
        private, chance = self._private, check_random_state(self.random_state)
        if private and self.random_state is not None:
            raise FitError(
                f"random_state is {self.random_state!r}, and a private fit takes no seed; leave "
                "out one of the two"
            )
        for name, own in (("epsilon", "epsilon"), ("seed", "random_state")):
            if name in (self.options or {}):
                raise FitError(f"{name} is among the options; give it as {own}")
        parts = np.array_split(chance.permutation(len(X)), len(labels))
        options = {"epsilon": self.epsilon, **(self.options or {})}
        if options.get("clients") is not None:
            options["clients"] //= len(labels)
        about = {
            "label": label,
            "features": tuple(self._names),
            "missing": "exclude" if private else "refuse",
            "bounds": self._bounds,
            "parameters": self.parameters,
            "held_out": self.held_out,
            **parameters,
        }
        self.results_: list[Result] = []
        for part, values in zip(parts, labels, strict=True):
            table = dict(zip(self._names, X[part].T.copy(), strict=True)) | (
                {} if values is None else {_LABEL: values[part]}
            )
            seed = {} if private else {"seed": int(chance.randint(1 << 31))}
            self.results_.append(
                run("learn", table, learner=self.learner, **about, **options, **seed)
            )

    def _rules(self, X: Any) -> Iterator[tuple[Any, Records]]:
        """Each learned rule with the rows as its learner sees them."""
        check_is_fitted(self)
        columns = self._rows(X, reset=False).T
        for result in self.results_:
            encoding = replace(result.answer.encoding, label="", label_low=0.0, label_high=0.0)
            yield (
                result.answer.hypothesis,
                encoding.encode(Records(dict(zip(self._names, columns, strict=True)))),
            )


_LABEL = "label"


@dataclass(kw_only=True, eq=False, repr=False)
class LocalClassifier(ClassifierMixin, _Private):
    """Predicts a label by any classifier of `local-dp describe learn`. Two classes need one rule;
    of more, each has a rule against the rest.

    The rules of several classes are learned by equal parts of the clients, each with the whole
    epsilon. The largest score wins; a tie goes to the first class.

    learner: the learner's name. epsilon: the privacy budget of each client, in nats. classes: the
    public labels; without them they are read from y, which publishes them. bounds: public bounds of
    the features, one pair for all, a pair for each, or a mapping; clients find missing ones
    privately. cuts: cuts of a feature, for learners of bits. parameters: the learner's own, such as
    {"depth": 2}. held_out: the share of the clients who judge the rule. options: the other options
    of a run, such as {"private": True}. random_state: the seed of the simulation.
    """

    learner: str = field(default="logistic-regression", kw_only=False)
    classes: Any = None
    cuts: int = 1

    @_refusals()
    def fit(self, X: Any, y: Any) -> "LocalClassifier":
        """Learns a rule for each class. Raises FitError for labels that are not listed, and where
        the clients are too few."""
        X, y = self._rows(X, y)
        if self.classes is None and self._private:
            raise FitError(
                "a private fit takes nothing public from y: list the labels, as in classes=[0, 1]"
            )
        if not self._private:
            check_classification_targets(y)
        self.classes_ = np.unique(y if self.classes is None else self.classes)
        if len(self.classes_) < 2:
            raise FitError(f"there is one class, {self.classes_.tolist()}; give two or more")
        if not self._private and not np.isin(y, self.classes_).all():
            raise FitError(
                f"y has a label that is not among the {len(self.classes_)} classes; list all of "
                "them"
            )
        kinds = self.classes_.dtype.kind, np.asarray(y).dtype.kind
        if any(one in "US" and other in "biuf" for one, other in (kinds, kinds[::-1])):
            raise FitError(
                f"the classes are {self.classes_.tolist()!r:.80}, and y is of another kind; give "
                "both as texts, or both as numbers"
            )
        targets = self.classes_[1:] if len(self.classes_) == 2 else self.classes_
        labels = [(y == each).astype(np.uint8) for each in targets]
        self._learn(X, labels, f"{_LABEL} == 1", cuts=self.cuts)
        return self

    def decision_function(self, X: Any) -> Floats:
        """The score of each class, shape (n, classes); of two classes, that of the second, shape
        (n,), which is predicted above 0."""
        scores = np.stack(
            [
                np.asarray(getattr(rule, "score", rule.predict)(rows), dtype=np.float64)
                for rule, rows in self._rules(X)
            ],
            axis=1,
        )
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> Any:
        """The class of each row."""
        scores = self.decision_function(X)
        return self.classes_[
            (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
        ]


@dataclass(kw_only=True, eq=False, repr=False)
class LocalRegressor(RegressorMixin, _Private):
    """Predicts a number by linear regression; a prediction is clipped to the bounds of the target.

    target_bounds: public bounds of the target; without them clients find them privately. The other
    parameters are those of `LocalClassifier`.
    """

    learner: ClassVar[str] = "linear-regression"

    target_bounds: tuple[float, float] | None = None

    @_refusals()
    def fit(self, X: Any, y: Any) -> "LocalRegressor":
        """Learns the weights of the features. Raises FitError where the clients are too few."""
        X, y = self._rows(X, y, y_numeric=True, ensure_min_samples=2)
        bounds = self._bounds | (
            {} if self.target_bounds is None else {_LABEL: ends_of(self.target_bounds)}
        )
        self._learn(X, [y.astype(np.float64)], _LABEL, bounds=bounds)
        return self

    def predict(self, X: Any) -> Floats:
        """The predicted number of each row."""
        ((rule, rows),) = self._rules(X)
        encoding = self.results_[0].answer.encoding
        share = (np.clip(rule.predict(rows), -1.0, 1.0) + 1) / 2
        return np.asarray(encoding.label_low + (encoding.label_high - encoding.label_low) * share)


@dataclass(kw_only=True, eq=False, repr=False)
class LocalKMeans(ClusterMixin, _Private):
    """Finds centres by Lloyd's iteration from a start on the diagonal between the bounds.

    n_clusters: the number of centres. The other parameters are those of `LocalClassifier`.
    `labels_` are the clusters of the fitted rows, without privacy.
    """

    learner: ClassVar[str] = "k-means"

    n_clusters: int = field(default=2, kw_only=False)

    @_refusals()
    def fit(self, X: Any, y: Any = None) -> "LocalKMeans":
        """Learns the centres; `y` is not used. Raises FitError where the clients are too few."""
        rows = self._rows(X, ensure_min_samples=2)
        parameters = {
            "k": self.n_clusters,
            "least_share": min(0.1, 1 / max(1, self.n_clusters)),
            **(self.parameters or {}),
        }
        self._learn(rows, [None], "", parameters=parameters)
        lesson = self.results_[0].answer
        low = np.array(lesson.encoding.lows)
        high = np.array(lesson.encoding.highs)
        self.cluster_centers_ = low + (high - low) * (np.array(lesson.hypothesis.points) + 1) / 2
        self.labels_ = self.predict(X)
        return self

    def predict(self, X: Any) -> Ints:
        """The nearest centre of each row, where each column is scaled from its bounds to -1 and
        1."""
        ((rule, rows),) = self._rules(X)
        return np.asarray(rule.predict(rows), dtype=np.int32)

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the sum of the square distances to the centres of `predict`, where each column is
        scaled as there."""
        encoding = self.results_[0].answer.encoding
        away = self._rows(X, reset=False) - self.cluster_centers_[self.predict(X)]
        highs = np.array(encoding.highs)
        return -float(((2 * away / (highs - np.array(encoding.lows))) ** 2).sum())
