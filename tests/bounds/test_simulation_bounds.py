"""The client counts and distances of both simulations, against published tables, exact laws and
independent computations."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

from local_dp.bounds.curator import occam_examples, occam_examples_realizable, paper_parity_examples
from local_dp.bounds.response import (
    binomial_tail,
    clipped_laplace_shrinkage,
    clipped_laplace_variance,
    laplace_clients_chernoff,
    laplace_clients_closed,
    laplace_tail_exponent,
    response_gain,
    rr_clients,
    rr_clients_exact,
    rr_clients_hoeffding,
    rr_failure,
    rr_failure_envelope,
)
from local_dp.bounds.simulations import (
    chosen_examples,
    enough_trials,
    growth,
    miss_probability,
    vc_examples,
    verified_parity_examples,
)
from tests.support.inputs.refusals import refuse
from tests.support.long import short

# epsilon, tau, beta: RR by the central limit theorem, exact, Hoeffding; Laplace by the central
# limit theorem, best Chernoff, closed form (limits 1)
COUNTS = [
    (0.1, 0.1, 0.05, 153_915, 154_129, 295_602, 590_969, 611_347),
    (1.0, 0.1, 0.05, 1_799, 1_840, 3_455, 6_641, 6_869),
    (1.0, 0.01, 0.05, 179_884, 180_258, 345_478, 664_000, 686_906),
    (4.0, 0.1, 0.05, 413, 426, 794, 1_107, 1_145),
]


@pytest.mark.parametrize("row", COUNTS)
def test_client_counts(row: tuple[float, ...]) -> None:
    """Every count of the table is met: exactly for the exact one, within one client or 2e-5 for the
    formulas."""
    kinds = (
        rr_clients,
        rr_clients_hoeffding,
        laplace_clients_chernoff,
        laplace_clients_closed,
    )
    epsilon, tau, beta, clt, exact, *others = row
    assert rr_clients_exact(epsilon, tau, beta) == exact
    counts = [kind(epsilon, tau, beta) for kind in kinds]
    assert counts == pytest.approx([clt, *others], rel=2e-5, abs=1)


@pytest.mark.parametrize(
    ("epsilon", "tau", "beta"),
    [(0.1, 0.1, 0.05), (1.0, 0.01, 0.05), (4.0, 0.1, 0.05), (1.0, 0.3, 0.2)],
)
def test_exact_count_is_the_last_failure_plus_one(epsilon: float, tau: float, beta: float) -> None:
    """By a reference binomial law, n - 1 clients fail too often and the next 3,000 numbers do not;
    some smaller number does not either (a saw-tooth)."""
    n = rr_clients_exact(epsilon, tau, beta)
    clients = np.arange(n - 40, n + 3000)
    edges = np.floor(clients * (1 + tau / response_gain(epsilon)) / 2)
    fails = 2 * stats.binom.sf(edges, clients, 0.5) > beta
    assert fails[39]
    assert not fails[:40].all()
    assert not fails[40:].any()


@pytest.mark.parametrize("epsilon", short([0.5, 1.0, 2.0, 4.0], lambda epsilon: epsilon == 1.0))
def test_exact_count_holds_for_every_mean(epsilon: float) -> None:
    """At the exact count and the next 30, no mean on a grid of 301 fails with more than beta."""
    n = rr_clients_exact(epsilon, 0.1, 0.05)
    means = np.linspace(0, 0.9, 301)
    assert (
        max(rr_failure(m, epsilon, 0.1, mean) for m in range(n, n + 30) for mean in means) <= 0.05
    )


def test_envelope_is_above_the_saw_tooth() -> None:
    """The falling envelope that ends the search is an upper bound at every n from 1 to 4,000, and
    falls."""
    envelope = [rr_failure_envelope(n, 1.0, 0.1) for n in range(1, 4000)]
    assert all(above >= rr_failure(n, 1.0, 0.1) for n, above in enumerate(envelope, start=1))
    assert all(before >= after for before, after in pairwise(envelope))


def test_binomial_tail_against_reference() -> None:
    """The tail agrees with scipy to 1e-8 relative, on both sides of the mean and out to 1e-39."""
    for n, k, p in ((1, 1, 0.3), (10, 0, 0.5), (10, 11, 0.5), (1840, 1200, 0.5), (5000, 120, 0.03)):
        tail = float(stats.binom.sf(k - 1, n, p))
        assert binomial_tail(n, k, p) == pytest.approx(tail, rel=1e-8)


def test_laplace_tail_constant() -> None:
    """The exponent falls from .25 to .22599 at tau = 1; it is .2123 or more at t = tau/2, and
    negative at the printed t = tau."""
    taus = np.linspace(0.001, 1, 500)
    exponents = [laplace_tail_exponent(tau) for tau in taus]
    assert (exponents[0], min(exponents), exponents[-1]) == pytest.approx(
        (0.25, 0.22599, 0.22599), abs=5e-6
    )
    assert min(laplace_tail_exponent(tau, tau / 2) for tau in taus) == pytest.approx(
        0.2123, abs=5e-5
    )
    assert all(laplace_tail_exponent(tau, tau) < 0 for tau in taus[:-1])


def test_laplace_tail_bound_holds() -> None:
    """Pr[|mean of n Lap(1)| >= tau] is below 2 exp(-c n tau^2), by the exact law (a symmetrised
    gamma) for n = 1, 4, 16 and 64."""
    for n in (1, 4, 16, 64):
        for tau in (0.25, 0.5, 1.0):
            # the sum of n Lap(1) is a difference of two gamma(n) variables
            tail, _ = integrate.quad(
                lambda x, n=n, tau=tau: stats.gamma.pdf(x, n) * stats.gamma.sf(x + n * tau, n),
                0,
                20 * n + 60,
                limit=200,
            )
            assert 2 * tail <= 2 * math.exp(-laplace_tail_exponent(tau) * n * tau**2)


@pytest.mark.parametrize(
    ("epsilon", "clipped", "ratio"), [(0.1, 413.8, 1.999), (1.0, 5.857, 1.922), (4.0, 1.293, 1.394)]
)
def test_variances(epsilon: float, clipped: float, ratio: float) -> None:
    """The variance of clipped Laplace and the ratio of plain Laplace to randomized response meet
    the table to its digits, and numerical integration."""
    assert clipped_laplace_variance(epsilon) == pytest.approx(clipped, rel=3e-4)
    assert (8 / epsilon**2 + 1) / response_gain(epsilon) ** 2 == pytest.approx(ratio, abs=6e-4)
    noise = stats.laplace(1, 2 / epsilon)
    mean, square = (
        integrate.quad(lambda x, k=k: x**k * noise.pdf(x), -1, 1)[0]
        + noise.sf(1)
        + (-1) ** k * noise.cdf(-1)
        for k in (1, 2)
    )
    assert clipped_laplace_shrinkage(epsilon) == pytest.approx(mean)
    assert clipped_laplace_variance(epsilon) == pytest.approx(square / mean**2)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5])
def test_as_many_trials_as_a_miss_allows(epsilon: float) -> None:
    """Of 10 draws one misses with probability 1 % at most, and with a candidate less it is more."""
    trials = enough_trials(epsilon, 10, 0.01, 0.2)
    assert (
        10 * miss_probability(epsilon, trials, 0.2)
        <= 0.01
        < 10 * miss_probability(epsilon, trials - 1, 0.2)
    )


POINTS = 7


def labellings(*edges: int) -> int:
    """How many sets of POINTS points are unions of at most `edges` / 2 intervals (an odd edge: up
    to the end); VC dimension `edges`."""
    masks = range(1 << POINTS)
    return sum(
        bin(mask ^ (mask << 1) & ~(1 << POINTS)).count("1") <= edge
        for edge in edges
        for mask in masks
    )


@pytest.mark.parametrize("dimension", [0, 1, 2, 3, 4, 6, 7])
def test_sauers_count_is_attained(dimension: int) -> None:
    """Subsets of the line with at most v changes have VC dimension v and exactly as many labellings
    as Sauer's lemma allows; v - 1 would be too few."""
    assert labellings(dimension) == growth(dimension, POINTS)
    assert dimension == 0 or labellings(dimension) > growth(dimension - 1, POINTS)


@pytest.mark.parametrize(
    ("epsilon", "alpha", "beta"), [(0.1, 0.2, 0.1), (1.0, 0.1, 0.05), (4.0, 0.2, 0.01)]
)
def test_enough_examples_choose_well(epsilon: float, alpha: float, beta: float) -> None:
    """With a test set, for a perfect hypothesis and agnostically: the least n by the mean of e^(-t
    (errors of a bad one - errors of the good one)), for all of three."""
    likely = (1 + alpha) / 2
    for size, most, bad, good in (
        (chosen_examples, math.log(2) / 2, alpha, alpha / 2),
        (occam_examples_realizable, math.inf, alpha, 0.0),
        (occam_examples, math.atanh(alpha), likely, 1 - likely),
    ):
        t, n = min(epsilon / 2, most), size(3, epsilon, alpha, beta)
        mean = 1 + bad * math.expm1(-t) + good * math.expm1(t)
        assert 3 * mean**n <= beta < 3 * mean ** (n - 1)


def test_vc_sizes_are_those_of_so_many_labellings() -> None:
    """Thresholds over N points cost what N + 1 hypotheses do; some 10^800 labellings fit floats."""
    assert vc_examples(1, 255, 0.01, 0.1, 0.1) == occam_examples(256, 0.01, 0.1, 0.1)
    assert vc_examples(100, 1 << 32, 1.0, 0.1, 0.1) < 100 * vc_examples(1, 1 << 32, 1.0, 0.1, 0.1)


@pytest.mark.parametrize(("d", "exponent"), [(4, 7), (16, 21)])
def test_a_test_set_removes_a_logarithm(d: int, exponent: int) -> None:
    """The size with a test set is that of the runs and of the choice; it crosses that of Theorem
    3.8 near the stated beta, and not before."""
    runs = math.ceil(math.log(0.05, 0.75))  # of which one is good
    learning, testing = 320 * runs * math.log(2 ** (d + 2)), chosen_examples(runs, 0.5, 0.1, 0.05)
    assert verified_parity_examples(d, 0.5, 0.1, 0.1) == math.ceil(learning) + testing
    for power, fewer in ((exponent - 2, False), (exponent + 2, True)):
        assert (
            verified_parity_examples(d, 0.5, 0.1, 10.0**-power)
            < paper_parity_examples(d, 0.5, 0.1, 10.0**-power)
        ) == fewer


def test_bad_input() -> None:
    refuse(
        ("epsilon", lambda: rr_clients_exact(0.0, 0.1, 0.05)),
        ("tolerance", lambda: rr_clients_exact(1.0, 3.0, 0.05)),
        ("failure probability", lambda: rr_clients_exact(1.0, 0.1, 1.0)),
        ("epsilon", lambda: laplace_clients_closed(20.0, 0.1, 0.05)),
        ("error 1", lambda: enough_trials(1.0, 1, 0.1, 1.0)),
        ("VC dimension", lambda: vc_examples(-1, 4, 1.0, 0.1, 0.1)),
        ("alpha", lambda: verified_parity_examples(4, 0.5, 0.6, 0.1)),
    )
