"""The private Hamming distance of two parties."""

import math
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from local_dp.curator.mechanism import hockey_stick
from local_dp.loss import exp_epsilon, nano_epsilon
from local_dp.two_party import HammingDistance
from tests.support.inputs.refusals import refuse
from tests.support.runs.scripted import seeded
from tests.support.theory.fits import p_value


def worst(protocol: HammingDistance, n: int, growth: Fraction) -> Fraction:
    bits = [np.array(each) for each in product((0, 1), repeat=n)]
    laws = {(tuple(x), tuple(y)): protocol.law(x, y) for x in bits for y in bits}
    near = [(here, there) for here in laws for there in laws if sum(a != b for a, b in zip((*here[0], *here[1]), (*there[0], *there[1]), strict=True)) == 1]
    return max(hockey_stick(laws[here], laws[there], growth) for here, there in near)


@pytest.mark.parametrize("n", [1, 2])
def test_all_that_is_said_costs_epsilon(n: int) -> None:
    """Over all inputs, for each bit of either party: exactly epsilon; a protocol of 1.2 epsilon is caught."""
    growth = exp_epsilon(nano_epsilon(0.7))
    assert worst(HammingDistance(0.7), n, growth) == 0
    assert worst(HammingDistance(0.7), n, growth * Fraction(999, 1000)) > 0
    assert worst(HammingDistance(0.84), n, growth) > 0.01


def test_the_error_is_what_it_says() -> None:
    """Mean and variance of 4,000 runs of 50 bits are those of the closed form (5 standard errors); .96 sqrt(n) at epsilon 1, beside a curator's 1.36."""
    protocol, draws, rng = HammingDistance(1.0), seeded(2), np.random.default_rng(1)
    x, y = rng.integers(0, 2, 50), rng.integers(0, 2, 50)
    errors = np.array([protocol.run(x, y, draws) for _ in range(4000)]) - np.sum(x != y)
    stated = protocol.deviation(50)
    assert abs(errors.mean()) < 5 * stated / math.sqrt(4000)
    assert np.mean(errors**2) == pytest.approx(stated**2, rel=5 * math.sqrt(2 / 4000))
    assert protocol.deviation(10**6) / 1000 == pytest.approx(0.9595, abs=1e-4)
    assert protocol.curator_deviation() == pytest.approx(1.357, abs=1e-3)


def test_runs_have_their_law() -> None:
    """2,000 runs of two bits each fit the law of message and count (chi-squared, failure 1e-6); not that of other bits."""
    protocol, draws, x, y = HammingDistance(1.0), seeded(3), np.array([1, 0]), np.array([1, 1])
    messages = [protocol.send(x, draws) for _ in range(2000)]
    drawn = Counter((tuple(message.tolist()), min(2, max(0, protocol.count(message, y, draws)))) for message in messages)
    assert p_value(drawn, protocol.law(x, y)) > 1e-6 > p_value(drawn, protocol.law(np.array([0, 0]), y))


def test_bad_input() -> None:
    protocol, bits = HammingDistance(1.0), np.zeros(13, dtype=np.int64)
    refuse(
        ("Alice has 2 bits and Bob 3", lambda: protocol.run(bits[:2], bits[:3], seeded(1))),
        ("listed up to 12", lambda: protocol.law(bits, bits)),
        ("epsilon is 0", lambda: HammingDistance(0.0)),
    )
