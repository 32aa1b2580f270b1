"""Finite channels: randomizers that are a table of integer weights, the common case, enumerated
exactly; and channels of one threshold."""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar

import numpy as np

from local_dp.arrays import Bools, Column, Floats, Ints, Words
from local_dp.domains import Domain, levels
from local_dp.errors import InputError
from local_dp.loss import NANO, exp_epsilon
from local_dp.noise import Draw, KeyedNoise, ties
from local_dp.randomizers.randomizer import Evidence, Randomizer
from local_dp.tallies import Estimate, Tally

BLOCK = (
    1 << 13
    # entries: arrays of this length stay in cache, and the allocator keeps them; longer ones it
    # gives back, and each costs its page faults again
)


def in_blocks(
    work: Callable[..., Column], first: Column, *others: Column, block: int = BLOCK
) -> Column:
    """work(first, *others) in blocks of entries; arrays of another length than `first` are passed
    whole."""
    n = len(first)
    if n <= block:
        return work(first, *others)
    parts: list[Column] = []
    for start in range(0, n, block):
        part = slice(start, start + block)
        rest = [other[part] if len(other) == n else other for other in others]
        parts.append(work(first[part], *rest))
    return np.concatenate(parts)


MAX_CACHED = 1024  # entries of a law that is worth keeping
# nats that rounding a threshold may cost before 64-bit words are used instead of 32-bit ones
SLACK = 5e-7


@dataclass(frozen=True)
class FiniteChannel(Randomizer):
    """A randomizer with finite values, finite reports 0..alphabet-1 and integer thresholds.

    For every public coin cell c, report w and values u, u': weight(w, u, c) <= e^epsilon weight(w,
    u', c). Weights over 2^word_bits are exact probabilities.
    """

    evidence: ClassVar[Evidence] = "enumerated"
    has_tally_law = True

    @property
    @abstractmethod
    def alphabet(self) -> int:
        """The number of possible reports, 0..alphabet-1."""

    @property
    def cells(self) -> int:
        """The number of public-coin cells, a power of two; 1 when no public coin is used."""
        return 1

    @cached_property
    def uses_coins(self) -> bool:
        return self.cells > 1

    @abstractmethod
    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        """2^word_bits Pr[report | value, cell] as whole numbers, elementwise under broadcasting."""

    @cached_property
    def report_dtype(self) -> "np.dtype[np.unsignedinteger]":
        """The narrowest unsigned whole number that holds a report."""
        return np.dtype(
            "u1" if self.alphabet <= 1 << 8 else "<u2" if self.alphabet <= 1 << 16 else "<u4"
        )

    @property
    def bits(self) -> int:
        return max(1, (self.alphabet - 1).bit_length())

    def possible(self, reports: Words) -> Bools:
        return reports < self.alphabet

    def cells_of(self, coins: Words) -> Words:
        """The cell of each 64-bit public coin."""
        if self.cells <= 1 << 16:
            # the narrow type is what makes this fast
            return coins.astype(np.uint16) & np.uint16(self.cells - 1)
        return coins & np.uint64(self.cells - 1)

    def tally(self, reports: Words, cells: Words) -> Tally:
        """The tally of `reports`. O(n + cells * alphabet). Raises IndexError for an impossible
        report, which must not count as another one."""
        if len(reports) and int(reports.max()) >= self.alphabet:
            raise IndexError(
                f"{self.name}: report {reports.max()} is out of bounds: there are {self.alphabet}"
            )
        places = reports.astype(np.intp, copy=False)
        if self.cells > 1:
            places = cells.astype(np.intp) * self.alphabet + places
        return Tally(
            np.bincount(places, minlength=self.cells * self.alphabet).reshape(
                self.cells, self.alphabet
            )
        )

    def log_probability(self, reports: Ints, values: Ints, cells: Ints) -> Floats:
        """ln Pr[report | value, cell], elementwise under broadcasting; -inf where impossible."""
        with np.errstate(divide="ignore"):
            weights = self.weight(reports, values, cells).astype(np.float64)
            return np.log(weights) - self.word_bits * math.log(2)

    def channel(self, cell: int = 0) -> Words:
        """The whole channel of one cell: integer weights, shape (domain size, alphabet), every row
        summing to 2^word_bits."""
        return self.rows(self.domain.values(), cell)

    def rows(self, values: Ints, cell: int) -> Words:
        """The channel's rows of some values, shape (values, alphabet)."""
        reports = np.arange(self.alphabet, dtype=np.int64)
        return self.weight(reports[None, :], values[:, None], np.array([[cell]]))

    def variance(self, values: Ints, law: Floats) -> Floats:
        """By the whole channel, for an estimate that is an average over reports."""
        reports = law @ weights_of(self, values).reshape(len(values), -1) / self.total / self.cells
        each = single_estimates(self).reshape(reports.shape[-1], -1)
        return np.asarray(reports @ each**2 - (reports @ each) ** 2)

    def draw_tally(self, value_counts: Mapping[int, int], generator: np.random.Generator) -> Tally:
        """A tally with the law of respond-then-tally for `value_counts[v]` clients of each value v:
        multinomial for each value. Cost independent of n."""
        counts = np.zeros(self.cells * self.alphabet, dtype=np.int64)
        law_of = _cached_law if len(counts) <= MAX_CACHED else report_law
        for value, count in value_counts.items():
            counts += generator.multinomial(count, law_of(self, value))
        return Tally(counts.reshape(self.cells, self.alphabet))


def too_narrow(randomizer: Randomizer) -> InputError:
    """The error of a randomizer whose thresholds, rounded to `word_bits`, are the same for all
    values."""
    return InputError(
        f"{randomizer.name}: words of {randomizer.word_bits} bits are too narrow for epsilon "
        f"{randomizer.epsilon!r}; raise epsilon, or leave word_bits out"
    )


def weights_of(randomizer: FiniteChannel, values: Ints) -> Floats:
    """The weights of every cell and report for each value, shape (values, cells, alphabet)."""
    return np.stack(
        [randomizer.rows(values, cell).astype(np.float64) for cell in range(randomizer.cells)],
        axis=1,
    )


def single_estimates(randomizer: FiniteChannel) -> Floats:
    """The estimate from each tally of one report, shape (cells, alphabet, parameters): a linear
    estimate is the average of these."""
    shape = randomizer.cells, randomizer.alphabet
    tallies = map(Tally, np.eye(shape[0] * shape[1], dtype=np.int64).reshape(-1, *shape))
    values = [np.atleast_1d(randomizer.estimate(tally).value) for tally in tallies]
    return np.stack(values).reshape(*shape, -1)


def report_law(randomizer: FiniteChannel, value: int) -> Floats:
    """Pr[cell, report] of a client with this value, flattened, shape (cells * alphabet,)."""
    cells = np.arange(randomizer.cells, dtype=np.int64)[:, None]
    reports = np.arange(randomizer.alphabet, dtype=np.int64)[None, :]
    logarithms = randomizer.log_probability(reports, np.array([[value]]), cells)
    law = np.exp(logarithms).ravel() / randomizer.cells
    law /= law.sum()
    return law


# a search draws thousands of tallies from the same few laws
_cached_law = lru_cache(maxsize=4096)(report_law)


def ceil_fraction(value: Fraction) -> int:
    return -(-value.numerator // value.denominator)


@dataclass(frozen=True, kw_only=True)
class OfLevels(Randomizer):
    """A randomizer of a number in [0, 1], a multiple of 1 / steps."""

    steps: int = 1 << 16

    @property
    def domain(self) -> Domain:
        return levels(self.steps)

    @staticmethod
    def example_params(size: int) -> dict[str, float]:
        return {"steps": min(size, 64) - 1}


@dataclass(frozen=True)
class Mixed(FiniteChannel):
    """A finite channel whose rows lie on lines between the rows of some values, the corners, at
    whole numbers of `equal` equal steps.

    A subclass gives `equal`, `corners`, `between` and `corner_weight`; `weight` is inherited.
    Privacy: each weight lies between those of two corners, so the loss is the corners'
    (`evidence.exact_ratio` checks `between`).
    """

    @property
    @abstractmethod
    def equal(self) -> int:
        """The number of steps between two corners."""

    @property
    @abstractmethod
    def corners(self) -> Ints:
        """The values that all others lie between, ascending."""

    @abstractmethod
    def between(self, values: Ints) -> tuple[Ints, Ints, Ints]:
        """For each value the two corners that it lies between, and its steps from the first, 0 to
        `equal`."""

    @abstractmethod
    def corner_weight(self, reports: Ints, corners: Ints, cells: Ints) -> Words:
        """2^word_bits Pr[report | corner, cell], elementwise under broadcasting. The weights of two
        corners of a line differ by a multiple of `equal`."""

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        first, second, level = self.between(np.asarray(values))
        low = self.corner_weight(reports, first, cells)
        high = self.corner_weight(reports, second, cells)
        steps, equal = level.astype(np.uint64), np.uint64(self.equal)
        up, down = low + (high - low) // equal * steps, low - (low - high) // equal * steps
        return np.where(low <= high, up, down)


BYTE = np.dtype(np.uint8)  # given `np.uint8`, numpy would look it up each time


@lru_cache(maxsize=1024)
def flip_weight(nano: int, bits: int) -> int:
    """The least whole F with (2^bits - F) / F <= e^epsilon: a bit is flipped with probability F /
    2^bits, never less than privacy needs."""
    return ceil_fraction(2**bits / (1 + exp_epsilon(nano)))


@dataclass(frozen=True)
class OwnWeights(FiniteChannel):
    """Two weights: T of each of w = `w` reports, s of each of the other A - w."""

    @property
    @abstractmethod
    def w(self) -> int:
        """How many reports are a value's own."""

    def _steps(self, bits: int) -> tuple[int, int]:
        """T and s: s is the least whole number for which T = (2^bits - (A - w) s) / w, rounded
        down, is at most e^eps s."""
        others = self.alphabet - self.w
        other = ceil_fraction(2**bits / (self.w * exp_epsilon(self.nano) + others))
        return (2**bits - others * other) // self.w, other

    @cached_property
    def held(self) -> int:
        """The weight T of each own report."""
        return self._steps(self.word_bits)[0]

    @cached_property
    def other(self) -> int:
        """The weight s of each other one."""
        return self._steps(self.word_bits)[1]


def of_moments(mean: Floats, square: Floats, n: int) -> Estimate:
    """The mean of what reports stand for, from their mean and their mean square."""
    variance = np.maximum(square - mean**2, 0.0)
    return Estimate(np.asarray(mean), np.asarray(np.sqrt(variance / n)), n)


def loses_little(truth: int, other: int, nano: int) -> bool:
    """True if ln(truth / other) is within SLACK of epsilon."""
    return nano / NANO - math.log(truth / other) <= SLACK


@dataclass(frozen=True)
class Signs(FiniteChannel):
    """A finite channel whose report is a sign: `gain` times the mean of some signs is each
    estimate, of n times the variance gain^2 - mean^2."""

    @property
    @abstractmethod
    def gain(self) -> float:
        """C = 1 / (1 - 2 Pr[flip])."""

    def variance(self, values: Ints, law: Floats) -> Floats:
        return np.asarray(self.gain**2 - (law @ self.truths(values)) ** 2)


@dataclass(frozen=True)
class OneThreshold(FiniteChannel):
    """A finite channel of one threshold F: a word whose leading bits are below it makes a report of
    the less likely kind.

    Privacy: (whole - F) / F <= e^epsilon for the least such F, whole = 2^(word_bits - spare); the
    last `spare` bits of a word pick a report of that kind.
    """

    @property
    def spare(self) -> int:
        """How many bits of a word the threshold is not compared with."""
        return 0

    def _fits(self, bits: int) -> bool:
        nano, bits = self.nano, bits - self.spare
        flip = flip_weight(nano, bits)
        return loses_little(2**bits - flip, flip, nano)

    def prepare(self) -> None:
        if self.word_bits <= self.spare or 2 * self.flip >= self.whole:
            raise too_narrow(self)

    @property
    def whole(self) -> int:
        """2^(word_bits - spare): the weight of both kinds together."""
        return 1 << self.word_bits - self.spare

    @cached_property
    def flip(self) -> int:
        """F: the less likely kind, such as a flipped bit, has probability F / `whole`."""
        return flip_weight(self.nano, self.word_bits - self.spare)

    @property
    def gain(self) -> float:
        """C = 1 / (1 - 2 F / whole), at least (e^eps + 1) / (e^eps - 1): the factor from a mean of
        reported signs to its estimate."""
        return float(self.whole / (self.whole - 2 * self.flip))


@dataclass(frozen=True)
class OneBit(OneThreshold, Signs):
    """Randomized response on a bit that `encode` reads off (value, cell); a reported 0 counts as +1
    and a 1 as -1 where signs are averaged."""

    alphabet = 2

    @cached_property
    def _cut(self) -> Words:
        """The threshold in the form that words are compared with."""
        cut = np.array([self.flip], dtype=f"<u{self.width // 8}")
        cut.setflags(write=False)
        return cut

    @abstractmethod
    def encode(self, values: Ints, cells: Ints) -> Words:
        """The true bit, uint8, elementwise under broadcasting."""

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        flips: Words = (words < self._cut).view(BYTE)
        return self.encode(values, cells) ^ flips

    def simulated(
        self, noise: KeyedNoise, which: Draw, start: int, values: Ints, cells: Words
    ) -> Words:
        """By one byte of each word, and the rest of the few words that this byte does not
        decide."""
        cut = self.flip << (64 - self.word_bits)
        flips = noise.leading(which, start, start + len(values), 8, ties((cut,))).below(cut)
        return self.encode(values, cells) ^ flips.view(BYTE)

    def tally(self, reports: Words, cells: Words) -> Tally:
        if self.cells > 1:
            return super().tally(reports, cells)
        ones = int(np.count_nonzero(reports))
        return Tally(np.array([[len(reports) - ones, ones]], dtype=np.int64))

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        truth = np.uint64(self.total - self.flip)
        return np.where(reports == self.encode(values, cells), truth, np.uint64(self.flip))
