"""The numpy types that pass between the library's parts."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Bools: TypeAlias = NDArray[np.bool_]
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.integer[Any]]
Counts: TypeAlias = NDArray[np.int64]
Words: TypeAlias = NDArray[np.unsignedinteger[Any]]
Column: TypeAlias = NDArray[Any]
Naturals: TypeAlias = NDArray[Any]
"""Whole numbers from 0 on, of any size: uint64 where they fit, Python's own otherwise
(`multisets.naturals`)."""
