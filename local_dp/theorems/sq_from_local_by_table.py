"""SQ algorithms from non-interactive local algorithms of small alphabet, without rejection: the whole law of a report is asked for."""

import math

import numpy as np

from local_dp.arrays import Floats
from local_dp.errors import InputError
from local_dp.interaction import Nonadaptive, R
from local_dp.noise import stream_key
from local_dp.oracles.local.asked import Local, check_disjoint
from local_dp.oracles.statistical.oracles import Statistical
from local_dp.randomizers.finite import FiniteChannel
from local_dp.tallies import Tally
from local_dp.theorems.likelihood import Observed, density, likelihood_query, transparent
from local_dp.theorems.rejection import mean_ratio

MAX_TABLE = 4096


def sq_from_local_by_table(algorithm: Local[R], tolerance: float, seed: int) -> Statistical[R]:
    """`sq_from_local` without rejection: asks for the probability of every report, then draws all tallies from the normalised answers.

    One query for each (cell, report) of each distinct (query, randomizer), and a single one where reports are bits; no candidate is rejected, none
    is missed, and the cost does not depend on the number of clients. The law of a draw is the one rejection with shared answers has, so the
    distance is that of `bounds.simulations.draw_distance`. For small alphabets: |W| <= e^eps + 1 even asks fewer queries (limits 6, L2).
    """
    check_disjoint(algorithm.queries)
    kinds = list(dict.fromkeys((query.query, transparent(query.randomizer)) for query in algorithm.queries))
    tables = [[Observed(query, randomizer, cell, report) for cell, report in _entries(randomizer)] for query, randomizer in kinds]
    asked = tuple(likelihood_query((reply,), tolerance) for table in tables for reply in table)

    def decode(answers: tuple[float, ...]) -> R:
        generator = np.random.Generator(np.random.Philox(key=int.from_bytes(stream_key("sq-from-local table", seed), "little")))
        answer = iter(answers)
        laws = {kind: _laws(kind[1], [(reply, next(answer)) for reply in table]) for kind, table in zip(kinds, tables, strict=True)}
        tallies = []
        for query in algorithm.queries:
            channel = transparent(query.randomizer)
            cells = generator.multinomial(len(query.cohort), np.full(channel.cells, 1 / channel.cells))
            tallies.append(Tally(generator.multinomial(cells, laws[query.query, channel])))
        return algorithm.decode(tuple(tallies))

    return Nonadaptive(asked, decode)


def _reference(randomizer: FiniteChannel, cell: int) -> Floats:
    """q(w) = Pr[R(u0) = w] for every report w."""
    reports = np.arange(randomizer.alphabet)
    weights = density(randomizer, reports, np.array([randomizer.domain.low]), cell)
    law: Floats = weights / weights.sum()
    return law


def _entries(randomizer: FiniteChannel) -> list[tuple[int, int]]:
    """The (cell, report) pairs to ask about: one a cell where reports are bits, else all that can occur."""
    if randomizer.cells * randomizer.alphabet > MAX_TABLE:
        raise InputError(f"randomizer {randomizer.name!r} has {randomizer.cells} x {randomizer.alphabet} reports to tabulate; use sq_from_local")
    if randomizer.alphabet == 2:
        return [(cell, 1) for cell in range(randomizer.cells)]
    return [(cell, report) for cell in range(randomizer.cells) for report in np.flatnonzero(_reference(randomizer, cell)).tolist()]


def _laws(randomizer: FiniteChannel, answered: list[tuple[Observed, float]]) -> Floats:
    """The normalised estimate of Pr[report] in every cell, shape (cells, alphabet)."""
    laws = np.zeros((randomizer.cells, randomizer.alphabet))
    growth = math.exp(randomizer.epsilon)
    reference = [_reference(randomizer, cell) for cell in range(randomizer.cells)]
    for reply, answer in answered:
        laws[reply.cell, reply.report] = reference[reply.cell][reply.report] * mean_ratio(answer, growth)
    if randomizer.alphabet == 2:
        laws[:, 1] = np.minimum(laws[:, 1], 1.0)
        laws[:, 0] = 1 - laws[:, 1]
    normalised: Floats = laws / laws.sum(axis=1, keepdims=True)
    return normalised
