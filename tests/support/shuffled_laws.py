"""The law of shuffled reports by enumeration, in fractions: slow, and nothing to get wrong."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, permutations

import numpy as np

from local_dp.randomizers.finite import FiniteChannel

Row = tuple[Fraction, ...]
Law = dict[tuple[int, ...], Fraction]


def rows_of(randomizer: FiniteChannel) -> list[Row]:
    """What each value sends: the cell with the answer."""
    channels = [randomizer.channel(cell) for cell in range(randomizer.cells)]
    return [tuple(Fraction(int(weight), randomizer.total * randomizer.cells) for channel in channels for weight in channel[v]) for v in range(len(channels[0]))]


def extremal_rows(generator: np.random.Generator, values: int, reports: int, ratio: Fraction) -> list[Row]:
    """A random channel whose reports are each sent with one of two probabilities, `ratio` apart."""
    table = [[ratio if high else Fraction(1) for high in generator.integers(0, 2, reports)] for _ in range(values)]
    scales = [Fraction(int(each)) for each in generator.integers(1, 6, reports)]
    rows = [[entry * scale for entry, scale in zip(row, scales, strict=True)] for row in table]
    return [tuple(entry / sum(row) for entry in row) for row in rows]


def shuffled(rows: Sequence[Row], values: Sequence[int]) -> Law:
    """The law of the counts of reports."""
    law: Law = {(0,) * len(rows[0]): Fraction(1)}
    for value in values:
        further: defaultdict[tuple[int, ...], Fraction] = defaultdict(Fraction)
        for counts, chance in law.items():
            for report, share in enumerate(rows[value]):
                further[(*counts[:report], counts[report] + 1, *counts[report + 1 :])] += chance * share
        law = dict(further)
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


def neighbours(rows: Sequence[Row], clients: int) -> Iterator[tuple[Law, Law]]:
    """The laws of every two data sets that differ in one client."""
    for others in combinations_with_replacement(range(len(rows)), clients - 1):
        law = shuffled(rows, others)
        laws = [with_one_more(rows, law, value) for value in range(len(rows))]
        yield from permutations(laws, 2)


def worst_delta(rows: Sequence[Row], clients: int, growths: Sequence[Fraction]) -> list[Fraction]:
    """The least delta beside each of these e^epsilon, over all pairs of neighbouring data sets."""
    worst = [Fraction(0)] * len(growths)
    for law, other in neighbours(rows, clients):
        worst = [max(found, stick(law, other, growth)) for found, growth in zip(worst, growths, strict=True)]
    return worst
