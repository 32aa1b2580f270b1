"""SQ algorithms translated: onto a table with missing values, and from real-valued to Boolean queries (limits 7)."""

import math
from dataclasses import replace
from itertools import islice
from typing import overload

import numpy as np

from local_dp.interaction import Adaptive, Game, Nonadaptive, R, translate
from local_dp.oracles.statistical.oracles import RealQuery, Statistical, StatisticalAlgorithm, StatisticalPlay, StatisticalQuery, StatisticalRounds, on_domain
from local_dp.queries.encoded import Encoding, encoded
from local_dp.queries.tables import Question

LEAST = 0.05  # a share of complete rows that is believed: below it the answers would be noise


@overload
def on_table(algorithm: Statistical[R], encoding: Encoding) -> Statistical[R]: ...
@overload
def on_table(algorithm: StatisticalRounds[R], encoding: Encoding) -> StatisticalRounds[R]: ...
def on_table(algorithm: StatisticalAlgorithm[R], encoding: Encoding) -> StatisticalAlgorithm[R]:
    """The same algorithm with each query put to the encoded record. Preserves adaptivity. An incomplete record counts as 0 in every answer."""

    def ask(queries: tuple[StatisticalQuery, ...], before: tuple[StatisticalQuery, ...]) -> tuple[StatisticalQuery, ...]:
        return tuple(replace(query, query=encoded(encoding, query.query)) for query in queries)

    return translate(algorithm, ask, lambda queries, asked, answers: answers)


def completeness(encoding: Encoding, tolerance: float) -> StatisticalQuery:
    """Asks for the share of complete rows: a question that each of them answers with yes, and the others count as 0."""
    name = encoding.shown[0]
    return StatisticalQuery(encoded(encoding, Question(f"{name} == {name}")), tolerance)


@overload
def among_complete(algorithm: Statistical[R], encoding: Encoding) -> Statistical[R]: ...
@overload
def among_complete(algorithm: StatisticalRounds[R], encoding: Encoding) -> StatisticalRounds[R]: ...
def among_complete(algorithm: StatisticalAlgorithm[R], encoding: Encoding) -> StatisticalAlgorithm[R]:
    """`on_table` with expectations over the complete rows alone: its first round also asks for their share m, and every answer E[q; complete] is divided by it.

    E[q; complete] / m = E[q | complete]. On an exact oracle that is exact. One more query; tolerances grow by 1 / m. Preserves adaptivity.
    """
    asked = on_table(algorithm, encoding)
    if isinstance(asked, Nonadaptive):
        queries, decode = asked.queries, asked.decode
        return Nonadaptive((completeness(encoding, queries[0].tolerance), *queries), lambda answers: decode(_divided(answers[1:], answers[0])))

    def play() -> StatisticalPlay[R]:
        game, share = Game(asked), 0.0
        while game.queries is not None:
            if share:
                answers = yield game.queries
            else:
                whole, *rest = yield (completeness(encoding, game.queries[0].tolerance), *game.queries)
                share, answers = max(whole, LEAST), tuple(rest)
            game.send(_divided(answers, share))
        return game.result

    return Adaptive(play)


def _divided(answers: tuple[float, ...], share: float) -> tuple[float, ...]:
    return tuple(answer / max(share, LEAST) for answer in answers)


def bit_tolerances(tolerance: float) -> tuple[float, ...]:
    """tau_m = tolerance 2^m / (2M) for m = 1..M: every bit may spend an equal share of tolerance/2, since bit m counts 2^-m.

    M = ceil(log2(2 / tolerance)): cutting (g + 1)/2 after M binary digits leaves half of the tolerance for the answers.
    """
    bits = math.ceil(math.log2(2 / tolerance))
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
