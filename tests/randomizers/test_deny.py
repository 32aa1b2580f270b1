"""Deny: its channel in fractions, its sampler word by word, its law over examples, and the information of a report."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from local_dp.bounds.parity import deny_information, parity_information
from local_dp.conformance import conform
from local_dp.noise import KeyedNoise
from local_dp.oracles.local.aggregate import AggregateOracle
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.oracles.local.population import PopulationOracle
from local_dp.populations.parity import ParityPopulation
from local_dp.queries.examples import ParityExample
from local_dp.randomizers.evidence import exact_epsilon, exact_ratio
from local_dp.randomizers.one_bit import flip_weight
from local_dp.randomizers.signs.characters import Deny

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
    """The information of the enumerated channel is the formula's."""
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
