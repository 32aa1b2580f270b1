"""The experiment planning: plans beside counts that are measured, or exact."""

import math
from dataclasses import replace

import numpy as np
import pytest

from local_dp.bounds.response import binomial_tail, response_gain
from local_dp.experiments.claims.local.planning import (
    EPSILONS,
    EXPERIMENT,
    IN_ROUNDS,
    SIZES,
    TASKS,
    Planned,
)
from local_dp.experiments.lab.parts import ClientCount
from local_dp.protocols.planning.ways import plan_of
from local_dp.protocols.surveys.survey import Survey
from tests.support.long import short


def _exact_clients(epsilon: float, share: float, tau: float) -> float:
    """By the exact binomial law, the least n whose surveys are within tau in 95 % of the runs; an
    average over the sizes around n."""
    gain = response_gain(epsilon)
    chance = (1 + (2 * share - 1) / gain) / 2

    def failure(n: int) -> float:
        reach = n * tau / gain
        above = binomial_tail(n, math.floor(n * chance + reach + 1e-9) + 1, chance)
        fewest = n - math.ceil(n * chance - reach - 1e-9) + 1
        return above + binomial_tail(n, fewest, 1 - chance)

    def around(n: float) -> float:
        parts = np.linspace(SIZES[0], SIZES[-1], 401)
        return float(np.mean([failure(round(n * (1 + part))) for part in parts]))

    low, high = 10.0, 1e7
    while high / low > 1.0001:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if around(middle) > 0.05 else (low, middle)
    return high


@pytest.mark.parametrize("epsilon", short(EPSILONS, lambda epsilon: epsilon == 4.0))
def test_a_survey_takes_the_planned_clients_by_its_exact_law(epsilon: float) -> None:
    """Survey, and so the mean, whose reports have the same law: the plan is within 2 % of the exact
    count; that for a fair coin is not at epsilon 4."""
    exact = _exact_clients(epsilon, 0.3, 0.05)
    plan = plan_of(Survey(), epsilon, Survey().synthetic(5, 1)).clients(0.05)
    assert plan == pytest.approx(exact, rel=0.02)
    if epsilon == 4:
        assert plan_of(Survey(), epsilon).clients(0.05) > 1.1 * exact


@pytest.mark.slow(only=("frequency",))
@pytest.mark.long
@pytest.mark.parametrize(
    "task", short(sorted({*TASKS} - {*IN_ROUNDS}), lambda task: task == "survey")
)
def test_a_quick_measurement_agrees(task: str) -> None:
    """Some 20,000 runs at epsilon 1: the plan is within 5 % of the measured count, and the same
    seed measures the same again with fewer runs."""
    (point,) = (
        each for each in EXPERIMENT.points("quick") if each.task == task and each.epsilon == 1
    )
    result = EXPERIMENT.measure(point, 1)
    assert not result.count.failed
    assert result.planned == pytest.approx(result.count.n, rel=0.05)
    assert result.count.low < result.count.n < result.count.high
    few = replace(point, trials=1500)
    assert EXPERIMENT.measure(few, 2) == EXPERIMENT.measure(few, 2) != EXPERIMENT.measure(few, 3)


RIGHT = Planned(1000, 1100, "grr", 0.05, ClientCount(1001, 990, 1012, 9))


@pytest.mark.parametrize(("wrong", "losses"), [
    (RIGHT, []), (replace(RIGHT, planned=1040), []), (replace(RIGHT, planned=1100), [1]),
    (replace(RIGHT, planned=910), [1]),
])  # fmt: skip
def test_the_verdict_follows_the_measurements(wrong: Planned, losses: list[int]) -> None:
    """A plan a tenth too high or too low loses its check, a plan 4 % too high does not."""
    points = EXPERIMENT.points("full")
    finding = EXPERIMENT.conclude(
        [(point, wrong if place == 3 else RIGHT) for place, point in enumerate(points)], "full"
    )
    assert [place for place, check in enumerate(finding.checks) if not check.shown] == losses
