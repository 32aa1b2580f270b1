"""Whether reports add up, and whether the estimate and its standard error are right."""

import math
from typing import Any

import numpy as np

from local_dp.arrays import Floats, Ints, Words
from local_dp.domains import Vectors
from local_dp.oracles.local.asked import CHUNK
from local_dp.randomizers.finite import FiniteChannel, single_estimates, weights_of
from local_dp.randomizers.places import BitVector
from local_dp.randomizers.randomizer import NO_COIN, Randomizer
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
    domain = randomizer.domain
    if isinstance(domain, Vectors):
        values = domain.some(4)[:3]
    else:
        values = np.array([domain.low, domain.high, domain.low + domain.size // 3])
    try:
        tally = _check_tally(randomizer, values)
    except NotImplementedError:
        sentence = "it has no tally: nothing can be estimated from its reports"
        return (Finding("tally", True, False, sentence),)
    if not tally.holds:
        return (tally,)
    try:
        estimate = _check_estimate(randomizer, values, seed)
        return tally, estimate, *_check_law(randomizer, values, seed)
    except NotImplementedError:
        return tally, Finding("estimate", True, False, "it has no estimate")


def _reports(randomizer: Randomizer, values: Ints, seed: int) -> tuple[Words, Words]:
    """Reports of clients with these values, and their coins, one for each report."""
    coins = coins_for(randomizer, len(values), seed + (1 << 40))
    reports = np.ascontiguousarray(
        randomizer.respond(values, words_for(randomizer, len(values), seed), coins),
        dtype=randomizer.report_dtype.base,
    )
    return reports, coins


def _tally(randomizer: Randomizer, reports: Words, coins: Words) -> Tally:
    return randomizer.tally(reports, coins if randomizer.uses_coins else NO_COIN)


def _check_tally(randomizer: Randomizer, values: Ints) -> Finding:
    """In any order and cut, reports add up to the same; their number is right; and a server takes
    them."""
    n = max(8, min(REPORTS, (1 << 20) // randomizer.words))
    generator = np.random.default_rng(12)
    # a seed of their own: words must not follow the values
    reports, coins = _reports(randomizer, generator.choice(values, n), 13)
    whole, order = _tally(randomizer, reports, coins), generator.permutation(n)
    cut = randomizer.empty()
    for part in np.split(order, [n // 5, n // 2]):
        cut += _tally(randomizer, reports[part], coins[part])
    wrong = ""
    if not bool(np.all(randomizer.possible(reports))):
        wrong = "it calls a report of its own impossible, and a server would refuse it"
    elif whole.n != n or cut.n != n:
        wrong = f"the tally of {n} reports says that there are {whole.n}, and {cut.n} cut in three"
    elif not np.array_equal(whole.counts, cut.counts):
        wrong = "reports in other order, cut in three, do not add up to the same"
    elif isinstance(randomizer, FiniteChannel) and type(randomizer).empty is FiniteChannel.empty:
        right = FiniteChannel.tally(randomizer, reports, coins)
        if not np.array_equal(right.counts, whole.counts):
            wrong = "its tally does not count its reports"
    sentence = wrong or f"{n} reports add up to the same in any order and cut"
    return Finding("tally", not wrong, False, sentence)


def _check_estimate(randomizer: Randomizer, values: Ints, seed: int) -> Finding:
    """From clients that hold the least, the greatest and a middle value in known shares, the
    estimate is their average; and so is its standard error."""
    tally, wrong = _exact_tally(randomizer, values), ""
    if tally is None:
        estimate, allowed, wrong = _groups(randomizer, values, seed)
    else:
        estimate = np.atleast_1d(randomizer.estimate(tally).value).astype(np.float64)
        allowed = np.full(1, _rounding(randomizer))
    expected = _expected(randomizer, values, len(estimate))
    if expected is None:
        sentence = f"not compared: it estimates {randomizer.estimates}"
        return Finding("estimate", True, False, sentence)
    exact, off = tally is not None, abs(estimate - expected)
    if not bool((off <= allowed).all()):
        place = int(np.where(np.isfinite(off), off / allowed, np.inf).argmax())
        members = ", ".join(map(str, values.tolist()))
        shares = ", ".join(f"{share:g}" for share in SHARES)
        sentence = (
            f"clients that hold {members} in shares {shares} are estimated at "
            f"{estimate[place]:.6g} where {expected[place]:.6g} is true"
        )
        return Finding("estimate", False, exact, f"{sentence} (number {place} of {len(estimate)})")
    if tally is not None:
        wrong = _exact_fault(randomizer, values, len(estimate), tally)
    sentence = wrong or (
        f"from clients of known values it is at most {off.max():.3g} off, within what rounding "
        "and chance explain"
    )
    return Finding("estimate", not wrong, exact, sentence)


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
    return truths[:, 1:] if parameters == 1 and truths.shape[1] == 2 else truths


def _rounding(randomizer: Randomizer) -> float:
    """How far rounding may move an estimate from large counts: doubles are multiplied by the size
    of one report's estimate."""
    return TOLERANCE + 1e-12 * min(randomizer.domain.size, 1 << 20) / math.expm1(randomizer.epsilon)


def _exact_tally(randomizer: Randomizer, values: Ints) -> Tally | None:
    """A tally of these values in exact proportion; None where the randomizer's tally has a form of
    its own."""
    kind, shares = type(randomizer), np.array(SHARES)
    if isinstance(randomizer, FiniteChannel) and kind.empty is FiniteChannel.empty:
        law = np.tensordot(shares, weights_of(randomizer, values), 1)
        return Tally(np.rint(law / law.sum() * 2.0**52).astype(np.int64))
    is_inherited = kind.empty is BitVector.empty and kind.tally is BitVector.tally
    if isinstance(randomizer, BitVector) and is_inherited:
        ones = np.rint(shares @ randomizer.shares_of(values) * 2.0**52)
        return Tally(ones.astype(np.int64), 1 << 52)
    return None


def _exact_fault(randomizer: Any, values: Ints, parameters: int, tally: Tally) -> str:
    """A bias for some value, or a wrong standard error; nothing for a channel too large to look at
    every report, or a vector too long to look at every bit."""
    every = randomizer.domain.some(MAX_VALUES)
    if isinstance(randomizer, FiniteChannel):
        reports = randomizer.cells * randomizer.alphabet
        if reports > MAX_SINGLES or reports * parameters * len(every) > 1 << 26:
            return ""
        moments = _moments_of_table(randomizer, values, every, parameters)
    elif randomizer.places > MAX_SINGLES // 4:
        return ""
    else:
        moments = _moments_of_bits(randomizer, values, every)
    return _fault(randomizer, every, tally, *moments) or _variance_fault(
        randomizer, values, moments[1]
    )


def _variance_fault(randomizer: Randomizer, values: Ints, variance: Floats) -> str:
    """Of its method `variance`, by which clients are planned: it may be too large."""
    try:
        claims = np.broadcast_to(randomizer.variance(values, np.array(SHARES)), variance.shape)
    except NotImplementedError:
        return ""
    if np.all(claims >= variance * (1 - 1e-5) - 1e-9 * max(1.0, float(variance.max()))):
        return ""
    place = int((claims - variance).argmin())
    return f"`variance` is {claims[place]:.6g} where {variance[place]:.6g} is true (number {place})"


def _moments_of_table(
    randomizer: FiniteChannel, values: Ints, every: Ints, parameters: int
) -> tuple[Floats, Floats, float]:
    """The mean estimate from one report of each value, the variance with `values` in their shares,
    and the largest estimate."""

    def laws_of(some: Ints) -> Floats:
        weights = weights_of(randomizer, some).reshape(len(some), -1)
        return weights / randomizer.total / randomizer.cells

    singles = single_estimates(randomizer).reshape(-1, parameters)
    law = np.array(SHARES) @ laws_of(values)
    variance = law @ (singles - law @ singles) ** 2
    return laws_of(every) @ singles, variance, float(abs(singles).max())


def _moments_of_bits(
    randomizer: BitVector, values: Ints, every: Ints
) -> tuple[Floats, Floats, float]:
    """The same of a vector of bits: the estimate is linear in the ones at each place."""

    def estimate(bits: Floats) -> Floats:
        return np.atleast_1d(randomizer.estimate(Tally(bits.astype(np.int64), 1)).value)

    nothing = estimate(np.zeros(randomizer.places))
    slopes = np.stack([estimate(bit) - nothing for bit in np.eye(randomizer.places)])
    ones, shares = randomizer.shares_of(values), np.array(SHARES)
    mean = shares @ ones
    covariance = (ones * shares[:, None]).T @ ones - np.outer(mean, mean)
    np.fill_diagonal(covariance, mean * (1 - mean))
    variance = np.einsum("jp,jk,kp->p", slopes, covariance, slopes)
    means = nothing + randomizer.shares_of(every) @ slopes
    return means, variance, float(abs(slopes).max())


def _fault(
    randomizer: Randomizer,
    values: Ints,
    tally: Tally,
    means: Floats,
    variance: Floats,
    reach: float,
) -> str:
    """Of the exact means for each value and the exact variance of one report's estimate."""
    off = abs(means - _truths(randomizer, values, means.shape[1])).max(axis=1)
    if not bool((off <= 1e-9 + 2.0**-44 * reach).all()):
        return (
            f"the estimate is biased by {off.max():.3g} for clients that hold "
            f"{values[off.argmax()].tolist()}"
        )
    errors = np.atleast_1d(randomizer.estimate(tally).standard_error) ** 2 * float(tally.n)
    if np.allclose(errors, variance, rtol=1e-5, atol=1e-9 * max(1.0, reach**2)):
        return ""
    place = int(abs(errors - variance).argmax())
    claim, actual = math.sqrt(errors[place]), math.sqrt(max(0.0, variance[place]))
    return (
        f"the standard error is {claim:.6g} / sqrt(n) where {actual:.6g} is true (number {place})"
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
        claim, actual = math.sqrt(claim * n), math.sqrt(actual * n)
        fault = (
            f"the standard error is {claim:.3g} / sqrt(n) where {actual:.3g} is seen (all numbers "
            f"together, {groups} drawn groups)"
        )
    return mean, errors * spread + DRAWN_TOLERANCE, fault


def _most(degrees: int, side: int) -> float:
    """A variance from so many degrees of freedom, as a share of the true one, is beyond this once
    in 10^9 (Wilson and Hilferty 1931)."""
    part = 2 / (9 * degrees)
    return max(0.0, 1 - part + side * 6.0 * math.sqrt(part)) ** 3


def _check_law(randomizer: Randomizer, values: Ints, seed: int) -> tuple[Finding, ...]:
    """For a finite channel with its own `draw_tally`: drawn tallies have the right size and follow
    the declared channel."""
    own = type(randomizer).draw_tally is not FiniteChannel.draw_tally
    if not isinstance(randomizer, FiniteChannel) or not own:
        return ()
    n, laws = 1 << 20, weights_of(randomizer, values)
    shares = laws.reshape(len(values), -1) / laws[0].sum()
    bar = math.log(2 * shares.size / ALPHA)
    for value, law in zip(values.tolist(), shares, strict=True):
        tally = randomizer.draw_tally({value: n}, np.random.default_rng(seed))
        far = np.full(1, np.inf)
        if tally.counts.size == law.size:
            far = n * divergence(tally.counts.ravel() / n, law)
        if tally.n != n or far.max() > bar:
            place = f"cell and report {int(far.argmax())} of a drawn tally"
            sentence = f"tallies drawn for input {value} do not follow the declared channel"
            witness = Witness((value, value), place, 0, None)
            return (Finding("law", False, False, sentence, witness),)
    sentence = f"tallies drawn for {n:,} clients follow the declared channel"
    return (Finding("law", True, False, sentence),)
