"""Learners of thresholds: the hypothesis t of 0..2^bits says 1 if and only if x >= t."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from local_dp.arrays import Counts
from local_dp.curator.mechanism import Mechanism
from local_dp.curator.multisets import LabelledMultiset
from local_dp.curator.selection.runs import Runs
from local_dp.loss import Loss

L_co = TypeVar("L_co", bound=Loss, covariant=True)


@dataclass(frozen=True)
class ThresholdLearner(Mechanism[LabelledMultiset, int, L_co]):
    """From labelled points a threshold t; private on all of them, also where no threshold fits."""

    @abstractmethod
    def chance(self, sample: LabelledMultiset, low: int, high: int) -> float:
        """Pr[low <= t <= high] on this sample, exactly but for rounding: analysis, not part of a release."""


def errors_by_gap(sample: LabelledMultiset) -> Counts:
    """How many records the thresholds misclassify that have g of the s distinct points below them, g = 0..s; no replaced record moves one by more than 1."""
    missed_below = np.concatenate([[0], np.cumsum(sample.ones)])
    right_above = np.concatenate([[0], np.cumsum(sample.zeros)])
    errors: Counts = missed_below + (right_above[-1] - right_above)
    return errors


def agreements(sample: LabelledMultiset) -> Runs:
    """How many records each threshold classifies right: quasi-concave where some threshold classifies all. O(s)."""
    return Runs(sample.values, sample.size - errors_by_gap(sample), 1 << sample.bits)
