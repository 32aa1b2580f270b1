"""Three ways to answer with a number, of any kind of database whose local sensitivity is known: at the worst of all databases, smoothly, on a promise."""

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from local_dp.checks import check_whole
from local_dp.curator.clipped import ClippedLaplace, laplace_tail, tail_beyond
from local_dp.curator.laws import whole_weights
from local_dp.curator.mechanism import Law, Mechanism
from local_dp.curator.sensitivity.cauchy import CauchyNoise
from local_dp.curator.sensitivity.local import LocalSensitivity
from local_dp.draws import Draws
from local_dp.loss import Approximate, Pure, approximate, nano_epsilon

D_contra = TypeVar("D_contra", contravariant=True)


@dataclass(frozen=True)
class GlobalNoise(Mechanism[D_contra, int, Pure]):
    """The answer with discrete Laplace noise for the worst of all databases, clipped: the baseline.

    Privacy: epsilon, exactly. Utility: standard error sqrt(2) GS / eps.
    """

    epsilon: float

    def __post_init__(self) -> None:
        nano_epsilon(self.epsilon)

    @abstractmethod
    def local(self, database: D_contra) -> LocalSensitivity:
        """The answer and its sensitivity."""

    @property
    def loss(self) -> Pure:
        return Pure(nano_epsilon(self.epsilon))

    def release(self, database: D_contra, draws: Draws) -> int:
        local = self.local(database)
        return self._noise(local).add(local.value, draws)

    def law(self, database: D_contra) -> Law[int]:
        local = self.local(database)
        return self._noise(local).law(local.value)

    def _noise(self, local: LocalSensitivity) -> ClippedLaplace:
        return ClippedLaplace(nano_epsilon(self.epsilon), local.most, local.last)


@dataclass(frozen=True)
class SmoothNoise(Mechanism[D_contra, int, Pure]):
    """The answer with Cauchy noise of its smooth sensitivity, clipped to the answers there are.

    Privacy: the price of the noise, pure, on every database (`CauchyNoise`). Utility: the median of |error| is S / a.
    Source: Nissim, Raskhodnikova, Smith 2007; lecture notes 2.2.1.
    """

    noise: CauchyNoise

    @abstractmethod
    def local(self, database: D_contra) -> LocalSensitivity:
        """The answer and its sensitivity."""

    @property
    def loss(self) -> Pure:
        return self.noise.loss

    def release(self, database: D_contra, draws: Draws) -> int:
        local = self.local(database)
        return min(local.last, max(0, self.noise.add(local.value, self.noise.scale(local), draws)))


@dataclass(frozen=True)
class Proposed(Mechanism[D_contra, int | None, Approximate]):
    """Propose, test, release: noise for a local sensitivity of `bound` if the database is far from all that have a larger one, otherwise None: no answer.

    The distance to the nearest such database, which a neighbour moves by at most 1, is told apart from 0 with discrete Laplace noise of eps / 2, and the
    threshold is the least that distance 0 passes with probability delta or less; the answer has noise of eps / 2.
    Privacy: (eps, delta); in the notes' terms (2 eps', delta' / 2). A database more sensitive than `bound` is at distance 0 and answers with probability
    delta at most; of two that are not, the answers differ by `bound` at most. Utility: answers from a distance of about (2 / eps) ln(1 / delta) on.
    Source: Dwork, Lei 2009; lecture notes 2.2.2.
    """

    bound: int
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        check_whole("the proposed bound", self.bound, 1, 1 << 62)
        nano_epsilon(self.epsilon / 2)
        approximate(self.epsilon, self.delta)

    @abstractmethod
    def local(self, database: D_contra) -> LocalSensitivity:
        """The answer and its sensitivity."""

    @property
    def loss(self) -> Approximate:
        return Approximate(2 * self._half, approximate(self.epsilon, self.delta).atto)

    @property
    def threshold(self) -> int:
        """What the noisy distance must exceed."""
        return tail_beyond(self._half, self.loss.atto)

    def release(self, database: D_contra, draws: Draws) -> int | None:
        local = self.local(database)
        if self._distance(local) + ClippedLaplace(self._half, 1, 0).noise(draws) <= self.threshold:
            return None
        return self._noise(local).add(local.value, draws)

    def answered(self, distance: int) -> Fraction:
        """The probability of an answer at this distance from a more sensitive database."""
        return laplace_tail(self._half, self.threshold + 1 - distance)

    def law(self, database: D_contra) -> Law[int | None]:
        local = self.local(database)
        told, answers = self.answered(self._distance(local)), self._noise(local).law(local.value)
        shares = {answer: told * weight / sum(answers.values()) for answer, weight in answers.items()}
        return whole_weights({None: 1 - told, **shares})

    @property
    def _half(self) -> int:
        """What each of the two parts costs, in nano-nats."""
        return nano_epsilon(self.epsilon) // 2

    def _distance(self, local: LocalSensitivity) -> int:
        """Beyond three thresholds it matters no more."""
        return local.stable(self.bound, 3 * self.threshold + 3)

    def _noise(self, local: LocalSensitivity) -> ClippedLaplace:
        return ClippedLaplace(self._half, self.bound, local.last)
