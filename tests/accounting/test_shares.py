"""The price of many equal parts, and of groups of records."""

import math
from fractions import Fraction
from itertools import pairwise, product

import pytest

from local_dp.accounting.rules import advanced_part, group_loss, optimal_delta, optimal_part, printed_part
from local_dp.curator.laws import hockey_stick
from local_dp.curator.mechanism import whole_weights
from local_dp.loss import ATTO, NANO, Approximate, Concentrated, Pure, approximate, exp_epsilon, nano_epsilon
from tests.support.inputs.refusals import refuse

HUNDREDTH = ATTO // 100


def by_brute_force(epsilon: float, parts: int, whole: float) -> float:
    """The hockey stick of `parts` randomized responses against their mirror, summed over all outcomes."""
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    laws = [(math.prod(p if one else 1 - p for one in answers), math.prod(1 - p if one else p for one in answers)) for answers in product((0, 1), repeat=parts)]
    return sum(max(0.0, here - math.exp(whole) * there) for here, there in laws)


@pytest.mark.parametrize("parts", [1, 2, 7])
@pytest.mark.parametrize(("epsilon", "whole"), [(0.3, 0.5), (0.3, 0.0), (1.0, 1.5)])
def test_optimal_is_brute_force(parts: int, epsilon: float, whole: float) -> None:
    """It is the delta of randomized responses, which no other mechanisms of the same loss exceed; rounded up by less than 2e-18 beyond floats."""
    delta = optimal_delta(Pure(nano_epsilon(epsilon)), parts, Pure(round(whole * 1e9))) / ATTO
    assert delta == pytest.approx(by_brute_force(epsilon, parts, whole), rel=1e-12, abs=2e-18)


def test_the_parts_of_a_budget() -> None:
    """824 parts of (1, 1e-6), in nats; the optimum is the largest that fits."""
    budget = approximate(1, 1e-6)
    parts = [optimal_part(budget, 824), advanced_part(budget, 824), printed_part(budget, 824)]
    assert [round(part.epsilon, 5) for part in parts] == [0.00826, 0.00621, 0.00331]
    best = parts[0].nano
    assert optimal_delta(Pure(best), 824, Pure(budget.nano)) <= budget.atto < optimal_delta(Pure(best + 1), 824, Pure(budget.nano))


@pytest.mark.parametrize("parts", [1, 5, 31, 32, 300])
def test_each_way_keeps_to_the_budget(parts: int) -> None:
    """By the exact formula, Theorem 2.5 and the printed split spend too little; the optimum is never below adding up. Theorem 2.5 is, below 32 parts."""
    budget = approximate(1, 1e-6)
    for part in (optimal_part(budget, parts), advanced_part(budget, parts), printed_part(budget, parts)):
        assert optimal_delta(part, parts, Pure(budget.nano)) <= budget.atto
    assert optimal_part(budget, parts).nano >= budget.nano // parts
    assert (advanced_part(budget, parts).nano < budget.nano // parts) == (parts < 32)


def test_bad_input() -> None:
    refuse(
        ("fewer parts", lambda: printed_part(Approximate(10, 1), 1000)),
        ("parts is 0", lambda: optimal_part(approximate(1, 1e-6), 0)),
        ("records is 0", lambda: group_loss(Pure(1), 0)),
    )


def chain(growth: Fraction, delta: Fraction, records: int) -> list[dict[int, int]]:
    """Coins, one a database, of which each has Pr[heads] = growth Pr'[heads] + delta beside the next, and the last none."""
    heads = [Fraction(0)]
    for _ in range(records):
        heads.append(growth * heads[-1] + delta)
    return [dict(whole_weights({1: share, 0: 1 - share})) for share in reversed(heads)]


@pytest.mark.parametrize(("tenths", "records"), [(0, 2), (1, 5), (5, 3), (10, 2)])
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
    """k eps, k^2 rho; delta is at most 1."""
    assert group_loss(Pure(3), 4) == Pure(12)
    assert group_loss(Concentrated(3), 4) == Concentrated(48)
    assert group_loss(Approximate(20 * NANO, HUNDREDTH), 3).atto == ATTO
