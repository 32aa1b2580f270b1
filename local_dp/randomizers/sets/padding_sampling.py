"""Sets of items, alone or each with a number: filled up with dummies, and one member reported; or
one small report for each key."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from local_dp.arrays import Bools, Counts, Floats, Ints, Words
from local_dp.checks import check_dimension, check_whole
from local_dp.domains import MAX_DIMENSION, Domain, Vectors, bit_strings, symbols
from local_dp.errors import InputError
from local_dp.loss import exp_epsilon
from local_dp.randomizers.finite import ceil_fraction, of_moments, too_narrow
from local_dp.randomizers.frequencies.base import joint_of_reports
from local_dp.randomizers.places import PerCoin, PlaceVector
from local_dp.randomizers.table import TableChannel
from local_dp.randomizers.vectors.base import words_of
from local_dp.tallies import Estimate, Ratio, Tally

MAX_VALUES = 4096  # sets
MAX_ITEMS = MAX_VALUES.bit_length() - 1


@dataclass(frozen=True, kw_only=True)
class Padded(TableChannel):
    """A set of fewer than `limit` = L of k items gets dummies up to L members; one member is drawn,
    of larger sets too, and randomized.

    Every report has weight s whatever the set; each of L members has g more, each of m > L members
    g L / m. No member is drawn with a chance above 1 / L, so g is L times larger: (s + g) / s =
    e^epsilon (amplification by sampling). Cost: log2 of the number of reports. The table has at
    most 4096 rows.
    """

    signs = 1  # the reports of an item: two where it comes with a sign
    k: int = 2
    limit: int = 2

    @property
    @abstractmethod
    def held(self) -> Bools:
        """Which items are in each set, shape (values, k)."""

    @property
    def fineness(self) -> int:
        """A divisor that g must have."""
        return 1

    def spread(self, gains: Ints) -> Ints:
        """The gains of the reports of the items, from those of the items, shape (values, k)."""
        return gains

    def check(self) -> None:
        super().check()
        check_whole("limit", self.limit, 1, self.k)

    def table(self) -> Words:
        reports, limit = self.signs * self.k + self.limit, self.limit
        base, gain = self._split
        members = self.held
        sizes = members.sum(axis=1, keepdims=True)
        shares = [divmod(gain * limit, max(size, limit)) for size in range(self.k + 1)]
        each, over = np.array(shares, dtype=np.uint64).T[:, sizes]
        extra = np.cumsum(members, axis=1).astype(np.uint64) <= over
        gains = np.where(members, each + extra, np.uint64(0))
        missing = np.arange(limit) < limit - sizes
        dummies = np.where(missing, np.uint64(gain), np.uint64(0))
        table: Words = np.concatenate([self.spread(gains), dummies], axis=1) + np.uint64(base)
        # what rounding left over: the same for all
        table[:, -1] += np.uint64(self.total - reports * base - limit * gain)
        return table

    @cached_property
    def _split(self) -> tuple[int, int]:
        """The weights s and g. Raises InputError if words are too narrow."""
        reports = self.signs * self.k + self.limit
        base = ceil_fraction(self.total / (reports + self.limit * (exp_epsilon(self.nano) - 1)))
        gain = (self.total - reports * base) // (self.limit * self.fineness) * self.fineness
        if gain < 1:
            raise too_narrow(self)
        return base, gain

    @property
    def odds(self) -> tuple[float, float]:
        """s and g over 2^word_bits: the chance of each report whatever the set, and the extra
        chance of a member of a set of at most L."""
        base, gain = self._split
        return base / self.total, gain / self.total

    def truths(self, values: Ints) -> Floats:
        """Which items are held; of a set of more than L items each counts less."""
        members = self.held[values]
        return np.asarray(
            members * np.minimum(1, self.limit / np.maximum(1, members.sum(axis=1, keepdims=True)))
        )

    def seen(self, counts: Counts) -> Counts:
        """The counts of the reports that name an item."""
        return counts[0, : self.alphabet - self.limit]


@dataclass(frozen=True, kw_only=True)
class PaddingSampling(Padded):
    """Reports one item of a set of some of k, filled up to `limit` members with dummies, by
    randomized response over k + limit symbols.

    A value is the set as a number, bit j for item j. It estimates the share of clients with each
    item; of a set of m > limit items each counts limit / m. Privacy: (s + g) / s <= e^eps, with 1 =
    (k + L) s + L g: as much as response at ln(L (e^eps - 1) + 1) without sampling. Utility: each
    share has variance l (1 - l) / (n g^2), l = s + f g. Cost: log2(k + L) bits. 1 <= limit <= k <=
    12: the table has a row for each set, and every client enumerates it.
    """

    name = "padding-sampling"
    summary = "Reports one item of a set, filled up with dummies"
    source = "Wang, Li, Jha 2018"
    estimates = "the shares of clients whose set has each item"
    k: int = 3

    def check(self) -> None:
        check_whole("k", self.k, 1, MAX_ITEMS)
        super().check()

    @property
    def domain(self) -> Domain:
        return bit_strings(self.k)

    @property
    def held(self) -> Bools:
        return np.arange(1 << self.k)[:, None] >> np.arange(self.k) & 1 > 0

    def estimate(self, tally: Tally) -> Estimate:
        """The k shares, unbiased where no set has more than `limit` items, shape (k,)."""
        n, (base, gain) = tally.answered, self.odds
        ends, shares = (-base / gain, (1 - base) / gain), self.seen(tally.counts) / n
        return Estimate.between(ends, (shares - base) / gain, n)


@dataclass(frozen=True, kw_only=True)
class PCKV(Padded):
    """Reports one of a client's keys, filled up to `limit` with dummies, and the sign to which its
    number is rounded, by one response (PCKV-GRR).

    A record is a number of k digits in base steps + 2, the lowest for key 0: 0 where the key is
    missing, and 1 + v for the number 2 v / steps - 1 in [-1, 1]. It estimates for each key the
    share f of clients that have it, and the sum m of its numbers by n; `means` are the quotients.
    Of more than `limit` keys each counts limit / their number. Privacy: (s + g) / s <= e^eps with 1
    = (2 k + L) s + L g, the paper's best split. Utility: f has variance l (1 - l) / (n g^2), l = 2
    s + f g, and m has (l / g^2 - m^2) / n. Cost: log2(2 k + L) bits. 1 <= limit <= k, (steps + 2)^k
    <= 4096.
    """

    name = "pckv"
    summary = "Reports one key of a client and the sign of its number"
    source = "Gu, Li, Cheng, Xiong, Cao 2020 (PCKV-GRR)"
    estimates = (
        "for each key the share that holds it, and the sum of its numbers by the number of clients"
    )
    signs = 2
    steps: int = 2

    @property
    def domain(self) -> Domain:
        return key_values(self.k, self.steps)

    @property
    def digits(self) -> Ints:
        return digits_of(np.arange(self.domain.size), self.k, self.steps)

    @property
    def held(self) -> Bools:
        return self.digits > 0

    @property
    def fineness(self) -> int:
        return self.steps

    def truths(self, values: Ints) -> Floats:
        return sums_of(self.digits[values], self.steps, self.limit)

    def spread(self, gains: Ints) -> Ints:
        """Plus signs of all keys, then minus signs."""
        level = np.maximum(self.digits - 1, 0).astype(np.uint64)
        steps = np.uint64(self.steps)
        plus = gains // steps * level + gains % steps * level // steps
        return np.concatenate([plus, gains - plus], axis=1)

    def estimate(self, tally: Tally) -> Estimate:
        """The k shares and the k sums, unbiased where no client has more than `limit` keys, shape
        (2 k,)."""
        n, (base, gain) = tally.answered, self.odds
        plus, minus = self.seen(tally.counts).reshape(2, self.k) / n
        both, signs = plus + minus, plus - minus
        spread = np.concatenate([both * (1 - both), both - signs**2])
        value = np.concatenate([both - 2 * base, signs]) / gain
        return Estimate(value, np.sqrt(spread / n) / gain, n)

    def means(self, tally: Tally) -> Ratio:
        """The mean in [-1, 1] of each key's numbers among the clients that have it, shape (k,),
        with Fieller's interval."""
        base, gain = self.odds
        stands = np.zeros((2 * self.k, 1, self.alphabet))
        keys = np.arange(self.k)
        stands[: self.k] = -2 * base / gain
        for sign, first in ((1, 0), (-1, self.k)):
            stands[keys, 0, first + keys] += 1 / gain
            stands[self.k + keys, 0, first + keys] = sign / gain
        return joint_of_reports(tally, stands).ratio(
            slice(self.k, None), slice(0, self.k), -1.0, 1.0
        )


def key_rows(k: int, steps: int) -> Vectors:
    """Records of k keys as rows: 0 where the key is missing, else 1 and the step of its number."""
    check_dimension(k, MAX_DIMENSION)
    check_whole("steps", steps, 1, MAX_VALUES)
    return Vectors("key values", 0, steps + 1, k)


def key_values(k: int, steps: int) -> Domain:
    """The rows of `key_rows` as numbers of k digits in base steps + 2, the first digit the lowest.
    Raises InputError beyond 4096."""
    check_whole("k", k, 1, MAX_VALUES.bit_length())
    check_whole("steps", steps, 1, MAX_VALUES - 2)
    if (steps + 2) ** k > MAX_VALUES:
        raise InputError(
            f"{k} keys with numbers of {steps} steps make more than {MAX_VALUES} records, each a "
            "row of the table; give fewer of either, or take pckv-ue"
        )
    return Domain("key values", 0, (steps + 2) ** k - 1)


def digits_of(records: Ints, k: int, steps: int) -> Ints:
    """Of each record, shape (values, k)."""
    return records[:, None] // (steps + 2) ** np.arange(k) % (steps + 2)


def sums_of(digits: Ints, steps: int, limit: int) -> Floats:
    """Which keys each record has, then the numbers there; of a record with more than `limit` keys
    each counts less; shape (values, 2 k)."""
    present = digits > 0
    share = present * np.minimum(1, limit / np.maximum(1, present.sum(axis=1, keepdims=True)))
    return np.concatenate([share, share * (2 * (digits - 1) / steps - 1)], axis=1)


@dataclass(frozen=True, kw_only=True)
class SignedPlace(TableChannel):
    """Reports none, plus or minus for one of the three. A sign is reported as a sign with chance a
    = 1/2, the right one with p = E / (E + 1) of it.

    None becomes either sign with chance 1 / (E + 3). Two values that differ at two places lose
    epsilon; so do plus and minus at one place.
    """

    name = "signed-place"
    source = "Gu, Li, Cheng, Xiong, Cao 2020, Section 5.2"
    domain = symbols(3)

    def table(self) -> Words:
        growth, total = exp_epsilon(self.nano), self.total
        other = ceil_fraction(total / (growth + 3))
        none, half = total - 2 * other, total // 2
        wrong = max(ceil_fraction(total / (2 * (growth + 1))), -(-other * total // (2 * none)))
        right = half - wrong
        if right <= wrong or right <= other:
            raise too_narrow(self)
        rows = [[none, other, other], [half, right, wrong], [half, wrong, right]]
        return np.array(rows, dtype=np.uint64)

    @property
    def odds(self) -> tuple[float, float, float]:
        """b: the chance that none becomes a sign; a: that a sign stays one; and a (2 p - 1), the
        mean reported sign of plus."""
        (_, up, down), (_, right, wrong), _ = (self.weights / self.total).tolist()
        return up + down, right + wrong, right - wrong

    def estimate(self, tally: Tally) -> Estimate:
        n, gain = tally.answered, self.odds[2]
        law = tally.counts[0] / n
        return of_moments((law[1] - law[2]) / gain, (law[1] + law[2]) / gain**2, n)


@dataclass(frozen=True, kw_only=True)
class SignedPlaces(PlaceVector):
    """Nothing (0), or one of k keys with a sign, plus (1..k) or minus (k + 1..2 k): `SignedPlace`
    at the place of each key."""

    name = "signed-places"
    source = SignedPlace.source
    k: int = 2

    def check(self) -> None:
        check_dimension(self.k, MAX_DIMENSION)
        super().check()

    @property
    def domain(self) -> Domain:
        return Domain("signed keys", 0, 2 * self.k)

    @cached_property
    def code(self) -> Ints:
        keys = np.eye(self.k, dtype=np.uint8)
        return np.concatenate([0 * keys[:1], keys, 2 * keys])

    @cached_property
    def inner(self) -> SignedPlace:
        return SignedPlace(self.epsilon, word_bits=self.word_bits)

    def estimate(self, tally: Tally) -> Estimate:
        """The mean sign of each key, 0 for none, shape (k,)."""
        each = [self.inner.estimate(Tally(counts[None, :])) for counts in tally.counts]
        return Estimate(
            np.array([one.value for one in each]),
            np.array([one.standard_error for one in each]),
            tally.answered,
        )


@dataclass(frozen=True, kw_only=True)
class PCKVUE(PerCoin):
    """Reports one of a client's keys, filled up to `limit` = L with dummies, and a rounded sign of
    its number, in k small reports; the coin draws both.

    A record is a row of the digits of `pckv`, so that no list of all records is needed; estimates
    are those of `pckv`. A sign is reported at its place with chance a = 1/2,
    at another with b = 2 / (e^eps + 3), the right one with p = e^eps / (e^eps + 1) of it. Privacy:
    enumerated as a product over places, whatever the coin: the paper's tight composition of key and
    number. Utility: f has variance L^2 l (1 - l) / (n (a - b)^2), l = b + (a - b) f / L, and m (L^2
    l / (a (2 p - 1))^2 - m^2) / n: for a rare key less than `pckv` from about k = 2 L^2 (e^eps + 1)
    - L e^eps / 2 keys on. Cost: k bytes. 1 <= limit <= k <= 1024.
    """

    name = "pckv-ue"
    summary = "Reports one key and its sign in one small report a key"
    source = "Gu, Li, Cheng, Xiong, Cao 2020 (PCKV-UE)"
    estimates = PCKV.estimates
    k: int = 2
    limit: int = 2
    steps: int = 2

    def check(self) -> None:
        super().check()
        check_whole("limit", self.limit, 1, self.k)

    @property
    def domain(self) -> Domain:
        return key_rows(self.k, self.steps)

    @cached_property
    def inner(self) -> SignedPlaces:
        return SignedPlaces(self.epsilon, word_bits=self.word_bits, k=self.k)

    def encode(self, values: Ints, coins: Words) -> Ints:
        words, half = words_of(coins, 2) >> np.uint64(32), np.uint64(32)
        present: Bools = values > 0
        size = np.maximum(present.sum(axis=1), self.limit).astype(np.uint64)
        pick = (words[:, 0] * size >> half).astype(np.int64)
        choice = present & (np.cumsum(present, axis=1) == (pick + 1)[:, None])
        key = choice.argmax(axis=1)
        level = (words[:, 1] * np.uint64(self.steps) >> half).astype(np.int64)
        minus = level >= values[np.arange(len(key)), key].astype(np.int64) - 1
        return np.where(choice.any(axis=1), 1 + key + self.k * minus, 0)

    def tally(self, reports: Words, cells: Words) -> Tally:
        """For each key the number of reports of none, plus and minus, shape (k, 3)."""
        return self.inner.tally(reports, cells)

    def _moments(self, counts: Counts, n: int) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Of each key the share f and the sum m, n times their variances, and n times their
        covariance."""
        base, sign, follows = self.inner.inner.odds
        # the weights of a reported sign
        share, total = (
            self.limit / (sign - base),
            self.limit / follows,
        )
        plus, minus = counts[:, 1] / n, counts[:, 2] / n
        rate, signed = plus + minus, plus - minus
        f, m = share * (rate - base), total * signed
        return (
            f,
            m,
            share**2 * rate * (1 - rate),
            total**2 * (rate - signed**2),
            share * total * signed * (1 - rate),
        )

    def truths(self, values: Ints) -> Floats:
        return sums_of(values, self.steps, self.limit)

    def variance(self, values: Ints, law: Floats) -> Floats:
        """L^2 l (1 - l) / (a - b)^2 of a key's share f, and L^2 l / (a (2 p - 1))^2 - m^2 of its
        sum m."""
        base, sign, follows = self.inner.inner.odds
        share, total = np.split(law @ self.truths(values), 2, axis=-1)
        rate = base + (sign - base) * share / self.limit
        spread = self.limit**2 * rate
        return np.concatenate(
            [spread * (1 - rate) / (sign - base) ** 2, spread / follows**2 - total**2], axis=-1
        )

    def estimate(self, tally: Tally) -> Estimate:
        f, m, ff, mm, _ = self._moments(tally.counts, tally.answered)
        return Estimate(
            np.concatenate([f, m]), np.sqrt(np.concatenate([ff, mm]) / tally.n), tally.n
        )

    def means(self, tally: Tally) -> Ratio:
        f, m, ff, mm, mf = self._moments(tally.counts, tally.answered)
        return Ratio.of((m, f, mm / tally.n, mf / tally.n, ff / tally.n), tally.n, -1.0, 1.0)
