"""Examples of a parity over the uniform cube."""

import numpy as np

from local_dp.arrays import Floats
from local_dp.cube import parity
from local_dp.errors import InputError
from local_dp.noise import philox_words, stream_key
from local_dp.populations.population import Population
from local_dp.queries.parity import ParityExample
from local_dp.queries.query import Query
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.signs.characters import Characters
from local_dp.randomizers.signs.deny import Deny
from local_dp.records import Records


class ParityPopulation(Population):
    """Examples (x, (-1)^<r, x>), x uniform over {0,1}^d."""

    def __init__(self, d: int, r: int, size: int, seed: int) -> None:
        super().__init__(size)
        self.d, self.r = d, r
        self._key = stream_key("population", seed)

    def batch(self, start: int, stop: int) -> Records:
        x = philox_words(self._key, start, stop) >> np.uint64(64 - self.d)
        odd = parity(x & np.uint64(self.r)).astype(np.int8)  # signed before 1 - 2 * odd, which would wrap in uint8
        return Records({"x": x, "y": np.int8(1) - np.int8(2) * odd})

    def law(self, query: Query) -> Floats:
        """The law of the whole example, the one query that parity learners ask."""
        if query != ParityExample(self.d):
            raise InputError(f"the law of {query.name!r} over parity examples is not known; ask parity-example with d = {self.d}")
        x = np.arange(1 << self.d, dtype=np.uint32)
        law = np.zeros((1 << self.d, 2))
        law[x, parity(x & np.uint32(self.r))] = 2.0**-self.d
        return law.ravel()

    def tally_law(self, query: Query, randomizer: FiniteChannel) -> Floats | None:
        """Every mask but r leaves a uniform bit, and the mask r randomized response to +1; of named parities, r is named least."""
        if query != ParityExample(self.d):
            return None
        if isinstance(randomizer, Deny):
            return randomizer.law(self.r)[None, :]
        if not isinstance(randomizer, Characters):
            return None
        lean = (randomizer.listed == self.r) / randomizer.gain
        return np.stack([1 + lean, 1 - lean], axis=1) / (2 * randomizer.cells)
