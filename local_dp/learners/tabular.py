"""The learners by name, as they are run on a table: what they see of it, how they are made, and their hypotheses in the table's own words."""

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

from local_dp.errors import InputError
from local_dp.learners.fourier import LowDegree
from local_dp.learners.halfspaces import Halfspace, LogisticRegression, MarginDescent, Perceptron
from local_dp.learners.k_means import Centres, KMeans
from local_dp.learners.learner import Learner, weighted
from local_dp.learners.linear_regression import LinearModel, LinearRegression
from local_dp.learners.naive_bayes import NaiveBayes
from local_dp.learners.rules import AllOf, Conjunctions, DecisionLists, Stumps, Trees
from local_dp.learners.thresholds import AtLeast, Thresholds
from local_dp.queries.encoded import Encoding, question_in

Settings: TypeAlias = dict[str, Any]
Answer: TypeAlias = Literal["yes or no", "number", "none"]


@dataclass(frozen=True)
class Seen:
    """A learner for d features, and what it sees of a table: numbers of norm at most 1 or each in [-1, 1], bits, or a grid; a constant feature or none."""

    learner: type[Learner[Any]]
    form: str = "bits"
    norm: bool = False
    constant: int = 0
    answer: Answer = "yes or no"
    preset: Callable[[int], Settings] = lambda d: {}

    def make(self, d: int, given: Settings) -> Learner[Any]:
        """The learner for d features, the constant one not counted."""
        sized = {"d": d + self.constant} if any(field.name == "d" for field in fields(self.learner)) else {}
        return self.learner(**{**sized, **self.preset(d), **given})

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
        if type(self.k) is not int or not 2 <= self.k <= 100:
            raise InputError(f"k is {self.k!r}; give a whole number of centres from 2 to 100")
        object.__setattr__(self, "start", tuple(((2 * place + 1) / self.k - 1,) * self.d for place in range(self.k)))
        super().__post_init__()


def _margin(loss: str) -> Seen:
    return Seen(MarginDescent, "numbers", True, 1, preset=lambda d: {"loss": loss})


TABULAR: dict[str, Seen] = {
    "logistic-regression": _margin("logistic"),
    "local-sgd": _margin("hinge"),
    "linear-regression": Seen(LinearRegression, "numbers", constant=1, answer="number", preset=lambda d: {"least_eigenvalue": 0.02}),
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


def settings_of(seen: Seen, texts: Iterable[str]) -> Settings:
    """The learner's own parameters from texts such as depth=4. Raises InputError."""
    known = {field.name: field.default for field in fields(seen.learner) if type(field.default) in (int, float, bool) and field.name != "d"}
    given: Settings = {}
    for text in texts:
        name, _, value = (part.strip() for part in text.partition("="))
        if name not in known:
            raise InputError(f"this learner has no parameter {name!r}; it has {', '.join(known)}, written as in {next(iter(known))}=...")
        kind: Callable[[str], Any] = type(known[name])
        try:
            given[name] = {"true": True, "false": False}[value] if kind is bool else kind(value)
        except (ValueError, KeyError):
            raise InputError(f"{name} is {value!r}; give a value like {str(known[name]).lower()}") from None
    return given


def in_words(hypothesis: Any, encoding: Encoding) -> str:
    """The hypothesis as one line about the table's own columns, in their units."""
    if isinstance(hypothesis, Halfspace):
        return f"{_sum(hypothesis.weights, encoding)} > 0"
    if isinstance(hypothesis, LinearModel):
        half, middle = (encoding.label_high - encoding.label_low) / 2, (encoding.label_high + encoding.label_low) / 2
        return f"{encoding.label} = {_sum(tuple(half * weight for weight in hypothesis.weights), encoding, middle)}"
    if isinstance(hypothesis, Centres):
        return "; ".join(", ".join(_at(place, value, encoding) for place, value in enumerate(point)) for point in hypothesis.points)
    if isinstance(hypothesis, AtLeast):
        low, high = encoding.lows[0], encoding.highs[0]
        return f"{encoding.features[0]} >= {low + (high - low) * hypothesis.threshold / encoding.steps:.6g}"
    bits = tuple(map(_bit, encoding.features, encoding.lows, encoding.highs))
    text = re.sub(r"\bx(\d+) == ([01])", lambda found: _literal(bits[int(found[1])], found[2] == "1", isinstance(hypothesis, AllOf)), str(hypothesis))
    return re.sub(r"\bx(\d+)\b", lambda found: f"({bits[int(found[1])]})", text)


def _literal(bit: str, holds: bool, nested: bool) -> str:
    text = f"({bit})" if nested and " or " in bit else bit
    return text if holds else f"not ({bit})"


def _bit(text: str, low: float, high: float) -> str:
    return text if question_in(text) else f"{text} > {(low + high) / 2:.6g}"


def _sum(weights: tuple[float, ...], encoding: Encoding, constant: float = 0.0) -> str:
    """A weighted sum of what the learner saw, in the units of the columns; a question, with the bounds 0 and 1, counts as 1 for yes and 0 for no."""
    units, names = [], []
    for text, low, high, weight in zip(encoding.features, encoding.lows, encoding.highs, weights, strict=False):
        units.append(2 * encoding.scale * weight / (high - low))
        names.append(f"({text})" if question_in(text) else text)
        constant -= units[-1] * (low + high) / 2
    if encoding.constant:
        constant += encoding.scale * weights[-1]
    return weighted((*units, constant), (*names, ""))


def _at(place: int, value: float, encoding: Encoding) -> str:
    low, high = encoding.lows[place], encoding.highs[place]
    return f"{encoding.features[place]} {low + (high - low) * (value + 1) / 2:.4g}"
