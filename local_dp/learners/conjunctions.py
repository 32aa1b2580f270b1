"""Conjunctions by elimination."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.arrays import Bools, Ints
from local_dp.checks import check_dimension
from local_dp.interaction import Nonadaptive
from local_dp.learners.learner import Learner, share, signs
from local_dp.oracles.statistical.oracles import Statistical
from local_dp.queries.tables import Question
from local_dp.records import Records


@dataclass(frozen=True, order=True)
class Literal:
    """The condition x{place} = value."""

    place: int
    value: int = 1

    def __str__(self) -> str:
        return f"x{self.place} == {self.value}"

    def holds(self, records: Records) -> Bools:
        """Where it holds, shape (n,)."""
        holds: Bools = records[f"x{self.place}"] == self.value
        return holds


@dataclass(frozen=True)
class AllOf:
    """+1 where every literal holds, else -1; of no literals, always +1."""

    literals: tuple[Literal, ...]

    def __str__(self) -> str:
        return " and ".join(map(str, self.literals)) or "always"

    def holds(self, records: Records) -> Bools:
        """Where every literal holds, shape (n,)."""
        every = np.ones(len(records), dtype=np.bool_)
        for literal in self.literals:
            every &= literal.holds(records)
        return every

    def predict(self, records: Records) -> Ints:
        """The label of each record, shape (n,)."""
        return signs(self.holds(records))


@dataclass(frozen=True, kw_only=True)
class Conjunctions(Learner[AllOf]):
    """Learns a conjunction of literals (of variables only, if `monotone`) over {0,1}^d under every distribution: error at most alpha.

    Asks Pr[literal false and y = 1] for each of L = 2d (or d) literals at once and keeps those with an answer of at most half the tolerance, alpha / 2L:
    each literal of the target stays, and each that stays wrongly rejects at most alpha / L. Tolerance alpha / L. Source: Kearns 1998; limits 9.
    """

    name: ClassVar[str] = "conjunctions"
    source: ClassVar[str] = "Kearns 1998"
    d: int = 6
    monotone: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_dimension(self.d)

    @property
    def literals(self) -> tuple[Literal, ...]:
        """The candidates."""
        return tuple(Literal(place, value) for place in range(self.d) for value in ((1,) if self.monotone else (0, 1)))

    @property
    def proven(self) -> float:
        return self.alpha / self.queries

    @property
    def queries(self) -> int:
        return len(self.literals)

    @property
    def rounds(self) -> int:
        return 1

    def algorithm(self) -> Statistical[AllOf]:
        literals, most = self.literals, self.tolerance / 2

        def decode(answers: tuple[float, ...]) -> AllOf:
            return AllOf(tuple(literal for literal, answer in zip(literals, answers, strict=True) if share(answer) <= most * (1 + 1e-9)))

        return Nonadaptive(tuple(self.ask(Question(f"x{literal.place} == {1 - literal.value} and y == 1")) for literal in literals), decode)
