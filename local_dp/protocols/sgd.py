"""Locally private stochastic gradient descent: an interactive local algorithm, not a statistical-query one."""

import math
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np

from local_dp.arrays import Floats
from local_dp.bounds.response import response_gain
from local_dp.checks import check_share, check_whole
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Play
from local_dp.learners.base import features
from local_dp.learners.examples import error_rate, skewed_examples
from local_dp.learners.halfspaces import Halfspace, check_margin
from local_dp.learners.tasks import BARELY
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.populations.base import Population
from local_dp.populations.finite import Finite
from local_dp.protocols.base import Protocol, Result, parameter
from local_dp.queries.margins import Descent
from local_dp.queries.numbers import STEPS, written
from local_dp.randomizers.numbers.one_bit_mean import OneBitMean
from local_dp.tallies import Tally


@dataclass(frozen=True, kw_only=True)
class LocalSGD(Protocol[Halfspace]):
    """Projected descent on the hinge loss max(0, 1 - y <w, x> / gamma) over norm(w) <= 1; every client answers once, in one of `rounds` rounds.

    Each round's clients are dealt out over the d coordinates of the gradient and report one bit. Privacy: epsilon-locally private.
    Utility, for records of norm at most 1 with abs(x_j) <= bound and a halfspace of margin gamma: the hinge loss of the averaged weights, and with it the
    error, is in expectation at most sqrt(1 / rounds + d^2 bound^2 C^2 / n) / gamma, C = (e^eps + 1) / (e^eps - 1): features +-1 / sqrt d need n about
    d C^2 / (alpha gamma)^2. Cost: one bit a client, `rounds` rounds.
    The default number of clients is for an expected error of `alpha`, on examples at margin gamma of which barely more than alpha are of a rare kind.
    Source: Duchi, Jordan, Wainwright 2013; limits 9.
    """

    name: ClassVar[str] = "local-sgd"
    source: ClassVar[str] = "Duchi, Jordan, Wainwright 2013"
    d: int = parameter(4, "the dimension: how many features a record has")
    gamma: float = parameter(0.5, "the margin that the examples have to the halfspace")
    alpha: float = parameter(0.2, "the expected error that the default number of clients is for", unit="share of examples")
    rounds: int = parameter(200, "how many rounds of gradient descent, each with clients of its own")
    bound: float | None = parameter(None, "the bound on every feature; without it, 1 / sqrt(d)")

    def __post_init__(self) -> None:
        check_margin(self.d, self.gamma, self.bound)
        check_share("alpha", self.alpha)
        check_whole("rounds", self.rounds, 1, 1_000_000)

    @property
    def scale(self) -> float:
        """The bound on abs(x_j)."""
        return check_margin(self.d, self.gamma, self.bound)

    def gradient_norm(self, epsilon: float, clients: int) -> float:
        """The root of the expected square norm of a round's gradient estimate, at most."""
        noise = (self.d * self.scale * response_gain(epsilon)) ** 2 * self.rounds / clients
        return math.sqrt(1 + noise) / self.gamma

    def expected_error(self, epsilon: float, clients: int) -> float:
        """The guarantee on the expected error."""
        return self.gradient_norm(epsilon, clients) / math.sqrt(self.rounds)

    def clients(self, epsilon: float) -> int:
        """Clients for an expected error of alpha; raises InputError if the rounds are too few for any number."""
        room = (self.alpha * self.gamma) ** 2 - 1 / self.rounds
        if room <= 0:
            least = 1 / (self.alpha * self.gamma) ** 2
            raise InputError(f"{self.rounds} rounds cannot promise error {self.alpha} at margin {self.gamma}; give more than {least:.0f}")
        return math.ceil((self.d * self.scale * response_gain(epsilon)) ** 2 / room)

    def algorithm(self, epsilon: float, clients: int) -> Adaptive[LocalQuery, Tally, Halfspace]:
        """The learner for clients 0..clients-1, each with a budget of epsilon. Raises InputError with fewer clients than rounds times coordinates."""
        if clients < self.rounds * self.d:
            raise InputError(f"{self.rounds} rounds of {self.d} coordinates need {self.rounds * self.d} clients; {clients} are too few")
        ends = [clients * part // (self.rounds * self.d) for part in range(self.rounds * self.d + 1)]
        step = 1 / (self.gradient_norm(epsilon, clients) * math.sqrt(self.rounds))
        randomizer = OneBitMean(epsilon, steps=STEPS)

        def play() -> Play[LocalQuery, Tally, Halfspace]:
            weights, total = np.zeros(self.d), np.zeros(self.d)
            for round in range(self.rounds):
                cut = ends[round * self.d : (round + 1) * self.d + 1]
                questions = self._questions(weights)
                tallies = yield tuple(LocalQuery(query, randomizer, Cohort(*cut[place : place + 2])) for place, query in enumerate(questions))
                total += weights
                descent = np.array([2 * float(randomizer.estimate(tally).value) - 1 for tally in tallies])
                weights = _project(weights + step * self.scale / self.gamma * descent)
            return Halfspace(tuple((total / self.rounds).tolist()))

        return Adaptive(play)

    def synthetic(self, clients: int, seed: int) -> Population:
        return skewed_examples(self.d, self.gamma, min(BARELY * self.alpha, 0.45), clients, seed)

    def describe(self, result: Halfspace) -> Result:
        return {"hypothesis": {"rule": str(result)}, "parameters": asdict(result)}

    def explain(self, result: Halfspace) -> str:
        return f"The learned rule predicts the label of a record: it is +1 where {result}; else -1."

    def true_error(self, result: Halfspace, population: Population) -> float:
        """Pr[the halfspace mislabels an example], exactly."""
        assert isinstance(population, Finite)
        return error_rate(result, population)

    def _questions(self, weights: Floats) -> tuple[Descent, ...]:
        columns, texts = features(self.d), written(weights / self.gamma)
        return tuple(Descent("hinge", columns, "y", texts, place, self.scale) for place in range(self.d))


def _project(weights: Floats) -> Floats:
    """The nearest vector of norm at most 1."""
    return weights / max(1.0, float(np.linalg.norm(weights)))
