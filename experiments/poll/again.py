"""A second question that depends on the first answers: where the median of a number lies, by thresholds that are chosen one after another."""

import math
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import NormalDist

import numpy as np

from local_dp.errors import InputError
from local_dp.experiments.poll.questions import Question, Questions
from local_dp.interaction import Adaptive
from local_dp.oracles.local.asked import Cohort, LocalPlay, LocalQuery, LocalRounds
from local_dp.queries.tables import Question as YesNo
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.tallies import Estimate

ROUNDS = 3
_GRID = 256  # places between the bounds
_LEVEL = NormalDist().inv_cdf(1 - 0.05 / (2 * ROUNDS))  # all intervals together hold with probability 95 %


@dataclass
class Median:
    """What is known so far: for each threshold the estimated share above it, and an interval that holds the median with probability 95 %."""

    low: float
    high: float
    value: float
    steps: list[tuple[float, Estimate]] = field(default_factory=list)


@dataclass(frozen=True)
class Again:
    """Asks the people of a poll in ROUNDS groups, one group after another, whether their number is above a threshold. Each person answers once.

    The first threshold is the estimated mean of the first round; each further one is where belief in the median is halved. Privacy: epsilon once more.
    """

    question: Question

    @classmethod
    def of(cls, questions: Questions) -> "Again":
        """About the first number that is asked. Raises InputError if there is none."""
        found = next((each for each in questions.questions if each.kind == "number"), None)
        if found is None:
            raise InputError("--ask-again asks for the median of a number: add a question with low = 0 and high = 10")
        return cls(found)

    @property
    def epsilon(self) -> float:
        """What each person pays beside the first round, in nats."""
        return self.question.epsilon

    def algorithm(self, mean: float, people: int, known: Median) -> LocalRounds[Median]:
        """The rounds with the places 0..people; `known` grows with each."""
        cuts = [people * part // ROUNDS for part in range(ROUNDS + 1)]
        cohorts = [Cohort(start, stop) for start, stop in pairwise(cuts) if start < stop]

        def play() -> LocalPlay[Median]:
            grid = np.linspace(known.low, known.high, _GRID)
            belief, threshold = np.zeros(_GRID), float(np.clip(mean, grid[1], grid[-2]))
            for cohort in cohorts:
                asked = f"{threshold:.6g}"
                query = LocalQuery(YesNo(f"{self.question.name} > {asked}"), BinaryRR(self.epsilon), cohort)
                (tally,) = yield (query,)
                if not tally.n:
                    continue
                share = query.randomizer.estimate(tally)
                assert isinstance(share, Estimate)
                above = grid > float(asked)
                chance = min(max(NormalDist().cdf((float(share.value) - 0.5) / float(share.standard_error)), 1e-9), 1 - 1e-9)
                belief += np.where(above, math.log(chance), math.log(1 - chance))
                weights = np.cumsum(np.exp(belief - belief.max()))
                threshold = float(grid[np.searchsorted(weights, weights[-1] / 2)])
                _learn(known, float(asked), share, threshold)
            return known

        return Adaptive(play)


def _learn(known: Median, threshold: float, share: Estimate, middle: float) -> None:
    """Moves an end of the interval where the share above the threshold is surely more, or less, than one half."""
    low, high = share.interval(_LEVEL)
    if float(low) > 0.5:
        known.low = max(known.low, threshold)
    if float(high) < 0.5:
        known.high = min(known.high, threshold)
    known.value = min(max(middle, known.low), known.high)
    known.steps.append((threshold, share))
