"""Generalised (k-ary) randomized response."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import numpy as np

from local_dp.arrays import Ints, Words
from local_dp.domains import symbols
from local_dp.loss import exp_epsilon
from local_dp.noise import Draw, KeyedNoise
from local_dp.randomizers.finite import ceil_fraction, loses_little, too_narrow
from local_dp.randomizers.frequencies.base import DirectOracle, OfSymbols
from local_dp.tallies import Tally

UNDECIDED = np.uint16(0xFFFF)  # in place of a step
_FEW = 1 << 12  # clients below which a table of all pairs of bytes costs more than it saves


def other_weight(nano: int, k: int, bits: int) -> int:
    """The least whole s with (2^bits - (k - 1) s) / s <= e^epsilon: the weight of each untrue
    symbol."""
    return ceil_fraction(2**bits / (exp_epsilon(nano) + (k - 1)))


def offsets(words: Words, other: int, k: int) -> Words:
    """In which of k - 1 equal steps of this width a word lies, or in the last one, beyond them."""
    word = words.dtype.type
    steps: Words = words // word(other)
    np.minimum(steps, word(k - 1), out=steps)
    return steps


def _step(other: int, k: int, first: Words) -> Words:
    """The step of each word that begins with these two bytes; UNDECIDED where they leave it open. k
    is at most 4096."""
    start = first.astype(np.uint64) << np.uint64(48)
    least = offsets(start, other, k)
    most = offsets(start | np.uint64((1 << 48) - 1), other, k)
    return np.where(least == most, least.astype(np.uint16), UNDECIDED)


@lru_cache(maxsize=64)
def _steps(other: int, k: int) -> Words:
    """`_step` for all pairs of bytes."""
    return _step(other, k, np.arange(1 << 16, dtype=np.uint16))


@dataclass(frozen=True, kw_only=True)
class GRR(DirectOracle, OfSymbols):
    """Reports the true one of k symbols with probability e^eps / (e^eps + k - 1), else another one
    uniformly.

    Privacy: T / s <= e^eps for the weights T = 2^m - (k - 1) s of the truth and s of each other
    symbol. Utility: each frequency has variance l (1 - l) / (n (p - q)^2) with p = T / 2^m, q = s /
    2^m, l = q + f (p - q); better than one-bit Hadamard for k < e^(2 eps) + e^eps + 3, and than
    unary encoding for k < 3 e^eps + 2 (limits 2). Cost: log2 k bits, one division a report.
    """

    name = "grr"
    summary = "Reports a symbol, or another one at random"
    source = "Kairouz, Oh, Viswanath 2014; Wang et al. 2017"

    def _fits(self, bits: int) -> bool:
        nano = self.nano
        other = other_weight(nano, symbols(self.k).size, bits)
        return loses_little(2**bits - (self.k - 1) * other, other, nano)

    def prepare(self) -> None:
        if self.truth <= self.other:
            raise too_narrow(self)

    @cached_property
    def other(self) -> int:
        """The weight s of each symbol that is not the true one."""
        return other_weight(self.nano, self.k, self.word_bits)

    @property
    def truth(self) -> int:
        """The weight T of the true symbol."""
        return self.total - (self.k - 1) * self.other

    @property
    def alphabet(self) -> int:
        return self.k

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        """Splits the word's range into k - 1 equal steps, one for each other symbol, and a last one
        for the truth."""
        # k is at most 4096
        return self.moved(values, offsets(words, self.other, self.k).astype(np.uint16))

    def simulated(
        self, noise: KeyedNoise, which: Draw, start: int, values: Ints, cells: Words
    ) -> Words:
        """By two bytes of each word, and the rest of the few words whose step these bytes do not
        decide."""
        other, n = self.other << (64 - self.word_bits), len(values)
        step_of = partial(_step, other, self.k) if n < _FEW else _steps(other, self.k).take
        draws = noise.leading(
            which, start, start + n, 16, lambda first: step_of(first) == UNDECIDED
        )
        steps = step_of(draws.first)
        steps[draws.places] = offsets(draws.whole, other, self.k)
        return self.moved(values, steps)

    def moved(self, values: Ints, steps: Words) -> Words:
        """The symbols that follow the values by 1 + steps, modulo k; steps below k, uint16."""
        reports: Words = steps + values.astype(np.uint16, copy=False)
        reports += np.uint16(1)
        # modulo k: below k the subtraction wraps to a huge number
        np.minimum(reports, reports - np.uint16(self.k), out=reports)
        return reports.astype(self.report_dtype, copy=False)

    def weight(self, reports: Ints, values: Ints, cells: Ints) -> Words:
        return np.where(reports == values, np.uint64(self.truth), np.uint64(self.other))

    def draw_tally(self, value_counts: Mapping[int, int], generator: np.random.Generator) -> Tally:
        """As `FiniteChannel.draw_tally`: a report is a uniform symbol with probability k s / 2^m,
        else the truth. O(k)."""
        clients = np.zeros(self.k, dtype=np.int64)
        clients[np.fromiter(value_counts, dtype=np.int64)] = list(value_counts.values())
        blind = generator.binomial(clients, self.k * self.other / self.total)
        return Tally(
            (
                clients
                - blind
                + generator.multinomial(int(blind.sum()), np.full(self.k, 1 / self.k))
            )[None, :]
        )

    @property
    def chances(self) -> tuple[float, float]:
        return self.truth / self.total, self.other / self.total
