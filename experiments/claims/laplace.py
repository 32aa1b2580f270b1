"""The paper's literal randomizer, g + Lap(2/eps), in floating point: a baseline of experiments and
no more. One textbook report reveals g (limits 10)."""

import numpy as np
from numpy.random import Generator

from local_dp.arrays import Floats
from local_dp.bounds.response import clipped_laplace_shrinkage


def laplace_reports(values: Floats, epsilon: float, generator: Generator) -> Floats:
    """One report for each value in [-1, 1], shape (n,). KLNRS Claim 4.1 with b = 1; on an idealised
    real line it is epsilon-local."""
    return values + generator.laplace(scale=2 / epsilon, size=len(values))


def clipped(reports: Floats, epsilon: float) -> Floats:
    """The reports clipped to [-1, 1] and divided by m = 1 - (1 - e^-eps)/eps: unbiased where values
    are -1 or 1, of smaller variance (limits 1)."""
    kept: Floats = np.clip(reports, -1.0, 1.0) / clipped_laplace_shrinkage(epsilon)
    return kept
