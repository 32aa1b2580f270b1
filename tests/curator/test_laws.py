"""The enumerator: every pair of neighbours, every set of outcomes, every transcript; and databases of points."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from local_dp.curator.laws import SmallDatabases, hockey_stick, transcripts, whole_weights, worst_transcripts
from local_dp.curator.mechanism import Law, Mechanism, Neighbours
from local_dp.curator.multisets import MAX_BITS, LabelledMultiset, Multiset
from local_dp.draws import Draws
from local_dp.errors import InputError
from local_dp.interaction import Adaptive, Nonadaptive, Play
from local_dp.loss import ATTO, Approximate, Pure

Rows = tuple[tuple[int, int], ...]
UNIVERSE = [(1, 1), (0, 1), (0, 0), (1, 0)]


def as_they_are(rows: Rows) -> Rows:
    return rows


def differ(one: Rows, other: Rows) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """What each has that the other has not."""
    return sorted((Counter(one) - Counter(other)).elements()), sorted((Counter(other) - Counter(one)).elements())


def are_neighbours(one: Rows, other: Rows, kind: Neighbours) -> bool:
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
    result = list(SmallDatabases(UNIVERSE, n, as_they_are).pairs(kind))
    assert set(result) == expected
    assert len(result) == len(expected)


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
    """Reveals how many records are (1, 1) with probability `atto` / 1e18, else None."""

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


def test_a_law_without_an_outcome_is_refused() -> None:
    """Probabilities that do not sum to 1 are an error of the law, not a matter of scale."""
    assert whole_weights({0: Fraction(1, 2), 1: Fraction(1, 3), 2: Fraction(1, 6)}) == {0: 3, 1: 2, 2: 1}
    for law in ({0: Fraction(1, 2), 1: Fraction(1, 3)}, {0: Fraction(1), 1: Fraction(1, 10**30)}):
        with pytest.raises(InputError, match="miss 1"):
            whole_weights(law)


def test_what_cannot_be_enumerated_is_refused() -> None:
    for n in (0, 30):
        with pytest.raises(InputError, match="nothing or too many to enumerate"):
            next(SmallDatabases(UNIVERSE * 4, n, as_they_are).pairs("replace"))


@dataclass(frozen=True)
class Coin(Mechanism[tuple[int, ...], int, Pure]):
    """1 with weight `high` if the only record is 1, else `low`; 0 with weight 1."""

    high: int
    low: int = 1

    @property
    def loss(self) -> Pure:
        return Pure(0)

    def release(self, database: tuple[int, ...], draws: Draws) -> int:
        raise NotImplementedError

    def law(self, database: tuple[int, ...]) -> Mapping[int, int]:
        return {1: self.high if database == (1,) else self.low, 0: 1}


DATABASES: SmallDatabases[tuple[int], tuple[int, ...]] = SmallDatabases([(0,), (1,)], 1, lambda records: records[0])


def again_after_one() -> Play[Coin, int, int]:
    """Asks a second coin if the first one shows 1."""
    (first,) = yield (Coin(3),)
    if first:
        yield (Coin(5),)
    return first


def test_a_round_is_a_product() -> None:
    both = Nonadaptive((Coin(3), Coin(1)), sum)
    assert transcripts(both, (1,)) == {((x, y),): Fraction(3 if x else 1, 8) for x in (0, 1) for y in (0, 1)}


def test_what_is_asked_depends_on_what_was_told() -> None:
    """The branch that ends has one answer, the other two; and the worst ratio of each transcript, either way round."""
    algorithm = Adaptive(again_after_one)
    assert transcripts(algorithm, (1,)) == {((0,),): Fraction(1, 4), ((1,), (0,)): Fraction(1, 8), ((1,), (1,)): Fraction(5, 8)}
    assert worst_transcripts(algorithm, DATABASES) == {((0,),): 2, ((1,), (0,)): 2, ((1,), (1,)): Fraction(5, 2)}


@pytest.mark.parametrize("bits", [3, 63, 64, 65, 200, MAX_BITS])
def test_points_are_sorted_and_counted(bits: int) -> None:
    """Whole numbers of any size, in any order; 64 bits fit a machine word, more do not and are not cut."""
    top = (1 << bits) - 1
    held = Multiset.of([top, 0, 5, top, top - 1], bits)
    assert [int(value) for value in held.values] == [0, 5, top - 1, top]
    assert held.counts.tolist() == [1, 1, 1, 2]
    assert held.size == 5
    assert held.values.dtype == (np.uint64 if bits <= 64 else object)


def test_labels_are_counted_apart() -> None:
    held = LabelledMultiset.of_pairs([(7, 1), (2, 0), (7, 0), (7, 1)], 3)
    assert (held.values.tolist(), held.zeros.tolist(), held.ones.tolist(), held.size) == ([2, 7], [1, 1], [0, 2], 4)
    assert (held.labelled(1).values.tolist(), held.labelled(0).values.tolist(), held.labelled(0).size) == ([7], [2, 7], 2)


def test_nobody_is_a_database_too() -> None:
    assert Multiset.of([], 70).size == LabelledMultiset.of_pairs([], 8).size == 0
