"""Calls of the public functions, each with one argument of a wrong kind."""

import inspect
import warnings
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas
import polars

import local_dp as ldp
from local_dp.errors import LocalDPError

# keywords of a protocol's own, and options that start processes or pages
SLOW = {"how", "settings", "parameters", "hosts", "stores", "watch", "cluster", "workers", "fault"}
VALUES: dict[str, Any] = {
    "table": {"s": [True, False] * 100, "x": [3.5, 1.25] * 100, "y": ["a", "b"] * 100,
              "z": [0, 1] * 100},
    "column": "x", "columns": ["s", "z"], "labels_from_data": True, "label": "s", "question": "s",
    "queries": ["s"], "features": ["x"], "bounds": (0, 9), "file": "no.budget", "epsilon": 1.0,
    "clients": 100, "seed": 1, "d": 4, "which": "grr", "name": "grr", "workers": 1,
    "task": "survey", "protocol": "survey", "mechanisms": "gaussian 1 x 2",
    "grid": {"survey": {}, "clients": 100},
}  # fmt: skip
OF_ONE: dict[str, dict[str, Any]] = {
    "compare": {"clients": 100},
    "heavy_hitters": {"column": "y", "text_bytes": 1},
    "learn": {"bounds": {"x": (0, 9)}},
    "mix": {"task": "frequency", "column": "y", "labels": ["a", "b"]},
    "triangles": {"source": "a", "target": "b", "nodes": 5, "table": {"a": [1], "b": [2]}},
    "rectangle": {"columns": ["x"]},
    "run": {"question": "s"},
    "workload": {"columns": ["y"], "queries": "prefixes", "labels": {"y": ["a", "b"]}},
}  # fmt: skip
KINDS: tuple[Any, ...] = (
    None, True, "text", "", "1", b"bytes", [], [None], {}, {1: 2}, (1, "a"), -1, 0, 3, 10**400,
    10**5000, "\0", "y" * 300, pandas.DataFrame, np.array(1.0),
    2 + 3j, Decimal("NaN"), Decimal("0.5"), Fraction(1, 3), str, object(), type,
    0.5, 1e300, 1e-300, float("nan"), float("inf"),
    *(np.array(2).astype(code)[()] for code in ("f4", "f8", "i1", "u8", "?", "U1", "c8", "M8[D]")),
    *(kind([1, 2]) for kind in (np.array, pandas.Series, polars.Series)),
    *(kind({"x": [1]}) for kind in (pandas.DataFrame, polars.DataFrame)),
)  # fmt: skip


def calls() -> Iterator[tuple[Any, dict[str, Any]]]:
    """Functions, and arguments that are right but for one."""
    for home in (ldp, ldp.curate, ldp.attack):
        for name, function in inspect.getmembers(home, inspect.isfunction):
            names = inspect.signature(function).parameters.keys()
            right = {each: VALUES[each] for each in names & VALUES.keys()} | OF_ONE.get(name, {})
            for each in sorted((names | right.keys()) - SLOW) * (name != "ask"):
                yield from ((function, {**right, each: kind}) for kind in KINDS)


def fault(function: Any, how: dict[str, Any]) -> str:
    """The traceback of a call, in a line, if it ends in one."""
    first, *_ = inspect.signature(function).parameters
    rest = {each: value for each, value in how.items() if each != first}
    try:
        with warnings.catch_warnings(action="ignore"):
            function(how[first], **rest)
    except LocalDPError:
        return ""
    except Exception as error:  # noqa: BLE001 - it is what is searched for
        return f"{function.__name__}(**{how}): {error!r}"
    return ""
