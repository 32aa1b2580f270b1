"""The record that everybody has, under a trusted curator: with a delta a number of people is enough
that does not depend on the number of possible records."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Generic

from local_dp.checks import check_whole
from local_dp.curator.mechanism import D, Law, R, WithinDelta
from local_dp.curator.selection.stable import UNIT
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import Approximate, exp_epsilon

MAX_RECORDS = 30  # 5,604 partitions


@lru_cache(maxsize=64)
def naming(loss: Approximate, records: int) -> tuple[int, ...]:
    """Pr[a value is named | c of n records have it], c = 0..n, in units of 2^-64.

    a[0] = 0, and a[c + 1] is e^eps a[c] + delta, from c = n / 2 on at most 1 - e^-eps (1 - a[c]) -
    b, where b is the most that all other values are named.
    """
    growth, spare = exp_epsilon(loss.nano), Fraction(loss.atto * UNIT, 10**18)
    few, weights = [0], [0]
    for _ in range(records):
        few.append(math.floor(few[-1] * growth + spare))
    for count in range(records):
        likelier = math.floor(weights[-1] * growth + spare)
        others = math.ceil((UNIT - weights[-1]) / growth) + few[records - count]
        weights.append(likelier if 2 * count < records else max(0, min(likelier, UNIT - others)))
    return tuple(weights)


def partitions(total: int, most: int) -> Iterator[tuple[int, ...]]:
    """Every way to write a number as a sum of parts up to `most`, the largest first."""
    if total == 0:
        yield ()
    for first in range(min(total, most), 0, -1):
        for rest in partitions(total - first, first):
            yield first, *rest


@lru_cache(maxsize=64)
def spent(weights: tuple[int, ...], growth: Fraction) -> Fraction:
    """The least delta of values named like this, over all databases of n records and all replaced
    records, exactly. Raises InputError for chances above 1.

    A database is a partition of n: how often each of its values occurs. One value loses a record,
    and another one, or a new one, gains it.
    """
    records, worst, over, under = len(weights) - 1, 0, growth.numerator, growth.denominator
    for parts in partitions(records, records):
        none = UNIT - sum(weights[part] for part in parts)
        if none < 0:
            raise InputError(
                f"values that occur {parts} times would be named with a probability above 1; give "
                "another number of records"
            )
        for less in set(parts):
            others = list(parts)
            others.remove(less)
            for more in {*others, 0}:
                left = none + weights[less] - weights[less - 1] + weights[more] - weights[more + 1]
                pairs = (
                    (weights[less], weights[less - 1]),
                    (weights[more], weights[more + 1]),
                    (none, left),
                )
                worst = max(worst, sum(max(0, under * one - over * other) for one, other in pairs))
    return Fraction(worst, under * UNIT)


@dataclass(frozen=True)
class CommonRecord(WithinDelta[D, R | None], Generic[D, R]):
    """The value that all `records` records have, with probability `naming`; otherwise, or where
    none stands out, None. Each value by how often it occurs.

    Privacy: (eps, delta), enumerated over all partitions of the number of records, whatever the
    domain (`spent`). Utility: at epsilon 1 and delta 1e-9 22 records are enough for 90 %, in any
    domain, and in a large one no mechanism does it with fewer (limits 12.6). 1 <= records <= 30.
    """

    summary = "Releases the value that all records share, or none"
    counts: Callable[[D], Mapping[R, int]]
    epsilon: float
    delta: float
    records: int

    def __post_init__(self) -> None:
        check_whole("records", self.records, 1, MAX_RECORDS)
        super().__post_init__()
        if spent(self.named, exp_epsilon(self.loss.nano)) > Fraction(self.loss.atto, 10**18):
            raise InputError(
                f"{self.records} records cannot be named within {self.loss}; give another number "
                "of records"
            )

    @property
    def named(self) -> tuple[int, ...]:
        """Pr[named] for each count, in units of 2^-64."""
        return naming(self.loss, self.records)

    def law(self, database: D) -> Law[R | None]:
        counts = self.counts(database)
        if sum(counts.values()) != self.records:
            raise InputError(
                f"the database has {sum(counts.values())} records; the mechanism was made for "
                f"{self.records}"
            )
        law: dict[R | None, int] = {
            value: self.named[count] for value, count in counts.items() if count
        }
        return law | {None: UNIT - sum(law.values())}

    def release(self, database: D, draws: Draws) -> R | None:
        law = self.law(database)
        return list(law)[draws.among(list(law.values()))]
