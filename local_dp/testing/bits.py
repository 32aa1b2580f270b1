"""Whether the bits of a packed vector are independent and have the weights that are declared."""

import math

import numpy as np

from local_dp.arrays import Bools, Ints, Words
from local_dp.randomizers.bit_vector import BitVector
from local_dp.randomizers.per_coin import PerCoin
from local_dp.testing.drawing import ALPHA, divergence, spread, words_for
from local_dp.testing.findings import Finding

MAX_BITS = 1 << 21  # enumerated or drawn at most
ENCODED = 4096  # reports behind a coin that are compared
VALUES = 16  # that reports are drawn for


def bits_found(randomizer: BitVector, seed: int) -> Finding:
    """By the threshold of each bit where the sampler is the inherited one; by drawing where it is one of its own."""
    inherited = type(randomizer).respond is BitVector.respond and type(randomizer).words is BitVector.words
    return _thresholds(randomizer) if inherited else _drawn(randomizer, seed)


def encoded_bits_found(randomizer: PerCoin, inner: BitVector, seed: int) -> Finding:
    """What is found of the inner vector, if the reports are its reports of the codes, for drawn inputs, words and coins."""
    generator = np.random.default_rng(seed)
    values = generator.integers(randomizer.domain.low, randomizer.domain.high, ENCODED, endpoint=True)
    coins, words = generator.integers(0, 2**64 - 1, ENCODED, dtype=np.uint64, endpoint=True), words_for(randomizer, ENCODED, seed)
    codes = inner.domain.clip(randomizer.encode(values, coins))
    if not np.array_equal(randomizer.respond(values, words, coins), inner.respond(codes, words, np.zeros(1, dtype=np.uint8))):
        return Finding("sampler, drawn", False, False, f"of {ENCODED} reports, some are not those of the inner vector for the code of the input")
    return bits_found(inner, seed)


def _thresholds(randomizer: BitVector) -> Finding:
    """Bit j is 1 exactly for the words j below its weight, at both sides of every threshold, whatever the other words are."""
    values = randomizer.domain.low + spread(randomizer.domain.size, max(2, MAX_BITS // (4 * randomizer.places)))
    weights = np.array(randomizer.ones, dtype=np.uint64)[randomizer.code[values - randomizer.domain.low]]
    last = (1 << randomizer.word_bits) - 1
    for probe in sorted({0, last, *(edge for ones in randomizer.ones for edge in (ones - 1, ones) if 0 <= edge <= last)}):
        for other in (probe, 0, last):
            words = np.full((len(values), randomizer.places), probe, dtype=f"u{randomizer.width // 8}")
            words[:, ::2] = other
            wrong = _sent_bits(randomizer, values, words) != (words.astype(np.uint64) < weights)
            if wrong.any():
                value, place = (int(each) for each in np.argwhere(wrong)[0])
                said = f"input {values[value]} does not have at place {place} the bit that its weight declares at word {words[value, place]}"
                return Finding("sampler, enumerated", False, True, said)
    said = f"at both sides of every threshold, each bit of {len(values)} of {randomizer.domain.size} inputs is what its own word says, whatever the others are"
    return Finding("sampler, enumerated", True, len(values) == randomizer.domain.size, said)


def _drawn(randomizer: BitVector, seed: int) -> Finding:
    """The share of ones at each place, and of ones at two places at once, for some inputs: by the bound of `sampler.drawn_found`."""
    values = randomizer.domain.low + spread(randomizer.domain.size, VALUES)
    each = max(1000, 4 * MAX_BITS // (len(values) * randomizer.places))
    bar = math.log(2 * len(values) * 3 * randomizer.places / ALPHA)
    for value in values.tolist():
        ones = np.array(randomizer.ones, dtype=np.float64)[randomizer.code[value - randomizer.domain.low]] / 2.0**randomizer.word_bits
        sent = _sent_bits(randomizer, np.full(each, value), words_for(randomizer, each, seed + value)).astype(np.float64)
        for step in range(min(3, randomizer.places)):  # a place with itself, the next and the one after that, in a circle
            both = ones if step == 0 else ones * np.roll(ones, step)
            seen = (sent * np.roll(sent, step, axis=1)).mean(axis=0)
            far = each * divergence(seen, both)
            if far.max() > bar:
                place = int(far.argmax())
                said = f"input {value} has a 1 at place {place}{f' and at the one {step} before it' if step else ''} with share {seen[place]:.6g}"
                return Finding("sampler, drawn", False, False, f"{said} where {both[place]:.6g} is declared, which chance does with probability {ALPHA:g}")
    said = f"of {each:,} reports of each of {len(values)} inputs, no share of ones at a place or at two is further from the declared one than chance allows"
    return Finding("sampler, drawn", True, False, f"{said} with probability {ALPHA:g}")


def _sent_bits(randomizer: BitVector, values: Ints, words: Words) -> Bools:
    sent = randomizer.respond(values, words, np.zeros(1, dtype=np.uint8))
    return np.unpackbits(sent, axis=1, count=randomizer.places, bitorder="little").astype(np.bool_)
