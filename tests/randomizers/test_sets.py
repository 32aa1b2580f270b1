"""Padding and sampling, with and without numbers: losses, laws of every set, unbiased estimates and closed-form variances."""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from local_dp.arrays import Floats, Ints
from local_dp.conformance import conform
from local_dp.errors import InputError, RefusedError
from local_dp.loss import exp_epsilon, nano_epsilon
from local_dp.randomizers.evidence import exact_ratio
from local_dp.randomizers.sets.base import Padded
from local_dp.randomizers.sets.padding_sampling import PaddingSampling
from local_dp.randomizers.sets.pckv import PCKV
from local_dp.tallies import Estimate, Tally
from tests.support.theory.closed_forms import FORMS
from tests.support.theory.variances import clients_for, simulated

EPSILONS = [0.1, 0.5, 1.0, 4.0]
SETS: list[Padded] = [PaddingSampling(1.0, k=k, limit=limit) for k, limit in ((1, 1), (3, 1), (4, 2), (4, 4))]
KEYS: list[Padded] = [PCKV(1.0, k=k, limit=limit, steps=steps) for k, limit, steps in ((1, 1, 1), (2, 1, 3), (3, 2, 2), (3, 3, 4))]


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("make", SETS + KEYS, ids=lambda each: f"{each.name} {each.k} {each.limit}")
def test_they_conform(make: Padded, epsilon: float) -> None:
    """At every size they lose epsilon exactly and are sampled as declared."""
    conform(replace(make, epsilon=epsilon), symbols=False, exhaustive=epsilon >= 0.5)


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


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_sampling_amplifies(epsilon: float) -> None:
    """A member that is told is likelier than another symbol by L (e^eps - 1) + 1, were it told for sure: more than e^eps, and the loss is epsilon still."""
    randomizer = PaddingSampling(epsilon, k=6, limit=3)
    base, gain = randomizer.odds
    assert (base + 3 * gain) / base == pytest.approx(3 * math.expm1(epsilon) + 1, rel=1e-9)
    ratio = exact_ratio(randomizer)
    assert ratio <= exp_epsilon(nano_epsilon(epsilon))
    assert math.log(ratio) == pytest.approx(epsilon, abs=1e-9)


def closed_forms(randomizer: Padded, value: int) -> Floats:
    """n times the variance of every estimate, where all clients hold this value."""
    return FORMS[randomizer.name](randomizer, np.array([value]), np.ones(1))


@pytest.mark.parametrize("randomizer", SETS + KEYS, ids=lambda each: f"{each.name} {each.k} {each.limit}")
def test_the_standard_error_is_the_closed_form(randomizer: Padded) -> None:
    """n standard_error^2 from a tally in proportion is the closed form, for every set within the limit."""
    for value in range(randomizer.domain.size):
        if randomizer.held[value].sum() <= randomizer.limit:
            counts = np.rint(randomizer.weights[value] / randomizer.total * 2.0**52).astype(np.int64)
            found = randomizer.estimate(Tally(counts[None, :]))
            np.testing.assert_allclose(found.standard_error**2 * counts.sum(), closed_forms(randomizer, value), rtol=1e-6)


def check_variance(randomizer: Padded, value: int) -> None:
    """Of clients who all hold this value every estimate is within 6 standard errors, and its measured variance within 3 % of the closed form."""
    closed, law = closed_forms(randomizer, value), randomizer.weights[value].astype(np.float64) / randomizer.total
    place = int(closed.argmax())
    stands = np.array([np.atleast_1d(randomizer.estimate(Tally(one[None, :])).value)[place] for one in np.eye(randomizer.alphabet, dtype=np.int64)])
    n = clients_for(stands - law @ stands, law)
    found = simulated(randomizer, value, n)
    assert (abs(found.value - truth(randomizer, value)) < 6 * np.sqrt(closed / n)).all(), "biased"
    assert abs(found.standard_error[place] ** 2 * n / closed[place] - 1) < 0.03, "variance"


@pytest.mark.parametrize("randomizer", [PaddingSampling(1.0, k=4, limit=2), PCKV(1.0, k=3, limit=2, steps=3)], ids=lambda each: each.name)
def test_reports_have_the_closed_form_variance(randomizer: Padded) -> None:
    """Simulated clients with two items have the variance of the closed form within 3 %, where it is largest."""
    value = 3 if isinstance(randomizer, PaddingSampling) else 4 + 5 * 4
    check_variance(randomizer, value)


@dataclass(frozen=True, kw_only=True)
class Unpadded(PaddingSampling):
    """Draws from the set alone: a single item is told too often."""

    def spread(self, gains: Ints) -> Ints:
        single = (gains > 0).sum(axis=1, keepdims=True) == 1
        return np.where(single, gains * np.uint64(2), gains)


def test_a_twin_without_dummies_shows() -> None:
    """Without dummies a set of one tells its item L times as often: the rows are no laws, or the loss is beyond epsilon."""
    with pytest.raises((AssertionError, RefusedError), match=r"sum|claims|above"):
        conform(Unpadded(1.0, k=3), symbols=False)


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


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (PaddingSampling, {"k": 13}),
        (PaddingSampling, {"k": 0}),
        (PaddingSampling, {"k": 3, "limit": 4}),
        (PaddingSampling, {"limit": 0}),
        (PCKV, {"k": 7, "steps": 4}),
        (PCKV, {"steps": 0}),
        (PCKV, {"limit": 3}),
        (PCKV, {"word_bits": 3}),
    ],
)
def test_bad_parameters_are_refused(kind: Any, wrong: dict[str, int]) -> None:
    """Too many items, limits beyond them, tables too large and words too narrow are refused in one line."""
    with pytest.raises(InputError):
        kind(0.5, **wrong)
