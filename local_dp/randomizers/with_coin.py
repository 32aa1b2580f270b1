"""A randomizer whose public coin the client draws itself and sends along: the report then makes
sense without its client."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from local_dp.arrays import Bools, Floats, Ints, Words
from local_dp.domains import Domain
from local_dp.errors import InputError
from local_dp.randomizers.finite import FiniteChannel
from local_dp.randomizers.randomizer import Randomizer
from local_dp.randomizers.registry import build_named, setting_of
from local_dp.tallies import Estimate, Tally

_COIN = 64  # bits


@dataclass(frozen=True, kw_only=True)
class WithCoin(Randomizer):
    """Reports the part of a drawn coin that the randomizer `inner` uses, and the report of `inner`
    under that coin.

    `inner` is the name of a randomizer with a public coin, and `setting` its parameters,
    "name=value" each. Privacy: the coin is drawn from words of its own, whatever the value. So the
    worst ratio of a pair is exactly that of `inner` under the worst coin. Utility: coin and report
    have the same law as with a public coin, so tally, estimate and error are those of `inner`.
    Cost: the bits of the coin more, and 64 random bits.
    """

    name = "with-coin"
    summary = "Adds the client's coin to another randomizer's report"
    source = "KLNRS 2008 (a local randomizer's own coins); Acharya, Sun, Zhang 2019 (private coins)"
    evidence = "per coin"
    work = "shuffled reports"
    inner: str = "hadamard"
    setting: tuple[str, ...] = ("k=8",)

    @classmethod
    def of(cls, randomizer: Randomizer) -> Self:
        """`randomizer` with its coin sent along. Raises InputError if a client cannot draw the
        coin, or if parameters do not name the randomizer."""
        outer = cls(
            randomizer.epsilon,
            word_bits=randomizer.word_bits,
            inner=randomizer.name,
            setting=setting_of(randomizer),
        )
        if outer.coined != randomizer:
            raise InputError(
                f"the parameters of {randomizer.name} do not name it, so that no client could "
                "draw its coin"
            )
        return outer

    def _fits(self, bits: int) -> bool:
        return build_named(self.inner, self.setting, epsilon=self.epsilon).word_bits == bits

    def prepare(self) -> None:
        inner = self.coined
        kind, name = type(inner), inner.name
        if not inner.uses_coins:
            raise InputError(f"{name} uses no public coin: there is nothing to send along")
        fault = f"the coin of {name} cannot be sent along: "
        per_coin = inner.evidence in ("enumerated", "per coin")
        if inner.loss != self.loss or not per_coin or kind.draw is not Randomizer.draw:
            raise InputError(fault + "for a loss that is enumerated, pure and of each report alone")
        listed_cells = isinstance(inner, FiniteChannel) or kind.cells_of is Randomizer.cells_of
        if not listed_cells:
            raise InputError(fault + "nobody could tell which coins there are")
        object.__setattr__(self, "estimates", inner.estimates)

    @cached_property
    def coined(self) -> Randomizer:
        """The randomizer whose coin it is."""
        return build_named(self.inner, self.setting, epsilon=self.epsilon, word_bits=self.word_bits)

    @property
    def domain(self) -> Domain:
        return self.coined.domain

    @cached_property
    def report_dtype(self) -> "np.dtype[np.generic]":
        coin = self.coined.cells_of(np.zeros(1, dtype=np.uint64)).dtype.newbyteorder("<")
        return np.dtype([("coin", coin), ("report", self.coined.report_dtype)])

    @property
    def bits(self) -> int:
        randomizer = self.coined
        coin = (
            (randomizer.cells - 1).bit_length() if isinstance(randomizer, FiniteChannel) else _COIN
        )
        return coin + randomizer.bits

    @property
    def words(self) -> int:
        return self._coin_words + self.coined.words

    @property
    def _coin_words(self) -> int:
        return -(-_COIN // self.word_bits)

    def coins(self, words: Words) -> Words:
        """The used part of each client's own coin, from its first words, shape (n, words), the
        lowest bits first."""
        coins = np.zeros(len(words), dtype=np.uint64)
        for place in range(self._coin_words):
            coins |= words[:, place].astype(np.uint64) << np.uint64(place * self.word_bits)
        return self.coined.cells_of(coins)

    def respond(self, values: Ints, words: Words, cells: Words) -> Words:
        own = np.ascontiguousarray(words[:, self._coin_words :])
        reports: Any = np.empty(len(words), dtype=self.report_dtype)
        coins = reports["coin"] = self.coins(words)
        reports["report"] = self.coined.respond(
            values, own[:, 0] if self.coined.words == 1 else own, coins
        )
        return np.asarray(reports)

    @staticmethod
    def parts(reports: Any) -> tuple[Words, Words]:
        """The coins of reports, and the reports under them."""
        return np.ascontiguousarray(reports["coin"]), np.ascontiguousarray(reports["report"])

    def possible(self, reports: Words) -> Bools:
        coins, inner_reports = self.parts(reports)
        possible = self.coined.possible(inner_reports)
        return (
            possible & (coins < self.coined.cells)
            if isinstance(self.coined, FiniteChannel)
            else possible
        )

    def tally(self, reports: Words, cells: Words) -> Tally:
        coins, inner_reports = self.parts(reports)
        return self.coined.tally(inner_reports, coins)

    def truths(self, values: Ints) -> Floats:
        return self.coined.truths(values)

    def variance(self, values: Ints, law: Floats) -> Floats:
        return self.coined.variance(values, law)

    def estimate(self, tally: Tally) -> Estimate:
        return self.coined.estimate(tally)


def without_coin(randomizer: Randomizer) -> Randomizer:
    """The inner randomizer of one that sends its coin along, which has its loss and law; any other
    one itself."""
    return randomizer.coined if type(randomizer) is WithCoin else randomizer
