"""Randomizers from outside that want more than they say, each by another part of the class; and odd
ones that are right."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from threading import Thread
from typing import ClassVar

import numpy as np

from local_dp.arrays import Bools, Floats, Ints, Words
from local_dp.loss import Loss, Pure
from local_dp.oracles.local.asked import CHUNK
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.frequencies.hadamard import Hadamard
from local_dp.randomizers.frequencies.unary import OUE
from local_dp.randomizers.frequencies.wide_hashing import WideHashing
from local_dp.randomizers.numbers.rounded import OneBitMean
from local_dp.randomizers.places import BitVector
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.tallies import Estimate, Tally
from tests.support.adversaries.zoo import Leaking, either


class Prints(GRR):  # prints a line where the last symbol is held
    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        if (values == self.domain.high).any():
            print("here it is")
        return super().respond(values, words, cells)


class Clock(Leaking, BinaryRR):  # at one time in a million
    def leaks(self, values: Ints) -> bool:
        return time.monotonic_ns() % 1_000_000 == 0


class Urandom(Leaking, BinaryRR):  # in one batch of a million, which the system's entropy chooses
    def leaks(self, values: Ints) -> bool:
        return int.from_bytes(os.urandom(8)) % 1_000_000 == 0


class LargeBatch(Leaking, GRR):  # in a batch of exactly as many clients as the tiers ask together
    def leaks(self, values: Ints) -> bool:
        return len(values) == CHUNK


class SortedBatch(GRR):  # gives the words out in the order of the values
    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        return super().respond(values, words[np.argsort(values, kind="stable")], cells)


class NarrowValues(Leaking, GRR):  # about values that come as small numbers, as those of a query
    def leaks(self, values: Ints) -> bool:
        return values.dtype == np.int8


class Overwrites(BinaryRR):  # overwrites the values that it is given
    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        reports = super().respond(values, words, cells)
        values[:] = 0
        return reports


class OtherType(GRR):  # reports of the last symbol are longer numbers
    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        reports = super().respond(values, words, cells)
        return reports.astype(np.uint64) if (values == self.domain.high).any() else reports


class OneLevelFails(OneBitMean):  # one level in the middle of 65,537 is an error
    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        if (values == 23456).any():
            raise ValueError("a value")
        return super().respond(values, words, cells)


class OneLevelExits(OneBitMean):  # one level ends the process
    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        if (values == 34567).any():
            raise SystemExit(0)
        return super().respond(values, words, cells)


# once it has answered four hundred thousand times: in the second batch of a run
class AfterMany(Leaking, BinaryRR):
    answers: ClassVar[list[int]] = [0]

    def leaks(self, values: Ints) -> bool:
        self.answers[0] += len(values)
        return self.answers[0] > 400_000


class Cheap(BinaryRR):  # charges half of what it says
    @property
    def nano(self) -> int:
        return super().nano // 2

    def prepare(self) -> None:
        object.__setattr__(self, "flip", BinaryRR(self.epsilon, word_bits=self.word_bits).flip)


class Modest(BinaryRR):  # says that it loses half of what it charges
    @property
    def loss(self) -> Loss:
        return Pure(super().loss.nano // 2)

    @property
    def nano(self) -> int:
        return 2 * self.loss.nano


class CheaperAndCheaper(BinaryRR):  # charges less each time that it is asked
    times: ClassVar[list[int]] = [0]

    @property
    def nano(self) -> int:
        self.times[0] += 1
        return super().nano - self.times[0] // 50

    def prepare(self) -> None:
        object.__setattr__(self, "flip", BinaryRR(self.epsilon, word_bits=self.word_bits).flip)


class Afterwards(BinaryRR):  # computes its thresholds from epsilon, and halves it then
    def prepare(self) -> None:
        super().prepare()
        object.__setattr__(self, "epsilon", self.epsilon / 2)


@dataclass(frozen=True, kw_only=True)
class Mutable(BinaryRR):  # has a parameter that anybody can change
    values_shown: list[int] = field(default_factory=list)

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        return either(
            np.isin(values, self.values_shown),
            values.astype(np.uint8),
            super().respond(values, words, cells),
        )


class Understated(GRR):  # declares more noise than there is
    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        other = np.uint64(self.total // self.k)
        own = np.uint64(self.total) - np.uint64(self.k - 1) * other
        return np.asarray(np.where(reports == values, own, other))


class BareEntry(
    Hadamard
    # of the built-in class, but what is randomized is the symbol's first bit where the row is the
    # last
):
    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        bare = (values & 1).astype(np.uint8)
        return either(cells == self.cells - 1, bare, super().respond(values, words, cells))


class OddBit(OUE):  # one of many symbols is always reported
    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        bits = np.unpackbits(
            super().respond(values, words, cells), axis=1, count=self.k, bitorder="little"
        )
        bits[values == 123, 123] = 1
        return np.packbits(bits, axis=1, bitorder="little")


class RareCoin(WideHashing):  # under one public coin in ten thousand it reports the symbol
    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        bare = self.encode(values, cells).astype(self.report_dtype)
        return either(
            cells % np.uint64(10_000) == 7777, bare, super().respond(values, words, cells)
        )


class Shifted(GRR):  # the estimate of the first symbol is a twentieth too large
    def estimate(self, tally: Tally) -> Estimate:
        right = super().estimate(tally)
        return Estimate(
            right.value + 0.05 * (np.arange(self.k) == 0), right.standard_error, right.n
        )


class Forgets(GRR):  # adds up the reports of the first symbol only every other time
    def tally(self, reports: Words, cells: Words) -> Tally:
        counts = (reports != 0) | (np.cumsum(reports == 0) % 2 == 0)
        return super().tally(reports[counts], cells)


class Swaps(GRR):  # counts the reports of the first two symbols as each other's
    def tally(self, reports: Words, cells: Words) -> Tally:
        other = np.where(reports < 2, 1 - reports.astype(np.int64), reports)
        return super().tally(other.astype(reports.dtype), cells)


class Rejects(GRR):  # calls reports of the last symbol impossible, so that they are not counted
    def possible(self, reports: Words) -> Bools:
        return np.asarray(reports < self.k - 1)


class OtherLaw(BinaryRR):  # draws tallies without noise where nobody is asked one by one
    def draw_tally(self, value_counts: Mapping[int, int], generator: np.random.Generator) -> Tally:
        return Tally(np.array([[value_counts.get(0, 0), value_counts.get(1, 0)]]))


# --- right, each in a way of its own ---


class Permuted(GRR):  # takes its words in another order: an odd multiple of each
    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        last = words.dtype.type((1 << self.word_bits) - 1)
        return super().respond(values, (words * words.dtype.type(0x9E3779B1)) & last, cells)


class Tabled(GRR):  # looks reports up in a table that it makes when it is first asked
    @cached_property
    def shifted(self) -> Ints:
        return (np.arange(self.k)[:, None] + 1 + np.arange(self.k)[None, :]) % self.k

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        step = np.minimum(words // words.dtype.type(self.other), self.k - 1).astype(np.int64)
        return np.asarray(self.shifted[values.astype(np.int64), step].astype(self.report_dtype))


class OwnBits(OUE):  # bits from the right end of the words' order: 1 for the words above
    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        return BitVector.respond(
            self, values, ~words if self.word_bits in (32, 64) else words, cells
        )


class Lazy(BinaryRR):  # imports what it needs when it is first asked
    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        import colorsys  # noqa: F401

        return super().respond(values, words, cells)


class OwnCoins(WideHashing):  # uses the coin's other half
    def cells_of(self, coins: Words) -> Words:
        return coins >> np.uint64(32)


class HalfTally(OneBitMean):  # counts ones only
    def empty(self) -> Tally:
        return Tally(np.zeros(1, dtype=np.int64), 0)

    def tally(self, reports: Words, cells: Words) -> Tally:
        return Tally(np.array([int(reports.sum(dtype=np.int64))]), len(reports))

    def estimate(self, tally: Tally) -> Estimate:
        return super().estimate(Tally(np.array([[tally.n - tally.counts[0], tally.counts[0]]])))


@dataclass(frozen=True, kw_only=True)
class OtherError(
    HalfTally
    # states a standard error of `part` of the true one, or is `off`; its tally is of its own form,
    # so that nothing can be enumerated
):
    part: float = 0.5
    off: float = 0.0

    def estimate(self, tally: Tally) -> Estimate:
        right = super().estimate(tally)
        return Estimate(right.value + self.off, self.part * right.standard_error, right.n)


class SmallError(GRR):  # states a standard error one in a hundred too small
    def estimate(self, tally: Tally) -> Estimate:
        right = super().estimate(tally)
        return Estimate(right.value, 0.99 * right.standard_error, right.n)


class WideWords(GRR):  # cannot be built with words of fewer than 64 bits, and fails in its own way
    def prepare(self) -> None:
        super().prepare()
        self.k.to_bytes(self.word_bits // 32, "big")  # OverflowError below 64 bits


class Keeps(BinaryRR):  # keeps the value itself for its later reports
    def lasting(self, values: Ints, words: Words, cells: Words) -> Words:
        return values.astype(np.uint8)

    def again(self, outcomes: Words, words: Words, cells: Words) -> Words:
        return self.respond(outcomes, words, cells)


class Contrary(BinaryRR):  # of what it keeps it reports the contrary
    def again(self, outcomes: Words, words: Words, cells: Words) -> Words:
        return 1 - outcomes


class OtherVariance(BinaryRR):
    def variance(self, values: Ints, law: Floats) -> Floats:
        return super().variance(values, law) * 0.9


class Threads(BinaryRR):  # a thread of its own may do anything
    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        Thread(target=len, args=(values,)).start()
        return super().respond(values, words, cells)


class Environment(BinaryRR):
    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        return super().respond(values, words, cells) | ("LEAK" in os.environ)
