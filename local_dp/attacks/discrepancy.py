"""Partial discrepancy: the largest error that hides many rows from every decoder (lecture notes 4.1.5 and 4.1.8; Muthukrishnan, Nikolov 2012)."""

import math

import numpy as np

from local_dp.arrays import Bools, Counts
from local_dp.checks import check_share
from local_dp.errors import InputError


def partial_discrepancy(subsets: Bools, share: float) -> tuple[int, Counts]:
    """min |Q z|_inf over z in {0, +1, -1}^n with more than `share` n entries that are not 0; and a z that has it, shape (n,).

    Claim: with every error below half of it, whoever is consistent with the answers has at most `share` n wrong bits. Cost: an integer program of 2 n + 1
    variables, n up to about 20. It is solved in floats: the witness z is checked in whole numbers, that there is no better one is the solver's word.
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
    solved = milp(np.r_[np.zeros(2 * n), 1.0], integrality=whole, bounds=Bounds(0, np.r_[np.ones(2 * n), np.inf]), constraints=constraints)
    if solved.status != 0:
        raise InputError(f"the integer program of {n} rows was not solved: {solved.message}")
    ups, downs = np.rint(solved.x[:n]).astype(np.int64), np.rint(solved.x[n : 2 * n]).astype(np.int64)
    z: Counts = ups - downs
    return int(np.abs(subsets.astype(np.int64) @ z).max()), z
