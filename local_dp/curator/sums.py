"""Noisy sums: what SuLQ answers with (Blum, Dwork, McSherry, Nissim 2005; KLNRS Section 4, [7])."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from local_dp.curator.base import Law, Mechanism
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import NANO, Pure, exp_epsilon, nano_epsilon
from local_dp.populations.base import Population
from local_dp.populations.table import Rows
from local_dp.queries.base import Query
from local_dp.records import Records, chunks

_CHUNK = 1 << 16
_LISTED = 1 << 10  # outcomes


@dataclass(frozen=True)
class NoisySum(Mechanism[Records | Population, int, Pure]):
    """The sum over all n records of a query's values, counted 0..m from the lowest, plus discrete Laplace noise of ratio e^(-eps / m), clipped to 0..n m.

    Privacy: replacing one record moves the sum by at most m, so epsilon, exactly; n is public. Utility: standard error sqrt(2) m / eps. Cost: one pass.
    """

    query: Query
    epsilon: float

    def __post_init__(self) -> None:
        nano_epsilon(self.epsilon)
        if self.query.domain.kind != "levels" and self.query.domain.size != 2:
            raise InputError(f"query {self.query.name!r} has values in {self.query.domain}; a sum is of levels, or of two values")

    @property
    def loss(self) -> Pure:
        return Pure(nano_epsilon(self.epsilon))

    @property
    def sensitivity(self) -> int:
        """m: the most that one record can add."""
        return self.query.domain.size - 1

    def release(self, database: Records | Population, draws: Draws) -> int:
        total, most = self._total(database)
        return min(most, max(0, total + draws.discrete_laplace(self._step / NANO)))

    def law(self, database: Records | Population) -> Law[int]:
        """With e^(eps / m), which is no fraction, replaced by one just below it (relative gap 1e-50): the law is this function of whatever stands there."""
        total, most = self._total(database)
        if most > _LISTED:
            raise InputError(f"the sum is one of 0..{most}; its law is listed up to {_LISTED}")
        growth = exp_epsilon(self._step)
        less, more = growth.denominator, growth.numerator
        ends = {y: less ** abs(y - total) * more ** (most + 1 - abs(y - total)) for y in (0, most)}
        inside = {y: less ** abs(y - total) * more ** (most - abs(y - total)) * (more - less) for y in range(1, most)}
        return {**ends, **inside}

    @property
    def _step(self) -> Fraction:
        """What a step of one in the sum may cost, in nano-nats."""
        return Fraction(nano_epsilon(self.epsilon), self.sensitivity)

    def _total(self, database: Records | Population) -> tuple[int, int]:
        """The exact sum and the largest there could be."""
        population = Rows(database) if isinstance(database, Records) else database
        total, low = 0, self.query.domain.low
        for start, stop in chunks(0, population.size, _CHUNK):
            values = self.query.values(population.batch(start, stop))
            total += int(values.astype(np.int64).sum()) - low * (stop - start)
        return total, self.sensitivity * population.size
