"""Padding and sampling, with and without numbers: losses, laws of every set, unbiased estimates and closed-form variances."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from local_dp.arrays import Floats, Ints
from local_dp.conformance import conform
from local_dp.errors import RefusedError
from local_dp.loss import exp_epsilon, nano_epsilon
from local_dp.randomizers.evidence import exact_ratio
from local_dp.randomizers.sets.padding_sampling import Padded, PaddingSampling
from local_dp.randomizers.sets.pckv import PCKV
from local_dp.tallies import Estimate, Tally

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
    """A member that is told is likelier than another symbol by L (e^eps - 1) + 1, were it told for sure: more than e^eps, and the loss is epsilon still."""
    randomizer = PaddingSampling(epsilon, k=6, limit=3)
    base, gain = randomizer.odds
    assert (base + 3 * gain) / base == pytest.approx(3 * math.expm1(epsilon) + 1, rel=1e-9)
    ratio = exact_ratio(randomizer)
    assert ratio <= exp_epsilon(nano_epsilon(epsilon))
    assert math.log(ratio) == pytest.approx(epsilon, abs=1e-9)


@dataclass(frozen=True, kw_only=True)
class Unpadded(PaddingSampling):
    """Draws from the set alone: a single item is told too often."""

    def spread(self, gains: Ints) -> Ints:
        single = (gains > 0).sum(axis=1, keepdims=True) == 1
        return np.where(single, gains * np.uint64(2), gains)


def test_a_twin_without_dummies_shows() -> None:
    """Without dummies a set of one tells its item L times as often: the rows are no laws, or the loss is beyond epsilon."""
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
