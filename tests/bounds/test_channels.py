"""What one report can carry: the closed forms stand above every channel that a linear program or a random draw finds."""

import math
from functools import partial

import numpy as np
import pytest

from local_dp.arrays import Floats
from local_dp.bounds.channels import best_channel, report_squares, staircase_columns
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
    with pytest.raises(InputError, match="17 symbols"):
        staircase_columns(1.0, 17)
    assert report_squares(1.0) == pytest.approx(response_gain(1.0) ** -2)
