"""What frequency oracles share: shares of k symbols and linear functions of them with their
covariance; and oracles by block designs."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from local_dp.arrays import Counts, Floats, Ints, Words
from local_dp.cube import walsh_hadamard
from local_dp.domains import Domain, symbols
from local_dp.randomizers.finite import FiniteChannel, OwnWeights, Signs, too_narrow
from local_dp.randomizers.places import PerCoin
from local_dp.randomizers.randomizer import Randomizer
from local_dp.tallies import Ends, Estimate, Joint, Steadied, Tally, steadied

Shares = TypeVar("Shares", float, Floats)


def support_variance(p: float, q: float, share: Shares) -> Shares:
    """l (1 - l) / (p - q)^2, l = q + f (p - q): of a report that supports the true symbol with
    probability p, and each other one with probability q."""
    chance = q + share * (p - q)
    return chance * (1 - chance) / (p - q) ** 2


@dataclass(frozen=True)
class Supporting(Randomizer):
    """A randomizer whose report supports some symbols: the client's own with probability p, each
    other one with probability q.

    Utility: each share has variance l (1 - l) / (n (p - q)^2), l = q + f (p - q).
    """

    @property
    @abstractmethod
    def chances(self) -> tuple[float, float]:
        """p and q."""

    def variance(self, values: Ints, law: Floats) -> Floats:
        return support_variance(*self.chances, np.asarray(law @ self.truths(values)))

    @property
    def ends(self) -> tuple[float, float]:
        """What a report adds to the share of a symbol that it does not support, or supports."""
        p, q = self.chances
        return -q / (p - q), (1 - q) / (p - q)

    def supported(self, share: Floats, n: int) -> Estimate:
        """The shares of the symbols, from the share of the n reports that supports each."""
        p, q = self.chances
        return Estimate.between(self.ends, (share - q) / (p - q), n)


@dataclass(frozen=True)
class FrequencyOracle(Randomizer):
    """A randomizer whose tally estimates the shares of `shares` symbols without bias."""

    @property
    def shares(self) -> int:
        """How many shares it estimates: one for each symbol that it takes."""
        return self.domain.size

    @property
    def corners(self) -> Ints:
        """The value of a client who has one share alone, of each share."""
        return np.arange(self.shares)

    @abstractmethod
    def joint(self, tally: Tally, weights: Floats) -> Joint:
        """Unbiased estimates of `weights` @ shares, weights of shape (m, shares), with the
        covariance that the reports themselves show."""


@dataclass(frozen=True)
class FiniteOracle(FrequencyOracle, FiniteChannel):
    """A frequency oracle that is a finite channel: many tallies can be drawn from the law of one
    report, and estimated from at once."""

    @abstractmethod
    def values(self, counts: Counts) -> Floats:
        """The estimated shares from each of several tallies' counts, shape (..., cells, alphabet)
        to (..., shares)."""


@dataclass(frozen=True)
class DirectOracle(Supporting, FiniteOracle):
    """An oracle whose report names a symbol, or a set of them."""

    def support(self, counts: Counts) -> Counts:
        """The number of reports that name each symbol, shape (..., cells, alphabet) to (...,
        shares)."""
        return counts[..., 0, :]

    def gathered(self, weights: Floats) -> Floats:
        """The sum of the weights of the symbols that each report names, shape (m, shares) to (m,
        cells, alphabet): the transpose of `support`."""
        return weights[:, None, :]

    def values(self, counts: Counts) -> Floats:
        p, q = self.chances
        shares = self.support(counts) / counts.sum(axis=(-2, -1))[..., None]
        return np.asarray((shares - q) / (p - q))

    def estimate(self, tally: Tally) -> Estimate:
        return self.supported(self.support(tally.counts) / tally.answered, tally.n)

    def joint(self, tally: Tally, weights: Floats) -> Joint:
        p, q = self.chances
        blind = q * weights.sum(axis=1)[:, None, None]
        return joint_of_reports(tally, (self.gathered(weights) - blind) / (p - q))


@dataclass(frozen=True)
class SignOracle(Signs, FiniteOracle):
    """An oracle whose report is a sign in a random row of a Hadamard matrix: `gain` times the mean
    sign at a symbol is its share."""

    def values(self, counts: Counts) -> Floats:
        signs = np.moveaxis((counts[..., 0] - counts[..., 1]).astype(np.float64), -1, 0)
        sums = np.moveaxis(walsh_hadamard(signs)[: self.shares], 0, -1)
        return np.asarray(self.gain * sums / counts.sum(axis=(-2, -1))[..., None])

    def estimate(self, tally: Tally) -> Estimate:
        n = tally.answered
        return Estimate.between((-self.gain, self.gain), self.values(tally.counts), n)

    def joint(self, tally: Tally, weights: Floats) -> Joint:
        """By Parseval the products of two functions of a report average to gain^2 <w, w'>, whatever
        the law."""
        n, mean = tally.answered, weights @ self.values(tally.counts)
        reach = self.gain * np.abs(weights).sum(axis=1)
        square = self.gain**2 * weights @ weights.T
        return Joint(mean, (square - np.outer(mean, mean)) / n, n, (-reach, reach))


@dataclass(frozen=True, kw_only=True)
class OfSymbols(Randomizer):
    """A randomizer of one of `k` symbols. 2 <= k <= 4096."""

    k: int = 2

    @property
    def domain(self) -> Domain:
        return symbols(self.k)

    @staticmethod
    def example_params(size: int) -> dict[str, int]:
        return {"k": size}


def joint_of_reports(tally: Tally, each: Floats) -> Joint:
    """`FrequencyOracle.joint` from the value that one report adds to each function, shape (m,
    cells, alphabet)."""
    n, flat = tally.answered, each.reshape(len(each), -1)
    law = tally.counts.ravel() / n
    mean = flat @ law
    covariance = ((flat * law) @ flat.T - np.outer(mean, mean)) / n
    return Joint(mean, covariance, n, (flat.min(axis=1), flat.max(axis=1)))


def joint_of_places(
    n: int, weights: Floats, mean: Floats, square: Floats, ends: Ends | None = None
) -> Joint:
    """The same where places are independent given the value: from the mean and the mean square of
    each place's own estimate."""
    total = weights @ mean
    return Joint(total, ((weights * square) @ weights.T - np.outer(total, total)) / n, n, ends)


def steady_estimate(mean: Floats, square: Floats, ends: tuple[float, float], n: int) -> Estimate:
    """The mean of what reports stand for, from their mean, their mean square and their ends."""
    return Steadied.of(mean, (square - mean**2) / n, n, steadied(mean, square, ends, n))


_BLOCK = 1 << 22  # places looked up at a time


@dataclass(frozen=True)
class Design(DirectOracle, OfSymbols):
    """Estimates from the number of reported sets that contain each symbol: the client's lies in its
    set with probability p, each other one with q."""

    @property
    @abstractmethod
    def sets(self) -> tuple[int, int]:
        """K and w: a set has w of K points, k of which are the symbols."""

    @property
    @abstractmethod
    def own_chance(self) -> float:
        """p."""

    @property
    def chances(self) -> tuple[float, float]:
        (points, size), p = self.sets, self.own_chance
        return p, (size - p) / (points - 1)


@dataclass(frozen=True)
class EvenDesign(Design):
    """A design whose sets are all as likely to a client that they do not hold."""

    @abstractmethod
    def own(self, values: Ints) -> Counts:
        """The places, in a flattened tally, of the reports whose set contains each value, shape
        (n,) to (n, the same number for every value)."""

    @property
    @abstractmethod
    def blind(self) -> float:
        """The probability of a report that is uniform on all; else it is uniform on the value's
        own."""

    def draw_tally(self, value_counts: Mapping[int, int], generator: np.random.Generator) -> Tally:
        """As `FiniteChannel.draw_tally`: the blind reports of all clients together, and the others
        among each value's own reports."""
        pairs = [(value, count) for value, count in value_counts.items() if count]
        values, n = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        seeing = generator.binomial(n, 1 - self.blind)
        size = self.cells * self.alphabet
        counts = generator.multinomial(int((n - seeing).sum()), np.full(size, 1 / size))
        step = max(1, _BLOCK // size)
        for first in range(0, len(values), step):
            places = self.own(values[first : first + step])
            uniform = np.full(places.shape[1], 1 / places.shape[1])
            draws = generator.multinomial(seeing[first : first + step], uniform).ravel()
            # whole numbers below 2^53: exact
            sums = np.bincount(places.ravel(), weights=draws, minlength=size)
            counts += sums.astype(np.int64)
        return Tally(counts.reshape(self.cells, self.alphabet))


@dataclass(frozen=True)
class CodedOracle(PerCoin, FiniteOracle, OfSymbols):
    """Reports by `inner` the code of the symbol in a public row, one of `cells`, as likely as any
    up to 2^-52; the tally is a table of rows and codes."""

    @cached_property
    @abstractmethod
    def inner(self) -> FiniteChannel:
        """The channel of the codes."""

    @abstractmethod
    def encode(self, values: Ints, coins: Ints) -> Ints:
        """The code of each value in each row, elementwise under broadcasting."""

    @property
    def report_dtype(self) -> "np.dtype[np.unsignedinteger]":
        return self.inner.report_dtype

    @property
    def uses_coins(self) -> bool:
        return self.cells > 1

    def cells_of(self, coins: Words) -> Words:
        """The row of each coin: its remainder, of which the low bits are enough."""
        quotient = (coins // np.uint64(self.cells)).astype(np.uint16)
        return coins.astype(np.uint16) - quotient * np.uint16(self.cells)

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        return self.inner.weight(reports, self.encode(values, cells), cells)


@dataclass(frozen=True)
class TwoWeights(OwnWeights):
    """Reports one of A: each of the w that are the value's own with weight T, each other one with
    weight s.

    One of the others takes the remainder, fewer than w words of 64 bits, which no estimate shows.
    Privacy: T / s <= e^eps, s the least that allows it.
    """

    @abstractmethod
    def report(self, values: Ints, ranks: Ints) -> Ints:
        """The reports of a value's own set for the ranks 0..w - 1, other reports for w..A - 1;
        elementwise, with broadcasting."""

    @abstractmethod
    def rank(self, values: Ints, reports: Ints) -> Ints:
        """The inverse of `report` in its second argument."""

    def prepare(self) -> None:
        if self.held <= self.other + self._rest:
            raise too_narrow(self)

    def own(self, values: Ints) -> Counts:
        """Each value's own set of reports, shape (n, w)."""
        return self.report(values[:, None], np.arange(self.w)).astype(np.int64)

    @property
    def own_chance(self) -> float:
        """The probability of a report that is the value's own."""
        return self.w * self.held / self.total

    @property
    def blind(self) -> float:
        """The probability of a report that is as likely any as any other, up to the remainder."""
        return self.alphabet * self.other / self.total

    @property
    def _rest(self) -> int:
        return self.total - self.w * self.held - (self.alphabet - self.w) * self.other

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        """Splits the word's range into w steps of T and A - w of s, the last one longer by the
        remainder; the step is the report's rank."""
        word, others = words.dtype.type, self.alphabet - self.w
        own = self.w * self.held
        inside = words // word(self.held)
        far = np.minimum(words - np.minimum(words, word(own)), word(self.total - 1 - own))
        beyond = np.minimum(far // word(self.other), word(others - 1))
        step = np.where(inside < self.w, inside, self.w + beyond).astype(np.int64)
        return self.report(values.astype(np.int64), step).astype(self.report_dtype)

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        rank = self.rank(np.asarray(values, dtype=np.int64), np.asarray(reports, dtype=np.int64))
        weights = np.where(rank < self.w, np.uint64(self.held), np.uint64(self.other))
        weights[rank == self.alphabet - 1] += np.uint64(self._rest)
        return weights
