"""Deciding at the front door: plans and the best randomizer, in Python and at the command line."""

import json
import math
from typing import Any

import pytest

import local_dp as ldp
from local_dp.bounds.best import TASKS, best_for
from local_dp.errors import InputError
from local_dp.protocols.planning.ways import asked_of
from local_dp.protocols.surveys.frequency import Frequency, frequency_randomizer
from local_dp.protocols.surveys.survey import Survey
from local_dp.protocols.vectors.mean_vector import Mean
from local_dp.randomizers.registry import RANDOMIZERS
from tests.support.inputs.randomizers import ORACLES

TABLE = {
    "age": [float(20 + row % 40) for row in range(400)],
    "smokes": [row % 10 == 0 for row in range(400)],
}


def test_a_plan_says_itself_in_a_sentence() -> None:
    """A plan prints its sentence and a line for each way, shows in a notebook, and is plain
    data."""
    plan = ldp.plan("survey", epsilon=1, accuracy=0.02)
    assert plan.clients == 11_243
    assert (
        "survey at epsilon 1: with 11,243 clients the largest error is at most 0.02 (share) with "
        "probability 95 %."
    ) in " ".join(repr(plan).split())
    assert all(
        name in repr(plan) for name in ("binary-rr (a run's)", "trusted curator", "no privacy")
    )
    assert plan._repr_html_().startswith("<pre")
    assert json.loads(json.dumps(plan.to_dict())) == plan.to_dict()
    assert [row["model"] for row in plan.rows] == [
        *["local"] * (1 + len(ORACLES)),
        "curator",
        "open",
    ]


def test_clients_for_an_accuracy_and_back() -> None:
    """The accuracy that the clients of a plan keep is the one they were planned for; neither given,
    the protocol's tolerance counts."""
    there = ldp.plan("frequency", epsilon=2, accuracy=0.03, k=16)
    back = ldp.plan(Frequency(k=16), epsilon=2, clients=there.clients)
    assert back.accuracy == pytest.approx(0.03, rel=1e-3)
    assert ldp.plan("mean", tolerance=0.07).to_dict()["asked"] == {"accuracy": 0.07}
    assert ldp.plan("masked-parity", epsilon=4).accuracy is None


def test_a_plan_for_people_like_a_tables_rows() -> None:
    """Where few answer yes, fewer clients are enough than for any population; the table's policies
    hold as in a run."""
    some = ldp.plan("survey", epsilon=4)
    rare = ldp.plan("survey", epsilon=4, of=TABLE, question="smokes == 1")
    assert some.clients is not None
    assert rare.clients is not None
    assert rare.clients < 0.7 * some.clients
    assert rare.to_dict()["population"] == "table"
    with pytest.raises(InputError, match="bounds"):
        ldp.plan("mean", of=TABLE, column="age")


@pytest.mark.parametrize(
    ("task", "question", "what"),
    [
        ("survey", {"accuracy": 0.1, "clients": 10}, "give one"),
        ("survey", {"accuracy": 0.0}, "accuracy is 0"),
        ("survey", {"clients": 0}, "clients is 0"),
        ("survey", {"epsilon": 0.0}, "epsilon"),
        ("parity", {"accuracy": 0.1}, "no accuracy to choose"),
        ("survey", {"colour": "red"}, "colour"),
        ("surwey", {}, "did you mean 'survey'"),
        (Survey(), {"p": 0.5}, "give them to it"),
    ],
)
def test_what_cannot_be_planned_is_refused(task: Any, question: dict[str, Any], what: str) -> None:
    with pytest.raises(InputError, match=what):
        ldp.plan(task, **question)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0, 8.0])
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("k", [2, 8, 20])
def test_nothing_is_better_than_the_best(task: str, epsilon: float, k: int) -> None:
    """No other randomizer has a variance lower by more than 1 %; the others are in order, and the
    best can be built."""
    best = best_for(task, epsilon, k)
    variances = [variance for _, variance in best.others]
    assert variances == sorted(variances)
    assert all(variance >= best.variance / 1.0100001 for variance in variances)
    assert RANDOMIZERS.build(best.randomizer, best.parameters).name == best.randomizer
    assert best.error(400) == pytest.approx(math.sqrt(best.variance) / 20)


@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
def test_runs_take_the_best(epsilon: float) -> None:
    assert asked_of(Survey(), epsilon).randomizer.name == best_for("survey", epsilon).randomizer
    for task, target in (("mean", "population"), ("table-mean", "records")):
        randomizer = asked_of(Mean(of=target), epsilon).randomizer
        assert randomizer.name == best_for(task, epsilon).randomizer
    for k in (3, 16, 100, 1000):
        assert frequency_randomizer(epsilon, k).name == best_for("frequency", epsilon, k).randomizer


def test_the_best_is_told_with_its_reason() -> None:
    """In a sentence with the standard error of so many clients, a line for each other one, and as
    plain data; what cannot be is refused."""
    best = ldp.best_for("frequency", epsilon=4, k=1024, clients=10_000)
    text = " ".join(repr(best).split())
    assert (
        "subset-selection(epsilon=4, k=1024): the least total variance of all that are shipped, "
        "by sets of 18 of 1024 points"
    ) in text
    assert "With 10,000 clients the standard error is" in text
    assert json.loads(json.dumps(best.to_dict())) == best.to_dict()
    assert best.to_dict()["others"][-1][0] == "hadamard"
    for wrong in (
        {"task": "frequencies"},
        {"task": "frequency", "k": 1},
        {"task": "survey", "clients": 0},
    ):
        with pytest.raises(InputError):
            ldp.best_for(**wrong)
