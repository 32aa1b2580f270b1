"""Several independent choices by one exponential mechanism."""

from abc import abstractmethod

from local_dp.checks import check_built, check_whole
from local_dp.curator.mechanism import D_contra, Law, Mechanism, check_listed, independent
from local_dp.curator.selection.exponential import ExponentialChoice
from local_dp.curator.selection.groups import Listed
from local_dp.draws import Draws
from local_dp.loss import Pure

_OUTCOMES = 1 << 12


class Sampled(Mechanism[D_contra, tuple[int, ...], Pure]):
    """`count` independent choices among numbered candidates by one `ExponentialChoice`, each of its
    loss. Its subclasses are dataclasses with a `count`."""

    count: int

    def __post_init__(self) -> None:
        check_whole("count", self.count, 1, 1 << 16)
        check_built(self.choice)  # refuses a wrong epsilon

    @property
    @abstractmethod
    def choice(self) -> ExponentialChoice:
        """Of one candidate."""

    @abstractmethod
    def candidates(self, database: D_contra) -> Listed:
        """All candidates with their scores; neighbours have the same candidates."""

    @property
    def loss(self) -> Pure:
        return Pure(self.count * self.choice.loss.nano)

    def release(self, database: D_contra, draws: Draws) -> tuple[int, ...]:
        return self.choice.choose_many(self.candidates(database), self.count, draws)

    def law(self, database: D_contra) -> Law[tuple[int, ...]]:
        """Raises InputError above 2^12 outcomes."""
        candidates = self.candidates(database)
        check_listed(
            f"{candidates.total} queries to choose {self.count} of",
            candidates.total**self.count,
            _OUTCOMES,
            " outcomes",
        )
        return dict(independent([self.choice.law(candidates)] * self.count))
