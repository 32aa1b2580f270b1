"""`workloads` is shown as it stands; with equal weights, a wrong gain or wrong bounds it is not."""

import numpy as np

from local_dp.bounds.quantiles import Certificate
from local_dp.bounds.response import response_gain
from local_dp.experiments.claims.frontier.workloads import (
    EXPERIMENT,
    MARGINALS,
    Runs,
    Strategy,
    Users,
)
from local_dp.protocols.vectors import workload
from local_dp.randomizers.finite import OneBit
from tests.support.runs.quick import Quick, Twin

QUICK, NORM, DESIGN = Quick(EXPERIMENT), Certificate.norm, workload._design.__wrapped__
TALLY = OneBit.draw_tally
EQUAL = {"_weights": lambda rows, _: np.ones(len(rows)), "_design": DESIGN}
TWINS = [
    Twin("rows asked equally often", workload, EQUAL, (MARGINALS,), "Sign rows have"),
    Twin(
        "a bound too large",
        Certificate,
        {"norm": lambda *sides: 1.2 * NORM(*sides)},
        (Strategy,),
        "Sign rows have",
        "Longer reports",
    ),
    Twin(
        "a gain too large",
        workload,
        {"response_gain": lambda epsilon: 1.2 * response_gain(epsilon)},
        (Runs,),
        "mean square error",
    ),
    Twin(
        "a tally of other people",
        OneBit,
        {"draw_tally": lambda self, counts, draws: TALLY(self, {0: sum(counts.values())}, draws)},
        (Users,),
        "client by client",
    ),
]
test_shown, test_wrong_twins_are_not_shown = QUICK.tests(TWINS)
