"""The LR oracle of KLNRS Section 4.1 in law: the tally drawn at a cost that does not depend on the number of clients."""

import numpy as np

from local_dp.ledger import Ledger
from local_dp.oracles.local.asked import LocalQuery, RoundSummary, charges_of, check_disjoint, round_summary
from local_dp.populations.base import Population
from local_dp.tallies import Tally


class AggregateOracle:
    """Draws each tally from its law: exact in distribution, at a cost that does not depend on n where the population knows its own law.

    Exact for protocols that ask each synthetic client once; one that is asked twice draws a fresh record.
    """

    def __init__(self, population: Population, generator: np.random.Generator, budget: float) -> None:
        self.population = population
        self.generator = generator
        self.ledger = Ledger(budget)
        self.rounds: list[RoundSummary] = []

    def answer(self, queries: tuple[LocalQuery, ...]) -> tuple[Tally, ...]:
        """The tally of each query's cohort. Raises RefusedError("budget") before anything is sampled."""
        check_disjoint(queries)
        self.ledger.charge_all("run", charges_of(queries))
        tallies = tuple(self._draw(query) for query in queries)
        self.rounds.append(round_summary(queries, sum(tally.n for tally in tallies), None))
        return tallies

    def _draw(self, query: LocalQuery) -> Tally:
        law = self.population.tally_law(query.query, query.randomizer)
        if law is not None:
            return Tally(self.generator.multinomial(len(query.cohort), law.ravel()).reshape(law.shape))
        counts = self.population.value_counts(query.query, query.cohort.start, query.cohort.stop, self.generator)
        return query.randomizer.draw_tally(counts, self.generator)
