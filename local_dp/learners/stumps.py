"""Decision stumps."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.arrays import Ints
from local_dp.checks import check_dimension
from local_dp.interaction import Nonadaptive
from local_dp.learners.conjunctions import Literal
from local_dp.learners.learner import Learner, signs
from local_dp.oracles.statistical.oracles import Statistical
from local_dp.queries.tables import Question
from local_dp.records import Records


@dataclass(frozen=True)
class Stump:
    """+1 where its literal holds, else -1."""

    literal: Literal

    def __str__(self) -> str:
        return str(self.literal)

    def predict(self, records: Records) -> Ints:
        """The stump's label of each record, shape (n,)."""
        return signs(self.literal.holds(records))


@dataclass(frozen=True, kw_only=True)
class Stumps(Learner[Stump]):
    """Learns the best single literal over {0,1}^d, agnostically: error at most that of the best one plus alpha.

    Asks for the d correlations E[(-1)^(1 - x_j) y] at once and takes the largest in absolute value. Tolerance alpha: errors are half of correlations, and two
    answers are compared. Source: Kearns 1998; limits 9.
    """

    name: ClassVar[str] = "stumps"
    source: ClassVar[str] = "Kearns 1998"
    d: int = 6

    def __post_init__(self) -> None:
        super().__post_init__()
        check_dimension(self.d)

    @property
    def proven(self) -> float:
        return self.alpha

    @property
    def queries(self) -> int:
        return self.d

    @property
    def rounds(self) -> int:
        return 1

    def algorithm(self) -> Statistical[Stump]:
        def decode(answers: tuple[float, ...]) -> Stump:
            best = int(np.abs(answers).argmax())
            return Stump(Literal(best, int(answers[best] >= 0)))

        return Nonadaptive(tuple(self.ask(Question(f"(x{place} == 1 and y == 1) or (x{place} == 0 and y == -1)")) for place in range(self.d)), decode)
