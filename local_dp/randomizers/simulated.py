"""Reports of clients; in a simulation by as many bits of each random word as the report depends on, which is faster."""

from functools import lru_cache, partial

import numpy as np

from local_dp.arrays import Ints, Words
from local_dp.noise import Draw, KeyedNoise, Noise, ties
from local_dp.randomizers.frequencies.grr import GRR, offsets
from local_dp.randomizers.frequencies.unary import UnaryEncoding
from local_dp.randomizers.one_bit import OneBit
from local_dp.randomizers.randomizer import Randomizer

UNDECIDED = np.uint16(0xFFFF)  # in place of a step
_FEW = 1 << 12  # clients below which a table of all pairs of bytes costs more than it saves


def answers(randomizer: Randomizer, noise: Noise, which: Draw, start: int, values: Ints, cells: Words) -> Words:
    """The reports of the clients from `start` on, whose values are `values`.

    In a simulation a byte or two of each word are drawn, and the rest of the few words that these bytes do not decide. The law is exactly that of `draw` and
    `respond`. A class with its own sampler or words uses these.
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
    flips = noise.leading(which, start, start + len(values), 8, ties((cut,))).below(cut)
    return randomizer.encode(values, cells) ^ flips.view(np.uint8)


def _unary(randomizer: UnaryEncoding, noise: KeyedNoise, which: Draw, start: int, values: Ints) -> Words:
    n, k = len(values), randomizer.places
    other, own = (_cut(randomizer, weight) for weight in randomizer.ones)
    drawn = noise.leading(which, start * k, (start + n) * k, 8, ties((other, own)))
    bits, places = drawn.below(other), np.arange(n) * k + values
    bits[places] = drawn.below_at(own, places)
    if k % 8:
        return np.packbits(bits.reshape(n, k), axis=1, bitorder="little")
    return np.packbits(bits, bitorder="little").reshape(n, k // 8)  # the same, twice as fast


def _moved(randomizer: GRR, noise: KeyedNoise, which: Draw, start: int, values: Ints) -> Words:
    other, n = _cut(randomizer, randomizer.other), len(values)
    step_of = partial(_step, other, randomizer.k) if n < _FEW else _steps(other, randomizer.k).take
    drawn = noise.leading(which, start, start + n, 16, lambda first: step_of(first) == UNDECIDED)
    steps = step_of(drawn.first)
    steps[drawn.places] = offsets(drawn.whole, other, randomizer.k)
    return randomizer.moved(values, steps)


def _step(other: int, k: int, first: Words) -> Words:
    """The step of each word that begins with these two bytes; UNDECIDED where they leave it open. k is at most 4096."""
    start = first.astype(np.uint64) << np.uint64(48)
    least, most = offsets(start, other, k), offsets(start | np.uint64((1 << 48) - 1), other, k)
    return np.where(least == most, least.astype(np.uint16), UNDECIDED)


@lru_cache(maxsize=64)
def _steps(other: int, k: int) -> Words:
    """`_step` for all pairs of bytes."""
    return _step(other, k, np.arange(1 << 16, dtype=np.uint16))
