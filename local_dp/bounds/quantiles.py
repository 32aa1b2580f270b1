"""Prefix sums, workloads and quantiles: the error of the best known factorizations and of a
search."""

import math
from dataclasses import dataclass, replace

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.response import check_tolerance, response_gain
from local_dp.bounds.tails import normal_quantile
from local_dp.errors import InputError

# of a weight, so that a symbol or a query that does not matter is left without dividing by 0
_FLOOR = 1e-12
_ROUNDS = 400
_SMALL = 1e-7  # singular values below this part of the largest are none


@dataclass(frozen=True)
class Certificate:
    """Weights of the queries, shape (m,), and a law of the symbols, shape (k,): a lower bound on
    the factorization norm that anybody can check."""

    queries: Floats
    symbols: Floats

    def norm(self, workload: Floats) -> float:
        """||sqrt(p) W sqrt(q) (I - sqrt(q) sqrt(q)^T)||_tr, whatever the weights p and the law q;
        the largest is gamma_2 of the workload less known totals."""
        return float(np.linalg.svd(_weighted(workload, self), compute_uv=False).sum())


@dataclass(frozen=True)
class Factorization:
    """A workload W between its bounds: lower <= gamma <= upper, gamma^2 = min max_i (w_i - c_i)
    G^-1 (w_i - c_i)^T over totals c and G >= 0 with diagonal 1.

    `gram` is the G of the upper bound, shape (k, k); `certificate` proves the lower one.
    """

    gram: Floats
    certificate: Certificate
    lower: float
    upper: float


def check_workload(workload: Floats) -> None:
    """Raises InputError unless this is a finite matrix of queries by at least two symbols, of which
    some query distinguishes symbols."""
    if (
        workload.ndim != 2
        or workload.shape[0] < 1
        or workload.shape[1] < 2
        or not np.isfinite(workload).all()
    ):
        raise InputError(
            "a workload is a matrix of queries by symbols, finite, with two symbols or more; this "
            f"one has shape {workload.shape}"
        )
    if not np.any(workload != workload[:, :1]):
        raise InputError(
            "no query of the workload distinguishes two symbols: there is nothing to ask"
        )


def factorize(workload: Floats, within: float = 0.01) -> Factorization:
    """Both bounds, to `within` of each other or after 400 rounds of O(m k^2 + k^3).

    The certificate maximises a concave function of its two sets of weights by multiplicative steps,
    as in experimental design: each weight is multiplied by its part in the trace norm. Source: Lee,
    Shraibman, Spalek 2008 (gamma_2 by its dual); Silvey, Titterington, Torsney 1978 (the steps).
    """
    check_workload(workload)
    m, k = workload.shape
    certificate = Certificate(np.full(m, 1 / m), np.full(k, 1 / k))
    best: Factorization | None = None
    for _ in range(_ROUNDS):
        root, inverse, lower = _roots(workload, certificate)
        scale = np.sqrt(certificate.symbols)
        gram = root / np.outer(scale, scale)
        variances = np.maximum(
            np.einsum("ij,ij->i", (part := workload * scale) @ inverse, part), 0.0
        )
        upper = float(np.sqrt(variances.max() * np.diag(gram).max()))
        least = lower if best is None else max(lower, best.lower)
        if best is None or upper < best.upper:
            best = Factorization(gram / np.diag(gram).max(), certificate, least, upper)
        if lower >= least:
            best = Factorization(best.gram, certificate, lower, best.upper)
        if best.upper <= best.lower * (1 + within):
            break
        shares = certificate.symbols * np.maximum(np.diag(gram), 0.0)
        certificate = Certificate(_normal(certificate.queries * variances), _normal(shares))
    assert best is not None
    # where they meet, rounding may make them cross
    return replace(best, lower=min(best.lower, best.upper))


def local_variance_bound(epsilon: float, workload: Floats, certificate: Certificate) -> float:
    """n times a variance that some query's unbiased estimate has at some law, whatever the
    epsilon-local randomizers: (C^2 - 1) ||...||_tr^2. Proven.

    For one report per client, also where later randomizers follow from earlier reports. One
    report's Fisher information J of the law q has a trace of sqrt(q) J sqrt(q) of at most 1 / (C^2
    - 1); then Cramer and Rao, and Cauchy and Schwarz. One bit with public coins attains C^2, up to
    the design of its signs.
    """
    return (response_gain(epsilon) ** 2 - 1) * certificate.norm(workload) ** 2


def one_bit_variance_bound(epsilon: float, workload: Floats, certificate: Certificate) -> float:
    """The same for reports of one bit, with public coins: C^2 ||...||_tr^2. Proven.

    The chance of a one lies between l and u, so its variance over q is at most (u - m) (m - l), m
    the mean. Over m (1 - m) that is at most 1 / C^2, the bound on the trace: every private pair (l,
    u) is a garbled randomized response.
    """
    return (response_gain(epsilon) * certificate.norm(workload)) ** 2


def known_totals(gram: Floats) -> Floats:
    """G^+ without what the total 1 of all shares makes needless: w G0 w^T is the least (w - c) G^+
    (w - c)^T over constants c. Shape (k, k)."""
    inverse = np.asarray(np.linalg.pinv(gram, rcond=_SMALL, hermitian=True), dtype=np.float64)
    ones = inverse.sum(axis=0)
    total = float(ones.sum())
    if total > _FLOOR:
        inverse -= np.outer(ones, ones) / total
    return inverse


def _weighted(workload: Floats, certificate: Certificate) -> Floats:
    unit = np.sqrt(certificate.symbols / certificate.symbols.sum())
    rows: Floats = (
        np.sqrt(certificate.queries / certificate.queries.sum())[:, None] * workload * unit
    )
    rows -= np.outer(rows @ unit, unit)
    return rows


def _roots(workload: Floats, certificate: Certificate) -> tuple[Floats, Floats, float]:
    """(M^T M)^(1/2) and its pseudo-inverse for the weighted workload M, and M's trace norm."""
    rows = _weighted(workload, certificate)
    values, vectors = np.linalg.eigh(rows.T @ rows)
    singular = np.sqrt(np.maximum(values, 0.0))
    large = singular > _SMALL * singular[-1]
    singular = singular[large]
    vectors = vectors[:, large]
    return (vectors * singular) @ vectors.T, (vectors / singular) @ vectors.T, float(singular.sum())


def _normal(weights: Floats) -> Floats:
    law: Floats = np.maximum(weights / weights.sum(), _FLOOR)
    law /= law.sum()
    return law


def prefix_gamma(k: int) -> float:
    """The factorization norm gamma_2 of the k prefix sums less their known half-total, for k a
    power of two: (1/k) sum_m 1 / (2 sin((2 m + 1) pi / 2 k)).

    The matrix of +-1/2 is skew-circulant, so this is the mean of its singular values. By one-bit
    reports and the constant 1/2 some prefix sum has variance at least C^2 gamma_2^2 / n less 1/4n;
    other constants do better, by 1.25 times at k = 64 and 1.20 at 256: `factorize`.
    """
    if k < 1 or k & (k - 1):
        raise InputError(f"k is {k}; give a power of two")
    return sum(1 / (2 * math.sin((2 * m + 1) * math.pi / (2 * k))) for m in range(k)) / k


def one_query_clients(epsilon: float, queries: int, tau: float, beta: float) -> int:
    """n for which one random yes/no query a client answers all of `queries` shares within tau,
    except with probability beta: Q z_{beta/2Q}^2 C^2 / 4 tau^2."""
    check_tolerance(tau)
    deviation = normal_quantile(beta / (2 * queries)) * response_gain(epsilon)
    return math.ceil(queries * (deviation / (2 * tau)) ** 2)


def prefix_clients(epsilon: float, k: int, tau: float, beta: float, factor: float = 1.0) -> int:
    """n for which all k prefix sums are within tau, except with probability beta, at `factor` times
    the least variance C^2 gamma_2^2 (limits 8.5)."""
    check_tolerance(tau)
    variance = (
        factor * (response_gain(epsilon) * prefix_gamma(1 << max(0, k - 1).bit_length())) ** 2
    )
    return math.ceil(variance * (normal_quantile(beta / (2 * k)) / tau) ** 2)


def toeplitz_gamma(k: int) -> float:
    """The factorization norm of the square-root Toeplitz factors of the k plain prefix sums: sum
    over j < k of (binom(2 j, j) / 4^j)^2 (limits 8.5)."""
    total, coefficient = 0.0, 1.0
    for place in range(1, k + 1):
        total += coefficient**2
        coefficient *= (2 * place - 1) / (2 * place)
    return total


# rank errors in units of the standard error of the prefix sums, the largest measured
# (docs/guide.md)
ONE_ROUND = 0.9
# The law of the place that a search ends at, fitted, for its steps depend on one another
# (docs/guide.md): `tests/support/theory/search_law.py` measures it.
# within how many standard errors 95 % of the places lie where cells are so heavy that the same few
# thresholds are asked again and again
POOLED = 3.18
APART = 1.0  # how many more where cells are so fine that no threshold is asked twice
MERGED = 2.0  # how fast the one becomes the other, with the mass of a cell in standard errors
TAIL = 0.23  # the reach grows with beta^-TAIL: heavier than normal, for early rounds mislead
GROWTH = 1.4  # how much larger each round of a search is than the one before
SPARE_ROUNDS = 3  # rounds beyond those that would halve the symbols to one


def one_round_error(epsilon: float, v: float, quantiles: int, clients: int, beta: float) -> float:
    """The rank error that all quantiles keep, except with probability beta: z_{beta/2Q} C sqrt(v /
    n), v = n/C^2 times the variance of a prefix sum."""
    _check(quantiles)
    return (
        ONE_ROUND
        * normal_quantile(beta / (2 * quantiles))
        * response_gain(epsilon)
        * math.sqrt(v / clients)
    )


def search_reach(beta: float, coarseness: float = 0.0) -> float:
    """Within how many standard errors of one threshold question the place found by a search lies,
    except with probability beta: A(c) (0.05 / beta)^TAIL.

    A(c) = POOLED + APART / (1 + MERGED c), c the coarseness: the mass of the quantile's cell in
    these standard errors. Largest at 0, on the finest grids.
    """
    return (POOLED + APART / (1 + MERGED * coarseness)) * math.pow(0.05 / beta, TAIL)


def search_failure(reach: float, coarseness: float = 0.0) -> float:
    """The probability that the place lies further than that: the inverse of `search_reach`."""
    return min(1.0, 0.05 * math.pow(search_reach(0.05, coarseness) / reach, 1 / TAIL))


def search_error(epsilon: float, quantiles: int, clients: int, beta: float) -> float:
    """The rank error that all quantiles keep in a search, each with n / Q clients, on any grid:
    `search_reach` times C sqrt(Q / 4n).

    No sequentially interactive protocol has less than a normal error of C sqrt(Q / 4n) (Duchi,
    Jordan, Wainwright 2013).
    """
    _check(quantiles)
    each = -math.expm1(math.log1p(-beta) / quantiles)
    return search_reach(each) * response_gain(epsilon) * math.sqrt(quantiles / (4 * clients))


def prefers_search(v: float, quantiles: int, beta: float) -> bool:
    """True if the search has the smaller rank error; so it has then, whatever epsilon and the
    number of clients."""
    return search_error(1.0, quantiles, 1, beta) < one_round_error(1.0, v, quantiles, 1, beta)


def quantile_clients(
    epsilon: float, v: float, quantiles: int, tolerance: float, beta: float
) -> int:
    """n for which every rank error is at most `tolerance`, except with probability beta, in one
    round where `v` is finite."""
    check_tolerance(tolerance)
    error = (
        search_error(epsilon, quantiles, 1, beta)
        if math.isinf(v)
        else one_round_error(epsilon, v, quantiles, 1, beta)
    )
    return math.ceil((error / tolerance) ** 2)


def search_rounds(symbols: int, clients: float, least: int) -> int:
    """How many rounds a search takes whose first asks at least `least` of a quantile's `clients`,
    round j in proportion to GROWTH^j; 0 for too few."""
    for rounds in range(max(1, symbols - 1).bit_length() + SPARE_ROUNDS, 0, -1):
        if clients * (GROWTH - 1) / (GROWTH**rounds - 1) >= least:
            return rounds
    return 0


def _check(quantiles: int) -> None:
    if quantiles < 1:
        raise InputError("there is no quantile to estimate; give at least one")
