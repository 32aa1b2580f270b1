"""Three ways to answer with a number whose local sensitivity is known: at the global sensitivity, smoothly, and by propose-test-release."""

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction

from local_dp.checks import check_whole
from local_dp.curator.clipped import ClippedAnswer, ClippedLaplace, laplace_tail, tail_beyond
from local_dp.curator.laws import probabilities, whole_weights
from local_dp.curator.mechanism import D_contra, L_co, Law, Mechanism, R_co
from local_dp.curator.sensitivity.cauchy import CauchyNoise, LocalSensitivity
from local_dp.draws import Draws
from local_dp.loss import Approximate, Pure, approximate, nano_epsilon


class OfSensitivity(Mechanism[D_contra, R_co, L_co]):
    """A mechanism that knows the local sensitivity of its answer."""

    @abstractmethod
    def local(self, database: D_contra) -> LocalSensitivity:
        """The answer and its sensitivity."""


class GlobalNoise(OfSensitivity[D_contra, int, Pure], ClippedAnswer[D_contra]):
    """The answer with discrete Laplace noise for the global sensitivity, clipped: the baseline.

    Privacy: epsilon, exactly. Utility: standard error sqrt(2) GS / eps.
    """

    def noisy(self, database: D_contra) -> tuple[int, ClippedLaplace]:
        local = self.local(database)
        return local.value, ClippedLaplace(nano_epsilon(self.epsilon), local.most, local.last)


@dataclass(frozen=True)
class SmoothNoise(OfSensitivity[D_contra, int, Pure]):
    """The answer with Cauchy noise of its smooth sensitivity, clipped to its range.

    Privacy: the price of the noise, pure, on every database (`CauchyNoise`). Utility: the median of |error| is S / a.
    Source: Nissim, Raskhodnikova, Smith 2007; lecture notes 2.2.1.
    """

    noise: CauchyNoise

    @property
    def loss(self) -> Pure:
        return self.noise.loss

    def release(self, database: D_contra, draws: Draws) -> int:
        local = self.local(database)
        return min(local.last, max(0, self.noise.add(local.value, self.noise.scale(local), draws)))


class InHalves(Mechanism[D_contra, R_co, Approximate]):
    """A mechanism of two parts of eps / 2 each, the first of which fails with probability delta. Its subclasses have an `epsilon` and a `delta`."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        super().__post_init__()
        nano_epsilon(self.epsilon / 2)
        approximate(self.epsilon, self.delta)

    @property
    def loss(self) -> Approximate:
        return Approximate(2 * self._half, approximate(self.epsilon, self.delta).atto)

    @property
    def _half(self) -> int:
        """The cost of each part, in nano-nats."""
        return nano_epsilon(self.epsilon) // 2


@dataclass(frozen=True)
class Proposed(OfSensitivity[D_contra, int | None, Approximate], InHalves[D_contra, int | None]):
    """Propose, test, release: noise for a local sensitivity of `bound` if the database is far from all with a larger one, otherwise None: no answer.

    The distance to the nearest such database moves by at most 1. It is compared with a threshold with discrete Laplace noise of eps / 2; distance 0 passes
    with probability delta or less. The answer has noise of eps / 2.
    Privacy: (eps, delta); in the notes' terms (2 eps', delta' / 2). A database more sensitive than `bound` is at distance 0 and answers with probability
    delta at most; otherwise the answers of neighbours differ by at most `bound`. Utility: answers from a distance of about (2 / eps) ln(1 / delta) on.
    Source: Dwork, Lei 2009; lecture notes 2.2.2.
    """

    bound: int
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        check_whole("the proposed bound", self.bound, 1, 1 << 62)
        super().__post_init__()

    @property
    def threshold(self) -> int:
        """The noisy distance must exceed it."""
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
        answered, answers = self.answered(self._distance(local)), probabilities(self._noise(local).law(local.value))
        return whole_weights({None: 1 - answered, **{answer: answered * share for answer, share in answers.items()}})

    def _distance(self, local: LocalSensitivity) -> int:
        """At most three thresholds: larger distances do not matter."""
        return local.stable(self.bound, 3 * self.threshold + 3)

    def _noise(self, local: LocalSensitivity) -> ClippedLaplace:
        return ClippedLaplace(self._half, self.bound, local.last)
