"""Steps from unbiased estimates to plausible values and likeliest laws, by nearest members of convex sets: all but one cost bias. No step runs by itself."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, repeat
from statistics import NormalDist
from typing import ClassVar

import numpy as np

from local_dp.arrays import Floats
from local_dp.checks import check_positive, check_whole
from local_dp.errors import InputError, unknown
from local_dp.randomizers.finite import FiniteChannel, report_law
from local_dp.tallies import Estimate, Tally


def ascending(sums: Floats | Sequence[float], weights: Iterable[float] = repeat(1)) -> Floats:
    """The nearest ascending sequence to sums / weights in weighted square distance: pool adjacent violators."""
    pools: list[tuple[float, float, int]] = []
    for total, weight in zip(np.asarray(sums).tolist(), weights, strict=False):
        pool = (total, weight, 1)
        while pools and pools[-1][0] / pools[-1][1] >= pool[0] / pool[1]:
            before = pools.pop()
            pool = (before[0] + pool[0], before[1] + pool[1], before[2] + pool[2])
        pools.append(pool)
    return np.concatenate([np.full(count, total / weight) for total, weight, count in pools])


def onto_simplex(values: Floats) -> Floats:
    """The nearest law in square distance, shape (k,): all values less one constant, cut at 0. O(k log k). Source: Held, Wolfe, Crowder 1974."""
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(values) + 1)
    last = int(np.flatnonzero(ordered > excess)[-1])
    return np.asarray(np.maximum(values - excess[last], 0.0))


def onto_consistent(margins: Floats, sums: Floats) -> Floats:
    """The nearest margins of one table, negative cells allowed: `sums` (m, k) says which cells each of the m margins adds up. Linear, so without bias."""
    if sums.ndim != 2 or margins.shape != sums.shape[:1]:
        raise InputError(f"there are margins of shape {margins.shape} and sums of shape {sums.shape}; give m of them, and m rows of cells")
    return sums @ (np.linalg.pinv(sums) @ margins)


Margin = tuple[tuple[int, ...], Floats]  # some columns, and the shares of their combinations, an axis each


def overlaps(sets: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], list[int]]:
    """For each nonempty set of columns that two of the sets share: the sets that contain it, the smallest first."""
    places_of: dict[tuple[int, ...], list[int]] = {}
    for place, columns in enumerate(sets):
        for size in range(1, len(columns)):
            for part in combinations(columns, size):
                places_of.setdefault(part, []).append(place)
    return {part: places_of[part] for part in sorted(places_of, key=lambda part: (len(part), part)) if len(places_of[part]) > 1}


def agree(margins: Sequence[Margin], shared: dict[tuple[int, ...], list[int]]) -> float:
    """Moves margins, in place, to the mean of their sums on every shared set; returns the largest distance. Source: Qardaji, Yang, Li 2014 (PriView)."""
    farthest = 0.0
    for part, places in shared.items():
        summed = [tuple(axis for axis, column in enumerate(margins[place][0]) if column not in part) for place in places]
        sums = [margins[place][1].sum(axis=axes, keepdims=True) for place, axes in zip(places, summed, strict=True)]
        mean = np.mean([each.ravel() for each in sums], axis=0)
        for place, own in zip(places, sums, strict=True):
            away = mean.reshape(own.shape) - own
            farthest = max(farthest, float(np.abs(away).max()))
            table = margins[place][1]
            table += away * own.size / table.size
    return farthest


def onto_agreeing_laws(margins: Sequence[Margin], nearness: float, rounds: int) -> float:
    """Makes margins, in place, laws that agree on their shared columns, by turns onto either; returns the largest distance from the mean at the end.

    It ends at a distance of at most `nearness`, or after so many rounds. The laws are exact, sums of 1 and nothing below 0.
    """
    shared, away = overlaps([columns for columns, _ in margins]), 0.0
    for table in (tables := [table for _, table in margins]):
        table[...] = _law(table)
    for _ in range(rounds):
        away = agree(margins, shared)
        for table in tables:
            table[...] = _law(table)
        if away <= nearness:
            break
    return away


def _law(table: Floats) -> Floats:
    return onto_simplex(table.ravel()).reshape(table.shape)


@dataclass(frozen=True)
class Step(ABC):
    """A map from an estimate's values, shape (k,), to others without a standard error; `bias` says in one line what it costs."""

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
    """Negative shares become 0, the others lose alike until all add up to 1: in the end the projection on the simplex. Source: Wang et al. 2020."""

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
    """0 for values below `deviations` standard errors; by default one of k absent symbols shows up in 5 % of runs. Source: Wang et al. 2020."""

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


_SMOOTHER = np.array([0.25, 0.5, 0.25])


@dataclass(frozen=True)
class Likeliest:
    """A law of values, shape (domain size,), the mean log-likelihood of a report under it, in nats, and the rounds it took."""

    law: Floats
    log_likelihood: float
    rounds: int


@dataclass(frozen=True)
class ExpectationMaximisation:
    """Maximises the likelihood of the reports over all laws of values, from the uniform one on.

    A post-processing step: it costs no privacy, and it is NOT unbiased: no share is below 0, so small ones come out too large; there is no standard error.
    It ends when a round gains less than `gain` nats a report, or after `rounds`. `smooth` averages neighbours (1/4, 1/2, 1/4) after each round: for numbers,
    whose unsmoothed solution has spikes where few reports decide (EMS). Source: Li et al. 2020, Section 5.5; Dempster, Laird, Rubin 1977.
    """

    gain: float = 1e-9
    rounds: int = 10_000
    smooth: bool = False

    def __post_init__(self) -> None:
        check_positive("the gain of a round", self.gain)
        check_whole("rounds", self.rounds, 1, 1 << 20)

    def __call__(self, randomizer: FiniteChannel, tally: Tally) -> Likeliest:
        """The law of the clients' values. Raises InputError if there is no report."""
        weights = tally.weights.ravel() / tally.answered
        chances = np.stack([report_law(randomizer, value) for value in randomizer.domain.values().tolist()])
        seen = weights > 0
        weights, chances = weights[seen], chances[:, seen]
        law, last, done = np.full(len(chances), 1 / len(chances)), -np.inf, 0
        while done < self.rounds:
            done += 1
            mixed = law @ chances
            likelihood = float(weights @ np.log(mixed))
            if likelihood - last < self.gain:
                break
            last = likelihood
            law = law * (chances @ (weights / mixed))
            if self.smooth:  # averages with both neighbours; the ends with their own mirror image
                law = np.convolve(np.pad(law, 1, mode="edge"), _SMOOTHER, mode="valid")
            law = law / law.sum()
        return Likeliest(law, float(weights @ np.log(law @ chances)), done)
