"""Deny, and a coin sent along: channels in fractions, laws over examples, and a coin that is independent of the value."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
from scipy.stats import chi2

from local_dp.arrays import Ints, Words
from local_dp.bounds.parity import deny_information, parity_information
from local_dp.conformance import conform
from local_dp.errors import InputError, RefusedError
from local_dp.noise import Draw, KeyedNoise
from local_dp.oracles.local.aggregate import AggregateOracle
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.oracles.local.population import PopulationOracle
from local_dp.populations.parity import ParityPopulation
from local_dp.queries.examples import ParityExample
from local_dp.randomizers.evidence import exact_epsilon, exact_ratio
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.frequencies.local_hashing import OLH
from local_dp.randomizers.frequencies.subset_selection import SubsetSelection
from local_dp.randomizers.one_bit import flip_weight
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.repeated.memoised import LOLOHA
from local_dp.randomizers.signs.deny import Deny
from local_dp.randomizers.signs.sign_rows import SignRows
from local_dp.randomizers.vectors.privunit import ProjUnit
from local_dp.randomizers.with_coin import WithCoin, without_coin
from local_dp.shuffle.accountant import amplified
from local_dp.verification.gate import verify
from local_dp.verification.sampler import check_own_coin
from tests.support.inputs.randomizers import with_coins
from tests.support.long import short

NO_COIN = np.zeros(1, dtype=np.uint8)
FINITE = [Hadamard(1.0, k=5, word_bits=8), OLH(1.0, k=8, word_bits=10), SubsetSelection(1.0, k=8, word_bits=12)]


@pytest.mark.parametrize("epsilon", short([0.1, 1.0, 4.0], lambda epsilon: epsilon == 1.0))
def test_coins_sent_along_conform(epsilon: float) -> None:
    """Of every kind of randomizer with a public coin: exactly as private, the same estimate, and a coin that is the words' alone."""
    for randomizer in with_coins(epsilon):
        conform(randomizer)


@pytest.mark.parametrize("coined", FINITE, ids=lambda each: each.name)
def test_the_channel_of_coin_and_report_is_exact(coined: FiniteChannel) -> None:
    """Under 4,096 draws of a coin, over all words, each value sends each report exactly as often as declared for that coin. The worst ratio
    is that of the inner randomizer."""
    randomizer, words = WithCoin.of(coined), np.arange(coined.total, dtype=np.uint32)
    assert exact_ratio(randomizer) == exact_ratio(coined)
    drawn = np.random.default_rng(3).integers(0, coined.total, (4096 >> (coined.word_bits - 6), randomizer.words - 1), dtype=np.uint32)
    both = np.concatenate([np.repeat(drawn, len(words), axis=0), np.tile(words, len(drawn))[:, None]], axis=1)
    for value in coined.domain.values().tolist():
        coins, told = randomizer.parts(randomizer.respond(np.full(len(both), value), both, NO_COIN))
        own = randomizer.coins(drawn)
        assert (coins.reshape(len(drawn), -1) == own[:, None]).all(), "the coin follows the report's words or the value"
        weights = coined.weight(np.arange(coined.alphabet)[None, :], np.array([[value]]), own[:, None].astype(np.int64))
        for seen, declared in zip(told.reshape(len(drawn), -1), weights, strict=True):
            assert (np.bincount(seen, minlength=coined.alphabet) == declared).all()


@pytest.mark.parametrize("make", [lambda: Hadamard(1.0, k=8), lambda: SubsetSelection(1.0, k=8), lambda: OLH(1.0, k=8)])
def test_every_coin_is_as_likely(make: Callable[[], FiniteChannel]) -> None:
    """Of 200,000 clients each cell is as likely up to 6 standard errors, below 1e-8 each, and of both halves of the clients, who hold different values."""
    randomizer, n = WithCoin.of(make()), 200_000
    words = randomizer.draw(KeyedNoise(4), Draw(1), 0, n)
    coins, _ = randomizer.parts(randomizer.respond(np.arange(n) % 2, words, NO_COIN))
    cells = make().cells
    for held in (coins[::2], coins[1::2]):
        seen = np.bincount(held, minlength=cells)
        assert len(seen) == cells
        assert abs(seen - len(held) / cells).max() <= 6 * np.sqrt(len(held) / cells)


def test_tally_and_estimate_are_those_of_a_public_coin() -> None:
    """The same coins, sent along or known beforehand, make the same tally, bit for bit."""
    for coined in (Hadamard(1.0, k=8), SubsetSelection(1.0, k=8)):
        randomizer, n = WithCoin.of(coined), 5000
        reports = randomizer.respond(np.arange(n) % 8, randomizer.draw(KeyedNoise(2), Draw(1), 0, n), NO_COIN)
        coins, told = randomizer.parts(reports)
        tally = randomizer.tally(reports, NO_COIN)
        assert (tally.counts == coined.tally(told, coins).counts).all()
        assert (randomizer.estimate(tally).value == coined.estimate(tally).value).all()
        assert randomizer.empty().counts.shape == coined.empty().counts.shape


def test_the_accountant_knows_it() -> None:
    """Coin and report shuffled together lose what the accountant has said of the other randomizer all along."""
    assert amplified(WithCoin.of(Hadamard(1.0, k=8)), 1000, 1e-6) == amplified(Hadamard(1.0, k=8), 1000, 1e-6)


@dataclass(frozen=True, kw_only=True)
class Telling(WithCoin):
    """A wrong twin: the lowest bit of its coin is the value's."""

    name: ClassVar[str] = "with-coin"

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        words = words.copy()
        words[:, 0] = (words[:, 0] & ~words.dtype.type(1)) | (values.astype(words.dtype) & words.dtype.type(1))
        return super().respond(values, words, cells)


def test_a_coin_that_tells_the_value_is_found() -> None:
    """By the suite and by the audit; and no class derived from this one has evidence, so that the gate lets none pass."""
    telling = Telling(1.0, inner="hadamard", setting=("k=8",))
    assert not check_own_coin(telling, 7).holds
    assert without_coin(telling) is telling
    with pytest.raises(RefusedError, match="nothing to enumerate"):
        verify(telling)


@pytest.mark.parametrize(
    ("coined", "why"),
    [(GRR(1.0, k=4), "no public coin"), (LOLOHA(1.0, k=4), "cannot be sent along"), (ProjUnit(1.0, d=4), "cannot be sent|no public coin")],
    ids=lambda each: getattr(each, "name", None),
)
def test_what_has_no_coin_to_send(coined: Randomizer, why: str) -> None:
    with pytest.raises(InputError, match=why):
        WithCoin.of(coined)


def test_parameters_of_any_kind_are_told() -> None:
    rows = SignRows(1.0, k=6, signs=("2a", "15", "33", "07"))
    assert WithCoin.of(rows).coined == rows
    with pytest.raises(InputError, match="give name=value"):
        WithCoin(1.0, setting=("k",))
    with pytest.raises(RefusedError, match="no randomizer named"):
        WithCoin(1.0, inner="hadamar")


def test_an_impossible_coin_is_refused() -> None:
    randomizer = WithCoin(1.0)
    reports = randomizer.respond(np.zeros(3, dtype=np.int64), randomizer.draw(KeyedNoise(1), Draw(1), 0, 3), NO_COIN)
    parts = reports.copy()
    parts["coin"][1] = 8  # type: ignore[call-overload]
    assert randomizer.possible(parts).tolist() == [True, False, True]


TAIL = 1e-6  # the probability that a statistical test of this file fails by chance


@pytest.mark.parametrize("d", [1, 2, 5, 8, 12])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, math.log(3), 4.0, 20.0])
def test_its_ratio_is_the_one_of_its_thresholds(d: int, epsilon: float) -> None:
    """Over all examples and names, in fractions, the worst ratio is T / F, at most E and within 1e-6 of it in the exponent."""
    randomizer = Deny(epsilon, d=d)
    assert exact_ratio(randomizer) == Fraction(randomizer.whole - randomizer.flip, randomizer.flip)
    assert randomizer.flip == flip_weight(randomizer.nano, randomizer.word_bits - d)
    assert -1e-6 < exact_epsilon(randomizer) - epsilon <= 0


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_channel_is_the_one_that_is_claimed(d: int) -> None:
    """Every name that the example rules out has weight 2 T, every other one 2 F, and all have the same where x = 0, counted bit by bit."""
    randomizer = Deny(1.0, d=d, word_bits=12)
    for value in range(2 << d):
        x, y = value >> 1, 1 - 2 * (value & 1)
        for w in range(1 << d):
            ruled_out = y * (-1) ** (w & x).bit_count() == -1
            wanted = randomizer.whole if x == 0 else 2 * (randomizer.whole - randomizer.flip if ruled_out else randomizer.flip)
            assert randomizer.channel()[value, w] == wanted


@pytest.mark.parametrize("randomizer", [Deny(1.0), Deny(0.3, d=4), Deny(5.0, d=6)], ids=repr)
def test_it_conforms(randomizer: Deny) -> None:
    """The suite for randomizers, by every narrow word; the estimate is of parities."""
    conform(randomizer)


@pytest.mark.parametrize("r", [0, 3, 7])
def test_its_law_over_examples(r: int) -> None:
    """The closed law of a name equals the sum over all examples of the channel; the hidden parity is named least."""
    randomizer, population = Deny(1.0, d=3), ParityPopulation(3, r, 1, 0)
    summed = population.law(ParityExample(3)) @ (randomizer.channel() / float(randomizer.total))
    assert randomizer.law(r) == pytest.approx(summed, abs=1e-15)
    assert population.tally_law(ParityExample(3), randomizer) == pytest.approx(summed[None, :], abs=1e-15)
    assert int(np.argmin(randomizer.law(r))) == r


def test_one_report_tells_what_its_formula_says() -> None:
    for d in (1, 2, 3, 5):
        randomizer = Deny(1.0, d=d)
        columns = randomizer.channel().T / float(randomizer.total)
        assert parity_information(d, columns).sum() == pytest.approx(deny_information(d, 1.0), rel=1e-6)


def test_user_level_and_aggregate_tallies_have_the_exact_law() -> None:
    """Tallies of 60,000 simulated clients and drawn ones pass a chi-square test at 1e-6 against the enumerated law; the law of another r fails it."""
    n, randomizer, population = 60_000, Deny(1.0, d=3), ParityPopulation(3, 3, 60_000, 5)
    limit = chi2.isf(TAIL, 7)
    oracles: list[PopulationOracle | AggregateOracle] = [
        PopulationOracle(population, KeyedNoise(1), 2, 1.0),
        AggregateOracle(population, np.random.default_rng(3), 1.0),
    ]
    for oracle in oracles:
        (tally,) = oracle.answer((LocalQuery(ParityExample(3), randomizer, Cohort(0, n)),))
        for r, right in ((3, True), (5, False)):
            expected = n * randomizer.law(r)
            assert (((tally.counts[0] - expected) ** 2 / expected).sum() < limit) == right
        estimate = randomizer.estimate(tally)
        wanted = (np.arange(8) == 3) - 1 / 8  # x = 0, one example in eight, counts as nothing
        assert np.all(np.abs(estimate.value - wanted) < 4.9 * estimate.standard_error)
