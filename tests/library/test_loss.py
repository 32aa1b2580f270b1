"""Losses as data: whole numbers, rounded towards privacy."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_dp.errors import InputError
from local_dp.loss import Approximate, Concentrated, Pure, exp_epsilon, nano_of_ratio


@given(st.integers(1, 24 * 10**9))
def test_a_computed_loss_is_the_least_that_covers_its_ratio(nano: int) -> None:
    """e^epsilon itself costs epsilon and no more; anything above costs a nano-nat more."""
    assert nano_of_ratio(exp_epsilon(nano)) == nano
    assert nano_of_ratio(exp_epsilon(nano) * (1 + Fraction(1, 10**30))) == nano + 1


def test_e_to_a_part_of_a_nano() -> None:
    """The exponential of a fraction of nano-nats lies just below e^epsilon, and its powers below the exponential of the whole."""
    third = exp_epsilon(Fraction(10**9, 3))
    assert float(third) == pytest.approx(math.exp(1 / 3), rel=1e-15)
    assert exp_epsilon(10**9) * (1 - Fraction(1, 10**40)) < third**3 < exp_epsilon(10**9)


def test_losses_add_up_and_are_never_negative() -> None:
    """Epsilons and deltas add; a loss below 0, which would be a refund, and one that is no whole number are refused."""
    assert Pure(2) + Pure(3) == Pure(5)
    assert Pure(2) + Approximate(3, 4) == Approximate(3, 4) + Pure(2) == Approximate(5, 4)
    assert str(Pure(5 * 10**8)) == "epsilon 0.5"
    assert str(Approximate(10**9, 10**12)) == "epsilon 1 and delta 1e-06"
    for build in (lambda: Pure(-1), lambda: Pure(True), lambda: Approximate(1, -1)):
        with pytest.raises(InputError, match="0 or more"):
            build()


def test_concentrated_losses_add_up() -> None:
    """Rhos add; a pure loss e adds e^2 / 2, rounded up to 1e-18, from either side; an approximate one adds to none."""
    assert Concentrated(2) + Concentrated(3) == Concentrated(5)
    assert Concentrated(1) + Pure(3) == Pure(3) + Concentrated(1) == Concentrated(6)
    assert str(Concentrated(5 * 10**17)) == "rho 0.5"
    with pytest.raises(TypeError):
        Concentrated(1) + Approximate(1, 1)  # type: ignore[operator]
    with pytest.raises(InputError, match="0 or more"):
        Concentrated(-1)
