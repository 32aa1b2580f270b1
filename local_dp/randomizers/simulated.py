"""How a client answers; and how simulated ones do it faster, with random words drawn only as far as a report depends on them."""

from functools import lru_cache, partial

import numpy as np

from local_dp.arrays import Ints, Words
from local_dp.noise import UNTOLD, Draw, KeyedNoise, Noise
from local_dp.randomizers.frequencies.grr import GRR, offsets
from local_dp.randomizers.frequencies.unary import UnaryEncoding
from local_dp.randomizers.one_bit import OneBit
from local_dp.randomizers.randomizer import Randomizer

_FEW = 1 << 12  # clients for whom it does not pay to look at every two bytes that there are


def answers(randomizer: Randomizer, noise: Noise, which: Draw, start: int, values: Ints, cells: Words) -> Words:
    """The reports of the clients from `start` on who hold `values`.

    In a simulation alone a byte or two of a word are drawn where these are enough, and the rest of a few others, which takes time that tells of them. The
    law is exactly that of `draw` and `respond`; a class that has a sampler or words of its own is asked itself.
    """
    if isinstance(noise, KeyedNoise):
        if isinstance(randomizer, OneBit) and _answers_as(randomizer, OneBit):
            return _flipped(randomizer, noise, which, start, values, cells)
        if isinstance(randomizer, UnaryEncoding) and _answers_as(randomizer, UnaryEncoding):
            return _unary(randomizer, noise, which, start, values)
        if isinstance(randomizer, GRR) and _answers_as(randomizer, GRR):
            return _moved(randomizer, noise, which, start, values)
    return randomizer.respond(values, randomizer.draw(noise, which, start, start + len(values)), cells)


def _answers_as(randomizer: Randomizer, base: type[OneBit | UnaryEncoding | GRR]) -> bool:
    kind = type(randomizer)
    return kind.respond is base.respond and kind.draw is base.draw is Randomizer.draw and kind.words is base.words


def _cut(randomizer: Randomizer, weight: int) -> int:
    """The weight as one of 2^64."""
    return weight << (64 - randomizer.word_bits)


def _flipped(randomizer: OneBit, noise: KeyedNoise, which: Draw, start: int, values: Ints, cells: Words) -> Words:
    cut = _cut(randomizer, randomizer.flip)
    flips = noise.leading(which, start, start + len(values), (cut,)).below(cut)
    return randomizer.encode(values, cells) ^ flips.view(np.uint8)


def _unary(randomizer: UnaryEncoding, noise: KeyedNoise, which: Draw, start: int, values: Ints) -> Words:
    n, k = len(values), randomizer.places
    other, own = (_cut(randomizer, weight) for weight in randomizer.ones)
    drawn = noise.leading(which, start * k, (start + n) * k, (other, own))
    bits, held = drawn.below(other), np.arange(n) * k + values
    bits[held] = drawn.below_at(own, held)
    if k % 8:
        return np.packbits(bits.reshape(n, k), axis=1, bitorder="little")
    return np.packbits(bits, bitorder="little").reshape(n, k // 8)  # the same, twice as fast


def _moved(randomizer: GRR, noise: KeyedNoise, which: Draw, start: int, values: Ints) -> Words:
    other, n = _cut(randomizer, randomizer.other), len(values)
    tell = partial(_step, other, randomizer.k) if n < _FEW else _steps(other, randomizer.k).take
    drawn = noise.told(which, start, start + n, tell)
    drawn.told[drawn.places] = offsets(drawn.whole, other, randomizer.k)
    return randomizer.moved(values, drawn.told)


def _step(other: int, k: int, first: Words) -> Words:
    """In which step a word lies that begins with these two bytes, UNTOLD where they do not say it: k is at most 4096."""
    start = first.astype(np.uint64) << np.uint64(48)
    least, most = offsets(start, other, k), offsets(start | np.uint64((1 << 48) - 1), other, k)
    return np.where(least == most, least.astype(np.uint16), UNTOLD)


@lru_cache(maxsize=64)
def _steps(other: int, k: int) -> Words:
    """That of every two bytes."""
    return _step(other, k, np.arange(1 << 16, dtype=np.uint16))
