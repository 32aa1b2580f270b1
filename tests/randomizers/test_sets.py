"""Sets of items, alone or with numbers, in one report or in one for each key: laws, unbiased estimates, closed forms, and wrong twins."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import pytest

from local_dp.arrays import Floats, Ints, Words
from local_dp.bounds.best import best_for
from local_dp.bounds.frequencies import oue_variance, sue_variance, summed_variance
from local_dp.conformance import conform
from local_dp.errors import RefusedError
from local_dp.loss import exp_epsilon, nano_epsilon
from local_dp.noise import Draw, KeyedNoise, public_coins, stream_key
from local_dp.randomizers.evidence import check_loss, exact_ratio
from local_dp.randomizers.frequencies.unary import SHE, NoisyBit
from local_dp.randomizers.sets.padding_sampling import Padded, PaddingSampling
from local_dp.randomizers.sets.pckv import PCKV, PCKVUE, SignedPlace, SignedPlaces, pckv_ue_variances, pckv_variances
from local_dp.tallies import Estimate, Tally
from tests.support.long import short

SETS: list[Padded] = [PaddingSampling(1.0, k=k, limit=limit) for k, limit in ((1, 1), (3, 1), (4, 2), (4, 4))]
KEYS: list[Padded] = [PCKV(1.0, k=k, limit=limit, steps=steps) for k, limit, steps in ((1, 1, 1), (2, 1, 3), (3, 2, 2), (3, 3, 4))]


def truth(randomizer: Padded, value: int) -> Floats:
    """What a client with this value adds to each estimate: whether it holds each item; and its number there."""
    weight = min(1.0, randomizer.limit / max(1, int(randomizer.held[value].sum())))
    held: Floats = randomizer.held[value] * weight
    if not isinstance(randomizer, PCKV):
        return held
    return np.concatenate([held, held * (2 * (randomizer.digits[value] - 1) / randomizer.steps - 1)])


@pytest.mark.parametrize("randomizer", SETS + KEYS, ids=lambda each: f"{each.name} {each.k} {each.limit}")
def test_estimates_are_unbiased_for_every_set(randomizer: Padded) -> None:
    """From a tally in proportion to each set's law the estimate is what the set holds, and what is more than the limit counts less."""
    for value in range(randomizer.domain.size):
        counts = np.rint(randomizer.weights[value] / randomizer.total * 2.0**52).astype(np.int64)
        found = randomizer.estimate(Tally(counts[None, :]))
        np.testing.assert_allclose(found.value, truth(randomizer, value), atol=1e-9)


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_the_law_is_that_of_drawing_a_member(limit: int) -> None:
    """Each report's chance is s plus the chance to draw its member times L g, in fractions, up to what a row's rounding leaves over."""
    randomizer = PaddingSampling(1.0, k=4, limit=limit)
    base, gain = (Fraction(part) for part in randomizer.odds)
    for value in range(16):
        members = [item for item in range(4) if value >> item & 1]
        padded = members + [4 + dummy for dummy in range(max(0, limit - len(members)))]
        for report in range(randomizer.alphabet):
            chance = base + (limit * gain / len(padded) if report in padded else 0)
            assert float(Fraction(int(randomizer.weights[value, report]), randomizer.total)) == pytest.approx(float(chance), rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_sampling_amplifies(epsilon: float) -> None:
    """A certain member is likelier than another symbol by L (e^eps - 1) + 1: more than e^eps, and the loss is epsilon still."""
    randomizer = PaddingSampling(epsilon, k=6, limit=3)
    base, gain = randomizer.odds
    assert (base + 3 * gain) / base == pytest.approx(3 * math.expm1(epsilon) + 1, rel=1e-9)
    ratio = exact_ratio(randomizer)
    assert ratio <= exp_epsilon(nano_epsilon(epsilon))
    assert math.log(ratio) == pytest.approx(epsilon, abs=1e-9)


@dataclass(frozen=True, kw_only=True)
class Unpadded(PaddingSampling):
    """Draws from the set alone: a single item is reported too often."""

    def spread(self, gains: Ints) -> Ints:
        single = (gains > 0).sum(axis=1, keepdims=True) == 1
        return np.where(single, gains * np.uint64(2), gains)


def test_a_twin_without_dummies_shows() -> None:
    """Without dummies a set of one reports its item L times as often: the rows are no laws, or the loss is beyond epsilon."""
    with pytest.raises((AssertionError, RefusedError), match=r"sum|claims|above"):
        conform(Unpadded(1.0, k=3))


def test_means_of_numbers() -> None:
    """Of 60,000 clients with one key or two, each key's mean is within its interval at 6 standard errors; a key that nobody holds has none that is known."""
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


def law(randomizer: SHE | SignedPlaces, value: int) -> dict[tuple[int, ...], Fraction]:
    """The law of a report of two places, over all pairs of narrow words."""
    some = np.arange(1 << randomizer.word_bits, dtype=np.uint32)
    words = np.stack(np.meshgrid(some, some), axis=-1).reshape(-1, 2)
    sent, counts = np.unique(randomizer.respond(np.full(len(words), value), words, np.zeros(1, dtype=np.uint8)), axis=0, return_counts=True)
    return {tuple(report): Fraction(int(count), len(words)) for report, count in zip(sent.tolist(), counts.tolist(), strict=True)}


BY_HAND = [SHE(3.0, k=2, word_bits=10), SignedPlaces(2.0, k=2, word_bits=8)]


@pytest.mark.parametrize("randomizer", short(BY_HAND, lambda each: each.name != "she"), ids=lambda each: each.name)
def test_the_ratio_is_that_of_all_words(randomizer: SHE | SignedPlaces) -> None:
    """Enumerated over all words of both places, the worst ratio of two values' laws is the stated one, as a fraction, and at most e^epsilon."""
    laws = [law(randomizer, value) for value in randomizer.domain.values().tolist()]
    worst = max(one[report] / other[report] for one in laws for other in laws for report in one)
    assert worst == exact_ratio(randomizer) <= exp_epsilon(randomizer.nano)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 4.0, 8.0])
def test_noise_of_the_sum_is_its_closed_form(epsilon: float) -> None:
    """By the exact law of a place: means 0 and 1, the same variance for both bits, that of unbounded discrete Laplace noise, or up to .1 % less."""
    place = NoisyBit(epsilon / 2)
    chances = place.weights.astype(np.float64) / place.total
    np.testing.assert_allclose(chances @ place.decoded, [0.0, 1.0], atol=1e-9)
    variance = chances @ place.decoded**2 - (chances @ place.decoded) ** 2
    np.testing.assert_allclose(variance, summed_variance(epsilon, 0.0), rtol=2e-3)
    assert summed_variance(epsilon, 0.0) == pytest.approx(2 * math.exp(-epsilon / 2) / (1 - math.exp(-epsilon / 2)) ** 2)


@pytest.mark.parametrize("epsilon", [0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0])
def test_the_sum_is_never_the_best(epsilon: float) -> None:
    """Both unary encodings have less variance at every epsilon, so it is never chosen, and it is listed among the others."""
    assert max(oue_variance(epsilon, 0.0), sue_variance(epsilon, 0.0)) < 0.6 * summed_variance(epsilon, 0.0)
    for k in (2, 8, 100):
        best = best_for("frequency", epsilon, k)
        assert best.randomizer != "she"
        assert dict(best.others)["she"] > 1.1 * best.variance


def test_codes_draw_members_evenly() -> None:
    """Over coins each member of a padded set is drawn as often as any, and signs follow the number: within 5 standard errors."""
    randomizer, n = PCKVUE(1.0, k=4, limit=3, steps=4), 100_000
    record = 5 * 1 + 6 * 4  # key 0 at 1, key 1 at 1/2; one dummy
    codes = randomizer.encode(np.full(n, record), public_coins(stream_key("coins", 3, 1), 0, n))
    shares = np.bincount(codes, minlength=9) / n
    assert (abs(shares - [1 / 3, 1 / 3, 1 / 4, 0, 0, 0, 1 / 12, 0, 0]) < 5 * math.sqrt(0.25 / n)).all()
    assert shares[[3, 4, 5, 7, 8]].max() == 0


def test_means_of_numbers_of_places() -> None:
    """Key 0 at 1 and key 1 at -1/2 for half of the clients, key 0 at 1/2 for the others: means within their intervals; of a key nobody holds none is known."""
    randomizer, n = PCKVUE(3.0, k=3, limit=2, steps=4), 200_000
    values = np.where(np.arange(n) % 2 == 0, 5 + 6 * 2, 4)
    coins = public_coins(stream_key("coins", 3, 1), 0, n)
    means = randomizer.means(randomizer.tally(randomizer.respond(values, randomizer.draw(KeyedNoise(2), Draw(1), 0, n), coins), coins))
    low, high = means.interval(5.0)
    assert (low[:2] < [0.75, -0.5]).all()
    assert (high[:2] > [0.75, -0.5]).all()
    assert (high - low)[:2].max() < 0.4
    assert (low[2], high[2]) == (-1.0, 1.0)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("limit", [1, 2, 4])
def test_the_rule_which_pckv_is_better(epsilon: float, limit: int) -> None:
    """Of a rare key's share the vector has less variance than the one response from about 2 L^2 (E + 1) - L E / 2 keys on, and more below."""
    turn = 2 * limit**2 * (math.exp(epsilon) + 1) - limit * math.exp(epsilon) / 2
    vector = pckv_ue_variances(epsilon, limit, 0.0, 0.0)[0]
    assert pckv_variances(epsilon, math.ceil(1.1 * turn + 2), limit, 0.0, 0.0)[0] > vector
    assert pckv_variances(epsilon, max(limit, math.floor(0.9 * turn - 2)), limit, 0.0, 0.0)[0] < vector or 0.9 * turn - 2 < limit
    assert PCKVUE(epsilon, k=4, limit=limit).domain == PCKV(epsilon, k=4, limit=limit).domain


@dataclass(frozen=True, kw_only=True)
class TooSure(SignedPlaces):
    """Its places have twice the epsilon."""

    @cached_property
    def inner(self) -> SignedPlace:
        return SignedPlace(2 * self.epsilon, word_bits=self.word_bits)


@dataclass(frozen=True, kw_only=True)
class OwnSampler(SignedPlaces):
    """Answers by code of its own, which nobody enumerates."""

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        return super().respond(values, words & np.uint64(1), cells)


def test_wrong_twins_show() -> None:
    for twin, match in ((TooSure(1.0), "claims"), (OwnSampler(1.0), "sampler of its own")):
        with pytest.raises(RefusedError, match=match):
            check_loss(twin)
