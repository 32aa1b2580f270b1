"""Elementwise work on long arrays, some entries at a time."""

from collections.abc import Callable

import numpy as np

from local_dp.arrays import Column

BLOCK = 1 << 13  # entries: arrays of this length stay in cache, and the allocator keeps them; longer ones it gives back, and each costs its page faults again


def in_blocks(work: Callable[..., Column], first: Column, *others: Column) -> Column:
    """work(first, *others) for a function of one entry of each at a time; of the others, those that are not as long as `first` are passed whole."""
    n = len(first)
    if n <= BLOCK:
        return work(first, *others)
    made: list[Column] = []
    for start in range(0, n, BLOCK):
        part = slice(start, start + BLOCK)
        made.append(work(first[part], *(other[part] if len(other) == n else other for other in others)))
    return np.concatenate(made)
