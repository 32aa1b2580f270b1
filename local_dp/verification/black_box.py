"""A test of a claimed loss from reports alone, by betting against it: it may show a violation, and
never its absence."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from local_dp.arrays import Counts, Floats, Ints, Words
from local_dp.domains import Vectors
from local_dp.optimise import crossing
from local_dp.randomizers.randomizer import NO_COIN, Randomizer
from local_dp.verification.behaviour import REPEATED, coins_for, differing, some_clients
from local_dp.verification.findings import Finding, Witness, within, words_for

REPORTS = (
    200_000  # of each input of a pair, at most; the first half chooses the bet, the second decides
)
NUMBERS = 1 << 25  # coordinates or words of all of them
ALPHA = 1e-4  # the probability that an audit rejects a right randomizer
SYMBOLS = 1024  # kinds of report; more are grouped by their order
_MOST = 30.0  # nats
_LOOK = 4 * SYMBOLS  # reports that are searched first for more kinds
_STAKES = 0.5 * np.arange(1, 33) / 32  # of 1 / e^epsilon


@dataclass(frozen=True)
class Bet:
    """That the first of two inputs gives a report in some set more than e^epsilon times as often as
    the second, plus delta.

    `joint` counts pairs of reports (one of each input) by whether they are in the set: [first,
    second]. Under the claim the payoff 1[Y in S] - e^epsilon 1[Y' in S] - delta has a mean of at
    most 0. So wealth prod(1 + stake * payoff) reaches 1 / alpha with probability at most alpha
    (Ville).
    """

    choice: Counts
    joint: Counts
    delta: float

    def wealth(self, epsilon: float) -> float:
        """ln of the final wealth, with the best stake of the first half."""
        growth = math.exp(epsilon)
        payoff = np.array([[0.0, -growth], [1.0, 1 - growth]]) - self.delta
        gains = np.log1p(_STAKES[:, None, None] / (growth + self.delta) * payoff)
        best = int((gains * self.choice).sum(axis=(1, 2)).argmax())
        return float((gains[best] * self.joint).sum())

    def loss(self, bar: float) -> float:
        """The largest epsilon that the reports contradict, in nats; 0 if there is none."""
        if self.wealth(0.0) < bar:
            return 0.0
        return crossing(0.0, _MOST, lambda epsilon: self.wealth(epsilon) >= bar, 40)[0]


def check_memory(randomizer: Randomizer, seed: int = 12) -> tuple[Finding, ...]:
    """Of one that keeps outcomes: each report is of its outcome alone, by the same words; and the
    outcomes do not contradict the claimed loss, which is charged once for all reports of them."""
    kind = type(randomizer)
    if kind.lasting is Randomizer.lasting and kind.again is Randomizer.again:
        return ()
    values, words, coins = some_clients(randomizer, REPEATED)
    outcomes = randomizer.lasting(values, words, coins)
    answers = randomizer.again(outcomes, words, coins), randomizer.respond(values, words, coins)
    again, once = map(np.ascontiguousarray, answers)
    if not np.array_equal(again, once):
        sentence = "`again` of `lasting` is not `respond` by the same words"
        return (Finding("memory", False, True, sentence, differing(values, again, once)),)
    return (check_black_box(randomizer, seed, "lasting"),)


def check_black_box(randomizer: Randomizer, seed: int = 11, step: str = "respond") -> Finding:
    """Whether the reports, or what is kept for them, contradict the claimed loss, wrongly with
    probability ALPHA; and the largest loss that they show."""
    coins: list[int] = coins_for(randomizer, 2).tolist() if randomizer.uses_coins else [0]
    cases = [(pair, coin) for pair in _pairs(randomizer) for coin in coins]
    bar = math.log(2 * len(cases) / ALPHA)
    n = within(randomizer, REPORTS, NUMBERS // (2 * len(cases)))
    best, worst, claim = 0.0, None, randomizer.loss
    for place, (inputs, coin) in enumerate(cases):
        low, high = inputs
        own_seed = seed + 2 * place
        reports = [
            _reports(randomizer, step, low, n, coin, own_seed),
            _reports(randomizer, step, high, n, coin, own_seed + 1),
        ]
        first, second = _symbols(np.concatenate(reports)).reshape(2, -1)
        for one, other, pair in ((first, second, inputs), (second, first, inputs[::-1])):
            loss = _bet(one, other, claim.epsilon, claim.delta).loss(bar)
            if worst is None or loss > best:
                shown_pair = np.asarray(pair[0]).tolist(), np.asarray(pair[1]).tolist()
                witness = Witness(shown_pair, "some set of reports", coin, math.exp(loss))
                best, worst = loss, witness
    what = "reports" if step == "respond" else "lasting outcomes"
    evidence = (
        f"{2 * n * len(cases):,} {what} show a loss of at least {best:.4g} nats with confidence "
        f"{1 - ALPHA:g}"
    )
    if best <= claim.epsilon:
        sentence = f"no violation of {claim} was found: {evidence}; that is no proof"
        return Finding("black box", True, False, sentence)
    return Finding("black box", False, False, f"{claim} is violated: {evidence}", worst)


def _pairs(randomizer: Randomizer) -> list[tuple[Any, Any]]:
    """The ends against one another, and each against its neighbour and the middle."""
    domain = randomizer.domain
    if isinstance(domain, Vectors):
        rows = domain.some(5)
        return [(rows[one], rows[other]) for one, other in ((0, 1), (0, 2), (0, 3), (2, 4))]
    low, high = domain.low, domain.high
    middle = (low + high) // 2
    some = [(low, high), (low, low + 1), (high - 1, high), (low, middle), (middle, high)]
    return list(dict.fromkeys(pair for pair in some if pair[0] != pair[1]))


def _reports(randomizer: Randomizer, step: str, value: Any, n: int, coin: int, seed: int) -> Words:
    """n reports of one input under one coin."""
    values = np.repeat(np.asarray(value)[None], n, axis=0)
    coins = np.full(n, coin, dtype=np.uint64) if randomizer.uses_coins else NO_COIN
    return np.asarray(getattr(randomizer, step)(values, words_for(randomizer, n, seed), coins))


def _symbols(reports: Words) -> Ints:
    """The kind of each report: itself where kinds are few, else its place in the order of its first
    numbers."""
    flat = np.ascontiguousarray(reports).reshape(len(reports), -1)
    wide = flat.dtype.itemsize * flat.shape[1]
    if wide == 1:
        return flat.view(np.uint8).ravel()
    kind = np.dtype(f"u{wide}" if wide in (2, 4, 8) else (np.void, wide))
    keys = flat.view(kind).ravel()
    if len(np.unique(keys[:_LOOK])) <= SYMBOLS:
        kinds, which = np.unique(keys, return_inverse=True)
        if len(kinds) <= SYMBOLS:
            return which
    first: Any = flat[:, 0]
    if flat.dtype.names is not None:
        first = first[flat.dtype.names[0]]
    number: Floats = first.astype(np.float64)
    # quantiles, in a seventh of the time of np.quantile
    edges = np.unique(np.sort(number)[np.arange(1, SYMBOLS) * len(number) // SYMBOLS])
    return np.searchsorted(edges, number, side="right")


def _bet(first: Ints, second: Ints, epsilon: float, delta: float) -> Bet:
    """The set of reports that exceed the claim by two standard errors in the first half, or the one
    that exceeds it most."""
    half, kinds = len(first) // 2, int(max(first.max(), second.max())) + 1
    one = np.bincount(first[:half], minlength=kinds).astype(np.float64)
    other = np.bincount(second[:half], minlength=kinds).astype(np.float64)
    excess = one - math.exp(epsilon) * other
    in_set = excess > 2 * np.sqrt(one + math.exp(2 * epsilon) * other)
    in_set[int(excess.argmax())] = True
    kind = 2 * in_set[first] + in_set[second]
    parts = kind[:half], kind[half:]
    joint = [np.bincount(part, minlength=4).reshape(2, 2) for part in parts]
    return Bet(joint[0], joint[1], delta)
