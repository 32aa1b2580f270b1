"""The law of the shuffled reports of a few clients by enumeration, in fractions: slow, and nothing to get wrong."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, permutations
from typing import TypeAlias

from local_dp.randomizers.finite import FiniteChannel

Row: TypeAlias = tuple[Fraction, ...]
Law: TypeAlias = dict[tuple[int, ...], Fraction]
"""The probability of each vector of counts of reports."""


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
