"""Unary encodings, and sets of items with or without numbers: laws, channels enumerated, closed
forms, and wrong twins."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from local_dp.bounds.frequencies import oue_variance, summed_variance
from local_dp.errors import RefusedError
from local_dp.loss import exp_epsilon, nano_epsilon
from local_dp.noise import Draw, KeyedNoise, public_coins, stream_key
from local_dp.randomizers.evidence import check_loss, exact_ratio
from local_dp.randomizers.frequencies.base import support_variance
from local_dp.randomizers.frequencies.unary import (
    OUE,
    STEPS,
    SUE,
    THE,
    NoisyBit,
    UnaryEncoding,
    best_threshold,
)
from local_dp.randomizers.places import ones_at
from local_dp.randomizers.sets.padding_sampling import (
    PCKV,
    PCKVUE,
    Padded,
    PaddingSampling,
    SignedPlace,
    SignedPlaces,
)
from local_dp.tallies import Estimate, Tally
from tests.support.long import short
from tests.support.mechanisms.case import twin_of
from tests.support.wrong import wrong

KINDS = (SUE, OUE)
LAW = np.array([0.5, 0.25, 0.15, 0.1, 0.0])


def _ratio(other: int, own: int, total: int) -> Fraction:
    """The loss that two places make together, as a ratio."""
    return Fraction(own * (total - other), other * (total - own))


@wrong(
    "local_dp.randomizers.frequencies.unary:OUE._weights",
    "2 ** bits // 2",
    "2 ** bits - flip_weight(self.nano, bits)",
    "two bits change with the value, and twice epsilon is spent",
    at="32-1e-06-OUE",
)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 3.0, 10.0, 24.0])
@pytest.mark.parametrize("bits", [32, 64])
def test_thresholds_are_the_least_that_keep_epsilon(
    kind: type[UnaryEncoding], epsilon: float, bits: int
) -> None:
    """With the weights as they are the exact ratio is at most e^epsilon; with one word less noise
    it is more."""
    randomizer = kind(epsilon, k=3, word_bits=bits)
    (other, own), most = randomizer.ones, exp_epsilon(randomizer.nano)
    assert exact_ratio(randomizer) == _ratio(other, own, randomizer.total) <= most
    nearer = (other - 1, own + (kind is SUE))
    assert nearer[0] == 0 or _ratio(*nearer, randomizer.total) > most


@pytest.mark.parametrize("n", [1, 255, 256, 257, 1000, 20_000])
def test_carry_save_adders_count(n: int) -> None:
    """Packed rows have as many ones at each place as their bits added up, and all ones and all
    zeros too."""
    rows = np.random.default_rng(n).integers(0, 256, (n, 3), dtype=np.uint8)
    for some in (rows, np.full_like(rows, 255), np.zeros_like(rows)):
        assert (
            ones_at(some).tolist()
            == np.unpackbits(some, axis=1, bitorder="little").sum(axis=0, dtype=np.int64).tolist()
        )


def chances(epsilon: float, threshold: float) -> tuple[float, float]:
    """Of noise of scale 2 / eps that exceeds the threshold, at the own symbol and elsewhere."""
    missing, other = (math.exp(-far * epsilon / 2) / 2 for far in (1 - threshold, threshold))
    return 1 - missing, other


@wrong(
    "local_dp.randomizers.frequencies.unary:_tails",
    "2 * STEPS",
    "STEPS",
    "each of the two noisy counts that change spends epsilon",
    at="0.05",
)
@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 4.0, 12.0])
def test_a_threshold_wastes_some_of_epsilon(epsilon: float) -> None:
    """The loss of thresholded noise is that of its bits, below eps / 2 + ln 4; no threshold has
    less variance, and unary encoding of that loss no more."""
    randomizer, threshold = THE(epsilon, k=5), best_threshold(nano_epsilon(epsilon)) / STEPS
    loss = math.log(exact_ratio(randomizer))
    p, q = chances(epsilon, threshold)
    assert loss == pytest.approx(math.log(p / q) + math.log((1 - q) / (1 - p)), abs=1e-6)
    assert loss < min(epsilon, epsilon / 2 + math.log(4))
    cost = support_variance(*chances(epsilon, threshold), 0.0)
    costs = [support_variance(*chances(epsilon, step / 128), 0.0) for step in range(1, 128)]
    assert cost <= min(costs) * (1 + 1e-6)
    assert oue_variance(epsilon, 0.0) < oue_variance(loss, 0.0) <= cost


def _check_drawn(randomizer: Any, honest: UnaryEncoding) -> None:
    """2,000 drawn tallies of 400 clients with fixed values: mean of every place within 6
    deviations, covariance of any two within 6 of theirs. The centred, scaled counts are near
    normal, so an entry of their empirical covariance deviates by at most sqrt(2 / runs); 30
    comparisons at 6 deviations fail with probability below ALPHA."""
    holders, runs = {0: 200, 1: 100, 2: 60, 3: 40}, 2000
    generator = np.random.default_rng(3)
    tallies = [randomizer.draw_tally(holders, generator) for _ in range(runs)]
    assert {tally.n for tally in tallies} == {400}
    (p, q), own = honest.chances, 400 * LAW
    mean = q * 400 + (p - q) * own
    variance = own * p * (1 - p) + (400 - own) * q * (1 - q)
    standard = (np.stack([tally.counts for tally in tallies]) - mean) / np.sqrt(variance)
    assert abs(standard.mean(axis=0)).max() < 6 / math.sqrt(runs)
    assert abs(standard.T @ standard / runs - np.eye(5)).max() < 6 * math.sqrt(2 / runs)


# draws each place's ones as if nobody's value were known: n times the share, binomial
class OneLaw(OUE):
    def draw_tally(self, value_counts: Any, generator: np.random.Generator) -> Tally:
        whole = super().draw_tally(value_counts, generator)
        values = generator.multinomial(whole.n, LAW)
        return super().draw_tally(dict(enumerate(values.tolist())), generator)


@pytest.mark.parametrize("kind", short(KINDS, lambda kind: kind is OUE))
def test_drawn_tallies_have_the_law_of_the_bits(kind: type[UnaryEncoding]) -> None:
    """Given the values, the ones at each place are independent binomials; a twin that draws the
    values again is noticed."""
    _check_drawn(kind(1.0, k=5), kind(1.0, k=5))
    with pytest.raises(AssertionError):
        _check_drawn(OneLaw(4.0, k=5), OUE(4.0, k=5))


SETS: list[Padded] = [
    PaddingSampling(1.0, k=k, limit=limit) for k, limit in ((1, 1), (3, 1), (4, 2), (4, 4))
]
KEYS: list[Padded] = [
    PCKV(1.0, k=k, limit=limit, steps=steps)
    for k, limit, steps in ((1, 1, 1), (2, 1, 3), (3, 2, 2), (3, 3, 4))
]


@wrong(
    "local_dp.randomizers.sets.padding_sampling:PCKV.estimate",
    "2 * base",
    "base",
    "a key has two reports, and what both have whatever the set is taken off once",
    at="pckv 1 1",
)
@pytest.mark.parametrize(
    "randomizer", SETS + KEYS, ids=lambda each: f"{each.name} {each.k} {each.limit}"
)
def test_estimates_are_unbiased_for_every_set(randomizer: Padded) -> None:
    """From a tally in proportion to each set's law the estimate is what the set holds, and what is
    more than the limit counts less."""
    for value in range(randomizer.domain.size):
        counts = np.rint(randomizer.weights[value] / randomizer.total * 2.0**52).astype(np.int64)
        estimate = randomizer.estimate(Tally(counts[None, :]))
        np.testing.assert_allclose(
            estimate.value, randomizer.truths(np.array([value]))[0], atol=1e-9
        )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_sampling_amplifies(epsilon: float) -> None:
    """A certain member is likelier than another symbol by L (e^eps - 1) + 1, more than e^eps."""
    randomizer = PaddingSampling(epsilon, k=6, limit=3)
    base, gain = randomizer.odds
    assert (base + 3 * gain) / base == pytest.approx(3 * math.expm1(epsilon) + 1, rel=1e-9)


def test_means_of_numbers() -> None:
    """Of 60,000 clients with one key or two, each key's mean is within its interval at 6 standard
    errors; a key that nobody holds has none that is known."""
    randomizer = PCKV(2.0, k=3, limit=2, steps=4)
    numbers = (1 + 4) + 6 * (1 + 1), 1 + 3  # key 0 at 1 and key 1 at -1/2; key 0 at 1/2
    laws = [randomizer.weights[value] / randomizer.total for value in numbers]
    counts = np.rint((laws[0] + laws[1]) * 30_000).astype(np.int64)
    means = randomizer.means(Tally(counts[None, :]))
    low, high = means.interval(6.0)
    np.testing.assert_allclose(means.value[:2], [0.75, -0.5], atol=0.01)
    assert low[0] < 0.75 < high[0]
    assert low[1] < -0.5 < high[1]
    assert (low[2], high[2]) == (-1.0, 1.0)
    assert isinstance(means, Estimate)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 4.0, 8.0])
def test_noise_of_the_sum_is_its_closed_form(epsilon: float) -> None:
    """By the exact law of a place: means 0 and 1, the same variance for both bits, that of
    unbounded discrete Laplace noise, or up to .1 % less."""
    place = NoisyBit(epsilon / 2)
    chances = place.weights.astype(np.float64) / place.total
    np.testing.assert_allclose(chances @ place.decoded, [0.0, 1.0], atol=1e-9)
    variance = chances @ place.decoded**2 - (chances @ place.decoded) ** 2
    np.testing.assert_allclose(variance, summed_variance(epsilon, 0.0), rtol=2e-3)
    assert summed_variance(epsilon, 0.0) == pytest.approx(
        2 * math.exp(-epsilon / 2) / (1 - math.exp(-epsilon / 2)) ** 2
    )


def test_means_of_numbers_of_places() -> None:
    """Key 0 at 1 and key 1 at -1/2 for half of the clients, key 0 at 1/2 for the others: means
    within their intervals, by the covariance of reports; of a key nobody holds none is known."""
    randomizer, n, growth = PCKVUE(3.0, k=3, limit=2, steps=4), 200_000, math.exp(3)
    values = np.where(np.arange(n)[:, None] % 2 == 0, [5, 2, 0], [4, 0, 0])
    coins = public_coins(stream_key("coins", 3, 1), 0, n)
    reports = randomizer.respond(values, randomizer.draw(KeyedNoise(2), Draw(1), 0, n), coins)
    means = randomizer.means(randomizer.tally(reports, coins))
    signs = np.array([0, 1, -1])[reports[:, 0]] * 4 * (growth + 1) / (growth - 1)
    spread = np.cov(signs, (signs != 0) * 2 / (0.5 - 2 / (growth + 3)))[np.triu_indices(2)]
    assert np.array(means.moments)[2:, 0] == pytest.approx(spread / n, rel=1e-4)
    low, high = means.interval(5.0)
    assert (low[:2] < [0.75, -0.5]).all()
    assert (high[:2] > [0.75, -0.5]).all()
    assert (low[2], high[2]) == (-1.0, 1.0)


# its places have twice the epsilon
TooSure = twin_of(
    SignedPlaces, inner=lambda own, right: SignedPlace(2 * own.epsilon, word_bits=own.word_bits)
)
OwnSampler = twin_of(
    SignedPlaces,
    respond=lambda own, right: (
        lambda values, words, cells: right(values, words & np.uint64(1), cells)
    ),
)
"""Answers by code of its own, which nobody enumerates."""


def test_wrong_twins_show() -> None:
    for twin, match in ((TooSure(1.0), "claims"), (OwnSampler(1.0), "sampler of its own")):
        with pytest.raises(RefusedError, match=match):
            check_loss(twin)
