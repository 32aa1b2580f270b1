"""Populations: the individuals of a run, handed out by client index."""

from abc import ABC, abstractmethod

import numpy as np

from local_dp.arrays import Floats, Ints
from local_dp.errors import InputError
from local_dp.queries.query import Query
from local_dp.randomizers.randomizer import Randomizer
from local_dp.records import Records


class Population(ABC):
    """`size` individuals; client i's record never depends on which others are asked for."""

    def __init__(self, size: int) -> None:
        if size < 1:
            raise InputError(f"clients is {size}; give 1 or more")
        self.size = size

    @property
    def remembers(self) -> bool:
        """Whether a client asked twice has the same record both times when tallies are drawn from their law: the rows of a table do."""
        return False

    @abstractmethod
    def batch(self, start: int, stop: int) -> Records:
        """The records of clients start..stop."""

    def values(self, query: Query, start: int, stop: int) -> Ints:
        """What the clients start..stop would answer to a query, shape (n,)."""
        return query.values(self.batch(start, stop))

    @abstractmethod
    def law(self, query: Query) -> Floats:
        """The probability of each value of the query's domain under the distribution the clients are drawn from, shape (domain size,)."""

    def tally_law(self, query: Query, randomizer: Randomizer) -> Floats | None:
        """Pr[cell, report] of a client drawn at random, shape (cells, alphabet), where the population has it in closed form; else None."""
        return None

    def value_counts(self, query: Query, start: int, stop: int, generator: np.random.Generator) -> dict[int, int]:
        """How many of the clients start..stop hold each value: here drawn from the multinomial of `law`."""
        law = self.law(query)
        drawn = generator.multinomial(stop - start, law / law.sum())  # a sum of shares may pass 1 by a rounding error
        held = np.flatnonzero(drawn)
        return dict(zip((held + query.domain.low).tolist(), drawn[held].tolist(), strict=True))


def weights_of_values(query: Query, records: Records, weights: Floats | None = None) -> Floats:
    values = query.values(records).astype(np.int64) - query.domain.low
    return np.bincount(values, weights=weights, minlength=query.domain.size).astype(np.float64)
