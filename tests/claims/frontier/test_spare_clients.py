"""`spare-clients` is shown as it stands; wrong laws, errors, counts and tolerances are not."""

from dataclasses import replace

from local_dp.bounds.response import rr_clients_exact
from local_dp.experiments.claims.frontier import spare_clients
from local_dp.experiments.claims.frontier.spare_clients import EXPERIMENT, ReportErrors, Spare
from local_dp.experiments.claims.local.suite.runs import Fewest
from local_dp.experiments.lab.parts import ClientCount
from local_dp.learners.examples import tasks
from local_dp.oracles.statistical.oracles import NoisyOracle
from tests.support.runs.quick import Quick, Twin

QUICK, FEWEST, STUMPS = Quick(EXPERIMENT), Fewest.measure, tasks()["stumps"]
LAX = replace(STUMPS, learner=replace(STUMPS.learner, slack=2.0))


def half(point: Fewest, seed: int) -> ClientCount:
    count = FEWEST(point, seed)
    return replace(count, n=count.n // 2, low=count.low / 2, high=count.high / 2)


TWINS = [
    Twin(
        "twice the failure probability",
        spare_clients,
        {"rr_clients_exact": lambda *law: rr_clients_exact(*law[:2], 2 * law[2])},
        (),
        "another computation",
    ),
    Twin(
        "errors without the noise of reports",
        ReportErrors,
        {"answer_one": NoisyOracle.answer_one},
        ("low-degree",),
        "multiply",
        "Fresh runs",
    ),
    Twin("half the people", Fewest, {"measure": half}, ("thresholds",), "Fresh runs"),
    Twin(
        "twice the tolerance",
        spare_clients,
        {"tasks": lambda: {**tasks(), "stumps": LAX}},
        ("stumps",),
        "No adversary",
    ),
]
test_shown, test_wrong_twins_are_not_shown = QUICK.tests(TWINS, Spare)
