"""SQ algorithms from local algorithms: KLNRS Lemmas 4.4 and 4.5 and the other direction of Theorem 4.8.

A report is drawn with the law of R(z), z from the distribution, by an algorithm that never sees a record: candidates come from R(u0) for a fixed u0, and
a statistical query about each (`likelihood`) says with which probability to accept it (`rejection`).
"""

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeVar, overload

import numpy as np

from local_dp.arrays import Words
from local_dp.bounds.simulations import relative_error
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Nonadaptive, Play
from local_dp.noise import stream_key
from local_dp.oracles.local.asked import LocalQuery, check_disjoint
from local_dp.oracles.statistical.asked import StatisticalQuery
from local_dp.queries.base import Query
from local_dp.randomizers.base import Randomizer
from local_dp.tallies import Tally
from local_dp.theorems.likelihood import Observed, likelihood_query, spent
from local_dp.theorems.rejection import acceptance, ceiling_after, mean_ratio

R = TypeVar("R")


@dataclass(frozen=True)
class _Transcript:
    """One client's replies so far, and the estimated mean of the product of their likelihood ratios."""

    replies: tuple[Observed, ...] = ()
    mean: float = 1.0

    def ceiling(self, randomizer: Randomizer, tolerance: float) -> float:
        """The acceptance constant of one more reply."""
        growth = math.exp(randomizer.epsilon)
        if not self.replies:
            return growth
        before = spent(self.replies)
        error = relative_error(before, tolerance)
        if error >= 1:
            raise InputError(f"tolerance {tolerance:g} is too coarse to condition on replies worth epsilon {before:g}; give one below {tolerance / error:.3g}")
        return ceiling_after(growth, relative_error(before + randomizer.epsilon, tolerance), error)

    def accepts(self, reply: Observed, answer: float, tolerance: float, coin: float) -> tuple[bool, "_Transcript"]:
        """Whether the candidate is accepted, and the transcript it would make."""
        replies = (*self.replies, reply)
        mean = mean_ratio(answer, math.exp(spent(replies)))
        return coin < acceptance(mean / self.mean, self.ceiling(reply.randomizer, tolerance)), _Transcript(replies, mean)


def _generator(label: str, seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key=int.from_bytes(stream_key(label, seed), "little")))


def _candidates(query: Query, randomizer: Randomizer, cells: Words, generator: np.random.Generator) -> list[Observed]:
    """One draw of R(u0) in each cell."""
    dtype = np.uint64 if randomizer.word_bits > 32 else np.uint32
    words: Words = generator.integers(0, randomizer.total - 1, len(cells), dtype=dtype, endpoint=True)
    reports = randomizer.respond(np.full(len(cells), randomizer.domain.low), words, cells)
    return [Observed(query, randomizer, cell, report) for cell, report in zip(cells.tolist(), reports.tolist(), strict=True)]


def _cells(randomizer: Randomizer, clients: int, generator: np.random.Generator) -> Words:
    """The public-coin cell of each client."""
    return generator.integers(0, randomizer.cells, clients, dtype=np.uint64)


def _tally(query: LocalQuery, replies: list[Observed]) -> Tally:
    randomizer = query.randomizer
    reports = np.array([reply.report for reply in replies], dtype=randomizer.report_dtype)
    return randomizer.tally(reports, np.array([reply.cell for reply in replies], dtype=np.uint64))


def _check(tolerance: float, trials: int) -> None:
    if not 0 < tolerance < 1:
        raise InputError(f"the tolerance is {tolerance}; a statistical query needs one strictly between 0 and 1")
    if trials < 1:
        raise InputError(f"{trials} trials a draw; give 1 or more, for example bounds_sq.enough_trials")


@overload
def sq_from_local(algorithm: Nonadaptive[LocalQuery, Tally, R], tolerance: float, trials: int, seed: int) -> Nonadaptive[StatisticalQuery, float, R]: ...
@overload
def sq_from_local(algorithm: Adaptive[LocalQuery, Tally, R], tolerance: float, trials: int, seed: int) -> Adaptive[StatisticalQuery, float, R]: ...
def sq_from_local(
    algorithm: Nonadaptive[LocalQuery, Tally, R] | Adaptive[LocalQuery, Tally, R], tolerance: float, trials: int, seed: int
) -> Nonadaptive[StatisticalQuery, float, R] | Adaptive[StatisticalQuery, float, R]:
    """The same algorithm with every report drawn by statistical queries of this `tolerance`, for clients that are independent draws of the distribution.

    Non-interactive: all `trials` candidates of every draw are made, and asked about, before any answer: t * trials queries. Interactive: one candidate a
    time until one is accepted, about t e^eps queries; a client's later replies are drawn conditionally on its earlier ones. A draw of which no
    candidate is accepted keeps the last one: probability `bounds_sq.miss_probability(epsilon, trials)` each.
    The transcript of t reports is within t `bounds_sq.draw_distance` (interactive: `conditional_draw_distance`), and the misses, of the real one.
    `bounds_sq.plan_simulation` finds the tolerance and the trials for a wanted distance.
    The mean over earlier replies that Lemma 4.5 divides by was already asked for when the last of them was accepted; it is not asked again.
    Cost: one Python object a query, so thousands of clients; `sq_from_local_by_table` takes any number. Source: KLNRS Lemmas 4.4, 4.5; limits 6.
    """
    _check(tolerance, trials)
    if isinstance(algorithm, Nonadaptive):
        return _nonadaptive(algorithm, tolerance, trials, seed)

    def play() -> Play[StatisticalQuery, float, R]:
        generator = _generator("sq-from-local", seed)
        transcripts: dict[int, _Transcript] = {}
        inner = algorithm.play()
        try:
            queries = next(inner)
            while True:
                queries = inner.send((yield from _round(queries, transcripts, tolerance, trials, generator)))
        except StopIteration as finished:
            result: R = finished.value
            return result

    return Adaptive(play)


def _nonadaptive(algorithm: Nonadaptive[LocalQuery, Tally, R], tolerance: float, trials: int, seed: int) -> Nonadaptive[StatisticalQuery, float, R]:
    """Every draw's candidates first, then the answers."""
    check_disjoint(algorithm.queries)
    generator = _generator("sq-from-local candidates", seed)
    drawn = []
    for query in algorithm.queries:
        cells = _cells(query.randomizer, len(query.cohort), generator)
        drawn.append(_candidates(query.query, query.randomizer, np.repeat(cells, trials), generator))
    asked = tuple(likelihood_query((reply,), tolerance) for replies in drawn for reply in replies)
    start = _Transcript()

    def decode(answers: tuple[float, ...]) -> R:
        coins = iter(_generator("sq-from-local coins", seed).random(len(answers)).tolist())
        answer = iter(answers)
        tallies = []
        for query, replies in zip(algorithm.queries, drawn, strict=True):
            accepted = [start.accepts(reply, next(answer), tolerance, next(coins))[0] for reply in replies]
            kept = [next((place for place in range(first, first + trials) if accepted[place]), first + trials - 1) for first in range(0, len(replies), trials)]
            tallies.append(_tally(query, [replies[place] for place in kept]))
        return algorithm.decode(tuple(tallies))

    return Nonadaptive(asked, decode)


def _round(
    queries: tuple[LocalQuery, ...], transcripts: dict[int, _Transcript], tolerance: float, trials: int, generator: np.random.Generator
) -> Generator[tuple[StatisticalQuery, ...], tuple[float, ...], tuple[Tally, ...]]:
    """One local round: every client's candidate is asked about, then another one's for the clients that did not accept, and so on."""
    check_disjoint(queries)
    waiting: dict[tuple[Query, Randomizer], list[int]] = {}
    for query in queries:
        waiting.setdefault((query.query, query.randomizer), []).extend(range(query.cohort.start, query.cohort.stop))
    cells = {kind: dict(zip(clients, _cells(kind[1], len(clients), generator).tolist(), strict=True)) for kind, clients in waiting.items()}
    for trial in range(1, trials + 1):
        drawn: list[tuple[int, Observed]] = []
        for kind, clients in waiting.items():
            own = np.array([cells[kind][client] for client in clients], dtype=np.uint64)
            drawn += zip(clients, _candidates(*kind, own, generator), strict=True)
        answers = yield tuple(likelihood_query((*transcripts.get(client, _Transcript()).replies, reply), tolerance) for client, reply in drawn)
        done: set[int] = set()
        for (client, reply), answer, coin in zip(drawn, answers, generator.random(len(drawn)).tolist(), strict=True):
            accepted, transcript = transcripts.get(client, _Transcript()).accepts(reply, answer, tolerance, coin)
            if accepted or trial == trials:
                transcripts[client] = transcript
                done.add(client)
        waiting = {kind: left for kind, clients in waiting.items() if (left := [client for client in clients if client not in done])}
        if not waiting:
            break
    return tuple(_tally(query, [transcripts[client].replies[-1] for client in range(query.cohort.start, query.cohort.stop)]) for query in queries)
