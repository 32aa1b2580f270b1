"""A mean without bounds, and a learner that finds them, on columns of hard shapes and on real ones:
the intervals hold what they are called."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import local_dp.protocols.vectors.mean_found as room
from local_dp.arrays import Floats
from local_dp.bounds.tails import normal_quantile
from local_dp.interaction import run
from local_dp.oracles.local.oracles import AggregateOracle
from local_dp.populations.finite import Finite, Resampled
from local_dp.protocols.learning.learn import Learn
from local_dp.protocols.local_protocol import LocalProtocol
from local_dp.protocols.vectors.mean_found import EDGES, MeanFound, Range
from local_dp.records import Records
from tests.support.inputs.tables import real_columns
from tests.support.long import short
from tests.support.wrong import wrong

POINTS = 2000
UNIFORM: Floats = (np.arange(POINTS) + 0.5) / POINTS
BELL: Floats = np.array([-normal_quantile(share) for share in UNIFORM])
CAUCHY: Floats = np.tan(np.pi * (UNIFORM - 0.5))


def weighted(*parts: tuple[Any, float]) -> Floats:
    """A column of POINTS numbers: each part, a number or a column, on its share of them."""
    columns = []
    for values, share in parts:
        columns.append(np.resize(np.asarray(values, dtype=np.float64), round(share * POINTS)))
    return np.concatenate(columns)


SHAPES: dict[str, Floats] = {
    "yes and no, 12 % yes": weighted((0, 0.8765), (1, 0.1235)),
    "yes and no, 1 % yes": weighted((0, 0.99), (1, 0.01)),
    "yes and no, 97 % yes": weighted((0, 0.03), (1, 0.97)),
    "yes and no, half missing": weighted((0, 0.4), (1, 0.1), (np.nan, 0.5)),
    "answers 1 to 5": weighted((1, 0.1), (2, 0.2), (3, 0.3), (4, 0.25), (5, 0.15)),
    "counts with many zeros": weighted(
        (0, 0.75), (1, 0.06), (2, 0.03), (3, 0.03), (7, 0.07), (12, 0.06)
    ),
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

# the coverage claimed, and the chance that any of all the tests here fails where it is true
LEVEL, FAILURE = 0.94, 1e-4
LOOKS = 2 * (len(SHAPES) + 11) + 2
CAUGHT = 0.8  # a coverage that 300 runs reject with probability 0.99


def least(runs: int) -> int:
    """The fewest runs that may hold the truth: fewer come with probability FAILURE / LOOKS where
    the coverage is LEVEL."""
    return int(stats.binom.ppf(FAILURE / LOOKS, runs, LEVEL))


def held(column: Floats, runs: int) -> int:
    """In how many runs the mean of the clipped values, and the share outside, each lie in their
    interval: the fewer."""
    protocol = MeanFound()
    records = Records({protocol.column: column})
    population = Finite(records, [1.0] * len(column), protocol.clients(1.0), 0)
    counts = np.zeros(2, dtype=np.int64)
    for result in results(protocol, population, runs):
        outside = protocol.beyond(result.bounds).truth(population)
        truths = protocol.truth_of(result, population), outside
        for at, estimate in enumerate((result.estimate, result.outside)):
            low, high = estimate.interval()
            counts[at] += bool(low <= truths[at] <= high)
    return int(counts.min())


def results(protocol: LocalProtocol[Any], population: Finite, runs: int) -> Iterator[Any]:
    generator, algorithm = np.random.default_rng(11), protocol.algorithm(1.0, population.size)
    for _ in range(runs):
        yield run(algorithm, AggregateOracle(population, generator, 1.0))


def test_the_number_of_runs_is_enough() -> None:
    assert stats.binom.cdf(least(300) - 1, 300, LEVEL) <= FAILURE / LOOKS
    assert stats.binom.cdf(least(300) - 1, 300, CAUGHT) >= 0.99


# one of a kind
HARD = (
    "yes and no, 1 % yes",
    "Cauchy",
    "lognormal, sigma 1.5",
    "geometric counts",
    "5 for all",
)


@pytest.mark.parametrize(("name", "runs"), [
    (HARD[0], 60), *(pytest.param(name, 60, marks=pytest.mark.long) for name in HARD[1:]),
    *(pytest.param(name, 300, marks=pytest.mark.slow) for name in SHAPES),
])  # fmt: skip
def test_a_mean_without_bounds_holds_on_any_shape(name: str, runs: int) -> None:
    """The interval holds the mean of the clipped values, and the share outside is in its own."""
    assert held(SHAPES[name], runs) >= least(runs)


@pytest.mark.slow
def test_a_mean_without_bounds_holds_on_real_columns() -> None:
    columns = real_columns()
    assert len(columns) == 10
    for name, column in columns.items():
        assert held(column, 300) >= least(300), name


@pytest.mark.long
@pytest.mark.slow(only=("300",))
@pytest.mark.parametrize("runs", [60, 300])
def test_the_score_of_a_learner_without_bounds_holds(runs: int) -> None:
    shapes = [SHAPES[name] for name in ("counts with many zeros", "years", "yes and no, 12 % yes")]
    label, *features = (
        np.random.default_rng(place).permutation(column) for place, column in enumerate(shapes)
    )
    records = Records({"label": label, "x": features[0] + label, "z": features[1]})
    people = Finite(records, [1.0] * POINTS, 300_000, 0)
    for learner, text in (("logistic-regression", "label > 0"), ("linear-regression", "label")):
        protocol = Learn(learner=learner, label=text, features=("x", "z"))
        hits = 0
        for lesson in results(protocol, people, runs):
            truth = protocol.true_score(lesson, people)
            hits += lesson.score.low <= truth <= lesson.score.high
        assert hits >= least(runs), learner


@pytest.mark.long
def test_the_claim_of_before_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    """That the interval holds the mean of the column itself is false for a heavy tail."""
    monkeypatch.setattr(
        MeanFound, "truth_of", lambda self, result, population: self.column_mean(population)
    )
    assert held(SHAPES["lognormal, sigma 1.5"], 30) < 15


def _find(name: str) -> list[tuple[float, Range]]:
    protocol, clients = MeanFound(column="x"), 50_000
    population = Resampled(Records({"x": SHAPES[name]}), clients, 1)
    pairs = []
    for seed in range(20):
        oracle = AggregateOracle(population, np.random.default_rng(seed), 1.0)
        result = run(protocol.algorithm(1.0, clients), oracle)
        pairs.append((float(result.estimate.value), result.bounds))
    return pairs


@wrong(
    "local_dp.protocols.vectors.mean_found:locate",
    "some[ZERO]",
    "False",
    "ones that are rare are clipped away",
    at="yes and no, 12 % yes-0.1235",
)
@pytest.mark.parametrize(
    ("name", "share"),
    [
        pytest.param("yes and no, 12 % yes", 0.1235, marks=pytest.mark.long),
        ("yes and no, 1 % yes", 0.01),
    ],
)
def test_a_column_of_yes_and_no_has_its_ends(
    name: str, share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounds hold 0 and 1 in every run, and the median answer is the share. Without the rule for
    zeros some runs clip the ones away."""
    estimates = _find(name)
    assert all(bounds.low <= 0 and bounds.high >= 1 for _, bounds in estimates)
    assert abs(np.median([value for value, _ in estimates]) - share) < 0.03
    monkeypatch.setattr(room, "ZERO", len(EDGES))  # a magnitude that nobody has
    assert any(bounds.high < 1 for _, bounds in _find(name))


TWINS: list[Callable[[Any], Any]] = [
    # says other bounds than it clipped to
    lambda result: replace(result, bounds=Range(2 * result.bounds.low, 2 * result.bounds.high)),
    lambda result: replace(result, estimate=result.estimate.on_scale(1.0, 2.0)),  # 1 too high
    # half the share outside
    lambda result: replace(result, outside=result.outside.on_scale(0.0, 0.5)),
]


@pytest.mark.parametrize("place", short(range(len(TWINS)), lambda place: place == 0))
def test_wrong_answers_fall(place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a column with a share outside: other bounds than those clipped to, a shifted estimate,
    half the share outside."""
    column: Floats = np.where(np.arange(2000) < 1700, np.linspace(2, 4, 2000), 1e5)
    monkeypatch.setattr(room, "locate", _fixed)
    assert held(column, 60) > 48
    twin, play = TWINS[place], MeanFound.algorithm

    def wrong(self: MeanFound, epsilon: float, clients: int) -> Any:
        algorithm = play(self, epsilon, clients)
        return type(algorithm)(lambda: _change(algorithm.play(), twin))

    monkeypatch.setattr(MeanFound, "algorithm", wrong)
    assert held(column, 60) < 48


def _change(play: Any, twin: Callable[[Any], Any]) -> Any:
    return twin((yield from play))


def _fixed(columns: Any, epsilon: float, clients: Any) -> Any:
    """The bounds [-10, 10], without asking."""
    yield from ()
    return (Range(-10.0, 10.0),)
