"""The conformance of finite channels: exact privacy, exact sampler, exact decoder.

Everything here is enumerated or computed from the exact channel, so a failure is a bug and never bad luck.
"""

from dataclasses import replace

import numpy as np

from local_dp.arrays import Floats, Ints, Words
from local_dp.errors import InputError
from local_dp.randomizers.evidence import keeps_loss
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.per_coin import PerCoin
from local_dp.tallies import Tally
from local_dp.verification.common import SLACK, check_loss, check_parameters, truth, values_of

NARROW = (8, 9, 10, 11, 12, 16, 19)  # the word widths tried for enumeration of every word
MAX_WORK = 1 << 25  # (value, cell, word) triples enumerated at most


def conform_channel(randomizer: FiniteChannel, slack: float = SLACK, exhaustive: bool = True, runs: bool = True, symbols: bool = True) -> None:
    """All checks of one randomizer.

    `exhaustive` False drops the enumeration of every narrow word, for randomizers that need wide ones; `runs` False the walk over the boundaries at full
    width, for samplers that cut a report's words into several runs. One of the two is always made. `symbols` False drops the check of the estimate, for
    randomizers that estimate something else than the average value or the symbols' shares, and test that themselves.
    """
    assert exhaustive or runs, "a sampler is checked one way at least"
    check_channel(randomizer)
    check_loss(randomizer, slack)
    check_log_probability(randomizer)
    if runs:
        check_boundaries(randomizer)
    if exhaustive:
        check_every_word(narrow(sampler_of(randomizer)))
    check_elementwise(randomizer)
    check_tally(randomizer)
    if symbols:
        check_estimate(randomizer)
    check_parameters(randomizer)


def sampler_of(randomizer: FiniteChannel) -> FiniteChannel:
    """What turns a code into a report: the randomizer, or, behind a public coin that only codes, the channel of the codes."""
    inner = randomizer.inner if isinstance(randomizer, PerCoin) else randomizer
    return inner if isinstance(inner, FiniteChannel) else randomizer


def pairs_of(randomizer: FiniteChannel) -> tuple[Ints, Words]:
    """Every (value, cell) pair, as two arrays of shape (pairs,)."""
    values, cells = np.meshgrid(values_of(randomizer.domain), np.arange(randomizer.cells, dtype=np.uint64), indexing="ij")
    return values.ravel(), cells.ravel()


def word_type(randomizer: FiniteChannel) -> np.dtype[np.unsignedinteger]:
    """The type of the words that `respond` is given."""
    return np.dtype("u8" if randomizer.word_bits > 32 else "u4")


def law_of(randomizer: FiniteChannel, value: int) -> Floats:
    """Pr[cell, report | value] with the public coin uniform, shape (cells, alphabet)."""
    cells, reports = np.arange(randomizer.cells)[:, None], np.arange(randomizer.alphabet)[None, :]
    return randomizer.weight(reports, np.array([[value]]), cells).astype(np.float64) / randomizer.total / randomizer.cells


def single_estimates(randomizer: FiniteChannel) -> Floats:
    """The estimate from each tally of one report, shape (cells, alphabet, parameters): a linear estimator is an average of these."""
    rows = []
    for place in range(randomizer.cells * randomizer.alphabet):
        counts = np.zeros(randomizer.cells * randomizer.alphabet, dtype=np.int64)
        counts[place] = 1
        rows.append(np.atleast_1d(randomizer.estimate(Tally(counts.reshape(randomizer.cells, randomizer.alphabet))).value))
    return np.stack(rows).reshape(randomizer.cells, randomizer.alphabet, -1)


def check_channel(randomizer: FiniteChannel) -> None:
    """Every row of every cell is whole numbers that sum to 2^word_bits exactly."""
    for cell in range(randomizer.cells):
        rows = randomizer.weight(np.arange(randomizer.alphabet)[None, :], values_of(randomizer.domain)[:, None], np.array([[cell]])).tolist()
        assert all(sum(row) == randomizer.total for row in rows), f"{randomizer.name}: cell {cell} does not sum to 2^{randomizer.word_bits}"


def check_log_probability(randomizer: FiniteChannel) -> None:
    """log_probability is the logarithm of weight over 2^word_bits."""
    values, cells = pairs_of(randomizer)
    reports = np.arange(randomizer.alphabet)[:, None]
    declared = np.exp(randomizer.log_probability(reports, values[None, :], cells[None, :].astype(np.int64)))
    exact = randomizer.weight(reports, values[None, :], cells[None, :].astype(np.int64)).astype(np.float64) / randomizer.total
    np.testing.assert_allclose(declared, exact, rtol=1e-12, atol=0, err_msg=f"{randomizer.name}: log_probability and weight disagree")


def check_boundaries(randomizer: FiniteChannel) -> None:
    """At full width the sampler gives each report one run of words, exactly as long as its weight: checked at both sides of every boundary and midway.

    The runs are walked from word 0, so their order is free; a sampler that cuts a report's words into several runs does not fit this suite.
    """
    values, cells = pairs_of(randomizer)
    word = word_type(randomizer)
    places, last = np.arange(len(values)), np.array(randomizer.total - 1, dtype=np.uint64)
    start = np.zeros(len(values), dtype=np.uint64)
    seen = np.zeros((len(values), randomizer.alphabet), dtype=np.bool_)
    open_ = np.ones(len(values), dtype=np.bool_)

    def respond(words: Words) -> Ints:
        return randomizer.respond(values, words.astype(word), cells).astype(np.int64)

    while open_.any():
        report = respond(start)
        assert not (seen[places, report] & open_).any(), f"{randomizer.name}: a report's words are not one run of its weight's length"
        seen[places[open_], report[open_]] = True
        weight = randomizer.weight(report, values, cells.astype(np.int64)).astype(np.uint64)
        end = start + weight - np.uint64(1)  # the run's last word
        assert ((weight > 0) & (start <= end) & (end <= last))[open_].all(), f"{randomizer.name}: a run of words ends beyond 2^{randomizer.word_bits}"
        for probe in (end, start + weight // np.uint64(2), start + np.minimum(weight - np.uint64(1), np.uint64(1))):
            assert (respond(probe) == report)[open_].all(), f"{randomizer.name}: the sampler leaves a report before its weight is used up"
        open_ = open_ & (end < last)
        start = np.where(open_, end + np.uint64(1), start)
    weights = randomizer.weight(np.arange(randomizer.alphabet)[None, :], values[:, None], cells[:, None].astype(np.int64))
    assert (seen == (weights > 0)).all(), f"{randomizer.name}: a report with weight was never sent"


def narrow(randomizer: FiniteChannel) -> FiniteChannel:
    """The same randomizer on the narrowest words that its parameters allow."""
    for bits in NARROW:
        try:
            return replace(randomizer, word_bits=bits)
        except InputError:
            continue
    raise AssertionError(f"{randomizer.name} takes no words of {NARROW[-1]} bits or fewer")


def check_every_word(randomizer: FiniteChannel) -> None:
    """Enumerating every word gives each report exactly as often as its weight says, for every value and cell; and the narrow channel is private too."""
    values, cells = pairs_of(randomizer)
    words = np.arange(randomizer.total, dtype=word_type(randomizer))
    block = max(1, MAX_WORK // 16 // len(words))
    assert len(values) * len(words) <= MAX_WORK, f"{randomizer.name}: too many words to enumerate"
    assert keeps_loss(randomizer), f"{randomizer.name}: epsilon exceeded at {randomizer.word_bits} bits"
    for first in range(0, len(values), block):
        some, cell = values[first : first + block], cells[first : first + block]
        reports = randomizer.respond(np.repeat(some, len(words)), np.tile(words, len(some)), np.repeat(cell, len(words))).astype(np.int64)
        index = reports + np.repeat(np.arange(len(some)) * randomizer.alphabet, len(words))
        counts = np.bincount(index, minlength=len(some) * randomizer.alphabet).reshape(len(some), -1)
        weights = randomizer.weight(np.arange(randomizer.alphabet)[None, :], some[:, None], cell[:, None].astype(np.int64))
        assert (counts == weights.astype(np.int64)).all(), f"{randomizer.name}: the enumerated sampler is not the declared channel"


def check_elementwise(randomizer: FiniteChannel, n: int = 257) -> None:
    """A client's report depends on its own value, word and cell alone, and repeats for the same ones."""
    generator = np.random.default_rng(1)
    values = generator.integers(randomizer.domain.low, randomizer.domain.high, n, endpoint=True)
    words = generator.integers(0, randomizer.total - 1, n, dtype=np.uint64, endpoint=True).astype(word_type(randomizer))
    cells = generator.integers(0, randomizer.cells, n).astype(np.uint64)
    together = randomizer.respond(values, words, cells)
    alone = np.concatenate([randomizer.respond(values[i : i + 1], words[i : i + 1], cells[i : i + 1]) for i in range(n)])
    assert together.shape == (n,), f"{randomizer.name}: {n} values gave reports of shape {together.shape}"
    assert (together < randomizer.alphabet).all(), f"{randomizer.name}: a report lies outside the alphabet"
    assert (together == alone).all(), f"{randomizer.name}: a report depends on other clients"
    assert together.astype(randomizer.report_dtype).tolist() == together.tolist(), f"{randomizer.name}: a report does not fit its wire type"


def check_tally(randomizer: FiniteChannel, n: int = 300) -> None:
    """Tallies count right and form a commutative monoid: order and sharding of the reports do not matter."""
    generator = np.random.default_rng(2)
    reports = generator.integers(0, randomizer.alphabet, n).astype(randomizer.report_dtype)
    cells = generator.integers(0, randomizer.cells, n).astype(np.uint64)
    whole = randomizer.tally(reports, cells).counts
    counted = np.zeros((randomizer.cells, randomizer.alphabet), dtype=np.int64)
    np.add.at(counted, (cells.astype(np.int64), reports.astype(np.int64)), 1)
    assert (whole == counted).all(), f"{randomizer.name}: a tally miscounts"
    first, second, third = (randomizer.tally(reports[part], cells[part]) for part in (slice(0, 90), slice(90, 200), slice(200, n)))
    for merged in (first + second + third, first + (second + third), third + first + second, randomizer.empty() + first + second + third):
        assert (merged.counts == whole).all(), f"{randomizer.name}: tallies do not merge"
        assert merged.n == n, f"{randomizer.name}: a tally of {n} reports says {merged.n}"
    shuffled = generator.permutation(n)
    assert (randomizer.tally(reports[shuffled], cells[shuffled]).counts == whole).all(), f"{randomizer.name}: the order of reports matters"


def check_estimate(randomizer: FiniteChannel) -> None:
    """E[estimate] is the truth for every value held, so by linearity for every law, and n standard_error^2 is the variance of one report's estimate."""
    singles = single_estimates(randomizer)
    parameters = singles.shape[-1]
    values = values_of(randomizer.domain)
    laws = np.stack([law_of(randomizer, int(value)) for value in values])
    means = np.einsum("vcw,cwp->vp", laws, singles)
    truths = np.stack([truth(randomizer.domain, int(value), parameters) for value in values])
    assert abs(means - truths).max() <= 1e-9, f"{randomizer.name}: biased by {abs(means - truths).max():.3g}"
    shares = 1.0 / np.arange(1, len(values) + 1)
    for mix in (shares / shares.sum(), np.full(len(values), 1 / len(values)), np.eye(len(values))[-1]):
        _check_mixture(randomizer, np.tensordot(mix, laws, 1), singles, mix @ truths)


def _check_mixture(randomizer: FiniteChannel, law: Floats, singles: Floats, mean: Floats) -> None:
    """On a tally in exact proportion to `law`, the estimate is the mean and n standard_error^2 the exact variance."""
    counts = np.rint(law * 2.0**52).astype(np.int64)
    estimate = randomizer.estimate(Tally(counts))
    value, variance = np.atleast_1d(estimate.value), np.atleast_1d(estimate.standard_error) ** 2 * float(counts.sum())
    exact = np.einsum("cw,cwp->p", law, (singles - mean) ** 2)
    assert abs(value - mean).max() <= 1e-9 * max(1.0, float(abs(singles).max())), f"{randomizer.name}: the estimate is not linear in the tally"
    np.testing.assert_allclose(variance, exact, rtol=1e-6, atol=1e-9, err_msg=f"{randomizer.name}: the standard error is not that of the estimate")
