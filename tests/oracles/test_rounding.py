"""Numbers between two steps of a lattice: the words that round them are not those of the report."""

import numpy as np
import pytest

from local_dp.noise import Draw, KeyedNoise, Noise, StoreNoise
from local_dp.oracles.local.asked import dither
from local_dp.randomizers.numbers.rounded import OneBitMean
from tests.support.wrong import wrong

N = 1 << 14
NOISES: list[Noise] = [KeyedNoise(825612489), StoreNoise(bytes(32)).bound(b"request")]


@wrong(
    "local_dp.oracles.local.asked:dither",
    "96 - randomizer.width",
    "randomizer.width",
    "a number is rounded by the words that randomize it, so its report loses more than epsilon",
    at="32-KeyedNoise",
)
@pytest.mark.parametrize("noise", NOISES, ids=lambda noise: type(noise).__name__)
@pytest.mark.parametrize("bits", [32, 64])
def test_a_number_is_rounded_by_words_of_its_own(bits: int, noise: Noise) -> None:
    """The two are uncorrelated: beyond six standard errors with probability 2e-9. One word for both
    has correlation 1."""
    randomizer, which = OneBitMean(1.0, steps=4, word_bits=bits), Draw(1, 2)
    words = randomizer.draw(noise, which, 0, N) / 2.0**randomizer.width
    random = dither(randomizer, noise, which, 0, N)
    assert random.min() >= 0
    assert random.max() < 1
    assert abs(12 * np.mean((words - 0.5) * (random - 0.5))) < 6 / N**0.5
