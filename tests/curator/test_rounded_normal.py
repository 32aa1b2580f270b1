"""Rounded normal noise: its table, its draws, its price."""

import math
from collections import Counter
from decimal import Decimal, localcontext

import numpy as np
import pytest
from scipy.stats import chisquare, norm

from local_dp.accounting.gaussian import gaussian_delta
from local_dp.curator.rounded_normal import least_variance, mu_squared, rounded_normals, rounded_sizes
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import Approximate, approximate
from local_dp.noise import KeyedNoise


def law(variance: float, most: int) -> dict[int, float]:
    """Pr[round(N(0, variance)) = y]."""
    sigma = math.sqrt(variance)
    return {y: float(norm.sf((abs(y) - 0.5) / sigma) - norm.sf((abs(y) + 0.5) / sigma)) for y in range(-most, most + 1)}


@pytest.mark.parametrize("variance", [1, 2, 30, 84_314])
def test_the_table_is_the_normal_law(variance: int) -> None:
    """Against another implementation, to its precision."""
    table = rounded_sizes(variance)(25)
    borders = (np.arange(len(table)) + 0.5) / math.sqrt(variance)
    assert np.array(table, dtype=float) == pytest.approx(1 - 2 * norm.sf(borders), abs=3e-15)


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

    def p_value(expected: dict[int, float], shift: int = 0) -> float:
        counts = [drawn[y + shift] for y in expected]
        shares = np.array(list(expected.values())) * 60_000
        return float(chisquare([*counts, 60_000 - sum(counts)], [*shares, 60_000 - shares.sum()]).pvalue)

    assert p_value(law(5, 8)) > 1e-6 > p_value(law(5.3, 8))
    assert p_value(law(5, 8), shift=1) < 1e-6


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


def test_bad_variances_are_refused() -> None:
    with pytest.raises(InputError, match="variance is 0"):
        rounded_normals(Draws(KeyedNoise(1)), 0, 5)
