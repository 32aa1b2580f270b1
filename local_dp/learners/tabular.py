"""The learners by name, as they run on a table: their input, their hypotheses in the table's own
words, and the query that judges one."""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import cache, cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from pydantic import TypeAdapter, ValidationError

from local_dp.arrays import Bools, Column, Floats
from local_dp.checks import check_built, check_whole
from local_dp.domains import Domain, levels, symbols
from local_dp.errors import InputError
from local_dp.learners.halfspaces import Halfspace, LogisticRegression, MarginDescent, Perceptron
from local_dp.learners.learner import Learner, weighted
from local_dp.learners.moments import (
    AtLeast,
    BayesRule,
    Centres,
    KMeans,
    LinearModel,
    LinearRegression,
    LowDegree,
    NaiveBayes,
    Polynomial,
    Thresholds,
)
from local_dp.learners.rules import (
    AllOf,
    Conjunctions,
    DecisionLists,
    RuleList,
    Stump,
    Stumps,
    Tree,
    Trees,
)
from local_dp.queries.encoded import Encoding, question_in
from local_dp.queries.query import STEPS, Query
from local_dp.records import Records

HYPOTHESES: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        AllOf,
        Stump,
        AtLeast,
        BayesRule,
        Polynomial,
        RuleList,
        Halfspace,
        Tree,
        LinearModel,
        Centres,
    )
}


@cache
def _form(kind: str) -> TypeAdapter[Any]:
    if kind not in HYPOTHESES:
        raise InputError(f"no hypothesis is a {kind!r}; there are {', '.join(HYPOTHESES)}")
    return TypeAdapter(HYPOTHESES[kind])


@dataclass(frozen=True)
class Verdict(Query):
    """Of a classifier: 1 where it gives the +1/-1 label y, else 0. Of a linear model: ((prediction
    - y) / 2)^2, the prediction clipped to [-1, 1].

    Of k centres: the square distance to the nearest one as a share of the largest there can be, 4
    d. The latter two on a lattice of 2^16 steps.
    """

    name = "verdict"
    summary = "Measures the error of a prediction"
    kind: str
    hypothesis: str

    def check(self) -> None:
        check_built(self.judged)  # read now, so that a wrong text fails where it is written

    @cached_property
    def judged(self) -> Any:
        try:
            return _form(self.kind).validate_json(self.hypothesis, strict=True)
        except (ValidationError, RecursionError):
            raise InputError(f"{self.hypothesis!r:.80} is not a {self.kind} in JSON") from None

    @property
    def classifies(self) -> bool:
        """True if it says right or wrong."""
        return self.kind not in ("LinearModel", "Centres")

    @property
    def domain(self) -> Domain:
        return symbols(2) if self.classifies else levels(STEPS)

    def __call__(self, records: Records) -> Column:
        if self.classifies:
            right: Bools = self.judged.predict(records) == np.sign(records.numbers("y"))
            return right.view(np.uint8)
        share = np.clip(np.nan_to_num(self._share(records), nan=1.0), 0.0, 1.0)
        return np.asarray(share * STEPS)

    def _share(self, records: Records) -> Floats:
        rule = self.judged
        if isinstance(rule, Centres):
            distance: Floats = rule.square_distance(records)
            return distance / (4 * len(rule.points[0]))
        return np.asarray(
            ((np.clip(rule.predict(records), -1.0, 1.0) - records.numbers("y")) / 2) ** 2
        )


def verdict(hypothesis: Any) -> Verdict:
    """The query that judges the hypothesis."""
    kind = type(hypothesis).__name__
    return Verdict(kind, _form(kind).dump_json(hypothesis).decode())


Settings: TypeAlias = dict[str, Any]
Answer: TypeAlias = Literal["yes or no", "number", "none"]


@dataclass(frozen=True)
class Seen:
    """A learner for d features, and what it sees of a table: numbers of norm at most 1 or each in
    [-1, 1], bits, or a grid; a constant feature or none."""

    learner: type[Learner[Any]]
    form: str = "bits"
    norm: bool = False
    constant: int = 0
    answer: Answer = "yes or no"
    preset: Callable[[int], Settings] = lambda d: {}

    def make(self, d: int, settings: Settings) -> Learner[Any]:
        """The learner for d features, the constant one not counted."""
        size = (
            {"d": d + self.constant}
            if any(field.name == "d" for field in fields(self.learner))
            else {}
        )
        return self.learner(**{**size, **self.preset(d), **settings})

    def scale(self, d: int) -> float:
        """What a feature in [-1, 1] is multiplied with."""
        return 1 / math.sqrt(d + self.constant) if self.norm else 1.0


@dataclass(frozen=True, kw_only=True)
class TableKMeans(KMeans):
    """k-means with the start on the diagonal of the cube."""

    k: int = 2
    d: int = 2
    start: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        check_whole("k", self.k, 1, 100)
        start = tuple(((2 * place + 1) / self.k - 1,) * self.d for place in range(self.k))
        object.__setattr__(self, "start", start)
        super().__post_init__()


def _margin(loss: str) -> Seen:
    return Seen(MarginDescent, "numbers", True, 1, preset=lambda d: {"loss": loss})


TABULAR: dict[str, Seen] = {
    "logistic-regression": _margin("logistic"),
    "local-sgd": _margin("hinge"),
    "linear-regression": Seen(
        LinearRegression,
        "numbers",
        constant=1,
        answer="number",
        preset=lambda d: {"least_eigenvalue": 0.02},
    ),
    "naive-bayes": Seen(NaiveBayes),
    "trees": Seen(Trees, preset=lambda d: {"depth": min(3, d)}),
    "decision-lists": Seen(DecisionLists),
    "stumps": Seen(Stumps),
    "conjunctions": Seen(Conjunctions),
    "low-degree": Seen(LowDegree, preset=lambda d: {"degree": min(2, d)}),
    "perceptron": Seen(Perceptron, "numbers", True, 1),
    "logistic-regression-proven": Seen(LogisticRegression, "numbers", True, 1),
    "thresholds": Seen(Thresholds, "grid"),
    "k-means": Seen(TableKMeans, "numbers", answer="none", preset=lambda d: {"least_share": 0.1}),
}


def seen_by(name: str) -> Seen:
    """How the learner called `name` sees a table. Raises InputError."""
    if name not in TABULAR:
        raise InputError(f"no learner {name!r}; there are {', '.join(TABULAR)}")
    return TABULAR[name]


def settings_of(view: Seen, texts: Iterable[str]) -> Settings:
    """The learner's own parameters from texts such as depth=4. Raises InputError."""
    defaults = {
        field.name: field.default
        for field in fields(view.learner)
        if type(field.default) in (int, float, bool) and field.name != "d"
    }
    settings: Settings = {}
    for text in texts:
        name, _, value = (part.strip() for part in text.partition("="))
        if name not in defaults:
            raise InputError(
                f"this learner has no parameter {name!r}; it has {', '.join(defaults)}, written as "
                f"in {next(iter(defaults))}=..."
            )
        kind: Callable[[str], Any] = type(defaults[name])
        try:
            settings[name] = {"true": True, "false": False}[value] if kind is bool else kind(value)
        except (ValueError, KeyError):
            raise InputError(
                f"{name} is {value!r}; give a value like {str(defaults[name]).lower()}"
            ) from None
    return settings


def unit_of(hypothesis: Any, encoding: Encoding) -> float:
    """The unit of a score: 1 for a share, the squared range of the label for a square error."""
    if verdict(hypothesis).classifies or encoding.label_low == encoding.label_high:
        return 1.0
    return (encoding.label_high - encoding.label_low) ** 2


def in_words(hypothesis: Any, encoding: Encoding) -> str:
    """The hypothesis as one line about the table's own columns, in their units."""
    if isinstance(hypothesis, Halfspace):
        return f"{_sum(hypothesis.weights, encoding)} > 0"
    if isinstance(hypothesis, LinearModel):
        half = (encoding.label_high - encoding.label_low) / 2
        middle = (encoding.label_high + encoding.label_low) / 2
        return (
            f"{encoding.label} = "
            f"{_sum(tuple(half * weight for weight in hypothesis.weights), encoding, middle)}"
        )
    if isinstance(hypothesis, Centres):
        rows = (
            ", ".join(_at(place, value, encoding) for place, value in enumerate(point))
            for point in hypothesis.points
        )
        return "; ".join(rows)
    if isinstance(hypothesis, AtLeast):
        name = encoding.features[0]
        low = encoding.lows[0]
        high = encoding.highs[0]
        steps = encoding.steps
        if question_in(name):
            return (
                "always"
                if hypothesis.threshold < 1
                else f"({name})"
                if hypothesis.threshold < steps
                else "never"
            )
        step = (high - low) / steps
        return f"{name} >= {_to(low + (high - low) * hypothesis.threshold / steps, step / 1000)}"
    columns = zip(encoding.features, encoding.lows, encoding.highs, strict=False)
    bits = [
        text if question_in(text) else f"{text} > {_to((low + high) / 2, (high - low) / 1e6)}"
        for text, low, high in columns
    ]
    compound = isinstance(hypothesis, AllOf | Tree)

    def bit(match: re.Match[str]) -> str:
        if match[2]:
            return _literal(bits[int(match[1])], match[2] == "1", compound)
        return f"({bits[int(match[1])]})"

    # in one pass: a column of the table may be called x1 too
    return re.sub(r"\bx(\d+)\b(?: == ([01]))?", bit, str(hypothesis))


def _to(value: float, error: float) -> str:
    """A number, rounded so that it is off by at most this error."""
    return f"{round(value, max(0, -math.floor(math.log10(error)))):.15g}"


def _literal(bit: str, holds: bool, compound: bool) -> str:
    text = f"({bit})" if compound and " or " in bit else bit
    return text if holds else f"not ({bit})"


def _sum(weights: tuple[float, ...], encoding: Encoding, constant: float = 0.0) -> str:
    """A weighted sum of what the learner saw, in the units of the columns; a question, with the
    bounds 0 and 1, counts as 1 for yes and 0 for no."""
    units, names, largest = [], [], []
    for text, low, high, weight in zip(
        encoding.features, encoding.lows, encoding.highs, weights, strict=False
    ):
        units.append(2 * encoding.scale * weight / (high - low))
        names.append(f"({text})" if question_in(text) else text)
        largest.append(max(abs(low), abs(high)))
        constant -= units[-1] * (low + high) / 2
    if encoding.constant:
        constant += encoding.scale * weights[-1]
    error = _ROUNDED * encoding.scale * max(map(abs, weights[: len(names)]), default=0.0)
    return weighted((*units, constant), (*names, ""), error, (*largest, 1.0))


_ROUNDED = (
    0.002  # how far a printed term may be off, as a share of half the range of the largest term
)


def _at(place: int, value: float, encoding: Encoding) -> str:
    low = encoding.lows[place]
    high = encoding.highs[place]
    number = low + (high - low) * (value + 1) / 2
    return f"{encoding.features[place]} {_to(number, (high - low) / 1000)}"
