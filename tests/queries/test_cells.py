"""Cells of a person's own table: each query against a naive reading of one record at a time, with missing, unlisted and outlying values."""

import math

import numpy as np
import pytest

from local_dp.errors import InputError
from local_dp.queries.cells import SEPARATOR, Below, Binned, Crossed, Grouped
from local_dp.queries.tables import Category, Question
from local_dp.records import Records

NUMBERS = [0.0, 1.0, 0.999999, 2.5, 3.0, -0.1, 3.0000001, math.inf, -math.inf, math.nan, 1e300]
CITIES = ["Oslo", "Rome", "", "Bonn", "oslo"]
TABLE = Records(
    {
        "x": np.array([number for number in NUMBERS for _ in CITIES]),
        "city": np.array([city for _ in NUMBERS for city in CITIES]),
        "n": np.arange(len(NUMBERS) * len(CITIES)),
    }
)


@pytest.mark.parametrize("spare", [(), ("missing",)])
@pytest.mark.parametrize("bins", [1, 2, 3, 7])
def test_a_number_falls_into_the_interval_that_holds_it(bins: int, spare: tuple[str, ...]) -> None:
    """Below, each interval with its lower end, the upper end in the last one, above; a missing number has its own symbol if there is one."""
    query = Binned("x", 0.0, 3.0, bins, spare)

    def naive(number: float) -> int:
        if math.isnan(number):
            return bins + 2 if spare else 0
        if number < 0:
            return 0
        if number > 3:
            return bins + 1
        return max(place for place in range(1, bins + 1) if place == 1 or number >= query.edges[place - 1])

    assert query.values(TABLE).tolist() == [naive(number) for number in TABLE["x"].tolist()]
    assert query.domain.size == bins + 2 + len(spare)


@pytest.mark.parametrize("end", [-0.1, 0.0, 1.0, 3.0, float(np.nextafter(3.0, 4.0))])
def test_a_missing_number_counts_in_its_share_below_an_end(end: float) -> None:
    """Everything below the end counts wholly, the end itself and what is above not at all, a missing number by the level that is asked for."""
    values = Below("x", end, 1234).values(TABLE).tolist()
    assert values == [1234 if math.isnan(number) else 65536 if number < end else 0 for number in TABLE["x"].tolist()]


def _symbol(city: str, spare: tuple[str, ...]) -> int:
    labels = ["Oslo", "Rome"]
    if city in labels:
        return labels.index(city)
    wanted = "other" if city else "missing"
    return 2 + spare.index(wanted) if wanted in spare else 0


@pytest.mark.parametrize("spare", [(), ("other",), ("missing",), ("other", "missing")])
def test_an_unlisted_and_a_missing_label_have_their_own_symbols(spare: tuple[str, ...]) -> None:
    """What is not in the list and what is missing are told apart, from the labels and from each other, where there are symbols for them."""
    query = Category("city", ("Oslo", "Rome"), spare)
    assert query.values(TABLE).tolist() == [_symbol(city, spare) for city in TABLE["city"].tolist()]


@pytest.mark.parametrize("extra", [(), ("other", "missing"), ("other", "none"), ("missing", "none"), ("none",)])
def test_a_combination_is_the_place_of_all_its_parts(extra: tuple[str, ...]) -> None:
    """A column, a question and a column again: the last runs fastest, and with "none" whoever lacks a part is in no combination."""
    query = Crossed(("city", "x > 1", "n"), (f"Oslo{SEPARATOR}Rome", "", f"3{SEPARATOR}20"), extra)
    spare = tuple(name for name in extra if name != "none")
    parts = (Category("city", ("Oslo", "Rome"), spare), Question("x > 1", ("missing",) if "missing" in spare else ()), Category("n", ("3", "20"), spare))
    values = [part.values(TABLE).tolist() for part in parts]
    second, third = parts[1].domain.size, parts[2].domain.size
    for row, cell in enumerate(query.values(TABLE).tolist()):
        city, number, n = str(TABLE["city"][row]), float(TABLE["x"][row]), int(TABLE["n"][row])
        lacks = {
            "missing": city == "" or math.isnan(number),
            "other": city in ("Bonn", "oslo") or n not in (3, 20),
        }
        if "none" in extra and any(lacking and name not in extra for name, lacking in lacks.items()):
            assert cell == query.domain.size - 1, row
        else:
            own = [value[row] for value in values]
            assert cell == (own[0] * second + own[1]) * third + own[2], row


def test_a_number_in_its_group() -> None:
    """The level within the group; nothing for whoever lacks the number or a listed group."""
    query = Grouped("x", 0.0, 3.0, "city", ("Oslo", "Rome"), steps=6)
    for row, value in enumerate(query.values(TABLE).tolist()):
        number, city = float(TABLE["x"][row]), str(TABLE["city"][row])
        if math.isnan(number) or city not in ("Oslo", "Rome"):
            assert value == 14, row
        else:
            assert value == ("Oslo", "Rome").index(city) * 7 + round(min(max(number, 0.0), 3.0) * 2), row
    assert Grouped("x", 0.0, 3.0, steps=6).values(TABLE).tolist()[-6] == 7  # without groups: NaN is nothing


@pytest.mark.parametrize(("make", "told"), [
    (lambda: Binned("x", 1.0, 1.0, 3), "low < high"), (lambda: Binned("x", 0.0, 1.0, 0), "bins"), (lambda: Below("x", math.nan, 0), "give a number"),
    (lambda: Below("x", 0.0, 65537), "missing"), (lambda: Binned("x", 1.0, 1.0 + 1e-15, 100), "fewer bins"),
    (lambda: Category("c", ("a", "b"), ("missing", "other")), "in this order"), (lambda: Crossed(("a", "b"), ("x",)), "one for each part"),
    (lambda: Crossed(("c",), (SEPARATOR.join(map(str, range(5000))),)), "labels"),
    (lambda: Grouped("x", 0.0, 1.0, "g", tuple(map(str, range(65)))), "groups"),
])  # fmt: skip
def test_bad_cells_are_refused_where_they_are_written(make: object, told: str) -> None:
    """One line that says what is wrong and what to give."""
    assert callable(make)
    with pytest.raises(InputError, match=told):
        make()
