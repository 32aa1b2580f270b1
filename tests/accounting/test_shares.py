"""Equal parts, groups, Gaussian noise and loss laws on a lattice; many noisy counts over all
transcripts."""

import math
from fractions import Fraction
from functools import cache, partial
from itertools import pairwise, product

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
from local_dp.curator.clipped import ClippedLaplace
from local_dp.curator.mechanism import Law, hockey_stick, whole_weights
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
from tests.support.inputs.refusals import refuse
from tests.support.wrong import wrong


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


def test_sums_of_laws() -> None:
    """Lattices add up to the law of the product; a pure and an approximate loss are added as the
    worst law of theirs, rounded up to the step."""
    one = response(HALF)
    assert one + one == one.times(2)
    five = one.times(2) + one + one.times(2)
    assert one.times(5).delta(Fraction(1)) == five.delta(Fraction(1))
    leaky = response(HALF, 1, Fraction(1, 100))
    assert one.times(2).epsilon == pytest.approx(2 * math.log(1.5))
    assert (one + leaky).delta(HALF**2) == leaky.delta(HALF) == Fraction(1, 100)
    pure = Pure(NANO // 10)  # a quarter of a step
    assert (one + pure).delta(HALF) == (pure + one).delta(HALF) == one.times(2).delta(HALF)
    rest = Fraction(99, 100)
    assert (Approximate(0, 10**16) + one).delta(Fraction(1)) == Fraction(1, 100) + rest * one.delta(
        Fraction(1)
    )


HUNDREDTH = ATTO // 100


@pytest.mark.parametrize("most", [1, 2, 5])
def test_noise_on_a_sum_is_its_enumeration(most: int) -> None:
    """Of one record worth 0..m the clipped sum keeps all that the noise reveals: the same curve;
    with the noise of another sensitivity it is another."""
    nano = 7 * NANO // 10
    low, high = (ClippedLaplace(nano, most, most).law(value) for value in (0, most))
    wholes = [exp_epsilon(whole) for whole in (0, NANO // 10, NANO // 3, 6 * NANO // 10)]
    curves = [
        [discrete_laplace(nano, sensitivity).delta(whole) for whole in wholes]
        for sensitivity in (most, most + 1)
    ]
    assert curves[0] == [hockey_stick(low, high, whole) for whole in wholes] != curves[1]


@wrong(
    "local_dp.accounting.rules:optimal_delta",
    "parts + 1",
    "parts",
    "the likeliest outcome of all is not counted, so too little delta is charged",
    at="0.3-0.5-2",
)
@pytest.mark.parametrize("parts", [1, 2, 7])
@pytest.mark.parametrize(("epsilon", "whole"), [(0.3, 0.5), (0.3, 0.0), (1.0, 1.5)])
def test_optimal_is_brute_force(parts: int, epsilon: float, whole: float) -> None:
    """The hockey stick of randomized responses over all outcomes, which no other mechanisms of the
    same loss exceed; rounded up by less than 2e-18."""
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    exact = 0.0
    for answers in product((p, 1 - p), repeat=parts):
        other = math.prod(1 - answer for answer in answers)
        exact += max(0.0, math.prod(answers) - math.exp(whole) * other)
    delta = optimal_delta(Pure(nano_epsilon(epsilon)), parts, Pure(round(whole * 1e9))) / ATTO
    assert delta == pytest.approx(exact, rel=1e-12, abs=2e-18)


@pytest.mark.parametrize("parts", [5, 31, 32, 824])
def test_each_way_keeps_to_the_budget(parts: int) -> None:
    """By the exact formula, Theorem 2.5 and the printed split spend too little; the optimum is the
    largest part. Theorem 2.5 is below adding up to 31 parts."""
    budget = approximate(1, 1e-6)
    best, theorem, simple = (
        part(budget, parts) for part in (optimal_part, advanced_part, printed_part)
    )
    deltas = [optimal_delta(part, parts, Pure(budget.nano)) for part in (best, theorem, simple)]
    assert max(deltas) <= budget.atto < optimal_delta(Pure(best.nano + 1), parts, Pure(budget.nano))
    assert (theorem.nano < budget.nano // parts) == (parts < 32)
    assert parts < 824 or [round(part.epsilon, 5) for part in (best, theorem, simple)] == [
        0.00826,
        0.00621,
        0.00331,
    ]


@wrong(
    "local_dp.accounting.rules:group_loss",
    "(whole * _BEYOND - 1) / (step - 1) if step > 1 else Fraction(records)",
    "whole * _UP + 0 * step",
    "e^(k eps) delta is too little for eps < ln 2",
    at="0-2",
)
@pytest.mark.parametrize(("tenths", "records"), [(0, 2), (1, 5), (5, 3), (10, 2)])
def test_a_chain_of_coins_reaches_it(tenths: int, records: int) -> None:
    """Coins of which each has (eps, delta) to the next have at the ends exactly the group's delta
    at k eps; the printed one is too little below ln 2."""
    nano = tenths * NANO // 10
    growth = exp_epsilon(tenths * NANO // 10)
    heads = [Fraction(0)]
    for _ in range(records):
        heads.append(growth * heads[-1] + Fraction(1, 100))
    laws = [whole_weights({1: share, 0: 1 - share}) for share in heads]
    for there, here in pairwise(laws):
        assert (
            hockey_stick(there, here, growth)
            <= hockey_stick(here, there, growth)
            == Fraction(1, 100)
        )
    delta = hockey_stick(laws[-1], laws[0], growth**records) * ATTO
    group = group_loss(Approximate(nano, HUNDREDTH), records)
    assert (group.nano, delta <= group.atto <= delta + 1) == (records * nano, True)
    assert (growth**records * HUNDREDTH < delta) == (tenths < 7)


def test_pure_and_concentrated_groups() -> None:
    """k eps, k^2 rho; delta is at most 1."""
    assert group_loss(Pure(3), 4) == Pure(12)
    assert group_loss(Concentrated(3), 4) == Concentrated(48)
    assert group_loss(Approximate(24 * NANO, HUNDREDTH), 10**6).atto == ATTO


GROWTH = exp_epsilon(3 * NANO // 10)


def transcripts(n: int, ones: int, rounds: int, nano: int) -> Law[tuple[int, ...]]:
    """The law of noisy counts of ones or of zeros of n votes, each asked for by the answers before
    it."""
    laws = [ClippedLaplace(nano, 1, n).law(count) for count in (ones, n - ones)]
    law: dict[tuple[int, ...], int] = {(): 1}
    for _ in range(rounds):
        law = {
            (*before, answer): weight * more
            for before, weight in law.items()
            for answer, more in laws[sum(before) % 2].items()
        }
    return law


@wrong(
    "local_dp.accounting.losses:discrete_laplace",
    "more ** (m + 1)",
    "more ** m * less",
    "the largest loss of noisy counts is counted as too rare",
    at="1-1",
)
@pytest.mark.parametrize(
    ("n", "rounds"),
    [(1, 1), (1, 2), (1, 5), (1, 8), pytest.param(1, 10, marks=pytest.mark.long), (2, 4), (3, 3)],
)
def test_counts_lose_the_binomial_curve(n: int, rounds: int) -> None:
    """Counts with discrete Laplace noise, asked adaptively, lose exactly the curve of as many
    randomized responses; over all neighbours no more."""
    curve = discrete_laplace(3 * NANO // 10).times(rounds)
    likes = range(rounds + 1)
    law = cache(lambda ones: transcripts(n, ones, rounds, 3 * NANO // 10))
    for whole in (*(GROWTH**steps for steps in (0, 1, rounds // 2, rounds - 1)), Fraction(6, 5)):
        terms = (
            math.comb(rounds, many)
            * max(Fraction(0), GROWTH**many - whole * GROWTH ** (rounds - many))
            for many in likes
        )
        expected = sum(terms, Fraction(0)) / (1 + GROWTH) ** rounds
        assert curve.delta(whole) == expected == response(GROWTH).times(rounds).delta(whole)
        pairs = (*pairwise(range(n + 1)), *pairwise(range(n, -1, -1)))
        sticks = [hockey_stick(law(ones), law(there), whole) for ones, there in pairs]
        assert max(sticks) == expected if n == 1 else max(sticks) <= expected
    few = min(rounds, 4)
    first = transcripts(n, 0, few, 6 * NANO // 10)
    second = transcripts(n, 1, few, 6 * NANO // 10)
    assert hockey_stick(first, second, GROWTH) > curve.delta(GROWTH) or rounds > 4


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
