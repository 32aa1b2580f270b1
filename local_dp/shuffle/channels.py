"""The laws of a randomizer's reports, and the pairs of laws that matter."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from local_dp.arrays import Floats
from local_dp.errors import InputError
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.places import BitVector
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.with_coin import without_coin
from local_dp.shuffle.binary import Bits
from local_dp.shuffle.pair import Pair

MAX_VALUES = 64  # of which all pairs are looked at
_SOME = 9  # values of a larger domain
_MAX_KINDS = 32
_MAX_ENTRIES = 1 << 24
_MAX_PLACES = 4


@dataclass(frozen=True)
class Laws:
    """The law of a report for each value: `rows`, shape (values, reports); `complete` if these are all values.

    A report is the public coin's cell together with the answer: behind a shuffler a client draws its own cell and sends it along.
    """

    rows: Floats
    complete: bool = True

    @classmethod
    def of(cls, randomizer: Randomizer) -> "Laws":
        """Of a finite channel; of a vector of bits, at places where two values differ. Raises InputError for others and for too large a table."""
        channel = without_coin(randomizer)
        if isinstance(channel, FiniteChannel):
            return _of_channel(channel)
        if isinstance(channel, BitVector):
            return _of_bits(channel)
        raise InputError(f"{randomizer.name} is no finite channel: its shuffled reports cannot be accounted for; take grr, hadamard, sue, oue or binary-rr")

    @property
    def bits(self) -> Bits | None:
        """The two extreme laws of a one-bit report; every other law is a mixture of them."""
        shares = self.rows[:, 1]
        return Bits(float(shares.max()), float(shares.min())) if self.rows.shape[1] == 2 else None

    @cached_property
    def blanket(self) -> Floats:
        """The part of a law that does not depend on the value, shape (reports,). Source: Balle, Bell, Gascon, Nissim 2019."""
        return np.asarray(self.rows.min(axis=0))

    @property
    def few(self) -> bool:
        return self.complete and len(self.rows) <= MAX_VALUES and len(self.against_blanket) <= _MAX_KINDS

    @property
    def epsilon(self) -> float:
        """The loss of one report of a known sender, in nats, over the values in `rows`."""
        sent = self.blanket > 0
        return math.log(float((self.rows.max(axis=0)[sent] / self.blanket[sent]).max())) * (1 + 1e-15) + 1e-15

    @cached_property
    def against_blanket(self) -> list[Pair]:
        """Every pair of values against the blanket, one of each kind, the most different pair first."""
        return _kinds(Pair(self.rows[one], self.rows[other], self.blanket) for one in range(len(self.rows)) for other in range(one + 1, len(self.rows)))

    @cached_property
    def against_one_value(self) -> list[Pair]:
        """The worst pair of values against each data set whose others share one value, one of each kind, the worst first."""
        return _kinds(Pair(self.against_blanket[0].first, self.against_blanket[0].second, row) for row in self.rows)


def _kinds(pairs: Iterator[Pair]) -> list[Pair]:
    """One pair of each kind: reports may be renamed."""
    kinds = {pair.kind: pair for pair in pairs}
    return sorted(kinds.values(), key=lambda pair: -pair.apart)


def _of_channel(randomizer: FiniteChannel) -> Laws:
    """All values of a small domain, or nine values of a large one."""
    values = randomizer.domain.values()
    complete = len(values) <= MAX_VALUES or randomizer.alphabet * randomizer.cells == 2
    some = values if complete else values[np.linspace(0, len(values) - 1, _SOME).astype(np.int64)]
    reports, cells = randomizer.alphabet, randomizer.cells
    if len(some) * reports * cells > _MAX_ENTRIES:
        raise InputError(f"{randomizer.name}: {reports * cells} kinds of report are too many to account for; take a smaller domain")
    table = randomizer.weight(np.arange(reports)[None, None, :], some[:, None, None], np.arange(cells)[None, :, None])
    return Laws(np.broadcast_to(table, (len(some), cells, reports)).reshape(len(some), -1) / (randomizer.total * cells), complete)


def _of_bits(randomizer: BitVector) -> Laws:
    """The first values, at bits where the first two differ: a server sees no less."""
    code = randomizer.code[:_SOME]
    rows = np.ones((len(code), 1))
    for place in np.flatnonzero(code[0] != code[1])[:_MAX_PLACES]:
        one = np.array(randomizer.ones)[code[:, place]][:, None] / randomizer.total
        rows = np.concatenate([rows * (1 - one), rows * one], axis=1)
    return Laws(rows, complete=False)
