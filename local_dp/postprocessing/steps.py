"""Steps from unbiased estimates to plausible values: they cost no privacy, and all but one cost bias. No step runs by itself."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar

import numpy as np

from local_dp.arrays import Floats
from local_dp.errors import InputError, unknown
from local_dp.postprocessing.shapes import ascending, onto_agreeing_laws, onto_consistent, onto_simplex
from local_dp.tallies import Estimate


@dataclass(frozen=True)
class Step(ABC):
    """A map from an estimate's values, shape (k,), to others. They have no standard error: their error depends on the truth.

    `bias` says in one line what it costs.
    """

    name: ClassVar[str]
    bias: ClassVar[str]

    @abstractmethod
    def __call__(self, estimate: Estimate) -> Floats:
        """The values in place of the estimate's."""


@dataclass(frozen=True)
class SimplexProjection(Step):
    """The nearest law: shares of at least 0 that add up to 1."""

    name: ClassVar[str] = "simplex"
    bias: ClassVar[str] = "shares near 0 come out too large, and large ones too small, by about a standard error; none where all are far from 0"

    def __call__(self, estimate: Estimate) -> Floats:
        return onto_simplex(estimate.value)


@dataclass(frozen=True)
class NormSub(Step):
    """Negative shares become 0 and the others lose the same amount, until all add up to 1: in the end the projection on the simplex, and the same values.

    Source: Wang et al. 2020 (consistent frequency estimates), who show that it solves the constrained least squares.
    """

    name: ClassVar[str] = "norm-sub"
    bias: ClassVar[str] = SimplexProjection.bias

    def __call__(self, estimate: Estimate) -> Floats:
        values, kept = estimate.value, np.ones(len(estimate.value), dtype=np.bool_)
        while True:
            moved = np.where(kept, values + (1 - values[kept].sum()) / kept.sum(), 0.0)
            if (moved >= 0).all():
                return moved
            kept &= moved > 0


@dataclass(frozen=True)
class BaseCut(Step):
    """Keeps values above `deviations` standard errors, 0 in place of the rest; by default so many that of k absent symbols one shows up in 5 % of runs.

    Source: Wang et al. 2020; Erlingsson, Pihur, Korolova 2014 (the threshold).
    """

    name: ClassVar[str] = "base-cut"
    bias: ClassVar[str] = "shares below the threshold come out as 0; those well above it are without bias, and the sum is not 1"
    deviations: float = 0.0

    def __post_init__(self) -> None:
        if not self.deviations >= 0:
            raise InputError(f"the threshold is {self.deviations} standard errors; give a number of 0 or more")

    def __call__(self, estimate: Estimate) -> Floats:
        deviations = self.deviations or NormalDist().inv_cdf(1 - 0.05 / max(len(estimate.value), 2))
        return np.where(estimate.value > deviations * estimate.standard_error, estimate.value, 0.0)


@dataclass(frozen=True)
class Monotone(Step):
    """Prefix sums cut to [0, 1], each at least as large as all before it."""

    name: ClassVar[str] = "monotone"
    bias: ClassVar[str] = "upwards, most where the true sums are flat: each is the largest of several"

    def __call__(self, estimate: Estimate) -> Floats:
        return np.maximum.accumulate(np.clip(estimate.value, 0.0, 1.0))


@dataclass(frozen=True)
class Isotonic(Step):
    """The nearest ascending prefix sums, cut to [0, 1]: neighbours that fall are averaged."""

    name: ClassVar[str] = "isotonic"
    bias: ClassVar[str] = "where the true sums are flat the first come out too small and the last too large, less than by monotone; none where they are steep"

    def __call__(self, estimate: Estimate) -> Floats:
        return np.clip(ascending(estimate.value), 0.0, 1.0)


@dataclass(frozen=True)
class Consistent(Step):
    """Margins of one table, negative cells allowed: `sums` holds for each margin the cells that it adds up, shape (m, k), as a marginals' workload does."""

    name: ClassVar[str] = "consistent"
    bias: ClassVar[str] = "none: the projection is linear, and lowers the variance"
    sums: Floats

    def __call__(self, estimate: Estimate) -> Floats:
        return onto_consistent(estimate.value, self.sums)


@dataclass(frozen=True)
class AgreeingLaws(Step):
    """Margins of several columns each as laws that agree: overlaps are averaged and norm-sub makes laws, by turns, until both hold within 1e-6.

    `sets` are the columns of each margin, `shape` how many symbols every column has; values lie margin after margin, the last column running fastest. Where
    the rounds are used up before, they are laws that nearly agree. Source: Zhang, Wang, Li, He, Chen 2018 (CALM).
    """

    name: ClassVar[str] = "agreeing-laws"
    bias: ClassVar[str] = "cells near 0 come out too large and large ones too small, by about a standard error; the averages alone have none"
    sets: tuple[tuple[int, ...], ...]
    shape: tuple[int, ...]
    rounds: int = 500

    def __call__(self, estimate: Estimate) -> Floats:
        shapes = [tuple(self.shape[column] for column in columns) for columns in self.sets]
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        if estimate.value.shape != (ends[-1],):
            raise InputError(f"there are values of shape {estimate.value.shape}, and the margins have {ends[-1]} cells")
        parts = np.split(estimate.value.astype(np.float64), ends[:-1])
        margins = [(columns, part.reshape(shape).copy()) for columns, part, shape in zip(self.sets, parts, shapes, strict=True)]
        onto_agreeing_laws(margins, 1e-6, self.rounds)
        return np.concatenate([table.ravel() for _, table in margins])


STEPS: Mapping[str, type[Step]] = {step.name: step for step in (SimplexProjection, NormSub, BaseCut, Monotone, Isotonic)}


def named_step(name: str) -> Step:
    """The step of this name with its defaults. Raises InputError."""
    if name not in STEPS:
        raise InputError(unknown("there is no step of post-processing named", name, STEPS))
    return STEPS[name]()
