"""Noisy counts of points, and of sets of k points: from a threshold on, or with noise on every
point of the domain."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property

import numpy as np

from local_dp.arrays import Counts, Naturals
from local_dp.checks import check_whole
from local_dp.curator.clipped import laplace_tail, least_tail
from local_dp.curator.inversion import binomial, discrete_laplaces, exp_minus
from local_dp.curator.mechanism import (
    L_co,
    Law,
    Mechanism,
    OfRelease,
    WithinDelta,
    WithinEpsilon,
    check_listed,
    independent,
    whole_weights,
)
from local_dp.curator.multisets import Multiset, absent, check_bits, check_same, naturals
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import ATTO, NANO


@dataclass(frozen=True, eq=False)
class NoisyCounts:
    """The released counts of `size` records: `values` ascending and noisy `counts`, both of shape
    (s,). Every other point counts 0."""

    bits: int
    values: Naturals
    counts: Counts
    size: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NoisyCounts) and self._whole == other._whole

    def __hash__(self) -> int:
        return hash(self._whole)

    @cached_property
    def _whole(self) -> tuple[object, ...]:
        return self.bits, self.size, tuple(self.values.tolist()), tuple(self.counts.tolist())

    def at(self, points: Naturals) -> Counts:
        """The noisy count of each point. Raises InputError for points outside the domain."""
        return look_up(self.values, self.counts, naturals(points, self.bits))

    def worst_error(self, points: Multiset, together: int = 1) -> int:
        """The largest |noisy - true| count over all sets of exactly `together` points of the
        domain: the largest errors of one sign."""
        either = np.unique(np.concatenate([self.values, points.values]))
        truth = look_up(points.values, points.counts, either)
        errors = look_up(self.values, self.counts, either) - truth
        # points without records and without a released count: no error
        others = min(together, (1 << self.bits) - len(either))
        ordered = np.sort(np.concatenate([errors, np.zeros(others, dtype=np.int64)]))
        return max(abs(int(ordered[:together].sum())), abs(int(ordered[::-1][:together].sum())))


def look_up(values: Naturals, counts: Counts, points: Naturals) -> Counts:
    """The count of each point, 0 if it is not in the ascending `values`."""
    if not len(values):
        return np.zeros(len(points), dtype=np.int64)
    places = np.minimum(np.searchsorted(values, points), len(values) - 1)
    return np.where(np.asarray(values[places] == points, dtype=bool), counts[places], 0)


@dataclass(frozen=True)
class CellNoise:
    """count + Y with Pr[Y = y] proportional to e^(-e |y|), e = `nano` / 1e9 nats, released from
    `least` on and at most as `top`.

    Privacy: a count that moves by one moves the law by e^e. The law has a fraction just below e^e
    (gap 1e-50).
    """

    nano: Fraction
    least: int

    def drawn(self, counts: Counts, top: int, draws: Draws) -> Counts:
        """The noisy counts, those below `least` as 0, shape of `counts`."""
        noisy = counts + discrete_laplaces(draws, self.nano / NANO, len(counts))
        return np.where(noisy >= self.least, np.minimum(noisy, max(top, self.least)), 0)

    def law(self, count: int, top: int) -> Mapping[int, Fraction]:
        """Pr[each outcome] of a cell; 0 stands for no release."""
        top = max(top, self.least)
        tails = {noisy: self.beyond(noisy - count) for noisy in range(self.least, top + 1)}
        inside = {noisy: tails[noisy] - tails[noisy + 1] for noisy in range(self.least, top)}
        return {0: 1 - tails[self.least], **inside, top: tails[top]}

    def beyond(self, y: int) -> Fraction:
        """Pr[Y >= y]."""
        return laplace_tail(self.nano, y)

    def interval(self, answer: int, top: int) -> tuple[int, int]:
        """The 95 % interval of a count in 0..top, given that it is released, and noisy as
        `answer`: each end misses with probability 2.5 % at most.

        Up to `least` all counts have one law when they are released, for the noise has no memory:
        the interval has all of them or none.
        """
        step = float(self.nano) / NANO
        both = math.log1p(math.exp(step))

        def log_tail(y: int) -> float:
            return step * (1 - y) - both if y > 0 else math.log1p(-math.exp(step * y - both))

        def reaches(noisy: int, count: int) -> float:
            """Pr[noisy or more | released], of two logarithms: the chances are too small for
            floats."""
            return math.exp(log_tail(noisy - count) - log_tail(self.least - count))

        low = bisect_right(range(answer), 0.025, key=lambda count: reaches(answer, count))
        more = range(answer, top)  # where `top` is released, the end above is `top`
        high = answer + bisect_left(more, 0.975, key=lambda count: reaches(answer + 1, count + 1))
        return low, min(high, top)


_LISTED = 1 << 16  # outcomes


@dataclass(frozen=True)
class ThresholdedHistogram(WithinDelta[Multiset, NoisyCounts]):
    """For each point that occurs its count plus discrete Laplace noise (eps / 2), released from the
    threshold on, at most m; all others count 0.

    Privacy: (eps, delta). A replacement moves two counts by one each: eps / 2 twice. A count of 1
    that appears or disappears is released with probability e^(-eps (threshold - 1) / 2) / (1 +
    e^(-eps / 2)) <= delta, the delta of the worst pair of databases. Utility:
    `bounds.packing.histogram_success`: all counts of all points within alpha m, from 340 records on
    for alpha .1, 90 % and (1, 1e-6). Cost: 0.3 us for each distinct point; the domain does not
    matter. Source: in place of SanPoints of Beimel, Nissim, Stemmer 2013, Theorem 4.6, which needs
    7.6e5 records; Korolova et al. 2009, in whole numbers.
    """

    summary = "Counts the points that occur, and withholds rare ones"
    epsilon: float
    delta: float

    @property
    def threshold(self) -> int:
        """1 + ceil((2 / eps) ln(1 / (delta (1 + e^(-eps / 2)))))."""
        return 1 + least_tail(self._nano, Fraction(self.loss.atto, ATTO))

    @cached_property
    def noise(self) -> CellNoise:
        return CellNoise(self._nano, self.threshold)

    def release(self, database: Multiset, draws: Draws) -> NoisyCounts:
        noisy = self.noise.drawn(database.counts, database.size, draws)
        mask = noisy > 0
        return NoisyCounts(database.bits, database.values[mask], noisy[mask], database.size)

    def law(self, database: Multiset) -> Law[NoisyCounts]:
        return law_of_cells(database, self.noise, database.values, database.counts.tolist())

    @property
    def _nano(self) -> Fraction:
        return Fraction(self.loss.nano, 2)


def law_of_cells(
    database: Multiset, noise: CellNoise, cells: Naturals, counts: Sequence[int]
) -> Law[NoisyCounts]:
    """The law of independent cells with these counts. Raises InputError above 2^16 outcomes."""
    laws = [noise.law(count, database.size) for count in counts]
    check_listed(
        f"{len(laws)} cells of up to {database.size} records",
        (max(0, database.size - noise.least) + 2) ** len(laws),
        _LISTED,
        " outcomes",
    )
    shares: dict[NoisyCounts, Fraction] = {}
    for outcome, share in independent(laws):
        noisy = np.array(outcome, dtype=np.int64)
        mask = noisy > 0
        shares[NoisyCounts(database.bits, cells[mask], noisy[mask], database.size)] = share
    return whole_weights(shares)


@dataclass(frozen=True)
class PerCellHistogram(WithinEpsilon[Multiset, NoisyCounts]):
    """For each of the 2^bits points its count plus discrete Laplace noise (eps / 2), released from
    `least` on, at most as m: the pure baseline.

    `least` is the least count that a point without records reaches with probability at most
    `strangers` / 2^bits: about so many are released. Privacy: eps, at every number of records: a
    replacement moves two counts by one each, eps / 2 twice. Utility:
    `bounds.packing.per_cell_success`: alpha m must exceed the largest noise of 2^bits cells, (2 /
    eps) ln(2^bits / beta) and a little more. Cost: that of the points that occur. Of the others a
    binomial number is released, at uniform points, with a geometric excess over `least`: exactly.
    Source: the Laplace mechanism on a histogram (Beimel, Nissim, Stemmer 2013, Theorem 2.24 and
    Section 4.2).
    """

    summary = "Counts every point of the domain with noise"
    bits: int
    epsilon: float
    strangers: int = 64

    def __post_init__(self) -> None:
        check_bits(self.bits)
        check_whole("strangers", self.strangers, 1, 1 << 12)
        super().__post_init__()

    @property
    def nobodys(self) -> float:
        """The number of points without records that are released on average, if few points have
        records."""
        return float((1 << self.bits) * self.noise.beyond(self.noise.least))

    @cached_property
    def noise(self) -> CellNoise:
        nano = Fraction(self.loss.nano, 2)
        return CellNoise(nano, least_tail(nano, Fraction(self.strangers, 1 << self.bits)))

    def release(self, database: Multiset, draws: Draws) -> NoisyCounts:
        check_same(database.bits, self.bits)
        noisy = self.noise.drawn(database.counts, database.size, draws)
        mask = noisy > 0
        strangers = self._strangers(database, draws)
        values = naturals([*database.values[mask].tolist(), *strangers], self.bits)
        beyond = [self._beyond(database, draws) for _ in strangers]
        counts = np.append(noisy[mask], beyond).astype(np.int64)
        order = np.argsort(values, kind="stable")
        return NoisyCounts(self.bits, values[order], counts[order], database.size)

    def law(self, database: Multiset) -> Law[NoisyCounts]:
        check_same(database.bits, self.bits)
        check_listed(f"2^{self.bits} cells", self.bits, 4)
        cells = np.arange(1 << self.bits, dtype=np.uint64)
        return law_of_cells(
            database, self.noise, cells, look_up(database.values, database.counts, cells).tolist()
        )

    def _strangers(self, database: Multiset, draws: Draws) -> list[int]:
        """The released points without records: a uniform set of a binomial number of points."""
        others = (1 << self.bits) - len(database.values)
        step = self.noise.nano / NANO

        def share() -> Decimal:
            decay = exp_minus(step)
            return decay**self.noise.least / (1 + decay)

        number, places = binomial(draws, others, share), set[int]()
        while len(places) < number:
            places.add(draws.below(others))
        return absent(database.values, sorted(places))

    def _beyond(self, database: Multiset, draws: Draws) -> int:
        """A noisy count given that it is `least` or more: the noise has no memory, so its excess
        over `least` is that over 0."""
        while (more := draws.discrete_laplace(self.noise.nano / NANO)) < 0:
            continue
        return min(self.noise.least + more, max(database.size, self.noise.least))


@dataclass(frozen=True)
class KPointAnswers:
    """Answers to the C(2^bits, k) queries of k-POINT, each a sum of noisy counts."""

    k: int
    noisy: NoisyCounts

    def share(self, points: Naturals) -> float:
        """The share of the records in a set of k distinct points; noise may take it outside 0..1.
        O(k log s). Raises InputError for other sets."""
        distinct = np.unique(naturals(points, self.noisy.bits))
        if len(distinct) != self.k or len(points) != self.k:
            raise InputError(
                f"{len(points)} points are given, {len(distinct)} of them distinct; give {self.k} "
                "distinct points"
            )
        return float(self.noisy.at(distinct).sum()) / max(1, self.noisy.size)

    def worst_error(self, points: Multiset) -> float:
        return self.noisy.worst_error(points, self.k) / max(1, self.noisy.size)


@dataclass(frozen=True)
class KPointSanitizer(OfRelease[Multiset, KPointAnswers, L_co]):
    """All sets of k points, from one release of point counts that is k times as accurate.

    Privacy: that of the release. Utility: within alpha where each count is within alpha m / k.
    Source: Beimel, Nissim, Stemmer 2013, Figure 10 and Theorem 4.7.
    """

    summary = "Answers all sets of a few points from noisy counts"
    k: int
    mechanism: Mechanism[Multiset, NoisyCounts, L_co]

    def __post_init__(self) -> None:
        check_whole("k", self.k, 1, 1 << 20)

    def after(self, release: NoisyCounts) -> KPointAnswers:
        return KPointAnswers(self.k, release)
