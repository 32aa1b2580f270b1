"""Exact draws from uniform words."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.noise import KeyedNoise, SystemNoise
from tests.support.runs.scripted import Script


def test_below_is_uniform_by_enumeration() -> None:
    """Over all words of three bits, a draw below 5 takes each value once and rejects 5, 6 and 7; a coin of bias 3/8 is heads for three."""
    assert [Script([word, 0]).below(5) for word in range(8)] == [0, 1, 2, 3, 4, 0, 0, 0]
    assert (Script([7, 6, 5, 4]).below(5), Script([]).below(1), Script([3, 1]).below(1 << 65)) == (4, 0, 3 + (1 << 64))
    assert sum(Script([word]).coin(Fraction(3, 8)) for word in range(8)) == 3


def test_many_below_are_uniform() -> None:
    """A quarter of all words is drawn again for a limit of 3 2^61: thirds are equal (chi-squared, failure 1e-6), as remainders of all words are not."""
    draws, limit, runs = Draws(KeyedNoise(4)), 3 << 61, 6000
    drawn = draws.many_below(limit, runs)
    assert chisquare(np.bincount(drawn >> 61, minlength=3)).pvalue > 1e-6
    assert chisquare(np.bincount((draws.words(runs) % np.uint64(limit) >> np.uint64(61)).astype(np.int64), minlength=3)).pvalue < 1e-6
    assert set(draws.many_below(5, 300).tolist()) == {0, 1, 2, 3, 4}
    assert draws.many_below(1, 3).tolist() == [0, 0, 0]
    with pytest.raises(InputError, match="below 0"):
        draws.many_below(0, 3)


def test_words_are_read_once_and_in_order() -> None:
    """Two sources over one seed agree word for word, however the words are asked for; the operating system's source works too."""
    first, second = Draws(KeyedNoise(3)), Draws(KeyedNoise(3))
    assert np.array_equal(np.concatenate([first.words(3), first.words(5)]), second.words(8))
    assert not np.array_equal(Draws(KeyedNoise(3), round=1).words(8), Draws(KeyedNoise(3)).words(8))
    assert len(Draws(SystemNoise()).words(4)) == 4


def p_value(epsilon: Fraction, claimed: float, draws: int = 8000) -> float:
    """Of a chi-squared test that `draws` noises of `epsilon` have the two-sided geometric law of `claimed`."""
    source = Draws(KeyedNoise(11))
    drawn = Counter(max(-4, min(4, source.discrete_laplace(epsilon))) for _ in range(draws))
    a = np.exp(-claimed)
    law = [a ** abs(y) * (1 - a) / (1 + a) if abs(y) < 4 else a**4 / (1 + a) for y in range(-4, 5)]
    return float(chisquare([drawn[y] for y in range(-4, 5)], np.array(law) * draws).pvalue)


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1), Fraction(7, 3)])
def test_discrete_laplace_has_its_law(epsilon: Fraction) -> None:
    """Fails a true sampler with probability 1e-6 a case; noise of 1.2 epsilon in its place is caught."""
    assert p_value(epsilon, float(epsilon)) > 1e-6
    assert p_value(epsilon * Fraction(6, 5), float(epsilon)) < 1e-6


def cauchy_p_value(scale: int, claimed: float) -> float:
    """Of a chi-squared test that 8,000 noises of `scale` have the discrete Cauchy law of `claimed`, in cells that double: the tails count."""
    source, ends = Draws(KeyedNoise(7)), np.array([0, 1, 2, 3, 4, 6, 9, 14, 22, 40, 80, 200])
    drawn = np.array([source.discrete_cauchy(scale) for _ in range(8000)])
    near = np.arange(200)
    share = claimed * np.tanh(np.pi * claimed) / np.pi / (near**2 + claimed**2)
    upto = np.concatenate([[0], np.cumsum(share)])[ends]
    positive = np.append(np.diff(upto), (1 + share[0]) / 2 - upto[-1])
    law = np.concatenate([positive[:0:-1], positive])
    law[len(positive) - 1 :][:1] = share[0]
    cells = np.sign(drawn) * (np.searchsorted(ends, np.abs(drawn), side="right") - 1)
    seen = [int((cells == cell).sum()) for cell in range(1 - len(positive), len(positive))]
    return float(chisquare(seen, law / law.sum() * 8000).pvalue)


@pytest.mark.parametrize("scale", [1, 2, 5])
def test_discrete_cauchy_has_its_law(scale: int) -> None:
    """Fails a true sampler with probability 1e-6 a case; noise of 1.2 times the scale, and noise without far tails' due, would be caught."""
    assert cauchy_p_value(scale, scale) > 1e-6
    assert cauchy_p_value(scale, 1.2 * scale) < 1e-6


def test_discrete_cauchy_of_a_large_scale() -> None:
    """Scales beyond 64 bits: half of 2,000 draws within the scale, and one in 20 beyond 12.706 scales (binomial, failure 1e-6 each)."""
    source, scale = Draws(KeyedNoise(8)), 1 << 70
    drawn = [abs(source.discrete_cauchy(scale)) / scale for _ in range(2000)]
    for bound, share in ((1.0, 0.5), (12.706, 0.05)):
        assert abs(sum(size > bound for size in drawn) - 2000 * share) < 4.9 * (2000 * share * (1 - share)) ** 0.5


def test_bad_parameters_are_refused() -> None:
    draws = Draws(KeyedNoise(0))
    with pytest.raises(InputError, match="below 0"):
        draws.below(0)
    with pytest.raises(InputError, match="positive number of nats"):
        draws.discrete_laplace(Fraction(0))
    with pytest.raises(InputError, match="scale is 0"):
        draws.discrete_cauchy(0)
