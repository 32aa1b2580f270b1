"""The base of every local randomizer: its values, its loss and the evidence of it, its reports,
their tally and the estimate."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, TypeAlias

import numpy as np

from local_dp.arrays import Bools, Floats, Ints, Words
from local_dp.checks import check_built, convert_fields
from local_dp.domains import Domain, Parameter, Vectors, parameters
from local_dp.errors import InputError
from local_dp.loss import Loss, Pure, nano_epsilon
from local_dp.noise import Draw, KeyedNoise, Noise, SystemNoise
from local_dp.tallies import Estimate, Tally

_PRIVATE, _ONE = SystemNoise(), Draw(0)
NO_COIN = np.zeros(1, dtype=np.uint8)

Evidence: TypeAlias = Literal["enumerated", "product", "per coin", "density", "audited"]
Work: TypeAlias = Literal[
    "one question",
    "repeated surveys",
    "short reports",
    "pure reports",
    "workloads",
    "shuffled reports",
]


@dataclass(frozen=True)
class Randomizer(ABC):
    """A local randomizer (KLNRS Definition 4.3): a deterministic function of a value, of uniform
    random words and of a public coin.

    One object encodes and decodes. Privacy: for every coin, report w and values u, u', Pr[w | u] <=
    e^epsilon Pr[w | u']; `epsilon` is in nats, counted in whole nano-nats, rounded down. `evidence`
    says how that is known: every entry is enumerated; the report is a product of enumerated parts;
    it is enumerated per public coin; it is proved from a density; or it is audited only. A client
    decides which evidence it accepts. `work` is its purpose: plans compare it with others of the
    same values for "one question" (`protocols.planning.ways`). `estimates` is "averages" of the
    values (shares of symbols, means of numbers), or the estimated quantity in words. `silence` is
    the value of a client with nothing to report, in a session (`Session`) where each
    client speaks in one round. `has_tally_law`: it has a `draw_tally`, which the aggregate tier
    needs. `word_bits` is the width of the random words: 0 picks 32 or 64; a small one lets a test
    enumerate every word.
    """

    name: ClassVar[str]
    source: ClassVar[str]
    summary: ClassVar[str] = ""
    evidence: ClassVar[Evidence]
    estimates: ClassVar[str] = "averages"
    work: ClassVar[Work] = "one question"
    silence: ClassVar[int | None] = None
    has_tally_law: ClassVar[bool] = False
    epsilon: float
    word_bits: int = field(default=0, kw_only=True)

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        home = {
            name: next(at for at, kind in enumerate(cls.__mro__) if name in vars(kind))
            for name in ("simulated", "respond", "draw", "words")
        }
        if min(home.values()) < home["simulated"]:
            cls.simulated = Randomizer.simulated  # type: ignore[method-assign]

    def __post_init__(self) -> None:
        convert_fields(self)
        nano_epsilon(self.epsilon)
        if not (self.word_bits == 64 or 0 <= self.word_bits <= 32):
            raise InputError(f"word_bits is {self.word_bits!r}; give 64, or 0 to 32")
        if self.word_bits == 0:
            object.__setattr__(self, "word_bits", 32 if self._fits(32) else 64)
        self.check()
        self.prepare()

    def _fits(self, bits: int) -> bool:
        """True if words of this width lose little to rounding."""
        return False

    def check(self) -> None:
        """Checks the other parameters once `word_bits` is known: here, that they make a domain.
        Raises InputError."""
        check_built(self.domain)

    def prepare(self) -> None:  # noqa: B027 - most need nothing
        """Computes the thresholds or tables, after `check`. Raises InputError where words are too
        narrow."""

    @cached_property
    def loss(self) -> Loss:
        """The cost of one report."""
        return Pure(nano_epsilon(self.epsilon))

    @property
    def nano(self) -> int:
        """The epsilon of one report, in nano-nats."""
        return self.loss.nano

    @property
    @abstractmethod
    def domain(self) -> Domain:
        """The values it accepts."""

    @property
    @abstractmethod
    def report_dtype(self) -> "np.dtype[np.generic]":
        """The fixed-width, little-endian type of a report, also its form on the wire; a subarray or
        a record type for a report of several parts."""

    @property
    def bits(self) -> int:
        """The bits of one report."""
        return 8 * self.report_dtype.itemsize

    @cached_property
    def words(self) -> int:
        """The number of random words that one report consumes."""
        return 1

    @cached_property
    def width(self) -> int:
        """The width in which its words are drawn, 32 or 64; a word of fewer bits is the leading
        part of one drawn."""
        return 64 if self.word_bits > 32 else 32

    @property
    def total(self) -> int:
        """2^word_bits, the weight of certainty."""
        return 1 << self.word_bits

    def draw(self, noise: Noise, which: Draw, start: int, stop: int) -> Words:
        """The words of the clients start..stop, made narrow here alone; shape (n,), or (n, words)
        for reports of several words."""
        each, width = self.words, self.width
        words = noise.words(which, start * each, stop * each, width)
        if self.word_bits < width:
            words = words >> words.dtype.type(width - self.word_bits)
        return words if each == 1 else words.reshape(stop - start, each)

    @property
    def uses_coins(self) -> bool:
        """True if a public coin is drawn for each client."""
        return False

    def cells_of(self, coins: Words) -> Words:
        """The part of each 64-bit public coin that it uses: all of it by default."""
        return coins

    @abstractmethod
    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        """The reports of `values` under the private `words` and the public coins `cells` (any array
        where no coin is used); n of `report_dtype`."""

    def lasting(self, values: Ints, words: Words, cells: Words) -> Words:
        """The outcomes of the first step, of `report_dtype`: all that a client keeps under a label.
        Here the report itself.

        Privacy: each outcome loses at most `epsilon`, as one report does, and so do all reports
        that `again` makes of it.
        """
        return self.respond(values, words, cells)

    def again(self, outcomes: Words, words: Words, cells: Words) -> Words:
        """Reports of kept outcomes by fresh words, which see no value: the outcomes themselves, or
        those of a second step."""
        return outcomes

    @property
    def has_second_step(self) -> bool:
        """True if a kept outcome is reported anew each time. Then `respond` is `again` of
        `lasting`, by the same words."""
        return type(self).again is not Randomizer.again

    def simulated(
        self, noise: KeyedNoise, which: Draw, start: int, values: Ints, cells: Words
    ) -> Words:
        """The reports of the clients from `start` on, who hold `values`, in a simulation.

        A class may draw fewer bits of each word than `draw`, if the reports keep the law of `draw`
        and `respond`. A subclass that overrides `respond`, `draw` or `words` loses this faster way,
        unless it gives its own.
        """
        return self.respond(values, self.draw(noise, which, start, start + len(values)), cells)

    def private_report(self, value: object, coin: int = 0) -> Words:
        """An array of one report of `value` under the public coin `coin`, by the system's entropy.
        Raises InputError, without the value, outside the domain."""
        numbers, kind, uses_coins = self._single
        is_number = type(value) is int and value in numbers
        values = np.array((value,), kind if is_number else None)
        if not (is_number or self._contains(values)):
            raise InputError(f"{self.name}: the value is not in {self.domain}")
        cells = self.cells_of(np.array((coin,), dtype=np.uint64)) if uses_coins else NO_COIN
        return self.respond(values, self.draw(_PRIVATE, _ONE, 0, 1), cells)

    @cached_property
    def _single(self) -> tuple[range, "np.dtype[np.integer[Any]]", bool]:
        """Looked up once for single reports: the numbers in the domain, a narrow type for them, and
        whether a coin is used."""
        domain = self.domain
        numbers = range(0) if isinstance(domain, Vectors) else range(domain.low, domain.high + 1)
        return (
            numbers,
            np.dtype("u1" if domain.low >= 0 and domain.high < 1 << 8 else "i8"),
            self.uses_coins,
        )

    def _contains(self, values: Words) -> bool:
        shape = (1, self.domain.d) if isinstance(self.domain, Vectors) else (1,)
        return (
            values.dtype.kind in "iu"
            and values.shape == shape
            and np.array_equal(self.domain.clip(values), values)
        )

    def possible(self, reports: Words) -> Bools:
        """True where each of these could be a report, shape (n,): a server refuses the others."""
        return np.ones(len(reports), dtype=np.bool_)

    def empty(self) -> Tally:
        """The tally of no reports."""
        return self.tally(
            np.empty(0, dtype=self.report_dtype), self.cells_of(np.empty(0, dtype=np.uint64))
        )

    @abstractmethod
    def tally(self, reports: Words, cells: Words) -> Tally:
        """The tally of `reports`."""

    @abstractmethod
    def estimate(self, tally: Tally) -> Estimate:
        """The unbiased estimate of the values' average, with its standard error."""

    def truths(self, values: Ints) -> Floats:
        """What a client with each value adds to each estimate, shape (n, estimates): here to the
        averages of the domain."""
        return self.domain.truths(values)

    def variance(self, values: Ints, law: Floats) -> Floats:
        """n times the variance of each estimate, for clients that hold these values with the
        chances `law`, shape (..., values) to (..., estimates).

        Of a vector (..., 1): that of all coordinates together.
        """
        raise NotImplementedError

    @classmethod
    def example(cls, epsilon: float = 1.0, size: int = 5) -> Self:
        """One with example parameters, small enough to enumerate; of `size` values, or about so
        many, if it can have any number."""
        return cls(epsilon, **cls.example_params(size))

    @staticmethod
    def example_params(size: int) -> dict[str, Any]:
        """The parameters of `example`, but epsilon."""
        return {}

    def draw_tally(self, value_counts: Mapping[int, int], generator: np.random.Generator) -> Tally:
        """A tally with the law of respond-then-tally for `value_counts[v]` clients of each value v,
        where `has_tally_law`. Cost independent of n, unless the class says otherwise."""
        raise NotImplementedError

    def params(self) -> dict[str, Parameter]:
        """The parameters that name this randomizer on the wire: `type(self)(**params)` is equal to
        it."""
        return parameters(self)
