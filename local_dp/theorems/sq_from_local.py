"""SQ algorithms from local algorithms: KLNRS Lemmas 4.4 and 4.5 and the other direction of Theorem
4.8.

A report has the law of R(z), z from the distribution, without access to a record: candidates come
from R(u0) for a fixed u0, and a statistical query about each sets its probability of acceptance
(`likelihood`).
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter
from typing import TypeAlias, overload

import numpy as np

from local_dp.arrays import Words
from local_dp.bounds.simulations import relative_error
from local_dp.checks import check_share
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive, R, expand, translate
from local_dp.noise import keyed_generator
from local_dp.oracles.local.asked import Cohort, Local, LocalAlgorithm, LocalQuery, LocalRounds
from local_dp.oracles.statistical.oracles import (
    Statistical,
    StatisticalAlgorithm,
    StatisticalPlay,
    StatisticalRounds,
)
from local_dp.queries.query import Query
from local_dp.randomizers.finite import FiniteChannel
from local_dp.tallies import Tally
from local_dp.theorems.from_sq import Answers, LocalQuestions, Questions, Tallies
from local_dp.theorems.likelihood import (
    Observed,
    acceptance,
    ceiling_after,
    likelihood_query,
    mean_ratio,
    spent,
    transparent,
)

Kinds: TypeAlias = tuple[tuple[Query, FiniteChannel], ...]  # what one client is asked in one round


@dataclass(frozen=True)
class _Transcript:
    """One client's replies so far, and the estimated mean of the product of their likelihood
    ratios."""

    replies: tuple[Observed, ...] = ()
    mean: float = 1.0

    def ceiling(self, epsilon: float, tolerance: float) -> float:
        """The acceptance constant of further replies worth `epsilon` together."""
        growth = math.exp(epsilon)
        if not self.replies:
            return growth
        before = spent(self.replies)
        error = relative_error(before, tolerance)
        if error >= 1:
            raise InputError(
                f"tolerance {tolerance:g} is too coarse to condition on replies worth epsilon "
                f"{before:g}; give one below {tolerance / error:.3g}"
            )
        return ceiling_after(growth, relative_error(before + epsilon, tolerance), error)

    def accepts(
        self, candidate: tuple[Observed, ...], answer: float, tolerance: float, coin: float
    ) -> tuple[bool, "_Transcript"]:
        """Whether a candidate for the client's replies of a round is accepted, and the transcript
        it would make."""
        replies = (*self.replies, *candidate)
        mean = mean_ratio(answer, math.exp(spent(replies)))
        return coin < acceptance(
            mean / self.mean, self.ceiling(spent(candidate), tolerance)
        ), _Transcript(replies, mean)


def _reports(
    randomizer: FiniteChannel, cells: list[int], generator: np.random.Generator
) -> list[int]:
    """One draw of R(u0) in each of these cells."""
    dtype = np.dtype(f"u{randomizer.width // 8}")
    words: Words = generator.integers(
        0, randomizer.total - 1, len(cells), dtype=dtype.type, endpoint=True
    )
    lowest = np.full(len(cells), randomizer.domain.low)
    coins = np.array(cells, dtype=np.uint64)
    draws: list[int] = randomizer.respond(lowest, words, coins).tolist()
    return draws


def _candidates(
    groups: list[tuple[Kinds, list[list[int]]]], generator: np.random.Generator
) -> Iterator[tuple[Observed, ...]]:
    """Share by share, a candidate for each client: one draw of R(u0) for each of what it is asked,
    in each of the clients' cells."""
    parts = [
        (randomizer, own)
        for kinds, cells in groups
        for (_, randomizer), own in zip(kinds, cells, strict=True)
    ]
    reports: list[int] = []
    # neighbours in one go: the words are the same as one by one
    for randomizer, alike in groupby(parts, key=itemgetter(0)):
        reports += _reports(randomizer, [cell for _, own in alike for cell in own], generator)
    report = iter(reports)
    for kinds, cells in groups:
        columns = [
            [Observed(query, randomizer, cell, next(report)) for cell in own]
            for (query, randomizer), own in zip(kinds, cells, strict=True)
        ]
        yield from zip(*columns, strict=True)


def _cells(kinds: Kinds, clients: int, generator: np.random.Generator) -> list[list[int]]:
    """The public-coin cell of each client, for each of what it is asked."""
    return [
        generator.integers(0, randomizer.cells, clients, dtype=np.uint64).tolist()
        for _, randomizer in kinds
    ]


def _tally(query: LocalQuery, replies: list[Observed]) -> Tally:
    randomizer = query.randomizer
    reports = np.array([reply.report for reply in replies], dtype=randomizer.report_dtype)
    return randomizer.tally(reports, np.array([reply.cell for reply in replies], dtype=np.uint64))


def _shares(queries: LocalQuestions) -> list[tuple[Cohort, tuple[int, ...]]]:
    """The clients in cohorts that are asked the same, ascending, each with the places of its
    queries in the round."""
    begins: dict[int, set[int]] = defaultdict(set)
    ends: dict[int, set[int]] = defaultdict(set)
    for place, query in enumerate(queries):
        begins[query.cohort.start].add(place)
        ends[query.cohort.stop].add(place)
    shares, open_now = [], set[int]()
    # a sweep: thousands of cohorts of one client each are common
    for start, stop in pairwise(sorted({*begins, *ends})):
        open_now = (open_now - ends[start]) | begins[start]
        if open_now:
            shares.append((Cohort(start, stop), tuple(sorted(open_now))))
    return shares


def _kinds(queries: LocalQuestions, asks: tuple[int, ...]) -> Kinds:
    return tuple((queries[ask].query, transparent(queries[ask].randomizer)) for ask in asks)


@overload
def sq_from_local(
    algorithm: Local[R], tolerance: float, trials: int, seed: int
) -> Statistical[R]: ...
@overload
def sq_from_local(
    algorithm: LocalRounds[R], tolerance: float, trials: int, seed: int
) -> StatisticalRounds[R]: ...
def sq_from_local(
    algorithm: LocalAlgorithm[R], tolerance: float, trials: int, seed: int
) -> StatisticalAlgorithm[R]:
    """The same algorithm with every report drawn by statistical queries of this `tolerance`, for
    clients that are independent draws of the distribution.

    Non-interactive: all `trials` candidates of every draw are made, and asked about, before any
    answer: t * trials queries. Interactive: one candidate a time until one is accepted, about t
    e^eps queries; a client's later replies are drawn conditionally on its earlier ones. A draw of
    which no candidate is accepted keeps the last one: probability
    `bounds.simulations.miss_probability(epsilon, trials)` each. Several replies of one client in a
    round are one candidate, drawn and accepted together. The transcript of t reports is within t
    `bounds.simulations.draw_distance` (interactive: `conditional_draw_distance`), and the misses,
    of the real one. `bounds.simulations.enough_trials` finds the trials for a wanted number of
    misses. The mean over earlier replies that Lemma 4.5 divides by was already asked for
    when the last of them was accepted; it is not asked again. Cost: one Python object a query, so
    thousands of clients. Source: KLNRS Lemmas 4.4, 4.5; limits 6.
    """
    check_share("the tolerance", tolerance)
    if trials < 1:
        raise InputError(
            f"{trials} trials a draw; give 1 or more, for example bounds.simulations.enough_trials"
        )
    if isinstance(algorithm, Nonadaptive):
        return _nonadaptive(algorithm, tolerance, trials, seed)

    def begin() -> Callable[[LocalQuestions], StatisticalPlay[Tallies]]:
        generator = keyed_generator("sq-from-local", seed)
        transcripts = dict[int, _Transcript]()
        return lambda queries: _round(queries, transcripts, tolerance, trials, generator)

    return expand(algorithm, begin)


def _nonadaptive(algorithm: Local[R], tolerance: float, trials: int, seed: int) -> Statistical[R]:
    """Every draw's candidates first, then the answers."""
    generator = keyed_generator("sq-from-local candidates", seed)
    draws: list[tuple[tuple[int, ...], list[tuple[Observed, ...]]]] = []
    for cohort, asks in _shares(algorithm.queries):
        kinds = _kinds(algorithm.queries, asks)
        cells = _cells(kinds, len(cohort), generator)
        columns = [[cell for cell in own for _ in range(trials)] for own in cells]
        draws.append((asks, list(_candidates([(kinds, columns)], generator))))

    def ask(queries: LocalQuestions, before: Questions) -> Questions:
        return tuple(
            likelihood_query(candidate, tolerance)
            for _, candidates in draws
            for candidate in candidates
        )

    def read(queries: LocalQuestions, questions: Questions, answers: Answers) -> Tallies:
        coins = keyed_generator("sq-from-local coins", seed).random(len(answers)).tolist()
        start = _Transcript()
        done = 0
        records: list[list[Observed]] = [[] for _ in queries]
        for asks, candidates in draws:
            for first in range(0, len(candidates), trials):
                places = range(first, first + trials)
                hits = (
                    place
                    for place in places
                    if start.accepts(
                        candidates[place], answers[done + place], tolerance, coins[done + place]
                    )[0]
                )
                for position, reply in zip(asks, candidates[next(hits, places[-1])], strict=True):
                    records[position].append(reply)
            done += len(candidates)
        return tuple(
            _tally(query, replies) for query, replies in zip(queries, records, strict=True)
        )

    return translate(algorithm, ask, read)


def _round(
    queries: LocalQuestions,
    transcripts: dict[int, _Transcript],
    tolerance: float,
    trials: int,
    generator: np.random.Generator,
) -> StatisticalPlay[Tallies]:
    """One local round: every client's candidate is asked about, then another one's for the clients
    that did not accept, and so on."""
    shares = [(cohort, asks, _kinds(queries, asks)) for cohort, asks in _shares(queries)]
    cells = [_cells(kinds, len(cohort), generator) for cohort, _, kinds in shares]
    # the places in each cohort
    waiting = {share: list(range(len(cohort))) for share, (cohort, _, _) in enumerate(shares)}
    for trial in range(1, trials + 1):
        places = [(share, place) for share, left in waiting.items() for place in left]
        groups = [
            (shares[share][2], [[own[place] for place in left] for own in cells[share]])
            for share, left in waiting.items()
        ]
        candidates = [
            (share, place, candidate)
            for (share, place), candidate in zip(
                places, _candidates(groups, generator), strict=True
            )
        ]
        earlier = [
            transcripts.get(shares[share][0].start + place, _Transcript())
            for share, place, _ in candidates
        ]
        pairs = zip(earlier, candidates, strict=True)
        answers = yield tuple(
            likelihood_query((*before.replies, *candidate), tolerance)
            for before, (_, _, candidate) in pairs
        )
        waiting = defaultdict(list)
        coins = generator.random(len(candidates)).tolist()
        for (share, place, candidate), before, answer, coin in zip(
            candidates, earlier, answers, coins, strict=True
        ):
            success, transcript = before.accepts(candidate, answer, tolerance, coin)
            if success or trial == trials:
                transcripts[shares[share][0].start + place] = transcript
            else:
                waiting[share].append(place)
        if not waiting:
            break
    records: list[list[Observed]] = [[] for _ in queries]
    for cohort, asks, _ in shares:
        for client in range(cohort.start, cohort.stop):
            for position, reply in zip(
                asks, transcripts[client].replies[-len(asks) :], strict=True
            ):
                records[position].append(reply)
    return tuple(_tally(query, replies) for query, replies in zip(queries, records, strict=True))
