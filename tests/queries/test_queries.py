"""Queries, cells and encodings of columns: the value of each record inside the declared domain, and
hostile parameters refused with a code."""

import json
import math
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import local_dp as ldp
from local_dp.domains import levels
from local_dp.errors import InputError, RefusedError
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.queries.cells import SEPARATOR, Below, Binned, Cell, Crossed, Grouped
from local_dp.queries.encoded import Encoded, Encoding, encoded
from local_dp.queries.examples import Product
from local_dp.queries.query import QUERIES, STEPS, Query
from local_dp.queries.tables import Bounded, Category, Question
from local_dp.queries.vectors import Descent
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from tests.support.inputs.questions import ANY_COLUMNS, ANY_PARAMETERS, EXTREMES, SHARP
from tests.support.inputs.refusals import refuse
from tests.support.wrong import wrong as wrong_twin

ODD: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**64), 2**64), st.floats(), st.text(max_size=8),
    st.binary(max_size=4), st.lists(st.integers(), max_size=3),
    st.tuples(st.text(max_size=2), st.text(max_size=2)),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)  # fmt: skip


@settings(max_examples=150)
@given(
    name=st.one_of(st.sampled_from(list(RANDOMIZERS)), st.text(max_size=8)),
    params=st.dictionaries(st.sampled_from(["epsilon", "k", "steps", "word_bits", "x"]), ODD),
)
@pytest.mark.long
def test_any_randomizer_request_is_built_or_refused(name: str, params: dict[str, Any]) -> None:
    """Whatever the parameters, the registry builds a randomizer that declares a domain, or refuses
    with a code."""
    try:
        randomizer = RANDOMIZERS.build(name, {"epsilon": 1.0, **params})
    except RefusedError as error:
        # some are built, some refused
        assert error.code in ("unknown-randomizer", "bad-parameters")  # noqa: PT017
        return
    assert randomizer.domain.size >= 2
    assert randomizer.params().keys() >= params.keys()


@settings(max_examples=200)
@given(
    name=st.one_of(st.sampled_from(sorted(QUERIES)), st.text(max_size=8)),
    params=st.dictionaries(
        st.sampled_from(["text", "column", "labels", "low", "high", "d", "r"]), ODD
    ),
)
def test_any_query_request_is_built_or_refused(name: str, params: dict[str, Any]) -> None:
    try:
        query = QUERIES.build(name, params)
    except RefusedError as error:
        assert error.code in ("unknown-query", "bad-parameters")  # noqa: PT017
        return
    assert query.domain.size >= 2


def test_a_query_and_a_randomizer_must_share_a_domain() -> None:
    refuse(("takes", lambda: LocalQuery(Question("a > 0"), GRR(1.0, k=3), Cohort(0, 1))))
    LocalQuery(Question("a > 0"), BinaryRR(1.0), Cohort(0, 1))


@pytest.mark.parametrize(
    "column",
    [np.array(["a"]), np.array([0.5]), np.array([1]), np.array([1], dtype=np.uint8)],
    ids=lambda column: str(column.dtype),
)
@pytest.mark.parametrize("name", QUERIES)
def test_every_query_answers_or_refuses_by_the_schema(name: str, column: np.ndarray) -> None:
    """On columns of any type a query gives values of its domain or an InputError, and no row
    decides which: a server may ask a table anything."""
    query = QUERIES.build(name, ANY_PARAMETERS[name])
    records = Records(dict.fromkeys(ANY_COLUMNS, column))
    outcomes = []
    for rows in (0, 1):
        try:
            values = query(records.take(slice(0, rows)))
        except InputError:
            outcomes.append("refused")
        else:
            assert query.domain.clip(values).shape[0] == rows
            outcomes.append("answered")
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("name", SHARP)
def test_no_record_makes_a_query_warn(name: str) -> None:
    """Whatever number a record holds, its value is inside the domain and numpy does not warn: a
    warning for some records only can be timed."""
    query = QUERIES.build(name, SHARP[name])
    pairs = np.array(np.meshgrid(EXTREMES, EXTREMES)).reshape(2, -1)
    records = Records({"x": pairs[0], "y": pairs[1], "b": pairs[0][::-1].copy()})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = query.values(records)
        for client in range(len(records)):
            assert np.array_equal(
                query.values(records.take(slice(client, client + 1)))[0], values[client]
            )
    assert query.domain.low <= values.min() <= values.max() <= query.domain.high
    # the wrong twin: the bare query warns for some of these records
    with pytest.warns(RuntimeWarning):
        query(records)


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
    """Below, each interval with its lower end, the upper end in the last one, above; a missing
    number has its own symbol if there is one."""
    query = Binned("x", 0.0, 3.0, bins, spare)

    def naive(number: float) -> int:
        if math.isnan(number):
            return bins + 2 if spare else 0
        if number < 0:
            return 0
        if number > 3:
            return bins + 1
        return max(
            place for place in range(1, bins + 1) if place == 1 or number >= query.edges[place - 1]
        )

    assert query.values(TABLE).tolist() == [naive(number) for number in TABLE["x"].tolist()]
    assert query.domain.size == bins + 2 + len(spare)


@wrong_twin(
    "local_dp.queries.cells:equal_edges",
    "(start * (bins - place) + end * place) / (unit * bins)",
    "low * (1 - place / bins) + high * (place / bins)",
    "of ages from 0 to 100 a seven counts as a six",
    at="0-100-100",
)
@pytest.mark.parametrize(
    ("low", "high", "bins"),
    [
        (0, 100, 100),
        (18, 65, 47),
        (1900, 2000, 100),
        (0, 365, 365),
        (-0.3, 0.6, 9),
        (0.1, 1.1, 10),
        (-1e150, 1e150, 3),
    ],
)
def test_the_lower_end_of_an_interval_is_as_it_is_typed(low: float, high: float, bins: int) -> None:
    """Whole numbers and decimals: of the ends, in exact arithmetic, the nearest number is in the
    interval that it begins, locally and for the curator."""
    first = Fraction(str(low))
    last = Fraction(str(high))
    ends = np.array([float(first + (last - first) * place / bins) for place in range(bins + 1)])
    cells = Binned("x", low, high, bins)(Records({"x": ends})).tolist()
    assert cells == [*range(1, bins + 1), bins]
    table = {"x": np.repeat(ends, 100)}
    release = ldp.curate.intervals(
        table, "x", bounds=(low, high), bins=max(bins, 2), epsilon=24, seed=1
    )
    below = release.to_dict()["result"]["below"]
    assert np.round(np.diff(below) / 100).tolist() == [1.0] * (bins - 1) + [2.0]


@wrong_twin(
    "local_dp.queries.tables:Category.found",
    "self._symbol('other')",
    "0",
    "a value that is not listed counts as the first label",
    at="extra3",
)
@pytest.mark.parametrize(
    "extra", [(), ("other", "missing"), ("other", "none"), ("missing", "none"), ("none",)]
)
def test_a_combination_is_the_place_of_all_its_parts(extra: tuple[str, ...]) -> None:
    """A column, a question and a column again: the last runs fastest, and with "none" a record
    without a part is in no combination."""
    query = Crossed(("city", "x > 1", "n"), (f"Oslo{SEPARATOR}Rome", "", f"3{SEPARATOR}20"), extra)
    spare = tuple(name for name in extra if name != "none")
    parts = (
        Category("city", ("Oslo", "Rome"), spare),
        Question("x > 1", ("missing",) if "missing" in spare else ()),
        Category("n", ("3", "20"), spare),
    )
    values = [part.values(TABLE).tolist() for part in parts]
    second = parts[1].domain.size
    third = parts[2].domain.size
    for row, cell in enumerate(query.values(TABLE).tolist()):
        city = str(TABLE["city"][row])
        number = float(TABLE["x"][row])
        n = int(TABLE["n"][row])
        lacks = {
            "missing": city == "" or math.isnan(number),
            "other": city in ("Bonn", "oslo") or n not in (3, 20),
        }
        if "none" in extra and any(
            lacking and name not in extra for name, lacking in lacks.items()
        ):
            assert cell == query.domain.size - 1, row
        else:
            own = [value[row] for value in values]
            assert cell == (own[0] * second + own[1]) * third + own[2], row


def test_a_number_in_its_group() -> None:
    """The level within the group; nothing for a record without the number or a listed group."""
    query = Grouped("x", 0.0, 3.0, "city", ("Oslo", "Rome"), steps=6)
    for row, value in enumerate(query.values(TABLE).tolist()):
        number = float(TABLE["x"][row])
        city = str(TABLE["city"][row])
        if math.isnan(number) or city not in ("Oslo", "Rome"):
            assert value == 14, row
        else:
            level = min(max(number, 0.0), 3.0) * 2
            assert value == ("Oslo", "Rome").index(city) * 7 + level, row
    # without groups: NaN is nothing
    assert Grouped("x", 0.0, 3.0, steps=6).values(TABLE).tolist()[-6] == 7


@pytest.mark.parametrize(("make", "message"), [
    *[(lambda low=low, high=high: Bounded("v", low, high), "bounds") for low, high in (
    (2.0, 1.0), (math.nan, 1.0), (0.0, math.inf), (-1e308, 1e308), (0.0, 1e-200))],
    (lambda: Binned("x", 1.0, 1.0, 3), "low < high"), (lambda: Binned("x", 0.0, 1.0, 0), "bins"),
    (lambda: Below("x", math.nan, 0), "give a number"),
    (lambda: Below("x", 0.0, 65537), "missing"),
    (lambda: Binned("x", 1.0, 1.0 + 1e-15, 100), "fewer bins"),
    (lambda: Category("c", ("a", "b"), ("missing", "other")), "in this order"),
    (lambda: Crossed(("a", "b"), ("x",)), "one for each part"),
    (lambda: Crossed(("c",), (SEPARATOR.join(map(str, range(5000))),)), "k is 5000"),
    (lambda: Grouped("x", 0.0, 1.0, "g", tuple(map(str, range(65)))), "groups"),
])  # fmt: skip
def test_bad_cells_are_refused_where_they_are_written(
    make: Callable[[], object], message: str
) -> None:
    refuse((message, make))


PEOPLE = Records(
    {
        "age at visit": np.array([20.0, 40.0, 60.0, 90.0, math.nan]),
        "sex": np.array(["F", "M", "", "F", "M"]),
        "ill": np.array([1, 0, 1, 0, 1]),
    }
)
SEEN = Encoding(
    features=("age at visit", "sex == 'F'"),
    lows=(20.0, 0.0),
    highs=(80.0, 1.0),
    scale=0.5,
    constant=1,
    label="ill",
)


def test_numbers_are_scaled_and_questions_are_signs() -> None:
    """Bounds go to -scale and scale, what is beyond them is clipped, yes is scale and no -scale;
    the last feature is constant, the label +1 or -1."""
    assert SEEN.shown == ("x0", "x1", "x2")
    records = SEEN.encode(PEOPLE.take(np.array([0, 1, 3])))
    columns = {name: values.tolist() for name, values in records.columns.items()}
    assert columns["x0"] == pytest.approx([-0.5, -1 / 6, 0.5])
    assert (columns["x1"], columns["x2"], columns["y"]) == (
        [0.5, -0.5, 0.5],
        [0.5] * 3,
        [1.0, -1.0, -1.0],
    )


def test_bits_and_grids() -> None:
    """Bits are 1 above the middle of the bounds or for yes; a grid cuts the bounds into equal
    steps."""
    bits = Encoding(
        features=SEEN.features, lows=SEEN.lows, highs=SEEN.highs, form="bits", label="ill == 0"
    ).encode(PEOPLE)
    assert [bits[name].tolist() for name in ("x0", "x1", "y")] == [
        [0, 0, 1, 1, 0],
        [1, 0, 0, 1, 0],
        [-1.0, 1.0, -1.0, 1.0, -1.0],
    ]
    grid = Encoding(
        features=("age at visit",), lows=(20.0,), highs=(80.0,), form="grid", steps=4, label="ill"
    ).encode(PEOPLE)
    assert grid["x"].tolist() == [0, 1, 2, 3, 2]
    assert Encoding(
        features=("ill",),
        lows=(0.0,),
        highs=(1.0,),
        label="age at visit",
        label_low=20.0,
        label_high=80.0,
    ).encode(PEOPLE)["y"][1] == pytest.approx(-1 / 3)


def test_incomplete_records_count_as_zero() -> None:
    """With something missing that the encoding reads, a yes/no query is neither yes nor no, and a
    level the middle one; otherwise the query's own value."""
    assert SEEN.may_lack(PEOPLE)
    question = encoded(SEEN, Question("y == 1"))
    assert question.domain == levels(2)
    assert question.values(PEOPLE).tolist() == [2, 0, 1, 0, 1]
    product = encoded(SEEN, Product(("x2",)))
    assert product.domain == levels(STEPS)
    quarters = [3, 3, 2, 3, 2]
    assert product.values(PEOPLE).tolist() == [part * STEPS // 4 for part in quarters]


@given(weights=st.lists(st.floats(-1e9, 1e9), min_size=3, max_size=3), place=st.integers(0, 2))
def test_an_encoded_query_travels_exactly(weights: list[float], place: int) -> None:
    """Rebuilt from its name and parameters it is equal, every weight to the last bit, and gives one
    record what it gives it among others."""
    query = encoded(SEEN, Descent("logistic", SEEN.shown, "y", tuple(weights), place, 0.5))
    copy = QUERIES.build(query.name, query.params())
    assert copy == query
    assert isinstance(copy, Encoded)
    assert copy.inner == Descent("logistic", SEEN.shown, "y", tuple(weights), place, 0.5)
    together = query.values(PEOPLE)
    alone = [query.values(PEOPLE.take(slice(row, row + 1)))[0] for row in range(5)]
    assert alone == together.tolist()


GOOD: dict[str, Any] = {
    "features": ("a",),
    "lows": (0.0,),
    "highs": (1.0,),
    "query": json.dumps(["question", {"text": "x0 == 1"}]),
}


@pytest.mark.parametrize("wrong", [
    {"features": ()}, {"features": ("a",) * 200}, {"lows": (0.0, 1.0)}, {"highs": (0.0,)},
    {"highs": (math.inf,)}, {"form": "round"}, {"scale": 2.0},
    {"steps": 10**6}, {"label": "a", "label_low": 1.0}, {"features": ("a > ",)}, {"lows": ("0",)},
    {"form": "grid", "features": ("a", "b"), "lows": (0.0, 0.0), "highs": (1.0, 1.0)},
    {"query": "[1, 2]"}, {"query": '["question", []]'},
    {"query": '["question", {"text": "x0 >"}]'}, {"query": '["unknown", {}]'},
    {"query": '["question", {"text": [[1]]}]'}, {"query": "[" * 100_000},
    {"scale": "1"}, {"label": "a >"}, {"query": '["question"]'},
    {"query": json.dumps(["category", {"column": "x0", "labels": ["a", "b", "c"]}])},
    {"query": json.dumps(["encoded", {}])},
    {"query": json.dumps(["bounded", {"column": "x0", "low": 0.0, "high": math.inf}])},
])  # fmt: skip
def test_hostile_parameters_are_refused_with_a_code(wrong: dict[str, Any]) -> None:
    """Whatever a server sends, an encoding that cannot be is refused when it is built; the right
    one is not."""
    QUERIES.build("encoded", GOOD)
    with pytest.raises(RefusedError):
        QUERIES.build("encoded", {**GOOD, **wrong})


def test_cells() -> None:
    """The number of edges that a value reaches, and a symbol of its own for a missing one; edges
    ascend and are finite."""
    cell: Query = Cell("v", (-1.0, 0.0, 2.5))
    numbers = np.array([-9.0, -1.0, -0.5, 0.0, 2.5, math.inf, -math.inf, math.nan])
    assert cell(Records({"v": numbers})).tolist() == [0, 1, 1, 2, 3, 3, 0, 4]
    assert cell.domain.size == 5
    for wrong in ((), (1.0, 1.0), (2.0, 1.0), (0.0, math.nan), (0.0, math.inf)):
        with pytest.raises(InputError):
            Cell("v", wrong)
