"""Nearest members of convex sets: ascending sequences, laws, tables that agree."""

import numpy as np

from local_dp.arrays import Floats
from local_dp.errors import InputError


def ascending(values: Floats) -> Floats:
    """The nearest ascending sequence in square distance: pool adjacent violators."""
    pools: list[tuple[float, int]] = []
    for value in values.tolist():
        pool = (value, 1)
        while pools and pools[-1][0] / pools[-1][1] >= pool[0] / pool[1]:
            before = pools.pop()
            pool = (before[0] + pool[0], before[1] + pool[1])
        pools.append(pool)
    return np.concatenate([np.full(count, total / count) for total, count in pools])


def onto_simplex(values: Floats) -> Floats:
    """The nearest law in square distance, shape (k,): all values less one constant, cut at 0. O(k log k). Source: Held, Wolfe, Crowder 1974."""
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - 1) / np.arange(1, len(values) + 1)
    last = int(np.flatnonzero(ordered > excess)[-1])
    nearest: Floats = np.maximum(values - excess[last], 0.0)
    return nearest


def onto_consistent(margins: Floats, sums: Floats) -> Floats:
    """The nearest margins of one table, negative cells allowed: `sums` (m, k) says which cells each of the m margins adds up. Linear, so without bias."""
    if sums.ndim != 2 or margins.shape != sums.shape[:1]:
        raise InputError(f"there are margins of shape {margins.shape} and sums of shape {sums.shape}; give m of them, and m rows of cells")
    nearest: Floats = sums @ (np.linalg.pinv(sums) @ margins)
    return nearest
