"""Numbers on the lattice that queries answer on."""

from collections.abc import Callable

import numpy as np
import pytest

from local_dp.arrays import Floats, Ints
from local_dp.queries.numbers import STEPS, on_lattice
from local_dp.queries.tables import Bounded
from local_dp.records import Records

BOUND = 2.0


@pytest.mark.parametrize(
    "place", [lambda numbers: on_lattice(numbers, BOUND), lambda numbers: Bounded("v", -BOUND, BOUND)(Records({"v": numbers}))], ids=["on_lattice", "Bounded"]
)
def test_a_number_goes_to_the_nearest_point_of_the_lattice(place: Callable[[Floats], Ints]) -> None:
    """Numbers a quarter and three quarters of a step above a point go down and up, so rounding leans neither way; beyond the bound they are clipped."""
    points = np.array([0, 1, 1000, STEPS // 2, STEPS - 1])
    step = 2 * BOUND / STEPS
    assert place(points * step - BOUND).tolist() == points.tolist()
    assert place((points + 0.25) * step - BOUND).tolist() == points.tolist()
    assert place((points + 0.75) * step - BOUND).tolist() == (points + 1).tolist()
    assert place(np.array([-9.0, 9.0, -np.inf, np.inf, np.nan])).tolist() == [0, STEPS, 0, STEPS, STEPS // 2]
