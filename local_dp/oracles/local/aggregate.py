"""The LR oracle of KLNRS Section 4.1 in law: the tally drawn at a cost that does not depend on the number of clients."""

import numpy as np

from local_dp.errors import RefusedError
from local_dp.oracles.local.asked import LocalQuery
from local_dp.oracles.local.oracle import LocalOracle
from local_dp.populations.population import Population
from local_dp.randomizers.with_coin import without_coin
from local_dp.tallies import Tally


class AggregateOracle(LocalOracle):
    """Draws each tally from its law: exact in distribution, at a cost that does not depend on n where the population knows its own law.

    A synthetic client's record exists only while it is asked, so a second request to it is refused. The rows of a table can be asked again.
    """

    def __init__(self, population: Population, generator: np.random.Generator, budget: float) -> None:
        super().__init__(budget)
        self.population = population
        self.generator = generator

    def answer(self, queries: tuple[LocalQuery, ...]) -> tuple[Tally, ...]:
        """The tally of each query's cohort. Raises RefusedError("budget", "asked-twice" or "no-law") before anything is sampled."""
        for query in queries:
            if query.memo or not without_coin(query.randomizer).has_tally_law:
                what = "a session" if query.session else "memoised answers" if query.memo else f"{query.randomizer.name!r}"
                raise RefusedError("no-law", f"the tally of {what} has no closed law here; use --tier population")
        if not self.population.remembers:
            self.refuse_repeats(queries)
        self.begin(queries)
        tallies = tuple(map(self._draw, queries))
        self.finish(queries, sum(tally.n for tally in tallies), None)
        return tallies

    def _draw(self, query: LocalQuery) -> Tally:
        channel = without_coin(query.randomizer)
        law = self.population.tally_law(query.query, channel)
        if law is not None:
            return Tally(self.generator.multinomial(len(query.cohort), law.ravel()).reshape(law.shape))
        counts = self.population.value_counts(query.query, query.cohort.start, query.cohort.stop, self.generator)
        return channel.draw_tally(counts, self.generator)
