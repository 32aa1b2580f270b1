"""A small table, and parameters with which every protocol that runs on tables runs on it, also in
private."""

from typing import Any

import numpy as np

from local_dp.records import Records

PEOPLE = 60
_GENERATOR = np.random.default_rng(17)
_NUMBERS = {
    "age": _GENERATOR.uniform(20, 60, PEOPLE).round(1),
    "n": _GENERATOR.integers(0, 2, PEOPLE),
}
_TEXTS = {
    "city": _GENERATOR.choice(["Oslo", "Rome"], PEOPLE),
    "word": _GENERATOR.choice(["milk", "tea"], PEOPLE),
}
TABLE = Records({**_NUMBERS, **_TEXTS})
CITIES, PAIR = ("Oslo", "Rome"), ("city", "n == 1")
RUNNING: dict[
    str, dict[str, Any]
    # parameters under which a private run of the table begins: of every protocol that runs on
    # tables
] = {
    "survey": {"question": "age > 30", "missing": "no"},
    "frequency": {"column": "city", "labels": CITIES, "missing": "category", "other": "category"},
    "histogram": {"column": "age", "low": 20.0, "high": 60.0, "bins": 4, "missing": "category"},
    "crosstab": {
        "columns": PAIR,
        "labels": ("Oslo|Rome",),
        "missing": "category",
        "other": "category",
    },
    "mean": {"column": "age", "low": 0.0, "high": 60.0, "missing": "exclude", "outside": "clip"},
    "std": {"column": "age", "low": 0.0, "high": 60.0, "missing": "exclude", "outside": "clip"},
    "sets": {
        "column": "word",
        "labels": ("milk", "tea"),
        "missing": "empty",
        "other": "exclude",
        "larger": "sample",
    },
    "mean-found": {"column": "age", "missing": "exclude", "resolved": 1000.0},
    "quantiles": {"column": "age", "low": 0.0, "high": 60.0, "bins": 16, "missing": "exclude"},
    "sq": {"queries": ("age > 30", "n == 1"), "missing": "no"},
    "prefix-sums": {"column": "n", "k": 16},
    "workload": {
        "columns": ("city",),
        "labels": ("Oslo|Rome",),
        "queries": ("1 0 0 0",),
        "missing": "category",
        "other": "category",
    },
    "marginals": {
        "columns": PAIR,
        "labels": ("Oslo|Rome",),
        "ways": 1,
        "missing": "category",
        "other": "category",
    },
    "identity": {
        "column": "city",
        "labels": CITIES,
        "missing": "category",
        "other": "category",
        "shares": ("0.4", "0.3", "0.2", "0.1"),
    },
    "compare": {
        "question": "age > 30",
        "by": "city",
        "labels": CITIES,
        "missing": "exclude",
        "other": "exclude",
    },
    "logistic": {
        "question": "n == 1",
        "on": ("age > 30", "city"),
        "labels": ("Oslo|Rome",),
        "missing": "exclude",
        "other": "exclude",
    },
    "longitudinal": {"columns": ("n == 1", "n == 0"), "missing": "category", "changes": 1},
    "mean-vector": {
        "columns": ("age", "n"),
        "low": ("0", "0"),
        "high": ("60", "1"),
        "missing": "middle",
        "outside": "clip",
    },
    "heavy-hitters": {
        "column": "word",
        "text": True,
        "missing": "category",
        "text_bytes": 1,
        "share": 0.2,
    },
    "heavy-hitters-asked": {"column": "n", "bits": 14, "share": 0.2},
    "learn": {
        "label": "n == 1",
        "features": ("age > 30", "n == 0"),
        "missing": "exclude",
        "parameters": ("steps=2",),
    },
}
