"""How far off the largest of k counts must be."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_matrix

from local_dp.bounds.counts import averaging_error, most_within, packing_error
from local_dp.curator.counts.k_norm import KNormCounts
from local_dp.errors import InputError


def best_of_all(k: int, n: int, epsilon: float, t: int) -> float:
    """The largest q such that some eps-private mechanism on {0..n}^k is within t with probability q on every vector of counts: by linear programming."""
    vectors = list(product(range(n + 1), repeat=k))
    size = len(vectors)
    far = np.abs(np.array(vectors)[:, None, :] - np.array(vectors)[None, :, :]).max(axis=2)
    rows, columns, values, row = [], [], [], 0
    for here, there in zip(*np.nonzero(far == 1), strict=True):
        for told in range(size):
            rows += [row, row]
            columns += [here * size + told, there * size + told]
            values += [1.0, -math.exp(epsilon)]
            row += 1
    for place in range(size):  # q - Pr[within t] <= 0
        near = np.flatnonzero(far[place] <= t)
        rows += [row] * (len(near) + 1)
        columns += [*(place * size + near).tolist(), size * size]
        values += [-1.0] * len(near) + [1.0]
        row += 1
    sums = coo_matrix((np.ones(size * size), (np.repeat(np.arange(size), size), np.arange(size * size))), shape=(size, size * size + 1))
    cost = np.append(np.zeros(size * size), -1.0)
    inequalities = coo_matrix((values, (rows, columns)), shape=(row, size * size + 1))
    found = linprog(cost, A_ub=inequalities, b_ub=np.zeros(row), A_eq=sums, b_eq=np.ones(size), bounds=(0, 1), method="highs")
    return float(-found.fun)


@pytest.mark.parametrize(("k", "n", "epsilon"), [(1, 8, 0.5), (1, 12, 1.0), (2, 3, 0.5), (2, 4, 1.0)])
@pytest.mark.parametrize("t", [0, 1])
def test_no_mechanism_beats_the_bound(k: int, n: int, epsilon: float, t: int) -> None:
    """The best of all mechanisms, by linear programming, keeps within t no more often than is proven possible, and at least as often as the K-norm's noise."""
    best = best_of_all(k, n, epsilon, t)
    assert KNormCounts(k, epsilon).within(t) <= best + 1e-9
    assert best <= most_within(k, epsilon, t, n) + 1e-9


def test_more_records_help_the_bound() -> None:
    """With more records more is excluded, down to what is excluded without end of them; it grows with t."""
    chances = [most_within(16, 1.0, 8, records) for records in (20, 100, 1000, 10**6)]
    assert chances == sorted(chances, reverse=True)
    assert chances[-1] == pytest.approx(most_within(16, 1.0, 8), rel=1e-3)
    errors = [averaging_error(4096, 1.0, records) for records in (1000, 10**5, 10**9)]
    assert errors == sorted(errors)
    assert errors[0] < 500 < errors[1]  # half of all records is never further off than 500
    assert errors[-1] == averaging_error(4096, 1.0)
    assert np.all(np.diff([most_within(16, 1.0, t) for t in range(16)]) > 0)


@pytest.mark.parametrize("k", [1, 2, 16, 64, 256, 1024, 4096])
@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_k_norm_is_next_to_the_bound(k: int, epsilon: float) -> None:
    """Its median lies above both bounds and within 1.25 (sqrt(k) + 1) / eps of the second; Laplace noise's would not."""
    median = KNormCounts(k, epsilon).median_error
    assert packing_error(k, epsilon) <= averaging_error(k, epsilon) + 1
    assert averaging_error(k, epsilon) <= median <= averaging_error(k, epsilon) + 1.25 * (math.sqrt(k) + 1) / epsilon
    assert k < 256 or KNormCounts(k, epsilon).within(median) > most_within(k, 0.9 * epsilon, median)  # what is true of less epsilon is not of this one


def test_figures() -> None:
    """At epsilon 1: packing leaves K-norm noise a factor of 2.7 to 2.9, averaging one of 1.02 to 1.34."""
    assert [packing_error(k, 1.0) for k in (16, 256, 4096)] == [6, 89, 1420]
    assert [averaging_error(k, 1.0) for k in (16, 256, 4096)] == [12, 238, 4021]
    assert packing_error(1, 1.0) == 0


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="k is 0"):
        packing_error(0, 1.0)
    with pytest.raises(InputError, match="epsilon is 0"):
        averaging_error(3, 0.0)
    with pytest.raises(InputError, match="records is 0"):
        averaging_error(3, 1.0, 0)
