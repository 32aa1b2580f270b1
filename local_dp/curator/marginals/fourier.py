"""The Fourier mechanism: all marginals of a workload from one Gaussian release of its characters."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.curator.marginals.base import BinaryTable, Marginals
from local_dp.curator.marginals.weights import largest_move, weights_of
from local_dp.curator.mechanism import WithinDelta
from local_dp.curator.rounded_normal import mu_squared, rounded_normals
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import Approximate


@dataclass(frozen=True, eq=False)
class NoisyCharacters:
    """Noisy sums of the characters of a workload, and the variance of each one's noise: both shape (characters,); the empty one is n and has none."""

    workload: Marginals
    sums: Counts
    variances: Floats

    @property
    def size(self) -> int:
        """n."""
        return int(self.sums[0])

    @property
    def cells(self) -> Floats:
        """The estimated counts of all cells of the workload: unbiased, consistent between marginals that share columns; some may be below 0."""
        return self.workload.of_characters(self.sums)

    @property
    def deviations(self) -> Floats:
        """The standard errors of the cells, in records: shape (marginals,), the same for all cells of a marginal."""
        first = self.workload.of_characters(self.variances)[self.workload.starts[:-1]]  # the cell of zeros: the sum over its characters by 2^|T|
        return np.asarray(np.sqrt(first / np.array([1 << mask.bit_count() for mask in self.workload.masks])))


@dataclass(frozen=True)
class FourierGaussian(WithinDelta[BinaryTable, NoisyCharacters]):
    """For each character S of the workload the sum of (-1)^<S, x> over all records, plus a normal variable of variance V_S, rounded to a whole number.

    Privacy: (eps, delta), as one Gaussian mechanism: V_S is no less than 4 H / (mu^2 a_S), a_S the whole `weights_of` the workload, H = `largest_move`, mu the
    most that (eps, delta) allows. A replaced record moves characters by 2, those that meet its change oddly: squared and over V_S that sums to at most mu^2.
    Utility: a cell of a marginal T has variance 4^-|T| times the sum of V_S over the subsets of T; the sum over all cells is the least of all Gaussian noise
    for all t-way marginals. Cost: O(d 2^d) or O(n characters), and a table for each different V_S.
    Source: Barak et al. 2007 for the characters; the weights as in matrix mechanisms (Li et al. 2010; Edmonds, Nikolov, Ullman 2020).
    """

    workload: Marginals
    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.workload.characters) == 1:
            raise InputError("the workload is the number of records alone, which is public; give marginals of 1 column or more")

    @cached_property
    def variances(self) -> Counts:
        """V_S before rounding, one for each character: whole, 0 for the empty one."""
        weights = weights_of(self.workload)
        return precisions_to_variances(weights, largest_move(self.workload, weights), self.loss)

    def release(self, database: BinaryTable, draws: Draws) -> NoisyCharacters:
        if database.d != self.workload.d:
            raise InputError(f"the table has {database.d} columns and the workload {self.workload.d}; give one number for both")
        sums = database.characters(self.workload.characters) + noise_of(draws, self.variances)
        return NoisyCharacters(self.workload, sums, rounded_variances(self.variances))

    @property
    def deviation(self) -> float:
        """The root mean square over all cells of their standard errors, in records: known before any record is."""
        exact = NoisyCharacters(self.workload, np.zeros(len(self.variances), dtype=np.int64), rounded_variances(self.variances))
        sizes = np.diff(self.workload.starts)
        return math.sqrt(float((exact.deviations**2 * sizes).sum() / sizes.sum()))


def precisions_to_variances(weights: Counts, move: int, loss: Approximate) -> Counts:
    """V_S = ceil(4 move / (mu^2 a_S)) of statistics that a record moves by 2 or not at all; the weights a_S of those that it moves sum to at most `move`."""
    whole = 4 * move / mu_squared(loss)
    held, places = np.unique(weights, return_inverse=True)
    return np.array([math.ceil(whole / weight) if weight else 0 for weight in held.tolist()], dtype=np.int64)[places]


def noise_of(draws: Draws, variances: Counts) -> Counts:
    """One rounded normal of each variance; 0 where it is 0. Those of equal variance are drawn together."""
    noise = np.zeros(len(variances), dtype=np.int64)
    for variance in np.unique(variances[variances > 0]).tolist():
        chosen = variances == variance
        noise[chosen] = rounded_normals(draws, variance, int(chosen.sum()))
    return noise


def rounded_variances(variances: Counts) -> Floats:
    """Of the noise as it is added: rounding adds 1/12."""
    return np.asarray(np.where(variances > 0, variances + 1 / 12, 0.0))
