"""Packing bounds of purely private algorithms, and the bounds of RSPM."""

import math
from functools import partial
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import block_diag, csr_array, eye_array, hstack, kron, vstack
from scipy.stats import binom

from local_dp.arrays import Bools, Ints
from local_dp.bounds.curator import (
    parity_delta,
    parity_odd,
    perturbed_excess,
    printed_sigma,
    safe_sigma,
)
from local_dp.bounds.packing import (
    best_by_records,
    best_within,
    is_excluded,
    k_point_records,
    least_error,
    least_records,
    least_replaced,
    packing_error,
    point_records,
    pure_success,
    sanitizer_records,
    threshold_records,
)
from local_dp.bounds.tails import CountLaw
from local_dp.curator.counts import KNormCounts
from tests.support.inputs.refusals import refuse

BITS = [16, 32, 64, 128, 256]


@pytest.mark.parametrize("m", [3, 20, 60])
def test_the_least_of_all_algorithms(m: int) -> None:
    """E[e^(-eps K); K above its beta-quantile] is the least E[e^(-eps K) f(K)] with E f(K) >= 1 -
    beta: by linear programming over f."""
    law, epsilon, beta = CountLaw.binomial(m, 0.3), 0.7, 0.15
    weights = law.shares * np.exp(-epsilon * law.sizes)
    least = linprog(weights, A_ub=[-law.shares], b_ub=[-(1 - beta)], bounds=(0, 1)).fun
    border = math.log(beta) - math.log(least)
    assert is_excluded(border + 1e-6, law, epsilon, beta)
    assert not is_excluded(border - 1e-6, law, epsilon, beta)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("bits", [4, 16, 64])
def test_nothing_that_exists_is_excluded(bits: int, epsilon: float) -> None:
    """The exponential mechanism over all points does with more than is excluded, and with less than
    four times as many."""
    enough = least_records(lambda m: pure_success(bits, epsilon, m, 0.1))
    assert (
        point_records(bits, epsilon, 0.1, 0.1)
        <= enough
        < 4 * point_records(bits, epsilon, 0.1, 0.1)
    )


@pytest.mark.parametrize("k", [1, 2, 16, 256, 4096])
@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_k_norm_is_the_best(k: int, epsilon: float) -> None:
    """Its law, summed over shells, is that of the bound, a mean over cubes, for every t to 1e-9;
    for more epsilon it would not be."""
    mechanism = KNormCounts(k, epsilon)
    for t in {
        0,
        1,
        mechanism.median_error // 2,
        mechanism.median_error - 1,
        mechanism.median_error,
        2 * mechanism.median_error,
    }:
        assert best_within(k, epsilon, t) == pytest.approx(mechanism.within(t), abs=1e-9)
    assert least_error(k, epsilon) == mechanism.median_error
    assert (
        best_within(k, 0.95 * epsilon, mechanism.median_error)
        < mechanism.within(mechanism.median_error) - 0.01
    )


@pytest.mark.parametrize(("n", "share"), [(5, 0.5), (300, 0.1), (100_000, 0.01)])
def test_the_binomial_law(n: int, share: float) -> None:
    """Against another implementation; nothing of weight lies outside of what is listed."""
    law = CountLaw.binomial(n, share)
    assert law.shares == pytest.approx(binom.pmf(law.sizes, n, share), rel=1e-6, abs=1e-30)
    assert law.mean(law.sizes.astype(np.float64)) == pytest.approx(n * share)


def test_rows_of_lower_bounds() -> None:
    """At alpha = beta = .1 and epsilon 1; of sanitizers the next to last m is excluded; 2^65536
    points, in logarithms; counts, where packing is too low."""
    assert [point_records(bits, 1.0, 0.1, 0.1) for bits in BITS] == [155, 278, 520, 993, 1924]
    assert [threshold_records(bits, 1.0, 0.1, 0.1) for bits in BITS] == [73, 134, 254, 490, 954]
    assert [k_point_records(64, k, 1.0, 0.1, 0.1) for k in (2, 4, 8, 16)] == [92, 174, 332, 641]
    assert k_point_records(7, 2, 1.0, 0.1, 0.1) == 6  # two sets: where one more or less counts
    proven = {bits: sanitizer_records(bits, 1.0, 0.1, 0.1) for bits in (*BITS, 65536)}
    assert list(proven.values()) == [65, 120, 230, 450, 895, 227_140]
    for bits, m in proven.items():
        log_others = math.log((1 << bits) - 1)
        verdicts = [
            is_excluded(log_others, CountLaw.always(size), 1.0, 0.1)
            for size in (m // 5, m // 5 + 1)
        ]
        assert verdicts == [True, False]  # m - 1 records: more than .2 (m - 1) are m / 5
    for bits, records in ((2, point_records), (3, threshold_records)):  # as many kinds of others
        m = records(bits, 0.1, 0.1, 0.1)
        laws = (CountLaw.binomial(size, (bits - 1) / 10) for size in (m - 1, m))
        assert [is_excluded(math.log(bits), law, 0.1, 0.1) for law in laws] == [True, False]
    assert point_records(65536, 1.0, 0.1, 0.1) / point_records(
        32768, 1.0, 0.1, 0.1
    ) == pytest.approx(2, rel=0.01)
    assert [packing_error(k, 1.0) for k in (1, 16, 256, 4096)] == [0, 6, 89, 1420]
    assert [least_error(k, 1.0) for k in (16, 256, 4096)] == [16, 256, 4096]


def best_of(edges: Ints, near: Bools, epsilon: float) -> float:
    """The largest q such that some mechanism, of ratios e^eps along `edges`, has probability q of
    `near`, shape (databases, answers): a linear program."""
    (size, answers) = near.shape
    whole = eye_array(near.shape[1])
    one = np.ones((1, near.shape[1]))
    units = eye_array(size, format="csr")
    growth = math.exp(epsilon)
    ratios = kron(units[edges[:, 0]] - growth * units[edges[:, 1]], whole)
    hits = block_diag([row[None, :].astype(float) for row in near])
    upper = hstack([ratios, csr_array((ratios.shape[0], 1))])
    lower = hstack([-hits, csr_array(np.ones((size, 1)))])
    inequalities = vstack([upper, lower])
    sums = hstack([kron(units, one), csr_array((size, 1))])
    cost = np.append(np.zeros(size * answers), -1.0)
    limits = np.zeros(inequalities.shape[0])
    return float(
        -linprog(
            cost,
            A_ub=inequalities,
            b_ub=limits,
            A_eq=sums,
            b_eq=np.ones(size),
            bounds=(0, 1),
            method="highs",
        ).fun
    )


def best_of_all(k: int, n: int, epsilon: float, t: int) -> float:
    """The largest q such that some eps-private mechanism on {0..n}^k is within t with probability q
    on every vector of counts."""
    vectors = np.array(list(product(range(n + 1), repeat=k)))
    far = np.abs(vectors[:, None] - vectors).max(axis=2)
    return best_of(np.argwhere(far == 1), far <= t, epsilon)


@pytest.mark.parametrize(
    ("k", "sizes", "epsilon"), [(1, (4, 8, 30), 0.5), (1, (4, 12, 30), 1.0), (2, (2, 3, 4), 1.0)]
)
@pytest.mark.parametrize("t", [0, 1])
def test_the_best_of_all_mechanisms(k: int, sizes: tuple[int, ...], epsilon: float, t: int) -> None:
    """The best of all, by linear programming, falls with the records towards `best_within`: for one
    count and 30 records it is 3 % above at most."""
    successes = [best_of_all(k, n, epsilon, t) for n in sizes]
    limit = best_within(k, epsilon, t)
    assert [*successes, limit - 1e-9] == sorted([*successes, limit - 1e-9], reverse=True)
    assert k > 1 or successes[-1] < 1.03 * limit


def best_of_records(k: int, n: int, epsilon: float) -> float:
    """The same at t = 0, for mechanisms that see n records of k bits: databases are histograms of
    the 2^k records."""
    records = np.array(list(product((0, 1), repeat=k)))
    lists = product(range(n + 1), repeat=len(records))
    histograms = np.array([h for h in lists if sum(h) == n])
    answers = np.array(list(product(range(n + 1), repeat=k)))
    neighbours = np.abs(histograms[:, None] - histograms).sum(axis=2) == 2
    return best_of(
        np.argwhere(neighbours), ((histograms @ records)[:, None] == answers).all(axis=2), epsilon
    )


def test_who_sees_the_records_does_better() -> None:
    """k = 2, eps 1, t = 0: the best success by the counts of n records, by the records, and
    `best_within`, the limit of both, within .056 e^(-n / 4)."""
    assert [round(best_of_all(2, n, 1.0, 0), 4) for n in (2, 4)] == [0.2536, 0.1637]
    assert [round(best_by_records(2, n, 1.0), 5) for n in (2, 4, 8, 12)] == [
        0.28753,
        0.17342,
        0.13145,
        0.12292,
    ]
    assert best_within(2, 1.0, 0) == pytest.approx(0.11954, abs=1e-5)
    assert 0.05 < (best_by_records(2, 20, 1.0) - best_within(2, 1.0, 0)) * math.exp(5) < 0.056


@pytest.mark.slow(only=("2-6-1.0",))
@pytest.mark.parametrize(
    ("k", "n", "epsilon"), [(1, 5, 1.0), (2, 2, 0.5), (2, 4, 1.0), (3, 2, 1.0), (2, 6, 1.0)]
)
def test_the_best_by_records(k: int, n: int, epsilon: float) -> None:
    """The bound is the linear program's optimum; with distances one too large it is not."""
    best = best_of_records(k, n, epsilon)
    apart = least_replaced(k, n)
    assert best_by_records(k, n, epsilon) == pytest.approx(best, abs=1e-9)
    longer = apart + (apart > 0)
    assert 1 / np.exp(-epsilon * longer).sum(axis=1).max() > best + 0.01


def test_gaussian_noise_of_the_printed_scale_fails_for_parities() -> None:
    """At epsilon 1, delta 1e-6: losses of .99, 2.56 and 6.83 at m = 100, 1,000, 10^4; deltas of .73
    and .996; from m = 102 on it is not private."""
    for m, loss, delta in ((100, 0.993, 0.0), (1000, 2.560, 0.733), (10_000, 6.827, 0.996)):
        odd = parity_odd(m, printed_sigma(m, 1.0, 1e-6))
        assert math.log((1 - odd) / odd) == pytest.approx(loss, abs=1e-3)
        assert parity_delta(m, printed_sigma(m, 1.0, 1e-6), 1.0) == pytest.approx(delta, abs=1e-3)
    failing = [m for m in range(1, 300) if parity_delta(m, printed_sigma(m, 1.0, 1e-6), 1.0) > 1e-6]
    assert failing == list(range(102, 300))
    # so no multiple of the root is private
    assert parity_delta(10**8, 100 * printed_sigma(10**8, 1.0, 1e-6), 1.0) > 0.9


def test_the_safe_scale_is_linear_in_m() -> None:
    """It is private for parities, meets its equation, and is below the pure noise's from m = 74
    on; each of that noise is within its share of the excess by a union of tails."""
    for m in (1, 2, 100, 10_000):
        sigma = safe_sigma(m, 1.0, 1e-6)
        norm = m * math.sqrt(2 / math.pi) + math.sqrt(2 * m * math.log(1e6))
        assert 2 * norm / sigma + 2 * m / sigma**2 == pytest.approx(1.0)
        assert parity_delta(m, sigma, 1.0) == 0
    assert [
        m
        for m in range(1, 101)
        if safe_sigma(m, 1.0, 1e-6) < 1 / (math.sqrt(2) * math.sinh(0.25 / m))
    ] == list(range(74, 101))
    share = perturbed_excess(3, 6, 0.5, 0.1) / 3
    assert 3 * 2 * math.exp(-share * 0.5 / 6) == pytest.approx(0.1)


def test_bad_input() -> None:
    sets = (
        (3, 64, 0.1, "even"),
        (2, 4, 0.1, "too few"),
        (2, 64, 0.3, "5 alpha is 1.5"),
        (0, 64, 0.1, "k is 0"),
    )
    refuse(
        *(
            (word, partial(k_point_records, bits, k, 1.0, alpha, 0.1))
            for k, bits, alpha, word in sets
        ),
        ("bits is 65537", lambda: point_records(65537, 1.0, 0.1, 0.1)),
        ("epsilon is 0", lambda: point_records(8, 0.0, 0.1, 0.1)),
        ("2 alpha is 1", lambda: threshold_records(8, 1.0, 0.5, 0.1)),
        ("beta is 0", lambda: sanitizer_records(8, 1.0, 0.1, 0)),
        ("k is 0", lambda: packing_error(0, 1.0)),
        ("too many databases", lambda: best_by_records(3, 12, 1.0)),
        ("delta is 0", lambda: safe_sigma(3, 1.0, 0.0)),
        ("shift is 7", lambda: perturbed_excess(3, 7, 1.0, 0.1)),
        ("sigma is 0", lambda: parity_odd(3, 0.0)),
    )
