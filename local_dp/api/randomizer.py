"""One value, one report: a randomizer in a program of your own, without a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import add
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from local_dp.api.audit import Audited, audit, built
from local_dp.api.declare import by_name
from local_dp.arrays import Column, Floats, Ints, Words
from local_dp.domains import Parameter
from local_dp.errors import InputError, RefusedError
from local_dp.loss import Loss
from local_dp.noise import COINS, Draw, KeyedNoise, SystemNoise, fresh, public_coins
from local_dp.oracles.local.asked import cells_of, dither, fitting
from local_dp.randomizers.finite import FiniteChannel, weights_of
from local_dp.randomizers.randomizer import NO_COIN, Randomizer
from local_dp.records import chunks
from local_dp.tallies import Estimate
from local_dp.verification.audit import verify

Reports: TypeAlias = Words | np.generic
ANSWER = Draw(1)  # the words of a first round
MOST = 1 << 24  # probabilities of a law
KEY = 16  # bytes
ON_EDGE = 1e-9  # by which the norm of a row in doubles may exceed 1


@by_name
def randomizer(
    which: str | type[Randomizer] | Randomizer,
    *,
    epsilon: float = 1.0,
    unverified: bool = False,
    **parameters: Parameter,
) -> "Privatizer":
    """A randomizer for your own values: `privatize` them, `estimate` from the reports.

    `which` is a name, "package.module:Class", "path/file.py:Class", a class or an instance;
    `epsilon` in nats, from 1e-9 to 24, and `parameters` make it. `unverified` skips the checks that
    every client makes. Raises InputError, or RefusedError for an unknown name.
    """
    return Privatizer(built(which, epsilon, parameters), unverified)


@dataclass(frozen=True, repr=False)
class Privatizer:
    """A randomizer, and its reports of values in the units of a person.

    A value is a symbol 0..k-1; a number in [0, 1] for levels; a row of d numbers in [-1, 1]^d or
    the unit ball for vectors; else a whole number of the domain (a signed symbol, a set as bits).
    Numbers are placed on the randomizer's lattice: each is rounded at random to one of its two
    neighbours, by words of its own, as in a run, so the mean stays exact. A row of a ball then
    moves inwards to norm 1: below 2/steps a coordinate.

    Privacy: each report loses `loss()`, also under its public coin, which it carries. Reports of
    the same value add up: no ledger counts them.
    """

    randomizer: Randomizer
    unverified: bool = False

    def __repr__(self) -> str:
        inner = self.randomizer
        settings = ", ".join(f"{name}={value!r}" for name, value in inner.params().items())
        gate = "; UNVERIFIED, its loss is only claimed" if self.unverified else ""
        return (
            f"<{inner.name}({settings}), {inner.loss}{gate}; privatize(values) is private, with a "
            "seed it is a simulation, NOT private>"
        )

    @cached_property
    def report_dtype(self) -> "np.dtype[Any]":
        """The type of a report; with the 64-bit public coin before it where there is one."""
        inner = self.randomizer
        if not inner.uses_coins:
            return inner.report_dtype
        return np.dtype([("coin", "<u8"), ("report", inner.report_dtype)])

    def privatize(self, values: ArrayLike, *, seed: int | None = None) -> Reports:
        """A report of one value, or an array of n reports of a list, tuple, array or series.

        By the system's entropy; with a `seed` it is a simulation, NOT private, and gives the
        reports of a run's first round to clients 0..n-1. Raises InputError, without the value,
        outside the domain; RefusedError unless the randomizer passes the checks of a run. O(n).
        """
        _ = self._gate
        array, is_one = self._array_of(values)
        noise = SystemNoise() if seed is None else KeyedNoise(seed)
        key = fresh()[:KEY] if seed is None else ANSWER.key(COINS, int(seed))
        reports = np.empty(len(array), dtype=self.report_dtype)
        for start, stop in chunks(0, len(array), fitting(self.randomizer)):
            part = reports[start:stop]
            if self.randomizer.uses_coins:
                part["coin"] = public_coins(key, start, stop)
                part = part["report"]
            points = self._points_of(array[start:stop], noise, start)
            part[...] = self._report(points, noise, key, start)
        return reports[0] if is_one else reports

    def estimate(self, reports: Reports | Sequence[Reports]) -> Estimate:
        """The estimate of the values' averages from reports of `privatize`, with `value`,
        `standard_error` and `interval()`. Raises InputError for other reports."""
        inner = self.randomizer
        coins, answers = self._parts(reports)
        tallies = (
            inner.tally(answers[start:stop], inner.cells_of(coins[start:stop]))
            for start, stop in chunks(0, len(answers), fitting(inner))
        )
        return inner.estimate(reduce(add, tallies, inner.empty()))

    def loss(self) -> Loss:
        """The charge of one report: `epsilon` in nats, and a delta where it is not pure."""
        return self.randomizer.loss

    def audit(self) -> Audited:
        """All checks of the randomizer, as by `ldp.audit`."""
        return audit(self.randomizer)

    def law(self) -> Floats:
        """Pr[report | value], shape (values, reports), or (values, coins, reports) where a public
        coin is used. Raises InputError unless the channel is finite and small."""
        inner = self.randomizer
        if not isinstance(inner, FiniteChannel):
            raise InputError(
                f"{inner.name} has no finite table of probabilities; audit() shows its loss"
            )
        if inner.domain.size * inner.cells * inner.alphabet > MOST:
            raise InputError(f"the table of {inner.name} has over 2^24 entries; make it smaller")
        law = weights_of(inner, inner.domain.values()) / inner.total
        return law if inner.uses_coins else law[:, 0]

    @cached_property
    def _gate(self) -> None:
        try:
            if not self.unverified:
                verify(self.randomizer)
        except RefusedError as error:
            raise RefusedError(
                error.code, f"{error}; unverified=True uses it all the same"
            ) from None

    def _report(
        self, values: Ints, noise: KeyedNoise | SystemNoise, key: bytes, start: int
    ) -> Words:
        inner, stop = self.randomizer, start + len(values)
        cells = cells_of(inner, key, start, stop)
        if isinstance(noise, KeyedNoise):
            return inner.simulated(noise, ANSWER, start, values, cells)
        return inner.respond(values, inner.draw(noise, ANSWER, start, stop), cells)

    def _array_of(self, values: ArrayLike) -> tuple[Column, bool]:
        """The values as an array of many, and whether they are one. Raises InputError."""
        domain, is_number = self.randomizer.domain, self._is_number
        row = domain.shape(1)[1:]
        try:
            array = np.asarray(values)
        except (ValueError, TypeError):  # of lists of different lengths
            array = np.array(None)
        is_one = array.ndim == len(row)
        many = array[None] if is_one else array.reshape(array.shape if array.size else (0, *row))
        low, high = (-len(row), 1) if is_number else (domain.low, domain.high)
        fits = many.dtype.kind in "biuf" and many.shape == (len(many), *row)
        if fits:
            inside = (many >= low) & (many <= high)
            if not is_number:
                inside &= many == np.rint(many)
            if domain.kind == "ball":
                inside &= (np.linalg.norm(many, axis=1) <= 1 + ON_EDGE)[:, None]
            fits = bool(inside.all())
        if not fits:
            what = f"rows of {row[0]} numbers, in the {domain.kind}" if row else "numbers in [0, 1]"
            what = what if is_number else f"{domain}, as numbers"
            raise InputError(f"{self.randomizer.name} takes {what}; a value is not one of them")
        return many, is_one

    @property
    def _is_number(self) -> bool:
        """True if values are numbers on a lattice, not whole numbers."""
        return self.randomizer.domain.kind in ("levels", "cube", "ball")

    def _points_of(self, values: Column, noise: KeyedNoise | SystemNoise, start: int) -> Ints:
        """The values of the clients from `start` on as members of the domain."""
        domain = self.randomizer.domain
        if not self._is_number:
            return values.astype(np.int64)
        random = dither(self.randomizer, noise, ANSWER, start, start + len(values))
        return domain.discretize(values * float(domain.high), random)

    def _parts(self, reports: Reports | Sequence[Reports]) -> tuple[Words, Words]:
        """The coins and the reports under them. Raises InputError."""
        inner, dtype = self.randomizer, self.report_dtype
        array: Any = np.asarray(reports)
        array = array[None] if array.ndim == len(dtype.shape) else array
        own = array.astype(dtype.base) if array.dtype.kind in "iu" and not dtype.names else array
        fits = array.shape == (len(array), *dtype.shape) and own.dtype == dtype.base
        fits = fits and bool((own == array).all())
        coins, answers = NO_COIN, own
        if fits and inner.uses_coins:
            coins, answers = (np.ascontiguousarray(array[part]) for part in ("coin", "report"))
        if not fits or not inner.possible(answers).all():
            raise InputError(f"these are no reports of {inner.name}; give what privatize returned")
        return coins, answers
