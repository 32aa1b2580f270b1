"""Frequent strings of a domain too large to list: the question, whoever asks it."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from local_dp.arrays import Words
from local_dp.bounds.frequencies import FREQUENT
from local_dp.checks import check_share, check_whole
from local_dp.errors import InputError
from local_dp.noise import philox_words, stream_key
from local_dp.oracles.local.asked import LocalQuery
from local_dp.populations.population import Population
from local_dp.populations.strings import Strings
from local_dp.populations.table import Rows
from local_dp.protocols.local_protocol import LocalProtocol, PlainData, parameter, plain
from local_dp.protocols.search.prefix_search import Level
from local_dp.protocols.surveys.policies import Launch, check_policy
from local_dp.queries.strings import MAX_BITS, HashedPrefix, KeptPrefix, strings_of
from local_dp.tallies import Estimate, Tally


@dataclass(frozen=True)
class Found:
    """The strings that were found, the most frequent first, and their shares."""

    strings: Words
    estimate: Estimate


@dataclass(frozen=True)
class FrequentStrings(LocalProtocol[Found]):
    """What the protocols have in common that find the frequent strings of `column` among all 2^`bits`; without a table, of ten that `share` hold each.

    A number counts by its last `bits` bits, a text by its first `bits` / 8 bytes; `text` says which it is, and is read off a table.
    """

    source: ClassVar[str] = "Bassily, Smith 2015; Bassily, Nissim, Stemmer, Thakurta 2017 (prefixes)"
    example: ClassVar[str] = "--records words.csv --column word"
    column: str = parameter("string", "the column of strings or whole numbers", of_table=True)
    bits: int = parameter(32, "the length of a string", unit="bits")
    text: bool = parameter(False, "show strings as text")
    missing: str = parameter("refuse", "a missing value: refuse, or category (a string of its own, all zeros)")
    share: float = parameter(0.02, "the default number of clients finds every string that so many hold", unit="share")

    def check(self) -> None:
        check_whole("bits", self.bits, 8, MAX_BITS)
        if self.text and self.bits % 8:
            raise InputError(f"bits is {self.bits}; give whole bytes of text, a multiple of 8")
        check_share("share", self.share)
        check_policy("missing", self.missing, ("refuse", "category"))

    @property
    def tolerance(self) -> float:
        """How far a share may be off without the string being lost: half of it."""
        return self.share / 2

    def synthetic(self, clients: int, seed: int) -> Population:
        """Ten strings of `share` each, or as many as take nine tenths of all; the rest uniform."""
        count = max(1, min(FREQUENT, int(0.9 / self.share)))
        drawn = philox_words(stream_key("frequent strings", seed), 0, 8 * FREQUENT) >> np.uint64(64 - self.bits)
        frequent = list(dict.fromkeys(drawn.tolist()))[:count]
        return Strings(self.column, self.bits, frequent, [self.share] * len(frequent), clients, seed)

    def for_table(self, table: Launch) -> Self:
        values = table.records[self.column]
        if values.dtype.kind == "f":
            raise InputError(f"column {self.column!r} has numbers that are not whole; give whole numbers or text")
        table.refuse_missing(self.missing, self.column, "missing=category (a string of its own)")
        return replace(self, text=values.dtype.kind == "U")

    def shown(self, strings: Words) -> list[str]:
        """Each string as a person reads it: text, or a whole number in hexadecimal digits."""
        if not self.text:
            return [f"0x{string:0{-(-self.bits // 4)}x}" for string in strings.tolist()]
        octets = [string.to_bytes(self.bits // 8, "big").rstrip(b"\0") for string in strings.tolist()]
        return [part.decode("utf-8", "backslashreplace") if part else "(missing)" for part in octets]

    def describe(self, result: Found) -> PlainData:
        low, high = result.estimate.interval()
        return {
            "column": self.column,
            "labels": self.shown(result.strings),
            "estimate": plain(result.estimate.value),
            "standard_error": plain(result.estimate.standard_error),
            "interval": plain(np.stack([low, high], axis=-1)),
            "n": result.estimate.n,
        }

    def frequent(self, population: Population) -> dict[int, float]:
        """The strings that at least half of `share` hold in the distribution that the clients are drawn from, with their shares."""
        if isinstance(population, Strings):
            return dict(zip(population.frequent.tolist(), population.shares.tolist(), strict=True))
        assert isinstance(population, Rows)
        strings, counts = np.unique(strings_of(population.whole[self.column], self.bits), return_counts=True)
        shares = counts / counts.sum()
        return dict(zip(strings[shares >= self.share / 2].tolist(), shares[shares >= self.share / 2].tolist(), strict=True))

    def true_error(self, result: Found, population: Population) -> float:
        """The largest error of a share: of one found, or of one with at least `share` that was not."""
        truth = self.frequent(population)
        estimated = dict(zip(result.strings.tolist(), result.estimate.value.tolist(), strict=True))
        missed = [share for string, share in truth.items() if share >= self.share and string not in estimated]
        return max([abs(share - truth.get(string, 0.0)) for string, share in estimated.items()] + missed, default=0.0)


def level_of(length: int, queries: tuple[LocalQuery, ...], tallies: Iterator[Tally]) -> Level:
    """What the clients who were asked these told of the prefixes of so many bits."""
    codings = tuple(query.query for query in queries if isinstance(query.query, HashedPrefix | KeptPrefix))
    return Level(length, codings, tuple(query.randomizer.estimate(next(tallies)) for query in queries))
