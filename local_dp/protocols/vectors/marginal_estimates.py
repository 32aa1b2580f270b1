"""Marginals from what sets of clients told of sets of columns: unbiased, agreeing with one another, with their standard errors."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from local_dp.arrays import Floats
from local_dp.errors import InputError
from local_dp.protocols.vectors.marginal_design import Design, Set, Task
from local_dp.randomizers.frequencies.base import FrequencyOracle
from local_dp.randomizers.randomizer import Randomizer
from local_dp.tallies import Estimate, Tally

Added = tuple[Floats, Floats]  # what a cohort adds to the cells of some columns, and its variance


@dataclass(frozen=True)
class Dealt:
    """A design with so many clients in each cohort.

    A marginal is the sum of the interactions of its parts A: of what the shares of A's cells say beyond those of fewer columns. Each is averaged over all
    cohorts whose set holds A, by their clients. That is linear, hence without bias, and the same in every marginal that holds A, so that they agree.
    """

    task: Task
    design: Design
    clients: tuple[int, ...]

    @cached_property
    def asked(self) -> Mapping[Set, int]:
        """How many clients tell of each part."""
        asked = dict.fromkeys(self.task.parts, 0)
        for chosen, count in zip(self.design.sets, self.clients, strict=True):
            for part in [chosen] if self.design.characters else self._parts(chosen):
                asked[part] += count
        return asked

    def _parts(self, chosen: Set) -> Iterator[Set]:
        return (part for size in range(1, self.task.ways + 1) for part in combinations(chosen, size))

    def estimate(self, randomizers: Sequence[Randomizer], tallies: Sequence[Tally]) -> Estimate:
        """All cells of all marginals, shape (cells,), the last column of each running fastest. Raises InputError where nobody of a cohort answered."""
        told = [self._added(place, *one) for place, one in enumerate(zip(randomizers, tallies, strict=True))]
        masks = np.array([sum(1 << column for column in chosen) for chosen in self.design.sets], dtype=np.uint64)
        values, variances = zip(*(self._marginal(marginal, masks, told) for marginal in self.task.sets), strict=True)
        return Estimate(np.concatenate(values), np.sqrt(np.concatenate(variances)), sum(tally.n for tally in tallies))

    def _marginal(self, marginal: Set, masks: np.ndarray, told: Sequence[Mapping[Set, Added]]) -> Added:
        own = np.uint64(sum(1 << column for column in marginal))
        whole = self.task.cells(marginal)
        value, variance = np.full(whole, 1 / whole), np.zeros(whole)
        for place in np.flatnonzero(masks & ~own == 0 if self.design.characters else masks & own != 0).tolist():
            met = tuple(column for column in self.design.sets[place] if column in marginal)
            more, its = told[place][met]
            rest = whole // self.task.cells(met)
            value += self._spread(more, met, marginal) / rest
            variance += self._spread(its, met, marginal) / rest**2
        return value, variance

    def _spread(self, values: Floats, met: Set, marginal: Set) -> Floats:
        """Of each cell of the marginal the entry of `values`, which are of some of its columns."""
        shape = [self.task.shape[column] if column in met else 1 for column in marginal]
        return np.broadcast_to(values.reshape(shape), [self.task.shape[column] for column in marginal]).reshape(-1)

    def _added(self, place: int, randomizer: Randomizer, tally: Tally) -> dict[Set, Added]:
        """What one cohort adds to every marginal that meets its set in some columns, by these."""
        chosen = self.design.sets[place]
        if self.design.characters:
            odd = randomizer.estimate(tally)
            signs = _product([np.array([1.0, -1.0])] * len(chosen))
            size = len(signs)
            return {chosen: (signs * (1 - 2 * float(odd.value)) / size, np.full(size, (2 * float(odd.standard_error) / size) ** 2))}
        if not isinstance(randomizer, FrequencyOracle):
            raise InputError(f"marginals need an oracle that knows the covariance of its shares, and {randomizer.name} does not")
        parts = list(self._parts(chosen))
        rows = [self._rows(chosen, part, self.clients[place]) for part in parts]
        joint = randomizer.joint(tally, np.concatenate(rows))
        ends = np.cumsum([len(each) for each in rows])[:-1]
        return dict(zip(parts, zip(np.split(joint.value, ends), np.split(np.diagonal(joint.covariance), ends), strict=True), strict=True))

    def _rows(self, chosen: Set, met: Set, clients: int) -> Floats:
        """The weights of a cohort's cells in what it adds to the cells of `met`, some of its columns: shape (cells of met, cells of chosen)."""
        total = np.zeros((self.task.cells(met), self.task.cells(chosen)))
        for part in self._parts(met):
            total += clients / self.asked[part] * _product([_factor(self.task.shape[each], each in met, each in part) for each in chosen])
        return total


def _factor(k: int, met: bool, inside: bool) -> Floats:
    """One column's part in an interaction: of its own deviation from uniform, evenly over its symbols, or summed out."""
    if not met:
        return np.ones((1, k))
    return np.eye(k) - 1 / k if inside else np.full((k, k), 1 / k)


def _product(factors: Sequence[Floats]) -> Floats:
    """The Kronecker product, the last factor running fastest."""
    product: Floats = np.ones(1)
    for factor in factors:
        product = np.kron(product, factor).astype(np.float64, copy=False)
    return product
