"""The table `fair` as 17 columns of 0 and 1: what many answers are measured on."""

from collections.abc import Mapping

import numpy as np

from local_dp.arrays import Column
from local_dp.curator.marginals.base import BinaryTable
from local_dp.errors import InputError

CUTS: tuple[tuple[str, float], ...] = (
    ("rate_marriage", 4),
    ("rate_marriage", 5),
    ("age", 27),
    ("age", 32),
    ("yrs_married", 6),
    ("yrs_married", 13),
    ("children", 1),
    ("children", 3),
    ("religious", 2),
    ("religious", 3),
    ("educ", 14),
    ("educ", 16),
    ("occupation", 3),
    ("occupation", 4),
    ("occupation_husb", 4),
    ("occupation_husb", 5),
    ("affairs", 1e-9),
)
"""Column c is whether the first is at least the second: each at two cuts, and whether there were any affairs."""


def cut_columns(columns: Mapping[str, Column]) -> BinaryTable:
    """The columns of `fair` at these cuts."""
    return BinaryTable.of(np.stack([np.asarray(columns[name]) >= cut for name, cut in CUTS], axis=1))


def fair_table() -> BinaryTable:
    """All 6,366 rows. Raises InputError where the package that ships them is not installed."""
    try:
        from statsmodels.datasets import fair
    except ImportError:
        raise InputError("the table ships inside statsmodels, which is not installed; run: pip install 'local-dp[examples]'") from None
    frame = fair.load_pandas().data
    return cut_columns({name: frame[name].to_numpy() for name, _ in CUTS})
