"""Sign rows for a workload: the part of the factorization mechanism that a client sees."""

from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.quantiles import Certificate, factorize, known_totals
from local_dp.errors import InputError
from local_dp.randomizers.signs.sign_rows import sylvester

ROWS_PER_SYMBOL = 8
MAX_SYMBOLS = 256
MAX_ENTRIES = 1 << 23  # of a workload
_SHARPER = (1.0, 1.1, 1.2, 1.35, 1.5, 1.75)  # powers of the ideal spectrum: taking signs flattens it again
_SEED = 8  # of a design, which is public


@dataclass(frozen=True)
class Design:
    """Public sign rows, int8 +1/-1, shape (a power of two, k), with v: C^2 v / n bounds the variance of every query; and what bounds any design from below."""

    rows: np.ndarray
    excess: float
    certificate: Certificate


def query_excess(rows: np.ndarray, workload: Floats) -> Floats:
    """(w - c) G^-1 (w - c)^T for each query w and its best constant c, G = S^T S / rows; infinite where the rows do not tell what w asks. Shape (m,)."""
    signs = rows.astype(np.float64)
    middle = known_totals(signs.T @ signs / len(signs))
    solved = workload @ middle
    centred = workload - workload.mean(axis=1, keepdims=True)
    told = solved @ (signs.T @ signs / len(signs))
    told -= told.mean(axis=1, keepdims=True)
    lost = np.abs(told - centred).max(axis=1) > 1e-6 * np.abs(centred).max()
    return np.where(lost, np.inf, np.einsum("ij,ij->i", solved, workload))


def design_signs(workload: Floats) -> Design:
    """Signs of normal vectors whose covariance is the ideal one, more or less sharpened, or Sylvester's matrix: the best of seven.

    Source: Edmonds, Nikolov, Ullman 2020, with the rounding of Grothendieck's inequality: at most pi / 2 above the bound for many rows, mostly far less.
    """
    m, k = workload.shape
    if k > MAX_SYMBOLS or m * k > MAX_ENTRIES:
        raise InputError(f"the workload has {m} queries of {k} symbols; a design takes at most {MAX_SYMBOLS} symbols and {MAX_ENTRIES} entries")
    found = factorize(workload)
    count = 1 << (ROWS_PER_SYMBOL * k - 1).bit_length()
    values, vectors = np.linalg.eigh(found.gram)
    values = np.maximum(values, 0.0)
    frames = _frames(count, k)
    tried = [sylvester(k), *(_signs(frames, (vectors * values ** (power / 2)) @ vectors.T) for power in _SHARPER)]
    excess = [float(query_excess(rows, workload).max()) for rows in tried]
    best = int(np.argmin(excess))
    return Design(tried[best], excess[best], found.certificate)


def _frames(count: int, k: int) -> Floats:
    """Normal directions in orthogonal sets of k, which spread more evenly than independent ones; shape (count, k)."""
    generator = np.random.default_rng(_SEED)
    sets = [np.linalg.qr(generator.normal(size=(k, k)))[0] for _ in range(-(-count // k))]
    return np.concatenate(sets)[:count]


def _signs(frames: Floats, root: Floats) -> np.ndarray:
    return np.where(frames @ root >= 0, 1, -1).astype(np.int8)
