"""The client counts and distances of both simulations, against published tables, exact laws and
independent computations."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

from local_dp.bounds import response
from local_dp.bounds.curator import occam_examples, paper_parity_examples
from local_dp.bounds.simulations import (
    chosen_examples,
    conditional_draw_distance,
    conditional_tolerance,
    draw_distance,
    enough_trials,
    growth,
    miss_probability,
    plan_simulation,
    simulation_tolerance,
    vc_examples,
    verified_parity_examples,
)
from local_dp.errors import InputError
from local_dp.theorems.likelihood import (
    acceptance,
    mean_ratio,
    query_value,
    total_variation,
    truncated_law,
)
from tests.support.inputs.refusals import refuse
from tests.support.long import short

# epsilon, tau, beta: RR by the central limit theorem, exact, Hoeffding; Laplace by the central
# limit theorem, best Chernoff, closed form (limits 1)
COUNTS = [
    (0.1, 0.1, 0.05, 153_915, 154_129, 295_602, 307_701, 590_969, 611_347),
    (0.5, 0.1, 0.05, 6_404, 6_451, 12_299, 12_677, 24_348, 25_187),
    (1.0, 0.1, 0.05, 1_799, 1_840, 3_455, 3_457, 6_641, 6_869),
    (1.0, 0.05, 0.01, 12_428, 12_508, 19_848, 23_886, 38_150, 39_464),
    (1.0, 0.01, 0.05, 179_884, 180_258, 345_478, 345_731, 664_000, 686_906),
    (2.0, 0.1, 0.05, 662, 683, 1_272, 1_152, 2_214, 2_290),
    (4.0, 0.1, 0.05, 413, 426, 794, 576, 1_107, 1_145),
]


@pytest.mark.parametrize(
    ("epsilon", "tau", "beta", "clt", "exact", "hoeffding", "laplace", "chernoff", "closed"), COUNTS
)
def test_client_counts(
    epsilon: float,
    tau: float,
    beta: float,
    clt: int,
    exact: int,
    hoeffding: int,
    laplace: int,
    chernoff: int,
    closed: int,
) -> None:
    """Every count of the table is met: exactly for the exact one, within one client or 2e-5 for the
    formulas."""
    assert response.rr_clients_exact(epsilon, tau, beta) == exact
    found = {
        response.rr_clients(epsilon, tau, beta): clt,
        response.rr_clients_hoeffding(epsilon, tau, beta): hoeffding,
        response.laplace_clients(epsilon, tau, beta): laplace,
        response.laplace_clients_chernoff(epsilon, tau, beta): chernoff,
        response.laplace_clients_closed(epsilon, tau, beta): closed,
    }
    for count, wanted in found.items():
        assert abs(count - wanted) <= max(1, 2e-5 * wanted)


def _failure(n: int, epsilon: float, tau: float) -> float:
    edge = math.floor(n * (1 + tau / response.response_gain(epsilon)) / 2)
    return float(2 * stats.binom.sf(edge, n, 0.5))


@pytest.mark.parametrize(
    ("epsilon", "tau", "beta"),
    [(0.1, 0.1, 0.05), (1.0, 0.1, 0.05), (1.0, 0.01, 0.05), (4.0, 0.1, 0.05), (1.0, 0.3, 0.2)],
)
def test_exact_count_is_the_last_failure_plus_one(epsilon: float, tau: float, beta: float) -> None:
    """By a reference binomial law, n - 1 clients fail too often and every larger number, up to
    where Hoeffding takes over or 3,000 on, does not."""
    n = response.rr_clients_exact(epsilon, tau, beta)
    assert _failure(n - 1, epsilon, tau) > beta
    assert (
        max(
            _failure(m, epsilon, tau)
            for m in range(n, min(n + 3000, response.rr_clients_hoeffding(epsilon, tau, beta) + 1))
        )
        <= beta
    )


def test_saw_tooth_has_successes_below_the_count() -> None:
    """The least n that succeeds is not the count: some smaller n succeeds and a larger one fails
    again."""
    n = response.rr_clients_exact(1.0, 0.1, 0.05)
    assert any(_failure(m, 1.0, 0.1) <= 0.05 for m in range(n - 40, n - 1))


@pytest.mark.parametrize("epsilon", short([0.5, 1.0, 2.0, 4.0], lambda epsilon: epsilon == 1.0))
def test_exact_count_holds_for_every_mean(epsilon: float) -> None:
    """At the exact count and the next 30, no mean on a grid of 301 fails with more than beta."""
    n = response.rr_clients_exact(epsilon, 0.1, 0.05)
    assert (
        max(
            response.rr_failure(m, epsilon, 0.1, mean)
            for m in range(n, n + 30)
            for mean in np.linspace(0, 0.9, 301)
        )
        <= 0.05
    )


def test_envelope_is_above_the_saw_tooth() -> None:
    """The falling envelope that ends the search is an upper bound at every n from 1 to 4,000, and
    falls."""
    envelope = [response.rr_failure_envelope(n, 1.0, 0.1) for n in range(1, 4000)]
    assert all(
        above >= response.rr_failure(n, 1.0, 0.1) for n, above in enumerate(envelope, start=1)
    )
    assert all(before >= after for before, after in pairwise(envelope))


@pytest.mark.parametrize(
    ("epsilon", "tau", "beta"),
    [
        (0.01, 0.01, 0.05),
        (0.1, 0.03, 1e-6),
        (1e-4, 1e-3, 0.01),
        (8.0, 0.99, 0.4),
        (24.0, 1.5, 0.05),
    ],
)
def test_exact_count_at_the_extremes(epsilon: float, tau: float, beta: float) -> None:
    """Tiny and huge parameters are answered at once, between the central limit count (less
    rounding) and 0.3 % or a few dozen clients above it."""
    n, clt = response.rr_clients_exact(epsilon, tau, beta), response.rr_clients(epsilon, tau, beta)
    assert 0.5 * clt <= n <= 1.003 * clt + 50


def test_binomial_tail_against_reference() -> None:
    """The tail agrees with scipy to 1e-8 relative, on both sides of the mean and out to 1e-100."""
    for n, k, p in (
        (1, 1, 0.3),
        (10, 0, 0.5),
        (10, 11, 0.5),
        (1840, 963, 0.5),
        (1840, 1200, 0.5),
        (300_000, 149_000, 0.5),
        (5000, 200, 0.03),
    ):
        assert response.binomial_tail(n, k, p) == pytest.approx(
            float(stats.binom.sf(k - 1, n, p)), rel=1e-8
        )


def test_chernoff_bound_is_the_best_one() -> None:
    """The count by the optimised exponent is that of a fine grid search over t, and above the count
    by the central limit theorem."""
    for epsilon, tau in ((0.5, 0.1), (1.0, 0.05), (2.0, 0.3)):
        t = np.linspace(0, epsilon / 2, 2_000_001)[1:-1]
        exponent = np.max(t * tau - t**2 / 2 + np.log1p(-((2 * t / epsilon) ** 2)))
        n = response.laplace_clients_chernoff(epsilon, tau, 0.05)
        assert abs(n - math.log(2 / 0.05) / exponent) <= 1.001
        assert n <= response.laplace_clients_closed(epsilon, tau, 0.05)
        assert n > response.laplace_clients(epsilon, tau, 0.05)


def test_laplace_tail_constant() -> None:
    """The exponent is at least .2259 for tau <= 1 (.22599 at 1), .2123 at t = tau/2, and negative
    at the printed t = tau."""
    taus = np.linspace(0.001, 1, 500)
    exponents = [response.laplace_tail_exponent(tau) for tau in taus]
    assert min(exponents) >= 0.2259
    assert exponents[-1] == pytest.approx(0.22599, abs=5e-6)
    assert exponents[0] == pytest.approx(0.25, abs=1e-6)
    assert min(response.laplace_tail_exponent(tau, tau / 2) for tau in taus) == pytest.approx(
        0.2123, abs=5e-5
    )
    assert all(response.laplace_tail_exponent(tau, tau) < 0 for tau in taus[:-1])


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
            assert 2 * tail <= 2 * math.exp(-response.laplace_tail_exponent(tau) * n * tau**2)


@pytest.mark.parametrize(
    ("epsilon", "clipped", "ratio"),
    [
        (0.1, 413.8, 1.999),
        (0.5, 19.15, 1.980),
        (1.0, 5.857, 1.922),
        (2.0, 2.263, 1.740),
        (4.0, 1.293, 1.394),
    ],
)
def test_variances(epsilon: float, clipped: float, ratio: float) -> None:
    """The variance of clipped Laplace and the ratio of plain Laplace to randomized response meet
    the table to its digits, and numerical integration."""
    assert response.clipped_laplace_variance(epsilon) == pytest.approx(clipped, rel=3e-4)
    assert (8 / epsilon**2 + 1) / response.response_gain(epsilon) ** 2 == pytest.approx(
        ratio, abs=6e-4
    )
    noise = stats.laplace(scale=2 / epsilon)
    inner = [integrate.quad(lambda x, k=k: x**k * noise.pdf(x - 1), -1, 1)[0] for k in (1, 2)]
    ends = (noise.sf(0), noise.cdf(-2))
    assert response.clipped_laplace_shrinkage(epsilon) == pytest.approx(
        inner[0] + ends[0] - ends[1]
    )
    assert response.clipped_laplace_variance(epsilon) == pytest.approx(
        (inner[1] + sum(ends)) / (inner[0] + ends[0] - ends[1]) ** 2
    )


def test_tolerances_invert_the_distances() -> None:
    """At the tolerance that suffices the distance bound is beta exactly; the paper's query needs
    half the tolerance, and the paper's own tolerance is safe."""
    for epsilon in (0.1, 0.5, 1.0, 3.0):
        for draws, beta in ((1, 0.1), (50, 0.05)):
            for centred in (True, False):
                tau = simulation_tolerance(epsilon, draws, beta, centred=centred)
                assert draws * draw_distance(epsilon, tau, centred=centred) == pytest.approx(beta)
                tau = conditional_tolerance(epsilon, draws, beta, centred=centred)
                assert draws * conditional_draw_distance(
                    epsilon, tau, centred=centred
                ) == pytest.approx(beta)
            assert simulation_tolerance(epsilon, draws, beta) == pytest.approx(
                2 * simulation_tolerance(epsilon, draws, beta, centred=False)
            )
            printed = beta / draws / math.exp(2 * epsilon)
            assert draws * draw_distance(epsilon, printed, centred=False) <= beta


def test_trials_and_queries() -> None:
    """`enough_trials` is the least whole number that meets its miss."""
    for epsilon in (0.5, 1.0, 2.0):
        trials = enough_trials(epsilon, 10, 0.01, 0.2)
        assert (
            10 * miss_probability(epsilon, trials, 0.2)
            <= 0.01
            < 10 * miss_probability(epsilon, trials - 1, 0.2)
        )


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5])
@pytest.mark.parametrize("draws", [1, 20])
def test_plan_keeps_its_promise(epsilon: float, draws: int) -> None:
    """Randomized response drawn by the plan, answers off by the whole tolerance either way, misses
    included: within beta / draws of the real law."""
    beta, growth = 0.1, math.exp(epsilon)
    plan = plan_simulation(epsilon, draws, beta)
    assert plan.queries == draws * plan.trials
    assert plan.miss <= beta / 2
    q = [growth / (growth + 1), 1 / (growth + 1)]
    for share in (0.0, 0.3, 0.5, 1.0):
        p = [(1 - share) * q[0] + share * q[1], (1 - share) * q[1] + share * q[0]]
        for signs in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
            ratios = [
                mean_ratio(query_value(a / b, growth) + s * plan.tolerance, growth)
                for a, b, s in zip(p, q, signs, strict=True)
            ]
            law = truncated_law(q, [acceptance(ratio, growth) for ratio in ratios], plan.trials)
            assert total_variation(law, p) <= beta / draws


def test_plans_beside_each_other() -> None:
    """An interactive plan asks more finely and expects more queries than the non-interactive one,
    both near e^eps a draw for small beta."""
    flat, steps = (
        plan_simulation(1.0, 50, 1e-3, interactive=interactive) for interactive in (False, True)
    )
    assert steps.tolerance < flat.tolerance
    assert 50 * math.e <= flat.expected < steps.expected <= 50 * math.e * 1.001


def test_split_budget_cost() -> None:
    """Splitting epsilon over t queries costs about t times the variance at small epsilon, and pays
    only above the epsilon the docstring names."""
    assert response.split_budget_cost(0.01, 8) == pytest.approx(8, rel=1e-3)
    for t, break_even in ((2, 3.06), (4, 4.25), (8, 5.88)):
        assert (
            response.split_budget_cost(break_even - 0.01, t)
            > 1
            > response.split_budget_cost(break_even + 0.01, t)
        )


def test_bad_input_is_refused() -> None:
    for wrong in (
        lambda: response.rr_clients_exact(0.0, 0.1, 0.05),
        lambda: response.rr_clients_exact(1.0, 3.0, 0.05),
        lambda: response.rr_clients_exact(1.0, 0.1, 1.0),
        lambda: response.laplace_clients_closed(20.0, 0.1, 0.05),
        lambda: simulation_tolerance(1.0, 0, 0.05),
        lambda: enough_trials(1.0, 1, 0.1, 1.0),
    ):
        with pytest.raises(InputError) as caught:
            wrong()
        assert "\n" not in str(caught.value)


POINTS = 7


def labellings(*edges: int) -> int:
    """How many sets of POINTS points are unions of at most `edges` / 2 intervals (an odd edge: up
    to the end); VC dimension `edges`."""
    return sum(
        bin(mask ^ (mask << 1) & ~(1 << POINTS)).count("1") <= edge
        for edge in edges
        for mask in range(1 << POINTS)
    )


@pytest.mark.parametrize("dimension", [0, 1, 2, 3, 4, 6, 7])
def test_sauers_count_is_attained(dimension: int) -> None:
    """Subsets of the line with at most v changes have VC dimension v and exactly as many labellings
    as Sauer's lemma allows; v - 1 would be too few."""
    assert labellings(dimension) == growth(dimension, POINTS)
    assert dimension == 0 or labellings(dimension) > growth(dimension - 1, POINTS)


def test_vc_sizes_grow_with_the_dimension_times_the_logarithm_of_the_points() -> None:
    """Thresholds over N points cost what N + 1 hypotheses do, and each squaring of N adds about as
    much again for each of v dimensions."""
    assert vc_examples(1, 255, 1.0, 0.1, 0.1) == occam_examples(256, 1.0, 0.1, 0.1)
    for dimension in (1, 2, 3):
        sizes = [vc_examples(dimension, 1 << power, 1.0, 0.1, 0.1) for power in (8, 16, 32)]
        assert sizes[2] - sizes[1] == pytest.approx(2 * (sizes[1] - sizes[0]), rel=0.05)
        assert sizes[1] - sizes[0] == pytest.approx(
            dimension * 8 * math.log(2) / math.log(1 / 0.1) * (occam_examples(1, 1.0, 0.1, 0.1)),
            rel=0.05,
        )
    # some 10^800 labellings
    assert vc_examples(100, 1 << 32, 1.0, 0.1, 0.1) < 100 * vc_examples(1, 1 << 32, 1.0, 0.1, 0.1)
    refuse(("VC dimension", lambda: vc_examples(-1, 4, 1.0, 0.1, 0.1)))


def chance_of_the_bad_one(n: int, epsilon: float, alpha: float) -> float:
    """Exact: two candidates, the bad one errs alone with probability alpha and the good one alone
    with alpha / 2; the exponential mechanism on n records."""
    law = np.array([1.0])
    for _ in range(n):
        law = np.convolve(law, [alpha / 2, 1 - 1.5 * alpha, alpha])
    more = np.arange(-n, n + 1)
    return float(law @ (1 / (1 + np.exp(epsilon / 2 * more))))


@pytest.mark.parametrize(
    ("epsilon", "alpha", "beta"), [(0.5, 0.2, 0.1), (1.0, 0.1, 0.05), (4.0, 0.2, 0.01)]
)
def test_the_test_set_chooses_well(epsilon: float, alpha: float, beta: float) -> None:
    """With `chosen_examples` the worse of two is chosen with probability at most beta, by the exact
    law; with a sixth of them it is chosen more often."""
    n = chosen_examples(1, epsilon, alpha, beta)
    assert (
        chance_of_the_bad_one(n, epsilon, alpha)
        <= beta
        < chance_of_the_bad_one(n // 6, epsilon, alpha)
    )


@pytest.mark.parametrize(("d", "exponent"), [(4, 7), (8, 11), (16, 21)])
def test_a_test_set_removes_a_logarithm(d: int, exponent: int) -> None:
    """In ln(1/beta) the size with a test set grows in a line, that of Theorem 3.8 as a square; they
    cross near the stated beta, and not before."""
    betas = [10.0**-power for power in (20, 40, 60, 80)]
    tested, printed = (
        [size(d, 0.5, 0.1, beta) for beta in betas]
        for size in (verified_parity_examples, paper_parity_examples)
    )
    steps = [later - earlier for earlier, later in pairwise(tested)]
    assert max(steps) < 1.02 * min(steps)
    rises = [later - earlier for earlier, later in pairwise(printed)]
    assert rises[-1] > 1.5 * rises[0]
    sooner, later = 10.0 ** (2 - exponent), 10.0 ** -(exponent + 2)
    assert verified_parity_examples(d, 0.5, 0.1, sooner) > paper_parity_examples(
        d, 0.5, 0.1, sooner
    )
    assert verified_parity_examples(d, 0.5, 0.1, later) < paper_parity_examples(d, 0.5, 0.1, later)
    refuse(("alpha", lambda: verified_parity_examples(d, 0.5, 0.6, 0.1)))
