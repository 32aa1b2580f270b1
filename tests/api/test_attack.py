"""The attacks on a person's own table, in a line of shell."""

import numpy as np
import pytest

from local_dp.api.attack import attributes, reconstruct, trace
from local_dp.bounds.attacks import wrong_bits
from local_dp.errors import InputError
from local_dp.records import Records


def people(n: int = 1000) -> Records:
    generator = np.random.default_rng(7)
    columns = {f"b{place}": generator.integers(0, 2, n) for place in range(120)}
    return Records({**columns, "job": generator.choice(["baker", "smith"], n)})


def test_noise_counts_in_square_roots() -> None:
    """400 of 1,000 rows are tried with the noise as large against their square root: by closed form
    as many are wrong as of the whole table."""
    result = reconstruct(people(), "b0 == 1", noise=20.0, seed=1).data
    assert result["noise_in_roots"] == pytest.approx(20 / 1000**0.5)
    assert result["expected"] == pytest.approx(wrong_bits(1000, 4000, 20.0), rel=0.01)
    assert result["low"] - 0.05 < result["expected"] < result["high"] + 0.05
    assert reconstruct(people(100), "b0 == 1", noise=0.0, seed=1).data["wrong"] == 0.0
    few = reconstruct({"a": [1, 0, 1]}, "a == 1", noise=0.0, seed=2)
    assert few.data["wrong"] == 0.0
    assert "do not show that" in few.text()


def test_a_small_group_is_traced_by_its_means() -> None:
    """Five rows of 121 attributes stand out from exact means and not from a curator's at epsilon
    1."""
    output = trace(people(), "job == 'baker' or job == 'smith'", members=5, noise=0.0, seed=1)
    private = trace(
        people(), "job == 'baker' or job == 'smith'", members=5, epsilon=1.0, seed=1
    ).data
    assert output.data["found"] > 0.9
    assert private["found"] < 0.2
    assert output.data["largest_error"] < 1e-12
    assert private["largest_error"] > 0.5
    assert output.data["attributes"] == 122


def test_attributes_are_cuts_and_labels() -> None:
    """Above each value but the least, at most 16 to a column; equal to each text; nothing for a
    column of one value; a missing number is in none."""
    table = Records(
        {
            "few": np.array([1.0, 2.0, np.nan, 4.0]),
            "one": np.array([5, 5, 5, 5]),
            "text": np.array(["a", "b", "a", ""]),
        }
    )
    assert attributes(table).T.tolist() == [
        [False, True, False, True],
        [False, False, False, True],
        [True, False, True, False],
        [False, True, False, False],
    ]
    assert attributes(Records({"many": np.arange(1000)})).shape == (1000, 16)
    with pytest.raises(InputError, match="one value"):
        attributes(Records({"one": np.array([5, 5])}))


def test_rows_that_leave_it_open_are_refused() -> None:
    table = Records({"x": np.array([1.0, np.nan])})
    with pytest.raises(InputError, match="1 rows have no answer"):
        reconstruct(table, "x > 0", noise=1.0, seed=1)
    with pytest.raises(InputError, match="needs at least 1,001"):
        trace(people(), "b0 == 1", members=601, noise=1.0, seed=1)
