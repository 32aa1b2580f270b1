"""The best randomizer for a task, by closed form: never behind another one, and shown with its reason."""

import json
import math

import pytest

import local_dp as ldp
from local_dp.bounds.best import TASKS, best_for
from local_dp.errors import InputError
from local_dp.protocols.planning.local import asked_of
from local_dp.protocols.surveys.frequency import frequency_randomizer
from local_dp.protocols.surveys.survey import Survey
from local_dp.protocols.vectors.mean_vector import Mean
from local_dp.randomizers.registry import RANDOMIZERS


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0, 8.0])
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("k", [2, 8, 20])
def test_nothing_is_better_than_the_best(task: str, epsilon: float, k: int) -> None:
    """No other randomizer has a variance lower by more than 1 %; the others are in order, and the best can be built."""
    best = best_for(task, epsilon, k)
    variances = [variance for _, variance in best.others]
    assert variances == sorted(variances)
    assert all(variance >= best.variance / 1.0100001 for variance in variances)
    assert RANDOMIZERS.build(best.randomizer, best.parameters).name == best.randomizer
    assert best.error(400) == pytest.approx(math.sqrt(best.variance) / 20)


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
def test_runs_take_the_best(epsilon: float) -> None:
    assert asked_of(Survey(), epsilon).randomizer.name == best_for("survey", epsilon).randomizer
    assert asked_of(Mean(), epsilon).randomizer.name == best_for("mean", epsilon).randomizer
    for k in (3, 16, 100, 1000):
        assert frequency_randomizer(epsilon, k).name == best_for("frequency", epsilon, k).randomizer


def test_the_best_is_told_with_its_reason() -> None:
    """In a sentence with the standard error of so many clients, a line for each other one, and as plain data; what cannot be is refused."""
    best = ldp.best_for("frequency", epsilon=4, k=1024, clients=10_000)
    shown = " ".join(repr(best).split())
    assert "subset-selection(epsilon=4, k=1024): the least total variance of all that are shipped, by sets of 18 of 1024 points" in shown
    assert "With 10,000 clients the standard error is" in shown
    assert (json.loads(json.dumps(best.to_dict())), best.to_dict()["others"][-1][0]) == (best.to_dict(), "hadamard")
    for wrong in ({"task": "frequencies"}, {"task": "frequency", "k": 1}, {"task": "survey", "epsilon": 0.0}, {"task": "survey", "clients": 0}):
        with pytest.raises(InputError):
            ldp.best_for(**wrong)
