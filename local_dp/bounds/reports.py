"""What one report of a finite channel adds to an estimate, and how far the estimate errs: exact, from the channel's own table."""

from dataclasses import dataclass

import numpy as np

from local_dp.arrays import Counts, Floats
from local_dp.bounds.frequencies import set_errors, unfavourable_laws
from local_dp.bounds.largest import Errors
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.frequencies.designs import Design
from local_dp.tallies import Tally

MAX_TABLE = 1 << 21  # entries of what reports add
_CHUNK = 1 << 22
_EXACT = 1e-6  # how far from its aim an estimate may be to count as unbiased: discrete Laplace holds it to 1e-7


@dataclass(frozen=True)
class Aim:
    """A mean over individuals: one whose value is the domain's v-th adds `target`[v], shape (values, m). `kind` is the domain's."""

    kind: str
    target: Floats

    @classmethod
    def share_of_ones(cls) -> "Aim":
        """The share of those whose symbol is 1, of two."""
        return cls("symbols", np.array([[0.0], [1.0]]))

    @classmethod
    def shares(cls, k: int) -> "Aim":
        """The shares of k symbols."""
        return cls("symbols", np.eye(k))

    @classmethod
    def mean(cls, steps: int) -> "Aim":
        """The mean of numbers on the lattice of multiples of 1 / steps."""
        return cls("levels", np.arange(steps + 1)[:, None] / steps)


@dataclass(frozen=True)
class Reports:
    """A randomizer's reports as estimates of an aim: `added`, shape (cells * alphabet, m), is what each adds, divided by their number."""

    randomizer: FiniteChannel
    aim: Aim
    added: Floats

    @classmethod
    def of(cls, randomizer: FiniteChannel, aim: Aim) -> "Reports | None":
        """None where the randomizer does not estimate the aim without bias, as a mean over reports."""
        if isinstance(randomizer, Design) and np.array_equal(aim.target, np.eye(randomizer.shares)):
            return SetReports(randomizer, aim, np.zeros((0, randomizer.shares)))
        added = _added(randomizer)
        if added is None:
            return None
        law = report_laws(randomizer, _some_values(len(aim.target)))
        meant, aimed = law @ added, aim.target[_some_values(len(aim.target))]
        if meant.shape == aimed.shape and np.allclose(meant, aimed, atol=_EXACT, rtol=0):
            return cls(randomizer, aim, added)
        if aimed.shape[1] == 1:
            for column in np.flatnonzero(np.all(np.abs(meant - aimed) < _EXACT, axis=0)).tolist():
                return cls(randomizer, aim, added[:, [column]])
        return None

    def estimates(self, counts: Counts) -> Floats:
        """What each of several tallies, shape (..., cells * alphabet), says of the aim, shape (..., m)."""
        means: Floats = counts @ self.added / counts.sum(axis=-1, keepdims=True)
        return means

    def errors(self, law: Floats) -> Errors:
        """Those of one report of a client whose value has this law."""
        return Errors.of_reports(self.added, self.law(law))

    def law(self, law: Floats) -> Floats:
        """Pr[cell, report], flattened, of a client whose value has this law.

        A number on another lattice is rounded at random to one of its neighbours, so that its mean stays.
        """
        law = _on_lattice(law, self.randomizer.domain.size)
        held = np.flatnonzero(law)
        chunk = max(1, _CHUNK // (self.randomizer.cells * self.randomizer.alphabet))
        parts = [law[some] @ report_laws(self.randomizer, some) for some in np.split(held, range(chunk, len(held), chunk))]
        total: Floats = np.sum(parts, axis=0)
        total /= total.sum()
        return total

    def unfavourable(self) -> list[Errors]:
        """The errors under laws of values among which the least favourable one is: of shares, `unfavourable_laws`.

        Of a mean of numbers the law on its two extremes at the best odds, for the variance is concave in them.
        """
        if self.aim.target.shape[1] > 1:
            return [self.errors(law) for law in unfavourable_laws(len(self.aim.target))]
        ends = [int(np.argmin(self.aim.target)), int(np.argmax(self.aim.target))]
        laws = report_laws(self.randomizer, np.array(ends))
        (low, high), square = (laws @ self.added[:, 0]).tolist(), laws @ self.added[:, 0] ** 2
        odds = np.clip(((square[1] - square[0]) / (high - low) - 2 * low) / (2 * (high - low)), 0, 1)
        return [Errors.of_reports(self.added, (1 - odds) * laws[0] + odds * laws[1])]


@dataclass(frozen=True)
class SetReports(Reports):
    """Those of an oracle by a block design, which are too many for a table: their errors follow from how often sets hold a symbol, and two."""

    def estimates(self, counts: Counts) -> Floats:
        assert isinstance(self.randomizer, Design)
        return self.randomizer.values(counts.reshape(*counts.shape[:-1], self.randomizer.cells, self.randomizer.alphabet))

    def errors(self, law: Floats) -> Errors:
        assert isinstance(self.randomizer, Design)
        return set_errors(self.randomizer.epsilon, *self.randomizer.sets, law)


def _on_lattice(law: Floats, size: int) -> Floats:
    """A law of numbers in [0, 1] on a lattice of another size, the mean unchanged."""
    if size == len(law):
        return law
    place = np.arange(len(law)) * (size - 1) / (len(law) - 1)
    below = np.minimum(np.floor(place).astype(np.int64), size - 2)
    part = place - below
    moved = np.zeros(size)
    np.add.at(moved, below, law * (1 - part))
    np.add.at(moved, below + 1, law * part)
    return moved


def _some_values(size: int) -> Counts:
    """All of a small domain; of a large one the ends and some between."""
    return np.arange(size, dtype=np.int64) if size <= 1024 else np.unique(np.linspace(0, size - 1, 33).astype(np.int64))


def report_laws(randomizer: FiniteChannel, values: Counts) -> Floats:
    """Pr[cell, report | value], shape (values, cells * alphabet)."""
    cells, reports = np.arange(randomizer.cells)[:, None], np.arange(randomizer.alphabet)
    held = np.asarray(values, dtype=np.int64)[:, None, None] + randomizer.domain.low
    law: Floats = np.exp(randomizer.log_probability(reports, held, cells)).reshape(len(values), -1) / randomizer.cells
    return law


def _added(randomizer: FiniteChannel) -> Floats | None:
    """What each report alone is an estimate of; None where there are too many, or an estimate is not the mean of its reports'."""
    size = randomizer.cells * randomizer.alphabet
    if size > MAX_TABLE:
        return None

    def estimate(counts: Counts) -> Floats:
        return np.atleast_1d(randomizer.estimate(Tally(counts.reshape(randomizer.cells, randomizer.alphabet))).value)

    one = np.zeros(size, dtype=np.int64)
    one[0] = 1
    if size * len(estimate(one)) > MAX_TABLE:
        return None
    added = np.array([estimate(np.roll(one, place)) for place in range(size)])
    mixed = 1 + np.arange(size, dtype=np.int64) % 7
    return added if np.allclose(mixed @ added / mixed.sum(), estimate(mixed), atol=1e-9, rtol=1e-9) else None
