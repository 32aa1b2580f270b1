"""Queries: the value of each record, always inside the declared domain, and hostile names or parameters refused with a code."""

import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_dp.errors import InputError, RefusedError
from local_dp.masked.queries import MaskedIndex, MaskedParity
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.queries.numbers import STEPS
from local_dp.queries.registry import QUERIES
from local_dp.queries.tables import Bounded, Category, Question
from local_dp.randomizers.frequencies.grr import GRR
from local_dp.randomizers.registry import RANDOMIZERS
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from tests.support.inputs.questions import ANY_COLUMNS, ANY_PARAMETERS, EXTREMES, SHARP

ODD: st.SearchStrategy[Any] = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**64), 2**64), st.floats(), st.text(max_size=8), st.binary(max_size=4), st.lists(st.integers(), max_size=3),
    st.tuples(st.text(max_size=2), st.text(max_size=2)), st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    name=st.one_of(st.sampled_from(list(RANDOMIZERS)), st.text(max_size=8)),
    params=st.dictionaries(st.sampled_from(["epsilon", "k", "steps", "word_bits", "x"]), ODD),
)
def test_any_randomizer_request_is_built_or_refused(name: str, params: dict[str, Any]) -> None:
    """Whatever the parameters, the registry builds a randomizer that declares a domain, or refuses with a code."""
    try:
        randomizer = RANDOMIZERS.build(name, {"epsilon": 1.0, **params})
    except RefusedError as refused:
        assert refused.code in ("unknown-randomizer", "bad-parameters")  # noqa: PT017  # some are built, some refused
        return
    assert randomizer.domain.size >= 2
    assert randomizer.params().keys() >= params.keys()


@settings(max_examples=200, deadline=None)
@given(
    name=st.one_of(st.sampled_from(sorted(QUERIES)), st.text(max_size=8)),
    params=st.dictionaries(st.sampled_from(["text", "column", "labels", "low", "high", "d", "r"]), ODD),
)
def test_any_query_request_is_built_or_refused(name: str, params: dict[str, Any]) -> None:
    try:
        query = QUERIES.build(name, params)
    except RefusedError as refused:
        assert refused.code in ("unknown-query", "bad-parameters")  # noqa: PT017
        return
    assert query.domain.size >= 2


def test_a_category_is_the_position_of_its_label() -> None:
    """Labels in any order, numbers as text, the fast path of 0..k-1, and what is in no list counts as the first label."""
    records = Records({"city": np.array(["Rome", "Oslo", "Bonn"]), "n": np.array([3, 1, 7]), "f": np.array([3.0, 1.5, math.nan]), "i": np.array([0, 2, -1])})
    assert Category("city", ("Rome", "Bonn", "Oslo"))(records).tolist() == [0, 2, 1]
    assert Category("city", ("Paris", "Rome"))(records).tolist() == [1, 0, 0]
    assert Category("n", ("7", "3"))(records).tolist() == [1, 0, 0]
    assert Category("f", ("0", "3", "1.5"))(records).tolist() == [1, 2, 0]
    assert Category("i", ("0", "1", "2"))(records).tolist() == [0, 2, 0]


def test_a_bounded_number_is_clipped_and_rounded_to_its_lattice() -> None:
    """Out of bounds counts as the bound, missing as the midpoint, infinity as an end; nothing leaves the domain."""
    query = Bounded("v", -1.0, 3.0)
    records = Records({"v": np.array([-5.0, -1.0, 0.0, 3.0, 9.0, math.nan, math.inf, -math.inf])})
    quarter = STEPS // 4
    assert query(records).tolist() == [0, 0, quarter, 4 * quarter, 4 * quarter, 2 * quarter, 4 * quarter, 0]
    assert query.in_units(np.array([0.0, 0.5, 1.0])).tolist() == [-1.0, 1.0, 3.0]


@pytest.mark.parametrize(("low", "high"), [(1.0, 1.0), (2.0, 1.0), (math.nan, 1.0), (0.0, math.inf), (-1e308, 1e308), (0.0, 1e200), (0.0, 1e-200)])
def test_bounds_without_a_finite_range_are_refused(low: float, high: float) -> None:
    with pytest.raises(InputError, match="bounds"):
        Bounded("v", low, high)


@pytest.mark.parametrize("wrong", [np.array(["a"]), np.array([0.5])])
@pytest.mark.parametrize("column", ["x", "i", "b", "y"])
def test_masked_queries_refuse_columns_of_another_type(column: str, wrong: np.ndarray) -> None:
    """A table with a text or fractional column where an example's part should be is an InputError, on the schema alone; other whole types are read."""
    whole = {name: np.array([1], dtype=dtype) for name, dtype in (("x", "i8"), ("i", "i4"), ("b", "?"), ("y", "u8"))}
    records = Records({**whole, column: wrong})
    for query in (MaskedIndex(4), MaskedParity(4, 3)):
        if column in ("x", "i") and column != ("i" if isinstance(query, MaskedIndex) else "x"):
            continue
        for rows in (slice(0, 1), slice(0, 0)):
            with pytest.raises(InputError, match=f"column '{column}'"):
                query(records.take(rows))
        assert np.issubdtype(query(Records(whole)).dtype, np.integer)


def test_a_query_and_a_randomizer_must_share_a_domain() -> None:
    with pytest.raises(InputError, match="takes"):
        LocalQuery(Question("a > 0"), GRR(1.0, k=3), Cohort(0, 1))
    LocalQuery(Question("a > 0"), BinaryRR(1.0), Cohort(0, 1))


@pytest.mark.parametrize("column", [np.array(["a"]), np.array([0.5]), np.array([1]), np.array([1], dtype=np.uint8)], ids=lambda column: str(column.dtype))
@pytest.mark.parametrize("name", QUERIES)
def test_every_query_answers_or_refuses_by_the_schema(name: str, column: np.ndarray) -> None:
    """On columns of any type a query gives values of its domain or an InputError, and no row decides which: a server may ask a table anything."""
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
    """Whatever number a record holds, its value is inside the domain and numpy does not warn: a warning for some records only can be timed."""
    query = QUERIES.build(name, SHARP[name])
    pairs = np.array(np.meshgrid(EXTREMES, EXTREMES)).reshape(2, -1)
    records = Records({"x": pairs[0], "y": pairs[1], "b": pairs[0][::-1].copy()})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = query.values(records)
        for client in range(len(records)):
            assert np.array_equal(query.values(records.take(slice(client, client + 1)))[0], values[client])
    assert query.domain.low <= values.min() <= values.max() <= query.domain.high
    with pytest.warns(RuntimeWarning):  # the wrong twin: the bare query warns for some of these records
        query(records)
