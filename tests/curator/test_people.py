"""People with several rows: what counts of each, and the exact loss of a release about all rows of
a person."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from local_dp.curator.clipped import NoisySum
from local_dp.curator.mechanism import probabilities
from local_dp.curator.people import kept_rows, loss_of_group, loss_of_row
from local_dp.errors import InputError
from local_dp.loss import Approximate, Pure, approximate, exp_epsilon
from local_dp.queries.tables import Question
from local_dp.records import Records
from tests.support.wrong import wrong


@wrong(
    "local_dp.curator.people:kept_rows",
    "_, first, count = np.unique(person[order], return_index=True, return_counts=True)",
    (
        "_, first, count = np.unique(person[order], return_index=True, return_counts=True)\n    "
        "rows = max(rows, int(count.max()))"
    ),
    "a person with more than M rows changes more than M of them",
)
def test_every_person_has_equally_many_rows() -> None:
    """The first rows of each, in turn again for a person with fewer; rows without a person are one
    person's."""
    person = np.array(["b", "a", "b", "", "b", "a", "b", ""])
    assert kept_rows(person, 3).tolist() == [3, 7, 3, 1, 5, 1, 0, 2, 4]
    assert kept_rows(person, 1).tolist() == [3, 1, 0]
    numbers = np.array([np.nan, 2.0, np.nan, 2.0])
    assert kept_rows(numbers, 2).tolist() == [1, 3, 0, 2]


def _people(most: int) -> Iterator[tuple[int, ...]]:
    """The rows of a person, one bit each."""
    for rows in range(1, most + 1):
        yield from combinations_with_replacement((0, 1), rows)


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_a_person_replaced_loses_what_is_said(rows: int) -> None:
    """All tables of two people with up to four rows each, all neighbours, exact laws: within e^eps,
    and it is reached."""
    loss = Pure(900_000_000)
    mechanism = NoisySum(Question("x == 1"), loss_of_row(loss, rows).epsilon)

    def law(*people: tuple[int, ...]) -> dict[int, Fraction]:
        person = np.repeat(np.arange(len(people)), [len(each) for each in people])
        bits = np.concatenate(people)
        return probabilities(mechanism.law(Records({"x": bits[kept_rows(person, rows)]})))

    worst = Fraction(1)
    for other, before, after in product([(0,), (0, 1)], _people(4), _people(4)):
        first, second = law(other, before), law(other, after)
        worst = max(worst, *(first[answer] / second[answer] for answer in first))
    assert (
        exp_epsilon(loss.nano - rows) < worst <= exp_epsilon(loss.nano) * (1 + Fraction(1, 10**48))
    )


@wrong(
    "local_dp.curator.people:loss_of_group",
    "math.ceil(loss.atto * _steps(loss.nano, size))",
    "size * loss.atto",
    "each step of a group multiplies the deltas before it by e^epsilon",
    at="1",
)
@pytest.mark.parametrize("size", [1, 2, 7])
def test_the_part_of_a_row_is_the_largest(size: int) -> None:
    """Together it is within the loss, one unit more is not; the closed form of delta agrees."""
    loss = approximate(1.4, 1e-6)
    part = loss_of_row(loss, size)
    whole = loss_of_group(part, size)
    assert whole.nano <= loss.nano
    assert whole.atto <= loss.atto
    more = loss_of_group(Approximate(part.nano, part.atto + 1), size)
    assert loss_of_group(Approximate(part.nano + 1, part.atto), size).nano > loss.nano
    assert more.atto > loss.atto
    closed = part.delta * (np.expm1(size * part.epsilon) / np.expm1(part.epsilon))
    assert whole.delta == pytest.approx(closed, rel=1e-9)
    assert loss_of_group(Pure(5), size) == Pure(5 * size)
    assert loss_of_group(Approximate(0, 5), size) == Approximate(0, 5 * size)


def test_too_little_for_a_row() -> None:
    for loss in (Pure(3), Approximate(10**9, 3)):
        with pytest.raises(InputError, match="too little for one row"):
            loss_of_row(loss, 4)
    with pytest.raises(InputError, match="rows is 0"):
        kept_rows(np.arange(3), 0)
