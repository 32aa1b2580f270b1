"""The law of the shuffled reports of a few clients by exact enumeration: slow, and simple enough to check other bounds by."""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, permutations, product
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from local_dp.arrays import Ints
from local_dp.randomizers.finite import FiniteChannel

Row: TypeAlias = tuple[Fraction, ...]
Exact: TypeAlias = NDArray[Any]
"""A law in whole numbers of any size, over the multisets of reports in lexicographic order."""


def rows_of(randomizer: FiniteChannel) -> list[Row]:
    """The law of a value's report: its coin's cell with the answer."""
    channels = [randomizer.channel(cell) for cell in range(randomizer.cells)]
    return [tuple(Fraction(int(weight), randomizer.total * randomizer.cells) for channel in channels for weight in channel[v]) for v in range(len(channels[0]))]


def worst_delta(rows: Sequence[Row], clients: int, growths: Sequence[Fraction]) -> list[Fraction]:
    """The least delta beside each of these e^epsilon, over all pairs of neighbouring data sets: all multisets of values of the others, all pairs of values.

    In whole numbers: probabilities times a power of the rows' common denominator.
    """
    whole = math.lcm(*(share.denominator for row in rows for share in row))
    weights = [[int(share * whole) for share in row] for row in rows]
    worst = [0] * len(growths)
    for law in _of_others(weights, np.array([1], dtype=object), clients - 1, clients - 1, 0):
        laws = [_one_more(law, row, clients - 1) for row in weights]
        for (first, other), (place, growth) in product(permutations(laws, 2), enumerate(growths)):
            over = first * growth.denominator - other * growth.numerator
            worst[place] = max(worst[place], over[over > 0].sum())
    return [Fraction(least, growth.denominator * whole**clients) for least, growth in zip(worst, growths, strict=True)]


def _of_others(weights: Sequence[Sequence[int]], law: Exact, others: int, left: int, value: int) -> Iterator[Exact]:
    """The law of each data set of the others: `left` of them still come, none with a value below `value`."""
    if not left:
        yield law
        return
    for each in range(value, len(weights)):
        yield from _of_others(weights, _one_more(law, weights[each], others - left), others, left - 1, each)


def _one_more(law: Exact, row: Sequence[int], clients: int) -> Exact:
    """The law with one more client."""
    further = _further(len(row), clients)
    longer: Exact = np.zeros(math.comb(clients + len(row), clients + 1), dtype=object)
    for report, weight in enumerate(row):
        longer[further[:, report]] += law * weight
    return longer


@lru_cache(maxsize=64)
def _further(reports: int, clients: int) -> Ints:
    """The place of each multiset of so many reports, with one more of each kind, among the multisets of one more; shape (multisets, kinds)."""
    places = {multiset: place for place, multiset in enumerate(combinations_with_replacement(range(reports), clients + 1))}
    multisets = combinations_with_replacement(range(reports), clients)
    return np.array([[places[tuple(sorted((*multiset, report)))] for report in range(reports)] for multiset in multisets])
