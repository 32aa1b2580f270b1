"""Vectors of small reports: exact losses, laws enumerated over all words, closed forms; SHE behind better ones, PCKV-UE before and behind PCKV."""

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
from local_dp.errors import InputError, RefusedError
from local_dp.loss import exp_epsilon, nano_epsilon
from local_dp.noise import Draw, KeyedNoise, public_coins, stream_key
from local_dp.randomizers.evidence import check_loss, exact_ratio
from local_dp.randomizers.frequencies.summed import SHE, NoisyBit
from local_dp.randomizers.sets.pckv import PCKV, digits_of, pckv_variances
from local_dp.randomizers.sets.pckv_ue import PCKVUE, SignedPlace, SignedPlaces, pckv_ue_variances
from local_dp.tallies import Tally
from tests.support.inputs.randomizers import of_places
from tests.support.theory.variances import clients_for, simulated

EPSILONS = [0.1, 0.5, 1.0, 4.0]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_they_conform(epsilon: float) -> None:
    """At every size they lose epsilon exactly and each place answers by its own word."""
    for randomizer in of_places(epsilon):
        conform(randomizer, symbols=randomizer.name == "she" and epsilon >= 0.5)
        check_loss(randomizer)
        ratio = exact_ratio(randomizer)
        assert ratio <= exp_epsilon(nano_epsilon(epsilon))
        assert math.log(ratio) > epsilon - 1e-6


def law(randomizer: SHE | SignedPlaces, value: int) -> dict[tuple[int, ...], Fraction]:
    """The law of a report of two places, over all pairs of narrow words."""
    some = np.arange(1 << randomizer.word_bits, dtype=np.uint32)
    words = np.stack(np.meshgrid(some, some), axis=-1).reshape(-1, 2)
    sent, counts = np.unique(randomizer.respond(np.full(len(words), value), words, np.zeros(1, dtype=np.uint8)), axis=0, return_counts=True)
    return {tuple(report): Fraction(int(count), len(words)) for report, count in zip(sent.tolist(), counts.tolist(), strict=True)}


@pytest.mark.parametrize("randomizer", [SHE(3.0, k=2, word_bits=10), SignedPlaces(2.0, k=2, word_bits=8)], ids=lambda each: each.name)
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


def test_reports_have_the_closed_form_variance() -> None:
    """Simulated clients: unbiased within 6 standard errors, the variance within 3 %, at the own symbol and elsewhere; functions of shares agree."""
    randomizer = SHE(1.0, k=4)
    place = randomizer.inner
    n = clients_for(place.decoded, place.weights[0].astype(np.float64) / place.total)
    found, closed = simulated(randomizer, 2, n), summed_variance(1.0, 0.0)
    assert (abs(found.value - np.eye(4)[2]) < 6 * found.standard_error).all()
    assert (abs(found.standard_error**2 * n / closed - 1) < 0.03).all()
    tally = randomizer.draw_tally({0: 300_000, 3: 700_000}, np.random.default_rng(1))
    joint = randomizer.joint(tally, np.eye(4))
    np.testing.assert_allclose(joint.value, [0.3, 0, 0, 0.7], atol=6 * math.sqrt((closed + 0.25) / 1e6))
    np.testing.assert_allclose(np.diag(joint.covariance), randomizer.estimate(tally).standard_error ** 2, rtol=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0])
def test_the_sum_is_never_the_best(epsilon: float) -> None:
    """Both unary encodings have less variance at every epsilon, so it is never chosen, and it is told as one of the others."""
    assert max(oue_variance(epsilon, 0.0), sue_variance(epsilon, 0.0)) < 0.6 * summed_variance(epsilon, 0.0)
    for k in (2, 8, 100):
        best = best_for("frequency", epsilon, k)
        assert best.randomizer != "she"
        assert dict(best.others)["she"] > 1.1 * best.variance


# --- keys with numbers -----------------------------------------------------------------------------------------------------------------------------------

KEYS = [PCKVUE(1.0, k=1, limit=1, steps=1), PCKVUE(2.0, k=3, limit=2, steps=3), PCKVUE(4.0, k=4, limit=1)]


def truth(randomizer: PCKVUE, value: int) -> Floats:
    """What a client with this record adds to each share and each sum."""
    digits = digits_of(np.array([value]), randomizer.k, randomizer.steps)[0]
    weight = min(1.0, randomizer.limit / max(1, int((digits > 0).sum())))
    held: Floats = (digits > 0) * weight
    return np.concatenate([held, held * (2 * (digits - 1) / randomizer.steps - 1)])


@pytest.mark.parametrize("randomizer", KEYS, ids=lambda each: f"{each.k} {each.limit} {each.steps}")
def test_keys_and_numbers_are_unbiased_with_their_variances(randomizer: PCKVUE) -> None:
    """Made-up clients with one record: every estimate within 6 of its errors, variances of the closed form within 3 %, of records within the limit and over."""
    n = 400_000
    for value in (1, randomizer.domain.high // 2, randomizer.domain.high):
        found, wanted = simulated(randomizer, value, n), truth(randomizer, value)
        assert (abs(found.value - wanted) < 6 * found.standard_error + 1e-9).all(), "biased"
        pairs = [pckv_ue_variances(randomizer.epsilon, randomizer.limit, *wanted[[key, key + randomizer.k]]) for key in range(randomizer.k)]
        closed = np.array(pairs).T.ravel()
        assert (abs(found.standard_error**2 * n / closed - 1) < 0.03).all(), "variance"


def test_codes_draw_members_evenly() -> None:
    """Over coins each member of a padded set is drawn as often as any, and signs follow the number: within 5 standard errors."""
    randomizer, n = PCKVUE(1.0, k=4, limit=3, steps=4), 100_000
    record = 5 * 1 + 6 * 4  # key 0 at 1, key 1 at 1/2; one dummy
    codes = randomizer.encode(np.full(n, record), public_coins(stream_key("coins", 3, 1), 0, n))
    shares = np.bincount(codes, minlength=9) / n
    assert (abs(shares - [1 / 3, 1 / 3, 1 / 4, 0, 0, 0, 1 / 12, 0, 0]) < 5 * math.sqrt(0.25 / n)).all()
    assert shares[[3, 4, 5, 7, 8]].max() == 0


def test_means_of_numbers() -> None:
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
    """Places at twice the epsilon, and a sampler beside the channel, are refused."""
    for twin, match in ((TooSure(1.0), "claims"), (OwnSampler(1.0), "sampler of its own")):
        with pytest.raises(RefusedError, match=match):
            check_loss(twin)


def test_bad_parameters_are_refused() -> None:
    """Sizes out of range, words too narrow; reports that nobody can have sent; estimates from nobody."""
    for wrong in ({"k": 12}, {"k": 2, "limit": 3}, {"limit": 0}, {"steps": 0}, {"word_bits": 2}):
        with pytest.raises(InputError):
            PCKVUE(0.5, **wrong)
    for wrong in ({"k": 1}, {"k": 4097}, {"word_bits": 4}):
        with pytest.raises(InputError):
            SHE(0.5, **wrong)
    with pytest.raises(InputError):
        SHE(1e-7)
    assert PCKVUE(1.0).possible(np.array([[0, 2], [3, 0]], dtype=np.uint8)).tolist() == [True, False]
    with pytest.raises(InputError, match="nobody answered"):
        PCKVUE(1.0).means(Tally(np.zeros((2, 3), dtype=np.int64), 0))
