"""Encoded queries: what a learner sees of a record, incomplete records, the form on the wire, and what is refused."""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_dp.domains import levels
from local_dp.errors import InputError, RefusedError
from local_dp.queries.cells import Cell
from local_dp.queries.encoded import Encoded, Encoding, encoded
from local_dp.queries.examples import Product
from local_dp.queries.numbers import STEPS
from local_dp.queries.query import Query
from local_dp.queries.registry import QUERIES
from local_dp.queries.tables import Question
from local_dp.queries.vectors import Descent
from local_dp.records import Records

PEOPLE = Records(
    {
        "age at visit": np.array([20.0, 40.0, 60.0, 90.0, math.nan]),
        "sex": np.array(["F", "M", "", "F", "M"]),
        "ill": np.array([1, 0, 1, 0, 1]),
    }
)
SEEN = Encoding(features=("age at visit", "sex == 'F'"), lows=(20.0, 0.0), highs=(80.0, 1.0), scale=0.5, constant=1, label="ill")


def test_numbers_are_scaled_and_questions_are_signs() -> None:
    """Bounds go to -scale and scale, what is beyond them is clipped, yes is scale and no -scale; the last feature is constant, the label +1 or -1."""
    assert SEEN.shown == ("x0", "x1", "x2")
    shown = {name: values.tolist() for name, values in SEEN.encode(PEOPLE.take(np.array([0, 1, 3]))).columns.items()}
    assert shown["x0"] == pytest.approx([-0.5, -1 / 6, 0.5])
    assert (shown["x1"], shown["x2"], shown["y"]) == ([0.5, -0.5, 0.5], [0.5] * 3, [1.0, -1.0, -1.0])


def test_bits_and_grids() -> None:
    """Bits are 1 above the middle of the bounds or for yes; a grid cuts the bounds into equal steps."""
    bits = Encoding(features=SEEN.features, lows=SEEN.lows, highs=SEEN.highs, form="bits", label="ill == 0").encode(PEOPLE)
    assert [bits[name].tolist() for name in ("x0", "x1", "y")] == [[0, 0, 1, 1, 0], [1, 0, 0, 1, 0], [-1.0, 1.0, -1.0, 1.0, -1.0]]
    grid = Encoding(features=("age at visit",), lows=(20.0,), highs=(80.0,), form="grid", steps=4, label="ill").encode(PEOPLE)
    assert grid["x"].tolist() == [0, 1, 2, 3, 2]
    assert Encoding(features=("ill",), lows=(0.0,), highs=(1.0,), label="age at visit", label_low=20.0, label_high=80.0).encode(PEOPLE)["y"][
        1
    ] == pytest.approx(-1 / 3)


def test_incomplete_records_count_as_zero() -> None:
    """With something missing that the encoding reads, a yes/no query is neither yes nor no, and a level the middle one; otherwise the query's own value."""
    assert SEEN.columns == {"age at visit", "sex", "ill"}
    asked = encoded(SEEN, Question("y == 1"))
    assert asked.domain == levels(2)
    assert asked.values(PEOPLE).tolist() == [2, 0, 1, 0, 1]
    product = encoded(SEEN, Product(("x2",)))
    assert product.domain == levels(STEPS)
    assert product.values(PEOPLE).tolist() == [3 * STEPS // 4, 3 * STEPS // 4, STEPS // 2, 3 * STEPS // 4, STEPS // 2]


@given(weights=st.lists(st.floats(-1e9, 1e9), min_size=3, max_size=3), place=st.integers(0, 2))
def test_an_encoded_query_travels_exactly(weights: list[float], place: int) -> None:
    """Rebuilt from its name and parameters it is equal, every weight to the last bit, and gives one record what it gives it among others."""
    query = encoded(SEEN, Descent("logistic", SEEN.shown, "y", tuple(weights), place, 0.5))
    rebuilt = QUERIES.build(query.name, query.params())
    assert rebuilt == query
    assert isinstance(rebuilt, Encoded)
    assert rebuilt.inner == Descent("logistic", SEEN.shown, "y", tuple(weights), place, 0.5)
    together = query.values(PEOPLE)
    assert [int(query.values(PEOPLE.take(slice(row, row + 1)))[0]) for row in range(5)] == together.tolist()


GOOD: dict[str, Any] = {"features": ("a",), "lows": (0.0,), "highs": (1.0,), "query": json.dumps(["question", {"text": "x0 == 1"}])}


@pytest.mark.parametrize("wrong", [
    {"features": ()}, {"features": ("a",) * 200}, {"lows": (0.0, 1.0)}, {"highs": (0.0,)}, {"highs": (math.inf,)}, {"lows": (math.nan,)}, {"form": "round"},
    {"scale": 0.0}, {"scale": 2.0}, {"steps": 1}, {"steps": 10**6}, {"label": "a", "label_low": 1.0}, {"label": "a >"}, {"features": ("a > ",)},
    {"form": "grid", "features": ("a", "b"), "lows": (0.0, 0.0), "highs": (1.0, 1.0)},
    {"query": ""}, {"query": "{}"}, {"query": "[1, 2]"}, {"query": '["question"]'}, {"query": '["question", {"text": null}]'}, {"query": '["question", []]'},
    {"query": '["question", {"text": "x0 >"}]'}, {"query": '["unknown", {}]'}, {"query": '["question", {"text": [[1]]}]'}, {"query": "[" * 100_000},
    {"query": json.dumps(["encoded", {}])}, {"query": json.dumps(["category", {"column": "x0", "labels": ["a", "b", "c"]}])}, {"scale": "1"}, {"lows": ("0",)},
    {"query": json.dumps(["bounded", {"column": "x0", "low": 0.0, "high": math.inf}])},
])  # fmt: skip
def test_hostile_parameters_are_refused_with_a_code(wrong: dict[str, Any]) -> None:
    """Whatever a server sends, an encoding that cannot be is refused when it is built; the right one is not."""
    QUERIES.build("encoded", GOOD)
    with pytest.raises(RefusedError):
        QUERIES.build("encoded", {**GOOD, **wrong})


def test_a_text_column_is_no_feature() -> None:
    """A text column, or one that is not there, is refused on the schema alone."""
    for text in ("sex", "height", "height > 2"):
        with pytest.raises(InputError):
            encoded(Encoding(features=(text,), lows=(0.0,), highs=(1.0,)), Question("x0 == 1")).values(PEOPLE.take(slice(0, 0)))


def test_cells() -> None:
    """The number of edges that a value reaches, and a symbol of its own for a missing one; edges ascend and are finite."""
    cell: Query = Cell("v", (-1.0, 0.0, 2.5))
    assert cell(Records({"v": np.array([-9.0, -1.0, -0.5, 0.0, 2.5, math.inf, -math.inf, math.nan])})).tolist() == [0, 1, 1, 2, 3, 3, 0, 4]
    assert cell.domain.size == 5
    assert [Cell("v", (-1.0, 0.0)).ends(place) for place in range(3)] == [(-math.inf, -1.0), (-1.0, 0.0), (0.0, math.inf)]
    for wrong in ((), (1.0, 1.0), (2.0, 1.0), (0.0, math.nan), (0.0, math.inf)):
        with pytest.raises(InputError):
            Cell("v", wrong)
