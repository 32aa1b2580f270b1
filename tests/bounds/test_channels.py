"""What one report can carry: the closed forms stand above every channel that a linear program or a random draw finds."""

import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from local_dp.arrays import Floats
from local_dp.bounds.channels import (
    affinity_curvature,
    asked_again_bound,
    best_channel,
    best_two_laws,
    distance_needed,
    easiest_laws,
    parity_asked_again_bound,
    pasting_constant,
    report_squares,
    staircase_columns,
    two_laws_asked_again_bound,
    two_laws_clients,
    two_laws_in_turn_bound,
)
from local_dp.bounds.parity import parity_halving_clients, parity_interactive_bound
from local_dp.bounds.response import response_gain
from local_dp.errors import InputError


def squares(columns: Floats) -> Floats:
    """sum_x B^2 / A of each report; the first half of the symbols bears the label +1, the other -1."""
    plus, minus = np.split(columns, 2, axis=-1)
    found: Floats = (((plus - minus) / 2) ** 2).mean(axis=-1) / columns.mean(axis=-1)
    return found


def hellinger(columns: Floats, first: Floats, second: Floats) -> Floats:
    """Half the squared difference of the square roots of a report's two probabilities."""
    found: Floats = (np.sqrt(columns @ first) - np.sqrt(columns @ second)) ** 2 / 2
    return found


@pytest.mark.parametrize("epsilon", [0.5, 1.0, math.log(3), 2.0, 3.0])
def test_report_squares_are_the_most_of_all_channels(epsilon: float) -> None:
    """No channel on two, four or eight examples has more than G; on eight the best reaches it up to ln 3, and comes within 4 % at epsilon 2."""
    found = [best_channel(epsilon, symbols, squares).value for symbols in (2, 4, 8)]
    assert max(found) <= report_squares(epsilon) * (1 + 1e-9)
    least = {2.0: 0.96, 3.0: 0.8}.get(epsilon, 1 - 1e-9)
    assert found[-1] >= least * report_squares(epsilon)


def test_two_symbols_are_asked_by_randomized_response() -> None:
    """The best channel for two disjoint laws is randomized response, whose affinity is 2 sqrt(E) / (E + 1)."""
    found = best_channel(1.0, 2, partial(hellinger, first=np.array([1.0, 0.0]), second=np.array([0.0, 1.0])))
    assert found.value == pytest.approx(1 - 2 * math.exp(0.5) / (math.e + 1))
    assert found.columns.sum(axis=0) == pytest.approx(np.ones(2))


def test_a_best_channel_is_a_channel() -> None:
    """Its columns add up to one for each symbol and differ by the factor E at most."""
    found = best_channel(2.0, 6, squares).columns
    assert found.sum(axis=0) == pytest.approx(np.ones(6))
    assert (found.max(axis=1) <= math.exp(2) * found.min(axis=1) * (1 + 1e-12)).all()


def test_random_channels_are_below_the_best_one() -> None:
    """The value of the linear program stands above 300 channels that were drawn, none of them made of corners."""
    generator, best = np.random.default_rng(5), best_channel(1.0, 4, squares).value
    for reports in generator.integers(2, 9, size=300):
        laws = generator.dirichlet(np.full(reports, 0.3), size=4)
        told = (math.e - 1) / (math.e - 1 + reports)  # the share of the law that keeps the ratio below E beside a uniform report
        columns = told * laws.T + (1 - told) / reports
        assert (columns.max(axis=1) <= math.e * columns.min(axis=1)).all()
        assert squares(columns).sum() <= best + 1e-12


def test_parameters_are_checked() -> None:
    """No epsilon of zero, no channel of seventeen symbols."""
    with pytest.raises(InputError, match="epsilon"):
        report_squares(0.0)
    with pytest.raises(InputError, match="number of symbols is 17"):
        staircase_columns(1.0, 17)
    assert report_squares(1.0) == pytest.approx(response_gain(1.0) ** -2)


def test_the_constant_is_a_product_over_doublings() -> None:
    """K_n = 1, 2, 8/3, 64/21 for 1, 2, 4, 8 clients, the next power of two's between them, and 3.4627 without end."""
    exact = [math.prod((Fraction(2**level, 2**level - 1) for level in range(1, doublings + 1)), start=Fraction(1)) for doublings in range(4)]
    assert exact == [1, 2, Fraction(8, 3), Fraction(64, 21)]
    assert [pasting_constant(n) for n in (1, 2, 4, 8)] == pytest.approx([float(value) for value in exact])
    assert pasting_constant(5) == pasting_constant(8)
    assert pasting_constant(10**9) < pasting_constant() == pytest.approx(3.46274661945506)
    with pytest.raises(InputError, match="0 clients"):
        pasting_constant(0)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_curvature_is_the_largest(epsilon: float) -> None:
    """(1 + t/2 - sqrt(1 + t)) / t^2 is nowhere larger for |t| <= 1/C, and as large at t = -1/C."""
    shrink = 1 / response_gain(epsilon)
    t = np.linspace(-shrink, shrink, 1000)
    values = (1 + t / 2 - np.sqrt(1 + t)) / t**2
    assert values.max() <= affinity_curvature(epsilon) * (1 + 1e-9)
    assert values[0] == pytest.approx(affinity_curvature(epsilon))


def test_total_variation_needs_so_much_distance() -> None:
    """No pair of laws drawn at random has less squared Hellinger distance than its total variation needs; the symmetric pair of two symbols has no more."""
    generator = np.random.default_rng(2)
    for first, second in generator.dirichlet(np.full(4, 0.5), size=(500, 2)):
        assert 1 - np.sqrt(first * second).sum() >= distance_needed(float(abs(first - second).sum() / 2)) - 1e-12
    assert 1 - 2 * math.sqrt(0.9 * 0.1) == pytest.approx(distance_needed(0.8))
    assert distance_needed(1.0) == 1.0
    with pytest.raises(InputError, match="total variation"):
        distance_needed(1.1)


@pytest.mark.parametrize(("epsilon", "units"), [(0.5, 1.138), (1.0, 0.979), (2.0, 0.524)])
def test_parity_whatever_is_asked(epsilon: float, units: float) -> None:
    """n >= units C^2 2^d at 90 %, below the bound for protocols that ask nobody twice and below halving."""
    again = parity_asked_again_bound(30, epsilon, 0.9)
    assert again / response_gain(epsilon) ** 2 / 2**30 == pytest.approx(units, abs=0.0005)
    assert again < parity_interactive_bound(30, epsilon, 0.9)
    assert parity_asked_again_bound(6, epsilon, 0.9) < parity_halving_clients(6, epsilon, 0.1)


def test_what_is_no_success_takes_nobody() -> None:
    """0 clients where a guess does as well; an impossible dimension is refused."""
    assert asked_again_bound(64, 1.0, 0.2, 0.5) == 0
    with pytest.raises(InputError, match="dimension"):
        asked_again_bound(0, 1.0, 0.9, 0.1)


@pytest.mark.parametrize(("epsilon", "turn", "again", "carried"), [(0.5, 0.972, 0.220, 1.051), (1.0, 0.755, 0.171, 1.351), (2.0, 0.353, 0.080, 2.879)])
def test_two_laws(epsilon: float, turn: float, again: float, carried: float) -> None:
    """The bounds in units of C^2 / t^2, below yes-or-no's 1.64, and what the best report carries beside it."""
    unit = response_gain(epsilon) ** 2 * 100
    assert two_laws_in_turn_bound(epsilon, 0.1, 0.9) / unit == pytest.approx(turn, abs=0.0005)
    assert two_laws_asked_again_bound(epsilon, 0.1, 0.9) / unit == pytest.approx(again, abs=0.0005)
    assert two_laws_clients(epsilon, 0.1, 0.1) / unit == pytest.approx(1.645, abs=0.003)
    yes = 1 - math.sqrt(1 - (0.1 / response_gain(epsilon)) ** 2)
    assert best_two_laws(epsilon, 0.1).value / yes == pytest.approx(carried, abs=0.0005)


def test_no_pair_of_laws_is_easier() -> None:
    """Random pairs of laws at a total variation of .3 are no easier, for any channel, than the best pair on three symbols."""
    generator, best = np.random.default_rng(3), best_two_laws(1.0, 0.3).value
    for _ in range(300):
        shared, first, second = generator.dirichlet(np.full(4, 0.4), size=3)
        told = (math.e - 1) / (math.e + 4)  # the share of any channel of five reports that keeps the ratio at E beside a uniform report
        channel = told * generator.dirichlet(np.full(5, 0.1), size=4).T + (1 - told) / 5
        assert (channel.max(axis=1) <= math.e * channel.min(axis=1) * (1 + 1e-12)).all()
        reports = [channel @ (0.7 * shared + 0.3 * own) for own in (first, second)]
        assert 1 - np.sqrt(reports[0] * reports[1]).sum() <= best + 1e-12
    first, second = easiest_laws(0.3)
    assert abs(first - second).sum() / 2 == pytest.approx(0.3)
    with pytest.raises(InputError, match="total variation"):
        easiest_laws(1.0)
