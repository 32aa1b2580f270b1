"""Finite channels that are held as one table of weights, sampled by a look-up and a comparison for
each report; of symbols, or of numbers."""

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import NoReturn, Self, TypeAlias

import numpy as np

from local_dp.arrays import Counts, Floats, Ints, Words
from local_dp.checks import check_built, check_whole
from local_dp.domains import parameters
from local_dp.errors import InputError
from local_dp.loss import exp_epsilon
from local_dp.randomizers.finite import FiniteChannel, OfLevels, of_moments, too_narrow
from local_dp.tallies import Estimate, Tally

# reports at a time: their indices stay in cache, and the allocator keeps their memory
_BLOCK = 1 << 14
_MOST = 1 << 18  # entries of a guide
_ROUNDING = 1e-9  # what the arithmetic of a law may be off, relative to 1
Law: TypeAlias = Sequence[Sequence[Decimal]] | Sequence[Sequence[Fraction]]


@dataclass(frozen=True)
class Guide:
    """The inverse of a table's cumulative weights: for each row and each pattern of a word's
    leading bits, the first possible report.

    With up to 2^18 entries, one comparison then decides between that report and the next. The
    number of comparisons is the same for every row and word, so the time of a report does not
    depend on the value.
    """

    first: Words
    last: Words
    lead: int
    shift: int
    probes: int
    stride: int

    @classmethod
    def of(cls, weights: Words, bits: int) -> Self:
        """From whole weights, shape (rows, reports), every row summing to 2^bits."""
        rows, reports = weights.shape
        # of each run its last word; of none before, the largest
        ends = np.cumsum(weights.astype(np.uint64), axis=1, dtype=np.uint64)[:, :-1] - np.uint64(1)
        unsent = (weights > 0).argmax(axis=1).tolist()  # reports before the first that is sent
        row, place = np.nonzero(np.arange(reports - 1) >= np.array(unsent)[:, None])
        last_words, lead = ends[row, place], 0
        while True:
            lead += 1
            patterns = (row.astype(np.uint64) << np.uint64(lead)) + (
                last_words >> np.uint64(bits - lead)
            )
            # ends inside one pattern
            most = int(np.bincount(patterns.astype(np.int64), minlength=1).max())
            if most <= 1 or lead == bits or rows << (lead + 1) > _MOST:
                break
        starts = np.arange(1 << lead, dtype=np.uint64) << np.uint64(bits - lead)
        first = np.stack(
            [
                none + np.searchsorted(row[none:], starts)
                for none, row in zip(unsent, ends, strict=True)
            ]
        )
        probes = most.bit_length()
        kind = np.dtype("u8" if bits > 32 else "u4")
        last = np.full((rows, reports - 1 + (1 << probes)), np.iinfo(kind).max, dtype=kind)
        last[:, : reports - 1] = ends
        narrow = np.dtype("u1" if reports <= 1 << 8 else "u2" if reports <= 1 << 16 else "u4")
        return cls(
            first.ravel().astype(narrow), last.ravel(), lead, bits - lead, probes, last.shape[1]
        )

    def __call__(self, rows: Ints, words: Words) -> Words:
        """The report of each word in its row: how many cumulative weights are at or below it."""
        index = (words >> words.dtype.type(self.shift)).astype(np.uint64, copy=False).view(np.int64)
        index += rows << self.lead
        report = self.first.take(index)
        np.multiply(rows, self.stride, out=index)
        for probe in range(self.probes - 1, -1, -1):
            step = 1 << probe
            beyond = (
                self.last.take(index + report + (step - 1) if probe else index + report) < words
            )
            report += beyond.view(np.uint8) * report.dtype.type(step)
        return report


@dataclass(frozen=True)
class TableChannel(FiniteChannel):
    """A finite channel without a coin that is one table, by its `law`; it estimates the symbols'
    shares, shape (k,), or the mean of numbers in [0, 1], ()."""

    def law(self) -> Law:
        """Pr[report | value], shape (domain size, alphabet), in fractions or decimals of 60 digits:
        every row sums to 1."""
        raise InputError(
            f"{self.name} has no law; write `law`, which returns the probabilities of the "
            "reports, a row for each value"
        )

    @property
    def growth(self) -> Fraction:
        """e^epsilon, rounded down: the largest ratio of two probabilities of one report."""
        return exp_epsilon(self.nano)

    def rounded(self, law: Law) -> Words:
        """The law in whole weights of 2^word_bits, rounded towards privacy. Raises InputError where
        words are too narrow."""
        weights = whole_weights(law, self.growth, self.word_bits)
        if weights is None or (len(weights) > 1 and (weights == weights[0]).all()):
            raise too_narrow(self)
        return weights

    def table(self) -> Words:
        """The whole weights, shape (domain size, alphabet), every row summing to 2^word_bits.
        Raises InputError."""
        with precise():
            law = self.law()
            _check_law(self, law)
            return self.rounded(law)

    def prepare(self) -> None:
        check_built(self._tables)

    @cached_property
    def _tables(self) -> tuple[Words, Guide]:
        return _compile(_Recipe((type(self), *parameters(self).values()), self))

    @property
    def weights(self) -> Words:
        """The channel, shape (domain size, alphabet)."""
        return self._tables[0]

    @property
    def alphabet(self) -> int:
        return int(self.weights.shape[1])

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        low, reports = self.domain.low, np.empty(len(words), dtype=self.report_dtype)
        for first in range(0, len(words), _BLOCK):
            some = slice(first, first + _BLOCK)
            rows = values[some].astype(np.int64)
            if low:
                rows -= low
            reports[some] = self._tables[1](rows, words[some])
        return reports

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        rows = np.asarray(values, dtype=np.int64) - self.domain.low
        return self.weights[rows, np.asarray(reports, dtype=np.int64)]

    @cached_property
    def stands(self) -> Floats:
        """The value of each report, shape (alphabet, parameters): the least squares inverse of the
        channel."""
        size = self.domain.size
        means = np.eye(size)
        if self.domain.kind == "levels":
            means = np.linspace(0, 1, size)[:, None]
        return np.linalg.pinv(self.weights / self.total) @ means

    def estimate(self, tally: Tally) -> Estimate:
        n = tally.answered
        law = tally.counts[0] / n
        mean, square = law @ self.stands, law @ self.stands**2
        if self.domain.kind == "levels":
            mean, square = mean[0], square[0]
        return of_moments(mean, square, n)


@dataclass(frozen=True)
class _Recipe:
    """A randomizer whose table is computed once for its class and parameters."""

    key: tuple[object, ...]
    randomizer: TableChannel = field(compare=False)


@lru_cache(maxsize=64)
def _compile(recipe: _Recipe) -> tuple[Words, Guide]:
    weights = recipe.randomizer.table()
    return weights, Guide.of(weights, int(weights[0].sum(dtype=object)).bit_length() - 1)


def _check_law(randomizer: TableChannel, law: Law) -> None:
    """Raises InputError unless every row sums to 1 and each report's probabilities are within a
    factor e^epsilon, up to rounding."""
    size, low = randomizer.domain.size, randomizer.domain.low

    def refuse(fault: str) -> NoReturn:
        raise InputError(f"{randomizer.name}: {fault}")

    if not hasattr(law, "__len__") or len(law) != size or len(set(map(len, law))) != 1:
        refuse(f"its law does not have {size} rows of one length, one for each value")
    shares = np.array([[float(share) for share in row] for row in law])
    sums = shares.sum(axis=1)
    negative = np.asarray((shares < 0).any(axis=1))
    wrong = (abs(sums - 1) > _ROUNDING) | negative
    if wrong.any():
        row = int(wrong.argmax())
        fault = "include a negative one" if negative[row] else f"sum to {sums[row]:.12g}, not to 1"
        refuse(f"the probabilities of value {low + row} {fault}; correct its row of `law`")
    if len(law) > 1 and all(list(row) == list(law[0]) for row in law):
        refuse(
            "all values have the same law, so nothing can be estimated; make it depend on the value"
        )
    above = shares.max(axis=0) > (1 + _ROUNDING) * float(randomizer.growth) * shares.min(axis=0)
    if above.any():
        report = int(above.argmax())
        column = shares[:, report]
        most, least = low + int(column.argmax()), low + int(column.argmin())
        refuse(
            f"report {report} is more than e^epsilon times as likely for value {most} as for value "
            f"{least}: {column.max():.6g} to {column.min():.6g}"
        )


def precise() -> AbstractContextManager[Context]:
    """A context in which decimals have 60 digits."""
    return localcontext(prec=60)


def as_decimal(number: Fraction) -> Decimal:
    """In the precision of the context."""
    return Decimal(number.numerator) / Decimal(number.denominator)


def whole_weights(law: Law, growth: Fraction, bits: int) -> Words | None:
    """A law, shape (values, reports), in whole weights of 2^bits within a factor `growth` for each
    report; None if bits are too few.

    Each report's least weight is rounded up; every other weight lies between it and `growth` times
    it. Then each row is corrected to sum to 2^bits, by less than one for each report: at its
    likeliest reports, within these limits.
    """
    total = 1 << bits
    with precise():
        rows = [[int(share * total) for share in row] for row in law]
        least = [math.ceil(min(column) * total) for column in zip(*law, strict=True)]
    most = [growth.numerator * each // growth.denominator for each in least]
    weights = [_fill(row, least, most, total) for row in rows]
    return None if any(row is None for row in weights) else np.array(weights, dtype=np.uint64)


def _fill(row: list[int], least: list[int], most: list[int], total: int) -> list[int] | None:
    """The row within the limits and summing to the total; None if that cannot be."""
    weights = [min(max(each, low), high) for each, low, high in zip(row, least, most, strict=True)]
    left = total - sum(weights)
    for place in sorted(range(len(row)), key=lambda place: -row[place]):
        room = most[place] - weights[place], least[place] - weights[place]
        more = min(left, room[0]) if left > 0 else max(left, room[1])
        weights[place] += more
        left -= more
    return None if left else weights


MAX_STEPS = 255
COARSE, FINEST = 64, 1 << 16  # steps of the table below a finer lattice, and of the finest
MEASURED = (
    200  # reports from which on their spread, beside that of the noise, is the error of a mean
)


@dataclass(frozen=True, kw_only=True)
class NumberTable(OfLevels, TableChannel):
    """A randomizer of a number x in [0, 1] on the lattice of multiples of 1 / steps, as a table of
    whole weights.

    A subclass gives the law, and values of the reports whose mean is x, whatever x. The estimate is
    their average. 1 <= steps <= 255; or a power of two up to 2^16: then x is rounded at random to a
    neighbour on 64 steps, its mean kept, by the last bits of the word. Privacy: each such row
    is a mixture of two rows of the table.
    """

    steps: int = 63

    def check(self) -> None:
        if type(self.steps) is int and MAX_STEPS < self.steps <= FINEST:
            if self.steps.bit_count() != 1:
                raise InputError(
                    f"steps is {self.steps}; give 1 to {MAX_STEPS}, or a power of two to {FINEST}"
                )
        else:
            check_whole("steps", self.steps, 1, MAX_STEPS)
        if self.nano < 1000:
            raise InputError(f"epsilon is {self.epsilon!r}; {self.name} needs at least 1e-6 nats")

    @cached_property
    def coarse(self) -> Self | None:
        """The one of 64 steps to which numbers on a finer lattice are rounded; else None."""
        return None if self.steps <= MAX_STEPS else replace(self, steps=COARSE, word_bits=64)

    @property
    def _equal(self) -> int:
        """The steps of the lattice between two of the table."""
        return self.steps // COARSE if self.coarse is not None else 1

    @property
    def corners(self) -> Counts:
        """The values that the table has."""
        return np.arange(0, self.steps + 1, self._equal, dtype=np.int64)

    @property
    def _bits(self) -> int:
        """The bits of a word that are not used to round a number."""
        return self.word_bits - (self._equal.bit_length() - 1)

    def table(self) -> Words:
        if self.coarse is None:
            return super().table()
        if self._bits < 1:
            raise too_narrow(self)
        with precise():
            weights = whole_weights(self.coarse.law(), self.growth, self._bits)
        if weights is None or (weights == weights[0]).all():
            raise too_narrow(self)
        return weights

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        if self.coarse is None:
            return super().respond(values, words, cells)
        lower, level = np.divmod(values.astype(np.int64), self._equal)
        upper = (words & words.dtype.type(self._equal - 1)).astype(np.int64) < level
        own = words >> words.dtype.type(self.word_bits - self._bits)
        return self._tables[1](lower + upper, own).astype(self.report_dtype)

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        if self.coarse is None:
            return super().weight(reports, values, cells)
        lower, level = np.divmod(np.asarray(values, dtype=np.int64), self._equal)
        upper = np.minimum(lower + 1, COARSE)
        low, high = (super(NumberTable, self).weight(reports, at, cells) for at in (lower, upper))
        return low * (self._equal - level).astype(np.uint64) + high * level.astype(np.uint64)

    def draw_tally(self, value_counts: Mapping[int, int], generator: np.random.Generator) -> Tally:
        if self.coarse is None:
            return super().draw_tally(value_counts, generator)
        lower, level = np.divmod(np.array([*value_counts], dtype=np.int64), self._equal)
        counts = np.array([*value_counts.values()], dtype=np.int64)
        upper = generator.binomial(counts, level / self._equal)
        places, numbers = np.append(lower, lower + 1), np.append(counts - upper, upper)
        rounded = np.bincount(places, numbers, COARSE + 2)
        present = {value: int(count) for value, count in enumerate(rounded.tolist()) if count}
        return self.coarse.draw_tally(present, generator)

    @cached_property
    @abstractmethod
    def decoded(self) -> Floats:
        """The value of each report, in units of the [0, 1] range, shape (alphabet,)."""

    @cached_property
    def variances(self) -> Floats:
        """The variance of one report's value at every point of the table's lattice, from the whole
        table."""
        if self.coarse is not None:
            return self.coarse.variances
        law = self.weights.astype(np.float64) / self.total
        means = law @ self.decoded
        return np.asarray((law * (self.decoded - means[:, None]) ** 2).sum(axis=1))

    def estimate(self, tally: Tally) -> Estimate:
        """The mean of x in [0, 1], unbiased up to 1e-7.

        Its error comes from the reports, and is at least that of the noise. With fewer than
        `MEASURED` reports the interval is that of the largest variance that the law allows, V + f
        (1 - f) at the mean f, V the noise's.
        """
        if self.coarse is not None:
            return self.coarse.estimate(tally)
        n, counts = tally.answered, tally.counts[0]
        mean = float(counts @ self.decoded) / n
        variance = max(float(counts @ (self.decoded - mean) ** 2) / n, float(self.variances.min()))
        # (b - f)(f - a) is that variance for a = -beyond, b = 1 + beyond
        beyond = (math.sqrt(1 + 4 * float(self.variances.max())) - 1) / 2
        return Estimate(
            np.asarray(mean),
            np.asarray(math.sqrt(variance / n)),
            n,
            (-beyond, 1 + beyond) if n < MEASURED else None,
        )
