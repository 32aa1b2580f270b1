"""Class 1: nothing but the report shows what a record holds: no warning, no error, no word, no
time. Each test prints its figure."""

import math
import os
import re
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from local_dp.bus.memory import MemoryBroker
from local_dp.clients.journal import MemoryStore
from local_dp.clients.member import HOSTS, SLOT, _answer, unheard
from local_dp.clients.role import ClientRole
from local_dp.domains import Domain, symbols
from local_dp.errors import InputError, RefusedError
from local_dp.noise import KeyedNoise, Noise, SystemNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.oracles.local.oracles import AggregateOracle, PopulationOracle
from local_dp.populations.finite import Rows
from local_dp.queries.examples import Product
from local_dp.queries.query import QUERIES, Query
from local_dp.randomizers.numbers.rounded import OneBitMean
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.wire import Refusal, Reply, Request
from tests.support.figures import figure
from tests.support.inputs.builders import request
from tests.support.inputs.questions import ANY_COLUMNS, ANY_PARAMETERS, SHARP
from tests.support.runs.virtual_time import VirtualLoop, run_virtually

FLOATS = [
    0.0,
    -0.0,
    5e-324,
    1e-300,
    1e-150,
    0.5,
    1.0,
    -1e150,
    1e300,
    1.7976931348623157e308,
    math.inf,
    -math.inf,
    math.nan,
]
NUMBERS = st.one_of(
    st.sampled_from([*FLOATS, 3, 64, 4095, 1 << 20, 1 << 62, 10**400]),
    st.floats(),
    st.integers(-(1 << 63), 1 << 64),
)
TYPES = ("f8", "f4", "f2", "i8", "i4", "i1", "u8", "u1", "?", "U3", "M8[us]")


@st.composite
def _columns(draw: st.DrawFn) -> np.ndarray:
    """Four values of one type, among them its extremes."""
    kind = np.dtype(draw(st.sampled_from(TYPES)))
    if kind.kind == "f":
        with np.errstate(all="ignore"):
            return np.array(
                draw(
                    st.lists(
                        st.one_of(st.sampled_from(FLOATS), st.floats()), min_size=4, max_size=4
                    )
                )
            ).astype(kind)
    if kind.kind in "iu":
        ends = np.iinfo(kind.name)
        values = st.one_of(
            st.sampled_from([int(ends.min), int(ends.max), 0, 1]),
            st.integers(int(ends.min), int(ends.max)),
        )
        return np.array(draw(st.lists(values, min_size=4, max_size=4)), dtype=kind)
    if kind.kind == "M":
        return np.array(
            draw(
                st.lists(
                    st.sampled_from(["NaT", "0001-01-01", "2020-06-01T12:30:00.5", "9999-12-31"]),
                    min_size=4,
                    max_size=4,
                )
            ),
            dtype=kind,
        )
    values = (
        st.booleans()
        if kind.kind == "b"
        else st.sampled_from(["", "a", "1", "é", "\ud800", "\x00", "nan"])
    )
    return np.array(draw(st.lists(values, min_size=4, max_size=4)), dtype=kind)


@st.composite
def _questions(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """A query with parameters of which some numbers are others, as a server may send them."""
    name = draw(st.sampled_from(sorted(ANY_PARAMETERS)))
    params = dict(
        draw(st.sampled_from([each[name] for each in (ANY_PARAMETERS, SHARP) if name in each]))
    )
    for key, value in params.items():
        if isinstance(value, int | float) and draw(st.booleans()):
            params[key] = draw(NUMBERS)
        elif (
            isinstance(value, tuple)
            and value
            and isinstance(value[0], float)
            and draw(st.booleans())
        ):
            params[key] = tuple(draw(st.lists(NUMBERS, min_size=len(value), max_size=len(value))))
    return name, params


def _look(question: tuple[str, dict[str, Any]], records: Records) -> str:
    """Whether a client answers, which no row may decide; and that each answer is a member of the
    domain, alone as beside others, and that nothing is said."""
    name, params = question
    try:
        query = QUERIES.build(name, params)
    except RefusedError:
        return "no query"
    try:
        query.values(records.take(slice(0, 0)))
    except InputError:
        with pytest.raises(InputError):
            query.values(records.take(slice(0, 1)))
        return "not of these columns"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = query.values(records)
        alone = [query.values(records.take(slice(row, row + 1)))[0] for row in range(len(records))]
    assert values.dtype.kind in "biu"
    assert np.array_equal(values, np.array(alone))
    assert np.array_equal(query.domain.clip(values), values)
    return "answered"


@pytest.mark.parametrize(
    ("examples", "least"), [(40, 5), pytest.param(5_000, 1_200, marks=pytest.mark.slow)]
)
def test_every_query_is_total_and_silent(examples: int, least: int) -> None:
    """The attack was a product that overflows for one record of two: every query, parameters and
    columns of any type by search."""
    seen: dict[str, int] = {}

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(
        _questions(),
        st.lists(_columns(), min_size=len(ANY_COLUMNS), max_size=len(ANY_COLUMNS)),
        st.booleans(),
    )
    def search(
        question: tuple[str, dict[str, Any]], columns: list[np.ndarray], alike: bool
    ) -> None:
        table = dict(
            zip(ANY_COLUMNS, columns[:1] * len(ANY_COLUMNS) if alike else columns, strict=True)
        )
        verdict = _look(question, Records(table))
        seen[verdict] = seen.get(verdict, 0) + 1

    search()
    figure("class 1", f"searched {seen}: 0 warnings, 0 errors of a row")
    assert seen["answered"] > least


UNSAFE: list[tuple[str, dict[str, Any]]] = [
    ("bounded", {"column": "x", "low": -1e308, "high": 1e308}),
    ("bounded", {"column": "x", "low": 0.0, "high": 5e-324}),
    ("grouped", {"column": "x", "low": 0.0, "high": 1e308}),
    ("binned", {"column": "x", "low": -1e200, "high": 0.0, "bins": 3}),
    ("below", {"column": "x", "end": math.nan, "missing": 1}),
    ("product", {"factors": ("x",), "bound": 1e-300}),
    ("mistake", {"columns": ("x",), "label": "y", "weights": (1e300,)}),
    (
        "descent",
        {"loss": "hinge", "columns": ("x",), "label": "y", "weights": (math.inf,), "coordinate": 0},
    ),
    ("coordinates", {"columns": ("x",), "centres": (1e300,), "reaches": (1.0,)}),
    ("coordinates", {"columns": ("x",), "centres": (0.0,), "reaches": (1e-300,)}),
    ("nearest-centre", {"columns": ("x",), "centres": (1e300, 0.0), "centre": 0}),
    ("cell", {"column": "x", "edges": (0.0, 1e300)}),
    (
        "encoded",
        {
            "features": ("x",),
            "lows": (0.0,),
            "highs": (10**400,),
            "label": "y",
            "query": '["product", {"factors": ["x0", "y"]}]',
        },
    ),
]


@pytest.mark.parametrize(("name", "params"), UNSAFE)
def test_what_cannot_be_computed_with_is_refused(name: str, params: dict[str, Any]) -> None:
    with pytest.raises(RefusedError) as refused:
        QUERIES.build(name, params)
    assert refused.value.code == "bad-parameters"


@dataclass(frozen=True)
class Slow(Query):
    """Takes longer for a record that holds more."""

    name: ClassVar[str] = "slow"
    loop: ClassVar[VirtualLoop | None] = None

    @property
    def domain(self) -> Domain:
        return symbols(2)

    def __call__(self, records: Records) -> np.ndarray:
        if self.loop is not None and len(records):
            self.loop.work(float(records["x"].sum()))
        return np.zeros(len(records), dtype=np.int64)


def _left(value: float, noise: Noise, monkeypatch: pytest.MonkeyPatch) -> float:
    async def play() -> float:
        import asyncio

        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        monkeypatch.setattr(Slow, "loop", loop)
        broker = MemoryBroker()
        hearing, bus = broker.join(["t"]), broker.join([])
        await hearing.queue.get()
        role = ClientRole("m", 0, Records({"x": np.array([value])}), noise, MemoryStore(1.0))
        request_sent = request(LocalQuery(Slow(), BinaryRR(1.0), Cohort(0, 1)))
        came = loop.time()
        await _answer(role, bus, "t", request_sent)
        assert hearing.queue.get_nowait()
        return loop.time() - came

    return run_virtually(play())


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(QUERIES._loaded, "slow", Slow)


@pytest.mark.usefixtures("slow")
def test_a_private_reply_leaves_in_its_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    """In virtual time: whatever the evaluation takes, up to a slot, the reply leaves one slot after
    the request; a simulation's leaves at once."""
    drawn = np.random.default_rng(11).uniform(0, SLOT, 50).tolist()
    left = {round(_left(value, SystemNoise(), monkeypatch), 9) for value in (0.0, 4e-4, *drawn)}
    assert left == {SLOT}
    assert round(_left(1.5 * SLOT, SystemNoise(), monkeypatch), 9) == 2 * SLOT, (
        "more work leaves in a later slot, never between"
    )
    assert _left(0.01, KeyedNoise(1), monkeypatch) == 0.01
    figure("class 1", f"52 records: replies leave {left} s after the request")


def _told(value: float) -> Request:
    return request(
        LocalQuery(Product(("x", "x"), value), OneBitMean(1.0, steps=1 << 16), Cohort(0, 1))
    )


SAYING = """
import os, sys, warnings
import numpy as np
from local_dp.clients.member import {how}
{before}
import logging; logging.getLogger("y").addHandler(logging.FileHandler({kept!r}))
with {within}:
    print("{value}"); print("{value}", file=sys.stderr); warnings.warn("{value}")
    np.float64({value}) * np.float64(1e308)
    logging.getLogger("x").error("{value}"); logging.getLogger("y").error("{value}")
    {raw}
"""


def _heard(value: str, log_file: Path, *, child: bool) -> bytes:
    """What a process says on both streams, and to a log it keeps, while a record is read: as a
    member of a fleet, whose streams are closed, or as a host in a terminal. With warnings as
    errors, a raised warning would show as well.
    """
    before, raw = ("never_heard()", f"os.write(2, b'{value}')") if child else ("", "pass")
    code = SAYING.format(
        how="never_heard, unheard",
        before=before,
        within="unheard()",
        value=value,
        raw=raw,
        kept=str(log_file),
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONWARNINGS": "error::UserWarning"},
    )
    return done.stdout + done.stderr + log_file.read_bytes()


@pytest.mark.parametrize("child", [True, False])
def test_a_client_says_nothing_while_a_record_is_read(child: bool, tmp_path: Path) -> None:
    """A query that prints, warns, logs and overflows by what the record holds: the bytes on both
    streams are none, for each record."""
    assert {_heard(value, tmp_path / "log", child=child) for value in ("0.5", "1e200")} == {b""}


def test_the_streams_are_the_same_for_many_records(capfd: pytest.CaptureFixture[str]) -> None:
    generator, answered = np.random.default_rng(5), 0
    for value in [*FLOATS, *np.frombuffer(generator.bytes(8 * 287)).tolist()]:
        role = ClientRole(
            "m", 0, Records({"x": np.array([value])}), SystemNoise(), MemoryStore(24.0)
        )
        with unheard():
            (answer,) = role.handle(_told(1e-150))
        answered += answer.kind == "reply"
    assert capfd.readouterr() == ("", "")
    assert answered == 300
    figure("class 1", f"{answered} records: 0 bytes on both streams")


@dataclass(frozen=True)
class Fails(Query):
    """Raises where a record is 1, ends the process where it is 2, gives no number where it is 3."""

    name: ClassVar[str] = "fails"

    @property
    def domain(self) -> Domain:
        return symbols(2)

    def __call__(self, records: Records) -> np.ndarray:
        values = records["x"].tolist()
        if 1 in values:
            raise ValueError(f"a record holds {values}")
        if 2 in values:
            raise SystemExit(3)
        return np.zeros(len(records), dtype=np.float64 if 3 in values else np.int64)


def test_a_query_that_fails_on_some_records_is_not_seen_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else's query that raises, exits or gives floats on some records: the client answers
    for all, at the same length."""
    monkeypatch.setitem(QUERIES._loaded, "fails", Fails)
    lengths = set()
    for values in ([0], [1], [2], [3], [0, 1, 2, 3]):
        role = ClientRole(
            HOSTS, 0, Records({"x": np.array(values)}), SystemNoise(), MemoryStore(1.0)
        )
        answers = role.handle(request(LocalQuery(Fails(), BinaryRR(1.0), Cohort(0, len(values)))))
        lengths |= {
            len(answer.reports) / len(values) if isinstance(answer, Reply) else 0
            for answer in answers
        }
    assert lengths == {1}


def test_a_simulation_shows_the_error_of_a_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """In every tier: the query's name, the type of the error and its message."""
    monkeypatch.setitem(QUERIES._loaded, "fails", Fails)
    records, query, shown = (
        Records({"x": np.array([0, 1])}),
        LocalQuery(Fails(), BinaryRR(1.0), Cohort(0, 2)),
        r"query 'fails' fails with ValueError: a record",
    )
    (refusal,) = ClientRole(HOSTS, 0, records, KeyedNoise(1), MemoryStore(1.0)).handle(
        request(query)
    )
    assert isinstance(refusal, Refusal)
    assert re.search(shown, refusal.text)
    for oracle in (
        PopulationOracle(Rows(records), KeyedNoise(1), 1, 1.0),
        AggregateOracle(Rows(records), np.random.default_rng(1), 1.0),
    ):
        with pytest.raises(InputError, match=shown):
            oracle.answer((query,))
