"""Learners that protect the labels alone, or ask for few labels."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, TypeVar

from local_dp.curator.labels.concepts import ConceptClass
from local_dp.curator.mechanism import Neighbours
from local_dp.curator.multisets import LabelledMultiset, Multiset
from local_dp.curator.selection.exponential import ByScore
from local_dp.curator.selection.groups import Groups
from local_dp.errors import InputError

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


@dataclass(frozen=True)
class LabelPrivateLearner(DichotomyLearner[R_co]):
    """A concept among one for each dichotomy of the examples' own points, with probability proportional to e^(-eps (errors) / 2).

    Privacy: eps for the labels alone: the candidates depend on the points, of which nothing is kept secret.
    Utility: by VC dimension, not by the size of the class (`bounds.frequencies.label_examples`): every third threshold (`apart`) on any domain is
    within alpha .1 from 80 examples at 90 % and eps 1. Cost: one score for each dichotomy, m + 1 for thresholds.
    The text sets n examples aside to list the candidates and chooses by the others; as points are public, all examples serve for both.
    Source: Beimel, Nissim, Stemmer 2013, Figure 13 and Theorem 6.2; erratum E4.
    """

    neighbours: ClassVar[Neighbours] = "labels"

    def listed_on(self, database: LabelledMultiset) -> Multiset:
        return Multiset(database.bits, database.values, database.zeros + database.ones)


@dataclass(frozen=True, kw_only=True)
class SemiPrivateLearner(DichotomyLearner[R_co]):
    """A concept among one for each dichotomy of `public` points, with probability proportional to e^(-eps (errors) / 2) on the private examples.

    Privacy: eps for whole examples, points and labels; of the public points nothing. Utility: as that of label privacy, by VC dimension, given public points
    from the same distribution: `bounds.frequencies.public_points` of them. Cost: one score for each dichotomy.
    Source: Beimel, Nissim, Stemmer 2013, Section 6.2 and Example 6.3.
    """

    public: Multiset

    def listed_on(self, database: LabelledMultiset) -> Multiset:
        if self.public.bits != database.bits:
            raise InputError(f"the public points are of 0..2^{self.public.bits} - 1, the examples of 0..2^{database.bits} - 1; give one domain for both")
        return self.public
