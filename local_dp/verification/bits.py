"""Whether the bits of a packed vector are independent and have the weights that are declared."""

import math
from dataclasses import replace

import numpy as np

from local_dp.arrays import Bools, Ints, Words
from local_dp.errors import InputError
from local_dp.randomizers.places import BitVector
from local_dp.randomizers.randomizer import NO_COIN
from local_dp.verification.findings import ALPHA, Finding, Witness, divergence, spread, words_for

MAX_BITS = 1 << 21  # enumerated or drawn at most
NARROW = 16  # bits of an enumerated word, where a bit does not follow a threshold of its own word
VALUES = 16  # that reports are drawn for


def check_bits(randomizer: BitVector, seed: int) -> Finding:
    """By the threshold of each bit where each bit follows its own word; else by narrow words and by
    drawing."""
    values = randomizer.domain.values()[: max(2, MAX_BITS * 8 // randomizer.places)]
    parts = np.array_split(values, -(-values.size * randomizer.places // MAX_BITS))
    odd = values[np.concatenate([_odd(randomizer, part, seed) for part in parts])]
    if 2 * len(odd) > len(values):
        by_words, by_reports = _every_word(randomizer), _check_draws(randomizer, seed)
        return by_reports if by_words is None or not by_reports.holds else by_words
    if len(odd):
        sentence = (
            f"input {odd[0]} does not send at every place the bit that its weight and its word "
            "make, as most inputs do"
        )
        other = int(np.setdiff1d(values, odd)[0])
        witness = _odd_witness(randomizer, int(odd[0]), other, seed)
        return Finding("sampler, enumerated", False, True, sentence, witness)
    return _thresholds(randomizer)


def _odd(randomizer: BitVector, values: Ints, seed: int) -> Bools:
    """The inputs that do not send the bits of their words and weights, under the least words, the
    greatest and others."""
    weights = randomizer.ones_of(values)
    odd = np.zeros(len(values), dtype=np.bool_)
    sample = words_for(randomizer, len(values), seed).reshape(weights.shape)
    last = np.full_like(sample, randomizer.total - 1)
    for words in (np.zeros_like(sample), last, sample):
        odd |= (_sent_bits(randomizer, values, words) != (words < weights)).any(axis=1)
    return odd


def _odd_witness(randomizer: BitVector, odd: int, other: int, seed: int) -> Witness:
    """The bit of an odd input that is furthest from its weight, against a right input."""
    n = max(64, MAX_BITS // randomizer.places // 4)
    rates = [_drawn_bits(randomizer, n, value, seed).mean(axis=0) for value in (odd, other)]
    shares = randomizer.shares_of(np.array([odd]))[0]
    place = int(abs(rates[0] - shares).argmax())
    one, two = (float(each[place]) for each in rates)
    bit = int(one > shares[place])
    if not bit:
        one, two = 1 - one, 1 - two
    return Witness((odd, other), f"bit {bit} at place {place}", 0, one / two if two else None)


def _thresholds(randomizer: BitVector) -> Finding:
    """Whether bit j is 1 exactly for the words j below its weight, at both sides of every
    threshold, whatever the other words are."""
    size, most = randomizer.domain.size, max(2, MAX_BITS // (8 * randomizer.places))
    values = randomizer.domain.low + spread(size, most)
    weights, last = randomizer.ones_of(values), randomizer.total - 1
    edges = {edge for ones in randomizer.ones for edge in (ones - 1, ones)}
    probes = sorted({0, last, *(edge for edge in edges if 0 <= edge <= last)})
    for probe, other in [(edge, beside) for edge in probes for beside in (edge, 0, last)]:
        words = np.full(weights.shape, probe, dtype=f"u{randomizer.width // 8}")
        words[:, ::2] = other
        wrong = _sent_bits(randomizer, values, words) != (words.astype(np.uint64) < weights)
        if wrong.any():
            value, place = (int(each) for each in np.argwhere(wrong)[0])
            sentence = (
                f"input {values[value]} does not have at place {place} the bit that its "
                f"weight declares at word {words[value, place]}"
            )
            inputs = int(values[value]), int(values[value - 1])
            witness = Witness(inputs, f"place {place}", 0, None)
            return Finding("sampler, enumerated", False, True, sentence, witness)
    sentence = (
        f"at both sides of every threshold, each bit of {len(values)} of {size} inputs is what "
        "its own word says, whatever the others are"
    )
    if len(values) < size <= MAX_BITS * 8 // randomizer.places:
        sentence += "; at the least words, the greatest and some others, those of all"
    return Finding("sampler, enumerated", True, len(values) == size, sentence)


def _every_word(randomizer: BitVector) -> Finding | None:
    """Over all narrow words as many make each bit a 1 as declared, and no other bit's word changes
    it. None for one that takes other words only."""
    try:
        narrow = replace(randomizer, word_bits=NARROW)
    except (InputError, ArithmeticError, ValueError):
        return None
    each_word = np.arange(1 << NARROW, dtype=f"u{narrow.width // 8}")
    words = np.repeat(each_word[:, None], narrow.places, axis=1)
    mixed = words.copy()
    mixed[:, ::2] = words[np.random.default_rng(5).permutation(len(words)), ::2]
    values = narrow.domain.low + spread(narrow.domain.size, max(2, MAX_BITS * 4 // words.size))
    for value in values.tolist():
        each = np.full(len(words), value)
        bits, again = _sent_bits(narrow, each, words), _sent_bits(narrow, each, mixed)
        wrong = bits.sum(axis=0) != narrow.ones_of(np.array([value]))[0].astype(np.int64)
        wrong[1::2] |= (again != bits).any(axis=0)[1::2]
        if wrong.any():
            place = int(wrong.argmax())
            sentence = (
                f"over all words of {NARROW} bits, input {value} does not send at place {place} "
                "as many ones as declared, by its own word alone"
            )
            n = MAX_BITS // narrow.places // 4
            witness = _drawn_witness(randomizer, value, place, n, 7)
            return Finding("sampler, enumerated", False, True, sentence, witness)
    inputs = f"{len(values)} of {narrow.domain.size} inputs"
    sentence = (
        f"over all words of {NARROW} bits, each bit of {inputs} is 1 as often as declared, "
        "whatever the other words are"
    )
    return Finding("sampler, enumerated", True, False, sentence)


def _check_draws(randomizer: BitVector, seed: int) -> Finding:
    """The share of ones at each place and at pairs of places, for some inputs: by the bound of
    `sampler.check_drawn`."""
    values = randomizer.domain.low + spread(randomizer.domain.size, VALUES)
    each = max(1000, 4 * MAX_BITS // (len(values) * randomizer.places))
    bar = math.log(2 * len(values) * 3 * randomizer.places / ALPHA)
    for value, ones in zip(values.tolist(), randomizer.shares_of(values), strict=True):
        bits = _drawn_bits(randomizer, each, value, seed + value).astype(np.float64)
        # a place with itself, the next and the one after that, in a circle
        for step in range(min(3, randomizer.places)):
            both = ones if step == 0 else ones * np.roll(ones, step)
            rates = (bits * np.roll(bits, step, axis=1)).mean(axis=0)
            far = each * divergence(rates, both)
            if far.max() > bar:
                place = int(far.argmax())
                where = f"{place} and at the one {step} before it" if step else f"{place}"
                sentence = (
                    f"input {value} has a 1 at place {where} with share {rates[place]:.6g} where "
                    f"{both[place]:.6g} is declared, which chance does with probability {ALPHA:g}"
                )
                witness = _drawn_witness(randomizer, value, place, each, seed)
                return Finding("sampler, drawn", False, False, sentence, witness)
    sentence = (
        f"of {each:,} reports of each of {len(values)} inputs, no share of ones at a place or at "
        "two is further from the declared one than chance allows"
    )
    return Finding("sampler, drawn", True, False, f"{sentence} with probability {ALPHA:g}")


def _drawn_witness(randomizer: BitVector, value: int, place: int, n: int, seed: int) -> Witness:
    """The bits of `value` and of another input at one place and the one before it, where they
    differ most."""
    domain = randomizer.domain
    other = domain.low if value != domain.low else domain.high
    shares = []
    for each in (value, other):
        answers = _drawn_bits(randomizer, n, each, seed + each).astype(np.int64)
        both = 2 * answers[:, place - 1] + answers[:, place]
        shares.append(np.bincount(both, minlength=4) / n)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.stack([shares[0] / shares[1], shares[1] / shares[0]])
    ratios = np.nan_to_num(ratios, nan=1.0, posinf=np.inf)
    side, bits = (int(each) for each in np.unravel_index(int(ratios.argmax()), ratios.shape))
    ratio = float(ratios[side, bits])
    inputs = (value, other) if side == 0 else (other, value)
    at = f"bits {bits:02b} at places {(place - 1) % randomizer.places} and {place}"
    return Witness(inputs, at, 0, ratio if math.isfinite(ratio) else None)


def _drawn_bits(randomizer: BitVector, n: int, value: int, seed: int) -> Bools:
    """Those of n reports of one input."""
    return _sent_bits(randomizer, np.full(n, value), words_for(randomizer, n, seed))


def _sent_bits(randomizer: BitVector, values: Ints, words: Words) -> Bools:
    reports = randomizer.respond(values, words, NO_COIN)
    bits = np.unpackbits(reports, axis=1, count=randomizer.places, bitorder="little")
    return bits.astype(np.bool_)
