"""What many losses come to together."""

import math
from itertools import product

import pytest

from local_dp.accounting.shares import advanced_part, optimal_delta, optimal_part, printed_part
from local_dp.errors import InputError
from local_dp.loss import ATTO, Approximate, Pure, approximate, nano_epsilon


def by_brute_force(epsilon: float, parts: int, whole: float) -> float:
    """The hockey stick of `parts` randomized responses against their mirror, summed over all outcomes."""
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    laws = [(math.prod(p if one else 1 - p for one in answers), math.prod(1 - p if one else p for one in answers)) for answers in product((0, 1), repeat=parts)]
    return sum(max(0.0, here - math.exp(whole) * there) for here, there in laws)


@pytest.mark.parametrize("parts", [1, 2, 3, 4, 7])
@pytest.mark.parametrize(("epsilon", "whole"), [(0.3, 0.5), (0.3, 0.0), (1.0, 1.5), (0.1, 2.0)])
def test_optimal_is_brute_force(parts: int, epsilon: float, whole: float) -> None:
    """It is the delta of randomized responses, which no other mechanisms of the same loss exceed; rounded up by less than 2e-18 beyond floats."""
    found = optimal_delta(Pure(nano_epsilon(epsilon)), parts, Pure(round(whole * 1e9))) / ATTO
    assert found == pytest.approx(by_brute_force(epsilon, parts, whole), rel=1e-12, abs=2e-18)


def test_the_parts_of_a_budget() -> None:
    """824 parts of (1, 1e-6), in nats; the optimum is the largest that fits."""
    budget = approximate(1, 1e-6)
    parts = [optimal_part(budget, 824), advanced_part(budget, 824), printed_part(budget, 824)]
    assert [round(part.epsilon, 5) for part in parts] == [0.00826, 0.00621, 0.00331]
    best = parts[0].nano
    assert optimal_delta(Pure(best), 824, Pure(budget.nano)) <= budget.atto < optimal_delta(Pure(best + 1), 824, Pure(budget.nano))


@pytest.mark.parametrize("parts", [1, 2, 5, 31, 32, 300])
def test_each_way_keeps_to_the_budget(parts: int) -> None:
    """By the exact formula, Theorem 2.5 and the printed split spend too little; the optimum is never below adding up. Theorem 2.5 is, below 32 parts."""
    budget = approximate(1, 1e-6)
    for part in (optimal_part(budget, parts), advanced_part(budget, parts), printed_part(budget, parts)):
        assert optimal_delta(part, parts, Pure(budget.nano)) <= budget.atto
    assert optimal_part(budget, parts).nano >= budget.nano // parts
    assert (advanced_part(budget, parts).nano < budget.nano // parts) == (parts < 32)


def test_nothing_is_too_little_to_share() -> None:
    with pytest.raises(InputError, match="fewer parts"):
        printed_part(Approximate(10, 1), 1000)
    with pytest.raises(InputError, match="parts is 0"):
        optimal_part(approximate(1, 1e-6), 0)
