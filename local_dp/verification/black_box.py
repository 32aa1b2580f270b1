"""A test of a claimed loss from reports alone, by betting against it: it may show a violation, and
never its absence."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from local_dp.arrays import Counts, Floats, Ints, Words
from local_dp.domains import Vectors
from local_dp.optimise import crossing
from local_dp.randomizers.randomizer import Randomizer
from local_dp.verification.behaviour import coins_for
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
        scale = math.exp(epsilon) + self.delta
        payoff = np.array([[0.0, -math.exp(epsilon)], [1.0, 1 - math.exp(epsilon)]]) - self.delta
        growth = np.log1p(_STAKES[:, None, None] / scale * payoff)
        best = int((growth * self.choice).sum(axis=(1, 2)).argmax())
        return float((growth[best] * self.joint).sum())

    def loss(self, bar: float) -> float:
        """The largest epsilon that the reports contradict, in nats; 0 if there is none."""
        if self.wealth(0.0) >= bar:
            return crossing(0.0, _MOST, lambda epsilon: self.wealth(epsilon) >= bar, 40)[0]
        return 0.0


def check_black_box(randomizer: Randomizer, seed: int = 11) -> Finding:
    """Whether the reports contradict the claimed loss, wrongly with probability ALPHA; and the
    largest loss that they show."""
    coins: list[int] = coins_for(randomizer, 2).tolist() if randomizer.uses_coins else [0]
    cases = [(pair, coin) for pair in _pairs(randomizer) for coin in coins]
    bar = math.log(2 * len(cases) / ALPHA)
    n = within(randomizer, REPORTS, NUMBERS // (2 * len(cases)))
    best, worst = 0.0, None
    for place, (inputs, coin) in enumerate(cases):
        reports = [
            _reports(randomizer, value, n, coin, seed + 2 * place + side)
            for side, value in enumerate(inputs)
        ]
        first, second = _symbols(np.concatenate(reports)).reshape(2, -1)
        for one, other, pair in ((first, second, inputs), (second, first, inputs[::-1])):
            loss = _bet(one, other, randomizer.loss.epsilon, randomizer.loss.delta).loss(bar)
            if worst is None or loss > best:
                best = loss
                worst = Witness(
                    (np.asarray(pair[0]).tolist(), np.asarray(pair[1]).tolist()),
                    "some set of reports",
                    coin,
                    math.exp(loss),
                )
    holds = best <= randomizer.loss.epsilon
    evidence = (
        f"{2 * n * len(cases):,} reports show a loss of at least {best:.4g} nats with confidence "
        f"{1 - ALPHA:g}"
    )
    if holds:
        return Finding(
            "black box",
            True,
            False,
            f"no violation of {randomizer.loss} was found: {evidence}; that is no proof",
        )
    return Finding("black box", False, False, f"{randomizer.loss} is violated: {evidence}", worst)


def _pairs(randomizer: Randomizer) -> list[tuple[Any, Any]]:
    """The ends against one another, and each against its neighbour and the middle."""
    low, high = randomizer.domain.low, randomizer.domain.high
    if isinstance(randomizer.domain, Vectors):
        rows = randomizer.domain.some(5)
        return [(rows[0], rows[1]), (rows[0], rows[2]), (rows[0], rows[3]), (rows[2], rows[4])]
    some = [
        (low, high),
        (low, low + 1),
        (high - 1, high),
        (low, (low + high) // 2),
        ((low + high) // 2, high),
    ]
    return list(dict.fromkeys(pair for pair in some if pair[0] != pair[1]))


def _reports(randomizer: Randomizer, value: Any, n: int, coin: int, seed: int) -> Words:
    """n reports of one input under one coin."""
    coins = (
        np.full(n, coin, dtype=np.uint64) if randomizer.uses_coins else np.zeros(1, dtype=np.uint8)
    )
    return np.asarray(
        randomizer.respond(
            np.repeat(np.asarray(value)[None], n, axis=0), words_for(randomizer, n, seed), coins
        )
    )


def _symbols(reports: Words) -> Ints:
    """The kind of each report: itself where kinds are few, else its place in the order of its first
    numbers."""
    flat = np.ascontiguousarray(reports).reshape(len(reports), -1)
    wide = flat.dtype.itemsize * flat.shape[1]
    if wide == 1:
        return flat.view(np.uint8).ravel()
    keys = flat.view(np.dtype(f"u{wide}" if wide in (2, 4, 8) else (np.void, wide))).ravel()
    if len(np.unique(keys[:_LOOK])) <= SYMBOLS:
        kinds, which = np.unique(keys, return_inverse=True)
        if len(kinds) <= SYMBOLS:
            return which
    first: Any = flat[:, 0]
    number: Floats = (first if flat.dtype.names is None else first[flat.dtype.names[0]]).astype(
        np.float64
    )
    # quantiles, in a seventh of the time of np.quantile
    edges = np.unique(np.sort(number)[np.arange(1, SYMBOLS) * len(number) // SYMBOLS])
    return np.searchsorted(edges, number, side="right")


def _bet(first: Ints, second: Ints, epsilon: float, delta: float) -> Bet:
    """The set of reports that exceed the claim by two standard errors in the first half, or the one
    that exceeds it most."""
    half, kinds = len(first) // 2, int(max(first.max(), second.max())) + 1
    one, other = (
        np.bincount(each[:half], minlength=kinds).astype(np.float64) for each in (first, second)
    )
    excess = one - math.exp(epsilon) * other
    in_set = excess > 2 * np.sqrt(one + math.exp(2 * epsilon) * other)
    in_set[int(excess.argmax())] = True
    one_in, other_in = in_set[first], in_set[second]
    joint = np.stack(
        [
            np.bincount(2 * one_in[part] + other_in[part], minlength=4).reshape(2, 2)
            for part in (slice(0, half), slice(half, None))
        ]
    )
    return Bet(joint[0], joint[1], delta)
