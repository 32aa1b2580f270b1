"""Every query by parameters that it accepts, sharp ones under which finite numbers overflow, and
records that are hard to compute with."""

from dataclasses import MISSING, fields
from typing import Any, get_type_hints

import numpy as np

from local_dp.queries.query import QUERIES

_OF_NAME = {
    "column": "x", "columns": ("x",), "label": "y", "labels": ("a", "b"), "parts": ("x", "y == 1"),
    "text": "x > 1", "condition": "x > 1",
    "low": 0.0, "high": 1.0, "d": 4, "k": 2, "bits": 32, "weights": (1.0,), "loss": "hinge",
    "centres": (0.0, 1.0), "centre": 0, "coordinate": 0,
}  # fmt: skip
_OF_TYPE: dict[Any, Any] = {int: 1, float: 1.0, str: "x"}
_OWN: dict[str, dict[str, Any]] = {  # where neither suits
    "below": {"end": 0.5, "missing": 1 << 15}, "binned": {"bins": 3},
    "crossed": {"labels": ("a\x1fb", "")}, "odd": {"labels": ("a\x1fb", "")},
    "subset": {"members": "a0"}, "bit": {"number": 3}, "decrypted": {"number": 600, "bits": "a0"},
    "correlation": {"label": "y"},
    "prefix": {"length": 8}, "hashed-prefix": {"length": 32, "width": 18},
    "kept-prefix": {"length": 18, "step": 6, "width": 12, "kept": ("0", "1f")},
    "masked-parity": {"r": 3}, "masked-coset": {"s": 1}, "masked-list": {"free": 1, "asked": 3},
    "masked-bent": {"told": 2},
    "parity-coset": {"s": 1, "t": 1}, "path-step": {"path": "011", "first": 1},
    "change-interval": {"waves": ("x == 1", "x > 0"), "labels": ()},
    "coordinates": {"columns": ("x", "b"), "centres": (0.0, 0.0), "reaches": (1.0, 1.0)},
    "product": {"factors": ("x", "y")},
    "cell": {"edges": (0.0, 0.5)},
    "verdict": {"kind": "Stump", "hypothesis": '{"literal": {"place": 0, "value": 1}}'},
    "encoded": {"features": ("x",), "lows": (0.0,), "highs": (1.0,), "label": "y",
    "query": '["product", {"factors": ["x0", "y"]}]'},
}  # fmt: skip


def _any_parameters(name: str) -> dict[str, Any]:
    kind, types = QUERIES[name], get_type_hints(QUERIES[name])
    required = [each.name for each in fields(kind) if each.default is MISSING]
    return {key: _OF_NAME.get(key, _OF_TYPE.get(types[key])) for key in required} | _OWN.get(
        name, {}
    )


ANY_PARAMETERS = {name: _any_parameters(name) for name in QUERIES}
# what they read
ANY_COLUMNS = (
    "x",
    "i",
    "b",
    "y",
    "x0",
    "row",
    "secret",
    "w0",
    "user",
    "key0",
    "key1",
    "key2",
    "key3",
    "level",
    "table0",
)

EXTREMES = np.array([0.0, -0.0, 5e-324, 1e-300, 1.0, -1e308, 1.7e308, np.inf, -np.inf, np.nan])
SHARP: dict[str, dict[str, Any]] = {  # parameters under which finite numbers overflow
    "bounded": {"column": "x", "low": -1e-150, "high": 1e-150},
    "product": {"factors": ("x", "y"), "bound": 1e-150},
    "mistake": {"columns": ("x", "b"), "label": "y", "weights": (1e150, -1e150)},
    "descent": {"loss": "logistic", "columns": ("x", "b"), "label": "y", "weights": (1e150, -1e150),
    "coordinate": 0, "bound": 1e-150},
    "descent-vector": {"loss": "logistic", "columns": ("x", "b"), "label": "y",
    "weights": (1e150, -1e150), "bound": 1e-150},
    "encoded": {
        "features": ("x", "b"), "lows": (-1e150, -1e-149), "highs": (7e149, 1e-149), "label": "y",
        "query": ('["descent", {"loss": "logistic", "columns": ["x0", '
        '"x1"], "label": "y", "weights": '
        '[1e150, -1e150], "coordinate": 0, "bound": 1e-150}]'),
    },
    "coordinates": {"columns": ("x", "b", "y"), "centres": (0.0, -1e150, 1e150),
    "reaches": (1e-150, 1e150, 1e150)},
    "nearest-centre": {"columns": ("x", "y"), "centres": (1e150, 0.0, -1e150, 1e150), "centre": 1},
    "centre-sum": {"columns": ("x", "y"), "centres": (1e150, 0.0, -1e150, 1e150), "centre": 1,
    "bound": 1e-150},
}  # fmt: skip
