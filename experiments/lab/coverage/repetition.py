"""How often a stated interval holds the truth: by repetition for any estimate, and exactly where the reports that count are binomial."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np

from local_dp.arrays import Bools, Counts, Floats
from local_dp.experiments.lab.intervals import wilson
from local_dp.tallies import Z95, Estimate, score_interval

BAND = (0.94, 0.96)  # where the coverage of a 95 % interval is called right
COUNTED = (0.94, 0.965)  # of one from whole numbers of reports, which is a little wider on purpose
AT_LEAST = (0.94, 1.0)  # of one from few reports
RARELY = 1e-4  # a measured coverage is held to the band itself where a true 95 % leaves it no more often than this at any coordinate
FAR = 5.0  # standard errors between a measured coverage and the exact one, which a right program passes once in 2 million
BLOCK = 1 << 20  # numbers that are computed at a time
JUMPS, NEXT = 10_000, 1e-9  # of the coverage as the truth moves: how many are looked at, and how near
Runs: TypeAlias = Iterable[tuple[Sequence[Estimate], int]]  # the estimates of a run, and how many runs gave the same
Draw: TypeAlias = Callable[[np.random.Generator, int], Runs]


@dataclass(frozen=True)
class Case:
    """What is repeated: `draw(generator, R)` makes R runs with n clients; `truth` is what the coordinates of a run's estimates, in order, are about."""

    name: str
    what: str
    epsilon: float
    n: int
    truth: Floats
    draw: Draw
    tier: str = "aggregate"
    binomial: bool = True  # whether each coordinate is linear in how many of its clients sent some report, so that its coverage is known exactly
    band: tuple[float, float] = BAND
    default: bool = False  # whether n is the protocol's own number of clients
    dear: int = 1  # so many times fewer repetitions


@dataclass(frozen=True)
class Coverage:
    """In how many of `repetitions` runs each coordinate's interval held the truth, lay below it, lay above it; and the exact coverage, where it is known."""

    case: Case
    repetitions: int
    held: Counts
    below: Counts
    above: Counts
    exact: Floats | None

    @property
    def worst(self) -> int:
        """How often the truth was held at the coordinate whose coverage is the worst."""
        return int(self.held[self._worst(self.held / self.repetitions)])

    @property
    def exact_worst(self) -> float | None:
        """The worst exact coverage."""
        return None if self.exact is None else float(self.exact[self._worst(self.exact)])

    def _worst(self, rates: Floats) -> int:
        """The coordinate whose coverage is furthest from 95 %; the lowest where more than the band is allowed."""
        return int(np.argmin(rates) if self.case.band[1] == 1 else np.argmax(np.abs(rates - 0.95)))

    @property
    def agrees(self) -> bool:
        """Whether every coordinate was covered as often as the exact law says, or as the band allows, up to the noise of the repetitions."""
        low, high = score_interval(self.held / self.repetitions, (0.0, 1.0), self.repetitions, FAR)
        least, most = self.case.band if self.exact is None else (self.exact, self.exact)
        return bool(np.all((low <= most) & (least <= high)))

    @property
    def inside(self) -> bool:
        """Whether the coverage of every coordinate lies in the band: the exact one where it is known, else the measured one."""
        rate = self.exact_worst if self.exact is not None else self.worst / self.repetitions
        return rate is not None and self.agrees and self.case.band[0] <= rate <= self.case.band[1]

    @property
    def holds(self) -> bool:
        """Whether it is as it should be: inside the band. With few repetitions, a measured coverage need only agree with it."""
        return self.inside if self.exact is not None or resolves(self.repetitions, len(self.held)) else self.agrees

    def describe(self) -> dict[str, Any]:
        """The result as plain data; the interval is that of the worst coordinate, as if it had been chosen beforehand."""
        case, runs = self.case, self.repetitions
        return {
            "name": case.name, "what": case.what, "epsilon": case.epsilon, "n": case.n, "tier": case.tier, "default": case.default,
            "repetitions": runs, "coordinates": len(self.held), "coverage": float(self.held.mean()) / runs,
            "missed_below": float(self.below.mean()) / runs, "missed_above": float(self.above.mean()) / runs,
            "worst": self.worst / runs, "worst_interval": wilson(self.worst, runs), "worst_exact": self.exact_worst,
            "agrees": self.agrees, "inside": self.inside, "holds": self.holds,
        }  # fmt: skip


def resolves(repetitions: int, coordinates: int = 1) -> bool:
    """Whether so many repetitions distinguish 95 % from either end of the band, at every coordinate."""
    z = -NormalDist().inv_cdf(RARELY / (2 * coordinates))
    return z * math.sqrt(0.95 * 0.05 / repetitions) <= 0.95 - BAND[0]


def measure(case: Case, repetitions: int, generator: np.random.Generator, z: float = Z95) -> Coverage:
    """Repeats the case. Coordinates that are known without asking, whose interval has no width, are left out."""
    held, below, above, known = (np.zeros(len(case.truth), dtype=np.int64) for _ in range(4))
    estimates: Sequence[Estimate] = ()
    for estimates, times in case.draw(generator, repetitions):
        pairs = [estimate.interval(z) for estimate in estimates]
        low, high = (np.concatenate([np.atleast_1d(pair[side]) for pair in pairs]) for side in (0, 1))
        below += times * (high < case.truth)
        above += times * (low > case.truth)
        held += times * ((low <= case.truth) & (case.truth <= high))
        known += times * (low == high)
    asked = known < repetitions
    return Coverage(case, repetitions, held[asked], below[asked], above[asked], _exact(case, estimates, asked))


def _exact(case: Case, estimates: Sequence[Estimate], asked: Bools) -> Floats | None:
    """The exact coverage at the truth: the end that a coordinate's estimate is from, as a share of the way to the other, is the chance of its report."""
    if not case.binomial:
        return None
    parts, place = [], 0
    for estimate in estimates:
        assert estimate.ends is not None
        truth = case.truth[place : place + estimate.value.size]
        place += estimate.value.size
        parts.append(binomial_coverage(estimate.n, (truth - estimate.ends[0]) / (estimate.ends[1] - estimate.ends[0]), whole=True))
    return np.concatenate(parts)[asked]


def binomial_coverage(n: int, chances: Floats, *, whole: bool = False) -> Floats:
    """Pr[Wilson's 95 % interval of a Binomial(n, p) holds p], exactly, for each p in `chances`.

    With `whole` it is the coverage of every estimate that is linear in how many of n clients sent some report, each with chance p.
    """
    low, high = score_interval(np.arange(n + 1) / n, (0.0, 1.0), n, whole=whole)
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    first, last = np.searchsorted(high, chances), np.searchsorted(low, chances, side="right")  # the counts whose interval holds p
    width = int((last - first).max(initial=1))
    parts = []
    for some in np.array_split(np.arange(len(chances)), 1 + len(chances) * width // BLOCK):
        p, count = chances[some, None], first[some, None] + np.arange(width)
        count, held = np.minimum(count, n), count < last[some, None]
        mass = np.exp(logs[n] - logs[count] - logs[n - count] + count * np.log(p) + (n - count) * np.log1p(-p))
        parts.append(np.where(held, mass, 0.0).sum(axis=1))
    return np.concatenate(parts)


def exact_range(n: int, seen: tuple[float, float]) -> tuple[float, float]:
    """The least and the largest exact coverage with n clients, over all truths, which make a report seen with chances between `seen`.

    The coverage jumps at the ends of the intervals and is smooth between. It is computed on both sides of each jump, of at most 10,000.
    """
    ends = np.sort(np.concatenate(score_interval(np.arange(n + 1) / n, (0.0, 1.0), n, whole=True)))
    jumps = ends[(seen[0] < ends) & (ends < seen[1])]
    jumps = jumps[:: 1 + len(jumps) // JUMPS]
    covered = binomial_coverage(n, np.clip(np.concatenate([jumps - NEXT, jumps + NEXT, seen]), *seen), whole=True)
    return float(covered.min()), float(covered.max())


def holds_from(seen: tuple[float, float], step: float = 1.04) -> int:
    """The least n of a geometric grid from which on the exact coverage stays in the band for every truth.

    Below it intervals are wider than the band allows. The jumps are as high as a count is likely, so what matters is the variance n p (1 - p) at the least
    favourable chance: the search starts where it is 80, far above where the band is first left, and goes down.
    """
    n = math.ceil(80 / min(p * (1 - p) for p in seen))
    reached = n
    while n >= 2:
        low, high = exact_range(n, seen)
        if low < COUNTED[0] or high > COUNTED[1]:
            break
        reached, n = n, min(n - 1, math.floor(n / step))
    return reached
