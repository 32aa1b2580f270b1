"""The bound for protocols that ask nobody twice: its constants, and that no channel tells parities from random labels by more than its proof allows."""

import math

import numpy as np
import pytest

from local_dp.arrays import Floats
from local_dp.bounds.channels import asked_again_bound, best_channel, report_squares
from local_dp.bounds.parity import asked_in_turn_bound, divergence_curvature, parity_interactive_bound
from local_dp.bounds.response import response_gain
from local_dp.cube import parity
from local_dp.errors import InputError


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_curvature_is_the_largest(epsilon: float) -> None:
    """(t - ln(1 + t)) / t^2 falls in t, so it is the largest at -1/C."""
    t = np.linspace(-1, 1, 1000) / response_gain(epsilon)
    values = (t - np.log1p(t)) / t**2
    assert (np.diff(values) < 1e-9).all()
    assert values[0] == pytest.approx(divergence_curvature(epsilon))


def best_divergence(d: int, epsilon: float) -> float:
    """The most that KL(M, M_r) can be on average over r for one report, M its law under random labels and M_r under the parity r: over ALL channels."""
    x = np.arange(1 << d)
    held = 2 * x + parity((x & x[:, None]).astype(np.uint64))  # row r: the examples of the parity r

    def divergence(columns: Floats) -> Floats:
        mean = columns.mean(axis=1, keepdims=True)
        found: Floats = (mean * np.log(mean / columns[:, held].mean(axis=2))).mean(axis=1)
        return found

    return best_channel(epsilon, 2 << d, divergence).value


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_no_channel_tells_more_than_the_proof_allows(epsilon: float) -> None:
    """The best of all channels has less than c G 2^-d. With c at +1/C it would have more, and at epsilon 3 with G = 1/C^2 too."""
    shrink = 1 / response_gain(epsilon)
    for d in (1, 2, 3):
        best = best_divergence(d, epsilon) * 2**d
        assert shrink - math.log1p(shrink) < best < divergence_curvature(epsilon) * report_squares(epsilon)
    assert (best > divergence_curvature(epsilon) * shrink**2) is (epsilon == 3.0)


def test_it_is_the_bound_for_parity_at_every_epsilon() -> None:
    """Parities have dimension 2^d and a guess of 2^-d: 1.041 C^2 2^d clients at epsilon 2 and 90 %. The bound for all protocols is never larger."""
    for epsilon in (0.1, 1.0, math.log(3), 2.0, 5.0):
        turn = asked_in_turn_bound(64, epsilon, 0.9, 1 / 64)
        assert parity_interactive_bound(6, epsilon, 0.9) == turn > asked_again_bound(64, epsilon, 0.9, 1 / 64)
    assert asked_in_turn_bound(64, 10.0, 0.9, 1 / 64) == asked_again_bound(64, 10.0, 0.9, 1 / 64)
    assert parity_interactive_bound(40, 2.0, 0.9) / response_gain(2.0) ** 2 / 2**40 == pytest.approx(1.041, abs=0.0005)


def test_what_is_no_success_takes_nobody_and_certainty_is_never_reached() -> None:
    """0 clients where a guess does as well, infinitely many where success is certain; an impossible dimension is refused."""
    assert asked_in_turn_bound(64, 1.0, 0.2, 0.5) == 0
    assert asked_in_turn_bound(64, 1.0, 1.0, 0.0) == math.inf
    for dimension, epsilon, success, word in ((0, 1.0, 0.9, "dimension"), (64, 1.0, 1.1, "success"), (64, 0.0, 0.9, "epsilon")):
        with pytest.raises(InputError, match=word):
            asked_in_turn_bound(dimension, epsilon, success, 0.1)
