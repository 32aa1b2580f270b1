"""The factorization norm of a workload from both sides, and what it proves about every local protocol (limits 8.5)."""

from dataclasses import dataclass, replace

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.response import response_gain
from local_dp.errors import InputError

_FLOOR = 1e-12  # of a weight, so that a symbol or a query that does not matter is left without dividing by 0
_SMALL = 1e-7  # singular values below this part of the largest are none


@dataclass(frozen=True)
class Certificate:
    """Weights of the queries, shape (m,), and a law of the symbols, shape (k,): a lower bound on the factorization norm that anybody can check."""

    queries: Floats
    symbols: Floats

    def norm(self, workload: Floats) -> float:
        """||sqrt(p) W sqrt(q) (I - sqrt(q) sqrt(q)^T)||_tr, whatever the weights p and the law q; the largest is gamma_2 of the workload less known totals."""
        return float(np.linalg.svd(_weighted(workload, self), compute_uv=False).sum())


@dataclass(frozen=True)
class Factorization:
    """A workload W between its bounds: lower <= gamma <= upper, gamma^2 = min max_i (w_i - c_i) G^-1 (w_i - c_i)^T over totals c and G >= 0 with diagonal 1.

    `gram` is the G of the upper bound, shape (k, k); `certificate` proves the lower one.
    """

    gram: Floats
    certificate: Certificate
    lower: float
    upper: float


def check_workload(workload: Floats) -> None:
    """Raises InputError unless this is a finite matrix of queries by at least two symbols, of which some query tells symbols apart."""
    if workload.ndim != 2 or workload.shape[0] < 1 or workload.shape[1] < 2 or not np.isfinite(workload).all():
        raise InputError(f"a workload is a matrix of queries by symbols, finite, with two symbols or more; this one has shape {workload.shape}")
    if not np.any(workload != workload[:, :1]):
        raise InputError("no query of the workload tells two symbols apart: there is nothing to ask")


def factorize(workload: Floats, within: float = 0.01, rounds: int = 400) -> Factorization:
    """Both bounds, to `within` of each other or after so many rounds. O(rounds (m k^2 + k^3)).

    The certificate maximises a concave function of its two sets of weights by multiplicative steps, as in experimental design: each weight is multiplied by
    its part in the trace norm. Source: Lee, Shraibman, Spalek 2008 (gamma_2 by its dual); Silvey, Titterington, Torsney 1978 (the steps).
    """
    check_workload(workload)
    m, k = workload.shape
    certificate = Certificate(np.full(m, 1 / m), np.full(k, 1 / k))
    best: Factorization | None = None
    for _ in range(rounds):
        root, inverse, lower = _roots(workload, certificate)
        scale = np.sqrt(certificate.symbols)
        gram = root / np.outer(scale, scale)
        variances = np.maximum(np.einsum("ij,ij->i", (part := workload * scale) @ inverse, part), 0.0)
        upper = float(np.sqrt(variances.max() * np.diag(gram).max()))
        known = lower if best is None else max(lower, best.lower)
        if best is None or upper < best.upper:
            best = Factorization(gram / np.diag(gram).max(), certificate, known, upper)
        if lower >= known:
            best = Factorization(best.gram, certificate, lower, best.upper)
        if best.upper <= best.lower * (1 + within):
            break
        certificate = Certificate(_normal(certificate.queries * variances), _normal(certificate.symbols * np.maximum(np.diag(gram), 0.0)))
    assert best is not None
    return replace(best, lower=min(best.lower, best.upper))  # where they meet, rounding may make them cross


def local_variance_bound(epsilon: float, workload: Floats, certificate: Certificate) -> float:
    """n times a variance that some query's unbiased estimate has at some law, whatever the epsilon-local randomizers: (C^2 - 1) ||...||_tr^2. Proven.

    For one report per client, also where later randomizers follow from earlier reports. With J the Fisher information of one report about the law q: each
    report's likelihoods lie in [a, e^eps a] and average to 1, so their variance is at most (1 - a)(e^eps a - 1) <= (e^eps - 1)^2 / 4 e^eps = 1 / (C^2 - 1),
    which bounds the trace of sqrt(q) J sqrt(q); then Cramer and Rao, and Cauchy and Schwarz on the trace norm. One bit with public coins attains C^2 in
    place of C^2 - 1, up to the design of its signs.
    """
    return (response_gain(epsilon) ** 2 - 1) * certificate.norm(workload) ** 2


def known_totals(gram: Floats) -> Floats:
    """G^+ without what the total 1 of all shares makes needless: w G0 w^T is the least (w - c) G^+ (w - c)^T over constants c. Shape (k, k)."""
    inverse = np.asarray(np.linalg.pinv(gram, rcond=_SMALL, hermitian=True), dtype=np.float64)
    ones = inverse.sum(axis=0)
    total = float(ones.sum())
    if total > _FLOOR:
        inverse -= np.outer(ones, ones) / total
    return inverse


def _weighted(workload: Floats, certificate: Certificate) -> Floats:
    unit = np.sqrt(certificate.symbols / certificate.symbols.sum())
    rows: Floats = np.sqrt(certificate.queries / certificate.queries.sum())[:, None] * workload * unit
    rows -= np.outer(rows @ unit, unit)
    return rows


def _roots(workload: Floats, certificate: Certificate) -> tuple[Floats, Floats, float]:
    """(M^T M)^(1/2) and its pseudo-inverse for the weighted workload M, and M's trace norm."""
    rows = _weighted(workload, certificate)
    values, vectors = np.linalg.eigh(rows.T @ rows)
    singular = np.sqrt(np.maximum(values, 0.0))
    kept = singular > _SMALL * singular[-1]
    singular, vectors = singular[kept], vectors[:, kept]
    return (vectors * singular) @ vectors.T, (vectors / singular) @ vectors.T, float(singular.sum())


def _normal(weights: Floats) -> Floats:
    floored: Floats = np.maximum(weights / weights.sum(), _FLOOR)
    floored /= floored.sum()
    return floored
