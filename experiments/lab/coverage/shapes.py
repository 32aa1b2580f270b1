"""Columns of hard shapes, whose mean is asked for without bounds, and tables that a learner finds the bounds of."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.tails import normal_quantile
from local_dp.experiments.lab.coverage.repetition import AT_LEAST, Case
from local_dp.experiments.lab.coverage.runs import Placed, Played
from local_dp.populations.finite import Finite, Population
from local_dp.protocols.learning.learn import Learn, Lesson, unit_of
from local_dp.protocols.vectors.mean_found import FoundMean, MeanFound, finding_clients
from local_dp.records import Records
from local_dp.tallies import Estimate

POINTS = 2000
UNIFORM: Floats = (np.arange(POINTS) + 0.5) / POINTS
BELL: Floats = np.array([-normal_quantile(share) for share in UNIFORM])
CAUCHY: Floats = np.tan(np.pi * (UNIFORM - 0.5))


def weighted(*parts: tuple[Any, float]) -> Floats:
    """A column of POINTS numbers: each part, a number or a column, on its share of them."""
    return np.concatenate([np.resize(np.asarray(values, dtype=np.float64), round(share * POINTS)) for values, share in parts])


SHAPES: dict[str, Floats] = {
    "yes and no, 12 % yes": weighted((0, 0.8765), (1, 0.1235)),
    "yes and no, 1 % yes": weighted((0, 0.99), (1, 0.01)),
    "yes and no, 97 % yes": weighted((0, 0.03), (1, 0.97)),
    "yes and no, half missing": weighted((0, 0.4), (1, 0.1), (np.nan, 0.5)),
    "answers 1 to 5": weighted((1, 0.1), (2, 0.2), (3, 0.3), (4, 0.25), (5, 0.15)),
    "counts with many zeros": weighted((0, 0.75), (1, 0.06), (2, 0.03), (3, 0.03), (7, 0.07), (12, 0.06)),
    "geometric counts": np.asarray(np.floor(np.log(UNIFORM) / math.log(0.7)), dtype=np.float64),
    "0 for all": np.zeros(POINTS),
    "5 for all": np.full(POINTS, 5.0),
    "-1,000 for all": np.full(POINTS, -1000.0),
    "years": np.resize(np.arange(1970.0, 1983.0), POINTS),
    "bell": BELL,
    "bell far from 0": 1000 + 20 * BELL,
    "tiny bell": 0.001 + 0.0004 * BELL,
    "Cauchy": CAUCHY,
    "lognormal, sigma 1.5": np.exp(1.5 * BELL),
    "incomes": np.exp(10 + BELL),
    "Pareto, index 1.5": UNIFORM ** (-1 / 1.5),
    "two far modes": weighted((1, 0.9), (1e6, 0.1)),
    "exponential, 80 % zeros": weighted((0, 0.8), (-50 * np.log(UNIFORM[::5]), 0.2)),
}


def found_means(epsilon: float, columns: dict[str, Floats] | None = None) -> Iterator[Case]:
    """Two coordinates: the mean of the values clipped to the bounds found, less its truth, and the share outside, less its own."""
    protocol = MeanFound()
    n = protocol.clients(epsilon)
    for name, column in (SHAPES if columns is None else columns).items():
        population = Finite(Records({protocol.column: column}), [1.0] * len(column), n, 0)
        draw = Played(protocol, population, epsilon, partial(_away, protocol, population))
        yield Case("mean-found", name, epsilon, n, np.zeros(2), draw, binomial=False, band=AT_LEAST, default=True, dear=100)


def _away(protocol: MeanFound, population: Population, found: FoundMean) -> tuple[Estimate, ...]:
    truths = protocol.truth_of(found, population), protocol.beyond(found.bounds).truth(population)
    return tuple(each.on_scale(-truth, 1 - truth) for each, truth in zip((found.estimate, found.outside), truths, strict=True))


def learned(epsilon: float) -> Iterator[Case]:
    """The stated score, less the true one, where no bounds are given: of a rule for yes and no, and of a line through a label with many zeros."""
    shapes = [SHAPES[name] for name in ("counts with many zeros", "years", "yes and no, 12 % yes")]
    label, *features = (np.random.default_rng(place).permutation(column) for place, column in enumerate(shapes))
    records = Records({"label": label, "x": features[0] + label, "z": features[1]})
    n = max(LEARNERS, 8 * finding_clients(epsilon))  # at a small epsilon twice those who find the bounds of two columns
    for learner, text in (("logistic-regression", "label > 0"), ("linear-regression", "label")):
        protocol = Learn(learner=learner, label=text, features=("x", "z"))
        population = Finite(records, [1.0] * POINTS, n, 0)
        draw = Played(protocol, population, epsilon, partial(_score_away, protocol, population))
        yield Case("learn", f"{learner}, no bounds", epsilon, n, np.zeros(1), draw, binomial=False, band=AT_LEAST, dear=200)


LEARNERS = 300_000


def _score_away(protocol: Learn, population: Population, lesson: Lesson) -> tuple[Estimate, ...]:
    score, unit = lesson.score, unit_of(lesson.hypothesis, lesson.encoding)
    value, low, high = ((end - protocol.true_score(lesson, population)) * unit for end in (score.value, score.low, score.high))
    return (Placed(np.array([value]), np.array([score.standard_error * unit]), score.n, None, (np.array([low]), np.array([high]))),)


SHAPED: dict[str, Callable[[float], Iterator[Case]]] = {"mean-found": found_means, "learn": learned}
