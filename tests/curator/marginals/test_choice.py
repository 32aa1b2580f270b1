"""The choice by closed form."""

import pytest

from local_dp.curator.marginals.base import Marginals
from local_dp.curator.marginals.choice import NOISY, MarginalTask, choose
from local_dp.curator.marginals.fourier import FourierGaussian
from local_dp.errors import InputError


@pytest.mark.parametrize(("d", "t"), [(1, 1), (6, 2), (10, 3), (6, 6)])
def test_its_noise_is_the_mechanisms(d: int, t: int) -> None:
    """The closed form against the variances of the mechanism itself: within 1 %, which is what rounding them up costs."""
    found = FourierGaussian(Marginals.ways(d, t), 1.0, 1e-6).deviation
    assert found == pytest.approx(MarginalTask(d, t, 1000, 1.0, 1e-6).deviation, rel=0.01)


def test_what_is_chosen() -> None:
    """Fourier for `fair` and for many records of many columns; few records make it a model of the data, too many characters a tree."""
    chosen = {
        (17, 3, 6366): "fourier",
        (32, 3, 10**6): "fourier",
        (17, 3, 500): "mwem",
        (32, 3, 500): "mst",
        (64, 8, 10**9): "mst",
    }
    assert {key: choose(MarginalTask(*key, 1.0, 1e-6)).kind for key in chosen} == chosen


def test_it_turns_where_it_says() -> None:
    """At the number of records at which noise is one part in `NOISY` of the average cell."""
    turn = NOISY * 8 * MarginalTask(17, 3, 1, 1.0, 1e-6).deviation
    kinds = [choose(MarginalTask(17, 3, int(turn * factor), 1.0, 1e-6)).kind for factor in (0.99, 1.01)]
    assert kinds == ["mwem", "fourier"]
    assert 2000 < turn < 4000


def test_the_reason_has_the_figures() -> None:
    """In one sentence."""
    assert choose(MarginalTask(17, 3, 6366, 1.0, 1e-6)).reason == (
        "all characters at once have noise of 0.0065 of the records on a cell, 0.125 on average: little, and no bias"
    )
    with pytest.raises(InputError, match="t is 4"):
        MarginalTask(3, 4, 10, 1.0, 1e-6)
