"""What label-private and semi-private learners have in common: candidates from points that are not secret, a choice by labels that are."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import TypeVar

from local_dp.curator.labels.concepts import ConceptClass
from local_dp.curator.multisets import LabelledMultiset, Multiset
from local_dp.curator.selection.exponential import ByScore
from local_dp.curator.selection.groups import Groups

R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True)
class DichotomyLearner(ByScore[LabelledMultiset, R_co]):
    """One concept for each dichotomy of `listed_on`; of these by the exponential mechanism on the errors: eps."""

    concepts: ConceptClass[R_co]
    epsilon: float

    @abstractmethod
    def listed_on(self, database: LabelledMultiset) -> Multiset:
        """The points whose dichotomies are the candidates: the same ones for all neighbours."""

    def candidates(self, database: LabelledMultiset) -> Groups[R_co]:
        """A replaced label, or example, moves each number of errors by at most 1."""
        return self.concepts.candidates(self.listed_on(database), database)
