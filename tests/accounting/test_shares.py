"""Equal parts, groups, Gaussian noise and loss laws on a lattice; many noisy counts over all
transcripts."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise, product
from typing import ClassVar, TypeVar

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from local_dp.accounting.losses import (
    DiscreteGaussian,
    Gaussian,
    Lattice,
    discrete_laplace,
    gaussian_delta,
    gaussian_epsilon,
    response,
)
from local_dp.accounting.rules import (
    advanced_part,
    group_loss,
    optimal_delta,
    optimal_part,
    printed_part,
)
from local_dp.arrays import Ints
from local_dp.curator.clipped import NoisySum
from local_dp.curator.mechanism import Law, hockey_stick, whole_weights
from local_dp.domains import Domain, levels
from local_dp.loss import (
    ATTO,
    NANO,
    Approximate,
    Concentrated,
    Pure,
    approximate,
    exp_epsilon,
    nano_epsilon,
)
from local_dp.queries.query import Query
from local_dp.queries.tables import Question
from local_dp.records import Records
from tests.support.inputs.refusals import refuse


@pytest.mark.parametrize(
    ("mu", "epsilon"), [(0.01, 0.0), (0.1, 0.3), (1.0, 1.0), (1.0, 25.4), (1.0, 25.6), (10.0, 40.0)]
)
def test_closed_form_is_the_integral(mu: float, epsilon: float) -> None:
    """It is the integral of the density where it exceeds e^eps times the other's, in the tails too;
    never below it."""
    start = epsilon / mu + mu / 2
    beyond = norm.logpdf(start - mu)
    share = quad(
        lambda z: (
            math.exp(norm.logpdf(z - mu) - beyond) * -math.expm1(epsilon + mu**2 / 2 - mu * z)
        ),
        start,
        start + 12,
        epsabs=0,
        epsrel=1e-12,
    )[0]
    exact = share * math.exp(beyond)
    assert exact * (1 - 1e-12) <= gaussian_delta(mu, epsilon) <= exact * (1 + 1e-9)


@pytest.mark.parametrize("sigma", [0.05, 1.0, 7.5, 400.0])
@pytest.mark.parametrize("delta", [1e-15, 1e-6, 0.2])
def test_epsilon_inverts_delta(sigma: float, delta: float) -> None:
    """The least epsilon whose delta fits: a billionth less does not, unless it is 0."""
    epsilon = gaussian_epsilon(1 / sigma, delta)
    assert gaussian_delta(1 / sigma, epsilon) <= delta
    assert epsilon == 0 or gaussian_delta(1 / sigma, epsilon * (1 - 1e-9)) > delta


def test_gaussians_add_up() -> None:
    """Noise of sigma 5 on each of 25 answers is as much as of sigma 1 on one; mu^2 is rounded up;
    what is no sigma is refused."""
    assert sum([Gaussian.of_sigma(5)] * 24, Gaussian.of_sigma(5)) == Gaussian.of_sigma(1)
    assert Gaussian.of_sigma(3).atto_mu2 == 10**18 // 9 + 1
    assert DiscreteGaussian.of_sigma(2).step == 0.25
    refuse(
        *(
            ("sigma is", partial(Gaussian.of_sigma, sigma))
            for sigma in (0.0, -1.0, math.nan, math.inf)
        ),
        ("1 or more", lambda: Gaussian(0)),
    )


HALF = Fraction(3, 2)


@dataclass(frozen=True)
class Steps(Query):  # a column of whole numbers 0..most
    name: ClassVar[str] = "steps"
    most: int

    @property
    def domain(self) -> Domain:
        return levels(self.most)

    def __call__(self, records: Records) -> Ints:
        return records["v"]


@pytest.mark.parametrize("most", [1, 2, 5])
def test_noise_on_a_sum_is_its_enumeration(most: int) -> None:
    """Of one record worth 0..m the clipped sum keeps all that the noise reveals: the same curve;
    with the noise of another sensitivity it is another."""
    mechanism = NoisySum(Steps(most), 0.7)
    low, high = (
        mechanism.law(Records({"v": np.array([value], dtype=np.int64)})) for value in (0, most)
    )
    wholes = [exp_epsilon(nano) for nano in (0, NANO // 10, NANO // 3, 6 * NANO // 10)]
    enumerated = [hockey_stick(low, high, whole) for whole in wholes]
    assert [discrete_laplace(7 * NANO // 10, most).delta(whole) for whole in wholes] == enumerated
    assert [
        discrete_laplace(7 * NANO // 10, most + 1).delta(whole) for whole in wholes
    ] != enumerated


def test_sums_of_laws() -> None:
    """Lattices add up to the law of the product; a pure and an approximate loss are added as the
    worst law of theirs, rounded up to the step."""
    one = response(HALF)
    assert one + one == one.times(2)
    assert one.times(5).delta(Fraction(1)) == (one.times(2) + one + one.times(2)).delta(Fraction(1))
    leaky = response(HALF, 1, Fraction(1, 100))
    assert (one + leaky).delta(HALF**2) == leaky.delta(HALF) == Fraction(1, 100)
    pure = Pure(NANO // 10)  # a quarter of a step
    assert (one + pure).delta(HALF) == (pure + one).delta(HALF) == one.times(2).delta(HALF)
    assert (Approximate(0, 10**16) + one).delta(Fraction(1)) == Fraction(1, 100) + Fraction(
        99, 100
    ) * one.delta(Fraction(1))


HUNDREDTH = ATTO // 100


def by_brute_force(epsilon: float, parts: int, whole: float) -> float:
    """The hockey stick of `parts` randomized responses against their mirror, summed over all
    outcomes."""
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    laws = [
        (
            math.prod(p if one else 1 - p for one in answers),
            math.prod(1 - p if one else p for one in answers),
        )
        for answers in product((0, 1), repeat=parts)
    ]
    return sum(max(0.0, here - math.exp(whole) * there) for here, there in laws)


@pytest.mark.parametrize("parts", [1, 2, 7])
@pytest.mark.parametrize(("epsilon", "whole"), [(0.3, 0.5), (0.3, 0.0), (1.0, 1.5)])
def test_optimal_is_brute_force(parts: int, epsilon: float, whole: float) -> None:
    """It is the delta of randomized responses, which no other mechanisms of the same loss exceed;
    rounded up by less than 2e-18 beyond floats."""
    delta = optimal_delta(Pure(nano_epsilon(epsilon)), parts, Pure(round(whole * 1e9))) / ATTO
    assert delta == pytest.approx(by_brute_force(epsilon, parts, whole), rel=1e-12, abs=2e-18)


def test_the_parts_of_a_budget() -> None:
    """824 parts of (1, 1e-6), in nats; the optimum is the largest that fits."""
    budget = approximate(1, 1e-6)
    parts = [optimal_part(budget, 824), advanced_part(budget, 824), printed_part(budget, 824)]
    assert [round(part.epsilon, 5) for part in parts] == [0.00826, 0.00621, 0.00331]
    best = parts[0].nano
    assert (
        optimal_delta(Pure(best), 824, Pure(budget.nano))
        <= budget.atto
        < optimal_delta(Pure(best + 1), 824, Pure(budget.nano))
    )


@pytest.mark.parametrize("parts", [1, 5, 31, 32, 300])
def test_each_way_keeps_to_the_budget(parts: int) -> None:
    """By the exact formula, Theorem 2.5 and the printed split spend too little; the optimum is
    never below adding up. Theorem 2.5 is, below 32 parts."""
    budget = approximate(1, 1e-6)
    for part in (
        optimal_part(budget, parts),
        advanced_part(budget, parts),
        printed_part(budget, parts),
    ):
        assert optimal_delta(part, parts, Pure(budget.nano)) <= budget.atto
    assert optimal_part(budget, parts).nano >= budget.nano // parts
    assert (advanced_part(budget, parts).nano < budget.nano // parts) == (parts < 32)


def chain(growth: Fraction, delta: Fraction, records: int) -> list[dict[int, int]]:
    """Coins, one a database, of which each has Pr[heads] = growth Pr'[heads] + delta beside the
    next, and the last none."""
    heads = [Fraction(0)]
    for _ in range(records):
        heads.append(growth * heads[-1] + delta)
    return [dict(whole_weights({1: share, 0: 1 - share})) for share in reversed(heads)]


@pytest.mark.parametrize(("tenths", "records"), [(0, 2), (1, 5), (5, 3), (10, 2)])
def test_a_chain_of_coins_reaches_it(tenths: int, records: int) -> None:
    """Each step has (eps, delta) both ways, and the ends have exactly the group's delta at k eps;
    the printed e^(k eps) delta is too little below ln 2."""
    nano, delta = tenths * NANO // 10, Fraction(1, 100)
    growth = exp_epsilon(nano)
    laws = chain(growth, delta, records)
    for here, there in pairwise(laws):
        assert hockey_stick(here, there, growth) == delta
        assert hockey_stick(there, here, growth) <= delta
    reached = hockey_stick(laws[0], laws[-1], growth**records) * ATTO
    stated = group_loss(Approximate(nano, HUNDREDTH), records)
    assert stated.nano == records * nano
    assert reached <= stated.atto <= reached + 1
    assert (growth**records * HUNDREDTH < reached) == (tenths < 7)


def test_pure_and_concentrated_groups() -> None:
    """k eps, k^2 rho; delta is at most 1."""
    assert group_loss(Pure(3), 4) == Pure(12)
    assert group_loss(Concentrated(3), 4) == Concentrated(48)
    assert group_loss(Approximate(20 * NANO, HUNDREDTH), 3).atto == ATTO


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
    return Lattice(
        growth,
        least,
        tuple(weights.get(place, 0) for place in range(least, max(weights) + 1)),
        infinite,
    )


def databases(n: int) -> Iterator[tuple[Records, Records]]:
    """Every ordered pair of neighbours among the databases of n votes, up to order."""
    for ones, there in product(range(n + 1), repeat=2):
        if abs(ones - there) == 1:
            yield tuple(
                Records({"vote": np.array([1] * each + [0] * (n - each), dtype=np.int64)})
                for each in (ones, there)
            )  # type: ignore[misc]


def transcripts(database: Records, rounds: int, epsilon: float) -> Law[tuple[int, ...]]:
    """The law of all answers, each question chosen by the answers before it."""
    laws = [NoisySum(question, epsilon).law(database) for question in QUESTIONS]
    law: dict[tuple[int, ...], int] = {(): 1}
    for _ in range(rounds):
        law = {
            (*before, answer): weight * more
            for before, weight in law.items()
            for answer, more in laws[sum(before) % 2].items()
        }
    return law


def binomial(rounds: int, whole: Fraction) -> Fraction:
    """The hockey stick of `rounds` randomized responses, term by term (Kairouz, Oh, Viswanath
    2015)."""
    terms = (
        math.comb(rounds, likes)
        * max(Fraction(0), GROWTH**likes - whole * GROWTH ** (rounds - likes))
        for likes in range(rounds + 1)
    )
    return sum(terms, Fraction(0)) / (1 + GROWTH) ** rounds


@pytest.mark.parametrize(
    ("n", "rounds"),
    [(1, 1), (1, 2), (1, 5), (1, 8), pytest.param(1, 12, marks=pytest.mark.long), (2, 4), (3, 3)],
)
def test_counts_lose_the_binomial_curve(n: int, rounds: int) -> None:
    """Counts with discrete Laplace noise, asked adaptively, lose exactly the binomial curve; over
    all neighbours no more. Twice the epsilon loses more."""
    curve, wholes = (
        discrete_laplace(NANOS).times(rounds),
        [GROWTH**steps for steps in {0, 1, rounds // 2, rounds - 1}] + [Fraction(6, 5)],
    )
    expected = [binomial(rounds, whole) for whole in wholes]
    assert [curve.delta(whole) for whole in wholes] == expected
    pairs = list(databases(n))
    for pair in pairs:
        here, there = (transcripts(database, rounds, EPSILON) for database in pair)
        if n == 1:
            loss = loss_of(here, there, GROWTH)
            assert [loss.delta(whole) for whole in wholes] == expected
        assert (
            hockey_stick(here, there, wholes[-1]) == expected[-1]
            if n == 1
            else hockey_stick(here, there, wholes[-1]) <= expected[-1]
        )
    here, there = (transcripts(database, min(rounds, 4), 2 * EPSILON) for database in pairs[0])
    assert all(
        hockey_stick(here, there, GROWTH**steps) > binomial(min(rounds, 4), GROWTH**steps)
        for steps in range(min(rounds, 4))
    )


def test_the_whole_noise_loses_it_too() -> None:
    """Unclipped noise on a count takes two losses only, plus and minus epsilon; its curve is that
    of the randomized response."""
    whole = discrete_laplace(NANOS)
    assert (whole.least, [weight > 0 for weight in whole.weights], whole.infinite) == (
        -1,
        [True, False, True],
        0,
    )
    assert whole.weights[2] == whole.weights[0] * GROWTH
    for parts in (1, 2, 7):
        mine, theirs = whole.times(parts), response(GROWTH).times(parts)
        assert all(
            mine.delta(GROWTH**steps) == theirs.delta(GROWTH**steps) for steps in range(parts + 1)
        )


def test_where_the_loss_is_infinite() -> None:
    """An outcome of one law alone costs delta at every epsilon."""
    loss = loss_of({"a": 3, "b": 1}, {"a": 2, "c": 2}, Fraction(3, 2))
    assert (loss.delta(Fraction(10**9)), loss.delta(Fraction(1))) == (
        Fraction(1, 4),
        Fraction(1, 2),
    )
    assert loss.epsilon == pytest.approx(np.log(1.5), rel=1e-15)


def test_bad_input() -> None:
    laws: list[tuple[Fraction, tuple[int, ...], int]] = [
        (Fraction(1), (1,), 0),
        (HALF, (), 0),
        (HALF, (-1, 2), 0),
        (HALF, (0,), 3),
        (HALF, (1,), -1),
    ]
    refuse(
        *(
            ("growth above 1", partial(Lattice, growth, 0, weights, infinite))
            for growth, weights, infinite in laws
        ),
        ("too low", lambda: Lattice(HALF, -1, (1,))),
        ("one step", lambda: response(HALF) + response(Fraction(2))),
        ("parts is 0", lambda: response(HALF).times(0)),
        ("1 or more of each", lambda: discrete_laplace(NANO, 0)),
        ("fewer parts", lambda: printed_part(Approximate(10, 1), 1000)),
        ("parts is 0", lambda: optimal_part(approximate(1, 1e-6), 0)),
        ("records is 0", lambda: group_loss(Pure(1), 0)),
    )
