"""One value, one report: a randomizer in the hands of a client, and the estimate from reports."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from local_dp.api.audit import Audited, audit, built
from local_dp.arrays import Floats, Ints, Words
from local_dp.domains import Parameter, Vectors
from local_dp.errors import InputError
from local_dp.loss import Loss
from local_dp.noise import COINS, Draw, KeyedNoise, SystemNoise, fresh, public_coins
from local_dp.oracles.local.asked import fitting
from local_dp.randomizers.finite import FiniteChannel, weights_of
from local_dp.randomizers.randomizer import NO_COIN, Randomizer
from local_dp.records import chunks
from local_dp.tallies import Estimate
from local_dp.text.layout import python_errors

_ASK = Draw(1, 0)  # the first ask of a run's first round
_LISTED = 1 << 24  # entries of a law
_FORMS = {
    "levels": "a number from 0 to 1",
    "cube": "a row of numbers from -1 to 1",
    "ball": "a row of numbers of Euclidean norm at most 1",
}


@dataclass(frozen=True)
class LocalRandomizer:
    """A randomizer to use value by value: `privatize` makes reports, and `estimate` reads them.

    A report of a randomizer with a public coin has two fields, its `coin` and the `report` under
    it. Privacy: each report is epsilon-locally private (KLNRS Definition 4.3); `loss` is exact.
    """

    randomizer: Randomizer

    def privatize(self, values: Any, *, seed: int | None = None) -> Any:
        """The report of one value, or of each value of an array: by the system's entropy, or in a
        simulation by a seed, which protects nobody.

        A value is a symbol 0..k-1, a number in [0, 1], or a row of numbers in [-1, 1]^d or in the
        unit ball, as the randomizer's domain has it; numbers count as the nearest step of its
        lattice. With a seed, the i-th report is that of client i of a run in its first round.
        Raises InputError, without the value, for one outside. Cost: O(n), in chunks.
        """
        with python_errors():
            array, is_one = self._values(values)
            noise = SystemNoise() if seed is None else KeyedNoise(seed)
            key = fresh() if seed is None else _ASK.key(COINS, seed)
            spans = chunks(0, len(array), fitting(self.randomizer))
            parts = [self._reports(array[start:stop], start, noise, key) for start, stop in spans]
        reports = np.concatenate(parts) if parts else self._reports(array, 0, noise, key)
        return reports[0] if is_one else reports

    def _reports(
        self, values: Ints, start: int, noise: SystemNoise | KeyedNoise, key: bytes
    ) -> Words:
        randomizer, stop = self.randomizer, start + len(values)
        cells = NO_COIN
        if randomizer.uses_coins:
            cells = randomizer.cells_of(public_coins(key, start, stop))
        if isinstance(noise, KeyedNoise):
            reports = randomizer.simulated(noise, _ASK, start, values, cells)
        else:
            reports = randomizer.respond(values, randomizer.draw(noise, _ASK, start, stop), cells)
        if not randomizer.uses_coins:
            return reports
        pairs: Any = np.empty(len(values), dtype=self._pair)
        pairs["coin"], pairs["report"] = cells, reports
        return np.asarray(pairs)

    @property
    def _pair(self) -> "np.dtype[np.void]":
        """The type of a report with its coin."""
        coin = self.randomizer.cells_of(np.zeros(1, dtype=np.uint64)).dtype
        return np.dtype([("coin", coin), ("report", self.randomizer.report_dtype)])

    def _values(self, values: Any) -> tuple[Ints, bool]:
        """The values as the randomizer takes them, shape (n,) or (n, d); whether it is one."""
        domain, array = self.randomizer.domain, np.asarray(values)
        if not array.size:
            return domain.first(0), False
        is_one = array.ndim == int(isinstance(domain, Vectors))
        array = array[None] if is_one else array
        least = -1.0 if isinstance(domain, Vectors) else 0.0
        form = _FORMS.get(domain.kind, f"one of {domain}")
        fits = array.shape == domain.shape(len(array)) and array.dtype.kind in "biuf"
        if fits and domain.kind in _FORMS:
            fits = bool(((array >= least) & (array <= 1)).all())
            array = np.rint(array * domain.high).astype(np.int64) if fits else array
        if fits and array.dtype.kind != "f":
            whole = array.astype(np.int64)
            nearest = domain.clip(whole)
            if np.abs(nearest - whole).max(initial=0) <= (domain.kind == "ball"):  # of rounding
                return nearest, is_one
        name = self.randomizer.name
        raise InputError(f"{name}: a value is not {form}; give such values, one or an array")

    def estimate(self, reports: Any) -> Estimate:
        """The unbiased estimate of the values' averages, such as the shares of k symbols, with its
        standard error and `interval()`; from one report on. Raises InputError for what is none."""
        randomizer = self.randomizer
        kind = self._pair if randomizer.uses_coins else randomizer.report_dtype
        array: Any = np.asarray(reports)
        array = array[None] if array.shape == kind.shape else array
        is_like = array.dtype.names == kind.names and array.shape[1:] == kind.shape
        with python_errors():
            plain = array.astype(kind.base) if is_like and array.dtype.kind in "biufV" else None
            if plain is None or not np.array_equal(plain, array):
                raise InputError(f"these are no reports of {randomizer.name}; give its reports")
            cells = NO_COIN
            if randomizer.uses_coins:
                cells, plain = (np.ascontiguousarray(plain[name]) for name in ("coin", "report"))
            if not randomizer.possible(plain).all():
                raise InputError(f"some of these are impossible reports of {randomizer.name}")
            return randomizer.estimate(randomizer.tally(plain, cells))

    def loss(self) -> Loss:
        """The cost of one report, with its `epsilon` in nats."""
        return self.randomizer.loss

    def audit(self) -> Audited:
        """Its exact loss, its sampler and its estimates, checked."""
        return audit(self.randomizer)

    def law(self) -> Floats:
        """Pr[report | value], shape (values, reports); with a public coin Pr[coin and report |
        value], shape (values, coins, reports). Raises InputError where they are not listed."""
        randomizer = self.randomizer
        with python_errors():
            if not isinstance(randomizer, FiniteChannel) or (
                randomizer.domain.size * randomizer.alphabet * randomizer.cells > _LISTED
            ):
                name = randomizer.name
                raise InputError(f"the reports of {name} are not listed; audit() computes the loss")
            weights = weights_of(randomizer, randomizer.domain.values())
            law = weights / randomizer.total / randomizer.cells
            return law if randomizer.cells > 1 else law[:, 0]


def randomizer(
    which: str | type[Randomizer] | Randomizer, *, epsilon: float = 1.0, **parameters: Parameter
) -> LocalRandomizer:
    """A randomizer to use value by value: by name, as a class or an object, or at a place,
    "module:Class" or "path/file.py".

    `randomizer("oue", k=10, epsilon=1)`. Raises InputError or RefusedError.
    """
    with python_errors():
        return LocalRandomizer(built(which, epsilon, parameters))
