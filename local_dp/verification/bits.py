"""Whether the bits of a packed vector are independent and have the weights that are declared."""

import math
from dataclasses import replace

import numpy as np

from local_dp.arrays import Bools, Ints, Words
from local_dp.errors import InputError
from local_dp.randomizers.places import BitVector
from local_dp.verification.findings import ALPHA, Finding, Witness, divergence, spread, words_for

MAX_BITS = 1 << 21  # enumerated or drawn at most
NARROW = 16  # bits of an enumerated word, where a bit does not follow a threshold of its own word
VALUES = 16  # that reports are drawn for


def check_bits(randomizer: BitVector, seed: int) -> Finding:
    """By the threshold of each bit where each bit follows its own word; else by narrow words and by
    drawing."""
    values = randomizer.domain.values()[: max(2, MAX_BITS * 8 // randomizer.places)]
    odd = values[
        np.concatenate(
            [
                _odd(randomizer, part, seed)
                for part in np.array_split(values, -(-values.size * randomizer.places // MAX_BITS))
            ]
        )
    ]
    if 2 * len(odd) > len(values):
        by_words, by_reports = _every_word(randomizer), _check_draws(randomizer, seed)
        return by_reports if by_words is None or not by_reports.holds else by_words
    if len(odd):
        sentence = (
            f"input {odd[0]} does not send at every place the bit that its weight and its word "
            "make, as most inputs do"
        )
        return Finding(
            "sampler, enumerated",
            False,
            True,
            sentence,
            _odd_witness(randomizer, int(odd[0]), int(np.setdiff1d(values, odd)[0]), seed),
        )
    return _thresholds(randomizer)


def _weights(randomizer: BitVector, values: Ints) -> Words:
    """The weight of a 1 at each place, shape (values, places)."""
    return np.asarray(
        np.array(randomizer.ones, dtype=np.uint64)[randomizer.code[values - randomizer.domain.low]]
    )


def _odd(randomizer: BitVector, values: Ints, seed: int) -> Bools:
    """The inputs that do not send the bits of their words and weights, under the least words, the
    greatest and others."""
    weights, odd = _weights(randomizer, values), np.zeros(len(values), dtype=np.bool_)
    sample = words_for(randomizer, len(values), seed).reshape(weights.shape)
    for words in (
        np.zeros_like(sample),
        np.full_like(sample, (1 << randomizer.word_bits) - 1),
        sample,
    ):
        odd |= (_sent_bits(randomizer, values, words) != (words < weights)).any(axis=1)
    return odd


def _odd_witness(randomizer: BitVector, odd: int, other: int, seed: int) -> Witness:
    """The bit of an odd input that is furthest from its weight, against a right input."""
    n = max(64, MAX_BITS // randomizer.places // 4)
    rates = [
        _sent_bits(randomizer, np.full(n, value), words_for(randomizer, n, seed)).mean(axis=0)
        for value in (odd, other)
    ]
    shares = _weights(randomizer, np.array([odd]))[0] / 2.0**randomizer.word_bits
    place = int(abs(rates[0] - shares).argmax())
    bit = int(rates[0][place] > shares[place])
    one, two = (float(each[place]) if bit else 1 - float(each[place]) for each in rates)
    return Witness((odd, other), f"bit {bit} at place {place}", 0, one / two if two else None)


def _thresholds(randomizer: BitVector) -> Finding:
    """Whether bit j is 1 exactly for the words j below its weight, at both sides of every
    threshold, whatever the other words are."""
    values = randomizer.domain.low + spread(
        randomizer.domain.size, max(2, MAX_BITS // (8 * randomizer.places))
    )
    weights = _weights(randomizer, values)
    last = (1 << randomizer.word_bits) - 1
    for probe in sorted(
        {
            0,
            last,
            *(edge for ones in randomizer.ones for edge in (ones - 1, ones) if 0 <= edge <= last),
        }
    ):
        for other in (probe, 0, last):
            words = np.full(
                (len(values), randomizer.places), probe, dtype=f"u{randomizer.width // 8}"
            )
            words[:, ::2] = other
            wrong = _sent_bits(randomizer, values, words) != (words.astype(np.uint64) < weights)
            if wrong.any():
                value, place = (int(each) for each in np.argwhere(wrong)[0])
                sentence = (
                    f"input {values[value]} does not have at place {place} the bit that its "
                    f"weight declares at word {words[value, place]}"
                )
                return Finding(
                    "sampler, enumerated",
                    False,
                    True,
                    sentence,
                    Witness(
                        (int(values[value]), int(values[value - 1])), f"place {place}", 0, None
                    ),
                )
    size = randomizer.domain.size
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
    words = np.repeat(
        np.arange(1 << NARROW, dtype=f"u{narrow.width // 8}")[:, None], narrow.places, axis=1
    )
    mixed = words.copy()
    mixed[:, ::2] = words[np.random.default_rng(5).permutation(len(words)), ::2]
    values = narrow.domain.low + spread(narrow.domain.size, max(2, MAX_BITS * 4 // words.size))
    for value in values.tolist():
        each = np.full(len(words), value)
        bits, again = _sent_bits(narrow, each, words), _sent_bits(narrow, each, mixed)
        wrong = bits.sum(axis=0) != _weights(narrow, np.array([value]))[0].astype(np.int64)
        wrong[1::2] |= (again != bits).any(axis=0)[1::2]
        if wrong.any():
            place = int(wrong.argmax())
            sentence = (
                f"over all words of {NARROW} bits, input {value} does not send at place {place} "
                "as many ones as declared, by its own word alone"
            )
            return Finding(
                "sampler, enumerated",
                False,
                True,
                sentence,
                _drawn_witness(randomizer, value, place, MAX_BITS // narrow.places // 4, 7),
            )
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
    for value in values.tolist():
        ones = (
            np.array(randomizer.ones, dtype=np.float64)[
                randomizer.code[value - randomizer.domain.low]
            ]
            / 2.0**randomizer.word_bits
        )
        reports = _sent_bits(
            randomizer, np.full(each, value), words_for(randomizer, each, seed + value)
        ).astype(np.float64)
        # a place with itself, the next and the one after that, in a circle
        for step in range(min(3, randomizer.places)):
            both = ones if step == 0 else ones * np.roll(ones, step)
            rates = (reports * np.roll(reports, step, axis=1)).mean(axis=0)
            far = each * divergence(rates, both)
            if far.max() > bar:
                place = int(far.argmax())
                witness = _drawn_witness(randomizer, value, place, each, seed)
                sentence = (
                    f"input {value} has a 1 at place "
                    f"{place}{f' and at the one {step} before it' if step else ''} with share "
                    f"{rates[place]:.6g}"
                )
                sentence += (
                    f" where {both[place]:.6g} is declared, which chance does with probability "
                    f"{ALPHA:g}"
                )
                return Finding("sampler, drawn", False, False, sentence, witness)
    sentence = (
        f"of {each:,} reports of each of {len(values)} inputs, no share of ones at a place or at "
        "two is further from the declared one than chance allows"
    )
    return Finding("sampler, drawn", True, False, f"{sentence} with probability {ALPHA:g}")


def _drawn_witness(randomizer: BitVector, value: int, place: int, n: int, seed: int) -> Witness:
    """The bits of `value` and of another input at one place and the one before it, where they
    differ most."""
    other = randomizer.domain.low if value != randomizer.domain.low else randomizer.domain.high
    shares = []
    for each in (value, other):
        reports = _sent_bits(
            randomizer, np.full(n, each), words_for(randomizer, n, seed + each)
        ).astype(np.int64)
        both = 2 * reports[:, place - 1] + reports[:, place]
        shares.append(np.bincount(both, minlength=4) / n)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.nan_to_num(
            np.stack([shares[0] / shares[1], shares[1] / shares[0]]), nan=1.0, posinf=np.inf
        )
    side, bits = (int(each) for each in np.unravel_index(int(ratios.argmax()), ratios.shape))
    ratio = float(ratios[side, bits])
    at = f"bits {bits:02b} at places {(place - 1) % randomizer.places} and {place}"
    return Witness(
        (value, other) if side == 0 else (other, value),
        at,
        0,
        ratio if math.isfinite(ratio) else None,
    )


def _sent_bits(randomizer: BitVector, values: Ints, words: Words) -> Bools:
    reports = randomizer.respond(values, words, np.zeros(1, dtype=np.uint8))
    return np.unpackbits(reports, axis=1, count=randomizer.places, bitorder="little").astype(
        np.bool_
    )
