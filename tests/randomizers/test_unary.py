"""Unary encodings: least thresholds, the whole channel enumerated, closed-form variances, and what the bits' independence gives."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from local_dp.arrays import Floats
from local_dp.bounds.frequencies import oue_variance, sue_variance, thresholded_variance
from local_dp.loss import exp_epsilon, nano_epsilon
from local_dp.noise import Draw, KeyedNoise
from local_dp.randomizers.evidence import exact_ratio
from local_dp.randomizers.frequencies.unary import OUE, STEPS, SUE, THE, UnaryEncoding, best_threshold
from local_dp.randomizers.places import ones_at
from local_dp.randomizers.simulated import answers
from local_dp.tallies import Tally

KINDS = (SUE, OUE)
CLOSED: dict[str, Callable[[float, float], float]] = {
    "sue": sue_variance,
    "oue": oue_variance,
    "the": lambda epsilon, share: thresholded_variance(epsilon, best_threshold(nano_epsilon(epsilon)) / STEPS, share),
}
LAW = np.array([0.5, 0.25, 0.15, 0.1, 0.0])


def _ratio(other: int, own: int, total: int) -> Fraction:
    """The loss that two places make together, as a ratio."""
    return Fraction(own * (total - other), other * (total - own))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 3.0, 10.0, 24.0])
@pytest.mark.parametrize("bits", [32, 64])
def test_thresholds_are_the_least_that_keep_epsilon(kind: type[UnaryEncoding], epsilon: float, bits: int) -> None:
    """With the weights as they are the exact ratio is at most e^epsilon; with one word less noise it is more."""
    randomizer = kind(epsilon, k=3, word_bits=bits)
    (other, own), most = randomizer.ones, exp_epsilon(randomizer.nano)
    assert exact_ratio(randomizer) == _ratio(other, own, randomizer.total) <= most
    nearer = (other - 1, own + (kind is SUE))
    assert nearer[0] == 0 or _ratio(*nearer, randomizer.total) > most


@pytest.mark.parametrize("kind", KINDS)
def test_every_word_enumerated_gives_the_declared_channel(kind: type[UnaryEncoding]) -> None:
    """Over all triples of 4-bit words, each of the 8 reports occurs as often as its bits' weights say; and their worst ratio is the evidence's."""
    randomizer = kind(1.0, k=3, word_bits=4)
    words = np.array(list(itertools.product(range(16), repeat=3)), dtype=np.uint32)
    counts = np.stack([np.bincount(randomizer.respond(np.full(len(words), value), words, words[:1])[:, 0], minlength=8) for value in range(3)])
    for value, report in itertools.product(range(3), range(8)):
        weights = [randomizer.ones[int(place == value)] for place in range(3)]
        declared = math.prod(ones if report >> place & 1 else 16 - ones for place, ones in enumerate(weights))
        assert counts[value, report] == declared
    worst = max(Fraction(int(a), int(b)) for column in counts.T for a in column for b in column)
    assert worst == exact_ratio(randomizer) <= exp_epsilon(randomizer.nano)


@pytest.mark.parametrize("kind", KINDS)
def test_reports_do_not_depend_on_who_is_asked_with_whom(kind: type[UnaryEncoding]) -> None:
    """The simulated reports of 200,000 clients, many of them with tied words, are those of the same clients asked in parts."""
    randomizer, noise, cells = kind(1.0, k=5), KeyedNoise(2), np.zeros(1, dtype=np.uint8)
    values = np.arange(200_000) % 5
    whole = answers(randomizer, noise, Draw(3), 0, values, cells)
    parts = [answers(randomizer, noise, Draw(3), first, values[first:last], cells) for first, last in ((0, 7), (7, 120_001), (120_001, 200_000))]
    assert (np.concatenate(parts) == whole).all()


@pytest.mark.parametrize("n", [1, 255, 256, 257, 1000, 20_000])
def test_carry_save_adders_count(n: int) -> None:
    """Packed rows have as many ones at each place as their bits added up, and all ones and all zeros too."""
    rows = np.random.default_rng(n).integers(0, 256, (n, 3), dtype=np.uint8)
    for some in (rows, np.full_like(rows, 255), np.zeros_like(rows)):
        assert ones_at(some).tolist() == np.unpackbits(some, axis=1, bitorder="little").sum(axis=0, dtype=np.int64).tolist()


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 4.0, 12.0])
def test_a_threshold_wastes_some_of_epsilon(epsilon: float) -> None:
    """The exact loss of thresholded noise is that of its two bits, below epsilon and at most about eps / 2 + ln 4. No threshold of the grid
    has less variance. Unary encoding at the real loss is no worse, so at epsilon much better."""
    randomizer, threshold = THE(epsilon, k=5), best_threshold(nano_epsilon(epsilon)) / STEPS
    loss = math.log(exact_ratio(randomizer))
    p, q = 1 - math.exp(-(1 - threshold) * epsilon / 2) / 2, math.exp(-threshold * epsilon / 2) / 2
    assert loss == pytest.approx(math.log(p / q) + math.log((1 - q) / (1 - p)), abs=1e-6)
    assert loss < min(epsilon, epsilon / 2 + math.log(4))
    spent = thresholded_variance(epsilon, threshold, 0.0)
    assert spent <= min(thresholded_variance(epsilon, step / 128, 0.0) for step in range(1, 128)) * (1 + 1e-6)
    assert oue_variance(epsilon, 0.0) < oue_variance(loss, 0.0) <= spent
    estimate = randomizer.estimate(Tally(np.rint((q + LAW * (p - q)) * 2**50).astype(np.int64), 1 << 50))
    np.testing.assert_allclose(estimate.standard_error**2 * 2**50, [CLOSED["the"](epsilon, share) for share in LAW.tolist()], rtol=1e-5)


@pytest.mark.parametrize(
    ("epsilon", "k", "sue", "oue"), [(1.0, 4, 16.4, 16.5), (1.0, 16, 63.6, 60.9), (1.0, 64, 251.7, 237.7), (2.0, 64, 59.9, 48.3), (4.0, 64, 12.6, 6.85)]
)
def test_variances_match_the_table(epsilon: float, k: int, sue: float, oue: float) -> None:
    """n E||f^ - f||^2 at the uniform law is that of limits 2, to the digits printed there."""
    assert k * sue_variance(epsilon, 1 / k) == pytest.approx(sue, rel=5e-3)
    assert k * oue_variance(epsilon, 1 / k) == pytest.approx(oue, rel=5e-3)


def _covariance(randomizer: UnaryEncoding) -> Floats:
    """The covariance of one report's estimates of the five shares, from the law of its bits given the value."""
    p, q = randomizer.ones[1] / randomizer.total, randomizer.ones[0] / randomizer.total
    ones = np.where(np.eye(len(LAW)) == 1, p, q)
    mean = LAW @ ones
    covariance = (ones * LAW[:, None]).T @ ones - np.outer(mean, mean)
    np.fill_diagonal(covariance, mean * (1 - mean))
    exact: Floats = covariance / (p - q) ** 2
    return exact


@pytest.mark.parametrize("kind", KINDS)
def test_the_covariance_of_linear_functions_is_that_of_one_report(kind: type[UnaryEncoding]) -> None:
    """On a tally in exact proportion to a law, `joint` has the value and the covariance that the law of one report has."""
    randomizer, n = kind(1.0, k=5), 1 << 50
    weights = np.array([[1.0, 0, 0, 0, 0], [1, 1, 1, 1, 0], [0.5, -2, 0, 3, 1]])
    p, q = randomizer.ones[1] / randomizer.total, randomizer.ones[0] / randomizer.total
    joint = randomizer.joint(Tally(np.rint((q + LAW * (p - q)) * n).astype(np.int64), n), weights)
    np.testing.assert_allclose(joint.value, weights @ LAW, atol=1e-9)
    np.testing.assert_allclose(joint.covariance * n, weights @ _covariance(randomizer) @ weights.T, rtol=1e-9, atol=1e-9)


def _check_drawn(randomizer: Any, honest: UnaryEncoding) -> None:
    """2,000 drawn tallies of 400 clients with fixed values: mean of every place within 6 deviations, covariance of any two within 6 of
    theirs. The centred, scaled counts are near normal, so an entry of their empirical covariance deviates by at most sqrt(2 / runs); 30
    comparisons at 6 deviations fail with probability below ALPHA."""
    held, runs = {0: 200, 1: 100, 2: 60, 3: 40}, 2000
    generator = np.random.default_rng(3)
    drawn = [randomizer.draw_tally(held, generator) for _ in range(runs)]
    assert {tally.n for tally in drawn} == {400}
    p, q = honest.ones[1] / honest.total, honest.ones[0] / honest.total
    own = 400 * LAW
    mean, variance = q * 400 + (p - q) * own, own * p * (1 - p) + (400 - own) * q * (1 - q)
    scaled = (np.stack([tally.counts for tally in drawn]) - mean) / np.sqrt(variance)
    assert abs(scaled.mean(axis=0)).max() < 6 / math.sqrt(runs)
    assert abs(scaled.T @ scaled / runs - np.eye(5)).max() < 6 * math.sqrt(2 / runs)


@dataclass(frozen=True, kw_only=True)
class OneLaw(OUE):
    """Draws each place's ones as if nobody's value were known: n times the share, binomial."""

    def draw_tally(self, value_counts: Any, generator: np.random.Generator) -> Tally:
        whole = super().draw_tally(value_counts, generator)
        moved = generator.multinomial(whole.n, LAW)
        return super().draw_tally(dict(enumerate(moved.tolist())), generator)


@pytest.mark.parametrize("kind", KINDS)
def test_drawn_tallies_have_the_law_of_the_bits(kind: type[UnaryEncoding]) -> None:
    """Given the values, the ones at each place are independent binomials; a twin that draws the values again is noticed."""
    _check_drawn(kind(1.0, k=5), kind(1.0, k=5))
    with pytest.raises(AssertionError):
        _check_drawn(OneLaw(4.0, k=5), OUE(4.0, k=5))
