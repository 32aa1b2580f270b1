"""What label-private and semi-private learners have in common: candidates from points that are not secret, a choice by labels that are."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from local_dp.arrays import Ints
from local_dp.curator.base import Law, Mechanism
from local_dp.curator.choosing.exponential import ExponentialMechanism
from local_dp.curator.choosing.groups import Groups
from local_dp.curator.labels.concepts import ConceptClass
from local_dp.curator.multisets import LabelledMultiset, Multiset
from local_dp.draws import Draws
from local_dp.loss import Pure, nano_epsilon

R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True)
class DichotomyLearner(Mechanism[LabelledMultiset, R_co, Pure]):
    """One concept for each dichotomy of `listed_on`; of these by the exponential mechanism on the errors: eps."""

    concepts: ConceptClass[R_co]
    epsilon: float

    def __post_init__(self) -> None:
        nano_epsilon(self.epsilon)

    @abstractmethod
    def listed_on(self, database: LabelledMultiset) -> Multiset:
        """The points whose dichotomies are the candidates: the same ones for all neighbours."""

    @property
    def choice(self) -> ExponentialMechanism[Ints]:
        """The exponential mechanism on the scores: a replaced label, or example, moves each number of errors by at most 1."""
        return ExponentialMechanism(np.asarray, self.epsilon)

    @property
    def loss(self) -> Pure:
        return self.choice.loss

    def release(self, database: LabelledMultiset, draws: Draws) -> R_co:
        return self.choice.choose(self.candidates(database), draws)

    def law(self, database: LabelledMultiset) -> Law[R_co]:
        candidates = self.candidates(database)
        return {candidates.member(number, 0): weight for number, weight in self.choice.law(candidates.scores).items()}

    def candidates(self, database: LabelledMultiset) -> Groups[R_co]:
        """With the score of each."""
        return self.concepts.candidates(self.listed_on(database), database)
