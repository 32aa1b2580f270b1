"""The closed form of Gaussian noise."""

import math
from functools import partial

import pytest
from scipy.integrate import quad
from scipy.stats import norm

from local_dp.accounting.losses import DiscreteGaussian, Gaussian, gaussian_delta, gaussian_epsilon
from tests.support.inputs.refusals import refuse


@pytest.mark.parametrize(("mu", "epsilon"), [(0.01, 0.0), (0.1, 0.3), (1.0, 1.0), (1.0, 25.4), (1.0, 25.6), (10.0, 40.0)])
def test_closed_form_is_the_integral(mu: float, epsilon: float) -> None:
    """It is the integral of the density where it exceeds e^eps times the other's, in the tails too; never below it."""
    start = epsilon / mu + mu / 2
    beyond = norm.logpdf(start - mu)
    share = quad(lambda z: math.exp(norm.logpdf(z - mu) - beyond) * -math.expm1(epsilon + mu**2 / 2 - mu * z), start, start + 12, epsabs=0, epsrel=1e-12)[0]
    exact = share * math.exp(beyond)
    assert exact * (1 - 1e-12) <= gaussian_delta(mu, epsilon) <= exact * (1 + 1e-9)


@pytest.mark.parametrize("sigma", [0.05, 1.0, 7.5, 400.0])
@pytest.mark.parametrize("delta", [1e-15, 1e-6, 0.2])
def test_epsilon_inverts_delta(sigma: float, delta: float) -> None:
    """The least epsilon whose delta fits: a billionth less does not, unless it is 0."""
    epsilon = gaussian_epsilon(1 / sigma, delta)
    assert gaussian_delta(1 / sigma, epsilon) <= delta
    assert epsilon == 0 or gaussian_delta(1 / sigma, epsilon * (1 - 1e-9)) > delta


def test_gaussians_add_up() -> None:
    """Noise of sigma 5 on each of 25 answers is as much as of sigma 1 on one; mu^2 is rounded up; what is no sigma is refused."""
    assert sum([Gaussian.of_sigma(5)] * 24, Gaussian.of_sigma(5)) == Gaussian.of_sigma(1)
    assert Gaussian.of_sigma(3).atto_mu2 == 10**18 // 9 + 1
    assert DiscreteGaussian.of_sigma(2).step == 0.25
    refuse(*(("sigma is", partial(Gaussian.of_sigma, sigma)) for sigma in (0.0, -1.0, math.nan, math.inf)), ("1 or more", lambda: Gaussian(0)))
