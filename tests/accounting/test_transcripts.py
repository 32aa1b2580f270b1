"""Many noisy counts, over all transcripts: what they lose together is the binomial curve, in fractions."""

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import product
from typing import TypeVar

import numpy as np
import pytest

from local_dp.accounting.losses import Lattice, discrete_laplace, response
from local_dp.curator.clipped import NoisySum
from local_dp.curator.laws import hockey_stick
from local_dp.curator.mechanism import Law
from local_dp.loss import NANO, exp_epsilon
from local_dp.queries.tables import Question
from local_dp.records import Records

R = TypeVar("R")
EPSILON = 0.3
NANOS = 3 * NANO // 10
GROWTH = exp_epsilon(NANOS)
QUESTIONS = (Question("vote == 1"), Question("vote == 0"))


def loss_of(law: Mapping[R, int], other: Mapping[R, int], growth: Fraction) -> Lattice:
    """The loss of a pair of laws in whole weights whose ratios are powers of `growth`."""
    total, others, weights, infinite = sum(law.values()), sum(other.values()), dict[int, int](), 0
    for outcome, weight in law.items():
        if weight and other.get(outcome, 0):
            ratio = Fraction(weight * others, other[outcome] * total)
            place = round(math.log(ratio) / math.log(growth))
            assert ratio == growth**place
            weights[place] = weights.get(place, 0) + weight
        else:
            infinite += weight
    least = min(weights)
    return Lattice(growth, least, tuple(weights.get(place, 0) for place in range(least, max(weights) + 1)), infinite)


def databases(n: int) -> Iterator[tuple[Records, Records]]:
    """Every ordered pair of neighbours among the databases of n votes, up to order."""
    for ones, there in product(range(n + 1), repeat=2):
        if abs(ones - there) == 1:
            yield tuple(Records({"vote": np.array([1] * each + [0] * (n - each), dtype=np.int64)}) for each in (ones, there))  # type: ignore[misc]


def transcripts(database: Records, rounds: int, epsilon: float) -> Law[tuple[int, ...]]:
    """The law of all answers, each question chosen by the answers before it."""
    laws = [NoisySum(question, epsilon).law(database) for question in QUESTIONS]
    law: dict[tuple[int, ...], int] = {(): 1}
    for _ in range(rounds):
        law = {(*before, answer): weight * more for before, weight in law.items() for answer, more in laws[sum(before) % 2].items()}
    return law


def binomial(rounds: int, whole: Fraction) -> Fraction:
    """The hockey stick of `rounds` randomized responses, term by term (Kairouz, Oh, Viswanath 2015)."""
    terms = (math.comb(rounds, likes) * max(Fraction(0), GROWTH**likes - whole * GROWTH ** (rounds - likes)) for likes in range(rounds + 1))
    return sum(terms, Fraction(0)) / (1 + GROWTH) ** rounds


@pytest.mark.parametrize(("n", "rounds"), [(1, 1), (1, 2), (1, 5), (1, 8), pytest.param(1, 12, marks=pytest.mark.long), (2, 4), (3, 3)])
def test_counts_lose_the_binomial_curve(n: int, rounds: int) -> None:
    """Adaptively asked counts with discrete Laplace noise lose exactly the binomial curve on lattice points and between; over all neighbours no more.

    Twice the epsilon, a twin, loses more everywhere.
    """
    curve, wholes = discrete_laplace(NANOS).times(rounds), [GROWTH**steps for steps in {0, 1, rounds // 2, rounds - 1}] + [Fraction(6, 5)]
    expected = [binomial(rounds, whole) for whole in wholes]
    assert [curve.delta(whole) for whole in wholes] == expected
    pairs = list(databases(n))
    for pair in pairs:
        here, there = (transcripts(database, rounds, EPSILON) for database in pair)
        if n == 1:
            loss = loss_of(here, there, GROWTH)
            assert [loss.delta(whole) for whole in wholes] == expected
        assert hockey_stick(here, there, wholes[-1]) == expected[-1] if n == 1 else hockey_stick(here, there, wholes[-1]) <= expected[-1]
    here, there = (transcripts(database, min(rounds, 4), 2 * EPSILON) for database in pairs[0])
    assert all(hockey_stick(here, there, GROWTH**steps) > binomial(min(rounds, 4), GROWTH**steps) for steps in range(min(rounds, 4)))


def test_the_whole_noise_loses_it_too() -> None:
    """Unclipped noise on a count takes two losses only, plus and minus epsilon; its curve is that of the randomized response."""
    whole = discrete_laplace(NANOS)
    assert (whole.least, [weight > 0 for weight in whole.weights], whole.infinite) == (-1, [True, False, True], 0)
    assert whole.weights[2] == whole.weights[0] * GROWTH
    for parts in (1, 2, 7):
        mine, theirs = whole.times(parts), response(GROWTH).times(parts)
        assert all(mine.delta(GROWTH**steps) == theirs.delta(GROWTH**steps) for steps in range(parts + 1))


def test_where_the_loss_is_infinite() -> None:
    """An outcome of one law alone costs delta at every epsilon."""
    loss = loss_of({"a": 3, "b": 1}, {"a": 2, "c": 2}, Fraction(3, 2))
    assert (loss.delta(Fraction(10**9)), loss.delta(Fraction(1))) == (Fraction(1, 4), Fraction(1, 2))
    assert loss.epsilon == pytest.approx(np.log(1.5), rel=1e-15)
