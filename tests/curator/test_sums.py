"""Noisy sums of a trusted curator."""

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from scipy.stats import binom, chisquare

from local_dp.arrays import Ints
from local_dp.curator.laws import SmallDatabases
from local_dp.curator.sums import NoisySum
from local_dp.domains import Domain, levels, symbols
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import Pure, exp_epsilon
from local_dp.noise import KeyedNoise
from local_dp.populations.table import Rows
from local_dp.queries.query import Query
from local_dp.queries.tables import Question
from local_dp.records import Records

VOTE = Question("vote == 1")


@dataclass(frozen=True)
class Steps(Query):
    """A column of whole numbers 0..4 as levels, or as symbols."""

    name: ClassVar[str] = "steps"
    counted: bool = True

    @property
    def domain(self) -> Domain:
        return levels(4) if self.counted else symbols(5)

    def __call__(self, records: Records) -> Ints:
        return records["v"]


def column(name: str, values: list[int]) -> Records:
    return Records({name: np.array(values, dtype=np.int64)})


def small(query: Query, n: int) -> SmallDatabases[tuple[int], Records]:
    """All databases of n values of the query's column."""
    name = "v" if isinstance(query, Steps) else "vote"
    return SmallDatabases([(value,) for value in range(query.domain.size)], n, lambda rows: column(name, [value for (value,) in rows]))


@pytest.mark.parametrize(("query", "n"), [(VOTE, 1), (VOTE, 2), (VOTE, 5), (Steps(), 1), (Steps(), 2)])
def test_loss_is_epsilon_by_enumeration(query: Query, n: int) -> None:
    """Over all neighbours delta is 0 at the loss, which is met to 1e-40; half the noise, and noise scaled for values 0..1, is caught."""
    mechanism = NoisySum(query, 0.5)
    assert small(query, n).worst_delta(mechanism) == 0
    assert exp_epsilon(mechanism.loss.nano) * (1 - Fraction(1, 10**40)) < max(small(query, n).worst_ratios(mechanism).values())
    for factor in {2, mechanism.sensitivity} - {1}:
        assert small(query, n).worst_delta(NoisySum(query, factor * 0.5), Pure(500_000_000)) > 0.04


@pytest.mark.parametrize("query", [VOTE, Steps()])
def test_the_code_draws_from_its_law(query: Query) -> None:
    """4,000 releases fit the exact law (chi-squared, failure 1e-6); those of 1.5 epsilon do not."""
    database = column("vote", [0, 1, 1, 0, 1]) if query == VOTE else column("v", [4, 1])
    law = NoisySum(query, 1.0).law(database)
    expected = np.array([weight / sum(law.values()) for weight in law.values()])

    def p_value(epsilon: float) -> float:
        draws = Draws(KeyedNoise(2))
        drawn = Counter(NoisySum(query, epsilon).release(database, draws) for _ in range(4000))
        assert set(drawn) <= set(law)
        return float(chisquare([drawn[y] for y in law], 4000 * expected).pvalue)

    assert sorted(law) == list(range(max(law) + 1))
    assert p_value(1.0) > 1e-6
    assert p_value(1.5) < 1e-6


def test_sums_are_exact_across_chunks() -> None:
    """With a huge epsilon the release is the sum, of yes/no and of level queries, from records and from a population handed out in chunks."""
    votes = Records({"vote": np.arange(100_000, dtype=np.int64) % 4 == 0, "v": np.arange(100_000, dtype=np.int64) % 5})
    for database in (votes, Rows(votes)):
        assert abs(NoisySum(VOTE, 24.0).release(database, Draws(KeyedNoise(0))) - 25_000) <= 1
        assert abs(NoisySum(Steps(), 24.0).release(database, Draws(KeyedNoise(0))) - 200_000) <= 10


@pytest.mark.parametrize(("query", "sensitivity"), [(VOTE, 1), (Steps(), 4)])
def test_noise_is_scaled_to_the_sensitivity(query: Query, sensitivity: int) -> None:
    """Pr[no noise] = tanh(eps / 2m) for values 0..m (binomial, failure 1e-6); noise scaled to half the sensitivity is caught."""
    table, draws = Records({"vote": np.arange(50) % 2, "v": np.full(50, 2)}), Draws(KeyedNoise(0))
    zeros = [NoisySum(query, 0.5).release(table, draws) for _ in range(1500)].count(25 if query == VOTE else 100)
    right, wrong = (binom(1500, math.tanh(0.5 / (2 * m))) for m in (sensitivity, sensitivity / 2))
    assert right.ppf(5e-7) <= zeros <= right.isf(5e-7)
    assert not wrong.ppf(5e-7) <= zeros <= wrong.isf(5e-7)


def test_bad_input_is_refused() -> None:
    """No epsilon of 0, no sum of names, and no law of a million outcomes."""
    with pytest.raises(InputError, match="epsilon"):
        NoisySum(VOTE, 0.0)
    with pytest.raises(InputError, match="a sum is of levels"):
        NoisySum(Steps(counted=False), 1.0)
    with pytest.raises(InputError, match="listed up to 1024"):
        NoisySum(VOTE, 1.0).law(column("vote", [1] * 2000))
