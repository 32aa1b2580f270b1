"""The least number of clients for which a protocol succeeds with a given probability, measured: a
search, then a fresh sample with a confidence interval."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from local_dp.bounds.tails import normal_quantile, normal_tail
from local_dp.errors import InputError, LocalDPError
from local_dp.interaction import run
from local_dp.noise import stream_key
from local_dp.oracles.local.oracles import AggregateOracle
from local_dp.protocols.local_protocol import LocalProtocol

# half the 95 % point of chi-square with one degree of freedom: how far the profile likelihood may
# fall
_WITHIN_95 = 1.9207294
# success is taken for the chance that this many threshold decisions are all right: between one
# decision and the 65 of masked parity at d = 64
_BITS = 8
# supposed of the line's slope: its median and the deviation of its logarithm; 0.45 for one
# decision, 1.8 for 65, 7 for the steepest
_SLOPE = (0.9, 1.0)
# where the search puts runs, in units of the line from the target: successes of .81 to .95
_PILOT = (-0.3, -0.15, 0.0, 0.15, 0.3)
# of the fresh sample, in standard errors of its level: wide enough to know the slope, too narrow
# for a bend to matter
_HALF_WIDTH = 9.0
_WIDEST = 0.33
# but no further than this in x = 2 (sqrt(n / answer) - 1): from a third of the answer to twice it
_REACH = 0.8
_STEPS = 40
_WHOLE = 1000  # from here on the ends of intervals are whole
Successes = Callable[[int, int], int]  # (n, runs): how many of the runs with n clients succeed


class NoEnd(InputError):
    """The trials do not show how success grows."""


@dataclass(frozen=True)
class Trials:
    """`successes` out of `trials` runs with n clients."""

    n: int
    trials: int
    successes: int

    @property
    def share(self) -> float:
        return self.successes / self.trials


@dataclass(frozen=True)
class MinimalClients:
    """The least n with success probability `target`, its 95 % confidence interval, and the runs
    behind it: those of the search, then the fresh ones.

    The interval is that of the place, between whole numbers, where success reaches the target.
    """

    n: int
    low: float
    high: float
    target: float
    points: tuple[Trials, ...]

    @property
    def trials(self) -> int:
        """How many runs were made in all."""
        return sum(point.trials for point in self.points)


def minimal_clients(
    success: Successes,
    guess: int,
    *,
    target: float = 0.9,
    trials: int = 3000,
    least: int = 2,
) -> MinimalClients:
    """The n at which `success(n, runs)`, a count of successes among fresh independent runs, reaches
    the share `target`.

    A quarter of the `trials` finds where to look; the others are spread over three sizes there,
    fixed before they are made, and alone decide: a search's own runs stop where chance is kind, and
    would pull the answer along. Over that narrow range Phi^-1(success^(1/8)) is taken for a line in
    sqrt(n), and the interval is the profile likelihood's; so little is supposed of its slope that
    it holds n as often with 300 trials as with 12,000, on curves from flat to steep:
    `tests/lab/test_checks.py`. `least` is the smallest n allowed. Raises InputError if success does
    not grow with n.
    """
    if not 0 < target < 1 or guess < least:
        raise InputError(
            f"target is {target} and guess {guess}; give a share between 0 and 1 and a guess of "
            f"at least {least}"
        )
    points = _bracket(success, guess, target, max(60, trials // 25), least)
    line = _Line(tuple(points), math.sqrt(points[-1].n * points[-2].n), target)
    for _ in range(2):
        points += _spread(success, line, _PILOT, trials // 8, least)
        line = _Line(tuple(points), line.best()[0], target)
    fresh = trials - 2 * (trials // 8)
    half_width = min(_HALF_WIDTH * _level_error(target, fresh), _WIDEST)
    decisive = _spread(success, line, (-half_width, 0.0, half_width), fresh, least)
    n, low, high = _Line(tuple(decisive), line.best()[0], target).interval()
    return MinimalClients(round(n), _end(low), _end(high), target, (*points, *decisive))


@dataclass(frozen=True)
class ClientCount:
    """A least number of clients with its 95 % interval, from so many runs. A search that `failed`
    says why; its interval is unknown."""

    n: int
    low: int | float  # whole where n is large, and to a tenth where it is not
    high: int | float
    trials: int
    failed: str = ""


def no_count(why: str) -> ClientCount:
    """What a search found that failed."""
    return ClientCount(0, math.nan, math.nan, 0, why)


def measured_clients(
    success: Successes,
    guess: int,
    *,
    target: float = 0.9,
    trials: int,
    least: int = 2,
) -> ClientCount:
    """`minimal_clients` as a measurement, which failed where success is never reached or a run is
    refused.

    A search whose interval has no end is made once more, with twenty times the trials. Along a
    curve of one decision, the flattest, that is 9 % of the searches with 300 trials, 0.08 % with
    1,800, and none of 6,000 with 3,000.
    """
    search = partial(minimal_clients, success, guess, target=target, least=least)
    try:
        try:
            count = search(trials=trials)
        except NoEnd:
            count = search(trials=20 * trials)
    except LocalDPError as error:
        return no_count(str(error))
    return ClientCount(count.n, count.low, count.high, count.trials)


def own_seed(label: str, seed: int, d: int) -> int:
    """The seed of one search, for its label and dimension."""
    return int.from_bytes(stream_key(label, seed, d)[:8], "little")


def exact_recovery(protocol: LocalProtocol[Any], epsilon: float, seed: int) -> Successes:
    """For `minimal_clients`: how often the protocol finds its hidden concept exactly, each run with
    a fresh concept and tallies drawn from their law."""
    generator = np.random.default_rng([seed])

    def successes(n: int, runs: int) -> int:
        algorithm = protocol.algorithm(epsilon, n)
        hits = 0
        for concept_seed in generator.integers(1 << 62, size=runs).tolist():
            population = protocol.synthetic(n, concept_seed)
            result = run(algorithm, AggregateOracle(population, generator, epsilon))
            hits += protocol.true_error(result, population) == 0
        return hits

    return successes


def _end(place: float) -> float:
    """An end of an interval, to a tenth: where n is small, whole numbers would be as far from it as
    the other end is."""
    return round(place, 1) if place < _WHOLE else round(place)


def _runs(success: Successes, n: int, runs: int) -> Trials:
    return Trials(n, runs, success(n, runs))


def _bracket(success: Successes, guess: int, target: float, runs: int, least: int) -> list[Trials]:
    """Points at steps of 1.5 from the guess, until the target lies between two of them."""
    points = [_runs(success, guess, runs)]
    up = points[0].share < target
    for _ in range(30):
        n = max(least, round(points[-1].n * (1.5 if up else 1 / 1.5)))
        if n == points[-1].n:  # already at `least`, or 1.5 n rounds to n
            n += up
        points.append(_runs(success, n, runs))
        if (points[-1].share >= target) == up or n == least:
            return points
    raise InputError(
        f"success stays at {points[-1].share:.2f} from n = {guess} to {points[-1].n}; it does not "
        f"reach {target} with more clients"
    )


def _spread(
    success: Successes,
    line: "_Line",
    levels: Sequence[float],
    runs: int,
    least: int,
) -> list[Trials]:
    """`runs` shared out over sizes so far, in units of the line, from where it reaches the
    target."""
    centre, slope = line.best()
    each = max(1, runs // len(levels))
    points = []
    for level in levels:
        x = min(max(level / slope, -_REACH), _REACH)
        points.append(_runs(success, max(least, round(centre * (1 + x / 2) ** 2)), each))
    return points


def _success(level: float) -> tuple[float, float]:
    """Phi(level)^8 and its derivative, the level kept from where its logarithm fails."""
    level = min(max(level, -1.0), 6.0)
    bit = normal_tail(-level)
    derivative = _BITS * bit ** (_BITS - 1) * math.exp(-level * level / 2) / math.sqrt(2 * math.pi)
    return bit**_BITS, derivative


def _level(share: float) -> float:
    """The level at which success is `share`."""
    return normal_quantile(1 - share ** (1 / _BITS))


def _level_error(target: float, runs: int) -> float:
    """The standard error of a level near the target."""
    return math.sqrt(target * (1 - target) / runs) / _success(_level(target))[1]


@dataclass(frozen=True)
class _Line:
    """Pr[success] = Phi(u + slope (x - place))^8, Phi(u)^8 = target, x = 2 (sqrt(n / centre) - 1),
    fitted to points by maximum likelihood."""

    points: tuple[Trials, ...]
    centre: float
    target: float

    def best(self) -> tuple[float, float]:
        """(n where the target is reached, slope), the likeliest: Fisher scoring from the middle of
        the points."""
        level, log_slope, aim = 0.0, math.log(_SLOPE[0]), _level(self.target)
        for _ in range(_STEPS):
            score, (own, both, other) = self._scores(aim + level, log_slope, 0.0)
            size = own * other - both**2
            step = _bounded((other * score[0] - both * score[1]) / size)
            log_step = _bounded((own * score[1] - both * score[0]) / size)
            level, log_slope = level + step, log_slope + log_step
            if max(abs(step), abs(log_step)) < 1e-9:
                break
        slope = math.exp(log_slope)
        return self._size(min(max(-level / slope, -1.0), 2.0)), slope

    def interval(self) -> tuple[float, float, float]:
        """n and its 95 % interval: the places whose profile likelihood is within chi-square's 95 %
        point of the greatest."""
        n, slope = self.best()
        place = 2 * (math.sqrt(n / self.centre) - 1)
        low, high = (self._crossing(place, end, math.log(slope)) for end in (-1.6, 4.0))
        return n, self._size(low), self._size(high)

    def _crossing(self, place: float, end: float, log_slope: float) -> float:
        """Where, between `place` and `end`, the profile likelihood has fallen that far: by false
        position, as the root of its fall is nearly a line there."""
        top = self._profile(place, log_slope)

        def beyond(x: float) -> float:
            return math.sqrt(max(0.0, top - self._profile(x, log_slope))) - math.sqrt(_WITHIN_95)

        inside, low = place, -math.sqrt(_WITHIN_95)
        outside, high = end, beyond(end)
        if high < 0:
            raise NoEnd(
                f"success hardly grows with n near n = {self._size(place):.0f}: its interval has "
                "no end; give more trials or another protocol"
            )
        last = 0.0
        while abs(outside - inside) > 1e-6:
            x = (inside * high - outside * low) / (high - low)
            value = beyond(x)
            if abs(value) < 1e-5:
                return x
            # an end that stays twice counts half (Illinois), or it would stay for ever
            if value < 0:
                high = high / 2 if last < 0 else high
                inside, low = x, value
            else:
                low = low / 2 if last > 0 else low
                outside, high = x, value
            last = value
        return inside

    def _size(self, place: float) -> float:
        return self.centre * (1 + place / 2) ** 2

    def _profile(self, place: float, log_slope: float) -> float:
        """The likelihood of a place, maximised over the slope, beginning with `log_slope`."""
        for _ in range(_STEPS):
            score, information = self._scores(_level(self.target), log_slope, place)
            step = _bounded(score[1] / information[2])
            log_slope += step
            if abs(step) < 1e-4:  # its square is what the likelihood is off by
                break
        return self._likelihood(place, log_slope)

    def _likelihood(self, place: float, log_slope: float) -> float:
        total = -(((log_slope - math.log(_SLOPE[0])) / _SLOPE[1]) ** 2) / 2
        for x, point in self._positions():
            right, _ = _success(_level(self.target) + math.exp(log_slope) * (x - place))
            failures = point.trials - point.successes
            total += point.successes * math.log(right) + failures * math.log1p(-right)
        return total

    def _scores(
        self, level: float, log_slope: float, place: float
    ) -> tuple[tuple[float, float], tuple[float, float, float]]:
        """The derivatives of the log likelihood in (level, logarithm of the slope), and its
        expected curvature: (level, both, slope)."""
        slope = math.exp(log_slope)
        first, second = 0.0, (math.log(_SLOPE[0]) - log_slope) / _SLOPE[1] ** 2
        own, both, other = 1e-9, 0.0, 1 / _SLOPE[1] ** 2
        for x, point in self._positions():
            away = slope * (x - place)
            right, density = _success(level + away)
            variance = right * (1 - right)
            pull = (point.successes - point.trials * right) * density / variance
            weight = point.trials * density**2 / variance
            first += pull
            second += pull * away
            own += weight
            both += weight * away
            other += weight * away**2
        return (first, second), (own, both, other)

    def _positions(self) -> list[tuple[float, Trials]]:
        return [(2 * (math.sqrt(point.n / self.centre) - 1), point) for point in self.points]


def _bounded(step: float) -> float:
    return min(max(step, -1.0), 1.0)
