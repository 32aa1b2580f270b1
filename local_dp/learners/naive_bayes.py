"""Naive Bayes."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.checks import check_dimension
from local_dp.interaction import Nonadaptive
from local_dp.learners.learner import Learner, features, share, signs
from local_dp.oracles.statistical.oracles import Statistical
from local_dp.queries.numbers import check_weights, matrix, weighted_sum
from local_dp.queries.tables import Question
from local_dp.records import Records

_FLOOR = 1e-9  # of a probability, so that its logarithm is finite


@dataclass(frozen=True)
class BayesRule:
    """+1 where log Pr[y = 1] + sum_j log Pr[x_j | y = 1] exceeds the same for y = -1; `prior` is Pr[y = 1], `yes` Pr[x_j = 1 | y] for y = -1 and then +1."""

    prior: float
    yes: tuple[tuple[float, ...], tuple[float, ...]]

    def __post_init__(self) -> None:
        check_weights((self.prior, *self.yes[0]))
        check_weights(self.yes[1], len(self.yes[0]))

    def __str__(self) -> str:
        likely = (", ".join(f"{share:.3g}" for share in shares) for shares in self.yes)
        return "P(y = 1) = {:.3g}; P(x_j = 1 | y = -1) = {}; P(x_j = 1 | y = +1) = {}".format(self.prior, *likely)

    def predict(self, records: Records) -> Ints:
        """The likelier label of each record, shape (n,)."""
        bits = matrix(records, features(len(self.yes[0])))
        score = [_logarithm(np.array(weight)) + _likelihood(np.array(yes), bits) for weight, yes in zip((1 - self.prior, self.prior), self.yes, strict=True)]
        return signs(score[1] > score[0])


def _logarithm(probability: Floats) -> Floats:
    return np.log(np.clip(probability, _FLOOR, 1))


def _likelihood(yes: Floats, bits: Floats) -> Floats:
    return weighted_sum(_logarithm(yes), bits) + weighted_sum(_logarithm(1 - yes), 1 - bits)


@dataclass(frozen=True, kw_only=True)
class NaiveBayes(Learner[BayesRule]):
    """Learns the best classifier over {0,1}^d where the features are independent given the label: error at most that of the best one plus alpha.

    Asks for Pr[y = 1], Pr[x_j = 1, y = 1] and Pr[x_j = 1, y = -1] at once, within tau = alpha / (4 d + 1): then each Pr[x_j = 1 | y] is off by at most
    tau / Pr[y], and the two estimated joint laws by at most (4 d + 1) tau in all, in total variation norm, which bounds what a plug-in classifier loses.
    Source: limits 9, with the tolerance that a worst-case oracle needs.
    """

    name: ClassVar[str] = "naive-bayes"
    source: ClassVar[str] = "naive Bayes on statistical queries"
    d: int = 6

    def __post_init__(self) -> None:
        super().__post_init__()
        check_dimension(self.d)

    @property
    def proven(self) -> float:
        return self.alpha / (4 * self.d + 1)

    @property
    def queries(self) -> int:
        return 2 * self.d + 1

    @property
    def rounds(self) -> int:
        return 1

    def algorithm(self) -> Statistical[BayesRule]:
        def decode(answers: tuple[float, ...]) -> BayesRule:
            prior = float(np.clip(share(answers[0]), _FLOOR, 1 - _FLOOR))
            joint = np.array([share(answer) for answer in answers[1:]]).reshape(2, self.d)
            yes = np.clip(joint / np.array([[1 - prior], [prior]]), 0, 1)
            return BayesRule(prior, (tuple(yes[0].tolist()), tuple(yes[1].tolist())))

        texts = ["y == 1", *(f"{column} == 1 and y == {label}" for label in (-1, 1) for column in features(self.d))]
        return Nonadaptive(tuple(self.ask(Question(text)) for text in texts), decode)
