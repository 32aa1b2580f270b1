"""Translations of SQ algorithms: onto a table with missing values, to Boolean queries (limits 7),
and to local clients (KLNRS Lemma 4.3, Theorem 4.8)."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import ClassVar, TypeAlias, overload

import numpy as np

from local_dp.arrays import Counts, Floats, Ints
from local_dp.bounds.response import rr_clients_exact, rr_clients_hoeffding
from local_dp.domains import Domain, levels, symbols
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Game, Nonadaptive, R, translate
from local_dp.loss import split_epsilon
from local_dp.noise import keyed_generator, philox_words, stream_key
from local_dp.oracles.local.asked import Cohort, Local, LocalAlgorithm, LocalQuery, LocalRounds
from local_dp.oracles.statistical.oracles import (
    RealQuery,
    Statistical,
    StatisticalAlgorithm,
    StatisticalPlay,
    StatisticalQuery,
    StatisticalRounds,
)
from local_dp.queries.encoded import Encoding, encoded
from local_dp.queries.examples import Correlation
from local_dp.queries.query import STEPS, Query, written
from local_dp.queries.tables import Question
from local_dp.randomizers.numbers.rounded import OneBitMean
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.tallies import Tally

Questions: TypeAlias = tuple[StatisticalQuery, ...]
LocalQuestions: TypeAlias = tuple[LocalQuery, ...]
Answers: TypeAlias = tuple[float, ...]
Tallies: TypeAlias = tuple[Tally, ...]

LEAST = 0.05  # a share of complete rows that is believed: below it the answers would be noise


@overload
def on_table(algorithm: Statistical[R], encoding: Encoding) -> Statistical[R]: ...
@overload
def on_table(algorithm: StatisticalRounds[R], encoding: Encoding) -> StatisticalRounds[R]: ...
def on_table(algorithm: StatisticalAlgorithm[R], encoding: Encoding) -> StatisticalAlgorithm[R]:
    """The same algorithm with each query put to the encoded record. Preserves adaptivity. An
    incomplete record counts as 0 in every answer."""

    def ask(queries: Questions, before: Questions) -> Questions:
        return tuple(replace(query, query=encoded(encoding, query.query)) for query in queries)

    return translate(algorithm, ask, lambda queries, translation, answers: answers)


def completeness(encoding: Encoding, tolerance: float) -> StatisticalQuery:
    """Asks for the share of complete rows: a question that each of them answers with yes, and the
    others count as 0."""
    name = encoding.shown[0]
    return StatisticalQuery(encoded(encoding, Question(f"{name} == {name}")), tolerance)


@overload
def among_complete(algorithm: Statistical[R], encoding: Encoding) -> Statistical[R]: ...
@overload
def among_complete(algorithm: StatisticalRounds[R], encoding: Encoding) -> StatisticalRounds[R]: ...
def among_complete(
    algorithm: StatisticalAlgorithm[R], encoding: Encoding
) -> StatisticalAlgorithm[R]:
    """`on_table` with expectations over the complete rows alone: its first round also asks for
    their share m, and every answer E[q; complete] is divided by it.

    E[q; complete] / m = E[q | complete]. On an exact oracle that is exact. One more query;
    tolerances grow by 1 / m. Preserves adaptivity.
    """
    table = on_table(algorithm, encoding)
    if isinstance(table, Nonadaptive):
        queries, decode = table.queries, table.decode
        return Nonadaptive(
            (completeness(encoding, queries[0].tolerance), *queries),
            lambda answers: decode(_divide(answers[1:], answers[0])),
        )

    def play() -> StatisticalPlay[R]:
        game, share = Game(table), 0.0
        while game.queries is not None:
            if share:
                answers = yield game.queries
            else:
                whole, *rest = yield (
                    completeness(encoding, game.queries[0].tolerance),
                    *game.queries,
                )
                share, answers = max(whole, LEAST), tuple(rest)
            game.send(_divide(answers, share))
        return game.result

    return Adaptive(play)


def _divide(answers: Answers, share: float) -> Answers:
    return tuple(answer / max(share, LEAST) for answer in answers)


def bit_tolerances(tolerance: float) -> Answers:
    """tau_m = tolerance 2^m / (2M), m = 1..M = ceil(log2(2 / tolerance)): half of the tolerance, in
    equal shares; the cut takes the other."""
    bits = math.ceil(math.log2(2 / tolerance))
    return tuple(tolerance * 2**m / (2 * bits) for m in range(1, bits + 1))


def bit_queries(query: StatisticalQuery) -> Questions:
    """The +1/-1 queries for the binary digits of (g + 1)/2, the most significant first; a query
    that is Boolean already stays as it is."""
    values = query.scale
    if set(values.tolist()) <= {-1.0, 1.0}:
        return (query,)
    tolerances = bit_tolerances(query.tolerance)
    # g = 1 is all ones
    top = 2 ** len(tolerances)
    places = np.minimum(np.floor((values + 1) / 2 * top), top - 1).astype(np.int64)
    digits = [(places >> (len(tolerances) - m)) & 1 for m in range(1, len(tolerances) + 1)]
    pairs = zip(tolerances, digits, strict=True)
    return tuple(
        RealQuery(query.query, tau, tuple((2.0 * digit - 1.0).tolist())) for tau, digit in pairs
    )


def read_bits(answers: Answers) -> float:
    """The mean of g: -1 + 2 (sum 2^-m (v_m + 1)/2 + 2^-M / 2). Its error is at most sum 2^-m tau_m
    + 2^-M (limits 7)."""
    digits = math.fsum(2.0**-m * (answer + 1) / 2 for m, answer in enumerate(answers, start=1))
    return -1 + 2 * (digits + 2.0 ** -len(answers) / 2)


@overload
def boolean_from_real(algorithm: Statistical[R]) -> Statistical[R]: ...
@overload
def boolean_from_real(algorithm: StatisticalRounds[R]) -> StatisticalRounds[R]: ...
def boolean_from_real(algorithm: StatisticalAlgorithm[R]) -> StatisticalAlgorithm[R]:
    """The same algorithm with +1/-1 queries only: M = ceil(log2(2/tau)) of them, asked together,
    for each real one of tolerance tau.

    Every legal answer to the bits, also an adversary's, makes a legal answer to the real query.
    Preserves adaptivity. Between local and SQ algorithms it is not needed: randomized response
    takes real queries at no loss. Source: Bshouty, Feldman 2002; limits 7.
    """
    return translate(
        algorithm,
        lambda queries, before: tuple(bit for query in queries for bit in bit_queries(query)),
        _read,
    )


def _read(queries: Questions, translation: Questions, answers: Answers) -> Answers:
    """Each query's own answers, put together."""
    left = iter(answers)
    means = []
    for query in queries:
        bits = bit_queries(query)
        digits = tuple(islice(left, len(bits)))
        means.append(digits[0] if bits == (query,) else read_bits(digits))
    return tuple(means)


ClientsFor: TypeAlias = Callable[[StatisticalQuery], int]


def enough_clients(epsilon: float, beta_each: float) -> ClientsFor:
    """How many fresh clients a query's tolerance needs, except with probability `beta_each` (give
    beta / t for t queries)."""
    return lambda query: rr_clients_hoeffding(epsilon, query.tolerance, beta_each)


def tight_clients(epsilon: float, beta_each: float) -> ClientsFor:
    """The same by the exact binomial law (`bounds.response.rr_clients_exact`), about half of
    `enough_clients`."""
    return lambda query: rr_clients_exact(epsilon, query.tolerance, beta_each)


@dataclass(frozen=True)
class Rescaled(Query):
    """A real function of another query's value, as a level: `places` holds one lattice point for
    each value of that query's domain."""

    name = "rescaled"
    domain: ClassVar[Domain] = levels(STEPS)
    query: Query
    places: tuple[float, ...]

    def __call__(self, records: Records) -> Floats:
        values = np.rint(self.query.values(records)).astype(np.int64) - self.query.domain.low
        return np.array(self.places)[values]


def put_to_records(query: StatisticalQuery) -> Query:
    """What a record is asked: the query itself, or a real function of it."""
    if not isinstance(query, RealQuery):
        return query.query
    return Rescaled(query.query, written((query.scale + 1) / 2 * STEPS))


def local_query(query: StatisticalQuery, epsilon: float, cohort: Cohort) -> LocalQuery:
    """The statistical query put to a cohort under the minimax one-bit randomizer of its values."""
    question = put_to_records(query)
    randomizer: Randomizer = (
        OneBitMean(epsilon, steps=question.domain.high)
        if question.domain.kind == "levels"
        else BinaryRR(epsilon)
    )
    return LocalQuery(question, randomizer, cohort)


def read(queries: Questions, questions: LocalQuestions, tallies: Tallies) -> Answers:
    """The answers to statistical queries, on the [-1, 1] scale."""
    return tuple((2 * estimates(questions, tallies) - 1).tolist())


def estimates(questions: LocalQuestions, tallies: Tallies) -> Floats:
    """The estimated share or mean of each question, in [0, 1]."""
    pairs = zip(questions, tallies, strict=True)
    return np.array([float(query.randomizer.estimate(tally).value) for query, tally in pairs])


@overload
def local_from_sq(
    algorithm: Statistical[R], epsilon: float, clients_for: ClientsFor
) -> Local[R]: ...
@overload
def local_from_sq(
    algorithm: StatisticalRounds[R], epsilon: float, clients_for: ClientsFor
) -> LocalRounds[R]: ...
def local_from_sq(
    algorithm: StatisticalAlgorithm[R], epsilon: float, clients_for: ClientsFor
) -> LocalAlgorithm[R]:
    """The same algorithm with every statistical query answered by fresh clients under randomized
    response. Its type keeps the adaptivity.

    Privacy: each client answers at most once, with epsilon. Utility: with
    `tight_clients(epsilon, beta / t)` all of t answers are within their tolerances except with
    probability beta. Source: KLNRS Lemma 4.3 and Theorem 4.8; Laplace noise needs twice the clients
    or more (limits 1).
    """

    def ask(queries: Questions, before: LocalQuestions) -> LocalQuestions:
        questions = []
        start = before[-1].cohort.stop if before else 0
        for query in queries:
            cohort = Cohort(start, start + clients_for(query))
            questions.append(local_query(query, epsilon, cohort))
            start = cohort.stop
        return tuple(questions)

    return translate(algorithm, ask, read)


@overload
def split_budget(
    algorithm: Statistical[R], epsilon: float, clients: int, queries: int
) -> Local[R]: ...
@overload
def split_budget(
    algorithm: StatisticalRounds[R], epsilon: float, clients: int, queries: int
) -> LocalRounds[R]: ...
def split_budget(
    algorithm: StatisticalAlgorithm[R], epsilon: float, clients: int, queries: int
) -> LocalAlgorithm[R]:
    """The same algorithm with every statistical query answered by every client with epsilon /
    `queries`. Its type keeps the adaptivity.

    Privacy: epsilon in all, by composition (KLNRS Claim 2.1). Utility: variance C(eps/t)^2 / n a
    query, t times worse than fresh clients at small epsilon (`bounds.response.split_budget_cost`):
    a baseline. Raises InputError when the algorithm asks more than `queries`.
    """
    each = split_epsilon(epsilon, queries)
    everybody = Cohort(0, clients)

    def ask(batch: Questions, before: LocalQuestions) -> LocalQuestions:
        if len(before) + len(batch) > queries:
            raise InputError(
                f"epsilon is split over {queries} queries and the algorithm asks more; split it "
                "over as many as it may ask"
            )
        return tuple(local_query(query, each, everybody) for query in batch)

    return translate(algorithm, ask, read)


def one_random_query(
    algorithm: Statistical[R], epsilon: float, clients: int, seed: int
) -> Local[R]:
    """The same algorithm with every client answering one of the t queries, drawn at random by a
    public coin.

    Cohorts of multinomial sizes stand for the draws: clients are independent draws of one
    distribution, so the law is the same. Privacy: epsilon. Utility: variance about t C^2 / n a
    query, that of fresh clients up to the spread of the sizes. Raises InputError if a query gets no
    client.
    """
    t = len(algorithm.queries)
    sizes = keyed_generator("one-random-query", seed).multinomial(clients, np.full(t, 1 / t))
    if sizes.min() < 1:
        raise InputError(
            f"{clients} clients drew one of {t} queries each, and one query was drawn by nobody; "
            "use more clients"
        )
    counts = iter(sizes.tolist())
    return local_from_sq(algorithm, epsilon, lambda query: next(counts))


def from_own_bits(
    algorithm: Statistical[R], public: Records, secret: str, epsilon: float
) -> Local[R]:
    """The same algorithm on a table of which everything but one column of bits is public: client i
    reports the bit of row i once, by randomized response.

    The server knows what row i would answer with either bit, and mixes the two answers by its
    estimate of the bit. Privacy: epsilon for the bit, whatever the number of queries. Utility:
    unbiased for the table; n rows that all matter give a standard error of C / sqrt(n) or less on
    the [-1, 1] scale, C = (e^eps + 1) / (e^eps - 1). `public` needs its `secret` column for the
    name alone. Source: the best any local algorithm can do for one bit a client (limits 1).
    """
    n = len(public)
    questions = tuple(
        LocalQuery(Correlation((), secret), BinaryRR(epsilon=epsilon), Cohort(i, i + 1))
        for i in range(n)
    )
    zero, one = (
        Records({**public.columns, secret: np.full(n, bit, dtype=np.uint8)}) for bit in (0, 1)
    )

    def read(queries: Questions, questions: LocalQuestions, tallies: Tallies) -> Answers:
        shares = estimates(questions, tallies)
        ends = (
            tuple(query.numerators(table) / query.span for table in (zero, one))
            for query in queries
        )
        return tuple(float(np.mean(low + (high - low) * shares)) for low, high in ends)

    return translate(algorithm, lambda queries, before: questions, read)


@dataclass(frozen=True)
class SignOfAll(Query):
    """1 where the sum of all yes/no queries, as +1 and -1, each under a public sign of this
    client's, is positive; an odd number of terms is never 0."""

    name = "sign-of-all"
    domain: ClassVar[Domain] = symbols(2)
    queries: Questions
    seed: int
    client: int

    @property
    def signs(self) -> Counts:
        """+1 or -1 for each query, and where these are even in number for a last term that is
        always +1, shape (t,) or (t + 1,)."""
        terms = len(self.queries) | 1
        words = philox_words(
            stream_key("one-sign-each", self.seed, self.client), 0, -(-terms // 64)
        )
        bits = np.unpackbits(words.view(np.uint8))[:terms]
        return np.asarray(2 * bits.astype(np.int64) - 1)

    def __call__(self, records: Records) -> Ints:
        signs = self.signs
        total = np.full(len(records), 0 if len(self.queries) % 2 else signs[-1], dtype=np.int64)
        for sign, query in zip(signs.tolist(), self.queries, strict=False):
            total += sign * query.numerators(records)
        return (total > 0).view(np.uint8)


def sign_correlation(terms: int) -> float:
    """E[z_j sign(<z, v>)] v_j for fair signs z, any v of +1 and -1, and every j: C(t - 1, (t - 1) /
    2) / 2^(t - 1) for an odd t, about sqrt(2 / (pi t))."""
    half = terms // 2
    log_ways = math.lgamma(2 * half + 1) - 2 * math.lgamma(half + 1)
    return math.exp(log_ways - 2 * half * math.log(2))


def one_sign_each(algorithm: Statistical[R], epsilon: float, clients: int, seed: int) -> Local[R]:
    """The same algorithm with one sign from each client: of the sum of its answers to all t yes/no
    queries, under its own random signs (public coins).

    Privacy: epsilon. Utility: unbiased for the clients' own table, standard error about C sqrt(pi t
    / (2 n)) for every query on the [-1, 1] scale. Raises InputError without clients, or for another
    query. Source: Duchi, Jordan, Wainwright 2018, with a report in place of the vector.
    """
    if clients < 1:
        raise InputError(f"clients is {clients}; give 1 or more")
    if any(query.span != 1 for query in algorithm.queries):
        raise InputError(
            "one sign each takes yes/no queries alone; `boolean_from_real` turns others into such"
        )
    signs = [SignOfAll(algorithm.queries, seed, client) for client in range(clients)]
    questions = tuple(
        LocalQuery(query, BinaryRR(epsilon=epsilon), Cohort(client, client + 1))
        for client, query in enumerate(signs)
    )

    def read(queries: Questions, questions: LocalQuestions, tallies: Tallies) -> Answers:
        sums = np.zeros(len(queries))
        for share, sign in zip(estimates(questions, tallies), signs, strict=True):
            sums += (2 * share - 1) * sign.signs[: len(queries)]
        return tuple((sums / (clients * sign_correlation(len(queries) | 1))).tolist())

    return translate(algorithm, lambda queries, before: questions, read)
