"""The conformance of bit vectors and of randomizers that a whole public coin encodes."""

import math
from dataclasses import replace

import numpy as np

from local_dp.arrays import Floats, Words
from local_dp.conformance.channels import conform_channel
from local_dp.randomizers.bit_vector import BitVector
from local_dp.randomizers.per_coin import PerCoin
from local_dp.randomizers.places import PlaceVector
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.with_coin import WithCoin
from local_dp.tallies import Tally
from local_dp.verification.common import check_loss, check_parameters, truth, values_of

REPORTS = 300  # of the checks on random reports
COINED = 64  # draws of words under which all values are compared
COINS = 200_000  # of the check of an estimate whose exact law is over all coins
NARROW = 16  # bits of a word, of which every one is enumerated where a bit is no threshold of it


def conform_bits(randomizer: BitVector, slack: float, symbols: bool) -> None:
    """All checks of a bit vector: its loss, its sampler by every threshold or every narrow word, its tally, its estimate with the exact variance."""
    check_loss(randomizer, slack)
    if _in_steps(randomizer):
        _check_every_word(replace(randomizer, word_bits=NARROW))
    else:
        _check_thresholds(randomizer)
    _check_reports(randomizer)
    if symbols:
        _check_linear_estimate(randomizer)
    check_parameters(randomizer)


def conform_places(randomizer: PlaceVector, slack: float, symbols: bool) -> None:
    """All checks of a vector of small reports: the channel of a place, that each place answers by its own word alone, its loss, tally and estimate."""
    conform_channel(randomizer.inner, math.inf, exhaustive=False, symbols=False)
    check_loss(randomizer, slack)
    values, generator, no_cells = values_of(randomizer.domain), np.random.default_rng(1), np.zeros(1, dtype=np.uint8)
    words = generator.integers(0, (1 << randomizer.word_bits) - 1, (len(values), randomizer.places), dtype=f"u{randomizer.width // 8}", endpoint=True)
    reports = randomizer.respond(values, words, no_cells)
    for place in range(randomizer.places):
        own = randomizer.inner.respond(randomizer.code[values - randomizer.domain.low, place], words[:, place], no_cells)
        assert (reports[:, place] == own).all(), f"{randomizer.name}: a place does not report what its own word says"
    _check_reports(randomizer)
    if symbols:
        _check_drawn_estimate(randomizer)
    check_parameters(randomizer)


def conform_coins(randomizer: PerCoin, slack: float, symbols: bool) -> None:
    """All checks of a randomizer behind a public coin: its inner channel, its codes under any coin, its tally, its estimate from made-up clients."""
    if isinstance(randomizer.inner, BitVector):
        conform_bits(randomizer.inner, slack, symbols=False)
    elif isinstance(randomizer.inner, PlaceVector):
        conform_places(randomizer.inner, slack, symbols=False)
    else:
        conform_channel(randomizer.inner, slack, exhaustive=False, symbols=False)
    check_loss(randomizer, slack)
    _check_codes(randomizer)
    _check_reports(randomizer)
    if symbols:
        _check_drawn_estimate(randomizer)
    check_parameters(randomizer)


def conform_with_coin(randomizer: WithCoin, slack: float, symbols: bool) -> None:
    """What a coin that is sent along adds to the checks of the randomizer whose coin it is."""
    check_loss(randomizer, slack)
    check_own_coins(randomizer)
    _check_reports(randomizer)
    if symbols:
        _check_drawn_estimate(randomizer)
    check_parameters(randomizer)


def check_own_coins(randomizer: WithCoin) -> None:
    """Under the same words every value sends the same coin, that of the first words; and beside it what the other randomizer says under that coin."""
    generator, coined = np.random.default_rng(6), randomizer.coined
    values, first = values_of(randomizer.domain), randomizer.words - coined.words
    for words in _words(randomizer, COINED, generator):
        drawn = sum(int(word) << place * randomizer.word_bits for place, word in enumerate(words[:first])) % 2**64
        coins = np.repeat(coined.cells_of(np.array([drawn], dtype=np.uint64)), len(values))
        told = np.repeat(words[None, first:], len(values), axis=0)
        sent, reports = randomizer.parts(randomizer.respond(values, np.repeat(words[None], len(values), axis=0), np.zeros(1, dtype=np.uint8)))
        assert (sent == coins).all(), f"{randomizer.name}: the coin is not that of the words, whatever the value"
        assert (reports == coined.respond(values, told[:, 0] if coined.words == 1 else told, coins)).all(), f"{randomizer.name}: a report is not its coin's"


def _unpacked(randomizer: BitVector, reports: Words) -> Words:
    return np.unpackbits(reports, axis=1, count=randomizer.places, bitorder="little")


def _in_steps(randomizer: BitVector) -> bool:
    """Whether the least words do not make every bit 1: then it uses its words in a way of its own, such as in two steps."""
    words = np.zeros((1, randomizer.places), dtype=f"u{randomizer.width // 8}")
    return not _unpacked(randomizer, randomizer.respond(randomizer.domain.values()[:1], words, np.zeros(1, dtype=np.uint8))).all()


def _check_every_word(randomizer: BitVector) -> None:
    """Of all words, as many make bit j a 1 as it declares, for every value; and no other bit's word changes it."""
    words = np.repeat(np.arange(1 << randomizer.word_bits, dtype=f"u{randomizer.width // 8}")[:, None], randomizer.places, axis=1)
    others, no_cells = np.random.default_rng(5).permutation(len(words)), np.zeros(1, dtype=np.uint8)
    for value in values_of(randomizer.domain)[:NARROW].tolist():
        bits = _unpacked(randomizer, randomizer.respond(np.full(len(words), value), words, no_cells))
        declared = np.array(randomizer.ones)[randomizer.code[value - randomizer.domain.low]]
        assert (bits.sum(axis=0, dtype=np.int64) == declared).all(), f"{randomizer.name}: of value {value} a bit does not have the weight it declares"
        mixed = words.copy()
        mixed[:, ::2] = words[others, ::2]
        again = _unpacked(randomizer, randomizer.respond(np.full(len(words), value), mixed, no_cells))
        assert (again[:, 1::2] == bits[:, 1::2]).all(), f"{randomizer.name}: a bit depends on another bit's word"


def _check_thresholds(randomizer: BitVector) -> None:
    """Bit j is 1 exactly for the words j below its weight, at both sides of every threshold, whatever the other words are."""
    values, word = values_of(randomizer.domain), np.dtype(f"u{randomizer.width // 8}")
    last = (1 << randomizer.word_bits) - 1
    weights = np.array(randomizer.ones, dtype=np.uint64)[randomizer.code[values - randomizer.domain.low]]
    no_cells = np.zeros(1, dtype=np.uint8)
    for probe in sorted({0, last, *(edge for ones in randomizer.ones for edge in (ones - 1, ones) if 0 <= edge <= last)}):
        words = np.full((len(values), randomizer.places), probe, dtype=word)
        bits = _unpacked(randomizer, randomizer.respond(values, words, no_cells))
        assert (bits == (np.uint64(probe) < weights)).all(), f"{randomizer.name}: a bit does not have the weight it declares at word {probe}"
        words[:, ::2] = last
        mixed = _unpacked(randomizer, randomizer.respond(values, words, no_cells))
        assert (mixed[:, 1::2] == bits[:, 1::2]).all(), f"{randomizer.name}: a bit depends on another bit's word"


def _check_codes(randomizer: PerCoin) -> None:
    """Under any coin, the report is that of the inner channel for the code, and the code is one of the inner domain's or is clipped to it."""
    generator = np.random.default_rng(4)
    values = generator.choice(values_of(randomizer.domain), REPORTS)
    coins = np.concatenate([np.array([0, 2**64 - 1], dtype=np.uint64), generator.integers(0, 2**64 - 1, REPORTS - 2, dtype=np.uint64, endpoint=True)])
    words = _words(randomizer, REPORTS, generator)
    codes = randomizer.inner.domain.clip(randomizer.encode(values, coins))
    reports = randomizer.respond(values, words, coins)
    assert (reports == randomizer.inner.respond(codes, words, np.zeros(1, dtype=np.uint8))).all(), f"{randomizer.name}: a report is not its inner channel's"


def _words(randomizer: Randomizer, n: int, generator: np.random.Generator) -> Words:
    shape = (n,) if randomizer.words == 1 else (n, randomizer.words)
    dtype = np.dtype(f"u{randomizer.width // 8}")
    words: Words = generator.integers(0, (1 << randomizer.word_bits) - 1, shape, dtype=dtype.type, endpoint=True)
    return words


def _check_reports(randomizer: Randomizer) -> None:
    """A report depends on its own client alone, fits its wire form, is possible; tallies form a commutative monoid."""
    generator = np.random.default_rng(2)
    values = generator.choice(values_of(randomizer.domain), REPORTS)
    words, coins = _words(randomizer, REPORTS, generator), generator.integers(0, 2**63, REPORTS, dtype=np.uint64)
    reports = randomizer.respond(values, words, coins)
    alone = np.concatenate([randomizer.respond(values[i : i + 1], words[i : i + 1], coins[i : i + 1]) for i in range(REPORTS)])
    assert (reports == alone).all(), f"{randomizer.name}: a report depends on other clients"
    packed = np.ascontiguousarray(reports, dtype=randomizer.report_dtype.base).tobytes()
    assert len(packed) == REPORTS * randomizer.report_dtype.itemsize, f"{randomizer.name}: a report is not as wide as its wire form"
    assert (np.frombuffer(packed, dtype=randomizer.report_dtype) == reports).all(), f"{randomizer.name}: a report does not survive the wire"
    assert bool(randomizer.possible(reports).all()), f"{randomizer.name}: it calls its own report impossible"
    whole = randomizer.tally(reports, coins)
    parts = [randomizer.tally(reports[part], coins[part]) for part in (slice(200, REPORTS), slice(0, 90), slice(90, 200))]
    merged = randomizer.empty() + parts[0] + (parts[1] + parts[2])
    assert (merged.counts == whole.counts).all(), f"{randomizer.name}: tallies do not merge"
    assert merged.n == whole.n == REPORTS, f"{randomizer.name}: a tally of {REPORTS} reports says {whole.n}"


def _check_linear_estimate(randomizer: BitVector) -> None:
    """E[estimate] is the truth for every value held, and n standard_error^2 the exact variance, from the moments of the bits."""
    values = values_of(randomizer.domain)
    ones = np.array(randomizer.ones, dtype=np.float64)[randomizer.code[values - randomizer.domain.low]] / 2.0**randomizer.word_bits
    nothing = _estimated(randomizer, np.zeros(randomizer.places))
    slopes = np.stack([_estimated(randomizer, row) - nothing for row in np.eye(randomizer.places)])
    truths = np.stack([truth(randomizer.domain, int(value), slopes.shape[1]) for value in values])
    means = nothing + ones @ slopes
    assert abs(means - truths).max() <= 1e-6, f"{randomizer.name}: biased by {abs(means - truths).max():.3g}"
    shares = 1.0 / np.arange(1, len(values) + 1)
    for mix in (shares / shares.sum(), np.full(len(values), 1 / len(values))):
        mean = mix @ ones
        covariance = (ones * mix[:, None]).T @ ones - np.outer(mean, mean)
        np.fill_diagonal(covariance, mean * (1 - mean))
        exact = np.einsum("jp,jk,kp->p", slopes, covariance, slopes)
        n = 1 << 40
        error = randomizer.estimate(Tally(np.rint(mean * n).astype(np.int64), n)).standard_error
        np.testing.assert_allclose(error**2 * n, exact, rtol=1e-5, err_msg=f"{randomizer.name}: the standard error is not that of the estimate")


def _estimated(randomizer: BitVector, ones: Floats) -> Floats:
    return np.atleast_1d(randomizer.estimate(Tally(ones.astype(np.int64), 1)).value)


def _check_drawn_estimate(randomizer: PerCoin | PlaceVector | WithCoin) -> None:
    """From COINS made-up clients that all hold one value, the estimate is within six standard errors of the truth (a right one fails below 1e-8 each)."""
    generator = np.random.default_rng(5)
    for value in values_of(randomizer.domain)[[0, 1, -1]]:
        coins = generator.integers(0, 2**64 - 1, COINS, dtype=np.uint64, endpoint=True)
        reports = randomizer.respond(np.repeat(value[None], COINS, axis=0), _words(randomizer, COINS, generator), coins)
        estimate = randomizer.estimate(randomizer.tally(reports, coins))
        found = np.atleast_1d(estimate.value)
        off = abs(found - truth(randomizer.domain, value, len(found))) / np.atleast_1d(estimate.standard_error)
        assert off.max() <= 6, f"{randomizer.name}: {off.max():.1f} standard errors off the truth for value {value.tolist()}"
