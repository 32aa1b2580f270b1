"""Nearest members of convex sets: ascending sequences, laws, tables that agree."""

from collections.abc import Iterable, Sequence
from itertools import combinations, repeat

import numpy as np

from local_dp.arrays import Floats
from local_dp.errors import InputError


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
    """Moves margins, in place, to agreement on every shared set of columns: to the mean of their sums. Returns the largest distance from it.

    Linear. A change to a margin leaves the smaller ones in agreement. Source: Qardaji, Yang, Li 2014 (PriView).
    """
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
