"""Real-valued statistical queries from Boolean ones: the remark of KLNRS Section 4.1 after Bshouty and Feldman, with its constants (limits 7)."""

import math
from itertools import islice
from typing import overload

import numpy as np

from local_dp.interaction import R, translate
from local_dp.oracles.statistical.oracles import RealQuery, Statistical, StatisticalAlgorithm, StatisticalQuery, StatisticalRounds, on_domain


def bits_needed(tolerance: float) -> int:
    """M = ceil(log2(2 / tolerance)): cutting (g + 1)/2 after M binary digits leaves half of the tolerance for the answers."""
    return math.ceil(math.log2(2 / tolerance))


def bit_tolerances(tolerance: float) -> tuple[float, ...]:
    """tau_m = tolerance 2^m / (2M) for m = 1..M: every bit may spend an equal share of tolerance/2, since bit m counts 2^-m."""
    bits = bits_needed(tolerance)
    return tuple(tolerance * 2**m / (2 * bits) for m in range(1, bits + 1))


def bit_queries(query: StatisticalQuery) -> tuple[StatisticalQuery, ...]:
    """The +1/-1 queries for the binary digits of (g + 1)/2, the most significant first; a query that is Boolean already stays as it is."""
    values = on_domain(query)
    if set(values.tolist()) <= {-1.0, 1.0}:
        return (query,)
    tolerances = bit_tolerances(query.tolerance)
    places = np.minimum(np.floor((values + 1) / 2 * 2 ** len(tolerances)), 2 ** len(tolerances) - 1).astype(np.int64)  # g = 1 is all ones
    digits = [(places >> (len(tolerances) - m)) & 1 for m in range(1, len(tolerances) + 1)]
    return tuple(RealQuery(query.query, tau, tuple((2.0 * digit - 1.0).tolist())) for tau, digit in zip(tolerances, digits, strict=True))


def read_bits(answers: tuple[float, ...]) -> float:
    """The mean of g: -1 + 2 (sum 2^-m (v_m + 1)/2 + 2^-M / 2). Its error is at most sum 2^-m tau_m + 2^-M (limits 7)."""
    digits = math.fsum(2.0**-m * (answer + 1) / 2 for m, answer in enumerate(answers, start=1))
    return -1 + 2 * (digits + 2.0 ** -len(answers) / 2)


@overload
def boolean_from_real(algorithm: Statistical[R]) -> Statistical[R]: ...
@overload
def boolean_from_real(algorithm: StatisticalRounds[R]) -> StatisticalRounds[R]: ...
def boolean_from_real(algorithm: StatisticalAlgorithm[R]) -> StatisticalAlgorithm[R]:
    """The same algorithm with +1/-1 queries only: M = ceil(log2(2/tau)) of them, asked together, for each real one of tolerance tau.

    Every legal answer to the bits, also an adversary's, makes a legal answer to the real query. Preserves adaptivity. Between local and SQ algorithms it is
    not needed: randomized response takes real queries at no loss. Source: Bshouty, Feldman 2002; limits 7.
    """
    return translate(algorithm, lambda queries, before: tuple(bit for query in queries for bit in bit_queries(query)), _read)


def _read(queries: tuple[StatisticalQuery, ...], asked: tuple[StatisticalQuery, ...], answers: tuple[float, ...]) -> tuple[float, ...]:
    """Each query's own answers, put together."""
    left = iter(answers)
    means = []
    for query in queries:
        bits = bit_queries(query)
        digits = tuple(islice(left, len(bits)))
        means.append(digits[0] if bits == (query,) else read_bits(digits))
    return tuple(means)
