"""Calls of the public functions, each with one argument of a wrong kind. To list those that end in
a traceback, by hand: `python -m tests.support.inputs.wrong_kinds 2000`."""

import inspect
import os
import random
import sys
import tempfile
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
    "table": {"s": [True, False] * 100, "x": [3.5, 1.25] * 100, "y": ["a", "b"] * 100},
    "column": "x", "columns": ["s", "y"], "labels_from_data": True, "label": "s", "question": "s",
    "queries": ["s"], "features": ["x"], "bounds": (0, 9), "file": "no.budget", "epsilon": 1.0,
    "clients": 100, "seed": 1, "d": 4, "which": "grr", "name": "grr", "noise": 1.0,
}  # fmt: skip
OF_ONE: dict[str, dict[str, Any]] = {
    "best_for": {"task": "survey"},
    "compare": {"task": "survey", "clients": [100], "tolerance": 0.3},
    "curate.learn": {"bounds": {"x": (0, 9)}},
    "curate.rectangle": {"columns": ["x"]},
    "curate.triangles": {"source": "a", "target": "b", "nodes": 5, "table": {"a": [1], "b": [2]}},
    "frequency": {"column": "y"},
    "heavy_hitters": {"column": "y", "text_bytes": 1},
    "learn": {"bounds": {"x": (0, 9)}},
    "mix": {"task": "frequency", "column": "y", "labels": ["a", "b"]},
    "plan": {"task": "survey"},
    "price": {"mechanisms": "gaussian 1 x 2"},
    "run": {"protocol": "survey", "question": "s"},
    "sweep": {"grid": {"clients": [100], "survey": {"tolerance": 0.3}}},
    "workload": {"columns": ["x"], "queries": "prefixes", "bins": 4},
}  # fmt: skip
KINDS: tuple[Any, ...] = (
    None, True, "text", "", "1", b"bytes", [], [None], {}, {1: 2}, (1, "a"), -1, 0, 3, 0.5, 10**400,
    1e300, 1e-300, float("nan"), float("inf"), 2 + 3j, np.float32(0.1), np.float64("nan"),
    np.int8(2), np.uint64(3), np.bool_(True), np.str_("x"), np.complex64(1), np.array(3),
    np.array([1, 2]), np.datetime64("2020-01-01"), Decimal("0.5"), Decimal("NaN"), Fraction(1, 3),
    pandas.Series([1, 2]), polars.Series("x", [1]), pandas.DataFrame({"x": [1]}),
    polars.DataFrame({"x": [1]}), lambda *values: None, object(), type,
)  # fmt: skip
FUNCTIONS = {
    **{name: getattr(ldp, name) for name in ldp.__all__ if name.islower()},
    **{f"curate.{name}": getattr(ldp.curate, name) for name in ldp.curate.QUESTIONS},
    **{f"attack.{name}": getattr(ldp.attack, name) for name in ("reconstruct", "trace")},
}


def calls() -> Iterator[tuple[str, str, Any]]:
    """Function, parameter, value."""
    for name, function in FUNCTIONS.items():
        if inspect.isfunction(function):
            parameters = {**inspect.signature(function).parameters, **OF_ONE.get(name, {})}
            for each in sorted(parameters.keys() - SLOW):
                yield from ((name, each, value) for value in KINDS)


def fault(name: str, parameter: str, value: Any) -> str:
    """The traceback of a call, in a line, if it ends in one."""
    parameters = inspect.signature(FUNCTIONS[name]).parameters
    how = {key: each for key, each in VALUES.items() if key in parameters} | OF_ONE.get(name, {})
    how[parameter] = value
    first = [how.pop(key) for key in list(parameters)[:1]]
    try:
        with warnings.catch_warnings(action="ignore"):
            FUNCTIONS[name](*first, **how)
    except LocalDPError:
        return ""
    except Exception as error:  # noqa: BLE001 - it is what is searched for
        return f"{name}({parameter}={value!r:.40}): {type(error).__name__}: {error}"
    return ""


if __name__ == "__main__":
    sample = random.Random(1).sample(list(calls()), int(sys.argv[1]))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        faults = list(filter(None, (fault(*call) for call in sample)))
    print(*faults, f"{len(sample)} calls, {len(faults)} tracebacks", sep="\n")
