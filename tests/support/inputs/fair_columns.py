"""The table `fair` as 17 columns of 0 and 1: what many answers are measured on."""

import numpy as np

from local_dp.curator.marginals.base import BinaryTable

CUTS: tuple[tuple[str, float], ...] = (
    ("rate_marriage", 4), ("rate_marriage", 5), ("age", 27), ("age", 32), ("yrs_married", 6),
    ("yrs_married", 13), ("children", 1), ("children", 3),
    ("religious", 2), ("religious", 3), ("educ", 14), ("educ", 16), ("occupation", 3),
    ("occupation", 4), ("occupation_husb", 4),
    ("occupation_husb", 5), ("affairs", 1e-9),
)  # fmt: skip
"""Column c is whether the first is at least the second: each at two cuts, and whether there were
any affairs."""


def fair_table() -> BinaryTable:
    """All 6,366 rows at these cuts."""
    from statsmodels.datasets import fair

    frame = fair.load_pandas().data
    return BinaryTable.of(np.stack([frame[name].to_numpy() >= cut for name, cut in CUTS], axis=1))
