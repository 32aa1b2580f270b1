"""DualQuery: weights on the queries in place of weights on the rows, and a row that answers a sample of them; pure."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.checks import check_whole
from local_dp.curator.base import Law, Mechanism
from local_dp.curator.choosing.exponential import ExponentialChoice
from local_dp.curator.choosing.groups import Listed
from local_dp.curator.laws import whole_weights
from local_dp.curator.many.weights import Columns, Synthetic
from local_dp.curator.marginals.base import DENSE, BinaryTable, Marginals
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Play
from local_dp.loss import Pure

_LISTED = 1 << 12  # outcomes


@dataclass(frozen=True, eq=False)
class SampledQueries(Mechanism[BinaryTable, tuple[int, ...], Pure]):
    """`count` independent choices among the cells of a workload and their complements, numbered cells first, each by the exponential mechanism.

    The score of a cell is how many records the table has in it, times the number of rows played, less n times how many of these are in it; of its complement,
    the opposite. So those are chosen that the rows played have too seldom.
    Privacy: count times `each`, pure: a replaced record moves a score by at most the number of rows played.
    """

    workload: Marginals
    played: Counts
    rows: int
    count: int
    each: float

    def __post_init__(self) -> None:
        check_whole("count", self.count, 1, 1 << 16)
        check_whole("rows", self.rows, 1, 1 << 20)
        if self.played.shape != (self.workload.cells,) or self.played.dtype.kind != "i":
            raise InputError(f"what was played has shape {self.played.shape}; give a whole number for each of {self.workload.cells} cells")
        self.choice  # noqa: B018 - refuses a wrong epsilon

    @property
    def choice(self) -> ExponentialChoice:
        """Of one of them."""
        return ExponentialChoice(self.each, self.rows)

    @property
    def loss(self) -> Pure:
        return Pure(self.count * self.choice.loss.nano)

    def release(self, database: BinaryTable, draws: Draws) -> tuple[int, ...]:
        return self.choice.choose_many(self._candidates(database), self.count, draws)

    def law(self, database: BinaryTable) -> Law[tuple[int, ...]]:
        """Raises InputError above 2^12 outcomes."""
        if (2 * self.workload.cells) ** self.count > _LISTED:
            raise InputError(f"there are {2 * self.workload.cells} queries to choose {self.count} of; a law is listed up to {_LISTED} outcomes")
        law = self.choice.law(self._candidates(database))
        return {tuple(cell for cell, _ in told): prod(weight for _, weight in told) for told in product(law.items(), repeat=self.count)}

    def _candidates(self, database: BinaryTable) -> Listed:
        counts = np.rint(self.workload.answers(database)).astype(np.int64)
        seldom = self.rows * counts - database.size * self.played
        scores = np.concatenate([seldom, -seldom])
        return Listed(scores, np.arange(len(scores)))
