"""Draws from words that a test has written down, so that it can try them all, and from the words of
a seed."""

from collections.abc import Sequence

import numpy as np

from local_dp.arrays import Words
from local_dp.draws import Draws
from local_dp.noise import KeyedNoise


class Script(Draws):
    """Draws that read given words in order; raises IndexError with the number of words missing."""

    def __init__(self, words: Sequence[int]) -> None:
        super().__init__(KeyedNoise(0))
        self._left = list(words)

    def words(self, count: int) -> Words:
        if count > len(self._left):
            raise IndexError(count - len(self._left))
        words, self._left = self._left[:count], self._left[count:]
        return np.array(words, dtype=np.uint64)


def seeded(seed: int) -> Draws:
    """Draws from the words of this seed."""
    return Draws(KeyedNoise(seed))
