"""The law of the shuffled reports of a few clients by enumeration, in fractions: slow, and nothing to get wrong."""

import math
from collections import defaultdict
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
Law: TypeAlias = dict[tuple[int, ...], Fraction]
"""The probability of each vector of counts of reports."""
Exact: TypeAlias = NDArray[Any]
"""A law in whole numbers of any size, over the multisets of reports in lexicographic order."""


def rows_of(randomizer: FiniteChannel) -> list[Row]:
    """What each value sends: the cell with the answer."""
    channels = [randomizer.channel(cell) for cell in range(randomizer.cells)]
    return [tuple(Fraction(int(weight), randomizer.total * randomizer.cells) for channel in channels for weight in channel[v]) for v in range(len(channels[0]))]


def shuffled(rows: Sequence[Row], values: Sequence[int]) -> Law:
    """The law of the counts of reports of clients that hold these values."""
    law: Law = {(0,) * len(rows[0]): Fraction(1)}
    for value in values:
        law = with_one_more(rows, law, value)
    return law


def with_one_more(rows: Sequence[Row], law: Law, value: int) -> Law:
    """The law with one more client."""
    further: defaultdict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for counts, chance in law.items():
        for report, share in enumerate(rows[value]):
            further[(*counts[:report], counts[report] + 1, *counts[report + 1 :])] += chance * share
    return dict(further)


def stick(law: Law, other: Law, growth: Fraction) -> Fraction:
    """The hockey-stick divergence: the sum of (law - growth other)_+."""
    return sum((max(Fraction(0), chance - growth * other.get(counts, Fraction(0))) for counts, chance in law.items()), Fraction(0))


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
    return [Fraction(found, growth.denominator * whole**clients) for found, growth in zip(worst, growths, strict=True)]


def _of_others(weights: Sequence[Sequence[int]], law: Exact, others: int, left: int, value: int) -> Iterator[Exact]:
    """The law of each data set of the others, in whole numbers: `left` of them still come, none with a value below `value`."""
    if not left:
        yield law
        return
    for each in range(value, len(weights)):
        yield from _of_others(weights, _one_more(law, weights[each], others - left), others, left - 1, each)


def _one_more(law: Exact, row: Sequence[int], clients: int) -> Exact:
    """The law of `clients` clients with one more."""
    further = _further(len(row), clients)
    found: Exact = np.zeros(math.comb(clients + len(row), clients + 1), dtype=object)
    for report, weight in enumerate(row):
        found[further[:, report]] += law * weight
    return found


@lru_cache(maxsize=64)
def _further(reports: int, clients: int) -> Ints:
    """The place of each multiset of so many reports, with one more of each kind, among the multisets of one more; shape (multisets, kinds)."""
    places = {multiset: place for place, multiset in enumerate(combinations_with_replacement(range(reports), clients + 1))}
    held = combinations_with_replacement(range(reports), clients)
    return np.array([[places[tuple(sorted((*multiset, report)))] for report in range(reports)] for multiset in held])
