"""Thresholds on an ordered domain, by dyadic intervals."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from local_dp.arrays import Ints
from local_dp.checks import check_whole
from local_dp.interaction import Nonadaptive
from local_dp.learners.learner import Learner, signs
from local_dp.oracles.statistical.oracles import Statistical
from local_dp.queries.examples import SignedLabel
from local_dp.records import Records


@dataclass(frozen=True)
class AtLeast:
    """+1 where x >= threshold, else -1."""

    threshold: int

    def __str__(self) -> str:
        return f"x >= {self.threshold}"

    def predict(self, records: Records) -> Ints:
        """The label of each record, shape (n,)."""
        return signs(records["x"] >= self.threshold)


def dyadic(bits: int) -> tuple[tuple[int, int], ...]:
    """The left children of the dyadic tree over 0..2^bits - 1, as (start, stop): every prefix is a disjoint union of at most `bits` of them, or everything."""
    return tuple((start, start + width) for width in (1 << level for level in range(bits)) for start in range(0, 1 << bits, 2 * width))


def prefix(stop: int, bits: int) -> tuple[tuple[int, int], ...]:
    """The left children whose disjoint union is 0..stop - 1, for stop < 2^bits: one for each binary digit 1 of `stop`."""
    parts, start = [], 0
    for level in reversed(range(bits)):
        if stop >> level & 1:
            parts.append((start, start + (1 << level)))
            start += 1 << level
    return tuple(parts)


@dataclass(frozen=True, kw_only=True)
class Thresholds(Learner[AtLeast]):
    """Learns a threshold on {0, ..., 2^bits - 1}, agnostically and under every distribution: error at most that of the best one plus alpha.

    The error of the threshold t is a constant plus E[y 1(x < t)], and that is a sum of at most `bits` dyadic queries; two such sums are compared.
    Asks for the 2^bits - 1 left children at once, within alpha / (2 bits). Source: dyadic (tree) decomposition; limits 9.
    """

    name: ClassVar[str] = "thresholds"
    source: ClassVar[str] = "dyadic intervals"
    bits: int = 4

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("bits", self.bits, 1, 12)

    @property
    def proven(self) -> float:
        return self.alpha / (2 * self.bits)

    @property
    def queries(self) -> int:
        return (1 << self.bits) - 1

    @property
    def rounds(self) -> int:
        return 1

    def algorithm(self) -> Statistical[AtLeast]:
        parts = dyadic(self.bits)

        def decode(answers: tuple[float, ...]) -> AtLeast:
            signed = dict(zip(parts, answers, strict=True))
            excess = [sum(signed[part] for part in prefix(stop, self.bits)) for stop in range(1 << self.bits)]
            return AtLeast(int(np.argmin(excess)))

        return Nonadaptive(tuple(self.ask(SignedLabel(f"x >= {start} and x < {stop}", "y")) for start, stop in parts), decode)
