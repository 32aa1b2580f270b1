"""The choice by closed form."""

import pytest

from local_dp.curator.marginals import fourier
from local_dp.curator.marginals.base import Marginals
from local_dp.curator.marginals.fourier import LITTLE, MUCH, FourierGaussian, choose
from local_dp.loss import approximate

LOSS = approximate(1.0, 1e-6)


def test_what_is_chosen() -> None:
    """The nearest table for `fair`; noise as it is for many records; of many columns a tree where noise is much, and where it is not there is no other way."""
    chosen = {(17, 3, 6366): "nearest", (17, 3, 10**5): "fourier", (32, 3, 10**6): "fourier", (32, 3, 40_000): "fourier", (32, 3, 500): "mst"}
    assert {(d, t, size): choose(Marginals.ways(d, t), size, LOSS).kind for d, t, size in chosen} == chosen


def test_too_many_characters_are_not_released(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fourier, "MOST_CHARACTERS", 5)
    assert choose(Marginals.ways(3, 2), 10**9, LOSS).reason == "6 characters are too many to release; a tree of pairs takes 5"


@pytest.mark.parametrize(("d", "times", "kinds"), [(17, LITTLE, ["nearest", "fourier"]), (24, MUCH, ["mst", "fourier"]), (24, LITTLE, ["fourier", "fourier"])])
def test_it_turns_where_it_says(d: int, times: int, kinds: list[str]) -> None:
    """At the number of records at which noise is one part in so many of the average cell."""
    workload = Marginals.ways(d, 3)
    turn = times * 8 * FourierGaussian(workload, 1.0, 1e-6).deviation
    assert [choose(workload, int(turn * factor), LOSS).kind for factor in (0.99, 1.01)] == kinds


def test_the_reason_has_the_figures() -> None:
    """In one sentence."""
    assert choose(Marginals.ways(17, 3), 6366, LOSS).reason == (
        "all characters at once have noise of 0.0065 of the records on a cell, 0.125 on average, which the nearest table of 2^17 rows lessens"
    )
