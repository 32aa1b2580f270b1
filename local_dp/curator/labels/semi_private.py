"""Learning with public points that carry no label, and private examples."""

from dataclasses import dataclass
from typing import TypeVar

from local_dp.curator.labels.base import DichotomyLearner
from local_dp.curator.multisets import LabelledMultiset, Multiset
from local_dp.errors import InputError

R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, kw_only=True)
class SemiPrivateLearner(DichotomyLearner[R_co]):
    """A concept among one for each dichotomy of `public` points, with probability proportional to e^(-eps (errors) / 2) on the private examples.

    Privacy: eps for whole examples, points and labels; of the public points nothing. Utility: as that of label privacy, by VC dimension, given public points
    from the same distribution: `bounds.labels.public_points` of them. Cost: one score for each dichotomy.
    Source: Beimel, Nissim, Stemmer 2013, Section 6.2 and Example 6.3.
    """

    public: Multiset

    def listed_on(self, database: LabelledMultiset) -> Multiset:
        if self.public.bits != database.bits:
            raise InputError(f"the public points are of 0..2^{self.public.bits} - 1, the examples of 0..2^{database.bits} - 1; give one domain for both")
        return self.public
