"""The enumerator of programs that draw: laws known by hand, to the last bit of a double, and what it does not enumerate is refused."""

# ruff: noqa: NPY002  # the generators that peers draw from are what is enumerated

import math
import random
from collections.abc import Hashable
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from local_dp.experiments.peers.privacy import exact_epsilon, law

HALF = Fraction(1, 2)


def _response(value: int, p: float) -> int:
    return value if random.random() < p else 1 - value


def test_a_threshold_is_met_to_the_last_bit() -> None:
    """A double is below a threshold for as many multiples of 2^-53 as there are below it; `<=` counts the threshold too; 1.0 is always above."""
    third = 1 / 3
    below = Fraction(math.ceil(Fraction(third) * 2**53), 2**53)
    assert law(lambda: random.random() < third) == {True: below, False: 1 - below}
    assert law(lambda: random.random() < 0.5) == {True: HALF, False: HALF}
    assert law(lambda: random.random() <= 0.5)[True] == HALF + Fraction(1, 2**53)
    assert law(lambda: random.random() > 0.5)[True] == HALF - Fraction(1, 2**53)
    assert law(lambda: np.random.random() < 1.0) == {True: Fraction(1)}


def test_whole_numbers_permutations_and_vectors() -> None:
    """Bounds of the two generators, orders without putting back, independent entries, and a path that depends on an earlier one."""
    assert law(lambda: random.randint(1, 3)) == dict.fromkeys((1, 2, 3), Fraction(1, 3))
    assert law(lambda: np.random.randint(1, 3)) == dict.fromkeys((1, 2), HALF)
    orders = law(lambda: tuple(np.random.choice(np.arange(3), size=2, replace=False).tolist()))
    assert orders == {(a, b): Fraction(1, 6) for a in range(3) for b in range(3) if a != b}
    bits = law(lambda: tuple(np.random.choice([1, 0], size=2, p=[0.25, 0.75]).tolist()))
    assert bits == {(1, 1): Fraction(1, 16), (1, 0): Fraction(3, 16), (0, 1): Fraction(3, 16), (0, 0): Fraction(9, 16)}
    assert law(lambda: random.randint(0, 1) if random.random() < 0.25 else 2) == {0: Fraction(1, 8), 1: Fraction(1, 8), 2: Fraction(3, 4)}
    assert law(lambda: np.random.binomial(1, 0.25)) == {1: Fraction(1, 4), 0: Fraction(3, 4)}


@pytest.mark.parametrize(("p", "epsilon"), [(0.75, math.log(3)), (0.5, 0.0), (1.0, math.inf), (1 / (1 + math.exp(-40)), math.inf)])
def test_randomized_response_in_doubles(p: float, epsilon: float) -> None:
    """The exact loss of a response that compares a double with p; at epsilon 40 p is 1 as a double, and nothing is private."""
    assert exact_epsilon([law(partial(_response, value, p)) for value in (0, 1)]) == pytest.approx(epsilon, abs=1e-15)


def test_a_report_that_one_value_cannot_make_is_infinite() -> None:
    """A missing report counts, not only those that all values share."""
    shared: dict[Hashable, Fraction] = {0: Fraction(1)}
    assert exact_epsilon([shared, {0: HALF, 1: HALF}]) == math.inf


def test_what_is_not_enumerated_is_refused() -> None:
    """A double compared twice has a law that this does not follow; nor are draws with putting back."""

    def twice() -> bool:
        drawn = random.random()
        return 0.2 <= drawn < 0.4

    with pytest.raises(NotImplementedError, match="twice"):
        law(twice)
    with pytest.raises(NotImplementedError, match="putting back"):
        law(lambda: tuple(np.random.choice(np.arange(3), size=2)))


def test_the_generators_are_given_back() -> None:
    """Afterwards random numbers are random again."""
    law(lambda: random.random() < 0.5)
    assert isinstance(random.random(), float)
    assert 0 <= np.random.random() < 1
