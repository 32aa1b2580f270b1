"""Reconstruction: the table from answers about its subsets."""

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from local_dp.arrays import Bools, Counts, Floats
from local_dp.checks import check_share, check_whole
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive
from local_dp.oracles.statistical.oracles import StatisticalQuery
from local_dp.queries.subsets import Subset

Decoder: TypeAlias = Callable[[Floats, Floats], Floats]
"""From the subsets, shape (k, n), and their noisy sums, shape (k,), to a number in about [0, 1] for each row, shape (n,)."""

MOST_ROWS = 12  # of a search through all 2^n tables
_CHUNK = 256


def reconstruction(subsets: Bools, tolerance: float, decoder: Decoder) -> Nonadaptive[StatisticalQuery, float, Bools]:
    """The attack: asks how many secret bits are set in each subset, shape (k, n), and guesses all of them, shape (n,).

    It is an algorithm like any other: `run` applies it to exact, hostile and noisy expectations, `curated_from_sq` to a trusted curator, `from_own_bits` to the
    clients themselves. On the [-1, 1] scale of a statistical query a tolerance tau is an error of n tau / 2 in the sum.
    """
    n = subsets.shape[1]
    check_whole("the number of rows", n, 1, 1 << 20)
    matrix = subsets.astype(np.float64)
    queries = tuple(StatisticalQuery(Subset.of(members), tolerance) for members in subsets)

    def decode(answers: tuple[float, ...]) -> Bools:
        return decoder(matrix, n * (np.array(answers) + 1) / 2) >= 0.5

    return Nonadaptive(queries, decode)


def random_subsets(k: int, n: int, generator: np.random.Generator) -> Bools:
    """k subsets, each row in each of them by a fair coin, shape (k, n)."""
    return generator.random((k, n)) < 0.5


def every_subset(n: int) -> Bools:
    """All 2^n subsets of n <= 12 rows, shape (2^n, n)."""
    check_whole("the number of rows", n, 1, MOST_ROWS)
    return (np.arange(1 << n)[:, None] >> np.arange(n) & 1).astype(np.bool_)


def exhaustive(matrix: Floats, sums: Floats) -> Floats:
    """The table with the least largest error over the given sums, among all 2^n: Dinur and Nissim's exponential attack, n <= 12.

    Claim: asked `every_subset`, with largest error E it has at most 4 E wrong bits, whatever the answers (lecture notes 4.1.2). Proof: its own errors are at
    most E too. So no subset sum of the difference is beyond 2 E, and the wrong bits are two subsets of one sign. Cost: 2^n k n.
    """
    tables = every_subset(matrix.shape[1]).astype(np.float64)
    worst = [np.abs(part @ matrix.T - sums).max(axis=1) for part in np.array_split(tables, -(-len(tables) // _CHUNK))]
    return np.asarray(tables[int(np.argmin(np.concatenate(worst)))])


def least_squares(matrix: Floats, sums: Floats) -> Floats:
    """argmin |Q x - y|_2. Wrong bits under noise of standard deviation s: `bounds.reconstruction.wrong_bits`. Cost: k n^2. Raises InputError below rank n."""
    k, n = matrix.shape
    try:
        return np.asarray(np.linalg.solve(matrix.T @ matrix, matrix.T @ sums), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise InputError(f"{k} sums do not determine {n} rows; ask more, {4 * n} say") from None


def least_largest(matrix: Floats, sums: Floats) -> Floats:
    """argmin |Q x - y|_inf over [0, 1]^n, a linear program of n + 1 variables: the best of these where the errors are bounded."""
    return _least_slack(matrix, sums, np.ones((len(matrix), 1)))


def least_sum(matrix: Floats, sums: Floats) -> Floats:
    """argmin |Q x - y|_1 over [0, 1]^n, a linear program of n + k variables: some arbitrarily wrong answers cost no bit.

    Source: Dwork, McSherry, Talwar 2007.
    """
    return _least_slack(matrix, sums, np.eye(len(matrix)))


def _least_slack(matrix: Floats, sums: Floats, slack: Floats) -> Floats:
    """The x in [0, 1]^n of the least sum of e with |matrix x - sums| <= slack e, e >= 0."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    n, others = matrix.shape[1], slack.shape[1]
    costs, limits, bounds = np.r_[np.zeros(n), np.ones(others)], np.r_[sums, -sums], [(0.0, 1.0)] * n + [(0.0, None)] * others
    both = csr_array(np.block([[matrix, -slack], [-matrix, -slack]]))
    solution = linprog(costs, A_ub=both, b_ub=limits, bounds=bounds, method="highs")
    if solution.status != 0:
        raise InputError(f"the linear program of {n} rows was not solved: {solution.message}")
    return np.asarray(solution.x[:n], dtype=np.float64)


def partial_discrepancy(subsets: Bools, share: float) -> tuple[int, Counts]:
    """min |Q z|_inf over z in {0, +1, -1}^n with more than `share` n entries that are not 0; and a z that has it, shape (n,).

    Claim: with every error below half of it, a table that is consistent with the answers has at most `share` n wrong bits. Cost: an integer program of
    2 n + 1 variables, n up to about 20. Solved in floats: the witness z is checked in whole numbers; its optimality rests on the solver.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    check_share("the share of rows", share)
    k, n = subsets.shape
    least = math.floor(share * n) + 1
    q, one, none = subsets.astype(np.float64), np.ones((k, 1)), np.zeros((n, 1))
    constraints = [
        LinearConstraint(np.hstack([q, -q, -one]), ub=0.0),
        LinearConstraint(np.hstack([-q, q, -one]), ub=0.0),
        LinearConstraint(np.hstack([np.eye(n), np.eye(n), none]), ub=1.0),
        LinearConstraint(np.r_[np.ones(2 * n), 0.0][None, :], lb=least),
    ]
    whole = np.ones(2 * n + 1)
    solution = milp(np.r_[np.zeros(2 * n), 1.0], integrality=whole, bounds=Bounds(0, np.r_[np.ones(2 * n), np.inf]), constraints=constraints)
    if solution.status != 0:
        raise InputError(f"the integer program of {n} rows was not solved: {solution.message}")
    ups, downs = np.rint(solution.x[:n]).astype(np.int64), np.rint(solution.x[n : 2 * n]).astype(np.int64)
    z: Counts = ups - downs
    return int(np.abs(subsets.astype(np.int64) @ z).max()), z
