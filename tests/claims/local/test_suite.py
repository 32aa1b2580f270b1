"""The experiments suite and interaction: real points, and verdicts that wrong measurements lose."""

import json
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from local_dp.experiments.claims.local.suite.claim import EXPERIMENT as SUITE
from local_dp.experiments.claims.local.suite.claim import NEEDED, Outcomes, Run
from local_dp.experiments.claims.local.suite.curator import Curator, SumLoss, noisy_sum_law
from local_dp.experiments.claims.local.suite.runs import (
    Fewest,
    Outcome,
    Users,
    finite_class,
    outcome,
)
from local_dp.experiments.lab.parts import ClientCount, CrossCheck, Refusal
from local_dp.experiments.lab.store import plain
from local_dp.hardness.adversary import VersionSpaceOracle
from local_dp.hardness.certificates import verify_certificate
from local_dp.interaction import run
from local_dp.learners.examples import tasks
from local_dp.learners.learner import Learner
from tests.support.adversaries.twins import LaxConjunctions, LaxLists
from tests.support.long import short

Measured = list[tuple[Any, Any]]
TASKS = tasks()


def count_of(clients: float) -> ClientCount:
    """A count to 10 %."""
    n = round(clients)
    return ClientCount(n, 0.9 * n, 1.1 * n, 2400)


def suite_as_promised() -> Measured:
    """Measurements of the quick suite in which everything goes as the claim says."""

    def run(point: Run) -> Outcome:
        learner, worst, curator = (
            TASKS[point.task].learner,
            point.oracle == "worst case",
            point.oracle == "curator",
        )
        return Outcome(
            excess=2.0 * (worst and point.slack > 1),
            queries=learner.queries,
            rounds=learner.rounds,
            charged=1.0 if curator else None,
            lost=1.0 if curator else None,
            replayed=(3, 3) if worst else None,
        )

    def measurement(point: Any) -> Any:
        if isinstance(point, Fewest):
            return count_of(NEEDED[point.task][1])
        if isinstance(point, Users):
            return CrossCheck(100, (140, 150), (280, 300), ((100, 100),), loss=1.0, epsilon=1.0)
        if isinstance(point, Curator):
            return SumLoss(1.0, [round(20_000 * share) for share in noisy_sum_law(1.0)])
        return Outcomes([run(point)] * point.trials)

    return [(point, measurement(point)) for point in SUITE.points("quick")]


def spoil(
    kind: type, change: Callable[[Any], Any], concerns: Callable[[Any], bool] = lambda point: True
) -> Measured:
    """The measurements as promised, changed at the points of one class that `concerns` picks."""
    return [
        (point, change(each) if isinstance(point, kind) and concerns(point) else each)
        for point, each in suite_as_promised()
    ]


def with_runs(concerns: Callable[[Run], bool], **wrong: Any) -> Measured:
    """The measurements as promised, with these fields changed in the runs that `concerns` picks."""

    def change(each: Outcomes) -> Outcomes:
        return Outcomes([replace(run, **wrong) for run in each.runs])

    return spoil(Run, change, concerns)


def shown(rows: Measured) -> list[bool]:
    """Which checks the measurements show, after a journey through JSON."""
    again = [(p, SUITE.read(p, json.loads(json.dumps(plain(each))))) for p, each in rows]
    return [check.shown for check in SUITE.conclude(again, "quick").checks]


def test_what_the_claim_says_is_shown() -> None:
    """Measurements as the claim has them show every check."""
    assert all(shown(suite_as_promised()))


@pytest.mark.parametrize(("oracle", "loose", "excess", "losses"), [
    ("exact", False, 0.2, 0), ("towards 0", False, 0.2, 1), ("worst case", False, 0.2, 1),
    ("local clients", False, 0.2, 2),
    ("worst case", True, 0.0, 4), ("worst case", False, 0.2, 4), ("local clients", True, 2.0, 5),
    ("local clients", True, 0.2, 5),
])  # fmt: skip
def test_a_wrong_learner_loses_the_suite(
    oracle: str, loose: bool, excess: float, losses: int
) -> None:
    """Learners that miss alpha on exact, hostile or sampled answers are not shown; nor is a worst
    case that is no worse than real answers."""
    rows = with_runs(
        lambda point: point.oracle == oracle and (point.slack > 1) == loose, excess=excess
    )
    assert not shown(rows)[losses]


@pytest.mark.long
@pytest.mark.parametrize("name", ["conjunctions", "decision-lists"])
def test_a_threshold_six_times_too_lax_loses_the_suite(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the real runs of one learner put among measurements as promised, the right one is shown,
    and its lax twin is not."""
    twins: dict[str, Learner[Any]] = {
        "conjunctions": LaxConjunctions(d=5),
        "decision-lists": LaxLists(d=4),
    }
    verdicts = []
    for learner in (TASKS[name].learner, twins[name]):
        catalogue = {**TASKS, name: replace(TASKS[name], learner=learner)}
        monkeypatch.setattr(
            "local_dp.experiments.claims.local.suite.claim.tasks",
            lambda catalogue=catalogue: catalogue,
        )
        rows = [
            (
                point,
                SUITE.measure(point, 3) if isinstance(point, Run) and point.task == name else each,
            )
            for point, each in suite_as_promised()
        ]
        verdicts.append(all(shown(rows)))
    assert verdicts == [True, False]


@pytest.mark.parametrize("wrong", [
    {"users": (75, 150)}, {"refused": "the budget is spent"}, {"asked": ((99, 100),)},
    {"loss": 1.1},
], ids=["another rate", "refused", "somebody left out", "more loss"])  # fmt: skip
def test_clients_that_differ_from_their_law_lose_the_suite(wrong: dict[str, Any]) -> None:
    """Runs client by client that succeed less often, are refused, ask fewer clients or cost more
    than the law's are not shown."""
    rows = spoil(
        Users, lambda each: Refusal(**wrong) if "refused" in wrong else replace(each, **wrong)
    )
    assert shown(rows) == [True] * 6 + [False] * 2 + [True] * 4


def test_a_minimum_beyond_the_bound_loses_the_suite() -> None:
    """A learner that needs more than the sufficient bound is not shown, and the tables and figures
    stand."""
    wrong = ClientCount(10**12, 10**12, 10**12, 1)
    rows = spoil(Fewest, lambda each: wrong, lambda point: point.task == "stumps")
    assert shown(rows) == [True] * 8 + [False, False, True, True]


@pytest.mark.parametrize(
    ("names", "factor", "losses"),
    [(NEEDED, 1.3, [9]), (["low-degree"], 1.9, [8])],
    ids=["all", "one"],
)
def test_learners_that_need_more_than_is_known_lose_the_suite(
    names: Collection[str], factor: float, losses: list[int]
) -> None:
    rows = spoil(Fewest, lambda each: count_of(factor * each.n), lambda point: point.task in names)
    assert [place for place, true in enumerate(shown(rows)) if not true] == losses


@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        ("curator", {"loss": 2.0}),
        ("curator", {"loss": 0.5}),
        ("curator", {"drawn": [round(20_000 * share) for share in noisy_sum_law(1.2)]}),
        ("run", {"charged": 0.5}),
        ("run", {"charged": 1.5, "lost": 1.5}),
    ],
    ids=["twice the loss", "half of it", "less noise", "one sum paid for", "too much paid"],
)
def test_a_curator_that_is_not_as_private_as_it_says_loses_the_suite(
    part: str, wrong: dict[str, Any]
) -> None:
    """A noisy sum of another loss or law, or an account that does not pay for every sum or pays
    beyond epsilon, is not shown."""
    rows = (
        spoil(Curator, lambda each: replace(each, **wrong))
        if part == "curator"
        else with_runs(lambda point: point.oracle == "curator", **wrong)
    )
    assert shown(rows) == [True] * 11 + [False]


@pytest.mark.parametrize("games", [(2, 3), (0, 0)])
def test_an_adversary_that_gives_something_away_loses_the_suite(games: tuple[int, int]) -> None:
    """One answer that another one would have beaten, or games of which none was replayed, are not
    shown."""
    rows = with_runs(lambda point: point.oracle == "worst case", replayed=games)
    assert shown(rows) == [True] * 10 + [False, True]


def test_too_many_queries_lose_the_suite() -> None:
    """A learner that asks one query more than its formula is not shown."""
    first = next(iter(TASKS))
    queries = TASKS[first].learner.queries + 1
    rows = with_runs(
        lambda point: point.task == first and point.oracle == "exact",
        queries=queries,
    )
    assert not shown(rows)[3]


@pytest.mark.parametrize(
    "name", short(TASKS, lambda name: name not in ("perceptron", "trees", "decision-lists"))
)
def test_learners_keep_their_promise_in_the_suite(name: str) -> None:
    """In the worst case, of a sample and of local clients, at the proven tolerance, the error is at
    most alpha."""
    task = TASKS[name]
    oracles = ("worst case", "sample", "local clients")
    assert all(
        outcome(task, oracle, 1.0, np.random.default_rng(5)).excess <= task.learner.alpha + 1e-9
        for oracle in oracles
    )


def test_the_curator_answers_learners() -> None:
    """The same stumps and linear regression from a curator's noisy sums, within the records and the
    budget of the formula."""
    for name in ("stumps", "linear-regression"):
        run = outcome(TASKS[name], "curator", 1.0, np.random.default_rng(6))
        assert run.excess <= TASKS[name].learner.alpha
        assert run.queries == TASKS[name].learner.queries


def test_every_list_has_its_opposite() -> None:
    """The labels of a list, reversed, are those of a list, by its last rules reversed."""
    lists = finite_class("decision-lists")
    assert lists is not None
    rows = [lists.row(index) for index in range(lists.size)]
    assert {(-row).tobytes() for row in rows} == {row.tobytes() for row in rows}


@pytest.mark.parametrize(
    "name",
    short(
        ["conjunctions", "stumps", "thresholds", "low-degree", "naive-bayes", "decision-lists"],
        lambda name: name != "decision-lists",
    ),
)
def test_the_worst_case_defeats_beyond_the_tolerance(name: str) -> None:
    """At 16 times the proven tolerance the worst case defeats the learner, and says what it ranged
    over."""
    defeat = outcome(TASKS[name], "worst case", 16.0, np.random.default_rng(1))
    assert defeat.excess > TASKS[name].learner.alpha
    assert ("concepts" in str(defeat.adversary)) == (finite_class(name) is not None)


def test_defeats_come_with_certificates() -> None:
    """Each of those defeats leaves a certificate that the independent checker accepts, and refuses
    once an answer is changed."""
    for name in ("conjunctions", "stumps", "thresholds", "low-degree"):
        concepts = finite_class(name)
        assert concepts is not None
        learner = replace(TASKS[name].learner, slack=16.0)
        oracle = VersionSpaceOracle(concepts, learner.alpha)
        run(learner.algorithm(), oracle)
        certificate = json.loads(json.dumps(oracle.certificate()))
        assert verify_certificate(certificate).valid
        certificate["answers"] = [
            "1" if answer != "1" else "-1" for answer in certificate["answers"]
        ]
        assert not verify_certificate(certificate).valid
