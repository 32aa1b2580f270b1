"""How many clients follow a ladder, and how many no protocol of one round can do without."""

import math

import numpy as np
import pytest

from local_dp.arrays import Floats
from local_dp.bounds.channels import best_channel, report_capacity
from local_dp.bounds.interaction import group_lengths, ladder_clients, ladder_one_round_least, ladder_success
from local_dp.errors import InputError


def test_the_figures_that_are_cited() -> None:
    """At epsilon 1: capacity .1233 nats, 2.985 k 2^(k-1) clients, 1,565,038 at k = 16."""
    assert report_capacity(1.0) == pytest.approx(0.1233, abs=5e-5)
    assert ladder_one_round_least(1, 1.0, 0.1) == pytest.approx(2.985, abs=5e-4)
    assert ladder_one_round_least(16, 1.0, 0.1) == pytest.approx(1_565_038, abs=1)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0])
def test_no_channel_tells_more_than_the_capacity(epsilon: float) -> None:
    """The best channel of all on a uniform record of 2 to 12 values, by its linear program, stays below, and the best of them is near."""

    def told(columns: Floats) -> Floats:
        mean = columns.mean(axis=1, keepdims=True)
        told: Floats = (columns * np.log(columns / mean)).mean(axis=1)
        return told

    values = [best_channel(epsilon, symbols, told).value for symbols in (2, 3, 5, 8, 12)]
    assert max(values) <= report_capacity(epsilon) * (1 + 1e-9)
    assert max(values) >= 0.97 * report_capacity(epsilon)


def test_randomized_response_is_below_the_capacity() -> None:
    """ln 2 - h(1 / (E + 1)) of a bit: .1109 at epsilon 1."""
    q = 1 / (math.e + 1)
    told = math.log(2) + q * math.log(q) + (1 - q) * math.log(1 - q)
    assert told == pytest.approx(0.1109, abs=5e-5)
    assert told < report_capacity(1.0)


def test_the_counts_of_the_issue() -> None:
    """Within 6 % of float prototypes whose other levels' answers were coins: 90 % success at epsilon 1."""
    figures = {
        (True, False): {2: 47, 4: 283, 8: 1482, 12: 3778, 16: 7451},
        (False, False): {2: 99, 4: 1118, 8: 11_819, 12: 45_976, 16: 118_678},
        (False, True): {2: 81, 4: 811, 8: 7356, 12: 26_498, 16: 67_529},
    }
    for (again, below), counts in figures.items():
        for k, count in counts.items():
            assert ladder_clients(k, 1.0, 0.1, k, again=again, below=below, apart=True) == pytest.approx(count, rel=0.06)
    for k, split in {2: 179, 4: 3985, 8: 81_700, 12: 469_000, 16: 1.6e6}.items():
        assert ladder_clients(k, 1.0 / k, 0.1, k, again=True) == pytest.approx(split, rel=0.06)
    for k, most in {2: 73, 4: 1192, 8: 76_600, 12: 2.8e6, 16: 7.7e7}.items():
        assert ladder_clients(k, 1.0, 0.1, 1, apart=True) == pytest.approx(most, rel=0.06)
        assert ladder_clients(k, 1.0, 0.1, 1) <= ladder_clients(k, 1.0, 0.1, 1, apart=True)
    turns, agains = (2.8e6, 125_600, 56_800, 43_300, 37_300, 45_400), (2.8e6, 62_400, 18_900, 10_700, 6340, 3790)
    for rounds, turn, same in zip((1, 2, 3, 4, 6, 12), turns, agains, strict=True):
        assert ladder_clients(12, 1.0, 0.1, rounds, apart=True) == pytest.approx(turn, rel=0.06)
        assert ladder_clients(12, 1.0, 0.1, rounds, again=True, apart=True) == pytest.approx(same, rel=0.06)


def test_groups_are_as_equal_as_they_can_be() -> None:
    """k levels in so many groups, the longer ones first; none is empty."""
    assert group_lengths(12, 5) == (3, 3, 2, 2, 2)
    assert group_lengths(4, 1) == (4,)
    for wrong in (0, 5, 2.0, True):
        with pytest.raises(InputError, match="rounds"):
            group_lengths(4, wrong)  # type: ignore[arg-type]


def test_one_level_is_randomized_response() -> None:
    """k = 1: a single majority of answers at gain C."""
    lean = math.tanh(0.5)
    assert ladder_success(1, 1.0, 1, 100) == pytest.approx(0.5 * math.erfc(-lean * 10 / math.sqrt(2 * (1 - lean**2))))
