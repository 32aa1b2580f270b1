"""Cases of `local_dp/curator/oracle_efficient` and `local_dp/curator/reductions`."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from local_dp.curator.mechanism import Law
from local_dp.curator.multisets import LabelledMultiset, Multiset
from local_dp.curator.oracle_efficient.perturbed import (
    NOTHING,
    Beside,
    Perturbation,
    PerturbedMinimum,
)
from local_dp.curator.oracle_efficient.separated import (
    Conjunctions,
    Exhaustive,
    Parities,
    Separated,
    Weighted,
)
from local_dp.curator.reductions.learners import (
    Amplified,
    ByLabel,
    LabelSanitizer,
    MediansByLabel,
    Processed,
)
from local_dp.curator.sanitizers.medians import Medians
from local_dp.curator.sanitizers.point_counts import ThresholdedHistogram
from local_dp.curator.selection.exponential import ByScore, Labelled, numbered
from local_dp.curator.selection.groups import Listed
from tests.support.mechanisms.case import PAIRS, POINTS, Case, Twin, labelled, points


@dataclass(frozen=True)
class ExactSizes(LabelSanitizer[Any, Any]):
    """Pays for the sizes, and releases them exactly."""

    def law(self, database: LabelledMultiset) -> Law[ByLabel[Any]]:
        sizes = (database.labelled(0).size, database.labelled(1).size)
        return {
            release: weight
            for release, weight in super().law(database).items()
            if release.sizes == sizes
        }


@dataclass(frozen=True)
class OnesCounted(ByScore[Multiset, int]):
    """A sanitizer of two points: how many records are 1, by the exponential mechanism."""

    epsilon: float = 1.0

    def candidates(self, database: Multiset) -> Listed:
        ones = int(database.counts[database.values == 1].sum())
        return numbered(-np.abs(np.arange(database.size + 1) - ones))


def coded(answers: Sequence[int]) -> int:
    return sum(3**place * each for place, each in enumerate(answers))


def amplified(records: int, *n: int) -> Case:
    """All answers of the parts; a wrong twin has a sanitizer of three times the loss."""
    once, thrice = (Amplified(OnesCounted(epsilon), records, coded) for epsilon in (1.0, 3.0))
    return Case(once, [(0,), (1,)], points(1), n, (Twin(thrice),))


def perturbed(
    queries: Separated, beside: Beside = NOTHING, n: tuple[int, ...] = (1, 2), tight: float = 1
) -> Case:
    """RSPM beside public weights; a wrong twin has half the noise."""
    once, twice = (
        PerturbedMinimum(Perturbation(queries, epsilon, beside), Exhaustive(queries))
        for epsilon in (1.0, 2.0)
    )
    return Case(once, EXAMPLES, Labelled.of, n, (Twin(twice),), tight)


def weighted(points: list[int], weights: list[int]) -> Weighted:
    return Weighted(np.array(points), np.array(weights))


def counted(epsilon: float, delta: float) -> Processed[Any, Any, Any, Any]:
    return Processed(ThresholdedHistogram(epsilon, delta), lambda release: len(release.values))


BITS = list(product((0, 1), repeat=2))
EXAMPLES = list(product(range(4), (0, 1)))
SIZES = (
    Twin(LabelSanitizer(Medians(3.0, 1, 2), 1, 3.0)),
    Twin(ExactSizes(Medians(1.0, 1, 2), 1, 1.0)),
)
CASES = (
    perturbed(Conjunctions(2)),
    perturbed(Parities(2)),
    perturbed(Parities(2), Beside(2, weighted([0, 3, 1], [-2, -2, 1])), (1,), 0.8),
    perturbed(Parities(2), Beside(3, weighted([1], [-6])), (1,), 0.8),
    Case(LabelSanitizer(Medians(1.0, 1, 2), 1, 1.0), PAIRS, labelled(2), (1,), SIZES, factor=0),
    Case(MediansByLabel(1.0, 1, 0), BITS, labelled(1), (2, 4), tight=0.5),
    amplified(1, 3),
    amplified(2, 2, 4),
    Case(counted(1.0, 0.2), POINTS, points(2), (2, 4), (Twin(counted(1.0, 0.6)),)),
)
