"""Laws of shuffled reports in fractions, and random channels at the edge of a local loss."""

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from local_dp.shuffle.accountant import Row

Law: TypeAlias = dict[tuple[int, ...], Fraction]
"""The probability of each vector of counts of reports."""


def extremal_rows(
    generator: np.random.Generator, values: int, reports: int, ratio: Fraction
) -> list[Row]:
    """A random channel whose reports are each sent with one of two probabilities, `ratio` apart."""
    table = [
        [ratio if high else Fraction(1) for high in generator.integers(0, 2, reports)]
        for _ in range(values)
    ]
    scales = [Fraction(int(each)) for each in generator.integers(1, 6, reports)]
    rows = [[entry * scale for entry, scale in zip(row, scales, strict=True)] for row in table]
    return [tuple(entry / sum(row) for entry in row) for row in rows]


def shuffled(rows: Sequence[Row], values: Sequence[int]) -> Law:
    """The law of the counts of reports of clients with these values."""
    law: Law = {(0,) * len(rows[0]): Fraction(1)}
    for value in values:
        law = with_one_more(rows, law, value)
    return law


def with_one_more(rows: Sequence[Row], law: Law, value: int) -> Law:
    further: defaultdict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for counts, chance in law.items():
        for report, share in enumerate(rows[value]):
            sums = (*counts[:report], counts[report] + 1, *counts[report + 1 :])
            further[sums] += chance * share
    return dict(further)


def stick(law: Law, other: Law, growth: Fraction) -> Fraction:
    """The hockey-stick divergence: the sum of (law - growth other)_+."""
    gaps = (
        max(Fraction(0), chance - growth * other.get(counts, Fraction(0)))
        for counts, chance in law.items()
    )
    return sum(gaps, Fraction(0))
