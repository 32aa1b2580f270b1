"""The experiments on randomized response and on both simulations: shown at quick scale, not shown
for a wrong program in their place."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
import pytest

from local_dp.arrays import Floats
from local_dp.experiments.claims.laplace import laplace_reports
from local_dp.experiments.claims.local import randomized_response, sq_to_local
from local_dp.experiments.claims.local.local_to_sq import claim as local_to_sq
from local_dp.experiments.claims.local.local_to_sq.claim import Draw, LocalToSq, Trees
from local_dp.experiments.claims.local.local_to_sq.laws import OneReply, TwoReplies
from local_dp.experiments.claims.local.randomized_response import (
    SHARE,
    WAYS,
    RandomizedResponse,
    Setting,
    Users,
)
from local_dp.experiments.claims.local.sq_to_local import Accuracy, Reports, SqToLocal
from local_dp.experiments.lab.parts import Experiment
from local_dp.oracles.local.asked import Cohort
from local_dp.randomizers import finite
from local_dp.randomizers.finite import flip_weight
from local_dp.randomizers.signs.binary_rr import BinaryRR
from local_dp.records import Records
from local_dp.theorems.from_sq import tight_clients
from local_dp.theorems.likelihood import Observed, acceptance, density, likelihood_query
from tests.support.runs.quick import lost
from tests.support.runs.shared import Once

pytestmark = pytest.mark.long
Quick: TypeAlias = Callable[[str], list[tuple[Any, Any]]]
EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (randomized_response, sq_to_local, local_to_sq)
}


@pytest.fixture(scope="module")
def quick(once: Once) -> Quick:
    """The quick run of the right protocol with seed 1."""

    def rows_of(name: str) -> list[tuple[Any, Any]]:
        experiment = EXPERIMENTS[name]
        return once.measured(
            name, experiment, experiment.points("quick"), lambda point: experiment.measure(point, 1)
        )

    return rows_of


@pytest.mark.slow(only=("sq-to-local",))
@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_shown(name: str, quick: Quick) -> None:
    """Every check of the quick run is shown."""
    finding = EXPERIMENTS[name].conclude(quick(name), "quick")
    assert lost(finding) == ""
    assert finding.verdict == "shown"


@dataclass(frozen=True)
class Wrong:
    """A wrong program: its experiment, the points that show it, a part of each check that must
    fail, and what it replaces.

    `stays` is a part of checks that still hold; `alone` means that no other check fails.
    """

    why: str
    experiment: Experiment
    concerns: Callable[[Any], bool]
    falls: tuple[str, ...]
    changes: tuple[tuple[Any, str, Any], ...] = ()
    stays: str = "no such check"
    alone: bool = False

    def __str__(self) -> str:
        return f"{self.experiment.name}: {self.why}"


def of_way(way: str) -> Callable[[Any], bool]:
    return lambda point: getattr(point, "way", "") == way


def loud(records: Records, epsilon: float, generator: np.random.Generator) -> float:
    """A curator whose noise falls as 1 / sqrt(n) only."""
    return float(
        records["yes"].mean() + generator.laplace(scale=1 / (epsilon * len(records) ** 0.5))
    )


def believed(records: Records, epsilon: float, generator: np.random.Generator) -> float:
    """Randomized response read without undoing its bias."""
    keep, ones = 1 / (1 + np.exp(-epsilon)), int(records["yes"].sum())
    answers = generator.binomial(ones, keep) + generator.binomial(len(records) - ones, 1 - keep)
    return float(answers / len(records))


def stretched(way: str) -> RandomizedResponse:
    """An eighth more error than there should be."""
    return RandomizedResponse(
        {
            **WAYS,
            way: lambda records, epsilon, generator: (
                1.125 * WAYS[way](records, epsilon, generator) - 0.125 * SHARE
            ),
        }
    )


def one_level(way: str) -> Callable[[Any], bool]:
    return lambda point: (
        isinstance(point, Setting) and (point.way, point.epsilon, point.n) == (way, 1.0, 1000)
    )


def counted(factor: float) -> SqToLocal:
    return SqToLocal(
        lambda epsilon, beta: lambda query: round(factor * tight_clients(epsilon, beta)(query))
    )


def weights(reply: Observed) -> Floats:
    return density(
        reply.randomizer, np.array([reply.report]), reply.randomizer.domain.values(), reply.cell
    )


RESPONSE = "randomized response"
PROTOCOL, SIMULATION = (
    import_module("local_dp.theorems.from_sq"),
    import_module("local_dp.theorems.sq_from_local"),
)
COHORT = "Cohort"
TWICE = ((finite, "flip_weight", lambda nano, bits: flip_weight(2 * nano, bits)),)
NO_GAIN = ((BinaryRR, "gain", 1.0),)
SHORT = tuple(
    (module, COHORT, lambda start, stop: Cohort(start, stop - 1))
    for module in (import_module("local_dp.oracles.local.asked"), PROTOCOL)
)
LOUD = (
    (
        sq_to_local,
        "laplace_reports",
        lambda values, epsilon, generator: laplace_reports(values, epsilon / 1.02, generator),
    ),
)
ASKED_TWICE = ((PROTOCOL, COHORT, lambda start, stop: Cohort(max(0, start - 1), stop)),)
UNCLIPPED = (
    (
        SIMULATION,
        "mean_ratio",
        lambda answer, growth: (growth + 1 / growth + answer * (growth - 1 / growth)) / 2,
    ),
    (SIMULATION, "acceptance", lambda ratio, ceiling: ratio / ceiling),
)
SHIPPED: dict[str, Any] = {
    "a ceiling of three quarters": (
        (SIMULATION, "acceptance", lambda ratio, ceiling: acceptance(ratio, 0.75 * ceiling)),
    ),
    "estimates outside their range": UNCLIPPED,
    "likelihoods over no reference": (
        (Observed, "ratios", lambda reply: weights(reply) / reply.randomizer.total),
    ),
    "likelihoods over a wrong one": (
        (Observed, "ratios", lambda reply: weights(reply) / weights(reply)[-1]),
    ),
}
CLIENTS: list[tuple[str, str, Any]] = [
    *((name, "twice the epsilon", TWICE) for name in ("randomized-response", "sq-to-local")),
    *(
        (name, "estimates that are not scaled back", NO_GAIN)
        for name in ("randomized-response", "sq-to-local")
    ),
    *((name, "cohorts one short", SHORT) for name in ("randomized-response", "sq-to-local")),
    ("sq-to-local", "cohorts that overlap", ASKED_TWICE),
]


def one_query(point: Any) -> bool:
    return isinstance(point, Accuracy) and (point.epsilon, point.t) == (1.0, 1)


def drawn(point: Any) -> bool:
    """Points whose draws leave their law, for one answer and for two."""
    return (isinstance(point, OneReply) and point.setting in (0, 6)) or (
        isinstance(point, TwoReplies) and point.people == "far"
    )


def one_step(point: Any) -> bool:
    return (type(point), getattr(point, "epsilon", 0)) in ((Draw, 1.0), (Trees, 0.5))


def client_by_client(point: Any) -> bool:
    return isinstance(point, (Users, sq_to_local.Users))


def a_thousand(point: Any) -> bool:
    return isinstance(point, Setting) and (point.way, point.n) == (RESPONSE, 1000)


DRAWS = ("The shipped simulation draws one answer", "It draws two answers")
STEPS = (
    "one answer: total variation",
    "two answers of one individual: the same",
)
WRONG = [
    Wrong(
        "much noise",
        RandomizedResponse({**WAYS, "curator": loud}),
        of_way("curator"),
        ("Errors fall as n", "the formula predicts"),
    ),
    Wrong(
        "a bias",
        RandomizedResponse({**WAYS, RESPONSE: believed}),
        of_way(RESPONSE),
        ("Errors fall as n",),
    ),
    *(
        Wrong(
            f"errors an eighth larger, {way}",
            stretched(way),
            one_level(way),
            ("the formula predicts",),
        )
        for way in WAYS
    ),
    *(
        Wrong(f"{part:g} of the clients", counted(part), one_query, ("With the exact count",))
        for part in (0.5, 0.95)
    ),
    Wrong(
        "noise a fiftieth larger",
        sq_to_local.EXPERIMENT,
        lambda point: isinstance(point, Reports),
        ("Laplace noise needs", "clips the Laplace"),
        LOUD,
    ),
    Wrong("three times the clients", counted(3.0), one_query, ("The count is tight",)),
    Wrong(
        "twice the acceptance",
        LocalToSq(accept=lambda ratio, ceiling: acceptance(2 * ratio, ceiling)),
        one_step,
        STEPS,
    ),
    Wrong(
        "independent replies",
        LocalToSq(same=False),
        lambda point: isinstance(point, TwoReplies) and point.epsilon == 2.0,
        DRAWS[1:],
    ),
    *(
        Wrong(why, local_to_sq.EXPERIMENT, drawn, DRAWS, changes, "rejection step")
        for why, changes in SHIPPED.items()
    ),
    *(
        Wrong(why, EXPERIMENTS[name], client_by_client, ("client by client",), changes, alone=True)
        for name, why, changes in CLIENTS
    ),
    Wrong(
        "a law without the gain", randomized_response.EXPERIMENT, a_thousand, ("predict",), NO_GAIN
    ),
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_wrong_program_is_not_shown(
    wrong: Wrong, quick: Quick, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The points that concern it are measured with it in place; each loses the checks that are
    about it."""
    right = quick(wrong.experiment.name)
    for target, name, value in wrong.changes:
        monkeypatch.setattr(target, name, value)
    likelihood_query.cache_clear()
    rows = [
        (point, wrong.experiment.measure(point, 1) if wrong.concerns(point) else each)
        for point, each in right
    ]
    finding = wrong.experiment.conclude(rows, "quick")
    likelihood_query.cache_clear()
    assert finding.verdict == "not shown"
    assert all(part in lost(finding) for part in wrong.falls), lost(finding)
    assert wrong.stays not in lost(finding)
    assert not wrong.alone or sum(not check.shown for check in finding.checks) == 1
