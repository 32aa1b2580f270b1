"""Every query by parameters that it accepts, sharp ones under which finite numbers overflow, and records that are hard to compute with."""

from typing import Any

import numpy as np

ANY_PARAMETERS: dict[str, dict[str, Any]] = {
    "question": {"text": "x > 1"}, "category": {"column": "x", "labels": ("a", "b")}, "bounded": {"column": "x", "low": 0.0, "high": 1.0},
    "below": {"column": "x", "end": 0.5, "missing": 1 << 15}, "binned": {"column": "x", "low": 0.0, "high": 1.0, "bins": 3},
    "crossed": {"parts": ("x", "y == 1"), "labels": ("a\x1fb", "")}, "odd": {"parts": ("x", "y == 1"), "labels": ("a\x1fb", "")},
    "grouped": {"column": "x", "low": 0.0, "high": 1.0}, "subset": {"members": "a0"}, "bit": {"number": 3},
    "decrypted": {"number": 600, "bits": "a0"}, "change-interval": {"waves": ("x == 1", "x > 0"), "labels": (), "change": 1, "width": 1},
    "prefix": {"column": "x", "bits": 32, "length": 8}, "hashed-prefix": {"column": "x", "bits": 32, "length": 32, "width": 18, "seed": 1},
    "kept-prefix": {"column": "x", "bits": 32, "length": 18, "step": 6, "width": 12, "kept": ("0", "1f")}, "masked-index": {"d": 4},
    "masked-parity": {"d": 4, "r": 3}, "masked-bit": {"d": 4, "j": 1}, "masked-coset": {"d": 4, "k": 2, "s": 1}, "masked-random": {"d": 4, "seed": 1},
    "masked-indicator": {"d": 4, "j": 1}, "masked-disagreement": {"d": 4, "r": 1}, "masked-list": {"d": 4, "r": 1, "free": 1, "asked": 3},
    "masked-bent": {"d": 4, "told": 2}, "parity-example": {"d": 4}, "parity-coset": {"d": 4, "k": 2, "s": 1, "t": 1},
    "correlation": {"label": "y", "columns": ("x",)}, "coordinates": {"columns": ("x", "b"), "centres": (0.0, 0.0), "reaches": (1.0, 1.0)},
    "signed-label": {"condition": "x > 1", "label": "y"}, "product": {"factors": ("x", "y")},
    "mistake": {"columns": ("x",), "label": "y", "weights": (1.0,)},
    "descent": {"loss": "hinge", "columns": ("x",), "label": "y", "weights": (1.0,), "coordinate": 0},
    "descent-vector": {"loss": "hinge", "columns": ("x",), "label": "y", "weights": (1.0,)}, "cell": {"column": "x", "edges": (0.0, 0.5)},
    "encoded": {"features": ("x",), "lows": (0.0,), "highs": (1.0,), "label": "y", "query": '["product", {"factors": ["x0", "y"]}]'},
    "verdict": {"kind": "Stump", "hypothesis": '{"literal": {"place": 0, "value": 1}}'},
    "nearest-centre": {"columns": ("x",), "centres": (0.0, 1.0), "centre": 0}, "centre-sum": {"columns": ("x",), "centres": (0.0, 1.0), "centre": 0},
    "path-step": {"path": "011", "first": 1},
}  # fmt: skip
ANY_COLUMNS = ("x", "i", "b", "y", "x0", "row", "secret", "w0", "user", "key0", "key1", "key2", "key3", "level", "table0")  # what they read

EXTREMES = np.array([0.0, -0.0, 5e-324, 1e-300, 1.0, -1e308, 1.7e308, np.inf, -np.inf, np.nan])
SHARP: dict[str, dict[str, Any]] = {  # parameters under which finite numbers overflow
    "bounded": {"column": "x", "low": -1e-150, "high": 1e-150}, "product": {"factors": ("x", "y"), "bound": 1e-150},
    "mistake": {"columns": ("x", "b"), "label": "y", "weights": (1e150, -1e150)},
    "descent": {"loss": "logistic", "columns": ("x", "b"), "label": "y", "weights": (1e150, -1e150), "coordinate": 0, "bound": 1e-150},
    "descent-vector": {"loss": "logistic", "columns": ("x", "b"), "label": "y", "weights": (1e150, -1e150), "bound": 1e-150},
    "encoded": {
        "features": ("x", "b"), "lows": (-1e150, -1e-149), "highs": (7e149, 1e-149), "label": "y",
        "query": '["descent", {"loss": "logistic", "columns": ["x0", "x1"], "label": "y", "weights": [1e150, -1e150], "coordinate": 0, "bound": 1e-150}]',
    },
    "coordinates": {"columns": ("x", "b", "y"), "centres": (0.0, -1e150, 1e150), "reaches": (1e-150, 1e150, 1e150)},
    "nearest-centre": {"columns": ("x", "y"), "centres": (1e150, 0.0, -1e150, 1e150), "centre": 1},
    "centre-sum": {"columns": ("x", "y"), "centres": (1e150, 0.0, -1e150, 1e150), "centre": 1, "bound": 1e-150},
}  # fmt: skip
