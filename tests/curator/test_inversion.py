"""Exact draws by inversion, and rounded normal noise."""

import math
from collections import Counter
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, dlaplace, norm, poisson

from local_dp.accounting.gaussian import gaussian_delta
from local_dp.curator import inversion
from local_dp.curator.inversion import binomial, discrete_laplaces, exp_minus
from local_dp.curator.rounded_normal import least_variance, mu_squared, rounded_normals, rounded_sizes
from local_dp.draws import Draws
from local_dp.loss import Approximate, approximate
from local_dp.noise import KeyedNoise
from tests.support.theory.fits import p_value


def laplace(epsilon: float, most: int) -> dict[int, float]:
    return {value: float(dlaplace.pmf(value, epsilon)) for value in range(-most, most + 1)}


def test_many_noises_have_their_law() -> None:
    """100,000 draws fit (chi-squared, failure 1e-6); not a law of 4 % more epsilon."""
    drawn = Counter(discrete_laplaces(Draws(KeyedNoise(1)), Fraction(1, 2), 100_000).tolist())
    assert p_value(drawn, laplace(0.5, 80)) > 1e-6 > p_value(drawn, laplace(0.52, 80))


def test_what_a_table_leaves_open_is_decided_by_more_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a table of two digits many draws are refined, and the law is the same; without the refinement it is not."""
    monkeypatch.setattr(inversion, "_DIGITS", 2)
    monkeypatch.setattr(inversion, "_table", inversion._table.__wrapped__)
    refined = Counter(discrete_laplaces(Draws(KeyedNoise(2)), Fraction(1, 2), 4000).tolist())
    assert p_value(refined, laplace(0.5, 80)) > 1e-6
    monkeypatch.setattr(inversion, "_refined", lambda cumulative, records, draws: 0)
    assert p_value(Counter(discrete_laplaces(Draws(KeyedNoise(2)), Fraction(1, 2), 4000).tolist()), laplace(0.5, 80)) < 1e-6


def test_a_table_says_how_sure_it_is() -> None:
    """Words below `low` have not reached a probability, those from `high` on have; what lies between is within twice the rounding."""
    low, high = inversion._bounds([Decimal("0.25"), Decimal(1)], 25, 64)
    assert low[0] < 1 << 62 < high[0]
    assert high[0] - low[0] == 2
    assert high[1] >= 1 << 64


def test_small_epsilons_are_drawn_one_by_one() -> None:
    """Where the table would be too long: a standard deviation of sqrt(2) / eps, within 6 standard errors of 200 draws."""
    drawn = discrete_laplaces(Draws(KeyedNoise(3)), Fraction(1, 10**5), 200)
    assert float(np.abs(drawn).mean()) == pytest.approx(1e5, rel=6 / 200**0.5)


@pytest.mark.parametrize(("trials", "share"), [(5, Fraction(1, 2)), (300, Fraction(1, 100))])
def test_successes_have_their_law(trials: int, share: Fraction) -> None:
    """1,500 draws fit the binomial law (chi-squared, failure 1e-6); not that of a share three tenths higher."""
    draws = Draws(KeyedNoise(4))
    drawn = Counter(binomial(draws, trials, lambda: Decimal(share.numerator) / share.denominator) for _ in range(1500))

    def law(chance: float) -> dict[int, float]:
        return {value: float(binom.pmf(value, trials, chance)) for value in range(min(trials, 40) + 1)}

    assert p_value(drawn, law(float(share))) > 1e-6 > p_value(drawn, law(1.3 * float(share)))


def test_successes_among_more_than_atoms() -> None:
    """Of 2^4096, each with probability 3 / 2^4096: Poisson of mean 3 (chi-squared over 100 draws, failure 1e-6); 2^65536 are no other."""
    draws, trials = Draws(KeyedNoise(5)), 1 << 4096
    drawn = Counter(binomial(draws, trials, lambda: Decimal(3) / trials) for _ in range(100))
    assert p_value(drawn, {value: float(poisson.pmf(value, 3)) for value in range(40)}) > 1e-6
    assert binomial(draws, 1 << 65536, lambda: Decimal(3) / (1 << 65536)) < 20
    assert binomial(draws, 0, lambda: Decimal(1) / 3) == 0
    assert float(exp_minus(Fraction(1, 2))) == pytest.approx(0.6065306597126334)


@pytest.mark.parametrize("epsilon", [Fraction(1, 20)])
def test_a_guide_decides_what_is_decided(epsilon: Fraction) -> None:
    """Each of the 2^16 beginnings of a word: where the guide answers k, all uniforms that begin so lie between F(k - 1) and F(k), in
    fractions. It answers all but as many as there are probabilities, and what it leaves open is open."""
    sizes = inversion._laplace_sizes(epsilon)
    table, exact = inversion._table(sizes), [Fraction(0), *(Fraction(share) for share in sizes(60))]
    doubt, part, guide = Fraction(1, 10**60), Fraction(1, 1 << 16), table.guide.tolist()
    for prefix, k in enumerate(guide):
        if k >= 0:
            assert exact[k] + doubt <= prefix * part or not k
            assert (prefix + 1) * part <= exact[k + 1] - doubt
    borders = {int(share / part) for share in exact[1:]}
    assert {prefix for prefix, k in enumerate(guide) if k < 0} == {prefix for prefix in borders if prefix < 1 << 16}


def test_draws_do_not_depend_on_the_guide(monkeypatch: pytest.MonkeyPatch) -> None:
    guided = discrete_laplaces(Draws(KeyedNoise(8)), Fraction(1, 3), 20_000)
    monkeypatch.setattr(inversion, "_GUIDED", 1 << 30)
    assert np.array_equal(guided, discrete_laplaces(Draws(KeyedNoise(8)), Fraction(1, 3), 20_000))
    monkeypatch.setattr(inversion, "_CHUNK", 15_000)
    draws = Draws(KeyedNoise(8))
    assert np.array_equal(discrete_laplaces(draws, Fraction(1, 3), 20_000)[:1000], discrete_laplaces(Draws(KeyedNoise(8)), Fraction(1, 3), 15_000)[:1000])


def law(variance: float, most: int) -> dict[int, float]:
    """Pr[round(N(0, variance)) = y]."""
    sigma = math.sqrt(variance)
    return {y: float(norm.sf((abs(y) - 0.5) / sigma) - norm.sf((abs(y) + 0.5) / sigma)) for y in range(-most, most + 1)}


@pytest.mark.parametrize("variance", [1, 7, 1000])
def test_a_table_is_as_precise_as_it_says(variance: int) -> None:
    """Each probability of a table of 25 digits is within 1e-25 of that in a table of 60, and what is beyond its end below 1e-25."""
    short, long = rounded_sizes(variance)(25), rounded_sizes(variance)(60)
    with localcontext() as context:
        context.prec = 90
        assert max(abs(one - other) for one, other in zip(short, long, strict=False)) < Decimal(10) ** -25
        assert 1 - long[len(short) - 1] < Decimal(10) ** -25


def test_a_table_is_the_integral() -> None:
    """Variance 1: erf of (k + 1/2) / sqrt 2 by its own series, to 40 digits."""
    with localcontext() as context:
        context.prec = 160
        table = rounded_sizes(1)(40)

        def series(x: Decimal) -> Decimal:
            total, term, n = Decimal(0), x, 0
            while abs(term) > Decimal(10) ** -60:
                total, n = total + term / (2 * n + 1), n + 1
                term = -term * x * x / n
            return total

        halves = [series((Decimal(k) + Decimal("0.5")) / Decimal(2).sqrt()) for k in range(len(table) + 3)]
        assert all(abs(share - half / halves[-1]) < Decimal(10) ** -40 for share, half in zip(table, halves, strict=False))


def test_draws_have_their_law() -> None:
    """60,000 draws of variance 5 fit (chi-squared, failure 1e-6), not variance 5.3, nor a normal variable rounded down."""
    drawn = Counter(rounded_normals(Draws(KeyedNoise(1)), 5, 60_000).tolist())

    lower = Counter({y - 1: times for y, times in drawn.items()})
    assert p_value(drawn, law(5, 30)) > 1e-6 > p_value(drawn, law(5.3, 30))
    assert p_value(lower, law(5, 30)) < 1e-6


@pytest.mark.parametrize("moved", [1, 2, 5])
def test_the_price_is_that_of_normal_noise(moved: int) -> None:
    """The worst set of whole answers has at most the normal mechanism's delta, and most of that; with four fifths of the variance it has more."""
    loss = approximate(1.0, 1e-3)
    variance = least_variance(moved**2, loss)
    assert gaussian_delta(moved / math.sqrt(variance), 1.0) <= 1e-3 < gaussian_delta(moved / math.sqrt(variance - 1), 1.0)

    def spent(own: float) -> float:
        most = int(12 * math.sqrt(own)) + moved
        here = law(own, most + moved)
        return sum(max(0.0, here[y] - math.e * here[y - moved]) for y in range(-most, most + 1))

    assert 0.75e-3 < spent(variance) <= 1e-3 < spent(0.8 * variance)


@pytest.mark.parametrize("loss", [approximate(1.0, 1e-6), approximate(0.1, 1e-9), approximate(8.0, 0.5)])
def test_the_ratio_is_the_most_that_a_loss_allows(loss: Approximate) -> None:
    """A move of mu^2 per variance keeps to delta, one larger by a millionth does not; and every least variance is the squared move over it, rounded up."""
    ratio = mu_squared(loss)
    assert gaussian_delta(math.sqrt(ratio), loss.epsilon) <= loss.delta < gaussian_delta(math.sqrt(ratio * (1 + 1e-6)), loss.epsilon)
    assert [least_variance(square, loss) for square in (1, 7, 10**6)] == [math.ceil(square / ratio) for square in (1, 7, 10**6)]
