"""Group privacy."""

from fractions import Fraction
from itertools import pairwise

import pytest

from local_dp.accounting.shares import group_loss
from local_dp.curator.laws import hockey_stick, whole_weights
from local_dp.errors import InputError
from local_dp.loss import ATTO, NANO, Approximate, Concentrated, Pure, exp_epsilon

HUNDREDTH = ATTO // 100


def chain(growth: Fraction, delta: Fraction, records: int) -> list[dict[int, int]]:
    """Coins, one a database, of which each has Pr[heads] = growth Pr'[heads] + delta beside the next, and the last none."""
    heads = [Fraction(0)]
    for _ in range(records):
        heads.append(growth * heads[-1] + delta)
    return [dict(whole_weights({1: share, 0: 1 - share})) for share in reversed(heads)]


@pytest.mark.parametrize(("tenths", "records"), [(0, 2), (0, 5), (1, 2), (1, 5), (5, 3), (10, 2)])
def test_a_chain_of_coins_reaches_it(tenths: int, records: int) -> None:
    """Each step has (eps, delta) both ways, and the ends have exactly the group's delta at k eps; the printed e^(k eps) delta is too little below ln 2."""
    nano, delta = tenths * NANO // 10, Fraction(1, 100)
    growth = exp_epsilon(nano)
    laws = chain(growth, delta, records)
    for here, there in pairwise(laws):
        assert hockey_stick(here, there, growth) == delta
        assert hockey_stick(there, here, growth) <= delta
    reached = hockey_stick(laws[0], laws[-1], growth**records) * ATTO
    stated = group_loss(Approximate(nano, HUNDREDTH), records)
    assert stated.nano == records * nano
    assert reached <= stated.atto <= reached + 1
    assert (growth**records * HUNDREDTH < reached) == (tenths < 7)


def test_pure_and_concentrated_groups() -> None:
    """k eps, k^2 rho; delta is at most 1; no records and too many are refused."""
    assert group_loss(Pure(3), 4) == Pure(12)
    assert group_loss(Concentrated(3), 4) == Concentrated(48)
    assert group_loss(Approximate(20 * NANO, HUNDREDTH), 3).atto == ATTO
    with pytest.raises(InputError, match="records is 0"):
        group_loss(Pure(1), 0)
