"""Learning where only the labels are secret: at the price of learning without privacy, in its order."""

from dataclasses import dataclass
from typing import ClassVar, TypeVar

from local_dp.curator.labels.base import DichotomyLearner
from local_dp.curator.mechanism import Neighbours
from local_dp.curator.multisets import LabelledMultiset, Multiset

R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True)
class LabelPrivateLearner(DichotomyLearner[R_co]):
    """A concept among one for each dichotomy of the examples' own points, with probability proportional to e^(-eps (errors) / 2).

    Privacy: eps for the labels alone: the candidates depend on the points, of which nothing is kept secret.
    Utility: by VC dimension, not by the size of the class (`bounds.labels.label_examples`): every third threshold (`apart`) on any domain is
    within alpha .1 from 80 examples at 90 % and eps 1. Cost: one score for each dichotomy, m + 1 for thresholds.
    The text sets n examples aside to list the candidates and chooses by the others; as points are public, all examples serve for both.
    Source: Beimel, Nissim, Stemmer 2013, Figure 13 and Theorem 6.2; erratum E4.
    """

    neighbours: ClassVar[Neighbours] = "labels"

    def listed_on(self, database: LabelledMultiset) -> Multiset:
        return Multiset(database.bits, database.values, database.zeros + database.ones)
