"""Statistical queries answered by a trusted curator's noisy sums."""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import ClassVar

import numpy as np
import pytest
from scipy.stats import binom

from local_dp.arrays import Ints
from local_dp.bounds.curator import enough_records
from local_dp.domains import Domain, levels
from local_dp.draws import Draws
from local_dp.errors import InputError, RefusedError
from local_dp.interaction import Adaptive, Nonadaptive, Play, run
from local_dp.noise import KeyedNoise
from local_dp.oracles.statistical.asked import StatisticalQuery
from local_dp.oracles.statistical.curated import CuratedOracle
from local_dp.oracles.statistical.exact import ExactOracle
from local_dp.populations.base import Population
from local_dp.populations.finite import bernoulli
from local_dp.populations.table import Rows
from local_dp.queries.base import Query
from local_dp.queries.tables import Bounded, Question
from local_dp.records import Records

YES = StatisticalQuery(Question("vote == 1"), 0.1)


@dataclass(frozen=True)
class Steps(Query):
    """A column of whole numbers 0..4 as levels."""

    name: ClassVar[str] = "steps"

    @property
    def domain(self) -> Domain:
        return levels(4)

    def __call__(self, records: Records) -> Ints:
        return records["v"]


def oracle(population: Population, each: float = 1.0, budget: float = 8.0, seed: int = 0) -> CuratedOracle:
    return CuratedOracle(population, Draws(KeyedNoise(seed)), budget, each)


def test_answers_are_the_mean_plus_lattice_noise() -> None:
    """With a huge epsilon the answer is the sample mean on the [-1, 1] scale, for yes/no and level queries, across chunks."""
    votes = Rows(Records({"vote": np.arange(100_000, dtype=np.int64) % 4 == 0, "v": np.arange(100_000, dtype=np.int64) % 5}))
    asked = oracle(votes, each=24.0, budget=24.0)
    (share,) = asked.answer((YES,))
    assert share == pytest.approx(-0.5, abs=1e-9)
    asked = oracle(votes, each=24.0, budget=24.0)
    (level,) = asked.answer((StatisticalQuery(Steps(), 0.1),))
    assert level == pytest.approx(0.0, abs=1e-3)


def realised_noise(query: StatisticalQuery, each: float, trials: int = 1500) -> list[int]:
    """The noise on the sum of 50 records at the middle of the range."""
    table = Rows(Records({"vote": np.arange(50) % 2, "v": np.full(50, 2)}))
    most = query.query.domain.size - 1
    return [round((oracle(table, each, each, seed).answer((query,))[0] + 1) / 2 * most * 50 - most * 25) for seed in range(trials)]


@pytest.mark.parametrize(("query", "sensitivity"), [(YES, 1), (StatisticalQuery(Steps(), 0.1), 4)])
def test_noise_is_scaled_to_the_sensitivity(query: StatisticalQuery, sensitivity: int) -> None:
    """Pr[no noise] = tanh(eps / 2m) for values 0..m (binomial, failure 1e-6); noise scaled to half the sensitivity is caught."""
    zeros = realised_noise(query, 0.5).count(0)
    right, wrong = (binom(1500, math.tanh(0.5 / (2 * m))) for m in (sensitivity, sensitivity / 2))
    assert right.ppf(5e-7) <= zeros <= right.isf(5e-7)
    assert not wrong.ppf(5e-7) <= zeros <= wrong.isf(5e-7)


class Silent(Draws):
    """Draws no noise, and keeps the loss per unit of the sum that was asked for."""

    def __init__(self) -> None:
        super().__init__(KeyedNoise(0))
        self.per_unit: list[Fraction] = []

    def discrete_laplace(self, epsilon: Fraction) -> int:
        self.per_unit.append(epsilon)
        return 0


@pytest.mark.parametrize(("query", "most"), [(YES, 1), (StatisticalQuery(Steps(), 0.1), 4)])
def test_neighbours_are_within_epsilon_exactly(query: StatisticalQuery, most: int) -> None:
    """Over all databases of three records, the most that one record moves the sum, times the loss per unit that noise is drawn for, is the charge exactly."""
    draws = Silent()
    sums = {}
    for values in product(range(most + 1), repeat=3):
        table = Rows(Records({"vote": np.array(values), "v": np.array(values)}))
        (answer,) = CuratedOracle(table, draws, 0.5, 0.5).answer((query,))
        sums[values] = round((answer + 1) / 2 * most * 3, 6)
    moves = [abs(sums[z] - sums[w]) for z, w in product(sums, repeat=2) if sum(a != b for a, b in zip(z, w, strict=True)) == 1]
    assert {max(moves) * per_unit for per_unit in draws.per_unit} == {Fraction(1, 2)}


def test_budget_adds_up_and_is_never_exceeded() -> None:
    """Declared queries split the budget exactly; one more is refused before anything is drawn; queries and rounds are counted."""
    asked = CuratedOracle.for_queries(bernoulli("vote", 0.3, 1000, 0), Draws(KeyedNoise(0)), 0.7, 7)
    asked.answer((YES,) * 3)
    asked.answer((YES,) * 4)
    assert asked.max_epsilon_spent == pytest.approx(0.7, abs=1e-8)
    assert asked.max_epsilon_spent <= 0.7
    assert (asked.queries, asked.rounds) == (7, 2)
    with pytest.raises(RefusedError, match="run budget"):
        asked.answer((YES,))
    assert (asked.queries, asked.rounds) == (7, 2)


def test_the_same_algorithms_run() -> None:
    """Non-adaptive and adaptive SQ algorithms run on noisy sums as they do on the exact oracle, and agree within the tolerance."""
    population = bernoulli("vote", 0.3, enough_records(2, 1.0, 0.1, 1e-6), 0)

    def play() -> Play[StatisticalQuery, float, float]:
        (first,) = yield (YES,)
        (second,) = yield (YES,)
        return (first + second) / 2

    once: Nonadaptive[StatisticalQuery, float, float] = Nonadaptive((YES,), lambda answers: answers[0])
    twice: Adaptive[StatisticalQuery, float, float] = Adaptive(play)
    for algorithm in (once, twice):
        curated = CuratedOracle.for_queries(population, Draws(KeyedNoise(1)), 1.0, 2)
        assert abs(run(algorithm, curated) - run(algorithm, ExactOracle(population))) < 0.1


@pytest.mark.parametrize(("epsilon", "t"), [(1.0, 1), (0.1, 5)])
def test_enough_records_are_enough(epsilon: float, t: int) -> None:
    """All t answers are within tau in at least a share 1 - beta of 150 runs (binomial, failure 1e-6); a sixtieth of the records is caught failing."""
    tau, beta = 0.2, 0.2

    def failures(n: int) -> int:
        failed = 0
        for seed in range(150):
            asked = CuratedOracle.for_queries(bernoulli("vote", 0.5, n, seed), Draws(KeyedNoise(seed)), epsilon, t)
            failed += max(map(abs, asked.answer((YES,) * t))) > tau
        return failed

    n = enough_records(t, epsilon, tau, beta)
    assert failures(n) <= binom(150, beta).isf(1e-6)
    assert failures(n // 60) > binom(150, beta).isf(1e-6)


def test_bad_input_is_refused() -> None:
    """No query, no tolerance and no epsilon are refused."""
    with pytest.raises(InputError, match="at least one query"):
        enough_records(0, 1.0, 0.1, 0.1)
    with pytest.raises(InputError, match="epsilon"):
        oracle(bernoulli("vote", 0.5, 10, 0), each=0.0)
    assert Bounded("v", 0, 1).domain.kind == "levels"
