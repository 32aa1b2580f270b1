"""P4: nothing but the report shows what a record holds: no warning, no error, no word, no time."""

import math
import os
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from local_dp.clients.journal import MemoryStore
from local_dp.clients.member import HOSTS
from local_dp.clients.role import ClientRole
from local_dp.domains import Domain, symbols
from local_dp.errors import InputError, RefusedError
from local_dp.noise import SystemNoise
from local_dp.oracles.local.asked import Cohort, LocalQuery
from local_dp.queries.query import QUERIES, Query, has_form
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.wire import Reply
from tests.support.inputs.builders import request
from tests.support.inputs.questions import ANY_COLUMNS, ANY_PARAMETERS, SHARP
from tests.support.long import short
from tests.support.wrong import wrong

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
TYPES = ("f8", "f4", "f2", "i8", "i1", "u8", "?", "U3", "M8[us]")


def _column(generator: np.random.Generator) -> np.ndarray:
    """Four values of one type, among them its extremes."""
    kind = np.dtype(str(generator.choice(TYPES)))
    if kind.kind == "f":
        with np.errstate(all="ignore"):
            return generator.choice(FLOATS, 4).astype(kind)
    if kind.kind in "iu":
        ends = np.iinfo(kind.name)
        return generator.choice(np.array([ends.min, ends.max, 0, 1], dtype=kind), 4)
    if kind.kind == "M":
        return generator.choice(
            np.array(["NaT", "0001-01-01", "2020-06-01T12:30:00.5", "9999-12-31"], dtype=kind), 4
        )
    return (
        generator.random(4) < 0.5
        if kind.kind == "b"
        else generator.choice(["", "a", "1", "é", "\ud800", "nan"], 4)
    )


def _look(query: Query, records: Records) -> bool:
    """Whether a client answers, which no row may decide; and that each answer is a member of the
    domain, alone as beside others, and that nothing is said."""
    try:
        query.values(records.take(slice(0, 0)))
    except InputError:
        with pytest.raises(InputError):
            query.values(records.take(slice(0, 1)))
        return False
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = query.values(records)
        alone = [query.values(records.take(slice(row, row + 1)))[0] for row in range(len(records))]
        assert has_form(query, values, len(records))
    assert np.array_equal(values, np.array(alone))
    assert np.array_equal(query.domain.clip(values), values)
    return True


def test_every_query_is_total_and_silent() -> None:
    """The attack was a product that overflows for one record of two: every query, with parameters
    that are sharp, on columns of any type."""
    generator, names = np.random.default_rng(1), set[str]()
    for name, params in [*ANY_PARAMETERS.items(), *SHARP.items()] * 3:
        columns = [_column(generator) for _ in ANY_COLUMNS]
        alike = generator.random() < 0.5
        table = dict(
            zip(ANY_COLUMNS, columns[:1] * len(columns) if alike else columns, strict=True)
        )
        if _look(QUERIES.build(name, params), Records(table)):
            names.add(name)
    assert len(names) > len(ANY_PARAMETERS) / 2


UNSAFE: list[tuple[str, dict[str, Any]]] = [
    ("bounded", {"column": "x", "low": -1e308, "high": 1e308}),
    ("binned", {"column": "x", "low": -1e200, "high": 0.0, "bins": 3}),
    ("product", {"factors": ("x",), "bound": 1e-300}),
    (
        "descent",
        {"loss": "hinge", "columns": ("x",), "label": "y", "weights": (math.inf,), "coordinate": 0},
    ),
    ("nearest-centre", {"columns": ("x",), "centres": (1e300, 0.0), "centre": 0}),
]


@pytest.mark.parametrize(("name", "params"), UNSAFE)
def test_what_cannot_be_computed_with_is_refused(name: str, params: dict[str, Any]) -> None:
    with pytest.raises(RefusedError) as refusal:
        QUERIES.build(name, params)
    assert refusal.value.code == "bad-parameters"


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


def _output_of(value: str, log_file: Path, *, child: bool) -> bytes:
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


@pytest.mark.parametrize("child", short([True, False], lambda child: child))
def test_a_client_says_nothing_while_a_record_is_read(child: bool, tmp_path: Path) -> None:
    """A query that prints, warns, logs and overflows by what the record holds: the bytes on both
    streams are none, for each record."""
    assert {_output_of(value, tmp_path / "log", child=child) for value in ("0.5", "1e200")} == {b""}


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


@wrong(
    "local_dp.oracles.local.asked:_values",
    "(Exception, SystemExit)",
    "InputError",
    "a query that fails on some records ends the clients who hold them",
)
def test_a_query_that_fails_on_some_records_is_not_seen_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody else's query that raises, exits or gives floats on some records: the client answers
    for all, at the same length."""
    monkeypatch.setitem(QUERIES._classes, "fails", Fails)
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
