"""Noisy pairs moved to the nearest that a table might have: post-processing, which costs no privacy and takes off most of the noise where it is large."""

from itertools import product

import numpy as np

from local_dp.arrays import Floats
from local_dp.checks import check_whole
from local_dp.errors import InputError

MOST_ENUMERATED = 12
_ITERATIONS = 100
_EXACT = 1e-5  # of the diagonal's distance from 1
_ROUNDS = 1000
_GAP = 1e-7  # of a slope, for each pair: below it a vertex leads nowhere


def onto_elliptope(means: Floats) -> Floats:
    """The nearest matrix (Frobenius) to a symmetric one among {Z positive semidefinite, diagonal 1}, which has every table's means of v_i v_j in it.

    By the dual: minimise |(Y + Diag u)_+|^2 / 2 - sum u, convex and smooth in d numbers, of gradient diag (Y + Diag u)_+ - 1; L-BFGS needs 10 to 20
    eigendecompositions. What is left on the diagonal is then scaled away, which keeps it semidefinite. Cost: O(d^3) each: d = 200 in .2 s.
    Utility: |Z - y|^2 <= 2 max over the body of <z, noise>: an error of d^(1/4) where the noise alone has d^(1/2), up to a power of the noise's own size.
    Source: Dwork, Nikolov, Talwar 2015 (lecture notes 7); the dual is Malick's 2004. Raises InputError unless it is a symmetric matrix of finite numbers.
    """
    from scipy.optimize import minimize

    symmetric = _symmetric(means)

    def price(dual: Floats) -> tuple[float, Floats]:
        values, vectors = np.linalg.eigh(symmetric + np.diag(dual))
        kept = np.maximum(values, 0)
        return float(kept @ kept) / 2 - float(dual.sum()), ((vectors * kept) * vectors).sum(axis=1) - 1

    found = minimize(price, np.zeros(len(symmetric)), jac=True, method="L-BFGS-B", options={"maxiter": _ITERATIONS, "gtol": _EXACT, "ftol": 0.0})
    values, vectors = np.linalg.eigh(symmetric + np.diag(found.x))
    nearest = (vectors * np.maximum(values, 0)) @ vectors.T
    root = np.sqrt(np.diag(nearest))
    return np.asarray(nearest / np.outer(root, root))


def onto_hull(means: Floats) -> Floats:
    """The nearest matrix to a symmetric one among the means over all tables: the convex hull of all v v^T, for at most 12 columns.

    By fully corrective Frank-Wolfe: the vertex that the distance falls fastest towards, by enumerating 2^(d - 1) sign vectors, and then the best weights of
    all vertices so far (non-negative least squares); it ends where no vertex is left, and the distance is then least. Cost: d = 10 in .2 s.
    """
    from scipy.optimize import nnls

    symmetric = _symmetric(means)
    check_whole("the number of columns", len(symmetric), 2, MOST_ENUMERATED)
    signs = np.array([(1, *rest) for rest in product((1, -1), repeat=len(symmetric) - 1)], dtype=np.float64)
    above = np.triu_indices(len(symmetric), 1)
    target, vertices = symmetric[above], np.array([signs[0]])
    for _ in range(_ROUNDS):
        columns = (vertices[:, :, None] * vertices[:, None, :])[:, *above].T
        weights = nnls(np.vstack([columns, np.full(len(vertices), 1e4)]), np.append(target, 1e4))[0]
        weights /= weights.sum()
        off = np.zeros_like(symmetric)
        off[above] = target - columns @ weights
        slopes = ((signs @ off) * signs).sum(axis=1)  # <residual, v v^T> over i < j
        best = int(slopes.argmax())
        if slopes[best] - float(weights @ ((vertices @ off) * vertices).sum(axis=1)) < _GAP * len(target):
            break
        vertices = np.vstack([vertices[weights > 0], signs[best]])
        weights = np.append(weights[weights > 0], 0.0)
    return np.asarray((vertices.T * weights) @ vertices)


def _symmetric(means: Floats) -> Floats:
    if means.ndim != 2 or means.shape[0] != means.shape[1] or not np.all(np.isfinite(means)) or not np.allclose(means, means.T):
        raise InputError(f"the means have shape {means.shape}; give a symmetric matrix of finite numbers")
    return means - np.diag(np.diag(means)) + np.eye(len(means))
