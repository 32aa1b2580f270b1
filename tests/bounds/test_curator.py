"""RSPM's bounds: its excess, and Gaussian noise that is not private at the scale sqrt(m)."""

import math

import numpy as np
import pytest

from local_dp.bounds.curator import parity_delta, parity_odd, perturbed_excess, printed_sigma, pure_deviation, safe_sigma
from local_dp.curator.oracle_efficient.separated import Parities, Weighted
from local_dp.errors import InputError


def test_gaussian_noise_of_the_printed_scale_fails_for_parities() -> None:
    """At epsilon 1, delta 1e-6: losses of .99, 2.56 and 6.83 at m = 100, 1,000, 10^4; deltas of .73 and .996; from m = 102 on it is not private."""
    for m, loss, delta in ((100, 0.993, 0.0), (1000, 2.560, 0.733), (10_000, 6.827, 0.996)):
        odd = parity_odd(m, printed_sigma(m, 1.0, 1e-6))
        assert math.log((1 - odd) / odd) == pytest.approx(loss, abs=1e-3)
        assert parity_delta(m, printed_sigma(m, 1.0, 1e-6), 1.0) == pytest.approx(delta, abs=1e-3)
    failing = [parity_delta(m, printed_sigma(m, 1.0, 1e-6), 1.0) > 1e-6 for m in range(1, 300)]
    assert failing.index(True) + 1 == 102
    assert all(failing[101:])


def test_no_multiple_of_the_root_is_private() -> None:
    """100 times the printed scale: delta above .9 at epsilon 1 from some m on."""
    assert parity_delta(10**8, 100 * printed_sigma(10**8, 1.0, 1e-6), 1.0) > 0.9


def test_the_safe_scale_is_linear_in_m() -> None:
    """It is private for parities wherever the printed one is not, meets its equation, and is below the pure noise's from m = 74 on, by 6 % at 100."""
    for m in (1, 2, 100, 10_000):
        sigma = safe_sigma(m, 1.0, 1e-6)
        assert 2 * (m * math.sqrt(2 / math.pi) + math.sqrt(2 * m * math.log(1e6))) / sigma + 2 * m / sigma**2 == pytest.approx(1.0)
        assert parity_delta(m, sigma, 1.0) == 0
    assert [m for m in range(1, 101) if safe_sigma(m, 1.0, 1e-6) < pure_deviation(m, 1.0)] == list(range(74, 101))
    assert printed_sigma(2, 1.0, 1e-6) > safe_sigma(2, 1.0, 1e-6)  # so no m <= 2 can show that it is wrong


def test_the_odd_parity_is_what_the_oracle_answers() -> None:
    """5,000 noises in 4 dimensions: the share of odd answers is within 5 standard errors of the closed form (failure 6e-7), and not of its complement."""
    queries, rng, sigma = Parities(4), np.random.default_rng(6), 2.0
    patterns = queries.values(queries.separators)
    error = queries.totals(Weighted(np.array([15]), np.array([1])))
    answers = np.argmin(rng.normal(0, sigma, (5000, 4)) @ patterns.T + error, axis=1)
    share, odd = float(error[answers].mean()), parity_odd(4, sigma)
    assert abs(share - odd) < 5 * math.sqrt(odd * (1 - odd) / 5000) < abs(share - (1 - odd))


def test_excess_of_the_perturbed_minimum() -> None:
    """(m shift / eps) ln(2 m / beta), and the deviation of the pure noise is 2.83 m / eps."""
    assert perturbed_excess(14, 28, 1.0, 0.05) == pytest.approx(392 * math.log(560))
    assert perturbed_excess(14, 2, 0.5, 0.05) == pytest.approx(56 * math.log(560))
    assert pure_deviation(100, 1.0) == pytest.approx(282.8, abs=0.1)


def test_bad_input_gets_a_line() -> None:
    with pytest.raises(InputError, match="delta is 0"):
        safe_sigma(3, 1.0, 0.0)
    with pytest.raises(InputError, match="shift is 7"):
        perturbed_excess(3, 7, 1.0, 0.1)
    with pytest.raises(InputError, match="sigma is 0"):
        parity_odd(3, 0.0)
