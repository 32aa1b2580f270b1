"""The one enumerator: every pair of neighbours, every set of outcomes, in whole numbers."""

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from local_dp.curator.laws import SmallDatabases, hockey_stick, whole_weights
from local_dp.curator.mechanism import Law, Mechanism, Neighbours
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.loss import ATTO, Approximate

Rows = tuple[tuple[int, int], ...]
UNIVERSE = [(1, 1), (0, 1), (0, 0), (1, 0)]


def as_they_are(rows: Rows) -> Rows:
    return rows


def differ(one: Rows, other: Rows) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """What each has that the other has not."""
    return sorted((Counter(one) - Counter(other)).elements()), sorted((Counter(other) - Counter(one)).elements())


def are_neighbours(one: Rows, other: Rows, kind: Neighbours) -> bool:
    """By definition."""
    gone, come = differ(one, other)
    if kind in ("replace", "labels"):
        return len(gone) == len(come) == 1 and (kind == "replace" or gone[0][0] == come[0][0])
    return len(gone) + len(come) == 1 and (kind == "add-remove" or (max(Counter(one + other).values()) <= 2 and len({*one}) == len(one)))


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("kind", ["replace", "labels", "add-remove", "edge"])
def test_every_pair_of_neighbours_is_enumerated_once(kind: Neighbours, n: int) -> None:
    """The pairs are exactly those that a search through all pairs of databases finds by the definition, each in both orders."""
    sizes = (n,) if kind in ("replace", "labels") else (n - 1, n)
    every = [rows for size in sizes for rows in combinations_with_replacement(sorted(UNIVERSE), size)]
    if kind == "edge":
        every = [rows for rows in every if len(set(rows)) == len(rows)]
    expected = {(one, other) for one, other in product(every, every) if are_neighbours(one, other, kind)}
    found = list(SmallDatabases(UNIVERSE, n, as_they_are).pairs(kind))
    assert set(found) == expected
    assert len(found) == len(expected)


def test_hockey_stick_is_the_worst_set() -> None:
    """On 200 random pairs of laws, with different totals and impossible outcomes, it is the largest Pr[S] - e^eps Pr'[S] over all sets S."""
    generator = np.random.default_rng(0)
    for _ in range(200):
        law, other = ({outcome: int(weight) for outcome, weight in enumerate(generator.integers(0, 6, 4)) if weight or not outcome} for _ in range(2))
        if not sum(law.values()) or not sum(other.values()):
            continue
        growth = Fraction(int(generator.integers(4, 12)), 4)
        sets = [[outcome for outcome, inside in enumerate(chosen) if inside] for chosen in product((0, 1), repeat=4)]
        ours, theirs = ([Fraction(sum(one.get(outcome, 0) for outcome in chosen), sum(one.values())) for chosen in sets] for one in (law, other))
        assert hockey_stick(law, other, growth) == max(a - growth * b for a, b in zip(ours, theirs, strict=True))


@dataclass(frozen=True)
class Leak(Mechanism[Rows, int | None, Approximate]):
    """Reveals how many records are (1, 1) with probability `atto` / 1e18, else says nothing."""

    atto: int

    @property
    def loss(self) -> Approximate:
        return Approximate(0, self.atto)

    def release(self, database: Rows, draws: Draws) -> int | None:
        return database.count((1, 1)) if draws.coin(Fraction(self.atto, ATTO)) else None

    def law(self, database: Rows) -> Law[int | None]:
        return whole_weights({None: 1 - Fraction(self.atto, ATTO), database.count((1, 1)): Fraction(self.atto, ATTO)})


def test_a_delta_is_found_exactly() -> None:
    """A mechanism that fails with probability delta has that delta at every epsilon; one that fails twice as often is caught; its ratios are infinite."""
    small = SmallDatabases(UNIVERSE, 2, as_they_are)
    assert small.worst_delta(Leak(10**12)) == Fraction(1, 10**6) == small.worst_delta(Leak(10**12), Approximate(3 * 10**9, 0))
    assert small.worst_delta(Leak(2 * 10**12), Leak(10**12).loss) > Fraction(1, 10**6)
    with pytest.raises(InputError, match="the loss is infinite"):
        small.worst_ratios(Leak(10**12))


def test_what_cannot_be_enumerated_is_refused() -> None:
    """Too many databases, and none at all."""
    for n in (0, 30):
        with pytest.raises(InputError, match="nothing or too many to enumerate"):
            next(SmallDatabases(UNIVERSE * 4, n, as_they_are).pairs("replace"))
