"""Whether reports add up, and whether the estimate and its standard error are right."""

import math
from typing import Any

import numpy as np

from local_dp.arrays import Floats, Ints, Words
from local_dp.domains import Domain, Vectors
from local_dp.oracles.local.asked import CHUNK
from local_dp.randomizers.finite import FiniteChannel, single_estimates, weights_of
from local_dp.randomizers.places import BitVector
from local_dp.randomizers.randomizer import Randomizer
from local_dp.tallies import Tally
from local_dp.verification.behaviour import coins_for
from local_dp.verification.findings import (
    ALPHA,
    MAX_VALUES,
    Finding,
    Witness,
    divergence,
    within,
    words_for,
)

SHARES = (0.5, 0.3, 0.2)  # of clients that hold the least, the greatest and a middle value
REPORTS = 3000  # that are added up in several orders
TOLERANCE = 1e-5  # of an estimate from a tally in exact proportion
# of one from reports that are drawn, beside chance: what happens less often than once in as many
# may not have been seen
DRAWN_TOLERANCE = 1e-3
MANY = 1 << 14  # counts of a tally whose estimate takes time
MAX_SINGLES = 1 << 12  # single reports whose estimates are compared one by one


def check_decoding(randomizer: Randomizer, seed: int = 7) -> tuple[Finding, ...]:
    """The tally and the estimate; `seed` is that of the drawn reports."""
    values = _sample_values(randomizer.domain)
    try:
        tally = _tally_found(randomizer, values)
    except NotImplementedError:
        return (
            Finding(
                "tally", True, False, "it has no tally: nothing can be estimated from its reports"
            ),
        )
    if not tally.holds:
        return (tally,)
    try:
        return (
            tally,
            _estimate_found(randomizer, values, seed),
            *_law_found(randomizer, values, seed),
        )
    except NotImplementedError:
        return tally, Finding("estimate", True, False, "it has no estimate")


def _sample_values(domain: Domain) -> Ints:
    if isinstance(domain, Vectors):
        return domain.some(4)[:3]
    return np.array([domain.low, domain.high, domain.low + domain.size // 3])


def _reports(randomizer: Randomizer, values: Ints, seed: int) -> tuple[Words, Words]:
    """Reports of clients with these values, and their coins, one for each report."""
    coins = coins_for(randomizer, len(values), seed + (1 << 40))
    reports = np.ascontiguousarray(
        randomizer.respond(values, words_for(randomizer, len(values), seed), coins),
        dtype=randomizer.report_dtype.base,
    )
    return reports, coins


def _tally(randomizer: Randomizer, reports: Words, coins: Words) -> Tally:
    return randomizer.tally(
        reports, coins if randomizer.uses_coins else np.zeros(1, dtype=np.uint8)
    )


def _tally_found(randomizer: Randomizer, values: Ints) -> Finding:
    """In any order and cut, reports add up to the same; their number is right; and a server takes
    them."""
    n = max(8, min(REPORTS, (1 << 20) // randomizer.words))
    generator = np.random.default_rng(12)
    # a seed of their own: words must not follow the values
    reports, coins = _reports(randomizer, generator.choice(values, n), 13)
    whole, order = _tally(randomizer, reports, coins), generator.permutation(n)
    cut = sum(
        (
            _tally(randomizer, reports[part], coins[part])
            for part in np.split(order, [n // 5, n // 2])
        ),
        randomizer.empty(),
    )
    wrong = ""
    if not bool(np.all(randomizer.possible(reports))):
        wrong = "it calls a report of its own impossible, and a server would refuse it"
    elif whole.n != n or cut.n != n:
        wrong = f"the tally of {n} reports says that there are {whole.n}, and {cut.n} cut in three"
    elif not np.array_equal(whole.counts, cut.counts):
        wrong = "reports in other order, cut in three, do not add up to the same"
    elif isinstance(randomizer, FiniteChannel) and type(randomizer).empty is FiniteChannel.empty:
        right = FiniteChannel.tally(randomizer, reports, coins)
        wrong = (
            ""
            if np.array_equal(right.counts, whole.counts)
            else "its tally does not count its reports"
        )
    return Finding(
        "tally", not wrong, False, wrong or f"{n} reports add up to the same in any order and cut"
    )


def _estimate_found(randomizer: Randomizer, values: Ints, seed: int) -> Finding:
    """From clients that hold the least, the greatest and a middle value in known shares, the
    estimate is their average; and so is its standard error."""
    channel, error_fault = _channel_of(randomizer), ""
    if channel is not None:
        estimate = np.atleast_1d(
            randomizer.estimate(channel.tally(randomizer, values)).value
        ).astype(np.float64)
        allowed = np.full(1, _rounding(randomizer))
    else:
        estimate, allowed, error_fault = _groups(randomizer, values, seed)
    expected = _expected(randomizer, values, len(estimate))
    if expected is None:
        return Finding(
            "estimate", True, False, f"not compared: it estimates {randomizer.estimates}"
        )
    off = abs(estimate - expected)
    if not bool((off <= allowed).all()):
        place = int(np.where(np.isfinite(off), off / allowed, np.inf).argmax())
        sentence = (
            f"clients that hold {', '.join(map(str, values.tolist()))} in shares "
            f"{', '.join(f'{share:g}' for share in SHARES)} are estimated at"
        )
        sentence = (
            f"{sentence} {estimate[place]:.6g} where {expected[place]:.6g} is true (number "
            f"{place} of {len(estimate)})"
        )
        return Finding("estimate", False, channel is not None, sentence)
    wrong = error_fault if channel is None else channel.fault(randomizer, values, len(estimate))
    if wrong:
        return Finding("estimate", False, channel is not None, wrong)
    sentence = (
        f"from clients of known values it is at most {off.max():.3g} off, within what rounding "
        "and chance explain"
    )
    return Finding("estimate", True, channel is not None, sentence)


def _expected(randomizer: Randomizer, values: Ints, parameters: int) -> Floats | None:
    """The average of these values; None where only the randomizer knows what it estimates."""
    truths = _truths(randomizer, values, parameters)
    if randomizer.estimates != "averages" or truths.shape[1] != parameters:
        return None
    return np.asarray(np.array(SHARES) @ truths)


def _truths(randomizer: Randomizer, values: Ints, parameters: int) -> Floats:
    """What each value adds to each estimate; of a yes and a no the yes alone, where that is
    estimated alone."""
    truths = randomizer.truths(values)
    return truths[:, 1:] if (parameters, truths.shape[1]) == (1, 2) else truths


def _rounding(randomizer: Randomizer) -> float:
    """How far rounding may move an estimate from large counts: doubles are multiplied by the size
    of one report's estimate."""
    return TOLERANCE + 1e-12 * min(randomizer.domain.size, 1 << 20) / math.expm1(randomizer.epsilon)


class _Table:
    """Exact tallies of a finite channel with its own tally, and the estimate from each single
    report."""

    def tally(self, randomizer: Any, values: Ints) -> Tally:
        law = np.tensordot(np.array(SHARES), weights_of(randomizer, values), 1)
        return Tally(np.rint(law / law.sum() * 2.0**52).astype(np.int64))

    def fault(self, randomizer: Any, values: Ints, parameters: int) -> str:
        """A bias for some value, or a wrong standard error; nothing for a table too large to look
        at every report."""
        every = randomizer.domain.some(MAX_VALUES)
        if (
            randomizer.cells * randomizer.alphabet > MAX_SINGLES
            or randomizer.cells * randomizer.alphabet * parameters * len(every) > 1 << 26
        ):
            return ""
        singles = single_estimates(randomizer).reshape(-1, parameters)
        laws = (
            weights_of(randomizer, every).reshape(len(every), -1)
            / randomizer.total
            / randomizer.cells
        )
        law = (
            np.array(SHARES)
            @ weights_of(randomizer, values).reshape(len(values), -1)
            / randomizer.total
            / randomizer.cells
        )
        variance = law @ (singles - law @ singles) ** 2
        return _fault(
            randomizer,
            laws @ singles,
            every,
            self.tally(randomizer, values),
            variance,
            float(abs(singles).max()),
        )


class _Bits:
    """The same of a vector of bits: the estimate is linear in the ones at each place."""

    def tally(self, randomizer: Any, values: Ints) -> Tally:
        return Tally(
            np.rint(np.array(SHARES) @ _ones(randomizer, values) * 2.0**52).astype(np.int64),
            1 << 52,
        )

    def fault(self, randomizer: Any, values: Ints, parameters: int) -> str:
        """As `_Table.fault`; nothing for a vector too long to look at every bit."""
        every = randomizer.domain.some(MAX_VALUES)
        if randomizer.places > MAX_SINGLES // 4:
            return ""

        def estimate(bits: Floats) -> Floats:
            return np.atleast_1d(randomizer.estimate(Tally(bits.astype(np.int64), 1)).value)

        nothing = estimate(np.zeros(randomizer.places))
        slopes = np.stack([estimate(bit) - nothing for bit in np.eye(randomizer.places)])
        ones, shares = _ones(randomizer, values), np.array(SHARES)
        mean = shares @ ones
        covariance = (ones * shares[:, None]).T @ ones - np.outer(mean, mean)
        np.fill_diagonal(covariance, mean * (1 - mean))
        variance = np.einsum("jp,jk,kp->p", slopes, covariance, slopes)
        return _fault(
            randomizer,
            nothing + _ones(randomizer, every) @ slopes,
            every,
            self.tally(randomizer, values),
            variance,
            float(abs(slopes).max()),
        )


def _fault(
    randomizer: Randomizer,
    means: Floats,
    values: Ints,
    tally: Tally,
    variance: Floats,
    reach: float,
) -> str:
    """Of the exact means for each value and the exact variance of one report's estimate."""
    truths = _truths(randomizer, values, means.shape[1])
    off = abs(means - truths).max(axis=1)
    if not bool((off <= 1e-9 + 2.0**-44 * reach).all()):
        return (
            f"the estimate is biased by {off.max():.3g} for clients that hold "
            f"{values[off.argmax()].tolist()}"
        )
    errors = np.atleast_1d(randomizer.estimate(tally).standard_error) ** 2 * float(tally.n)
    if np.allclose(errors, variance, rtol=1e-5, atol=1e-9 * max(1.0, reach**2)):
        return ""
    place = int(abs(errors - variance).argmax())
    return (
        f"the standard error is {math.sqrt(errors[place]):.6g} / sqrt(n) where "
        f"{math.sqrt(max(0.0, variance[place])):.6g} is true (number {place})"
    )


def _channel_of(randomizer: Randomizer) -> _Table | _Bits | None:
    """How a tally in exact proportion is made; None where the randomizer's tally has a form of its
    own."""
    kind = type(randomizer)
    if isinstance(randomizer, FiniteChannel) and kind.empty is FiniteChannel.empty:
        return _Table()
    return (
        _Bits()
        if isinstance(randomizer, BitVector)
        and kind.empty is BitVector.empty
        and kind.tally is BitVector.tally
        else None
    )


def _ones(randomizer: BitVector, values: Ints) -> Floats:
    """The probability of a 1 at each place for each value, shape (values, places)."""
    return np.asarray(
        np.array(randomizer.ones, dtype=np.float64)[randomizer.code[values - randomizer.domain.low]]
        / 2.0**randomizer.word_bits
    )


def _groups(randomizer: Randomizer, values: Ints, seed: int) -> tuple[Floats, Floats, str]:
    """The average estimate of groups of drawn clients, its allowed error in terms of their spread,
    and a fault of the standard error.

    Group means are nearly normal. By Student's law a right estimate fails with probability below
    1e-9 / 4096 for 256 groups, and 1e-9 for 8. The variances of all parameters together, beside the
    stated ones, are at least as sure as one variance of the groups: a right one fails once in 10^9.
    With 256 groups a standard error that is wrong by a factor of 1.5 fails with probability 0.99,
    with 8 groups one that is 12 times too small.
    """
    groups, errors = (256, 9.0) if randomizer.empty().counts.size <= MANY else (8, 64.0)
    n = max(1, within(randomizer, min(CHUNK, (1 << 22) // randomizer.words)) // groups)
    generator = np.random.default_rng([seed, groups])
    mean = squares = np.zeros(1)
    claim = 0.0
    # running moments, for one estimate may be of millions of parameters
    for group in range(groups):
        clients = values[generator.choice(len(values), n, p=SHARES)]
        answer = randomizer.estimate(
            _tally(randomizer, *_reports(randomizer, clients, 1000 * seed + group))
        )
        estimate = np.atleast_1d(answer.value)
        claim += float(np.sum(np.broadcast_to(answer.standard_error, estimate.shape) ** 2)) / groups
        off = estimate - mean
        mean = mean + off / (group + 1)
        squares = squares + off * (estimate - mean)
    spread = np.sqrt(squares / (groups - 1) / groups)
    actual = float(squares.sum()) / (groups - 1)
    fault = ""
    if not claim * _most(groups - 1, -1) <= actual <= claim * _most(groups - 1, 1):
        where = f"is seen (all numbers together, {groups} drawn groups)"
        fault = (
            f"the standard error is {math.sqrt(claim * n):.3g} / sqrt(n) where "
            f"{math.sqrt(actual * n):.3g} {where}"
        )
    return mean, errors * spread + DRAWN_TOLERANCE, fault


def _most(degrees: int, side: int) -> float:
    """A variance from so many degrees of freedom, as a share of the true one, is beyond this once
    in 10^9 (Wilson and Hilferty 1931)."""
    part = 2 / (9 * degrees)
    return max(0.0, 1 - part + side * 6.0 * math.sqrt(part)) ** 3


def _law_found(randomizer: Randomizer, values: Ints, seed: int) -> tuple[Finding, ...]:
    """For a finite channel with its own `draw_tally`: drawn tallies have the right size and follow
    the declared channel."""
    if (
        not isinstance(randomizer, FiniteChannel)
        or type(randomizer).draw_tally is FiniteChannel.draw_tally
    ):
        return ()
    n, laws = 1 << 20, weights_of(randomizer, values)
    for value, law in zip(
        values.tolist(), laws.reshape(len(values), -1) / laws[0].sum(), strict=True
    ):
        tally = randomizer.draw_tally({value: n}, np.random.default_rng(seed))
        far = (
            n * divergence(tally.counts.ravel() / n, law)
            if tally.counts.size == law.size
            else np.full(1, np.inf)
        )
        if tally.n != n or far.max() > math.log(2 * len(values) * law.size / ALPHA):
            witness = Witness(
                (value, value), f"cell and report {int(far.argmax())} of a drawn tally", 0, None
            )
            return (
                Finding(
                    "law",
                    False,
                    False,
                    f"tallies drawn for input {value} do not follow the declared channel",
                    witness,
                ),
            )
    return (
        Finding("law", True, False, f"tallies drawn for {n:,} clients follow the declared channel"),
    )
