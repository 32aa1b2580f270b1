"""What the checks by drawing share: words, inputs from end to end, and how far a share may be from what it should be."""

import numpy as np

from local_dp.arrays import Floats, Ints, Words
from local_dp.domains import Vectors
from local_dp.randomizers.randomizer import Randomizer

NUMBERS = 1 << 23  # coordinates or words that one check draws
ALPHA = 1e-9  # the probability that drawing finds fault with a sampler that has none


def words_for(randomizer: Randomizer, n: int, seed: int = 7) -> Words:
    """Words of its own width for n reports, the same for one seed."""
    dtype = np.uint64 if randomizer.width == 64 else np.uint32
    shape = n if randomizer.words == 1 else (n, randomizer.words)
    words: Words = np.random.default_rng(seed).integers(0, (1 << randomizer.word_bits) - 1, shape, dtype=dtype, endpoint=True)
    return words


def within(randomizer: Randomizer, n: int, numbers: int = NUMBERS) -> int:
    """n, or fewer where so many values have more coordinates, or their reports take more words, than these numbers."""
    each = max(randomizer.words, randomizer.domain.d if isinstance(randomizer.domain, Vectors) else 1)
    return max(2, min(n, numbers // each))


def divergence(seen: Floats, share: Floats) -> Floats:
    """KL(seen, share) of two coins, in nats, elementwise."""
    with np.errstate(divide="ignore", invalid="ignore"):
        heads = np.where(seen > 0, seen * np.log(seen / share), 0.0)
        tails = np.where(seen < 1, (1 - seen) * np.log((1 - seen) / np.maximum(1 - share, 0.0)), 0.0)
    return np.asarray(np.maximum(heads + tails, 0.0))


def spread(size: int, most: int) -> Ints:
    """At most so many of 0..size-1, from end to end."""
    return np.arange(size) if size <= most else np.unique(np.linspace(0, size - 1, most).astype(np.int64))
