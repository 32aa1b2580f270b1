"""The least numbers of people of the map by class and dimension, beside their predictions and the
proven bounds."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from local_dp.bounds.channels import parity_interactive_bound
from local_dp.bounds.masked_parity import masked_parity_one_round_bound
from local_dp.experiments.claims.local.map.runs import (
    EPSILON,
    ONE_ROUND,
    PROTOCOLS,
    SUCCESS,
    Curated,
    HiddenConcept,
    Learned,
    OneRound,
    Parity,
    people_by_law,
    whole,
)
from local_dp.experiments.lab.parts import ClientCount, Positive, geometric_mean, least_count

COMPARED = 8  # the dimension at which all classes are counted
TITLES = {
    **{name: kind.title for name, kind in ONE_ROUND.items()},
    "masked-parity": "Masked parity",
    "masked-parity-one-round": "Masked parity in one round",
    "parity-halving": "Parity without a curator",
    "parity": "Parity",
}
Search = tuple[OneRound, Learned] | tuple[HiddenConcept, Learned]
Size = Search | tuple[Parity, Curated]


def prediction(name: str, d: int) -> float:
    """By the law of the answers for a class of one round, by its protocol's closed form for a
    hidden concept."""
    if name not in PROTOCOLS:
        return people_by_law(name, d)
    return PROTOCOLS[name].guess(d, EPSILON, 1 - SUCCESS)


def one_round_bound(d: int) -> float:
    return masked_parity_one_round_bound(d, EPSILON, SUCCESS)


def local_bound(d: int) -> float:
    return parity_interactive_bound(d, EPSILON, SUCCESS)


@dataclass(frozen=True)
class Series:
    """The least numbers of people for one class, by dimension, each with a 95 % interval."""

    name: str
    rows: Sequence[Size]

    @property
    def counts(self) -> dict[int, ClientCount]:
        return {point.d: each.count for point, each in self.rows}

    @property
    def ends(self) -> tuple[int, int]:
        """The first dimension and the last."""
        return min(self.counts), max(self.counts)

    def in_rounds(self, rounds: int) -> bool:
        """True if every run took so many rounds."""
        return all(isinstance(each, Learned) and each.rounds == rounds for _, each in self.rows)

    def figure(self, d: int) -> Positive:
        """The number at one dimension, as a statistic; without error where it is exact."""
        count = self.counts[d]
        return least_count(count) if count.low < count.high else Positive(count.n, 0.0)

    def over_prediction(self) -> Positive:
        """The numbers in units of their predictions, in the mean over the dimensions, whose
        searches are independent."""
        return geometric_mean([self.figure(d) / prediction(self.name, d) for d in self.counts])

    def over_bound(self, d: int, bound: Callable[[int], float]) -> Positive:
        """How many times more people than this number a bound asks for."""
        return Positive(bound(d), 0.0) / self.figure(d)

    def power(self, people: Callable[[int], float] | None = None) -> float:
        """The power of d that the number grows with, from the first dimension to the last; or that
        of its prediction `people`."""
        first, last = self.ends
        number = people or (lambda d: self.counts[d].n)
        return math.log(number(last) / number(first)) / math.log(last / first)

    def describe(self, d: int) -> str:
        """The number at one dimension in words."""
        n, low, high = whole(self.counts[d])
        return f"{n:,} people at d = {d}" + (f" [{low:,} to {high:,}]" if low != high else "")

    def growth(self) -> str:
        """How the number grows, in words."""
        return f"d^{self.power():.1f} from d = {self.ends[0]} to {self.ends[1]}"
