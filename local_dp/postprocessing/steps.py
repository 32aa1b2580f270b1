"""Steps from unbiased estimates to plausible values and likeliest laws, at a cost in bias. No step
runs by itself."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, repeat

import numpy as np

from local_dp.arrays import Floats
from local_dp.checks import check_positive, check_whole
from local_dp.errors import InputError
from local_dp.randomizers.finite import FiniteChannel, report_law
from local_dp.tallies import Estimate, Tally


def ascending(sums: Floats | Sequence[float], weights: Iterable[float] = repeat(1)) -> Floats:
    """The nearest ascending sequence to sums / weights in weighted square distance: pool adjacent
    violators."""
    pools: list[tuple[float, float, int]] = []
    for total, weight in zip(np.asarray(sums).tolist(), weights, strict=False):
        pool = (total, weight, 1)
        while pools and pools[-1][0] / pools[-1][1] >= pool[0] / pool[1]:
            before = pools.pop()
            pool = (before[0] + pool[0], before[1] + pool[1], before[2] + pool[2])
        pools.append(pool)
    return np.concatenate([np.full(count, total / weight) for total, weight, count in pools])


def onto_simplex(values: Floats) -> Floats:
    """The nearest law in square distance, shape (k,): all values less one constant, cut at 0. O(k
    log k). Source: Held, Wolfe, Crowder 1974."""
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(values) + 1)
    last = int(np.flatnonzero(ordered > excess)[-1])
    return np.asarray(np.maximum(values - excess[last], 0.0))


# some columns, and the shares of their combinations, an axis each
Margin = tuple[tuple[int, ...], Floats]


def overlaps(sets: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], list[int]]:
    """For each nonempty set of columns that two of the sets share: the sets that contain it, the
    smallest first."""
    places_of: dict[tuple[int, ...], list[int]] = {}
    for place, columns in enumerate(sets):
        for size in range(1, len(columns)):
            for part in combinations(columns, size):
                places_of.setdefault(part, []).append(place)
    return {
        part: places_of[part]
        for part in sorted(places_of, key=lambda part: (len(part), part))
        if len(places_of[part]) > 1
    }


def agree(margins: Sequence[Margin], shared: dict[tuple[int, ...], list[int]]) -> float:
    """Moves margins, in place, to the mean of their sums on every shared set; returns the largest
    distance. Source: Qardaji, Yang, Li 2014 (PriView)."""
    farthest = 0.0
    for part, places in shared.items():
        axes_of = [
            tuple(axis for axis, column in enumerate(margins[place][0]) if column not in part)
            for place in places
        ]
        sums = [
            margins[place][1].sum(axis=axes, keepdims=True)
            for place, axes in zip(places, axes_of, strict=True)
        ]
        mean = np.mean([each.ravel() for each in sums], axis=0)
        for place, own in zip(places, sums, strict=True):
            away = mean.reshape(own.shape) - own
            farthest = max(farthest, float(np.abs(away).max()))
            table = margins[place][1]
            table += away * own.size / table.size
    return farthest


def onto_agreeing_laws(margins: Sequence[Margin], nearness: float, rounds: int) -> None:
    """Makes margins, in place, laws that agree on their shared columns, by turns onto either.

    It ends at a distance of at most `nearness`, or after so many rounds. The laws are exact, sums
    of 1 and nothing below 0.
    """
    shared = overlaps([columns for columns, _ in margins])
    for table in (tables := [table for _, table in margins]):
        table[...] = _law(table)
    for _ in range(rounds):
        away = agree(margins, shared)
        for table in tables:
            table[...] = _law(table)
        if away <= nearness:
            break


def _law(table: Floats) -> Floats:
    return onto_simplex(table.ravel()).reshape(table.shape)


@dataclass(frozen=True)
class AgreeingLaws:
    """Margins of several columns each as laws that agree: overlaps are averaged and norm-sub makes
    laws, by turns, until both hold within 1e-6.

    `sets` are the columns of each margin, `shape` how many symbols every column has; values lie
    margin after margin, the last column running fastest. Where the rounds are used up before, they
    are laws that nearly agree. Bias: cells near 0 come out too large and large ones too small, by
    about a standard error; the averages alone have none. Source: Zhang, Wang, Li, He, Chen 2018
    (CALM).
    """

    sets: tuple[tuple[int, ...], ...]
    shape: tuple[int, ...]
    rounds: int = 500

    def __call__(self, estimate: Estimate) -> Floats:
        shapes = [tuple(self.shape[column] for column in columns) for columns in self.sets]
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        if estimate.value.shape != (ends[-1],):
            raise InputError(
                f"there are values of shape {estimate.value.shape}, and the margins have "
                f"{ends[-1]} cells"
            )
        parts = np.split(estimate.value.astype(np.float64), ends[:-1])
        margins = [
            (columns, part.reshape(shape).copy())
            for columns, part, shape in zip(self.sets, parts, shapes, strict=True)
        ]
        onto_agreeing_laws(margins, 1e-6, self.rounds)
        return np.concatenate([table.ravel() for _, table in margins])


_SMOOTHER = np.array([0.25, 0.5, 0.25])


@dataclass(frozen=True)
class Likeliest:
    """A law of values, shape (domain size,), the mean log-likelihood of a report under it, in nats,
    and the rounds it took."""

    law: Floats
    log_likelihood: float
    rounds: int


@dataclass(frozen=True)
class ExpectationMaximisation:
    """Maximises the likelihood of the reports over all laws of values, from the uniform one on.

    A post-processing step: it costs no privacy, and it is NOT unbiased: no share is below 0, so
    small ones come out too large; there is no standard error. It ends when a round gains less than
    `gain` nats a report, or after `rounds`. `smooth` averages neighbours (1/4, 1/2, 1/4) after each
    round: for numbers, whose unsmoothed solution has spikes where few reports decide (EMS). Source:
    Li et al. 2020, Section 5.5; Dempster, Laird, Rubin 1977.
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
        chances = np.stack(
            [report_law(randomizer, value) for value in randomizer.domain.values().tolist()]
        )
        present = weights > 0
        weights = weights[present]
        chances = chances[:, present]
        law = np.full(len(chances), 1 / len(chances))
        last = -np.inf
        done = 0
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
