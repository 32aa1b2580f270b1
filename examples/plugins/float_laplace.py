"""A continuous randomizer by its own sampler. Its privacy follows from a density, which clients
refuse unless they are told otherwise; the audit can find a violation, and no proof.

    local-dp audit examples/plugins/float_laplace.py
    local-dp run mean --randomizer examples/plugins/float_laplace.py --unverified --seed 1
"""

from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Floats, Ints, Words
from local_dp.domains import Domain, levels
from local_dp.randomizers.finite import of_moments
from local_dp.randomizers.randomizer import Randomizer
from local_dp.tallies import Estimate, Tally

GRID = 1 << 10  # a report of 1


@dataclass(frozen=True)
class FloatLaplace(Randomizer):
    """Adds Laplace noise of scale 1 / epsilon to a number in [0, 1], rounded to 2^-10."""

    name = "float-laplace"
    source = "Dwork, McSherry, Nissim, Smith 2006"
    summary = "Adds Laplace noise to a number"
    evidence = "density"
    steps: int = 1 << 16

    @property
    def domain(self) -> Domain:
        return levels(self.steps)

    @property
    def report_dtype(self) -> "np.dtype[np.signedinteger]":
        return np.dtype("<i4")

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        uniform = (words.astype(np.float64) + 0.5) / self.total - 0.5
        noise = -np.sign(uniform) * np.log1p(-2 * np.abs(uniform)) / self.epsilon
        reports: Words = np.rint((values / self.steps + noise) * GRID).astype(self.report_dtype)
        return reports

    def tally(self, reports: Words, cells: Words) -> Tally:
        sums = reports.astype(np.int64)
        return Tally(np.array([sums.sum(), (sums**2).sum()]), len(reports))

    def estimate(self, tally: Tally) -> Estimate:
        mean, square = tally.counts / tally.answered / (GRID, GRID**2)
        return of_moments(mean, square, tally.answered)

    def variance(self, values: Ints, law: Floats) -> Floats:
        numbers = values / self.steps
        spread = law @ numbers**2 - (law @ numbers) ** 2
        return np.atleast_1d(spread + 2 / self.epsilon**2)
