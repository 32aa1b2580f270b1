"""Random channels at the edge of what a local loss allows."""

from fractions import Fraction

import numpy as np

from local_dp.shuffle.enumerated import Row


def extremal_rows(generator: np.random.Generator, values: int, reports: int, ratio: Fraction) -> list[Row]:
    """A random channel whose reports are each sent with one of two probabilities, `ratio` apart."""
    table = [[ratio if high else Fraction(1) for high in generator.integers(0, 2, reports)] for _ in range(values)]
    scales = [Fraction(int(each)) for each in generator.integers(1, 6, reports)]
    rows = [[entry * scale for entry, scale in zip(row, scales, strict=True)] for row in table]
    return [tuple(entry / sum(row) for entry in row) for row in rows]
