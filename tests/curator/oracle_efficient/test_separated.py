"""Separator sets, shifts of their noise, and totals, by enumeration."""

from dataclasses import dataclass

import numpy as np
import pytest

from local_dp.arrays import Ints
from local_dp.curator.oracle_efficient.separated import Closed, Conjunctions, Parities, Separated, Thresholds, Weighted, least_shift
from tests.support.inputs.refusals import refuse

SMALL: list[Separated] = [*(Conjunctions(d) for d in (1, 2, 3, 5)), *(Parities(d) for d in (1, 2, 3, 5)), *(Thresholds(points) for points in (1, 2, 3, 9))]


def value(queries: Separated, q: int, x: int) -> int:
    """q(x) from the definition."""
    if isinstance(queries, Conjunctions):
        return int(q & ~x == 0)
    return (q & x).bit_count() & 1 if isinstance(queries, Parities) else int(x >= q)


@pytest.mark.parametrize("queries", SMALL, ids=str)
def test_separators_separate(queries: Separated) -> None:
    """Any two queries differ on a separator; the class is full where every pattern is a query's."""
    patterns = queries.values(queries.separators)
    assert len(np.unique(patterns, axis=0)) == queries.size == len(patterns)
    assert queries.full == (queries.size == 2 ** len(queries.separators))


@pytest.mark.parametrize("queries", [Conjunctions(1), Conjunctions(3), Parities(1), Parities(3), Thresholds(1), Thresholds(2), Thresholds(4)], ids=str)
def test_shifts_are_enough_and_least(queries: Separated) -> None:
    """For all queries and replaced examples: the noise moves by 2 m in sum for conjunctions and parities, and by 2 for thresholds, and by no less."""
    points = queries.separators if isinstance(queries, Thresholds) else np.arange(queries.size)
    assert least_shift(queries, points) == queries.shift


@pytest.mark.parametrize(("queries", "agreed"), [(Conjunctions(1), 1), (Conjunctions(2), 3), (Parities(1), 0), (Parities(2), 0)], ids=str)
def test_complements_are_separated_by_one_more_point(queries: Separated, agreed: int) -> None:
    """The second half is one minus the first, all patterns differ, and 2 (m + 1) is enough, and the least for parities of two bits."""
    closed = Closed(queries, agreed)
    points = np.arange(queries.size)
    values = closed.values(points)
    assert np.array_equal(values[queries.size :], ~values[: queries.size])
    assert len(np.unique(closed.values(closed.separators), axis=0)) == closed.size == 2 ** len(closed.separators)
    least = least_shift(closed, points)
    assert least is not None
    assert least <= closed.shift
    assert least == closed.shift or queries != Parities(2)


@dataclass(frozen=True)
class Unseparated(Conjunctions):
    """Unit vectors for points with one zero: those of disjunctions."""

    @property
    def separators(self) -> Ints:
        return np.left_shift(1, np.arange(self.d, dtype=np.int64))


def test_wrong_separators_are_told() -> None:
    """Unit vectors do not separate conjunctions of 3 coordinates."""
    assert least_shift(Unseparated(3), np.arange(8)) is None


@pytest.mark.parametrize("queries", SMALL, ids=str)
def test_totals_are_sums_of_values(queries: Separated) -> None:
    """For weights of both signs, against the definition."""
    rng = np.random.default_rng(4)
    points = rng.integers(0, queries.points if isinstance(queries, Thresholds) else queries.size, 20)
    weights = rng.integers(-9, 10, 20)
    expected = [sum(int(w) * value(queries, q, int(x)) for x, w in zip(points, weights, strict=True)) for q in range(queries.size)]
    assert queries.totals(Weighted(points, weights)).tolist() == expected


def test_bad_input() -> None:
    one = np.ones(1, dtype=np.int64)
    refuse(
        ("outside the cube", lambda: Conjunctions(2).totals(Weighted(4 * one, one))),
        ("a point lies outside", lambda: Thresholds(2).totals(Weighted(2 * one, one))),
        ("up to 24", lambda: Conjunctions(30).totals(Weighted(one, one))),
        ("whole weight", lambda: Weighted(one, one / 2)),  # type: ignore[arg-type]
        ("enumerated up to", lambda: least_shift(Parities(13), one)),
        ("do not agree", lambda: Closed(Parities(2), 1)),
    )
